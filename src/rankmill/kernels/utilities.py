"""Kernels of what a list is worth to those who stop at a rank by chance, and of lists compared.

They are as in rankmill.kernels.metrics.
"""

import math

import numpy as np

from rankmill.kernels.jit import helper, kernel


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


@kernel
def mean_gain(hits, k, most, kind, given, out):
    """Write the mean gain over the ranks read.

    Of those at a rank the share 1 - gain goes on, times a chance by the kind, and by what is given.
    """
    for q in range(len(out)):
        h = hits.offsets[q]
        out[q] = 0.0
        if h == hits.offsets[q + 1]:
            continue
        total = every = 0.0
        weight = 1.0
        for rank in range(1, min(k, DEEPEST) + 1):
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
        out[q] = total / every


# ------------------------------------------------------------------ blended ratios where one stops

FIRST, BEST, UP_TO_BEST, EACH, BY_WORTH = 0, 1, 2, 3, 4


@kernel
def stopped_ratio(hits, k, beta, gamma, kind, out):
    for q in range(len(out)):
        out[q] = ratio_of_list(hits, q, k, beta, gamma, kind)


@helper
def ratio_of_list(hits, q, k, beta, gamma, kind):
    """The blended ratio at the ranks where somebody stops, times the chance to stop there."""
    start, end = hits.offsets[q], hits.offsets[q + 1]
    first = hits.label_offsets[q]
    while end > start and hits.ranks[end - 1] > k:
        end -= 1
    best = start
    for h in range(start, end):
        if hits.gains[h] > hits.gains[best]:
            best = h
    total = gain = ideal = 0.0
    place = 0
    power = 1.0
    for h in range(start, end):
        while place < min(hits.ranks[h], hits.label_counts[q]):
            ideal += hits.label_gains[first + place]
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
        start = hits.label_offsets[q]
        entered[: depth + 1] = 0
        taken[: count + 1] = 0
        for h in range(hits.offsets[q], hits.offsets[q + 1]):
            low, high = 0, count
            while low < high:
                middle = (low + high) // 2
                if hits.label_gains[start + middle] > hits.gains[h]:
                    low = middle + 1
                else:
                    high = middle
            taken[low] += 1
            place = low + taken[low]
            # A repeat may be one more than there are labels of its gain.
            same = place <= count and hits.label_gains[start + place - 1] == hits.gains[h]
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
