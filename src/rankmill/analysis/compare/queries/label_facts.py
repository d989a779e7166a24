"""What is known of the queries of the labels, gathered while systems are scored."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from rankmill.analysis.compare.queries.page_metrics import Aside, Bin, PageNumbers
from rankmill.analysis.statistics.covariate import Covariate
from rankmill.columns.buffers import floats_of
from rankmill.engine.cuts import Cuts, read_classes, read_table
from rankmill.engine.evaluate import ScoredSystem
from rankmill.engine.held_labels import at_rows, read_label_facts
from rankmill.engine.segments import (
    DERIVED,
    NO_ROW,
    Classes,
    Known,
    Segments,
    segments_of,
    training_of,
)
from rankmill.errors import InputError, UsageError
from rankmill.matching.index import LabelIndex
from rankmill.records import record
from rankmill.sources.files.formats import is_path
from rankmill.sources.inputs.inputs import Input
from rankmill.threads import Workers


class QueryTraits(NamedTuple):
    """What is known of some queries besides their values; None where nothing is asked for."""

    weights: np.ndarray | None = None
    clusters: np.ndarray | None = None  # the code of the cluster of each query
    covariate: Covariate | None = None  # what differences are adjusted by
    segments: Sequence[Segments] = ()  # their slices, a way to cut each

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        weights: np.ndarray | None,
        clusters: np.ndarray | None,
        covariate: Covariate | None,
        classes: Mapping[str, Classes],
    ) -> "QueryTraits":
        """Return what is known of queries, given their weights, and their rows among the labels.

        All else is of the queries of the labels. Behind these the row is -1; such a query, and one
        without a cluster, is a cluster of its own.
        """
        if clusters is not None:
            clusters = np.append(clusters, NO_ROW)[rows]
            alone = np.flatnonzero(clusters < 0)
            clusters[alone] = clusters.max(initial=0) + 1 + np.arange(len(alone))
        covariate = None if covariate is None else covariate.at(rows)
        ways = [segments_of(name, of, rows) for name, of in classes.items()]
        return cls(weights, clusters, covariate, ways)

    def at(self, kept: np.ndarray | None) -> "QueryTraits":
        """Return what is known of the queries at some places; None keeps all."""
        if kept is None:
            return self
        return QueryTraits(
            None if self.weights is None else self.weights[kept],
            None if self.clusters is None else self.clusters[kept],
            None if self.covariate is None else self.covariate.at(kept),
            [way.at(kept) for way in self.segments],
        )


def read_covariate(
    asked: Any, labels: Input, index: LabelIndex, workers: Workers, memory: int
) -> Covariate:
    """Return the covariate that `adjust` asks for, of all queries of the labels.

    Raises an error if a table cannot be read, or does not have one column of numbers.
    """
    if isinstance(asked, str) and not is_path(asked):
        name = asked
        column = every = read_label_facts(labels, index, [name], workers)[name]
    else:
        facts = read_table(asked, labels, workers, memory, kind="number")
        if len(facts.columns) > 1:
            raise UsageError(
                f"the table of adjust has the columns {', '.join(facts.columns)} in addition to "
                "the query ids; expected one: choose it, as in adjust='users.parquet:visits'"
            )
        ((name, every),) = facts.columns.items()
        column = at_rows(facts, index)[name]
    found = Covariate.of(name, *(floats_of(one).astype(np.float64) for one in (every, column)))
    if np.isnan(found.values).all():
        raise InputError(f"adjust: no query of the labels has a number in {name}: check the ids")
    return found


@record
class LabelFacts:
    """What is known of the queries of the labels, gathered while the systems are scored."""

    baseline: str
    cuts: Cuts
    memory: int
    workers: Workers
    ways: Sequence[str]
    bins: dict[str, list[Bin]] = field(default_factory=dict)
    _aside: dict[str, dict[str, tuple[float | None, float | None]]] = field(default_factory=dict)
    _among: np.ndarray | None = None
    _read: dict[str, Classes] = field(default_factory=dict)
    _given: dict[str, Classes] = field(default_factory=dict)
    _known: Known | None = None
    _weights: np.ndarray | None = None
    _clusters: np.ndarray | None = None
    _covariate: Covariate | None = None

    def add(self, one: ScoredSystem) -> None:
        """Add a system."""
        among = one.tally.counted.among_labels
        self._among = among if self._among is None else self._among | among
        self._weights = one.tally.index.weights
        state: Any = one.tally.state
        means = {metric.text: state.aggregates[metric.text] for metric in one.tally.job.aside}
        self._aside[one.name] = {
            name: (mean.mean, mean.standard_error) for name, mean in means.items()
        }
        if self.cuts == Cuts() and not self.ways:
            return
        if self._known is None:
            training = training_of(one.tally.job)
            self._known = Known(one.tally.index, np.zeros(0, np.int64), [], training)
            known = one.labels, one.tally.index, self.workers, self.memory, one.tally.job.part
            self._read, self._clusters = read_classes(self.cuts, *known)
            if self.cuts.adjust is not None:
                self._covariate = read_covariate(self.cuts.adjust, *known[:-1])
            if self.cuts.popularity is not None:
                self._given, _ = read_classes(Cuts(tables=(self.cuts.popularity,)), *known)
        if one.name == self.baseline:
            self._known = self._known._replace(lengths=one.tally.lengths)
        self._known.predicted.append(one.tally.lengths > 0)

    def rows(self, count: int) -> np.ndarray:
        """Return the row of each of `count` queries among the labels; -1 for those behind them."""
        assert self._among is not None  # as there are systems
        rows = np.full(count, NO_ROW)
        of_labels = np.flatnonzero(self._among)
        rows[: len(of_labels)] = of_labels
        return rows

    def of(self, rows: np.ndarray) -> QueryTraits:
        """Return what is known of queries, given their rows among the labels."""
        # Where there are weights, no query is behind the labels: it would be refused.
        weights = None if self._weights is None else self._weights[rows]
        classes = self._read | self._derived(self.cuts.derived)
        return QueryTraits.of(rows, weights, self._clusters, self._covariate, classes)

    def seen(self, aside: Aside, rows: np.ndarray) -> PageNumbers:
        """Return what was computed aside, given the row of each query that counts for all."""
        ways = [segments_of(name, of, rows) for name, of in self._derived(self.ways).items()]
        return PageNumbers(aside, ways, self._aside, self.bins)

    def _derived(self, names: Sequence[str]) -> dict[str, Classes]:
        if self._known is None:
            return {}
        return {name: self._given.get(name) or DERIVED[name][1](self._known) for name in names}
