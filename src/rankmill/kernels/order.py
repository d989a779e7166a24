"""Sorting without NumPy, and runs of equal confidences.

NumPy's functions take seconds to compile, or are slower on many numbers.
"""

from rankmill.kernels.jit import heavy_kernel, helper, kernel


@helper
def sort_values(values):
    """Sort an array in place (heapsort)."""
    count = len(values)
    heap = count // 2  # the values from here on are a heap
    end = count
    while end > 1:
        if heap > 0:
            heap -= 1
            value = values[heap]
        else:
            end -= 1
            value = values[end]
            values[end] = values[0]
        place = heap
        child = 2 * place + 1
        while child < end:
            if child + 1 < end and values[child] < values[child + 1]:
                child += 1
            if not value < values[child]:
                break
            values[place] = values[child]
            place = child
            child = 2 * place + 1
        values[place] = value


@heavy_kernel
def sort_floats(width, out_bits, out_spare, out_places):
    """Sort floats without NaN, given as signed integers of `width` bytes, the lowest byte first.

    The bits of negative floats ascend as the floats fall, so all but their sign are flipped in what
    is compared. out_places is int64[width, 256]. A byte that all have alike takes no time. Returns
    whether the result is in out_spare.
    """
    count = len(out_bits)
    sign = 8 * width - 1
    others = (1 << sign) - 1
    out_places[:] = 0
    for i in range(count):
        key = out_bits[i] ^ ((out_bits[i] >> sign) & others)
        for byte in range(width):
            out_places[byte, (key >> (8 * byte)) & 255] += 1
    source = out_bits
    target = out_spare
    moved = False
    for byte in range(width):
        places = out_places[byte]
        first = 128 if byte == width - 1 else 0  # the highest byte has the sign
        place = 0
        alike = False
        for value in range(256):
            some = places[value ^ first]
            alike |= some == count
            places[value ^ first] = place
            place += some
        if alike:
            continue
        for i in range(count):
            key = source[i] ^ ((source[i] >> sign) & others)
            value = (key >> (8 * byte)) & 255
            target[places[value]] = source[i]
            places[value] += 1
        source, target = target, source
        moved = not moved
    return moved


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
