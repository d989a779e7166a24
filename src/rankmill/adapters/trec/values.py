"""The value of each query, computed as trec_eval does where the last bit depends on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from rankmill.adapters.trec.measures import MeasureColumn
from rankmill.columns.lists import drop_values, offsets_of
from rankmill.columns.ranked_lists import Lists
from rankmill.matching.hits import Hits, as_levels, match, of_least_gain
from rankmill.matching.label_lists import LabelLists
from rankmill.matching.order import within
from rankmill.metrics.base import NO_CUTOFF, Metric
from rankmill.metrics.registry import parse
from rankmill.metrics.values import Matched
from rankmill.semantics.choices import Choices
from rankmill.semantics.scope import Scope

# The least value in a geometric mean.
LEAST = 0.00001


def judged_hits(labels: LabelLists, lists: Lists, rows: np.ndarray, scope: Scope) -> Hits:
    """The predictions that are judged, and all judged items, with whole gains."""
    if scope.drops:
        lists, _ = within(lists, labels, rows, scope)
    among = labels.judged or labels
    found = match(among, lists.offsets, lists.items, NO_CUTOFF, rows=rows).with_label_gains()
    return found._replace(gains=np.trunc(found.gains), label_gains=np.trunc(found.label_gains))


def in_order(parts: Sequence[Hits], order: np.ndarray) -> Hits:
    """The hits of all parts as one, query by query in an order."""

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(one, name) for one in parts])

    def offsets(name: str) -> np.ndarray:
        return offsets_of(np.concatenate([np.diff(getattr(one, name)) for one in parts]))

    together = Hits(
        offsets=offsets("offsets"),
        ranks=joined("ranks"),
        gains=joined("gains"),
        label_counts=joined("label_counts"),
        prediction_counts=joined("prediction_counts"),
        label_offsets=offsets("label_offsets"),
        label_gains=joined("label_gains"),
        discounts=max((one.discounts for one in parts), key=len),
        repeats=0,
    )
    return together.take(order)


# The rows of measures are not redefined, and each batch of a training asks for the same.
_named = lru_cache(1 << 10)(parse)


class Levels:
    """Judged hits as measures see them: relevant from a level on, or with gains of their levels.

    Gains of `judged` are levels; those below 0 are in the pool, and not judged. `documents` is how
    many there are in the collection, for utility.
    """

    def __init__(self, judged: Hits, level: int, semantics: Choices, documents: int = 0) -> None:
        self.judged = judged
        self._semantics = semantics
        self._documents = documents
        self.marked = as_levels(judged, level)
        self._relevant = of_least_gain(self.marked, 1)
        self._of_marked = Matched(self.marked, semantics)
        self._of_relevant = Matched(self._relevant, semantics)
        self._of_gains: dict[tuple[tuple[int, float], ...], Matched] = {}

    def values(self, column: MeasureColumn) -> np.ndarray:
        """The value of each query, float64[n]; 0 in measures that are texts."""
        row, params = column.row, column.params
        if own := getattr(self, f"_{column.measure.lower()}", None):
            return np.asarray(own(*params), np.float64)
        if column.measure == "ideal_dcg":
            return self._of_graded(column).divisors(parse("ndcg"))
        if row.over == "text":
            return np.zeros(len(self.marked.label_counts))
        number = f"{params[0]:.17g}" if params else ""
        values = self._value(row.metric.format(number), column)
        if row.over == "geometric":  # logarithms as C has them: those of NumPy differ in a bit
            values = np.array([math.log(one) for one in np.maximum(values, LEAST).tolist()])
        return values

    def _value(self, name: str, column: MeasureColumn | None = None) -> np.ndarray:
        metric = _named(name)
        matched = self._matched(metric, column)
        values = matched.counts(metric)
        if metric.spec.divisor is not None:
            divisors = matched.divisors(metric)
            values = np.asarray(values / np.where(divisors > 0, divisors, 1))
        if metric.name == "rndcg":  # only with -l 0 may all that is relevant be worth nothing
            relevant, worth = self._counts[2], matched.hits(metric).label_counts
            values = np.where(relevant > 0, np.where(worth > 0, values, np.nan), 0.0)
        return values

    def _matched(self, metric: Metric, column: MeasureColumn | None) -> Matched:
        if metric.spec.needs_judged:
            return self._of_marked
        if column is None or metric.name not in _GRADED:
            return self._of_relevant
        return self._of_graded(column)

    def _of_graded(self, column: MeasureColumn) -> Matched:
        """The hits with the gains of their levels, or those that stand for them in a column."""
        if column.gains not in self._of_gains:
            judged, worth = self.judged, dict(column.gains)
            gains, label_gains = (_worth(one, worth) for one in (judged.gains, judged.label_gains))
            queries = np.repeat(np.arange(len(judged.label_counts)), np.diff(judged.label_offsets))
            label_gains = label_gains[np.lexsort((-label_gains, queries))]
            kept, kept_labels = gains != 0, label_gains > 0
            label_offsets = drop_values(judged.label_offsets, kept_labels)
            hits = judged._replace(
                offsets=drop_values(judged.offsets, kept),
                ranks=judged.ranks[kept],
                gains=gains[kept],
                label_counts=np.diff(label_offsets),
                label_offsets=label_offsets,
                label_gains=label_gains[kept_labels],
            )
            self._of_gains[column.gains] = Matched(hits, self._semantics)
        return self._of_gains[column.gains]

    # ------------------------------------------------------------------ values of its own

    @property
    def _counts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The relevant predictions, all predictions and the relevant items of each query."""
        hits = self._relevant
        return np.diff(hits.offsets), hits.prediction_counts, hits.label_counts

    def _num_q(self) -> np.ndarray:
        return np.ones(len(self.marked.label_counts))

    def _utility(self, a: float, b: float, c: float, d: float) -> np.ndarray:
        found, n, relevant = self._counts
        beside = self._documents + found - n - relevant
        return np.asarray(a * found + b * (n - found) + c * (relevant - found) + d * beside)

    def _set_f(self, x: float) -> np.ndarray:
        found, n, relevant = self._counts
        p, r = found / np.maximum(n, 1), found / np.maximum(relevant, 1)
        below = x * p + r
        return np.asarray((x + 1.0) * p * r / np.where(below != 0, below, 1))

    def _iprec_at_recall(self, recall: float) -> np.ndarray:
        """trec_eval divides 0 by 0 where recall 0 is asked of a list that -J left empty."""
        values, (_, n, relevant) = self._value(f"iprec@{recall:.17g}"), self._counts
        more = 0.9 if self._semantics.recall_rounding == "up" else 0.5
        return np.where((n == 0) & (recall * relevant + more < 1), np.nan, values)

    def _11pt_avg(self, *recalls: float) -> np.ndarray:
        total = np.zeros(len(self.marked.label_counts))
        for recall in sorted(recalls, reverse=True):  # as its sum goes
            total = total + self._iprec_at_recall(recall)
        return np.asarray(total / len(recalls))


_GRADED = ("g", "dcg", "ndcg", "ndcg_rel", "rndcg", "graded_rbp")


def _worth(levels: np.ndarray, gains: dict[int, float]) -> np.ndarray:
    worth: np.ndarray = np.maximum(levels, 0.0)
    for level, gain in gains.items():
        worth[levels == level] = gain
    return worth


def relevance_string(hits: Hits, q: int, length: int) -> str:
    """The levels of the first predictions of a query, a character each."""
    found = ["-"] * min(max(length, 0), int(hits.prediction_counts[q]))
    for h in range(hits.offsets[q], hits.offsets[q + 1]):
        if (place := int(hits.ranks[h]) - 1) < len(found):
            level = int(hits.gains[h])
            found[place] = "." if level < 0 else ">" if level > 9 else str(level)
    return "".join(found)
