"""What the groups of items, such as genres, make of each list.

`rows` are those of the items in the catalogue, -1 for others; `group_offsets` and `codes` are the
groups of each row, ascending. Each group of an item has `units`[row] of it, an integer, so that
sums do not depend on their order. Items marked in `repeat` do not count; it is empty if there is
none.
"""

import numpy as np

from rankmill.kernels.jit import helper, kernel


@helper
def add_groups(row, group_offsets, codes, units, out):
    """Add the shares of an item to those of its groups; return what was added."""
    if row < 0:
        return 0
    start, end = group_offsets[row], group_offsets[row + 1]
    for i in range(start, end):
        out[codes[i]] += units[row]
    return units[row] * (end - start)


@kernel
def count_exposure(offsets, rows, repeat, k, group_offsets, codes, units, out_counts):
    """Add the shares at each rank within k to int64[groups, ranks]."""
    some = len(repeat) > 0
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], min(offsets[q + 1], offsets[q] + k)):
            if rows[i] >= 0 and not (some and repeat[i]):
                for place in range(group_offsets[rows[i]], group_offsets[rows[i] + 1]):
                    out_counts[codes[place], i - offsets[q]] += units[rows[i]]


@kernel
def compare_shares(
    starts,
    ends,
    had,
    offsets,
    rows,
    repeat,
    k,
    group_offsets,
    codes,
    units,
    many,
    alpha,
    out_ends,
    out_shares,
    out_ratios,
):
    """Write p and p / ((1 - alpha) q + alpha p) of each group of share p among what a query had.

    q is its share among the first k of the list. Query q had the rows `had[starts[q]:ends[q]]`.
    Nothing is written where one of them has no groups; `out_ends` is where each list ends.
    """
    some = len(repeat) > 0
    written = 0
    for q in range(len(offsets) - 1):
        before, now = np.zeros(many, np.int64), np.zeros(many, np.int64)
        total, shown = 0, 0
        for i in range(starts[q], ends[q]):
            total += add_groups(had[i], group_offsets, codes, units, before)
        for i in range(offsets[q], min(offsets[q + 1], offsets[q] + k)):
            if not (some and repeat[i]):
                shown += add_groups(rows[i], group_offsets, codes, units, now)
        if total > 0 and shown > 0:
            for group in range(many):
                if before[group] > 0:
                    p = before[group] / total
                    out_shares[written] = p
                    out_ratios[written] = p / ((1 - alpha) * (now[group] / shown) + alpha * p)
                    written += 1
        out_ends[q] = written


@kernel
def sum_terms(ends, terms, out):
    """Write the sum of the terms of each list, NaN where it has none."""
    start = 0
    for q in range(len(out)):
        total = 0.0
        for i in range(start, ends[q]):
            total += terms[i]
        out[q] = total if ends[q] > start else np.nan
        start = ends[q]


@kernel
def mean_distance(offsets, rows, repeat, k, group_offsets, codes, out):
    """Write the mean over the pairs of items with groups, within k, of their Jaccard distance.

    NaN where there is no pair.
    """
    some = len(repeat) > 0
    for q in range(len(out)):
        total = 0.0
        pairs = 0
        end = min(offsets[q + 1], offsets[q] + k)
        for i in range(offsets[q], end):
            one = rows[i]
            if one < 0 or (some and repeat[i]) or group_offsets[one] == group_offsets[one + 1]:
                continue
            for j in range(i + 1, end):
                other = rows[j]
                if other < 0 or (some and repeat[j]):
                    continue
                a, b = group_offsets[one], group_offsets[other]
                last, final = group_offsets[one + 1], group_offsets[other + 1]
                if b == final:
                    continue
                size = last - a + final - b
                common = 0
                while a < last and b < final:
                    if codes[a] == codes[b]:
                        common += 1
                        a += 1
                        b += 1
                    elif codes[a] < codes[b]:
                        a += 1
                    else:
                        b += 1
                total += 1 - common / (size - common)
                pairs += 1
        out[q] = total / pairs if pairs > 0 else np.nan
