"""Listwise AP: average precision over soft histograms of scores, with its gradient."""

import math
from typing import Any, NamedTuple

import numpy as np

from rankmill.columns.objects import numpy_of
from rankmill.columns.ragged_lists import Ragged
from rankmill.errors import InputError, UsageError
from rankmill.kernels.listwise import count_relevant, soft_average_precision
from rankmill.metrics.aggregates.mean import Mean
from rankmill.threads import available_cpus, map_blocks

# Below this number of items, starting threads takes longer than the work.
WORTH_THREADS = 1 << 15


class ListwiseLoss(NamedTuple):
    """A listwise loss and its gradient.

    Attributes
    ----------
    loss : float
        One minus the mean AP over queries.
    gradient : ndarray, Ragged or None
        The derivative of the loss by each score, in the shape and dtype of the scores (float64 for
        integers), or None if it was not requested.
    """

    loss: float
    gradient: Any


class Binning(NamedTuple):
    """The places of the bins, and how precision within a bin counts; see `listwise_ap`."""

    bins: int
    low: float
    high: float
    tied: bool

    @property
    def per_unit(self) -> float:
        """The number of bins per unit of score, 1 / Δ."""
        return (self.bins - 1) / (self.high - self.low)


class _ScoredLists(NamedTuple):
    """Scores (float32 or float64) and relevance (bool) of all queries in flat arrays."""

    given: Any  # the scores as the caller gave them: a Ragged or a two-dimensional array
    offsets: np.ndarray
    scores: np.ndarray
    relevant: np.ndarray
    counts: np.ndarray  # the number of relevant items of each query


def listwise_ap(
    scores: Any,
    relevance: Any,
    bins: int = 25,
    low: float = 0.0,
    high: float = 1.0,
    *,
    tied: bool = False,
) -> np.ndarray:
    r"""Average precision of each query over soft bins of scores, which has a gradient.

    With bin centres :math:`b_m = \mathrm{high} - (m - 1) \Delta` for m = 1 .. M, where
    :math:`\Delta = (\mathrm{high} - \mathrm{low}) / (M - 1)`, score s falls into bin m with the
    weight :math:`\delta(s, m) = \max(0, 1 - |s - b_m| / \Delta)`; a score above `high` falls into
    the first bin and one below `low` into the last, each with weight 1. :math:`N_m` is the sum of
    these weights over a query's items, :math:`N^+_m` is the sum over its R relevant items, and
    :math:`C_m` and :math:`C^+_m` are the sums of both over bins 1 to m. Then

    .. math:: \mathrm{AP} = \frac{1}{R} \sum_{m=1}^{M} \frac{C^+_m}{C_m + 10^{-16}} N^+_m .

    The items of one bin have the same rank, and each counts with the precision after the whole bin.
    With `tied`, each counts with its mean precision over all orders of the bin instead (tie-aware
    AP). An integral replaces the sum over the bin's ranks:

    .. math:: \mathrm{TAP} = \frac{1}{R} \sum_{m=1}^{M} \frac{N^+_m}{N_m + \epsilon} \left[
        N_m \rho_m + (C^+_{m-1} + 1 - \rho_m (C_{m-1} + 1)) \ln \frac{C_m + 1}{C_{m-1} + 1}
        \right], \quad
        \rho_m = \frac{\max(0, N^+_m - 1)}{\max(0, N_m - 1) + \epsilon}, \quad \epsilon = 10^{-8} .

    The integral is close to the sum if bins hold many items, and too small if they hold few: a
    single relevant item has a TAP of ln 2 instead of 1.

    Parameters
    ----------
    scores : array_like of float, shape (n, items), or Ragged of float, n lists
        Higher is more relevant. The order of items does not matter. AP is computed in float64.
    relevance : array_like of bool, int or float, shaped like `scores`
        1 if the item is relevant, else 0.
    bins : int
        M, the number of bins, 2 or more.
    low, high : float
        The centres of the last and the first bin.
    tied : bool
        Whether to compute TAP.

    Returns
    -------
    ndarray of float64, shape (n,)
        The AP of each query; NaN for a query without a relevant item.

    Raises
    ------
    InputError
        If a score is not finite, a relevance is not 0 or 1, or the two differ in shape.
    UsageError
        If `scores` or `relevance` are neither two-dimensional nor Ragged, `bins` is below 2, or
        `low` is not below `high`.

    References
    ----------
    J. Revaud, J. Almazán, R. Rezende and C. de Souza, "Learning with Average Precision: Training
    Image Retrieval with a Listwise Loss", ICCV 2019. TAP is from K. He, F. Cakir, S. A. Bargal and
    S. Sclaroff, "Hashing as Tie-Aware Learning to Rank", CVPR 2018, in the form of the code that
    Revaud et al. published.

    Examples
    --------
    >>> from rankmill.arrays import Ragged
    >>> from rankmill.torch import listwise_ap
    >>> listwise_ap([[0.75, 0.25]], [[1, 0]], bins=2)
    array([0.6875])
    >>> scores = Ragged.from_lists([[0.9, 0.2, 0.4], [0.3]])
    >>> listwise_ap(scores, Ragged.from_lists([[1, 0, 0], [0]]))
    array([ 1., nan])
    """
    binning = checked_binning(bins, low, high, tied)
    lists = _checked_lists(scores, relevance)
    return _score(lists, binning, np.empty(0), np.empty(0, lists.scores.dtype))


def listwise_ap_loss(
    scores: Any,
    relevance: Any,
    bins: int = 25,
    low: float = 0.0,
    high: float = 1.0,
    *,
    tied: bool = False,
    weights: Any = None,
    gradient: bool = True,
) -> ListwiseLoss:
    r"""One minus the mean AP (or TAP) of `listwise_ap`, with its derivative by each score.

    .. math:: L = 1 - \frac{1}{|Q|} \sum_{q \in Q} w_q \mathrm{AP}_q

    The sum is over the queries Q with a relevant item. Other queries are left out, and their
    gradient is 0. The sum is exact, so the loss has the same bits for any number of threads.

    The loss has a kink where a score equals the centre of a bin. There the derivative is the one
    just below the centre, and at `low` the one just above. Below `low` and above `high` it is 0.
    TAP also has a kink where :math:`N_m` or :math:`N^+_m` of a bin is 1; the derivative of
    :math:`\max(0, x)` at 0 is taken as 0. Just above 1, TAP rises steeply within
    :math:`\epsilon`, so the derivative by a score can be as large as :math:`1 / \epsilon`.

    Parameters
    ----------
    scores, relevance, bins, low, high, tied
        As for `listwise_ap`.
    weights : array_like of float, shape (n,), optional
        The weight of each query, 0 or more. The divisor is still the number of queries.
    gradient : bool
        Whether to compute the gradient.

    Returns
    -------
    ListwiseLoss
        The pair of the loss and its gradient.

    Raises
    ------
    InputError
        As `listwise_ap`; also if no query has a relevant item, or `weights` are not n numbers of 0
        or more.
    UsageError
        As `listwise_ap`.

    Examples
    --------
    >>> from rankmill.torch import listwise_ap_loss
    >>> loss, gradient = listwise_ap_loss([[0.75, 0.25]], [[1, 0]], bins=2)
    >>> loss
    0.3125
    >>> gradient
    array([[-0.4375,  0.5625]])
    """
    binning = checked_binning(bins, low, high, tied)
    lists = _checked_lists(scores, relevance)
    weight = _checked_weights(weights, len(lists.counts))
    counted = lists.counts > 0
    if not counted.any():
        raise InputError(
            f"none of {len(counted)} queries has a relevant item; the loss is a mean over the "
            "queries with one: leave such a batch out"
        )
    factors = -weight / counted.sum() if gradient else np.empty(0)
    slopes = np.empty(len(lists.scores) if gradient else 0, lists.scores.dtype)
    ap = _score(lists, binning, factors, slopes)
    mean = Mean.of((ap * weight)[counted]).mean
    assert mean is not None  # as there is at least one query
    return ListwiseLoss(1.0 - mean, _shaped_like(lists.given, slopes) if gradient else None)


def checked_binning(bins: Any, low: Any, high: Any, tied: Any) -> Binning:
    """Return the binning of these arguments of `listwise_ap`. Raises UsageError if one is wrong."""
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 2:
        raise UsageError(f"bins is {bins!r}; expected an integer, 2 or more")
    for name, value in (("low", low), ("high", high)):
        number = isinstance(value, int | float | np.integer | np.floating)
        if not number or not math.isfinite(value):
            raise UsageError(f"{name} is {value!r}; expected a finite number")
    if not isinstance(tied, bool | np.bool_):
        raise UsageError(f"tied is {tied!r}; expected True or False")
    binning = Binning(int(bins), float(low), float(high), bool(tied))
    if binning.low >= binning.high:
        raise UsageError(f"low is {low!r} and high {high!r}; expected low below high")
    if not 0 < binning.per_unit < math.inf:
        raise UsageError(
            f"low is {low!r} and high {high!r}; expected a distance that {bins} bins can divide"
        )
    return binning


def _score(
    lists: _ScoredLists, binning: Binning, factors: np.ndarray, out_gradient: np.ndarray
) -> np.ndarray:
    """Return the AP of each query; write the gradient if `factors` (dloss/dAP) is not empty."""
    ap = np.empty(len(lists.counts))

    def work(start: int, end: int) -> bool:
        finite = soft_average_precision(
            lists.offsets[start : end + 1],
            lists.scores,
            lists.relevant,
            lists.counts[start:end],
            binning.bins,
            binning.low,
            binning.high,
            binning.per_unit,
            binning.tied,
            factors[start:end],
            ap[start:end],
            out_gradient,
        )
        return bool(finite)

    threads = available_cpus() if len(lists.scores) >= WORTH_THREADS else 1
    if not all(map_blocks(work, len(ap), threads)):
        _raise_at(
            lists.offsets, lists.scores, ~np.isfinite(lists.scores), "score", "a finite number"
        )
    return ap


def _checked_lists(scores: Any, relevance: Any) -> _ScoredLists:
    if isinstance(scores, Ragged) != isinstance(relevance, Ragged):
        raise UsageError(
            f"scores are a {type(scores).__name__} and relevance a {type(relevance).__name__}; "
            "expected both Ragged or both two-dimensional arrays"
        )
    if isinstance(scores, Ragged):
        if not np.array_equal(scores.offsets, relevance.offsets):
            raise InputError(
                f"the lists of relevance ({len(relevance)}) do not have the same length as those "
                f"of scores ({len(scores)}); expected one relevance per score"
            )
        offsets = scores.offsets
        flat, marks = scores.values, relevance.values
    else:
        scores = _two_dimensional(scores, "scores")
        relevance = _two_dimensional(relevance, "relevance")
        if scores.shape != relevance.shape:
            raise InputError(
                f"relevance is of shape {relevance.shape} and scores of {scores.shape}; expected "
                "one relevance per score"
            )
        offsets = np.arange(len(scores) + 1, dtype=np.int64) * scores.shape[1]
        flat, marks = scores.ravel(), relevance.ravel()
    flat = _numbers(flat, "iuf", "scores")
    if flat.dtype not in (np.float32, np.float64):
        flat = flat.astype(np.float64)
    relevant = _checked_relevance(offsets, _numbers(marks, "biuf", "relevance"))
    counts = np.empty(len(offsets) - 1, np.int64)
    count_relevant(offsets, relevant, counts)
    return _ScoredLists(scores, offsets, flat, relevant, counts)


def _two_dimensional(values: Any, what: str) -> np.ndarray:
    try:
        array = np.asarray(numpy_of(values))
    except ValueError as error:  # raised for lists of different lengths
        raise UsageError(f"{what} are not an array ({error}); expected one, or a Ragged") from None
    if array.ndim != 2:
        raise UsageError(
            f"{what} are {array.ndim}-dimensional; expected an array of shape (queries, items), "
            "or a Ragged"
        )
    return array


def _numbers(values: Any, kinds: str, what: str) -> np.ndarray:
    if isinstance(values, np.ndarray) and values.dtype.kind in kinds:
        return values
    found = values.dtype if isinstance(values, np.ndarray) else values.type
    raise InputError(f"{what} are {found}; expected numbers")


def _checked_relevance(offsets: np.ndarray, marks: np.ndarray) -> np.ndarray:
    if marks.dtype == np.bool_:
        return marks
    relevant: np.ndarray = marks == 1
    wrong = ~relevant & (marks != 0)
    if wrong.any():
        _raise_at(offsets, marks, wrong, "relevance", "0 or 1")
    return relevant


def _checked_weights(weights: Any, count: int) -> np.ndarray:
    if weights is None:
        return np.ones(count)
    array = np.asarray(numpy_of(weights))
    if array.shape != (count,) or array.dtype.kind not in "iuf":
        raise InputError(
            f"weights are {array.dtype} of shape {array.shape}; expected one number per query, "
            f"shape ({count},)"
        )
    array = array.astype(np.float64)
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        place = int(wrong.argmax())
        raise InputError(f"weight {place} is {array[place]}; expected a finite number, 0 or more")
    return array


def _raise_at(
    offsets: np.ndarray, values: np.ndarray, wrong: np.ndarray, what: str, expected: str
) -> None:
    place = int(wrong.argmax())
    query = int(np.searchsorted(offsets, place, side="right")) - 1
    raise InputError(
        f"{what} {place - offsets[query]} of query {query} is {values[place]}; expected {expected}"
    )


def _shaped_like(scores: Any, gradient: np.ndarray) -> Any:
    values = scores.values if isinstance(scores, Ragged) else scores
    if values.dtype.kind == "f":
        gradient = gradient.astype(values.dtype, copy=False)
    if isinstance(scores, Ragged):
        return Ragged(scores.offsets, gradient)
    return gradient.reshape(scores.shape)
