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
    room = min(columns, 2 * k + CHUNK)
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
            if cut and not any_above(row[start:end], least):
                continue
            for i in range(start, end):
                value = row[i]
                if (cut and value <= least) or hidden[i]:
                    continue
                if value != value:
                    return q * columns + i
                items[count] = i
                values[count] = value
                count += 1
                if count == room and count > k:
                    least = kth_highest(values, count, k, spare)
                    count = keep_highest(items, values, count, k, least)
                    cut = True
        if count > k:
            least = kth_highest(values, count, k, spare)
            count = keep_highest(items, values, count, k, least)
            cut = True
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
def kth_highest(values, count, k, spare):
    """Return the k-th highest of the first values (quickselect), which stay as they are."""
    for i in range(count):
        spare[i] = values[i]
    low = 0
    high = count - 1
    while low < high:
        pivot = spare[(low + high) // 2]
        i = low
        j = high
        while i <= j:
            while spare[i] > pivot:
                i += 1
            while spare[j] < pivot:
                j -= 1
            if i <= j:
                spare[i], spare[j] = spare[j], spare[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    return spare[k - 1]


@helper
def keep_highest(items, values, count, k, least):
    """Keep the k highest of the first values, the first of those equal to `least`; return k."""
    equal = k
    for i in range(count):
        equal -= values[i] > least
    kept = 0
    for i in range(count):
        if values[i] == least:
            if equal == 0:
                continue
            equal -= 1
        elif values[i] < least:
            continue
        items[kept] = items[i]
        values[kept] = values[i]
        kept += 1
    return kept
