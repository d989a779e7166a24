"""Scoring one block of predictions against the labels, and adding blocks up."""

from dataclasses import dataclass

import numpy as np

from rankmill import audit
from rankmill.gap import correct_of_hits, first_confidences
from rankmill.hits import group_hits, match
from rankmill.ids import join_ids, take_ids
from rankmill.kernels.identity import Ids
from rankmill.kernels.lists import first_seen
from rankmill.labels import LabelIndex, hash_table, repeated_query
from rankmill.metrics import Metric, compute
from rankmill.sources.convert import Lists
from rankmill.state import MeanState


@dataclass(frozen=True)
class Plan:
    """What to compute: metrics with one value a query, and those over all predictions."""

    per_query: list[Metric]
    pooled: list[Metric]
    keep_values: bool
    memory: int

    @property
    def limit(self) -> int:
        """The last rank that any metric looks at."""
        return max(metric.limit for metric in (*self.per_query, *self.pooled))

    @property
    def largest_cutoff(self) -> int:
        """The largest cutoff asked for, 0 without one."""
        return max((metric.limit if metric.k else 0) for metric in (*self.per_query, *self.pooled))


@dataclass(frozen=True)
class BlockScores:
    """What one block of lists comes to."""

    lists: Lists
    rows: np.ndarray
    states: list[MeanState]
    values: list[np.ndarray]
    correct: list[np.ndarray]
    confidences: list[np.ndarray]
    audit: dict[str, int]


def score_lists(lists: Lists, index: LabelIndex, plan: Plan) -> BlockScores:
    """Match the lists with the labels of their queries, and compute every metric."""
    rows = index.find(lists.queries)
    labels = index.gather(rows)
    hits = match(labels, lists.offsets, lists.items, plan.limit)
    labelled = hits.label_counts > 0
    predicted = hits.prediction_counts > 0
    patterns = group_hits(hits)
    values = [compute(metric, patterns.hits) for metric in plan.per_query]
    both = labelled & predicted
    return BlockScores(
        lists=lists,
        rows=rows,
        states=[MeanState.of(one, patterns.counts) for one in values],
        values=[one[patterns.of_query] for one in values] if plan.keep_values else [],
        correct=[
            correct_of_hits(lists.offsets, hits, lists.confidences, metric.limit)
            for metric in plan.pooled
        ],
        confidences=[
            first_confidences(lists.offsets, lists.confidences, metric.limit)
            for metric in plan.pooled
        ],
        audit={
            "queries_predicted": int(predicted.sum()),
            "queries_in_both": int(both.sum()),
            "queries_only_predicted": int((predicted & ~labelled).sum()),
            "repeated_items": hits.repeats,
            "null_items": lists.nulls,
            "short_lists": int((both & (hits.prediction_counts < plan.largest_cutoff)).sum()),
            "tied_ranks": lists.tied,
        },
    )


class Tally:
    """The sum of all blocks of predictions of one input."""

    def __init__(self, index: LabelIndex, plan: Plan) -> None:
        self.index = index
        self.plan = plan
        self.labelled = int((np.diff(index.labels.offsets) > 0).sum())
        self.audit = audit.empty()
        self.states = [MeanState() for _ in plan.per_query]
        self.correct: list[list[np.ndarray]] = [[] for _ in plan.pooled]
        # None once they take more memory than planned: they are to be read a second time.
        self.confidences: list[list[np.ndarray]] | None = [[] for _ in plan.pooled]
        self._bytes_kept = 0
        queries = len(index.queries.keys)
        self.values = [np.zeros(queries) for _ in plan.per_query] if plan.keep_values else []
        self._seen = np.zeros(queries, np.bool_)
        self._strangers: list[tuple[Ids, np.ndarray, tuple[str, int]]] = []

    def add(self, block: BlockScores) -> None:
        """Add a block; raises InputError if one of its queries was there before."""
        lists, rows = block.lists, block.rows
        repeated = first_seen(rows, self._seen)
        if repeated >= 0:
            raise repeated_query(lists.queries, repeated, lists.place)
        self.states = [a.merge(b) for a, b in zip(self.states, block.states, strict=True)]
        for kept, new in zip(self.correct, block.correct, strict=True):
            kept.append(new)
        self._keep(block.confidences)
        self.audit = audit.add(self.audit, block.audit)
        known = rows >= 0
        for values, new in zip(self.values, block.values, strict=True):
            values[rows[known]] = new[known]
        if not known.all():
            strange = np.flatnonzero(~known)
            self._strangers.append((take_ids(lists.queries, strange), strange, lists.place))

    def _keep(self, confidences: list[np.ndarray]) -> None:
        self._bytes_kept += sum(one.nbytes for one in confidences)
        if self._bytes_kept > self.plan.memory:
            self.confidences = None
        if self.confidences is not None:
            for kept, new in zip(self.confidences, confidences, strict=True):
                kept.append(new)

    def check_strangers(self) -> None:
        """Raise InputError if a query without labels was there twice."""
        joined = join_ids([ids for ids, _, _ in self._strangers])
        repeated = hash_table(joined)[1]
        for ids, rows, (source, first_row) in self._strangers:
            if 0 <= repeated < len(rows):
                place = (source, first_row + int(rows[repeated]) - repeated)
                raise repeated_query(ids, repeated, place)
            repeated -= len(rows)
