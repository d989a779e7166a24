"""global_average_precision() computes gap from arrays of confidences."""

from typing import Any

import numpy as np

from rankmill.columns.buffers import arrow_of, floats_of
from rankmill.columns.objects import numpy_of
from rankmill.errors import InputError, UsageError
from rankmill.kernels.gap import take_correct
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.gap.gap_counts import PORTION, GapCounter, gap_of_counts
from rankmill.threads import Workers

TIES = ("expected", "worst", "best", "threshold")


def global_average_precision(
    confidence: Any, correct: Any, total: int, *, ties: str = "expected"
) -> float:
    r"""Global average precision (micro-AP) of predictions in one list, by descending confidence.

    .. math:: \mathrm{GAP} = \frac{1}{M} \sum_{i=1}^{N} P(i)\, \mathrm{rel}(i)

    P(i) is the share of correct ones among the first i predictions, and rel(i) is 1 if the i-th is
    correct, else 0. The order of rows never matters: equal confidences count with the expected
    value over all their orders, in closed form.

    Parameters
    ----------
    confidence : array_like of float, shape (N,)
        Higher is more certain. Infinite values are allowed; NaN is an error.
    correct : array_like of bool, shape (N,)
        Whether each prediction is correct.
    total : int
        M, the number of queries with at least one label.
    ties : {"expected", "worst", "best", "threshold"}
        The value over the orders of tied predictions to return, or the value with one threshold
        for each tie, as in scikit-learn.

    Returns
    -------
    float
        GAP; 0.0 if no prediction is correct.

    Raises
    ------
    InputError
        If the shapes differ or a confidence is NaN.
    UsageError
        If `total` is not positive or `ties` is not one of the choices.

    References
    ----------
    F. Perronnin, Y. Liu and J.-M. Renders, "A Family of Contextual Measures of Similarity between
    Distributions with Application to Image Retrieval", CVPR 2009.

    Examples
    --------
    >>> from rankmill.arrays import global_average_precision
    >>> global_average_precision([0.9, 0.8, 0.7], [True, False, True], total=2)
    0.8333333333333333
    >>> global_average_precision([0.5, 0.5], [True, False], total=1)
    0.75
    """
    confidence, correct = np.asarray(numpy_of(confidence)), np.asarray(numpy_of(correct))
    if confidence.dtype.kind not in "iuf" or confidence.ndim != 1:
        raise InputError(
            f"confidence must be a one-dimensional array of numbers, not {confidence.ndim}-d "
            f"{confidence.dtype}"
        )
    if confidence.dtype.kind in "iu":
        confidence = floats_of(arrow_of(confidence))
    elif confidence.dtype not in (np.float32, np.float64):
        exact, confidence = confidence, confidence.astype(np.float64)
        if not np.array_equal(exact, confidence, equal_nan=True):
            raise InputError(
                f"a confidence of {exact.dtype} has no float64 of the same value; cast them to "
                "float64 first if rounding does no harm"
            )
    if correct.shape != confidence.shape or (correct.size and correct.dtype.kind not in "biu"):
        raise InputError(
            f"correct must be booleans of shape {confidence.shape}, like confidence; it is "
            f"{correct.dtype} of shape {correct.shape}"
        )
    if not isinstance(total, int | np.integer) or total < 1:
        raise UsageError(
            f"total is {total!r}; expected the number of queries with labels, 1 or more"
        )
    if ties not in TIES:
        raise UsageError(f"unknown ties {ties!r}; expected one of {', '.join(TIES)}")
    correct = correct.astype(np.bool_, copy=False)
    with Workers() as workers:
        return gap_in_portions(confidence, correct, total, ties, workers)


def gap_in_portions(
    confidence: np.ndarray,
    correct: np.ndarray,
    total: int,
    ties: str,
    workers: Workers,
    portion: int = PORTION,
) -> float:
    """Return GAP of checked arrays, of which so many bytes are sorted at a time."""
    threads = workers.threads
    step = max(1, -(-len(confidence) // threads))

    def take(start: int) -> np.ndarray:
        numbers: np.ndarray = confidence[start : start + step]
        if np.isnan(numbers.max()):
            place = start + int(np.isnan(numbers).argmax())
            raise InputError(f"confidence {place} is NaN; every prediction needs a number")
        right = correct[start : start + step]
        taken = np.empty(np.count_nonzero(right) + 1, numbers.dtype)
        return taken[: take_correct(numbers, right, taken)]

    correct_ones = Gap.of(list(workers.map(take, range(0, len(confidence), step)))).correct
    counter = GapCounter(correct_ones, workers, portion)
    # A portion has at least one piece for each thread, so all threads take part in sorting it.
    pieces = threads * -(-2 * confidence.nbytes // portion)
    for piece in np.array_split(confidence, max(1, pieces)):
        counter.add(piece)
    return float(getattr(gap_of_counts(correct_ones, counter.finish(), total, workers), ties))
