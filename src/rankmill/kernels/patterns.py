"""Grouping queries whose hits look the same: they have the same value of every metric."""

import numpy as np

from rankmill.kernels.jit import helper, kernel

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(32)


@helper
def pattern_hash(offsets, ranks, label_counts, prediction_counts, q):
    """A hash of what same_pattern compares."""
    spread = (np.uint64(label_counts[q]) * MULTIPLIER) ^ np.uint64(prediction_counts[q])
    spread *= MULTIPLIER
    for h in range(offsets[q], offsets[q + 1]):
        spread = (spread ^ (spread >> HALF) ^ np.uint64(ranks[h])) * MULTIPLIER
    return np.int64((spread ^ (spread >> HALF)) >> np.uint64(1))


@helper
def same_pattern(offsets, ranks, label_counts, prediction_counts, p, q):
    """Whether queries p and q have as many labels and predictions, and hits at the same ranks."""
    if label_counts[p] != label_counts[q] or prediction_counts[p] != prediction_counts[q]:
        return False
    count = offsets[p + 1] - offsets[p]
    if count != offsets[q + 1] - offsets[q]:
        return False
    for h in range(count):
        if ranks[offsets[p] + h] != ranks[offsets[q] + h]:
            return False
    return True


@kernel
def group_patterns(
    offsets, ranks, label_counts, prediction_counts, out_groups, out_first, out_counts
):
    """Number the distinct patterns in order of first appearance; returns how many there are.

    Writes each query's group, and each group's first query and number of queries.
    """
    slots = np.full(1024, -1, np.int64)
    mask = len(slots) - 1
    found = 0
    for q in range(len(label_counts)):
        slot = pattern_hash(offsets, ranks, label_counts, prediction_counts, q) & mask
        while slots[slot] >= 0 and not same_pattern(
            offsets, ranks, label_counts, prediction_counts, out_first[slots[slot]], q
        ):
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
                first = out_first[other]
                slot = pattern_hash(offsets, ranks, label_counts, prediction_counts, first) & mask
                while slots[slot] >= 0:
                    slot = (slot + 1) & mask
                slots[slot] = other
    return found
