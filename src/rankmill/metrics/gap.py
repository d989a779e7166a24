"""Global average precision: one list of all predictions, sorted by confidence."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from rankmill.columns.buffers import arrow_of
from rankmill.columns.numbers import floats_of
from rankmill.errors import InputError, UsageError
from rankmill.kernels.gap import correct_confidences, count_among, sum_ties, take_correct
from rankmill.matching.hits import Hits
from rankmill.metrics import rows
from rankmill.metrics.fingerprints import FORMAT, NOTHING, Seen
from rankmill.threads import available_cpus

# Sums are taken over so many distinct correct confidences at a time.
RANGE = 1 << 15
# Confidences are sorted and counted so many bytes at a time, in a copy.
PORTION = 1 << 26
TIES = ("expected", "worst", "best", "threshold")


class GapValue(NamedTuple):
    """GAP for each way with tied predictions, and how many predictions are tied."""

    expected: float
    worst: float
    best: float
    threshold: float
    tied: int


@dataclass(frozen=True)
class CorrectState:
    """Pass one over confidences: those of the correct predictions.

    Attributes
    ----------
    values : ndarray of float32 or float64
        The distinct confidences, ascending.
    counts : ndarray of int64
        How many correct predictions have each.
    seen : Seen
        All predictions, wrong ones too: the second pass must go over the same.
    """

    values: np.ndarray
    counts: np.ndarray
    seen: Seen = NOTHING

    @classmethod
    def of(cls, parts: Sequence[np.ndarray], seen: Seen = NOTHING) -> Self:
        """The state of the confidences of correct predictions, in any order."""
        dtype = np.result_type(np.float32, *parts)
        values, counts = np.unique(np.concatenate([np.empty(0, dtype), *parts]), return_counts=True)
        return cls(values, counts.astype(np.int64, copy=False), seen)

    def merge(self, other: Self) -> Self:
        """The state of the predictions of both."""
        values, places = np.unique(np.concatenate([self.values, other.values]), return_inverse=True)
        counts = np.zeros(len(values), np.int64)
        np.add.at(counts, places, np.concatenate([self.counts, other.counts]))
        return type(self)(values, counts, self.seen.merge(other.seen))

    def to_row(self) -> dict[str, Any]:
        """A flat row for Arrow: two arrays, and what was seen."""
        return {"values": self.values, "counts": self.counts, **self.seen.to_row()}

    @classmethod
    def from_row(cls, row: rows.Row, prefix: str = "") -> Self:
        """The state that `to_row` made the row of; a list's values are float64.

        Raises
        ------
        UsageError
            If no state has such a row.
        """
        names = f"{prefix}values", f"{prefix}counts"
        values, counts = rows.ascending(row, names[0]), rows.counts(row, names[1], least=1)
        rows.same_length(row, *names)
        seen = rows.seen(row, prefix)
        rows.at_most(seen.predictions, names[1], counts)
        return cls(values, counts, seen)


@dataclass(frozen=True)
class AmongState:
    """Pass two: how all confidences fall among the distinct correct ones of pass one.

    Attributes
    ----------
    at, above : ndarray of int64
        How many confidences equal each of ``CorrectState.values``, and how many lie between it and
        the next.
    seen : Seen
        All confidences that were counted.
    state : str
        The fingerprint of the `State` that they were counted among, and of the metric; empty where
        counts do not leave the evaluation that made them.
    """

    at: np.ndarray
    above: np.ndarray
    seen: Seen = NOTHING
    state: str = ""

    def merge(self, other: Self) -> Self:
        """The counts of both.

        Raises
        ------
        UsageError
            If they were not counted among the same state.
        """
        if self.state != other.state or len(self.at) != len(other.at):
            raise UsageError(
                "these counts were made with two states: second_pass takes the same state for "
                "every part, that of all parts merged"
            )
        return type(self)(
            self.at + other.at, self.above + other.above, self.seen.merge(other.seen), self.state
        )

    def to_row(self) -> dict[str, Any]:
        """A flat row for Arrow: numbers, text, and two arrays of numbers."""
        row = {"format": FORMAT, "state": self.state, "at": self.at, "above": self.above}
        return row | self.seen.to_row()

    @classmethod
    def from_row(cls, row: rows.Row) -> Self:
        """The state that `to_row` made the row of.

        Raises
        ------
        UsageError
            If no state of this format version has such a row.
        """
        rows.check_format(row)
        at, above = rows.counts(row, "at", least=0), rows.counts(row, "above", least=0)
        rows.same_length(row, "at", "above")
        seen = rows.seen(row, prefix="")
        rows.at_most(seen.predictions, "at and above", at, above)
        return cls(at, above, seen, rows.text(row, "state"))


class GapCounter:
    """Counts confidences among the correct ones, some at a time, on threads.

    Counts are integers, so that neither the order nor the portions change a bit.
    """

    def __init__(self, correct: CorrectState, threads: int) -> None:
        self.correct = correct
        self._threads = threads
        self._at = np.zeros(len(correct.values), np.int64)
        self._above = np.zeros(len(correct.values), np.int64)
        self._waiting: list[np.ndarray] = []
        self._bytes_waiting = 0
        # Each portion goes through all values, so that small portions would be slow.
        self._portion = max(PORTION, 2 * correct.values.nbytes)

    def add(self, confidences: np.ndarray) -> None:
        """Count some confidences, correct and wrong ones, in any order."""
        if self._bytes_waiting + confidences.nbytes > self._portion:
            self._count()
        self._waiting.append(confidences)
        self._bytes_waiting += confidences.nbytes

    def finish(self) -> AmongState:
        """What was counted."""
        self._count()
        return AmongState(self._at, self._above)

    def _count(self) -> None:
        waiting, self._waiting, self._bytes_waiting = self._waiting, [], 0
        dtype = np.result_type(self.correct.values, *waiting)
        values = self.correct.values.astype(dtype, copy=False)

        def sort(part: list[np.ndarray]) -> np.ndarray:
            confidences = np.concatenate([np.empty(0, dtype), *part])
            confidences.sort()
            return confidences

        def count(within: slice) -> None:
            for part in parts:
                start = np.searchsorted(part, values[within.start])
                beyond = values[within.stop :]
                stop = np.searchsorted(part, beyond[0]) if len(beyond) else len(part)
                counted = self._at[within], self._above[within]
                count_among(values[within], part[start:stop], *counted)

        with ThreadPoolExecutor(self._threads) as executor:
            count_of_parts = min(self._threads, len(waiting))
            parts = list(
                executor.map(sort, (waiting[i::count_of_parts] for i in range(count_of_parts)))
            )
            list(executor.map(count, _ranges(len(values))))


def difference(correct: CorrectState, among: AmongState) -> str:
    """What the second pass has otherwise than the first; empty if both saw the same predictions."""
    first, second = correct.seen, among.seen
    if first.predictions != second.predictions:
        return (
            f"the first pass saw {first.predictions:,} predictions and the second "
            f"{second.predictions:,}"
        )
    if first != second or (among.at < correct.counts).any():
        return f"both passes saw {first.predictions:,} predictions, but of other confidences"
    return ""


def gap_of_states(correct: CorrectState, among: AmongState, total: int, threads: int) -> GapValue:
    """GAP from the counts of both passes, with `total` in the denominator.

    Sums are taken over fixed ranges of confidences, so that threads do not change a bit.
    """
    ranges = _ranges(len(correct.values))

    def add_up(within: slice, correct_before: int, before: int) -> tuple[np.ndarray, int]:
        sums = np.zeros(5)
        counts = correct.counts[within], among.at[within], among.above[within]
        tied = sum_ties(*counts, correct_before, before, sums)
        return sums, tied

    # The ranges of higher confidence come first.
    correct_before = _sums_behind([correct.counts[within].sum() for within in ranges])
    before = _sums_behind([among.at[within].sum() + among.above[within].sum() for within in ranges])
    with ThreadPoolExecutor(threads) as executor:
        added = list(executor.map(add_up, ranges, correct_before, before))
    sums = np.array([sums for sums, _ in added]).reshape(-1, 5)
    expected, worst, best, threshold = (
        math.fsum(sums[:, (0, way)].ravel()) / total for way in range(1, 5)
    )
    return GapValue(expected, worst, best, threshold, sum(tied for _, tied in added))


def first_confidences(offsets: np.ndarray, confidence: np.ndarray, limit: int) -> np.ndarray:
    """The confidences of the first `limit` predictions of each list."""
    lengths = np.diff(offsets)
    if limit < lengths.max(initial=0):
        ranks = np.arange(len(confidence)) - np.repeat(offsets[:-1], lengths)
        confidence = confidence[ranks < limit]
    return confidence


def correct_of_hits(
    offsets: np.ndarray, hits: Hits, confidence: np.ndarray, limit: int
) -> np.ndarray:
    """The confidences of the hits among the first `limit` predictions of each list."""
    correct = np.empty(len(hits.ranks), confidence.dtype)
    count = correct_confidences(offsets, hits.offsets, hits.ranks, limit, confidence, correct)
    return correct[:count]


def _ranges(count: int) -> list[slice]:
    return [slice(start, start + RANGE) for start in range(0, count, RANGE)]


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
    ties : {"expected", "worst", "best", "threshold"}
        Which value over the orders of tied predictions, or that of one threshold for each tie, as
        in scikit-learn.

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
    threads = available_cpus()
    step = max(1, -(-len(confidence) // threads))

    def take(start: int) -> np.ndarray:
        numbers: np.ndarray = confidence[start : start + step]
        if np.isnan(numbers.max()):
            place = start + int(np.isnan(numbers).argmax())
            raise InputError(f"confidence {place} is NaN; every prediction needs a number")
        right = correct[start : start + step]
        taken = np.empty(np.count_nonzero(right) + 1, numbers.dtype)
        return taken[: take_correct(numbers, right, taken)]

    with ThreadPoolExecutor(threads) as executor:
        state = CorrectState.of(list(executor.map(take, range(0, len(confidence), step))))
    counter = GapCounter(state, threads)
    # All threads sort a piece of each portion.
    pieces = threads * -(-confidence.nbytes // PORTION)
    for piece in np.array_split(confidence, max(1, pieces)):
        counter.add(piece)
    return float(getattr(gap_of_states(state, counter.finish(), total, threads), ties))
