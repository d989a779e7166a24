"""Global average precision: one list of all predictions, sorted by confidence."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from rankmill.errors import InputError, UsageError
from rankmill.kernels.gap import count_wrong, split, sum_ties
from rankmill.metrics import NO_CUTOFF
from rankmill.workers import available_cpus

TIES = ("expected", "worst", "best")


class GapValue(NamedTuple):
    """GAP as the expected value over all orders of tied predictions, and its two extremes."""

    expected: float
    worst: float
    best: float
    tied: int


class Split(NamedTuple):
    """Confidences of correct predictions, and those of wrong ones, in any order."""

    right: np.ndarray
    wrong: np.ndarray


def split_confidences(
    offsets: np.ndarray,
    hit_offsets: np.ndarray,
    ranks: np.ndarray,
    confidence: np.ndarray,
    limit: int,
) -> Split:
    """Part the confidences of each list's first `limit` predictions by whether they are hits."""
    right = np.empty(len(ranks), confidence.dtype)
    wrong = np.empty(len(confidence), confidence.dtype)
    count = split(offsets, hit_offsets, ranks, limit, confidence, right, wrong)
    pooled = int(np.minimum(np.diff(offsets), limit).sum())
    return Split(right[: pooled - count], wrong[:count])


def gap_of_splits(splits: list[Split], total: int, threads: int) -> GapValue:
    """GAP of all splits together, with `total` queries in the denominator.

    The wrong confidences are counted at and between the distinct correct ones; the counts are
    integers, so neither the splits nor their order change a bit.
    """
    dtype = np.result_type(np.float32, *(one for part in splits for one in part))
    values, right = np.unique(
        np.concatenate([np.empty(0, dtype), *(part.right for part in splits)]), return_counts=True
    )

    def count(part: list[Split]) -> tuple[np.ndarray, np.ndarray]:
        wrong = np.concatenate([np.empty(0, dtype), *(one.wrong for one in part)])
        wrong.sort()
        at = np.zeros(len(values), np.int64)
        above = np.zeros(len(values), np.int64)
        count_wrong(values, wrong, at, above)
        return at, above

    with ThreadPoolExecutor(threads) as pool:
        counts = list(pool.map(count, (splits[i::threads] for i in range(threads))))
    at = np.sum([one for one, _ in counts], axis=0)
    above = np.sum([one for _, one in counts], axis=0)
    sums = np.zeros(3)
    tied = sum_ties(right.astype(np.int64), at, above, sums)
    expected, worst, best = (sums / total).tolist()
    return GapValue(expected, worst, best, int(tied))


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

    def part(start: int) -> Split:
        numbers = confidence[start : start + step]
        if np.isnan(numbers).any():
            place = start + int(np.isnan(numbers).argmax())
            raise InputError(f"confidence {place} is NaN; every prediction needs a number")
        ranks = np.flatnonzero(correct[start : start + step]) + 1
        one_list = np.array([0, len(numbers)])
        return split_confidences(one_list, np.array([0, len(ranks)]), ranks, numbers, NO_CUTOFF)

    with ThreadPoolExecutor(threads) as pool:
        splits = list(pool.map(part, range(0, len(confidence), step)))
    return float(getattr(gap_of_splits(splits, total, threads), ties))
