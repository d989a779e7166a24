"""Grouping queries with the same pattern of hits: all their metrics have the same values."""

import numpy as np

from rankmill.kernels.jit import helper, kernel

HALF = np.uint64(32)
ONE = np.uint64(1)


@helper
def pattern_hash(labels, predictions, ranks, start, end, seed):
    """Return a hash of a pattern: the numbers of labels and predictions, and the ranks of hits."""
    spread = (np.uint64(labels) * seed) ^ np.uint64(predictions)
    for h in range(start, end):
        spread = (spread ^ np.uint64(ranks[h])) * seed
    return np.int64((spread ^ (spread >> HALF)) >> ONE)


@kernel
def group_patterns(
    offsets, ranks, label_counts, prediction_counts, seed, out_groups, out_first, out_counts
):
    """Number the distinct patterns in order of first appearance. Returns how many there are.

    Writes the group of each query, and the first query and the number of queries of each group.
    """
    slots = np.full(8192, -1, np.int64)
    mask = len(slots) - 1
    found = 0
    for q in range(len(label_counts)):
        start = offsets[q]
        hits = offsets[q + 1] - start
        slot = mask & pattern_hash(
            label_counts[q], prediction_counts[q], ranks, start, start + hits, seed
        )
        while slots[slot] >= 0:
            other = out_first[slots[slot]]
            same = label_counts[other] == label_counts[q]
            same &= prediction_counts[other] == prediction_counts[q]
            same &= offsets[other + 1] - offsets[other] == hits
            if same:
                for h in range(hits):
                    same &= ranks[offsets[other] + h] == ranks[start + h]
            if same:
                break
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = found
            out_first[found] = q
            out_counts[found] = 0
            found += 1
        group = slots[slot]
        out_groups[q] = group
        out_counts[group] += 1
        if 2 * found > len(slots):
            slots = np.full(4 * len(slots), -1, np.int64)
            mask = len(slots) - 1
            for other in range(found):
                p = out_first[other]
                slot = mask & pattern_hash(
                    label_counts[p], prediction_counts[p], ranks, offsets[p], offsets[p + 1], seed
                )
                while slots[slot] >= 0:
                    slot = (slot + 1) & mask
                slots[slot] = other
    return found
