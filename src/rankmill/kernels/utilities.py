"""Kernels of what a list is worth to those who stop at a rank by chance, and of lists compared.

They are as in rankmill.kernels.metrics.
"""

import math

import numpy as np

from rankmill.kernels.jit import helper, kernel

# ------------------------------------------------------------------ counts


@kernel
def weighted_pairs(hits, k, by, out):
    """Write the share of pairs in order times the predictions of the list, or times its hits."""
    for q in range(len(out)):
        start = hits.offsets[q]
        found = 0
        above = 0.0
        while start + found < hits.offsets[q + 1] and hits.ranks[start + found] <= k:
            above += hits.ranks[start + found] - 1 - found
            found += 1
        misses = min(k, hits.prediction_counts[q]) - found
        pairs = float(found) * misses
        weight = found if by else found + misses
        out[q] = weight * ((pairs - above) / pairs) if pairs > 0 else 0.0


@kernel
def hits_beyond_chance(hits, k, items, out):
    """Write items x hits - k x labels, which is 0 for k random items."""
    for q in range(len(out)):
        found = 0
        for h in range(hits.offsets[q], hits.offsets[q + 1]):
            found += hits.ranks[h] <= k
        labels = hits.label_counts[q]
        out[q] = float(items) * found - float(k) * labels if max(k, labels) < items else 0.0


@kernel
def log_odds_of_precisions(hits, k, out):
    for q in range(len(out)):
        total = 0.0
        for h in range(hits.offsets[q], hits.offsets[q + 1]):
            total += (h - hits.offsets[q] + 1) / hits.ranks[h]
        out[q] = math.log((1.0 + total) / (1.0 + max(0.0, hits.label_counts[q] - total)))


# ------------------------------------------------------------------ who goes on less after a gain

# Ranks are read up to this one, as in cwl_eval.
DEEPEST = 1000
BY_GAIN, BY_RANK, BY_PATIENCE, BY_WANT = 8, 9, 10, 11


@helper
def expected_gain(hits, q, last, most, kind, given):
    """The mean gain over the ranks read; 1 - gain of those at a rank go on, times a chance."""
    h = hits.offsets[q]
    if h == hits.offsets[q + 1]:
        return 0.0
    total = 0.0
    every = 0.0
    weight = 1.0
    for rank in range(1, min(last, DEEPEST) + 1):
        gain = 0.0
        if h < hits.offsets[q + 1] and hits.ranks[h] == rank:
            gain = min(1.0, hits.gains[h] / most)
            h += 1
        total += weight * gain
        every += weight
        chance = 1.0
        if kind == BY_RANK:
            chance = rank / (rank + 1.0)
        elif kind == BY_PATIENCE:
            chance = given
        elif kind == BY_WANT:
            chance = (rank + 2.0 * given - 1.0) / (rank + 2.0 * given)
            chance *= chance
        weight *= chance * (1.0 - gain)
    return total / every


@kernel
def stopped_by_gain(hits, k, most, out):
    for q in range(len(out)):
        out[q] = expected_gain(hits, q, k, most, BY_GAIN, 0.0)


@kernel
def stopped_by_rank(hits, k, most, out):
    for q in range(len(out)):
        out[q] = expected_gain(hits, q, k, most, BY_RANK, 0.0)


@kernel
def stopped_by_patience(hits, k, p, most, out):
    for q in range(len(out)):
        out[q] = expected_gain(hits, q, k, most, BY_PATIENCE, p)


@kernel
def stopped_by_want(hits, k, t, most, out):
    for q in range(len(out)):
        out[q] = expected_gain(hits, q, k, most, BY_WANT, t)


@kernel
def capped_dcg(hits, k, most, out):
    for q in range(len(out)):
        total = 0.0
        for h in range(hits.offsets[q], hits.offsets[q + 1]):
            if hits.ranks[h] > k:
                break
            total += min(1.0, hits.gains[h] / most) / hits.discounts[hits.ranks[h]]
        out[q] = total


# ------------------------------------------------------------------ blended ratios where one stops

FIRST, BEST, UP_TO_BEST, EACH, BY_WORTH = 0, 1, 2, 3, 4


@helper
def stopped_ratio(hits, q, k, beta, gamma, kind):
    """The blended ratio at the ranks where somebody stops, times the chance to stop there."""
    start, end = hits.offsets[q], hits.offsets[q + 1]
    first = hits.label_offsets[q] if len(hits.label_gains) > 0 else 0
    while end > start and hits.ranks[end - 1] > k:
        end -= 1
    best = start
    for h in range(start, end):
        if hits.gains[h] > hits.gains[best]:
            best = h
    total = 0.0
    gain = 0.0
    ideal = 0.0
    place = 0
    power = 1.0
    for h in range(start, end):
        while place < min(hits.ranks[h], hits.label_counts[q]):
            ideal += hits.label_gains[first + place] if len(hits.label_gains) > 0 else 1.0
            place += 1
        gain += hits.gains[h]
        ratio = (h - start + 1 + beta * gain) / (hits.ranks[h] + beta * ideal)
        if kind == FIRST or (kind == BEST and h == best):
            return ratio
        if kind == UP_TO_BEST:
            total += ratio
            if h == best:
                return total / (h - start + 1)
        elif kind == EACH:
            total += power * ratio
            power *= gamma
        elif kind == BY_WORTH:
            total += hits.gains[h] * ratio
    return total


@kernel
def ratio_at_first(hits, k, beta, out):
    for q in range(len(out)):
        out[q] = stopped_ratio(hits, q, k, beta, 1.0, FIRST)


@kernel
def ratio_at_best(hits, k, beta, out):
    for q in range(len(out)):
        out[q] = stopped_ratio(hits, q, k, beta, 1.0, BEST)


@kernel
def ratios_up_to_best(hits, k, beta, out):
    for q in range(len(out)):
        out[q] = stopped_ratio(hits, q, k, beta, 1.0, UP_TO_BEST)


@kernel
def ratios_by_gamma(hits, k, gamma, beta, out):
    for q in range(len(out)):
        out[q] = stopped_ratio(hits, q, k, beta, gamma, EACH)


@kernel
def ratios_by_gain(hits, k, beta, out):
    for q in range(len(out)):
        out[q] = stopped_ratio(hits, q, k, beta, 1.0, BY_WORTH)


@kernel
def sum_of_powers(hits, k, gamma, beta, out):
    """Write the sum of gamma**i over the labels, i from 0."""
    for q in range(len(out)):
        total = 0.0
        power = 1.0
        for _ in range(hits.label_counts[q]):
            total += power
            power *= gamma
        out[q] = total


# ------------------------------------------------------------------ overlap with the best list


@helper
def depth_of(hits, q, k):
    return min(k, max(hits.prediction_counts[q], hits.label_counts[q]))


@kernel
def overlap_with_labels(hits, k, p, out):
    """Sum the shares of the first d items that are among the first d labels, times p**(d - 1).

    Labels stand by falling gain, those of one gain in the order of the list.
    """
    depths = len(hits.discounts) + 1
    entered = np.zeros(depths, np.int64)  # how many items both have from this depth on
    taken = np.zeros(depths, np.int64)  # of the labels of one gain, by the place of the first
    for q in range(len(out)):
        count, depth = hits.label_counts[q], depth_of(hits, q, k)
        start = hits.label_offsets[q] if len(hits.label_gains) > 0 else 0
        entered[: depth + 1] = 0
        taken[: count + 1] = 0
        for h in range(hits.offsets[q], hits.offsets[q + 1]):
            low, high = 0, count
            while low < high and len(hits.label_gains) > 0:
                middle = (low + high) // 2
                if hits.label_gains[start + middle] > hits.gains[h]:
                    low = middle + 1
                else:
                    high = middle
            taken[low] += 1
            place = low + taken[low]
            same = place <= count  # a repeat may be one more than there are labels of its gain
            if same and len(hits.label_gains) > 0:
                same = hits.label_gains[start + place - 1] == hits.gains[h]
            if same and max(hits.ranks[h], place) <= depth:
                entered[max(hits.ranks[h], place)] += 1
        both = 0
        total = 0.0
        weight = 1.0
        for d in range(1, depth + 1):
            both += entered[d]
            total += weight * (both / d)
            weight *= p
        out[q] = total


@kernel
def overlap_of_best(hits, k, p, out):
    """The same of a list of all labels."""
    for q in range(len(out)):
        total = 0.0
        weight = 1.0
        for d in range(1, depth_of(hits, q, k) + 1):
            total += weight * (min(d, hits.label_counts[q]) / d)
            weight *= p
        out[q] = total


@kernel
def sum_of_weights(hits, k, p, out):
    """Sum the weights p**(d - 1) of all depths."""
    for q in range(len(out)):
        total = 0.0
        weight = 1.0
        for _ in range(depth_of(hits, q, k)):
            total += weight
            weight *= p
        out[q] = total
