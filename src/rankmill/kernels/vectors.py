"""Cosine distances between the vectors of items, which have length 1.

The mean cosine of pairs of vectors of length 1 follows from their sum: there is no loop over pairs.
`rows` are those of the vectors, -1 for an item without one. The vectors are integers in units of
1 / `scale`: their sums are exact. Numbers of a sum are squared and added in their order.

Items marked in `repeat` do not count; it is empty if there is none.
"""

import math

import numpy as np

from rankmill.kernels.jit import helper, kernel


@kernel
def scale_vectors(vectors, scale, out_units):
    """Write vectors, none of zeros only, at length 1 as integers in units of 1 / `scale`.

    A power of 2 brings the numbers near 1 first, so that no square is too large or too small.
    """
    for row in range(len(vectors)):
        largest = 0.0
        for j in range(vectors.shape[1]):
            largest = max(largest, abs(vectors[row, j]))
        exponent = math.frexp(largest)[1]
        total = 0.0
        for j in range(vectors.shape[1]):
            number = math.ldexp(vectors[row, j], -exponent)
            total += number * number
        length = math.sqrt(total)
        for j in range(vectors.shape[1]):
            number = math.ldexp(vectors[row, j], -exponent) / length
            out_units[row, j] = np.int64(np.rint(number * scale))


@helper
def add_vectors(rows, start, end, repeat, units, out_sum):
    """Write the sum of the vectors of some items; return how many have one."""
    out_sum[:] = 0
    some = len(repeat) > 0
    count = 0
    for i in range(start, end):
        if rows[i] >= 0 and not (some and repeat[i]):
            vector = units[rows[i]]  # a view, with which the loop is vectorised
            for j in range(len(out_sum)):
                out_sum[j] += vector[j]
            count += 1
    return count


@helper
def product(one, other, scale):
    """Return the scalar product of two sums."""
    total = 0.0
    for j in range(len(one)):
        total += (one[j] / scale) * (other[j] / scale)
    return total


@kernel
def mean_distance(offsets, rows, repeat, k, units, scale, out):
    """Write the mean over the pairs of the first k items of each list of 1 - their cosine.

    NaN where there is no pair.
    """
    total = np.empty(units.shape[1], np.int64)
    for q in range(len(out)):
        end = min(offsets[q + 1], offsets[q] + k)
        n = add_vectors(rows, offsets[q], end, repeat, units, total)
        out[q] = np.nan
        if n > 1:
            cosines = (product(total, total, scale) - n) / (float(n) * (n - 1))
            out[q] = max(0.0, 1 - cosines)


@kernel
def mean_distance_to_history(starts, ends, had, offsets, rows, repeat, k, units, scale, out):
    """Write the mean of 1 - cosine over the pairs of an item of a list and one its query had.

    Query q had the rows `had[starts[q]:ends[q]]`. NaN where there is no pair.
    """
    total = np.empty(units.shape[1], np.int64)
    before = np.empty(units.shape[1], np.int64)
    for q in range(len(out)):
        end = min(offsets[q + 1], offsets[q] + k)
        n = add_vectors(rows, offsets[q], end, repeat, units, total)
        m = add_vectors(had, starts[q], ends[q], repeat[:0], units, before) if n > 0 else 0
        out[q] = np.nan
        if m > 0:
            out[q] = max(0.0, 1 - product(total, before, scale) / (float(n) * m))
