"""What the items of each list are worth, by the row that each has among the items of training.

Row -1 is an item that is not in training. Items marked in `repeat` do not count; it is empty if
there is none.
"""

import numpy as np

from rankmill.kernels.jit import kernel
from rankmill.kernels.sorting import sort_values


@kernel
def sum_values(offsets, rows, repeat, k, values, other, mean, out):
    """Write the sum of the values of the first k items of each list, or their mean if `mean`."""
    some = len(repeat) > 0
    for q in range(len(out)):
        total = 0.0
        count = 0
        for i in range(offsets[q], min(offsets[q + 1], offsets[q] + k)):
            if not (some and repeat[i]):
                total += values[rows[i]] if rows[i] >= 0 else other
                count += 1
        out[q] = total / max(1, count) if mean else total


@kernel
def sum_hits(offsets, hit_offsets, hit_ranks, rows, k, values, other, discounts, out):
    """Write the sum of the values of the hits of each list within k, over the discount of each."""
    for q in range(len(out)):
        out[q] = 0.0
        for h in range(hit_offsets[q], hit_offsets[q + 1]):
            rank = hit_ranks[h]
            if rank > k:
                break
            row = rows[offsets[q] + rank - 1]
            out[q] += (values[row] if row >= 0 else other) / discounts[rank]


@kernel
def sum_largest(starts, ends, rows, k, values, other, discounts, out):
    """Write what `sum_hits` writes of a list of all labels by falling value."""
    for q in range(len(out)):
        worths = np.empty(ends[q] - starts[q])
        for place in range(len(worths)):
            row = rows[starts[q] + place]
            worths[place] = values[row] if row >= 0 else other
        sort_values(worths)
        out[q] = 0.0
        for rank in range(1, min(k, len(worths)) + 1):
            out[q] += worths[len(worths) - rank] / discounts[rank]


@kernel
def count_groups(offsets, rows, repeat, k, groups, other, out_counts):
    """Count the first k items of all lists by the group of each."""
    some = len(repeat) > 0
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], min(offsets[q + 1], offsets[q] + k)):
            if not (some and repeat[i]):
                out_counts[groups[rows[i]] if rows[i] >= 0 else other] += 1


@kernel
def serendipity(offsets, hit_offsets, hit_ranks, rows, repeat, k, popular, items, out):
    """Write the mean over the first k of each list of how much less a hit is to be expected.

    Expected is 1 at the first rank of popularity, and less by 1 / `items` at each further one; so
    is the place of a hit. `popular` are the ranks of popularity.
    """
    some = len(repeat) > 0
    for q in range(len(out)):
        total = 0.0
        start, end = offsets[q], min(offsets[q + 1], offsets[q] + k)
        for h in range(hit_offsets[q], hit_offsets[q + 1]):
            rank = hit_ranks[h]
            if rank > k:
                break
            i = start + rank - 1
            if some and repeat[i]:
                continue
            here = (items + 1 - rank) / items
            usual = (items + 1 - popular[rows[i]]) / items if rows[i] >= 0 else 0.0
            total += max(here - usual, 0.0)
        count = end - start
        if some:
            for i in range(start, end):
                count -= np.int64(repeat[i])
        out[q] = total / max(np.int64(1), count)
