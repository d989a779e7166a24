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
def discounted(ranks, gains, discounts, start, end, k):
    """The discounted gain of the hits start to end, up to rank k; no gains are gains of 1."""
    total = 0.0
    for h in range(start, end):
        if ranks[h] > k:
            break
        total += (gains[h] if len(gains) else 1.0) / discounts[ranks[h]]
    return total


@kernel
def dcg(hits, k, out):
    offsets, ranks, gains, discounts = hits.offsets, hits.ranks, hits.gains, hits.discounts
    for q in range(len(out)):
        out[q] = discounted(ranks, gains, discounts, offsets[q], offsets[q + 1], k)


@kernel
def ndcg(hits, k, out):
    offsets, ranks, gains, discounts = hits.offsets, hits.ranks, hits.gains, hits.discounts
    label_offsets, label_gains = hits.label_offsets, hits.label_gains
    for q in range(len(out)):
        start = label_offsets[q]
        best = 0.0
        for rank in range(1, min(k, label_offsets[q + 1] - start) + 1):
            gain = label_gains[start + rank - 1] if len(label_gains) else 1.0
            best += gain / discounts[rank]
        found = discounted(ranks, gains, discounts, offsets[q], offsets[q + 1], k)
        out[q] = found / best if best > 0 else 0.0
