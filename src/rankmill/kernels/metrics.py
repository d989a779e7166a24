"""One short kernel a metric: (hits, k, out) -> None, one value a query.

``hits`` is rankmill.hits.Hits. A metric without a cutoff gets a k beyond every list. A query
without labels gets 0.
"""

import numpy as np

from rankmill.kernels.jit import helper, kernel


@kernel
def average_precision(hits, k, out):
    for q in range(len(out)):
        total = 0.0
        found = 0
        for h in range(hits.offsets[q], hits.offsets[q + 1]):
            if hits.ranks[h] > k:
                break
            found += 1
            total += found / hits.ranks[h]
        out[q] = total / max(1, min(k, hits.label_counts[q]))


@kernel
def first_hit(hits, k, out):
    for q in range(len(out)):
        h = hits.offsets[q]
        hit = h < hits.offsets[q + 1] and hits.ranks[h] <= k
        out[q] = 1.0 / hits.ranks[h] if hit else 0.0


@helper
def count_hits(hits, q, k):
    """The number of hits of query q within its first k predictions."""
    h = hits.offsets[q]
    while h < hits.offsets[q + 1] and hits.ranks[h] <= k:
        h += 1
    return h - hits.offsets[q]


@kernel
def precision(hits, k, out):
    for q in range(len(out)):
        out[q] = count_hits(hits, q, k) / k


@kernel
def recall(hits, k, out):
    for q in range(len(out)):
        out[q] = count_hits(hits, q, k) / max(1, hits.label_counts[q])


@kernel
def hit(hits, k, out):
    for q in range(len(out)):
        out[q] = min(1, count_hits(hits, q, k))


@kernel
def f1(hits, k, out):
    # The harmonic mean of h / k and h / R is 2 h / (k + R).
    for q in range(len(out)):
        out[q] = 2 * count_hits(hits, q, k) / (k + hits.label_counts[q])


@kernel
def r_precision(hits, k, out):
    for q in range(len(out)):
        labels = hits.label_counts[q]
        out[q] = count_hits(hits, q, labels) / max(1, labels)


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
def ndcg(hits, k, out):
    offsets, ranks, gains, discounts = hits.offsets, hits.ranks, hits.gains, hits.discounts
    label_offsets, label_gains = hits.label_offsets, hits.label_gains
    graded = len(label_gains) > 0
    ideal = np.zeros(len(discounts))  # of labels of gain 1: it depends on their number only
    for rank in range(1, len(discounts)):
        ideal[rank] = ideal[rank - 1] + 1.0 / discounts[rank]
    for q in range(len(out)):
        start = label_offsets[q]
        count = min(k, label_offsets[q + 1] - start)
        best = ideal[count]
        if graded:
            best = 0.0
            for rank in range(1, count + 1):
                best += label_gains[start + rank - 1] / discounts[rank]
        total = 0.0
        for h in range(offsets[q], offsets[q + 1]):
            if ranks[h] > k:
                break
            total += gains[h] / discounts[ranks[h]]
        out[q] = total / best if count > 0 else 0.0
