"""Grouping queries with the same pattern of hits: all their metrics have the same values."""

import numpy as np

from rankmill.kernels.jit import helper, kernel

HALF = np.uint64(32)
ONE = np.uint64(1)
# Gains of any value make patterns that differ: after so many queries with hits it is known.
ENOUGH = 4096


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


@helper
def graded_hash(base, ranks, gains, start, end, label_gains, first, last, seed):
    """Return the hash of a pattern with gains, which are given as their bits."""
    spread = base * seed
    for h in range(start, end):
        spread = (spread ^ np.uint64(ranks[h]) ^ (np.uint64(gains[h]) >> HALF)) * seed
        spread ^= spread >> HALF
    for label in range(first, last):
        spread = (spread ^ np.uint64(label_gains[label])) * seed
        spread ^= spread >> HALF
    return spread


@kernel
def group_graded(
    offsets,
    ranks,
    gains,
    label_counts,
    prediction_counts,
    label_offsets,
    label_gains,
    seed,
    out_groups,
    out_first,
    out_counts,
):
    """Do as `group_patterns`, with the gains of hits and labels, which are given as their bits.

    All queries without hits are one pattern, whatever their labels. If nearly all of many queries
    are patterns of their own, all others that have hits become so without a look.
    """
    slots = np.full(1 << 15, -1, np.int64)
    mask = np.uint64(len(slots) - 1)
    hashes = np.empty(len(label_counts), np.uint64)
    found = seen = 0
    without = -1
    differ = False
    for q in range(len(label_counts)):
        start, end = offsets[q], offsets[q + 1]
        if differ or start == end:
            if start < end or without < 0:
                if start == end:
                    without = found
                hashes[found] = 0
                out_first[found] = q
                out_counts[found] = 0
                found += 1
            group = without if start == end else found - 1
            out_groups[q] = group
            out_counts[group] += 1
            continue
        first, last = label_offsets[q], label_offsets[q + 1]
        base = (np.uint64(label_counts[q]) << HALF) ^ np.uint64(prediction_counts[q])
        spread = graded_hash(base, ranks, gains, start, end, label_gains, first, last, seed)
        slot = np.int64(spread & mask)
        group = slots[slot]
        while group >= 0:
            if hashes[group] == spread:
                other = out_first[group]
                same = label_counts[other] == label_counts[q]
                same &= prediction_counts[other] == prediction_counts[q]
                same &= offsets[other + 1] - offsets[other] == end - start
                same &= label_offsets[other + 1] - label_offsets[other] == last - first
                if same:
                    shift = offsets[other] - start
                    for h in range(start, end):
                        same &= ranks[h] == ranks[h + shift] and gains[h] == gains[h + shift]
                    shift = label_offsets[other] - first
                    for label in range(first, last):
                        same &= label_gains[label] == label_gains[label + shift]
                if same:
                    break
            slot = np.int64(np.uint64(slot + 1) & mask)
            group = slots[slot]
        if group < 0:
            group = found
            slots[slot] = found
            hashes[found] = spread
            out_first[found] = q
            out_counts[found] = 0
            found += 1
            if 2 * found > len(slots):
                slots = np.full(4 * len(slots), -1, np.int64)
                mask = np.uint64(len(slots) - 1)
                for other in range(found):
                    slot = np.int64(hashes[other] & mask)
                    while slots[slot] >= 0:
                        slot = np.int64(np.uint64(slot + 1) & mask)
                    slots[slot] = other
        out_groups[q] = group
        out_counts[group] += 1
        seen += 1
        differ = seen == ENOUGH and 8 * found > 7 * ENOUGH
    return found
