"""The second pass of gap: counts of all confidences among the correct ones, and GAP from them."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from rankmill.errors import UsageError
from rankmill.kernels.gap import count_among, sum_ties
from rankmill.metrics.gap.distinct import RANGE, Distinct, RunsAmong, ascending
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.state_rows import FORMAT, NOTHING, Seen
from rankmill.records import record
from rankmill.threads import Workers

# Confidences are copied, sorted and counted when that takes so many bytes, twice their own.
PORTION = 1 << 26


class GapValue(NamedTuple):
    """GAP for each way to treat ties, and the number of tied predictions."""

    expected: float
    worst: float
    best: float
    threshold: float
    tied: int


@record(frozen=True, eq=False)
class Among:
    """The counts of the second pass: all confidences among the distinct correct ones."""

    # int64: for each distinct correct confidence, the number of confidences that equal it, and the
    # number between it and the next higher one.
    at: np.ndarray
    above: np.ndarray
    seen: Seen = NOTHING  # a summary of all confidences that were counted
    # The fingerprint of the `State` with the correct confidences, and of the metric. It is empty if
    # the counts stay within the evaluation that made them.
    state: str = ""

    def merge(self, other: Self) -> Self:
        """Return the counts of the confidences of both.

        UsageError if they were counted among different states.
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
        """Return a flat row for Arrow: numbers, text, and two arrays of numbers."""
        row = {"format": FORMAT, "state": self.state, "at": self.at, "above": self.above}
        return state_rows.sealed(row | self.seen.to_row())

    @classmethod
    def from_row(cls, row: state_rows.Row) -> Self:
        """Return the counts from a row that `to_row` made.

        UsageError if the row has another format version, or is not one of such counts.
        """
        state_rows.check_format(row)
        state_rows.check_seal(row, names=("format", "state", "at", "above", *Seen._fields))
        at, above = state_rows.counts(row, "at", least=0), state_rows.counts(row, "above", least=0)
        state_rows.same_length(row, "at", "above")
        seen = state_rows.seen(row, prefix="")
        state_rows.at_most(seen.predictions, "at and above", at, above)
        return cls(at, above, seen, state_rows.text(row, "state"))


def merged_counts(some: Mapping[str, Among] | Iterable[Mapping[str, Among]]) -> dict[str, Among]:
    """Return what parts counted, by metric; what is merged already, as it is."""
    found: dict[str, Among] = {}
    for part in [some] if isinstance(some, Mapping) else some:
        for name, one in part.items():
            found[name] = found[name].merge(one) if name in found else one
    return found


class GapCounter:
    """Counts confidences among the correct ones, in portions and on threads.

    Counts are integers, so neither the order nor the portions change a bit.
    """

    def __init__(self, correct: Distinct, workers: Workers, portion: int = 0) -> None:
        self.correct = correct
        self._workers = workers
        self._at = np.zeros(len(self.correct.values), np.int64)
        self._above = np.zeros(len(self.correct.values), np.int64)
        self._waiting: list[np.ndarray] = []
        self._bytes_waiting = 0
        # Each portion is compared with all correct values, so small portions would be slow.
        self._portion = max(portion or PORTION, 2 * self.correct.values.nbytes)

    def add(self, confidences: np.ndarray) -> None:
        """Count the confidences of some predictions, correct and wrong ones, in any order."""
        if 2 * (self._bytes_waiting + confidences.nbytes) > self._portion:
            self._count()
        self._waiting.append(confidences)
        self._bytes_waiting += confidences.nbytes

    def finish(self) -> Among:
        """Return the counts of all confidences that were added."""
        self._count()
        return Among(self._at, self._above)

    def _count(self) -> None:
        waiting, self._waiting, self._bytes_waiting = self._waiting, [], 0
        dtype = np.result_type(self.correct.values, *waiting)
        values = self.correct.values.astype(dtype, copy=False)

        def sort(part: list[np.ndarray]) -> np.ndarray:
            return ascending(part, dtype)

        def count(within: slice) -> None:
            for part in parts:
                start = np.searchsorted(part, values[within.start])
                beyond = values[within.stop :]
                stop = np.searchsorted(part, beyond[0]) if len(beyond) else len(part)
                counted = self._at[within], self._above[within]
                count_among(values[within], part[start:stop], *counted)

        count_of_parts = min(self._workers.threads, len(waiting))
        shares = [waiting[i::count_of_parts] for i in range(count_of_parts)]
        waiting.clear()
        parts = list(self._workers.map(sort, shares))
        list(self._workers.map(count, _ranges(len(values))))


def gap_of_counts(
    correct: Distinct, among: Among | RunsAmong, total: int, workers: Workers
) -> GapValue:
    """Return GAP from the counts of both passes; `total` is the denominator.

    The sums are computed over fixed ranges of confidences, so threads do not change a bit.
    """
    if isinstance(among, RunsAmong):
        return _gap_of_ranges(among.ranges(), total, workers)
    ranges = _ranges(len(correct.values))
    # Predictions of higher confidence come first, and their ranges are at the end.
    correct_before = _sums_behind([correct.counts[within].sum() for within in ranges])
    before = _sums_behind([among.at[within].sum() + among.above[within].sum() for within in ranges])
    each = (
        (correct.counts[within], among.at[within], among.above[within], *sums)
        for within, *sums in zip(ranges, correct_before, before, strict=True)
    )
    return _gap_of_ranges(each, total, workers)


def _gap_of_ranges(ranges: Iterable[tuple[Any, ...]], total: int, workers: Workers) -> GapValue:
    def add_up(one: tuple[Any, ...]) -> tuple[np.ndarray, int]:
        sums = np.zeros(5)
        tied = sum_ties(*one, sums)
        return sums, tied

    added = list(workers.map(add_up, ranges))
    sums = np.array([sums for sums, _ in added]).reshape(-1, 5)
    expected, worst, best, threshold = (
        math.fsum(sums[:, (0, way)].ravel()) / total for way in range(1, 5)
    )
    return GapValue(expected, worst, best, threshold, sum(tied for _, tied in added))


def _ranges(count: int) -> list[slice]:
    return [slice(start, start + RANGE) for start in range(0, count, RANGE)]


def _sums_behind(counts: list[np.integer]) -> list[int]:
    """Return for each count the sum of the counts after it."""
    return [0, *np.cumsum(counts[:0:-1], dtype=np.int64).tolist()][::-1] if counts else []
