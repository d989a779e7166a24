"""Ragged lists: checking, compacting, gathering and ordering them."""

import numpy as np

from rankmill.kernels.intrinsics import fold, prefetch
from rankmill.kernels.jit import helper, kernel

# So many values are sorted by counting the smaller ones of each, which takes no branches.
RUN = 32
# How many rows ahead of the current one memory is prefetched.
AHEAD = 16


@kernel
def kept_offsets(offsets, keep, out_offsets):
    """Write the offsets of lists after the values that are not kept were removed."""
    kept = 0
    out_offsets[0] = 0
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], offsets[q + 1]):
            kept += keep[i]
        out_offsets[q + 1] = kept


@kernel
def taken_spans(offsets, rows, out_starts, out_ends):
    """Write where the lists at `rows` start and end; row -1 is an empty list."""
    count = len(rows)
    for q in range(count):
        if q + AHEAD < count:
            prefetch(offsets, rows[q + AHEAD])
        row = rows[q]
        out_starts[q] = offsets[row] if row >= 0 else 0
        out_ends[q] = offsets[row + 1] if row >= 0 else 0


@kernel
def taken_values(offsets, values, rows, taken, out_values):
    """Write the values of the lists at `rows`, whose offsets are `taken`."""
    count = len(rows)
    for q in range(count):
        if q + AHEAD < count:
            prefetch(values, offsets[rows[q + AHEAD]])
        if rows[q] >= 0:
            shift = offsets[rows[q]] - taken[q]
            for i in range(taken[q], taken[q + 1]):
                out_values[i] = values[i + shift]


@kernel
def hash_lists(offsets, bits, seed, out_hashes):
    """Change each hash by the values of its list, uint64, and their places."""
    for q in range(len(offsets) - 1):
        start = offsets[q]
        total = np.uint64(offsets[q + 1] - start)
        for i in range(start, offsets[q + 1]):
            total += fold(bits[i] ^ (np.uint64(i - start + 1) * seed), seed)
        out_hashes[q] = fold(out_hashes[q] * seed + total, seed)


@kernel
def pack_strings(starts, ends, data, base, out_ends, out_data):
    """Copy strings one after the other, and write where each ends, plus `base` bytes."""
    written = i = 0
    while i < len(starts):
        start = starts[i]
        end = ends[i]
        shift = base + written - start
        out_ends[i] = end + shift
        i += 1
        while i < len(starts) and starts[i] == end:  # adjacent strings are copied together
            end = ends[i]
            out_ends[i] = end + shift
            i += 1
        source = np.uint64(start)  # unsigned indices: the compiler copies many bytes at once
        target = np.uint64(written)
        for position in range(np.uint64(end - start)):
            out_data[target + position] = data[source + position]
        written += end - start


@kernel
def unpack_strings(data, out_ends, out_data):
    """Write strings that a zero byte parts one after the other, and where each ends.

    Returns the number of strings; `out_ends` has room for as many as it should be.
    """
    count = written = 0
    for i in range(len(data)):
        if data[i] != 0:
            out_data[written] = data[i]
            written += 1
        else:
            if count < len(out_ends):
                out_ends[count] = written
            count += 1
    if count < len(out_ends):
        out_ends[count] = written
    return count + 1


@kernel
def sort_by_group(groups, count, out_offsets, out_order):
    """Sort rows by group, keeping their order (a counting sort), and write the groups' offsets."""
    out_offsets[:] = 0
    for row in range(len(groups)):
        out_offsets[groups[row] + 1] += 1
    for group in range(count):
        out_offsets[group + 1] += out_offsets[group]
    position = out_offsets[:-1].copy()
    for row in range(len(groups)):
        group = groups[row]
        out_order[position[group]] = row
        position[group] += 1


@helper
def sort_runs(keys, members, out_keys, out_members):
    """Sort runs of keys, and their members with them; equal keys keep their order."""
    for start in range(0, len(keys), RUN):
        run = keys[start : start + RUN]
        for i in range(len(run)):
            place = 0
            for j in range(len(run)):  # several at once
                place += (run[j] < run[i]) | ((run[j] == run[i]) & (j < i))
            out_keys[start + place] = run[i]
            out_members[start + place] = members[start + i]


@helper
def merge_runs(keys, members, width, out_keys, out_members):
    """Merge each two sorted runs of a width; equal keys keep their order."""
    for start in range(0, len(keys), 2 * width):
        middle, end = min(start + width, len(keys)), min(start + 2 * width, len(keys))
        one, other, place = start, middle, start
        while one < middle and other < end:  # without branches
            later = keys[other] < keys[one]
            out_keys[place] = keys[other] if later else keys[one]
            out_members[place] = members[other] if later else members[one]
            one += 1 - later
            other += later
            place += 1
        rest = one if one < middle else other
        for i in range(place, end):
            out_keys[i] = keys[rest + i - place]
            out_members[i] = members[rest + i - place]


@kernel
def sort_lists(offsets, sort_keys, out_order):
    """Sort each list by ascending key; equal keys keep their order.

    `out_order` holds the indices of the members of each list and is permuted in place;
    sort_keys[out_order[i]] is the key of member i. Returns how many members have the same key as
    another member of their list.
    """
    tied = longest = 0
    for q in range(len(offsets) - 1):
        longest = max(longest, offsets[q + 1] - offsets[q])
    keys = np.empty(longest, sort_keys.dtype)
    ranked = np.empty_like(keys)
    members = np.empty(longest, np.int64)
    placed = np.empty(longest, np.int64)
    for q in range(len(offsets) - 1):
        start = offsets[q]
        count = offsets[q + 1] - start
        ascending = True
        for i in range(count):
            members[i] = out_order[start + i]
            keys[i] = ranked[i] = sort_keys[members[i]]
            ascending &= i == 0 or keys[i - 1] <= keys[i]  # most runs are written in order
        if not ascending and count <= RUN:
            sort_runs(keys[:count], members, ranked, out_order[start : start + count])
        elif not ascending:
            sort_runs(keys[:count], members, ranked, placed)
            width = RUN
            while width < count:
                merge_runs(ranked[:count], placed, width, keys, members)
                merge_runs(keys[:count], members, 2 * width, ranked, placed)
                width *= 4
            for i in range(count):
                out_order[start + i] = placed[i]
        for i in range(count):
            before = i > 0 and ranked[i - 1] == ranked[i]
            after = i + 1 < count and ranked[i + 1] == ranked[i]
            tied += before or after
    return tied


@kernel
def ties_in_order(offsets, sort_keys):
    """Return how many values equal a neighbour in their list; -1 if a list does not ascend."""
    tied = 0
    for q in range(len(offsets) - 1):
        before = False  # whether the value equals the one before it
        for i in range(offsets[q] + 1, offsets[q + 1]):
            if sort_keys[i] < sort_keys[i - 1]:
                return -1
            equal = sort_keys[i] == sort_keys[i - 1]
            if equal:
                tied += 1 if before else 2
            before = equal
    return tied


@kernel
def first_seen(rows, out_seen):
    """Mark the rows except -1 as seen. Returns the first place with a row seen before, or -1."""
    for i in range(len(rows)):
        if rows[i] >= 0:
            if out_seen[rows[i]]:
                return i
            out_seen[rows[i]] = True
    return -1
