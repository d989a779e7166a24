"""Average precision of soft histograms of scores, and its derivative by each score.

Bin m has its centre at ``high - m / per_unit`` with m = 0 .. bins - 1. A score is
``position = (high - score) * per_unit`` bins below the first centre and falls into the two bins
around it. A query therefore takes O(items + bins) steps.
"""

import math

import numpy as np

from rankmill.kernels.jit import heavy_kernel, helper

# Both guards are those of the authors' code, so values can be compared with it to the last bits.
GUARD = 1e-16
TIED_GUARD = 1e-8


@heavy_kernel
def count_relevant(offsets, relevant, out):
    for q in range(len(out)):
        count = 0
        for i in range(offsets[q], offsets[q + 1]):
            count += np.int64(relevant[i])
        out[q] = count


@heavy_kernel
def soft_average_precision(
    offsets,
    scores,
    relevant,
    counts,
    bins,
    low,
    high,
    per_unit,
    tied,
    factors,
    out_ap,
    out_gradient,
):
    """Write the AP of each query and, if `factors` is not empty, factors[q] * dAP/dscore.

    counts[q] is the number of relevant items. Without any, AP is NaN and the gradient is 0.
    Returns whether all scores are finite. If not, the values written must not be used.
    """
    histograms = np.empty((2, bins))  # of the irrelevant items, and of the relevant ones
    partials = np.empty((4, bins))
    slopes = np.empty((2, bins - 1))
    finite = True
    for q in range(len(out_ap)):
        start, end = offsets[q], offsets[q + 1]
        histograms[:] = 0.0
        finite &= fill_histograms(start, end, scores, relevant, high, per_unit, histograms)
        count = counts[q]
        if count == 0:
            out_ap[q] = np.nan
        else:
            out_ap[q] = sum_over_bins(histograms[0], histograms[1], tied, partials) / count
        if len(factors) > 0:
            if count == 0:
                slopes[:] = 0.0
            else:
                slopes_of_partials(partials, factors[q] / count * per_unit, slopes)
            spread_slopes(start, end, scores, relevant, low, high, per_unit, slopes, out_gradient)
    return finite


@helper
def fill_histograms(start, end, scores, relevant, high, per_unit, histograms):
    last = histograms.shape[1] - 1
    finite = True
    for i in range(start, end):
        score = np.float64(scores[i])
        finite &= np.isfinite(score)
        side = np.int64(relevant[i])
        position = (high - score) * per_unit
        if position >= 0.0 and position < last:
            above = np.int64(position)
            share = position - above
            histograms[side, above] += 1.0 - share
            histograms[side, above + 1] += share
        elif position < 0.0:
            histograms[side, 0] += 1.0
        else:  # also NaN, which must not become an index
            histograms[side, last] += 1.0
    return finite


@helper
def sum_over_bins(irrelevant, hits, tied, partials):
    """Return the sum of all bins' terms; write its derivatives by each bin's hits and n."""
    hits_before = before = total = 0.0
    for m in range(len(hits)):
        n = irrelevant[m] + hits[m]
        if tied:
            terms = tied_bin(hits[m], n, hits_before, before)
        else:
            terms = plain_bin(hits[m], n, hits_before, before)
        total += terms[0]
        for p in range(4):
            partials[p, m] = terms[p + 1]
        hits_before += hits[m]
        before += n
    # The n and the hits of a bin also enter the terms of all later bins.
    by_hits_before = by_before = 0.0
    for m in range(len(hits) - 1, -1, -1):
        partials[0, m] += by_hits_before
        partials[1, m] += by_before
        by_hits_before += partials[2, m]
        by_before += partials[3, m]
    return total


@helper
def plain_bin(hits, n, hits_before, before):
    """Return a bin's precision times its hits, and the derivatives by the four arguments."""
    all_guarded = before + n + GUARD
    precision = (hits_before + hits) / all_guarded
    share = hits / all_guarded
    by_n = -share * precision
    return precision * hits, precision + share, by_n, share, by_n


@helper
def tied_bin(hits, n, hits_before, before):
    """Do the same as `plain_bin` with the mean precision over all orders of the bin's items.

    At rank t of the bin the expected precision is (hits_before + 1 + ratio (t - before - 1)) / t.
    Here ratio is the probability that another item of the bin is a hit if the item at t is one. An
    integral (a logarithm) replaces the sum of 1 / t over the bin's ranks.
    """
    above_one = n - 1.0 if n > 1.0 else 0.0
    ratio = (hits - 1.0 if hits > 1.0 else 0.0) / (above_one + TIED_GUARD)
    ratio_by_hits = (1.0 if hits > 1.0 else 0.0) / (above_one + TIED_GUARD)
    ratio_by_n = -ratio / (above_one + TIED_GUARD) if n > 1.0 else 0.0
    first = before + 1.0
    after = first + n
    inverses = math.log1p(n / first)
    base = hits_before + 1.0 - ratio * first
    precisions = n * ratio + base * inverses
    by_ratio = n - first * inverses
    share = hits / (n + TIED_GUARD)
    return (
        share * precisions,
        precisions / (n + TIED_GUARD) + share * by_ratio * ratio_by_hits,
        share * (ratio + base / after + by_ratio * ratio_by_n - precisions / (n + TIED_GUARD)),
        share * inverses,
        share * (base * (1.0 / after - 1.0 / first) - ratio * inverses),
    )


@helper
def slopes_of_partials(partials, factor, slopes):
    """Write the derivative by a score between the centres of bins m and m + 1, for each m.

    A higher score moves weight from bin m + 1 to bin m.
    """
    for m in range(slopes.shape[1]):
        by_n = factor * (partials[1, m] - partials[1, m + 1])
        slopes[0, m] = by_n
        slopes[1, m] = by_n + factor * (partials[0, m] - partials[0, m + 1])


@helper
def spread_slopes(start, end, scores, relevant, low, high, per_unit, slopes, out_gradient):
    """Write the derivative by each score.

    At a centre this is the derivative just below it, and at the last centre the one just above it.
    """
    lowest = slopes.shape[1] - 1
    for i in range(start, end):
        score = np.float64(scores[i])
        if score >= low and score <= high:
            above = min(np.int64((high - score) * per_unit), lowest)
            out_gradient[i] = slopes[np.int64(relevant[i]), above]
        else:
            out_gradient[i] = 0.0
