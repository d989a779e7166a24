"""One short kernel a metric: (hits, k, out) -> None, one value a query.

``hits`` is rankmill.hits.Hits. A metric without a cutoff gets a k beyond every list. A query
without labels gets 0.
"""

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


@helper
def gained(hits, q, k):
    """The discounted gain of the hits of query q within its first k predictions."""
    total = 0.0
    for h in range(hits.offsets[q], hits.offsets[q + 1]):
        rank = hits.ranks[h]
        if rank > k:
            break
        gain = hits.gains[h] if len(hits.gains) else 1.0
        total += gain / hits.discounts[rank]
    return total


@helper
def ideal(hits, q, k):
    """The discounted gain of the labels of query q in descending order of gain, k at most."""
    total = 0.0
    start = hits.label_offsets[q]
    for rank in range(1, min(k, hits.label_counts[q]) + 1):
        gain = hits.label_gains[start + rank - 1] if len(hits.label_gains) else 1.0
        total += gain / hits.discounts[rank]
    return total


@kernel
def dcg(hits, k, out):
    for q in range(len(out)):
        out[q] = gained(hits, q, k)


@kernel
def ndcg(hits, k, out):
    for q in range(len(out)):
        best = ideal(hits, q, k)
        out[q] = gained(hits, q, k) / best if best > 0 else 0.0
