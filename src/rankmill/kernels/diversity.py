"""Kernels of labels with subtopics; their arguments are as in rankmill.kernels.metrics.

The gain of a label is a number whose lower 32 bits say which subtopics of the query the item is
relevant to. The upper bits are the place of the item among the labels of the query by id, so that
the labels of a query, which fall by gain, stand by falling id.
"""

import math

import numpy as np

from rankmill.kernels.jit import helper, kernel

SUBTOPICS = 32
MASK = (1 << SUBTOPICS) - 1


@helper
def mask_of(gain):
    """The subtopics of a label."""
    return np.int64(gain) & MASK


@helper
def label_mask(hits, q, place):
    """The subtopics of the label at a place, from 0, among those of the query."""
    return mask_of(hits.label_gains[hits.label_offsets[q] + place])


@helper
def worth(mask, weights):
    """What an item adds, where weights[s] is what one more item of subtopic s is worth."""
    total = 0.0
    for subtopic in range(SUBTOPICS):
        if mask >> subtopic & 1:
            total += weights[subtopic]
    return total


@helper
def fade(mask, weights, left):
    """Lower what one more item of each subtopic of an item is worth."""
    for subtopic in range(SUBTOPICS):
        if mask >> subtopic & 1:
            weights[subtopic] *= left


@helper
def count_bits(mask):
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@helper
def all_subtopics(hits, q):
    mask = np.int64(0)
    for place in range(hits.label_counts[q]):
        mask |= label_mask(hits, q, place)
    return mask


@kernel
def sum_worths(hits, k, alpha, factors, divisors, out):
    """Sum what hits are worth by the subtopics they add, times a factor of their rank over another.

    Of these one is 1.
    """
    weights = np.empty(SUBTOPICS)
    for q in range(len(out)):
        weights[:] = 1.0
        out[q] = 0.0
        for h in range(hits.offsets[q], hits.offsets[q + 1]):
            if hits.ranks[h] > k:
                break
            mask = mask_of(hits.gains[h])
            rank = hits.ranks[h]
            out[q] += worth(mask, weights) * factors[rank] / divisors[rank]
            fade(mask, weights, 1.0 - alpha)


@helper
def best_worths(hits, q, k, alpha):
    """What the items add of the list that takes the label that is worth most, one after the other.

    Of labels that are worth the same, that of the larger id is taken.
    """
    weights = np.ones(SUBTOPICS)
    count = hits.label_counts[q]
    taken = np.zeros(count, np.bool_)
    worths = np.empty(min(k, count))
    for rank in range(len(worths)):
        best = -1
        most = -1.0
        for place in range(count):
            if not taken[place]:
                found = worth(label_mask(hits, q, place), weights)
                if found > most:
                    best = place
                    most = found
        taken[best] = True
        worths[rank] = most
        fade(label_mask(hits, q, best), weights, 1.0 - alpha)
    return worths


@kernel
def sum_best_worths(hits, k, alpha, factors, divisors, out):
    """Do the same for the list that takes the best label next."""
    for q in range(len(out)):
        worths = best_worths(hits, q, k, alpha)
        out[q] = 0.0
        for rank in range(1, len(worths) + 1):
            out[q] += worths[rank - 1] * factors[rank] / divisors[rank]


@kernel
def largest_novelty(hits, k, alpha, by_logarithm, out):
    """Do the same for a list whose every item is relevant to all subtopics of the query."""
    total = 0.0
    left = 1.0
    for rank in range(1, k + 1):
        total += left / (math.log2(rank + 1.0) if by_logarithm else rank)
        left *= 1.0 - alpha
        if left < 1e-300:
            break
    for q in range(len(out)):
        out[q] = count_bits(all_subtopics(hits, q)) * total


@kernel
def count_hits_of_subtopics(hits, k, out):
    """Count the hits of each subtopic, in one sum."""
    for q in range(len(out)):
        out[q] = 0.0
        for h in range(hits.offsets[q], hits.offsets[q + 1]):
            if hits.ranks[h] <= k:
                out[q] += count_bits(mask_of(hits.gains[h]))


@kernel
def sum_precisions_of_subtopics(hits, k, out):
    """Sum the average precisions of all subtopics."""
    found = np.empty(SUBTOPICS)
    labels = np.empty(SUBTOPICS)
    for q in range(len(out)):
        found[:] = 0.0
        labels[:] = 0.0
        for place in range(hits.label_counts[q]):
            for subtopic in range(SUBTOPICS):
                labels[subtopic] += label_mask(hits, q, place) >> subtopic & 1
        out[q] = 0.0
        for h in range(hits.offsets[q], hits.offsets[q + 1]):
            mask = mask_of(hits.gains[h])
            for subtopic in range(SUBTOPICS):
                if mask >> subtopic & 1:
                    found[subtopic] += 1.0
                    out[q] += found[subtopic] / hits.ranks[h] / labels[subtopic]


@kernel
def count_subtopics(hits, k, out):
    """Count the subtopics of the hits."""
    for q in range(len(out)):
        mask = np.int64(0)
        for h in range(hits.offsets[q], hits.offsets[q + 1]):
            if hits.ranks[h] > k:
                break
            mask |= mask_of(hits.gains[h])
        out[q] = count_bits(mask)


@kernel
def count_all_subtopics(hits, k, out):
    for q in range(len(out)):
        out[q] = count_bits(all_subtopics(hits, q))
