"""What is known of the queries of the labels, and what is computed aside for a page."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from rankmill.analysis.statistics.paired_differences import Covariate
from rankmill.columns.buffers import floats_of
from rankmill.engine.cuts import Cuts, read_classes, read_table
from rankmill.engine.evaluate import ScoredSystem
from rankmill.engine.held_labels import at_rows, read_label_facts
from rankmill.engine.job import Job
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
from rankmill.metrics.base import REL, Metric, MetricSpec
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.gap.gap_counts import Distinct
from rankmill.metrics.registry import is_defined
from rankmill.records import record
from rankmill.sources.files.formats import is_path
from rankmill.sources.inputs.inputs import Input
from rankmill.threads import Workers

# ------------------------------------------------------------------ what is computed aside

WAYS = ("label_count", "label_popularity")
"""What the queries are cut by, besides what is asked for."""

CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)
MOST_RANKS = 20
# So many metrics get a line over cutoffs: each takes half a dozen further ones.
MOST_LINES = 4
# Bins of predictions by confidence, and of how many predictions their ends are made.
BINS, SAMPLE = 20, 1_000_000

# Not in the registry, as nobody asks for it: unlike precision it is divided by nothing, whatever
# the semantics divide by.
_HITS = MetricSpec(
    name="hits",
    kernel="count_hits",
    expected="count_hits",
    definition="hits within k",
    range="0 to k",
    source="",
    parameters=(REL,),
)


class Aside(NamedTuple):
    """The metrics that are computed aside: for lines over cutoffs, and for hits by rank."""

    cutoffs: dict[str, list[Metric]]
    hits: list[Metric]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All of them, each once."""
        every = [one for of in self.cutoffs.values() for one in of] + self.hits
        return tuple({one.text: one for one in every}.values())


def aside_of(job: Job) -> Aside:
    """Return what to compute aside for the metrics of a job."""
    rel, semantics, asked = job.scope.rel, job.semantics, job.metrics
    limit = max(one.limit for one in asked)
    lines = [one for one in asked if one.spec.kernel and one.spec.cutoff != "none"]
    cutoffs = {
        one.text: [
            each
            for k in CUTOFFS
            if k < one.limit and is_defined(each := _at(one.spec, k, one.given), semantics)
        ]
        for one in lines[:MOST_LINES]
    }
    of_rel = () if rel is None else ((REL.name, float(rel)),)
    hits = [_at(_HITS, k, of_rel) for k in range(1, min(limit, MOST_RANKS) + 1)]
    if "one" in (semantics.no_relevant, semantics.unlabelled):
        hits = []  # queries that score 1 without a hit would count as hits
    return Aside(cutoffs, hits)


def _at(spec: MetricSpec, k: int, given: tuple[tuple[str, float], ...]) -> Metric:
    # The name is one that nobody can ask for.
    return Metric(spec, k, f"{spec.name} {given} at {k}", given)


class Bin(NamedTuple):
    """Some of the predictions, next to each other by confidence; `confidence` is the mean one."""

    low: float
    high: float
    confidence: float
    predictions: int
    correct: int


class PageNumbers(NamedTuple):
    """What was computed aside."""

    asked: Aside
    ways: list[Segments]  # the slices of the queries that count for all systems, by each of `WAYS`
    # System -> the text of a metric aside -> its value and error over all queries of the system.
    values: dict[str, dict[str, tuple[float | None, float | None]]]
    bins: dict[str, list[Bin]]  # as in `Details`

    def at(self, kept: np.ndarray) -> "PageNumbers":
        """Return this with the slices of some of the queries."""
        return self._replace(ways=[way.at(kept) for way in self.ways])


def bins_of(gap: Gap, workers: Workers) -> list[Bin]:
    """Return all predictions in `BINS` bins of about the same size; none if they are not held.

    Equal confidences are in the same bin.
    """
    parts = list(gap.held() or ())
    size = sum(map(len, parts))
    if not size:
        return []
    # A sample tells well enough where the bins end, and sorting all would take most of the time.
    step = max(1, size // SAMPLE)
    sample = np.concatenate([one[::step] for one in parts])
    ends = np.unique(np.quantile(sample, np.arange(1, BINS) / BINS))

    many = len(ends) + 1

    def bins(confidences: np.ndarray) -> np.ndarray:
        return np.searchsorted(ends.astype(confidences.dtype), confidences, side="left")

    def add_up(one: np.ndarray) -> np.ndarray:
        places = bins(one)
        return np.stack([np.bincount(places, minlength=many), np.bincount(places, one, many)])

    with closing(workers.map(add_up, parts)) as found:
        counts, sums = sum(found, start=np.zeros((2, many)))
    correct: Distinct = gap.correct
    hits = np.bincount(bins(correct.values), correct.counts, many)
    low = min(float(one.min()) for one in parts if len(one))
    high = max(float(one.max()) for one in parts if len(one))
    bounds = [low, *ends.tolist(), high]
    return [
        Bin(bounds[i], bounds[i + 1], float(sums[i] / counts[i]), int(counts[i]), int(hits[i]))
        for i in np.flatnonzero(counts).tolist()
    ]


# ------------------------------------------------------------------ the queries of the labels


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
        return {name: self._given.get(name) or DERIVED[name].classes(self._known) for name in names}
