"""The values of all systems, joined by query id, over the queries that count for all of them."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import combinations, product
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from rankmill.analysis.compare.differences.comparison_state import (
    NO_MOMENTS,
    OF_PAIRS,
    OF_SYSTEM,
    ComparisonState,
    Moments,
    Sums,
    SystemColumn,
    column_of,
    columns_of_slices,
    joined,
)
from rankmill.analysis.compare.differences.differences import (
    Difference,
    Likeness,
    Moved,
    MovedRows,
    Settings,
    lists_moved,
    pairs_of,
    rows_moved,
)
from rankmill.analysis.compare.differences.judgement import Judged, differences
from rankmill.analysis.compare.differences.pooled_differences import Without
from rankmill.analysis.compare.queries.alignment import Aligned
from rankmill.analysis.compare.queries.label_facts import (
    WAYS,
    LabelFacts,
    PageNumbers,
    QueryTraits,
    aside_of,
    bins_of,
)
from rankmill.analysis.statistics.paired_differences import AdjustedPaired, AdjustedWeighted
from rankmill.engine.alike import Alike
from rankmill.engine.cuts import Cuts
from rankmill.engine.evaluate import Local, ScoredSystem, score_systems
from rankmill.engine.first_pass import MB
from rankmill.engine.job import Job
from rankmill.engine.left_out import LeftOut, leave_out
from rankmill.engine.segments import OF_PREDICTIONS, Segments
from rankmill.engine.slices import QueryGroups
from rankmill.engine.state import State
from rankmill.metrics.aggregates.mean import Mean, WeightedMean
from rankmill.metrics.base import Metric
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.registry import parse
from rankmill.results.result import Result
from rankmill.sources.meaning.looks import reading_again
from rankmill.sources.nouns import Catalogue, Labels, Predictions
from rankmill.threads import Workers

Arrays: TypeAlias = tuple[np.ndarray, np.ndarray | None, np.ndarray | None, np.ndarray | None]


class Joined(NamedTuple):
    """The results of systems, and the queries that count for all of them."""

    asked: tuple[Metric, ...]
    results: dict[str, Result]
    baseline: str
    aligned: Aligned  # the values of all queries that count for any system
    traits: QueryTraits  # of the queries that count for all systems
    gain_function: str
    # By metric that is no mean over queries, and by system: what `leave_out` found.
    without: Mapping[str, Without] = MappingProxyType({})
    # What the queries of each system add up to, if they are a part of all queries.
    states: Mapping[str, State] = MappingProxyType({})
    seen: PageNumbers | None = None
    alike: Alike | None = None
    # The join of one of several systems, over all queries that count for it.
    alone: "Callable[[str], Joined] | None" = None

    @property
    def queries(self) -> int:
        """The number of queries that count for all."""
        return self.aligned.queries_of_all

    @property
    def others(self) -> list[str]:
        """The names of all systems but the baseline."""
        return [name for name in self.results if name != self.baseline]

    @property
    def metrics(self) -> list[str]:
        """The metrics that are a mean over queries."""
        per_query = self.aligned.tables[self.baseline].column_names
        return [one.text for one in self.asked if one.text in per_query[1:] and not one.summary]

    def values(self, metric: str, system: str) -> np.ndarray:
        """Return the values of the queries that count for all."""
        return self.aligned.values(system, metric)

    def likeness(self) -> dict[str, dict[str, Likeness]]:
        """Return how alike the lists of each system are to those of the baseline, by metric."""

        def mean(metric: str, name: str) -> Likeness:
            values = self.values(metric, name)
            there, weights = ~np.isnan(values), self.traits.weights
            if weights is None:
                return Likeness(Mean.of(values[there]).mean, int(there.sum()))
            there &= weights > 0
            of = WeightedMean.of(values[there], weights[there])
            return Likeness(of.mean, int(there.sum()))

        asked = self.alike.metrics if self.alike else ()
        return {metric: {name: mean(metric, name) for name in self.others} for metric in asked}

    def moved(self, count: int, workers: Workers) -> dict[str, dict[str, list[Moved]]]:
        """Return the queries that moved most, `count` up and down, for each metric and system."""
        return lists_moved(self.moved_rows(count, workers))

    def moved_rows(self, count: int, workers: Workers) -> MovedRows:
        """Return the same as rows, which those of other queries may join."""
        if not count:
            return {}
        ids = self.aligned.ids()
        better = {one.text: one.better for one in self.asked}

        def most(task: tuple[str, str]) -> pa.Table:
            metric, system = task
            before, after = (self.values(metric, name) for name in (self.baseline, system))
            return rows_moved(ids, before, after, count, better[metric])

        tasks = list(product(self.metrics, self.others))
        with closing(workers.map(most, tasks)) as found:
            return dict(zip(tasks, found, strict=True))

    def state(
        self, workers: Workers, *, crossed: bool = False, moments: Collection[str] | None = None
    ) -> ComparisonState:
        """Return what the queries add up to; `crossed` adds slices of two ways to cut at once.

        Of `moments`, metrics with a range have those of pairs that the bound of a mean needs, and
        others those of each system alone. Pairs of queries with weights or clusters have them, too.
        """
        results = list(self.results.items())
        one = self.results[self.baseline]
        ways = list(self.traits.segments)
        if crossed:
            ways += [a.crossed(b) for a, b in combinations(self.traits.segments, 2)]
        parts = self._parts([_sorted(way) for way in ways], workers, moments)
        slices = {}
        for i, way in enumerate(ways, 1):
            counts = np.bincount(way.codes, minlength=len(way.values)).tolist()
            of_way = (self._sums(parts, i, j, count) for j, count in enumerate(counts))
            slices[way.names] = dict(zip(way.values, of_way, strict=True))
        return ComparisonState(
            systems=tuple(self.results),
            baseline=self.baseline,
            metrics=tuple(self.metrics),
            semantics=one.semantics,
            gain_function=self.gain_function,
            scope=one.scope,
            whole=self._sums(parts, 0, 0, self.queries),
            slices=slices,
            left_out={name: result.queries - self.queries for name, result in results},
            differing=len(self.aligned.queries) - self.queries,
            unpredicted={name: each.audit["queries_only_labelled"] for name, each in results},
            # An earlier run has no state; all others know the same catalogue.
            catalogue=next((each.catalogue for each in self.states.values()), ""),
        )

    def states_alone(
        self, workers: Workers, *, crossed: bool = False, moments: Collection[str] | None = None
    ) -> dict[str, ComparisonState]:
        """Return what the queries of each system add up to, also those that only it has."""
        assert self.alone is not None  # as it is a join of several systems
        alone = map(self.alone, self.results)
        states = [one.state(workers, crossed=crossed, moments=moments) for one in alone]
        return dict(zip(self.results, states, strict=True))

    def _parts(
        self,
        ways: Sequence[tuple[np.ndarray, list[int]]],
        workers: Workers,
        moments: Collection[str] | None,
    ) -> dict[tuple[str, str], list[list[SystemColumn]]]:
        """Return for each metric and system its column over all queries, and those of slices."""

        def add_up(task: tuple[str, str]) -> list[list[SystemColumn]]:
            arrays = self._arrays(*task, self.baseline)
            of = self._moments(task[0], arrays, moments)
            cut = [columns_of_slices(*arrays, *way, moments=of) for way in ways]
            # Each way has all queries; it is quicker to join its slices than to add up again. But
            # a cluster may be in several slices.
            from_slices = self.traits.clusters is None and cut and cut[0]
            whole = joined(cut[0]) if from_slices else column_of(*arrays, moments=of)
            return [[self._adjusted(whole, *arrays)], *cut]

        tasks = list(product(self.metrics, self.results))
        with closing(workers.map(add_up, tasks)) as found:
            return dict(zip(tasks, found, strict=True))

    def _moments(self, metric: str, arrays: Arrays, asked: Collection[str] | None) -> Moments:
        """Return whose moments are needed; a metric without a range has none."""
        _, base, *dependence = arrays
        if any(map(math.isinf, parse(metric).spec.bounds)):
            return NO_MOMENTS
        # Without weights and clusters, pairs hold their differences themselves.
        if base is not None and any(one is not None for one in dependence):
            return OF_PAIRS
        if asked is None:
            return NO_MOMENTS
        return OF_PAIRS if metric in asked else OF_SYSTEM

    def _arrays(self, metric: str, system: str, base: str) -> Arrays:
        """Return values, those of `base` unless it is the system, weights and clusters."""
        theirs = None if system == base else self.values(metric, base)
        return self.values(metric, system), theirs, *self.traits[:2]

    def _adjusted(
        self,
        whole: SystemColumn,
        values: np.ndarray,
        base: np.ndarray | None,
        weights: np.ndarray | None,
        clusters: np.ndarray | None,
    ) -> SystemColumn:
        covariate = self.traits.covariate
        if covariate is None or base is None:
            return whole
        if weights is None and clusters is None:
            return whole._replace(paired=AdjustedPaired.of(values, base, covariate.filled))
        known = covariate.filled, weights, clusters
        return whole._replace(paired=AdjustedWeighted.over(values, base, *known))

    def pairs(self, state: ComparisonState, settings: Settings, workers: Workers) -> Judged:
        """Return the differences of each pair of systems without the baseline, as `differences`.

        What a pair adds up to is freed once it is tested: it is as large as its queries.
        """

        def test(task: tuple[str, tuple[str, str]]) -> Difference:
            metric, (base, system) = task
            arrays = self._arrays(metric, system, base)
            moments = self._moments(metric, arrays, None)
            column = self._adjusted(column_of(*arrays, moments=moments), *arrays)
            columns = {base: state.whole.columns[metric][base]._replace(paired=None)}
            sums = Sums(self.queries, {metric: columns | {system: column}})
            return differences(sums, base, settings, 1)[metric, system]

        others = (
            pair for pair in pairs_of(self.results, self.baseline) if self.baseline not in pair
        )
        tasks = list(product(self.metrics, others))
        with closing(workers.map(test, tasks)) as found:
            return dict(zip(tasks, found, strict=True))

    def _sums(
        self, parts: dict[tuple[str, str], list[list[SystemColumn]]], i: int, j: int, queries: int
    ) -> Sums:
        """Return what slice j of way i adds up to; way 0 has one slice of all queries."""
        columns = {m: {name: parts[m, name][i][j] for name in self.results} for m in self.metrics}
        return Sums(queries, columns)


def _sorted(way: Segments) -> tuple[np.ndarray, list[int]]:
    """Return the queries slice by slice, and where each slice ends."""
    counts = np.bincount(way.codes, minlength=len(way.values))
    # Radix sort, which NumPy takes for few bits, is several times as fast.
    order = np.argsort(way.codes.astype(np.uint16), kind="stable")
    return order, np.cumsum(counts).tolist()


@reading_again
def join_runs(
    job: Job,
    labels: Labels,
    runs: Mapping[str, Predictions],
    baseline: str,
    cuts: Cuts,
    local: Local,
    catalogue: Catalogue | None = None,
    *,
    details: bool = False,
    alike: Alike | None = None,
) -> Joined:
    """Score all systems and join them; with `details`, more is computed aside for a page.

    With `alike`, the baseline is scored first.
    """
    lengths = bool(OF_PREDICTIONS & {*cuts.derived})
    results: dict[str, Result] = {}
    aside = aside_of(job) if details else None
    job = replace(
        job,
        keep_values=True,
        keep_lengths=lengths,
        aside=() if aside is None else aside.metrics,
        alike=alike,
    )
    job = with_groups(job, cuts)
    ordered = runs if alike is None else {baseline: runs[baseline], **runs}
    systems = score_systems(job, labels, ordered, *local, catalogue, cuts.facts)
    states: dict[str, State] = {}
    without: dict[str, dict[str, LeftOut | str]] = {}
    with closing(systems), local.workers() as workers:
        gathered = LabelFacts(baseline, cuts, job.memory, workers, WAYS if details else ())
        for one in systems:
            results[one.name] = one.result
            if one.tally.job.part:
                states[one.name] = one.tally.state.small()
            else:
                for metric, left in _left_out(one, workers).items():
                    without.setdefault(metric, {})[one.name] = left
            gathered.add(one)
            if alike and one.name == baseline:
                alike.index = one.tally.shown.index()
            kept = [a for a in one.tally.state.aggregates.values() if isinstance(a, Gap)]
            if details and kept and (one.name != baseline or len(runs) == 1):
                gathered.bins[one.name] = bins_of(kept[0], workers)
            del one, kept  # frees the tally before the next system is scored
    results = {name: results[name] for name in runs}
    aligned = Aligned.of(results)
    rows = gathered.rows(len(aligned.queries))
    traits = gathered.of(rows)
    common = None if aligned.common is None else np.flatnonzero(aligned.common)

    def alone(name: str) -> Joined:
        table = aligned.tables[name]
        one = Aligned({name: table}, table.column(0), {name: None})
        its = traits.at(aligned.rows[name])._replace(covariate=None)
        return Joined(job.metrics, {name: results[name]}, name, one, its, job.gain_function)

    return Joined(
        job.metrics,
        results,
        baseline,
        aligned,
        traits.at(common),
        job.gain_function,
        without,
        states,
        None if aside is None else gathered.seen(aside, rows if common is None else rows[common]),
        alike,
        alone,
    )


def with_groups(job: Job, cuts: Cuts) -> Job:
    """Return a job that cuts queries into groups, if a metric has to leave these out."""
    if not job.left_out:
        return job
    tables = cuts.tables if cuts.cluster is not None else ()
    return replace(job, groups=QueryGroups(), cuts=Cuts(tables=tables, cluster=cuts.cluster))


def _left_out(one: ScoredSystem, workers: Workers) -> dict[str, LeftOut | str]:
    """Return what metrics of a system are without each group of queries."""
    tally, groups = one.tally, one.tally.job.groups
    if groups is not None and groups.needed:
        why = f"its groups of queries need more than {groups.needed // MB:,}MB: allow more memory"
        return dict.fromkeys((metric.text for metric in tally.job.left_out), why)
    return leave_out(tally.state, tally.among, one.result.metrics, workers)
