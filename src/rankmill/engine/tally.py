"""Blocks added up."""

from collections import Counter
from typing import Any, Self

import numpy as np

from rankmill.columns.buffers import numbers_of
from rankmill.columns.ids import ids_to_arrow, join_ids, take_ids
from rankmill.engine.job import Plan
from rankmill.engine.score import BlockScores
from rankmill.errors import InputError
from rankmill.kernels.identity import Ids
from rankmill.kernels.lists import first_seen
from rankmill.matching.index import LabelIndex, repeated_query
from rankmill.matching.lookup import look_up
from rankmill.metrics.fingerprints import NOTHING
from rankmill.metrics.mean import MeanState
from rankmill.results import audit


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
