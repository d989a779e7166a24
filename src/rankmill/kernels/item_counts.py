"""Counting in how many lists each item stands, by how far down.

The cutoffs ascend. Column b of the counts is for the ranks above cutoff b - 1, up to cutoff b. The
rank of an item is in `ranks`; if these are empty, it is its place in its list, from 1. Items marked
in `repeat` do not count; it is empty if there is none.
"""

import numpy as np

from rankmill.kernels.identity import AHEAD, STRING, home, same_bytes, shift_of
from rankmill.kernels.intrinsics import prefetch
from rankmill.kernels.jit import helper, kernel


@kernel
def count_direct(offsets, keys, ranks, repeat, cutoffs, lowest, out_counts):
    """Count integers in int64[n, b]; the row of one is its key - `lowest`."""
    given = len(ranks) > 0
    some = len(repeat) > 0
    end = cutoffs[-1]
    columns = len(cutoffs)
    last = len(keys) - 1
    for q in range(len(offsets) - 1):
        column = 0
        for i in range(offsets[q], offsets[q + 1]):
            rank = ranks[i] if given else i - offsets[q] + 1
            if rank > end:
                break
            while rank > cutoffs[column]:
                column += 1
            prefetch(out_counts, np.int64(keys[min(last, i + AHEAD)] - lowest) * columns)
            if not (some and repeat[i]):
                out_counts[np.int64(keys[i] - lowest), column] += 1


@helper
def same_text(data, starts, ends, ids_data, ids_starts, ids_ends, places, before, row, i):
    """Return whether the item of a row, which is new from row `before` on, is id i."""
    if row < before:
        return same_bytes(data, starts[row], ends[row], ids_data, ids_starts[i], ids_ends[i])
    j = places[row - before]
    return same_bytes(ids_data, ids_starts[j], ids_ends[j], ids_data, ids_starts[i], ids_ends[i])


@kernel
def count_hashed(
    first, offsets, ids, ranks, repeat, cutoffs, seed, starts, ends, data, count, out_table
):
    """Count any items, from list `first` on, by a table of all that were found so far.

    The table is the slots, the keys, the counts int64[n, b], and the places in `ids` of the new
    items. It holds `count` items already, whose bytes are in `data`. Returns the list at which it
    is half full, or the number of lists, and how many items it holds then.
    """
    slots, known, counts, places = out_table
    given = len(ranks) > 0
    some = len(repeat) > 0
    mask = len(slots) - 1
    shift = shift_of(len(slots))
    text = ids.kind == STRING
    keys = ids.keys
    mine = data, starts, ends
    theirs = ids.data, ids.starts, ids.ends
    columns = len(cutoffs)
    last = len(keys) - 1
    before = count
    for q in range(first, len(offsets) - 1):
        start, end = offsets[q], offsets[q + 1]
        if count + end - start > len(known):
            return q, count
        i = start
        for column in range(columns):
            while i < end and (ranks[i] if given else i - start + 1) <= cutoffs[column]:
                prefetch(slots, home(keys[min(last, i + 2 * AHEAD)], seed, shift))
                row = slots[home(keys[min(last, i + AHEAD)], seed, shift)]
                prefetch(known, max(0, row))
                prefetch(counts, max(0, row) * columns)
                slot = home(keys[i], seed, shift)
                row = slots[slot]
                while row >= 0 and (
                    known[np.uint64(row)] != keys[i]
                    or (text and not same_text(*mine, *theirs, places, before, row, i))
                ):
                    slot = (slot + 1) & mask
                    row = slots[slot]
                again = some and repeat[i]
                if row < 0 and not again:
                    row = count
                    slots[slot] = row
                    known[row] = keys[i]
                    places[row - before] = i
                    count += 1
                if not again:  # unsigned indices need no test for those below 0
                    counts[np.uint64(row), np.uint64(column)] += 1
                i += 1
    return len(offsets) - 1, count


@kernel
def sum_rows(groups, counts, out_counts):
    """Add each row of counts to the row of its group."""
    for row in range(len(groups)):
        for column in range(counts.shape[1]):
            out_counts[groups[row], column] += counts[row, column]
