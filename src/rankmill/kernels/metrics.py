"""One short kernel for each quantity that metrics count: (hits, k, out) -> None, a value a query.

``hits`` is rankmill.matching.hits.Hits. For a metric without a cutoff, k is larger than any rank.
The parameters of a metric stand between k and out. The families in ``rankmill.metrics`` have the
divisors, and ``rankmill.metrics.quantities`` what follows from these kernels without a loop.

Those of graded gains stand in `gains` beside this file.
"""

import numpy as np

from rankmill.kernels.jit import helper, kernel
from rankmill.kernels.order import sort_values


@kernel
def sum_precisions(hits, k, out):
    for q in range(len(out)):
        total = 0.0
        found = 0
        for h in range(hits.offsets[q], hits.offsets[q + 1]):
            if hits.ranks[h] > k:
                break
            found += 1
            total += found / hits.ranks[h]
        out[q] = total


@kernel
def worth_of_first(hits, k, factors, divisors, others, out):
    """Write a factor of the rank of the first hit over another one, of which one is 1.

    Queries without a hit get what `others` has for them.
    """
    for q in range(len(out)):
        h = hits.offsets[q]
        hit = h < hits.offsets[q + 1] and hits.ranks[h] <= k
        out[q] = factors[hits.ranks[h]] / divisors[hits.ranks[h]] if hit else others[q]


@helper
def hits_within(hits, q, k):
    """Return the number of hits of query q within its first k predictions."""
    h = hits.offsets[q]
    while h < hits.offsets[q + 1] and hits.ranks[h] <= k:
        h += 1
    return h - hits.offsets[q]


@kernel
def count_hits_within(hits, k, cuts, out):
    """Each query has a cutoff of its own."""
    for q in range(len(out)):
        out[q] = hits_within(hits, q, cuts[q])


@kernel
def dcg(hits, k, out):
    offsets, ranks, gains, discounts = hits.offsets, hits.ranks, hits.gains, hits.discounts
    for q in range(len(out)):
        total = 0.0
        for h in range(offsets[q], offsets[q + 1]):
            if ranks[h] > k:
                break
            total += gains[h] / discounts[ranks[h]]
        out[q] = total


@kernel
def ideal_dcg(hits, k, out):
    """Write the DCG of each query's labels in descending order of gain."""
    label_offsets, gains, discounts = hits.label_offsets, hits.label_gains, hits.discounts
    ideal = np.zeros(len(discounts))  # for labels of gain 1, where only their number matters
    for rank in range(1, len(discounts)):
        ideal[rank] = ideal[rank - 1] + 1.0 / discounts[rank]
    for q in range(len(out)):
        if len(gains) == 0:
            out[q] = ideal[min(k, hits.label_counts[q])]
            continue
        start = label_offsets[q]
        total = 0.0
        for rank in range(1, min(k, label_offsets[q + 1] - start) + 1):
            total += gains[start + rank - 1] / discounts[rank]
        out[q] = total


@kernel
def sum_weights(hits, k, start, weights, out):
    """Write `start` plus the gains of the hits times the weights of their ranks."""
    offsets, ranks, gains = hits.offsets, hits.ranks, hits.gains
    for q in range(len(out)):
        total = start
        for h in range(offsets[q], offsets[q + 1]):
            if ranks[h] > k:
                break
            total += weights[ranks[h]] * gains[h]
        out[q] = total


@kernel
def sum_preferences(hits, k, relevant, out):
    """Hits are judged items, of gain 1 where they are relevant, else 0."""
    for q in range(len(out)):
        out[q] = 0.0
        most = min(relevant[q], hits.label_counts[q] - relevant[q])
        above = 0
        for h in range(hits.offsets[q], hits.offsets[q + 1]):
            if hits.gains[h] > 0:
                out[q] += 1.0 - min(above, most) / max(1, most)
            else:
                above += 1


# ------------------------------------------------------------------ ranks of hits


@kernel
def sum_ranks(hits, k, out):
    """Labels that are not found within k stand behind the last prediction."""
    for q in range(len(out)):
        found = hits_within(hits, q, k)
        behind = min(k, hits.prediction_counts[q]) + 1
        total = float(max(0, hits.label_counts[q] - found)) * behind
        for h in range(hits.offsets[q], hits.offsets[q] + found):
            total += hits.ranks[h]
        out[q] = total


@kernel
def pairs_in_order(hits, k, out):
    """Write how many pairs of a hit and a later miss there are; 1 if hits stand alone."""
    for q in range(len(out)):
        found = hits_within(hits, q, k)
        misses = min(k, hits.prediction_counts[q]) - found
        out[q] = 1.0 if found and not misses else 0.0
        for i in range(found if misses else 0):
            above = hits.ranks[hits.offsets[q] + i] - 1 - i
            out[q] += misses - above


# So few judged items are compared pair by pair; a tree takes longer to make.
FEW = 32


@helper
def _pairs_within(ranks, gains, start, end, k):
    """How many pairs of hits of unequal gain have their larger gain first, and how many last."""
    if end - start > FEW:
        return _pairs_of_many(gains[start:end][ranks[start:end] <= k])
    right = wrong = 0
    for h in range(start, end):
        if ranks[h] > k:
            break
        if gains[h] < 0:
            continue
        for above in range(start, h):
            right += gains[above] > gains[h]
            wrong += 0 <= gains[above] < gains[h]
    return right, wrong


@kernel
def pairs_by_gain(hits, k, times, out):
    """Write the pairs of hits in order less `times` those out of it, over both."""
    offsets, ranks, gains = hits.offsets, hits.ranks, hits.gains
    for q in range(len(out)):
        right, wrong = _pairs_within(ranks, gains, offsets[q], offsets[q + 1], k)
        out[q] = (right - times * wrong) / max(1, right + wrong)


@helper
def _pairs_of_many(gains):
    """How many pairs have their larger gain first, and how many last.

    A binary indexed tree counts the gains so far, by their place among the distinct gains.
    """
    levels = gains.copy()
    sort_values(levels)
    distinct = 0
    for i in range(len(levels)):
        if levels[i] >= 0 and (distinct == 0 or levels[i] != levels[distinct - 1]):
            levels[distinct] = levels[i]
            distinct += 1
    tree = np.zeros(distinct + 1, np.int64)
    right = wrong = counted = 0
    for i in range(len(gains)):
        if gains[i] < 0:
            continue
        level = first_at_least(levels, distinct, gains[i]) + 1
        below = 0
        place = level - 1
        while place > 0:
            below += tree[place]
            place -= place & -place
        up_to = 0
        place = level
        while place > 0:
            up_to += tree[place]
            place -= place & -place
        wrong += below
        right += counted - up_to
        counted += 1
        while level <= distinct:
            tree[level] += 1
            level += level & -level
    return right, wrong


@helper
def first_at_least(values, count, value):
    """Return the first of ascending values that is not below a value."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


# ------------------------------------------------------------------ precision and recall


@helper
def share_of_labels(count, share, added):
    """How many of the labels a share is; what is added before the cut says how it is rounded."""
    return int(share * count + added)


@kernel
def precision_at_recall(hits, k, recall, added, out):
    for q in range(len(out)):
        start = hits.offsets[q]
        out[q] = 0.0
        for h in range(start, hits.offsets[q + 1]):
            if h - start + 1 >= share_of_labels(hits.label_counts[q], recall, added):
                out[q] = max(out[q], (h - start + 1) / hits.ranks[h])


@kernel
def eleven_precisions(hits, k, added, out):
    """Write the sum of the interpolated precisions at recall 0, 0.1, ... 1."""
    for q in range(len(out)):
        start = hits.offsets[q]
        count = hits.offsets[q + 1] - start
        total = best = 0.0
        for level in range(10, -1, -1):
            needed = share_of_labels(hits.label_counts[q], level / 10, added)
            while count >= max(1, needed):
                best = max(best, count / hits.ranks[start + count - 1])
                count -= 1
            total += best
        out[q] = total
