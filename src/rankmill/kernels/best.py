"""The best items of each row of a matrix of scores."""

import numpy as np

from rankmill.kernels.jit import helper, kernel

# So many scores at a time are compared with the least that is still of use.
CHUNK = 32


@kernel
def best_items(scores, k, tied, seen_offsets, seen_items, out_offsets, out_items, out_scores):
    """Write the k items of each row with the highest scores, and their scores, by item.

    Of the items with the lowest of these scores the first are taken, or all of them if `tied`.
    The items at `seen_items` of a row are left out; ``len(seen_offsets)`` is 0 if there are none.
    Returns the first place, row * columns + item, with a NaN; or -1.
    """
    rows, columns = scores.shape
    room = min(columns, 2 * k + CHUNK) + CHUNK
    items = np.empty(room, np.int64)
    values = np.empty(room, scores.dtype)
    spare = np.empty(room, scores.dtype)
    hides = len(seen_offsets) > 0
    hidden = np.zeros(columns, np.bool_)
    written = 0
    out_offsets[0] = 0
    for q in range(rows):
        if hides:
            for i in range(seen_offsets[q], seen_offsets[q + 1]):
                hidden[seen_items[i]] = True
        row = scores[q]
        count = 0
        cut = False  # whether scores up to `least` are of no use
        least = row[0] if columns else scores.dtype.type(0)
        for start in range(0, columns, CHUNK):
            end = min(start + CHUNK, columns)
            if not cut or any_above(row[start:end], least):
                for i in range(start, end):  # without branches, which would be mispredicted
                    value = row[i]
                    items[count] = i
                    values[count] = value
                    count += (not (cut & (value <= least))) & (not hidden[i])
            if count > (k if end == columns else room - CHUNK):
                if has_nan(values, count):
                    break
                least = kth_highest(values, count, k, spare)
                count = keep_highest(items, values, count, k, least)
                cut = True
        for i in range(count):
            if values[i] != values[i]:
                return q * columns + items[i]
        if tied and cut:
            for i in range(columns):
                if row[i] >= least and not hidden[i]:
                    out_items[written] = i
                    out_scores[written] = row[i]
                    written += 1
        else:
            for i in range(count):
                out_items[written] = items[i]
                out_scores[written] = values[i]
                written += 1
        out_offsets[q + 1] = written
        if hides:
            for i in range(seen_offsets[q], seen_offsets[q + 1]):
                hidden[seen_items[i]] = False
    return -1


@helper
def any_above(scores, least):
    """Return whether a score is above `least`, or NaN; without branches, for vector registers."""
    found = np.int32(0)
    for i in range(len(scores)):
        found |= np.int32(0) if scores[i] <= least else np.int32(1)
    return found != 0


@helper
def has_nan(values, count):
    """Return whether one of the first values is NaN."""
    found = False
    for i in range(count):
        found |= values[i] != values[i]
    return found


@helper
def move_first(values, low, end, pivot, equal):
    """Move the values above a pivot, or `equal` to it, to the place `low`; return their end.

    Without branches, each of which would be mispredicted half of the time.
    """
    for i in range(low, end):
        value = values[i]
        values[i] = values[low]
        values[low] = value
        low += value == pivot if equal else value > pivot
    return low


@helper
def kth_highest(values, count, k, spare):
    """Return the k-th highest of the first values (quickselect), which stay as they are."""
    for i in range(count):  # numba compiles the copy of a slice for two seconds
        spare[i] = values[i]
    low = 0
    end = count
    while True:
        pivot = spare[(low + end) // 2]
        above = move_first(spare, low, end, pivot, False)
        if k <= above:
            end = above
            continue
        low = move_first(spare, above, end, pivot, True)
        if k <= low:
            return pivot


@helper
def keep_highest(items, values, count, k, least):
    """Keep the k highest of the first values, the first of those equal to `least`; return k."""
    equal = k
    for i in range(count):
        equal -= values[i] > least
    kept = 0
    for i in range(count):
        item, value = items[i], values[i]
        items[kept] = item
        values[kept] = value
        same = value == least and equal > 0
        equal -= same
        kept += same or value > least
    return kept
