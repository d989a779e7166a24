"""Counting in how many lists each item stands, by how far down.

The cutoffs ascend. Column b of the counts is for the ranks above cutoff b - 1, up to cutoff b. The
rank of an item is in `ranks`; if these are empty, it is its place in its list, from 1. Items marked
in `repeat` do not count; it is empty if there is none.
"""

import numpy as np

from rankmill.kernels.identity import AHEAD, STRING, home, same_bytes, shift_of
from rankmill.kernels.intrinsics import prefetch
from rankmill.kernels.jit import kernel


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
    keys, item_starts, item_ends, item_data = ids.keys, ids.starts, ids.ends, ids.data
    end = cutoffs[-1]
    columns = len(cutoffs)
    last = len(keys) - 1
    before = count
    for q in range(first, len(offsets) - 1):
        if count + offsets[q + 1] - offsets[q] > len(known):
            return q, count
        column = 0
        for i in range(offsets[q], offsets[q + 1]):
            rank = ranks[i] if given else i - offsets[q] + 1
            if rank > end:
                break
            while rank > cutoffs[column]:
                column += 1
            prefetch(slots, home(keys[min(last, i + 2 * AHEAD)], seed, shift))
            row = slots[home(keys[min(last, i + AHEAD)], seed, shift)]
            prefetch(known, max(0, row))
            prefetch(counts, max(0, row) * columns)
            if some and repeat[i]:
                continue
            key = keys[i]
            slot = home(key, seed, shift)
            while slots[slot] >= 0:
                row = slots[slot]
                if known[row] == key:
                    if not text:
                        break
                    if row < before:
                        if same_bytes(
                            data, starts[row], ends[row], item_data, item_starts[i], item_ends[i]
                        ):
                            break
                    elif same_bytes(
                        item_data,
                        item_starts[places[row - before]],
                        item_ends[places[row - before]],
                        item_data,
                        item_starts[i],
                        item_ends[i],
                    ):
                        break
                slot = (slot + 1) & mask
            row = slots[slot]
            if row < 0:
                row = count
                slots[slot] = row
                known[row] = key
                places[row - before] = i
                count += 1
            counts[row, column] += 1
    return len(offsets) - 1, count


@kernel
def sum_rows(groups, counts, out_counts):
    """Add each row of counts to the row of its group."""
    for row in range(len(groups)):
        for column in range(counts.shape[1]):
            out_counts[groups[row], column] += counts[row, column]
