"""Scoring one block of predictions against the labels, and adding blocks up."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankmill import audit
from rankmill.arranging import arrange
from rankmill.buffers import numbers_of
from rankmill.errors import InputError
from rankmill.fingerprints import NOTHING, Seen
from rankmill.gap import correct_of_hits, first_confidences
from rankmill.hits import Hits, group_hits, match
from rankmill.ids import id_text, ids_to_arrow, join_ids, take_ids
from rankmill.kernels.identity import Ids
from rankmill.kernels.lists import first_seen
from rankmill.labels import LabelIndex, repeated_query
from rankmill.lookup import look_up
from rankmill.metrics import NO_CUTOFF, Metric
from rankmill.pooled import pool
from rankmill.semantics import Semantics
from rankmill.sources.convert import Lists
from rankmill.state import MeanState
from rankmill.ties import runs_of, with_hits_at_ends
from rankmill.values import compute


@dataclass(frozen=True)
class Plan:
    """What to compute: metrics with one value a query, and those over all predictions.

    ``part`` says that there are other queries elsewhere, so that there may be no label here.
    """

    per_query: list[Metric]
    pooled: list[Metric]
    keep_values: bool
    memory: int
    semantics: Semantics
    gains: str = "linear"
    every_row: bool = False
    part: bool = False

    @property
    def limit(self) -> int:
        """The last rank whose hits any metric looks at."""
        if self.semantics.ties_open:  # hits of higher ranks may move up
            return NO_CUTOFF
        return max(metric.limit for metric in (*self.per_query, *self.pooled))

    @property
    def ordered_ties(self) -> bool:
        """Whether gap needs every prediction with its ids, not only counts of confidences."""
        return self.semantics.gap_ties in ("given", "ids") and bool(self.pooled)

    @property
    def keep_rows(self) -> bool:
        """Whether to keep every prediction with its ids, for gap or to show them."""
        return self.ordered_ties or (self.every_row and bool(self.pooled))

    @property
    def largest_cutoff(self) -> int:
        """The largest cutoff asked for, 0 without one."""
        return max((metric.limit if metric.k else 0) for metric in (*self.per_query, *self.pooled))


@dataclass(frozen=True)
class BlockScores:
    """What one block of lists comes to, without the lists."""

    queries: Ids
    place: tuple[str, int]
    input_rows: int
    rows: np.ndarray
    predicted: np.ndarray
    states: list[MeanState]
    values: list[np.ndarray]
    correct: list[np.ndarray]
    kept: list[Any]
    seen: list[Seen]
    audit: dict[str, int]
    counts: dict[str, int]


def score_lists(lists: Lists, index: LabelIndex, plan: Plan) -> BlockScores:
    """Match the lists with the labels of their queries, and compute every metric."""
    semantics = plan.semantics
    lists = arrange(lists, semantics)
    rows = index.find(lists.queries)
    each = semantics.repeated_predictions == "each"
    hits = match(
        index.labels, lists.offsets, lists.items, plan.limit, rows=rows, repeats_count=each
    )
    labelled = hits.label_counts > 0
    predicted = hits.prediction_counts > 0
    unlabelled = predicted & (rows < 0)
    no_relevant = predicted & (rows >= 0) & ~labelled
    _refuse(lists, unlabelled, semantics.unlabelled, "is not among the labels", "unlabelled")
    _refuse(lists, no_relevant, semantics.no_relevant, "is left without a label", "no_relevant")
    order = semantics.order if lists.numbers is not None else "given"
    kept = [_to_keep(lists, hits, plan, order, metric.limit) for metric in plan.pooled]
    if order in ("worst", "best"):
        hits = with_hits_at_ends(hits, lists.offsets, lists.confidences, first=order == "best")
    states, values = _values(lists, hits, plan, order)
    both = labelled & predicted
    return BlockScores(
        queries=lists.queries,
        place=lists.place,
        input_rows=lists.rows,
        rows=rows,
        predicted=predicted,
        states=states,
        values=values,
        correct=[
            correct_of_hits(lists.offsets, hits, lists.confidences, metric.limit)
            for metric in plan.pooled
        ],
        kept=kept,
        seen=[Seen.of(one.confidences if plan.keep_rows else one, plan.part) for one in kept],
        audit={
            "queries_predicted": int(predicted.sum()),
            "queries_in_both": int(both.sum()),
            "queries_only_predicted": int((predicted & ~labelled).sum()),
            "repeated_items": hits.repeats + lists.repeats,
            "null_items": lists.nulls,
            "short_lists": int((both & (hits.prediction_counts < plan.largest_cutoff)).sum()),
            "tied_ranks": lists.tied,
        },
        counts={
            "unlabelled": int(unlabelled.sum()),
            "no_relevant": int(no_relevant.sum()),
            "predicted_labels": int(hits.label_counts[both].sum()),
        },
    )


def _to_keep(lists: Lists, hits: Hits, plan: Plan, order: str, limit: int) -> Any:
    """What gap needs of the first `limit` predictions of each list: all, or their confidences."""
    if plan.keep_rows:
        return pool(lists, hits, limit, order)
    return first_confidences(lists.offsets, lists.confidences, limit)


def _values(
    lists: Lists, hits: Hits, plan: Plan, order: str
) -> tuple[list[MeanState], list[np.ndarray]]:
    """The state of each metric and, if they are kept, its values by query."""
    if order == "expected":
        runs = runs_of(hits, lists.offsets, lists.confidences)
        values = [compute(metric, hits, plan.semantics, runs) for metric in plan.per_query]
        return [MeanState.of(one) for one in values], values if plan.keep_values else []
    patterns = group_hits(hits)
    values = [compute(metric, patterns.hits, plan.semantics) for metric in plan.per_query]
    return (
        [MeanState.of(one, patterns.counts) for one in values],
        [one[patterns.of_query] for one in values] if plan.keep_values else [],
    )


def _refuse(lists: Lists, queries: np.ndarray, choice: str, what: str, field: str) -> None:
    """Raise InputError if one of the queries is there and should not be."""
    if choice == "error" and queries.any():
        source, first_row = lists.place
        row = int(queries.argmax())
        where = f" in row {first_row + row}" if first_row >= 0 else ""
        raise InputError(
            f"{source}: query {id_text(lists.queries, row)}{where} has predictions but {what}, and "
            f"{field} is 'error': drop it, or choose 'skip' or 'zero'"
        )


class Confidences:
    """What gap needs of predictions: the confidences of the correct ones, and of all.

    ``kept`` is None once all take more memory than planned: they are to be read a second time.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.correct: list[list[np.ndarray]] = [[] for _ in plan.pooled]
        self.seen = [NOTHING for _ in plan.pooled]
        self.kept: list[list[Any]] | None = [[] for _ in plan.pooled]
        self._bytes_kept = 0

    def copy(self) -> Self:
        """The same, to be added to on its own; arrays are shared."""
        other = type(self)(self.plan)
        other.correct = [list(parts) for parts in self.correct]
        other.seen = list(self.seen)
        other.kept = None if self.kept is None else [list(parts) for parts in self.kept]
        other._bytes_kept = self._bytes_kept
        return other

    def add(self, block: BlockScores) -> None:
        """Add those of a block; raises InputError if all must be kept and take too much."""
        for correct, new in zip(self.correct, block.correct, strict=True):
            correct.append(new)
        self.seen = [a.merge(b) for a, b in zip(self.seen, block.seen, strict=True)]
        self._bytes_kept += sum(one.nbytes for one in block.kept)
        if self._bytes_kept > self.plan.memory:
            self.kept = None
            if self.plan.keep_rows:
                who = f"gap_ties {self.plan.semantics.gap_ties!r}"
                raise InputError(
                    f"{who if self.plan.ordered_ties else 'gap row by row'} holds all predictions "
                    f"in memory, and they take more than the {self.plan.memory:,} bytes allowed: "
                    "allow more memory"
                    + (", or choose 'expected'" if self.plan.ordered_ties else "")
                )
        if self.kept is not None:
            for kept, new in zip(self.kept, block.kept, strict=True):
                kept.append(new)


class Tally:
    """The sum of all blocks of predictions of one input, or of a range of its queries.

    Of the ranges before it takes over only their confidences.
    """

    def __init__(
        self, index: LabelIndex, plan: Plan, confidences: Confidences | None = None
    ) -> None:
        self.index = index
        self.plan = plan
        self.has_labels = np.diff(index.labels.offsets) > 0
        self.audit = audit.empty()
        self.counts = Counter[str]()
        self.states = [MeanState() for _ in plan.per_query]
        self.confidences = confidences.copy() if confidences else Confidences(plan)
        self.rows = 0
        queries = len(index.queries.keys)
        self.values = [np.zeros(queries) for _ in plan.per_query] if plan.keep_values else []
        # Which queries of the labels are asked about: all, or those with predictions.
        self.asked = np.full(queries, plan.semantics.unpredicted == "zero")
        self._seen = np.zeros(queries, np.bool_)
        self._strangers: list[tuple[Ids, np.ndarray, np.ndarray, tuple[str, int]]] = []

    def add(self, block: BlockScores) -> None:
        """Add a block; raises InputError if one of its queries was there before."""
        rows = block.rows
        repeated = first_seen(rows, self._seen)
        if repeated >= 0:
            raise repeated_query(block.queries, repeated, block.place)
        self.states = [a.merge(b) for a, b in zip(self.states, block.states, strict=True)]
        self.confidences.add(block)
        self.rows += block.input_rows
        self.audit = audit.add(self.audit, block.audit)
        self.counts.update(block.counts)
        strange = np.flatnonzero(rows < 0)
        known = slice(None) if not len(strange) else np.flatnonzero(rows >= 0)
        if self.plan.semantics.unpredicted != "zero":
            self.asked[rows[known]] = block.predicted[known]
        for values, new in zip(self.values, block.values, strict=True):
            values[rows[known]] = new[known]
        if len(strange):
            ids = join_ids([take_ids(block.queries, strange)])  # lets go of the batch's bytes
            self._strangers.append((ids, block.predicted[strange], strange, block.place))

    def strangers(self) -> Ids:
        """The queries with predictions that are not among the labels, by id.

        The order read would depend on how scattered rows were grouped.
        """
        ids = join_ids([take_ids(ids, np.flatnonzero(p)) for ids, p, _, _ in self._strangers])
        import pyarrow.compute as pc

        return take_ids(ids, numbers_of(pc.sort_indices(ids_to_arrow(ids, set()))))

    def check_strangers(self) -> None:
        """Raise InputError if a query without labels was there twice."""
        joined = join_ids([ids for ids, *_ in self._strangers])
        repeated = look_up(joined)[1]
        for ids, _, rows, (source, first_row) in self._strangers:
            if 0 <= repeated < len(rows):
                place = (source, first_row + int(rows[repeated]) - repeated)
                raise repeated_query(ids, repeated, place)
            repeated -= len(rows)
