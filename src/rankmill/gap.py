"""Global average precision: one list of all predictions, sorted by confidence."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from rankmill.errors import InputError, UsageError
from rankmill.kernels.gap import correct_confidences, count_among, sum_ties
from rankmill.workers import available_cpus

# Sums are taken over so many distinct correct confidences at a time.
RANGE = 1 << 15
TIES = ("expected", "worst", "best")


class GapValue(NamedTuple):
    """GAP as the expected value over all orders of tied predictions, and its two extremes."""

    expected: float
    worst: float
    best: float
    tied: int


class Pool(NamedTuple):
    """Confidences of some predictions, in any order, and again those of the correct ones."""

    all: np.ndarray
    correct: np.ndarray


def pool_lists(
    offsets: np.ndarray,
    hit_offsets: np.ndarray,
    ranks: np.ndarray,
    confidence: np.ndarray,
    limit: int,
) -> Pool:
    """The confidences of the first `limit` predictions of each list, hits being those of Hits."""
    lengths = np.diff(offsets)
    correct = np.empty(len(ranks), confidence.dtype)
    count = correct_confidences(offsets, hit_offsets, ranks, limit, confidence, correct)
    if limit < lengths.max(initial=0):
        ranks_of_all = np.arange(len(confidence)) - np.repeat(offsets[:-1], lengths)
        confidence = confidence[ranks_of_all < limit]
    return Pool(confidence, correct[:count])


def gap_of_pools(pools: list[Pool], total: int, threads: int) -> GapValue:
    """GAP of all pools together, with `total` queries in the denominator.

    All confidences are counted at and between the distinct correct ones. The counts are integers,
    and sums are taken over fixed ranges of confidences, so neither the pools, their order nor the
    threads change a bit.
    """
    dtype = np.result_type(np.float32, *(one for pool in pools for one in pool))
    values, right = np.unique(
        np.concatenate([np.empty(0, dtype), *(pool.correct for pool in pools)]), return_counts=True
    )
    at = np.zeros(len(values), np.int64)
    above = np.zeros(len(values), np.int64)
    ranges = [slice(i, i + RANGE) for i in range(0, len(values), RANGE)]

    def sort(part: list[Pool]) -> np.ndarray:
        confidences = np.concatenate([np.empty(0, dtype), *(pool.all for pool in part)])
        confidences.sort()
        return confidences

    def count(within: slice) -> None:
        for part in parts:
            start = np.searchsorted(part, values[within.start])
            beyond = values[within.stop :]
            stop = np.searchsorted(part, beyond[0]) if len(beyond) else len(part)
            count_among(values[within], part[start:stop], at[within], above[within])

    def add_up(within: slice, correct_before: int, before: int) -> tuple[np.ndarray, int]:
        sums = np.zeros(3)
        tied = sum_ties(right[within], at[within], above[within], correct_before, before, sums)
        return sums, tied

    with ThreadPoolExecutor(threads) as executor:
        parts = list(executor.map(sort, (pools[i::threads] for i in range(threads))))
        list(executor.map(count, ranges))
        # The ranges of higher confidence come first.
        correct_before = _sums_behind([right[within].sum() for within in ranges])
        before = _sums_behind([at[within].sum() + above[within].sum() for within in ranges])
        added = list(executor.map(add_up, ranges, correct_before, before))
    sums = [math.fsum(one) / total for one in zip(*(sums for sums, _ in added), strict=True)]
    expected, worst, best = sums or (0.0, 0.0, 0.0)
    return GapValue(expected, worst, best, sum(tied for _, tied in added))


def _sums_behind(counts: list[np.integer]) -> list[int]:
    """For each count the sum of those behind it."""
    return [0, *np.cumsum(counts[:0:-1], dtype=np.int64).tolist()][::-1] if counts else []


def global_average_precision(
    confidence: Any, correct: Any, total: int, *, ties: str = "expected"
) -> float:
    r"""Global average precision (micro-AP) of predictions in one list, by descending confidence.

    .. math:: \mathrm{GAP} = \frac{1}{M} \sum_{i=1}^{N} P(i)\, \mathrm{rel}(i)

    with P(i) the share of correct ones among the first i predictions and rel(i) 1 where the i-th
    is correct. The order of rows never matters: among equal confidences the value is the expected
    one over all their orders, in closed form.

    Parameters
    ----------
    confidence : array_like of float, shape (N,)
        Higher is more certain; infinities sort, NaN is an error.
    correct : array_like of bool, shape (N,)
        Whether each prediction is correct.
    total : int
        M, the number of queries with at least one label.
    ties : {"expected", "worst", "best"}
        Which value over the orders of tied predictions.

    Returns
    -------
    float
        0.0 if nothing is correct.

    Raises
    ------
    InputError
        If the shapes differ or a confidence is NaN.
    UsageError
        If `total` is not positive or `ties` unknown.

    References
    ----------
    F. Perronnin, Y. Liu and J.-M. Renders, "A Family of Contextual Measures of Similarity between
    Distributions with Application to Image Retrieval", CVPR 2009.

    Examples
    --------
    >>> global_average_precision([0.9, 0.8, 0.7], [True, False, True], total=2)
    0.8333333333333333
    >>> global_average_precision([0.5, 0.5], [True, False], total=1)
    0.75
    """
    confidence = np.asarray(confidence)
    correct = np.asarray(correct)
    if confidence.dtype.kind not in "iuf" or confidence.ndim != 1:
        raise InputError(
            f"confidence must be a one-dimensional array of numbers, not {confidence.ndim}-d "
            f"{confidence.dtype}"
        )
    if confidence.dtype not in (np.float32, np.float64):
        confidence = confidence.astype(np.float64)
    if correct.shape != confidence.shape or (correct.size and correct.dtype.kind not in "biu"):
        raise InputError(
            f"correct must be booleans of shape {confidence.shape}, like confidence; it is "
            f"{correct.dtype} of shape {correct.shape}"
        )
    if total < 1:
        raise UsageError(f"total is {total}; expected the number of queries with labels, 1 or more")
    if ties not in TIES:
        raise UsageError(f"unknown ties {ties!r}; expected one of {', '.join(TIES)}")
    correct = correct.astype(np.bool_, copy=False)
    threads = available_cpus()
    step = max(1, -(-len(confidence) // threads))

    def part(start: int) -> Pool:
        numbers = confidence[start : start + step]
        if np.isnan(numbers.max()):
            place = start + int(np.isnan(numbers).argmax())
            raise InputError(f"confidence {place} is NaN; every prediction needs a number")
        return Pool(numbers, numbers[correct[start : start + step]])

    with ThreadPoolExecutor(threads) as executor:
        pools = list(executor.map(part, range(0, len(confidence), step)))
    return float(getattr(gap_of_pools(pools, total, threads), ties))
