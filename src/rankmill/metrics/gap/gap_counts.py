"""Distinct confidences, and the second pass of gap: counts among the correct ones, and GAP."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from rankmill.errors import UsageError
from rankmill.io.overflow import Overflow
from rankmill.kernels.gap import count_among, sum_ties
from rankmill.kernels.order import sort_floats
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.state_rows import FORMAT, NOTHING, Seen
from rankmill.records import record
from rankmill.threads import Workers

# ------------------------------------------------------------------ distinct confidences
# Beyond memory they are sorted runs in a temporary file, which are read side by side. The bounds
# between which they are read depend on what the runs hold, and no count does on them. Of the second
# pass, confidences are written in portions that are cut at these bounds, once, and those between
# two bounds are then sorted and counted together.


# The sums of gap are computed for this many distinct correct confidences at a time.
RANGE = 1 << 15
# NumPy sorts fewer numbers than this, as kernels for small arrays are not compiled.
FEW = 1 << 16


class Distinct(NamedTuple):
    """Distinct confidences, ascending, and the number of correct predictions with each."""

    values: np.ndarray
    counts: np.ndarray


NONE = Distinct(np.empty(0), np.empty(0, np.int64))


def distinct(parts: Sequence[Any]) -> Distinct:
    """Return the distinct confidences of all parts: of arrays, and of those that were counted."""
    if not any(isinstance(one, Distinct) for one in parts):
        return counted(parts)
    return joined([one if isinstance(one, Distinct) else counted([one]) for one in parts])


def joined(parts: Sequence[Distinct]) -> Distinct:
    """Return the distinct confidences of all parts, each of which has them counted."""
    parts = [one for one in parts if len(one.values)] or parts[:1]
    if len(parts) == 1:  # as where labels without predictions are scored apart
        return parts[0]
    every = np.concatenate([one.values for one in parts])
    counts = np.concatenate([one.counts for one in parts])
    if counts.sum() <= 4 * len(every):  # few are tied, and to sort them is quickest
        return counted([np.repeat(every, counts)])
    values, places = np.unique(every, return_inverse=True)
    sums = np.zeros(len(values), np.int64)
    np.add.at(sums, places, counts)
    return Distinct(values, sums)


def counted(parts: Sequence[np.ndarray]) -> Distinct:
    """Return the distinct confidences of arrays."""
    every = ascending([*parts])
    first = np.flatnonzero(np.append(len(every) > 0, every[1:] != every[:-1]))
    return Distinct(every[first], np.diff(first, append=len(every)))


def narrowed(values: np.ndarray) -> np.ndarray:
    """Return confidences as float32 if it holds all of them: a second pass sorts in such a type."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32, copy=False)
    return narrow if (narrow == values).all() else values


def ascending(parts: list[np.ndarray], kind: Any = np.float32) -> np.ndarray:
    """Return the confidences of arrays, ascending, in a type that holds them all and `kind`.

    The list is emptied, which frees arrays that nothing else holds: sorting takes twice their
    bytes.
    """
    every = np.concatenate([np.empty(0, np.result_type(kind, *parts)), *parts])
    parts.clear()
    if len(every) < FEW:
        every.sort()
        return every
    width = every.itemsize
    bits = every.view(f"i{width}")
    spare = np.empty_like(bits)
    moved = sort_floats(width, bits, spare, np.empty((width, 256), np.int64))
    return (spare if moved else bits).view(every.dtype)


# So many confidences of a run are read at a time: some of each run are in memory.
STEP = 1 << 11
# Between two bounds are so many steps of all runs; in the second pass more, if so many bytes of a
# portion are there for each confidence between them.
STEPS = 128
A_COUNT = 16


class SortedRun(NamedTuple):
    """Distinct confidences, ascending, and their counts in a file, and the first of each `step`."""

    file: Overflow
    heads: np.ndarray
    values: tuple[int, int]
    counts: tuple[int, int]
    kind: np.dtype  # of the counts, most of which are 1
    total: int
    step: int

    def read(self, steps: slice) -> Distinct:
        """Return the confidences of some steps."""

        def within(place: tuple[int, int], kind: Any) -> np.ndarray:
            size = kind.itemsize * self.step
            start, end = (min(size * step, place[1]) for step in (steps.start, steps.stop))
            return np.frombuffer(self.file.read((place[0] + start, end - start)), kind)

        values = within(self.values, np.dtype(np.float64))
        return Distinct(values, within(self.counts, self.kind).astype(np.int64))


class Pieces(NamedTuple):
    """Some confidences in a file, those below each of some bounds together, and where they end."""

    file: Overflow
    place: int
    ends: np.ndarray
    kind: np.dtype

    def read(self, number: int) -> np.ndarray:
        """Return the confidences between two bounds."""
        start, end = self.ends[number : number + 2].tolist()
        size = self.kind.itemsize
        found = self.file.read((self.place + size * start, size * (end - start)))
        return np.frombuffer(found, self.kind)


@record(eq=False)
class RunsFile:
    """Where several threads write runs."""

    file: Overflow
    # Whether some confidences were not kept in memory, so that it is of no use to keep others.
    dropped: bool = False
    # How many confidences of a run are read at a time, and how many such steps of all runs are
    # between two bounds.
    step: int = STEP
    steps: int = STEPS

    def add(self, some: Distinct) -> SortedRun:
        """Write a run; raises ResourceError if that fails."""
        values = some.values.astype(np.float64, copy=False)
        counts = some.counts.astype(np.min_scalar_type(int(some.counts.max(initial=0))))
        at, of_counts = (self.file.add(np.ascontiguousarray(one)) for one in (values, counts))
        heads, total = values[:: self.step].copy(), int(some.counts.sum())
        return SortedRun(self.file, heads, at, of_counts, counts.dtype, total, self.step)

    def split(self, confidences: np.ndarray, bounds: list[float | None]) -> Pieces:
        """Write ascending confidences; raises ResourceError if that fails."""
        ends = np.searchsorted(confidences, _as_kind(bounds[:-1], confidences.dtype))
        place, _ = self.file.add(confidences)
        ends = np.concatenate([[0], ends, [len(confidences)]])
        return Pieces(self.file, place, ends, confidences.dtype)


class _Cursor:
    """Reads a run from its lowest confidence on."""

    def __init__(self, run: SortedRun) -> None:
        self._run, self._step, self._rest = run, 0, NONE

    def below(self, bound: float | None) -> Distinct:
        """Return what is below a bound, or all, that was not returned before."""
        start, heads = self._step, self._run.heads
        self._step = len(heads) if bound is None else int(np.searchsorted(heads, bound))
        parts = self._rest, self._run.read(slice(start, self._step))
        values, counts = (np.concatenate(each) for each in zip(*parts, strict=True))
        end = len(values) if bound is None else int(np.searchsorted(values, bound))
        self._rest = Distinct(values[end:].copy(), counts[end:].copy())
        return Distinct(values[:end], counts[:end])


def bounds_of(runs: Iterable[SortedRun], steps: int = STEPS) -> list[float | None]:
    """Return confidences between which are `steps` steps of runs, or few more; None for the end."""
    heads = np.sort(np.concatenate([np.empty(0), *(one.heads for one in runs)]))
    return [*np.unique(heads[steps::steps]).tolist(), None]


def _as_kind(bounds: list[float | None], kind: np.dtype) -> np.ndarray:
    """Return bounds in another type: the least numbers that are not below them."""
    exact = np.array(bounds, np.float64)
    with np.errstate(over="ignore"):
        found = exact.astype(kind)
    return np.where(found < exact, np.nextafter(found, kind.type(np.inf)), found)


def merged(runs: Iterable[SortedRun], bounds: Iterable[float | None]) -> Iterator[Distinct]:
    """Yield the distinct confidences of all runs below each bound, but none a second time."""
    cursors = [_Cursor(one) for one in runs]
    for bound in bounds:
        yield joined([one.below(bound) for one in cursors])


def everything(runs: tuple[SortedRun, ...], steps: int = STEPS) -> Distinct:
    """Return all distinct confidences of runs, which are read so many steps at a time."""
    parts = list(merged(runs, bounds_of(runs, steps)))
    return Distinct(*(np.concatenate(each) for each in zip(*parts, strict=True)))


@record(frozen=True, eq=False)
class RunsAmong:
    """All confidences among the correct ones, both in a file: the counts of the second pass.

    The correct ones between two bounds are in memory, and of all of them `portion` bytes at a time.
    """

    correct: tuple[SortedRun, ...]
    every: tuple[Pieces, ...]
    bounds: list[float | None]
    portion: int
    seen: Seen = NOTHING

    @property
    def at(self) -> np.ndarray:
        """How many equal each distinct correct confidence; see `Among`."""
        return np.concatenate([NONE.counts, *(one[1] for one in self.ranges())])

    @property
    def above(self) -> np.ndarray:
        """How many are between each distinct correct confidence and the next."""
        return np.concatenate([NONE.counts, *(one[2] for one in self.ranges())])

    def ranges(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, int, int]]:
        """Yield ranges of confidences, ascending: correct ones, those at and above, and sums.

        The sums are how many correct ones stand before all of the range, and how many in all.
        """
        correct_left = sum(one.total for one in self.correct)
        total = sum(int(one.ends[-1]) for one in self.every)
        waiting = np.empty((3, 0), np.int64)
        for more in self._counts():
            waiting = np.hstack([waiting, more])
            whole = max(0, waiting.shape[1] - 1) // RANGE * RANGE
            for start in range(0, whole, RANGE):
                counts, at, below = waiting[:, start : start + RANGE]
                next_below = waiting[2, start + 1 : start + RANGE + 1]
                correct_left -= int(counts.sum())
                yield counts, at, next_below - below - at, correct_left, total - int(next_below[-1])
            waiting = waiting[:, whole:]
        counts, at, below = waiting
        if len(counts):
            yield counts, at, np.append(below[1:], total) - below - at, 0, 0

    def _counts(self) -> Iterator[np.ndarray]:
        """Yield for correct confidences their counts, how many equal each, and are below it."""
        before = 0
        for number, correct in enumerate(merged(self.correct, self.bounds)):
            at, above = np.zeros((2, len(correct.values)), np.int64)
            count = 0
            for confidences in self._between(number):
                count_among(correct.values, confidences, at, above)
                count += len(confidences)
            behind = np.cumsum((at + above)[::-1])[::-1]
            before += count
            yield np.stack([correct.counts, at, before - behind])

    def _between(self, number: int) -> Iterator[np.ndarray]:
        """Yield the confidences between two bounds, each time some of them, ascending."""
        waiting: list[np.ndarray] = []
        for one in self.every:
            waiting.append(one.read(number))
            if 2 * sum(some.nbytes for some in waiting) > self.portion:
                yield ascending(waiting).astype(np.float64, copy=False)
        yield ascending(waiting).astype(np.float64, copy=False)


class RunsCounter:
    """Counts confidences among correct ones that are in runs, in a file as well.

    Portions of all confidences are cut at confidences between which are about as many correct ones.
    """

    def __init__(self, correct: tuple[SortedRun, ...], portion: int, file: RunsFile) -> None:
        self._correct, self._portion, self._file = correct, portion, file
        self._bounds = bounds_of(correct, max(file.steps, portion // (A_COUNT * file.step)))
        self._waiting: list[np.ndarray] = []
        self._every: list[Pieces] = []

    def add(self, confidences: np.ndarray) -> None:
        """Count the confidences of some predictions, correct and wrong ones, in any order."""
        self._waiting.append(confidences)
        if 2 * sum(one.nbytes for one in self._waiting) > self._portion:
            self._write()

    def finish(self) -> RunsAmong:
        """Return the counts of all confidences that were added."""
        self._write()
        return RunsAmong(self._correct, tuple(self._every), self._bounds, self._portion)

    def _write(self) -> None:
        self._every.append(self._file.split(ascending(self._waiting), self._bounds))


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
