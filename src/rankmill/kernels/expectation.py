"""Expected values of the metrics over all orders of equal confidences, in closed form.

The functions are those of rankmill.kernels.metrics with one more argument: ``runs`` is
rankmill.matching.order.Runs. In a run of t predictions with h hits, each place holds a hit with
probability h / t (McSherry and Najork, Computing Information Retrieval Performance Measures
Efficiently in the Presence of Tied Scores, ECIR 2008). What is linear in them follows from these,
in ``rankmill.metrics.quantities``.
"""

from rankmill.kernels.jit import helper, kernel


@kernel
def sum_precisions(runs, hits, k, out):
    for q in range(len(out)):
        total = 0.0
        found = 0
        for r in range(runs.offsets[q], runs.offsets[q + 1]):
            before, size, count = runs.before[r], runs.sizes[r], runs.hits[r]
            growth = (count - 1) / max(1, size - 1)
            for j in range(1, min(size, k - before) + 1):
                total += count / size * (found + 1 + (j - 1) * growth) / (before + j)
            found += count
        out[q] = total


@kernel
def shared_precisions(runs, hits, k, out):
    """All predictions of a run have its last rank, so that one order is as good as another."""
    for q in range(len(out)):
        total = 0.0
        found = 0
        for r in range(runs.offsets[q], runs.offsets[q + 1]):
            found += runs.hits[r]
            total += runs.hits[r] * (found / (runs.before[r] + runs.sizes[r]))
        out[q] = total


@kernel
def worth_of_first(runs, hits, k, factors, divisors, others, out):
    for q in range(len(out)):
        total = 0.0
        missed = 1.0  # the probability that all places so far are wrong
        if runs.offsets[q] < runs.offsets[q + 1]:
            r = runs.offsets[q]  # the first run with a hit holds the first hit
            before, size, count = runs.before[r], runs.sizes[r], runs.hits[r]
            for j in range(1, min(size - count + 1, k - before) + 1):
                chance = count / (size - j + 1)
                total += missed * chance * factors[before + j] / divisors[before + j]
                missed *= 1.0 - chance
        out[q] = total + missed * others[q]


@helper
def hits_within(runs, q, k):
    """The expected number of hits of query q within its first k predictions."""
    total = 0.0
    for r in range(runs.offsets[q], runs.offsets[q + 1]):
        before, size, count = runs.before[r], runs.sizes[r], runs.hits[r]
        if before + size <= k:
            total += count
        elif before < k:
            total += count / size * (k - before)
    return total


@kernel
def count_hits_within(runs, hits, k, cuts, out):
    for q in range(len(out)):
        out[q] = hits_within(runs, q, cuts[q])


@kernel
def dcg(runs, hits, k, out):
    discounts = hits.discounts
    for q in range(len(out)):
        total = 0.0
        for r in range(runs.offsets[q], runs.offsets[q + 1]):
            before, size = runs.before[r], runs.sizes[r]
            for j in range(1, min(size, k - before) + 1):
                total += runs.gains[r] / size / discounts[before + j]
        out[q] = total


@kernel
def sum_weights(runs, hits, k, start, weights, out):
    """All hits have gain 1."""
    for q in range(len(out)):
        total = start
        for r in range(runs.offsets[q], runs.offsets[q + 1]):
            before, size, count = runs.before[r], runs.sizes[r], runs.hits[r]
            for j in range(1, min(size, k - before) + 1):
                total += count / size * weights[before + j]
        out[q] = total


@kernel
def sum_preferences(runs, hits, k, relevant_labels, out):
    """A relevant item of a run stands behind 0, 1, ... or all nonrelevant ones: each as likely."""
    for q in range(len(out)):
        out[q] = 0.0
        most = min(relevant_labels[q], hits.label_counts[q] - relevant_labels[q])
        above = 0
        for r in range(runs.offsets[q], runs.offsets[q + 1]):
            relevant = runs.gains[r]  # of 1 each
            others = runs.hits[r] - int(relevant)
            if relevant > 0:
                lost = 0
                for behind in range(others + 1):
                    lost += min(above + behind, most)
                out[q] += relevant * (1.0 - lost / ((others + 1) * max(1, most)))
            above += others


@kernel
def pairs_in_order(runs, hits, k, out):
    """A hit and a miss of one run stand either way: half a pair. There is no cutoff."""
    for q in range(len(out)):
        found = hits.offsets[q + 1] - hits.offsets[q]
        misses = hits.prediction_counts[q] - found
        out[q] = 1.0 if found and not misses else 0.0
        above = 0
        for r in range(runs.offsets[q], runs.offsets[q + 1] if misses else runs.offsets[q]):
            before, size, count = runs.before[r], runs.sizes[r], runs.hits[r]
            behind = misses - (before - above) - (size - count)
            out[q] += count * (behind + (size - count) / 2)
            above += count
