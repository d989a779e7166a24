"""One short kernel for each quantity that metrics count: (hits, k, out) -> None, a value a query.

``hits`` is rankmill.matching.hits.Hits. For a metric without a cutoff, k is larger than any rank.
The parameters of a metric stand between k and out. The families in ``rankmill.metrics`` have the
divisors.

Those of ranks and of graded gains stand in `ranks` and `graded` beside this file.
"""

import numpy as np

from rankmill.kernels.jit import helper, kernel


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
def first_hit(hits, k, out):
    for q in range(len(out)):
        h = hits.offsets[q]
        hit = h < hits.offsets[q + 1] and hits.ranks[h] <= k
        out[q] = 1.0 / hits.ranks[h] if hit else 0.0


@helper
def hits_within(hits, q, k):
    """Return the number of hits of query q within its first k predictions."""
    h = hits.offsets[q]
    while h < hits.offsets[q + 1] and hits.ranks[h] <= k:
        h += 1
    return h - hits.offsets[q]


@kernel
def count_hits(hits, k, out):
    for q in range(len(out)):
        out[q] = hits_within(hits, q, k)


@kernel
def count_hits_of_labels(hits, k, out):
    for q in range(len(out)):
        out[q] = hits_within(hits, q, hits.label_counts[q])


@kernel
def any_hit(hits, k, out):
    for q in range(len(out)):
        out[q] = min(1, hits_within(hits, q, k))


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
def rank_biased(hits, k, p, out):
    offsets, ranks = hits.offsets, hits.ranks
    for q in range(len(out)):
        total = 0.0
        power = 1.0  # p**(rank - 1), multiplied up: powers differ between machines
        rank = 1
        for h in range(offsets[q], offsets[q + 1]):
            if ranks[h] > k:
                break
            while rank < ranks[h]:
                power *= p
                rank += 1
            total += (1 - p) * power
        out[q] = total


@kernel
def bpref(hits, k, out):
    """Hits are judged items, of gain 1 where they are relevant, else 0."""
    for q in range(len(out)):
        out[q] = 0.0
        count = relevant_of(hits, q)
        most = min(count, hits.label_counts[q] - count)
        above = 0
        for h in range(hits.offsets[q], hits.offsets[q + 1]):
            if hits.gains[h] > 0:
                out[q] += 1.0 - min(above, most) / max(1, most)
            else:
                above += 1


@helper
def relevant_of(hits, q):
    """The number of labels of query q whose gain is above 0; they stand first."""
    if len(hits.label_gains) == 0:
        return hits.label_counts[q]
    start, end = hits.label_offsets[q], hits.label_offsets[q + 1]
    label = start
    while label < end and hits.label_gains[label] > 0:
        label += 1
    return label - start
