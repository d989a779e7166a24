"""Runs of equal confidence within a list: moving hits to an end of their run, counting them."""

from rankmill.kernels.jit import helper, kernel
from rankmill.kernels.order import sort_values


@helper
def run_around(confidences, start, end, place):
    """Return the first place of the run of equal confidence around `place`, and its end."""
    first = place
    while first > start and confidences[first - 1] == confidences[place]:
        first -= 1
    behind = place + 1
    while behind < end and confidences[behind] == confidences[place]:
        behind += 1
    return first, behind


@kernel
def move_hits(offsets, confidences, hit_offsets, ranks, gains, first, out_ranks, out_gains):
    """Move the hits of each run of equal confidence to its start, or to its end if not `first`.

    Writes their ranks and gains. Hits at the start are in order of falling gain, hits at the end in
    order of rising gain, so every metric has its highest or its lowest value.
    """
    for q in range(len(offsets) - 1):
        start = offsets[q]
        h = hit_offsets[q]
        while h < hit_offsets[q + 1]:
            run, behind = run_around(confidences, start, offsets[q + 1], start + ranks[h] - 1)
            last = h + 1
            while last < hit_offsets[q + 1] and ranks[last] <= behind - start:
                last += 1
            count = last - h
            ascending = gains[h:last].copy()
            sort_values(ascending)
            for i in range(count):
                if first:
                    out_ranks[h + i] = run - start + 1 + i
                    out_gains[h + i] = ascending[count - 1 - i]
                else:
                    out_ranks[h + i] = behind - start - count + 1 + i
                    out_gains[h + i] = ascending[i]
            h = last


@kernel
def count_runs(offsets, confidences, hit_offsets, ranks, gains, out_offsets, out_runs, out_gains):
    """Write, for each run with a hit, the predictions before and in it, its hits and their gains.

    Returns how many runs there are.
    """
    count = 0
    out_offsets[0] = 0
    for q in range(len(offsets) - 1):
        start = offsets[q]
        h = hit_offsets[q]
        while h < hit_offsets[q + 1]:
            run, behind = run_around(confidences, start, offsets[q + 1], start + ranks[h] - 1)
            first = h
            out_gains[count] = 0.0
            while h < hit_offsets[q + 1] and ranks[h] <= behind - start:
                out_gains[count] += gains[h]
                h += 1
            out_runs[0, count] = run - start
            out_runs[1, count] = behind - run
            out_runs[2, count] = h - first
            count += 1
        out_offsets[q + 1] = count
    return count
