"""The aggregate of gap: confidences of correct predictions, and of all others while they fit.

Where ties are ordered by ids or as given, all predictions are held, in one list by falling
confidence, with the terms that gap adds up.
"""

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.columns.ids import ids_to_arrow, join_ids, take_ids
from rankmill.columns.ranked_lists import Lists
from rankmill.errors import InputError
from rankmill.kernels.identity import Ids
from rankmill.matching.hits import Hits
from rankmill.matching.order import ranks_of
from rankmill.metrics.aggregate import (
    Aggregate,
    AggregateSettings,
    Needs,
    ScoredBlock,
    Totals,
    Value,
)
from rankmill.metrics.gap.gap_counts import (
    NONE,
    PORTION,
    Among,
    Distinct,
    GapCounter,
    RunsAmong,
    RunsCounter,
    RunsFile,
    SortedRun,
    distinct,
    everything,
    gap_of_counts,
    narrowed,
)
from rankmill.metrics.needs import ORDERED_TIES, Confidences, given
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.record import Kind
from rankmill.metrics.records.state_rows import NOTHING, Seen, digest
from rankmill.records import record
from rankmill.threads import Workers

# The share of the room that confidences of correct predictions may take before they are counted.
SHARE = 16


def _in_row(name: str, parts: Sequence[Any]) -> dict[str, Any]:
    """Return the confidences as float64, so that rows of all parts make one table."""
    values, counts = distinct(parts)
    return {"values": values.astype(np.float64), "counts": counts}


def _from_row(row: state_rows.Row, prefix: str, name: str) -> tuple[Distinct]:
    names = f"{prefix}values", f"{prefix}counts"
    values, counts = state_rows.ascending(row, names[0]), state_rows.counts(row, names[1], least=1)
    found = Distinct(narrowed(values), counts)
    state_rows.same_length(row, *names)
    return (found,)


@record(frozen=True, eq=False)
class Gap(Aggregate):
    """The first pass: the confidences of the correct predictions, and all others while they fit."""

    passes = 2
    streamed: ClassVar[bool] = True  # whether its value needs no confidence in memory
    of_total: ClassVar[bool] = True  # whether it is divided by the divisor, which may be few
    needs: ClassVar[Needs] = (Confidences,)

    # Confidences of correct predictions, each part in the order found or already counted.
    parts: Annotated[tuple[Any, ...], Kind(operator.add, _in_row, _from_row)] = ()
    # A summary of all predictions, which the second pass must see again.
    seen: Annotated[Seen, Kind(Seen.merge, lambda _, seen: seen.to_row(), state_rows.seen)] = (
        NOTHING
    )
    # The confidences of all predictions, or `PooledPredictions`. None once they leave too little of
    # ``room`` bytes to count them; then they are read a second time. ``kept_bytes`` is the size of
    # what is kept now.
    kept: tuple[Any, ...] | None = None
    kept_bytes: int = 0
    room: int = 0
    keep_rows: str = ""  # the option that needs the predictions themselves; empty if none does
    # Where confidences of correct predictions go that take more than a share of the room; None if
    # they stay in memory. ``runs`` are those in it, ``bytes_of_parts`` the size of the others.
    file: RunsFile | None = None
    runs: tuple[SortedRun, ...] = ()
    bytes_of_parts: int = 0

    @classmethod
    def init(cls, asked: AggregateSettings) -> Self:
        """Return the aggregate of no prediction."""
        # A file is of no use to another process that runs the second pass.
        spills = cls.streamed and not asked.checksum and not asked.keep_rows
        file = RunsFile(asked.file) if spills and asked.file else None
        return cls(kept=(), room=asked.memory, keep_rows=asked.keep_rows, file=file)

    @classmethod
    def of(cls, parts: Sequence[np.ndarray], seen: Seen = NOTHING) -> Self:
        """Return the aggregate of the confidences of correct predictions, in any order."""
        return cls(tuple(parts), seen)

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        """Return the aggregate with the predictions of a block."""
        lists, hits, limit = scored.lists, scored.hits, asked.metric.limit
        kept: Any
        if asked.keep_rows:
            kept = pool(lists, scored.found, limit, scored.order)
            confidences = kept.confidences
        else:
            kept = confidences = first_confidences(lists.offsets, lists.confidences, limit)
        correct = correct_of_hits(lists.offsets, hits, lists.confidences, limit)
        seen = Seen.of(confidences, asked.checksum)
        # Once they are dropped, blocks that wait to be merged hold none either.
        dropped = self.file is not None and self.file.dropped
        all_kept = None if dropped else (kept,)
        block = replace(self, parts=(correct,), seen=seen, kept=all_kept, kept_bytes=kept.nbytes)
        return self.merge(replace(block, bytes_of_parts=correct.nbytes))

    @property
    def held_bytes(self) -> int:
        """The bytes of the confidences in memory."""
        return self.bytes_of_parts + (0 if self.kept is None else self.kept_bytes)

    def merge(self, other: Self) -> Self:
        """Return the aggregate of the predictions of both."""
        kept, size = None, self.kept_bytes + other.kept_bytes
        if self.keep_rows and size > self.room:
            raise self._too_many()
        held = self.bytes_of_parts + other.bytes_of_parts
        # To count them takes a quarter of their bytes, and four times those of the correct ones.
        needed = size if self.keep_rows else size + size // 4 + 4 * held
        if self.kept is not None and other.kept is not None and needed <= self.room:
            kept = (*self.kept, *other.kept)
        if kept is None and self.file is not None:
            self.file.dropped = True
        both, runs = super().merge(other), (*self.runs, *other.runs)
        if self.file is not None and held > self.room // SHARE:
            runs, held = (*runs, self.file.add(distinct(both.parts))), 0
            both = replace(both, parts=())
        return replace(both, kept=kept, kept_bytes=size, runs=runs, bytes_of_parts=held)

    def _too_many(self) -> InputError:
        ordered = self.keep_rows.startswith("gap_ties")
        return InputError(
            f"{self.keep_rows} holds all predictions in memory, and they take more than the "
            f"{self.room:,} bytes allowed: allow more memory"
            + (", or choose 'expected'" if ordered else "")
        )

    def small(self) -> Self:
        """Return the aggregate without what it kept."""
        return replace(self, kept=None)

    @property
    def correct(self) -> Distinct:
        """The distinct confidences of correct predictions, with their counts.

        They take the place of the parts that they were counted from.
        """
        if self.runs:
            return distinct([everything(self.runs), *self.parts])
        if len(self.parts) != 1 or not isinstance(self.parts[0], Distinct):
            object.__setattr__(self, "parts", (distinct(self.parts),))
        found: Distinct = self.parts[0]
        return found

    def held(self) -> Iterator[np.ndarray] | None:
        """Return the confidences of all predictions, or None if they were not kept."""
        if self.kept is None:
            return None
        return (one.confidences if self.keep_rows else one for one in self.kept)

    def counter(self, workers: Workers) -> GapCounter | RunsCounter:
        """Return the counter of all confidences among the correct ones."""
        portion = min(PORTION, self.room // SHARE)
        if self.file is not None and self.runs:
            runs = (*self.runs, self.file.add(distinct(self.parts)))
            return RunsCounter(runs, portion, self.file)
        return GapCounter(self.correct, workers, portion)

    def without(self, some: Self, among: Any, workers: Workers) -> tuple[Self, Among] | None:
        """Return it and the counts of all others without some of its predictions.

        None is returned if these were not kept, or the correct ones of all are in a file.
        """
        held = some.held()
        if held is None or isinstance(among, RunsAmong):
            return None
        counter = GapCounter(self.correct, workers)
        for one in held:
            counter.add(one)
        return self.less(some, among, counter.finish())

    def less(self, some: Self, among: Among, own: Among) -> tuple[Self, Among]:
        """Return the same, given where those predictions stand among all correct ones."""
        (values, counts), less = self.correct, some.correct
        counts = counts.copy()
        counts[np.searchsorted(values, less.values)] -= less.counts
        at, above = among.at - own.at, among.above - own.above
        kept = np.flatnonzero(counts)
        # What equals a confidence that is no longer correct is above the next lower one that is.
        above = np.where(counts > 0, above, at + above)
        above = np.add.reduceat(above, kept) if len(kept) else above[:0]
        predictions = self.seen.predictions - some.seen.predictions
        seen = self.seen._replace(predictions=predictions)
        parts = (Distinct(values[kept], counts[kept]),)
        return replace(self, parts=parts, seen=seen, kept=None), Among(at[kept], above)

    def fingerprint(self, text: str) -> str:
        """Return a hash of a text and of the confidences of correct predictions."""
        return digest(text, *self.correct)

    def difference(self, among: Among) -> str:
        """Say how counts of the second pass differ from this; kernels trust checked counts.

        UsageError if the counts cannot come from a second pass.
        """
        self.from_row(self.to_row())
        among.from_row(among.to_row())
        correct, first, second = self.correct, self.seen, among.seen
        if len(among.at) != len(correct.values):
            return "the second pass counted among another state, of other confidences"
        if first.predictions != second.predictions:
            return (
                f"the first pass saw {first.predictions:,} predictions and the second "
                f"{second.predictions:,}"
            )
        if first != second or (among.at < correct.counts).any():
            return f"both passes saw {first.predictions:,} predictions, but of other confidences"
        return ""

    def total(self, totals: Totals) -> int:
        """Return the divisor of gap; 0 means that gap has no value.

        If the divisor is the number of hits and there are none, gap is 0, as in scikit-learn.
        """
        if totals.semantics.gap_total == "hits":
            return max(1, sum(one.total for one in self.runs) + sum(map(_size, self.parts)))
        return totals.gap_total

    def finish(self, totals: Totals) -> Value:
        """Return GAP with ties as the semantics ask, and its bounds over all orders of ties."""
        total, ties = self.total(totals), totals.semantics.gap_ties
        correct = NONE if isinstance(totals.among, RunsAmong) else self.correct
        found = gap_of_counts(correct, totals.among, max(1, total), given(totals.workers))
        if not total:
            return Value(None, tied=found.tied)
        if ties in ORDERED_TIES:  # a slice may have no predictions
            kept = list(self.kept or ())
            value = math.fsum(rank_pooled(join(kept), ties).terms) / total if kept else 0.0
        else:
            value = getattr(found, ties)
        return Value(value, None, (found.worst, found.best), found.tied)

    def to_row(self) -> dict[str, Any]:
        """Return a flat row for Arrow: two arrays, and the summary of all predictions."""
        return super(Gap, replace(self, parts=(self.correct,))).to_row()

    def check(self, row: state_rows.Row, prefix: str) -> None:
        """Raise UsageError if more predictions are correct than there are."""
        state_rows.at_most(self.seen.predictions, f"{prefix}counts", self.correct.counts)


def _size(part: Any) -> int:
    return int(part.counts.sum()) if isinstance(part, Distinct) else len(part)


def first_confidences(offsets: np.ndarray, confidence: np.ndarray, limit: int) -> np.ndarray:
    """Return the confidences of the first `limit` predictions of each list."""
    if limit < np.diff(offsets).max(initial=0):
        confidence = confidence[ranks_of(offsets) <= limit]
    return confidence


def correct_of_hits(
    offsets: np.ndarray, hits: Hits, confidence: np.ndarray, limit: int
) -> np.ndarray:
    """Return the confidences of the hits among the first `limit` predictions of each list."""
    return np.asarray(confidence[hits.places(offsets)[hits.ranks <= limit]])


class PooledPredictions(NamedTuple):
    """Predictions in the given order: query, item, confidence, and whether each is correct."""

    queries: Ids
    items: Ids
    confidences: np.ndarray
    correct: np.ndarray

    @property
    def nbytes(self) -> int:
        """The bytes that the predictions take in memory."""
        arrays = (*self.queries[:-1], *self.items[:-1], self.confidences, self.correct)
        return sum(array.nbytes for array in arrays)


class Terms(NamedTuple):
    """Ranked predictions: their places before ranking, P(i), and the term of each in gap's sum."""

    order: np.ndarray
    precision: np.ndarray
    terms: np.ndarray


def pool(lists: Lists, hits: Hits, limit: int, order: str = "given") -> PooledPredictions:
    """Pool the first `limit` predictions of each list; `order` may move hits ("worst", "best")."""
    lengths = np.diff(lists.offsets)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    ranks = np.arange(len(rows)) - lists.offsets[rows]
    gains = np.zeros(len(rows))
    gains[hits.places(lists.offsets)] = hits.gains
    places = np.arange(len(rows))
    if order in ("worst", "best"):
        places = np.lexsort((gains if order == "worst" else -gains, -lists.confidences, rows))
    kept = places[ranks < limit]
    return PooledPredictions(
        take_ids(lists.queries, rows[kept]),
        take_ids(lists.items, kept),
        lists.confidences[kept],
        gains[kept] > 0,
    )


def join(parts: list[PooledPredictions]) -> PooledPredictions:
    """Return all predictions in the order of the parts."""
    return PooledPredictions(
        join_ids([part.queries for part in parts]),
        join_ids([part.items for part in parts]),
        np.concatenate([part.confidences for part in parts]),
        np.concatenate([part.correct for part in parts]),
    )


def rank_pooled(pooled: PooledPredictions, ties: str) -> Terms:
    """Rank predictions by falling confidence, and equal ones as `Choices.gap_ties` says.

    P(i) is the share of correct ones among the first i. The term of i is P(i) if i is correct, else
    0. With "threshold", P(i) is the value at the end of a tie. With "expected", both are expected
    values over all orders of the tie.
    """
    order = _order(pooled, ties)
    confidences = pooled.confidences[order]
    correct = pooled.correct[order].astype(np.int64)
    found = correct.cumsum()
    ranks = np.arange(1, len(order) + 1)
    if ties not in ("expected", "threshold"):
        precision = found / ranks
        return Terms(order, precision, precision * correct)
    starts = np.flatnonzero(np.append(True, confidences[1:] != confidences[:-1])[: len(order)])
    sizes = np.diff(np.append(starts, len(order)))
    hits = np.add.reduceat(correct, starts) if len(starts) else correct
    of_run = np.repeat(np.arange(len(starts)), sizes)
    before = np.append(0, hits.cumsum())[:-1][of_run] if len(starts) else correct
    sizes, hits, starts = sizes[of_run], hits[of_run], starts[of_run]
    if ties == "threshold":
        precision = (before + hits) / (starts + sizes)
        return Terms(order, precision, precision * correct)
    place = ranks - starts
    growth = (hits - 1) / np.maximum(1, sizes - 1)
    terms = hits / sizes * (before + 1 + (place - 1) * growth) / ranks
    return Terms(order, (before + place * hits / sizes) / ranks, terms)


def _order(pooled: PooledPredictions, ties: str) -> np.ndarray:
    if ties == "ids":
        columns = {
            "confidence": arrow_of(pooled.confidences),
            "query": ids_to_arrow(pooled.queries, set()),
            "item": ids_to_arrow(pooled.items, set()),
        }
        directions = [("confidence", "descending"), ("query", "ascending"), ("item", "ascending")]
        import pyarrow.compute as pc

        return numbers_of(pc.sort_indices(pa.table(columns), sort_keys=directions))
    if ties in ("worst", "best"):
        last = pooled.correct if ties == "worst" else ~pooled.correct
        return np.lexsort((last, -pooled.confidences))
    return np.argsort(-pooled.confidences, kind="stable")
