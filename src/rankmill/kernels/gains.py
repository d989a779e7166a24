"""Kernels of graded gains, and of how lists are read; they are as in rankmill.kernels.metrics."""

import math

from rankmill.kernels.jit import helper, kernel


@helper
def power_of_two(exponent):
    scale = 1.0
    for _ in range(exponent):
        scale *= 2.0
    return scale


@kernel
def cascade(hits, k, most, out):
    """Gains are 2**g - 1: over 2**most, the chance to stop at a hit."""
    offsets, ranks, gains = hits.offsets, hits.ranks, hits.gains
    scale = power_of_two(most)
    for q in range(len(out)):
        total = 0.0
        left = 1.0
        for h in range(offsets[q], offsets[q + 1]):
            if ranks[h] > k:
                break
            chance = min(gains[h], scale - 1.0) / scale
            total += left * chance / ranks[h]
            left *= 1.0 - chance
        out[q] = total


@kernel
def discounted_by_lost_gain(hits, k, out):
    """The cost of a rank is the gain of its ideal label, at least 1."""
    offsets, ranks, gains = hits.offsets, hits.ranks, hits.gains
    label_offsets, label_gains = hits.label_offsets, hits.label_gains
    for q in range(len(out)):
        total = gain = cost = 0.0
        rank = 0
        start = label_offsets[q]
        count = label_offsets[q + 1] - start
        for h in range(offsets[q], offsets[q + 1]):
            while rank < ranks[h]:
                cost += max(1.0, label_gains[start + rank]) if rank < count else 1.0
                rank += 1
            gain += gains[h]
            total += gains[h] / math.log2(2.0 + max(0.0, cost - gain))
        out[q] = total


@kernel
def ndcg_at_hits(hits, k, out):
    """Write the sum of ndcg at the rank of each label, or at the last rank if it is not found."""
    offsets, ranks, gains, discounts = hits.offsets, hits.ranks, hits.gains, hits.discounts
    label_offsets, label_gains = hits.label_offsets, hits.label_gains
    for q in range(len(out)):
        total = gain = ideal = 0.0
        place = found = 0
        start = label_offsets[q]
        count = label_offsets[q + 1] - start
        for h in range(offsets[q], offsets[q + 1]):
            while place < min(ranks[h], count):
                ideal += label_gains[start + place] / discounts[place + 1]
                place += 1
            gain += gains[h] / discounts[ranks[h]]
            total += gain / ideal
            found += 1
        if 0 < found < count:
            while place < count:
                ideal += label_gains[start + place] / discounts[place + 1]
                place += 1
            total += (count - found) * gain / ideal
        out[q] = total


@kernel
def ndcg_at_levels(hits, k, out):
    """Write the mean of ndcg at the ranks where the gain of the ideal list falls.

    The last rank is one more if it is more than one behind the labels, as in trec_eval.
    """
    offsets, ranks, gains, discounts = hits.offsets, hits.ranks, hits.gains, hits.discounts
    label_offsets, label_gains = hits.label_offsets, hits.label_gains
    for q in range(len(out)):
        h, end = offsets[q], offsets[q + 1]
        out[q] = 0.0
        if h == end:
            continue
        start = label_offsets[q]
        count = label_offsets[q + 1] - start
        total = gain = ideal = 0.0
        levels = 0
        for place in range(count):
            worth = label_gains[start + place]
            next_worth = label_gains[start + place + 1] if place + 1 < count else 0.0
            ideal += worth / discounts[place + 1]
            if worth != next_worth:
                while h < end and ranks[h] <= place + 1:
                    gain += gains[h] / discounts[ranks[h]]
                    h += 1
                total += gain / ideal
                levels += 1
        if count and hits.prediction_counts[q] > count + 1:
            while h < end:
                gain += gains[h] / discounts[ranks[h]]
                h += 1
            total += gain / ideal
            levels += 1
        out[q] = total / max(1, levels)


# ------------------------------------------------------------------ models of reading

# Ranks are read up to this one, as in cwl_eval, which all weights add up to 1 for.
DEEPEST = 1000


@kernel
def until_sated(hits, k, t, most, out):
    """Write the mean gain of the ranks read: up to k, or until the gains are t."""
    for q in range(len(out)):
        gain = 0.0
        last = min(k, DEEPEST)
        for h in range(hits.offsets[q], hits.offsets[q + 1]):
            if hits.ranks[h] > last:
                break
            gain += min(1.0, hits.gains[h] / most)
            if gain >= t:
                last = hits.ranks[h]
        out[q] = gain / last


@helper
def going_on(rank, twice):
    """The chance to read on behind a rank."""
    share = (rank + twice - 1.0) / (rank + twice)
    return share * share


@helper
def trigamma(x):
    """The sum of 1 / (x + i)**2 over i from 0 without end, for x of 20 or more."""
    y = 1.0 / (x * x)
    series = 1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * (5 / 66))))
    return 1.0 / x + y / 2.0 + y / x * series


@kernel
def adaptive_inverse_squares(hits, k, t, most, out):
    """As `inverse_squares`; what is still wanted falls with each gain.

    Behind the last hit the weights are c / (rank + d)**2, and their sum has a closed form.
    """
    for q in range(len(out)):
        total = every = 0.0
        weight = 1.0
        left = t
        h = hits.offsets[q]
        rank = 1
        while rank <= DEEPEST and (h < hits.offsets[q + 1] or rank + t + left < 21.0):
            if h < hits.offsets[q + 1] and hits.ranks[h] == rank:
                gain = min(1.0, hits.gains[h] / most)
                total += weight * gain
                left -= gain
                h += 1
            every += weight
            weight *= going_on(rank, t + left)
            rank += 1
        if rank <= DEEPEST:
            first = rank + t + left - 1.0
            tail = trigamma(first) - trigamma(DEEPEST + t + left)
            every += weight * first * first * tail
        out[q] = total / every


@kernel
def unjudged_residual(hits, k, p, out):
    """Gains are below 0 of items that are pooled and not judged. 0 if all predictions are judged.

    The ranks behind the list count as not judged, unless all in it are.
    """
    for q in range(len(out)):
        total = 0.0
        power = 1.0
        unjudged = 0
        h = hits.offsets[q]
        for rank in range(1, hits.prediction_counts[q] + 1):
            hit = h < hits.offsets[q + 1] and hits.ranks[h] == rank
            if not hit or hits.gains[h] < 0:
                unjudged += 1
                total += power
            h += hit
            power *= p
        out[q] = power + (1 - p) * total if unjudged else 0.0


@kernel
def inferred_precisions(hits, k, out):
    """Gains are 1 of relevant items, 0 of others, -1 of those pooled and not judged."""
    for q in range(len(out)):
        total = 0.0
        relevant = others = pooled = 0
        for h in range(hits.offsets[q], hits.offsets[q + 1]):
            if hits.gains[h] < 0:
                pooled += 1
            elif hits.gains[h] == 0:
                others += 1
            else:
                rank = float(hits.ranks[h])
                share = (relevant + 0.00001) / (relevant + others + 0.00002)
                pool = (relevant + others + pooled) / max(1.0, rank - 1.0)
                total += 1.0 / rank + (rank - 1.0) / rank * pool * share
                relevant += 1
        out[q] = total
