"""compare() scores systems over the same queries and tests how they differ from a baseline."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.analysis.compare.comparison_request import (
    Tests,
    baseline_of,
    cuts_asked,
    metrics_at,
    settings_of,
)
from rankmill.analysis.compare.conclusion import finish
from rankmill.analysis.compare.differences.comparison_state import ComparisonState
from rankmill.analysis.compare.differences.differences import (
    Difference,
    Estimate,
    Likeness,
    Settings,
    pairs_of,
)
from rankmill.analysis.compare.differences.judgement import relative
from rankmill.analysis.compare.differences.pooled_differences import PooledMetrics, not_means
from rankmill.analysis.compare.queries.alignment import Aligned
from rankmill.analysis.compare.queries.join import Joined, join_runs
from rankmill.analysis.compare.queries.label_facts import QueryTraits, read_covariate
from rankmill.analysis.compare.view.comparison import Comparison
from rankmill.analysis.compare.view.details import details_of
from rankmill.analysis.statistics.significance import Tested
from rankmill.analysis.statistics.unseen import DRAWS, drawn_quantiles, quantile_ends
from rankmill.columns.buffers import floats_of
from rankmill.columns.ids import to_ids
from rankmill.columns.ragged_lists import one_chunk
from rankmill.engine.alike import Alike
from rankmill.engine.cuts import Cuts, cuts_of, read_classes
from rankmill.engine.evaluate import Local, executor_of
from rankmill.engine.first_pass import Progress
from rankmill.engine.job import parse_job, runs_of
from rankmill.engine.origin import OriginRecorder
from rankmill.engine.results import Results
from rankmill.engine.segments import NO_ROW, Classes
from rankmill.errors import UsageError, plural, told_shortly
from rankmill.matching.index import LabelIndex
from rankmill.metrics.aggregate import aggregate_of
from rankmill.metrics.base import Metric
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.registry import parse
from rankmill.metrics.texts import split_beside, split_names
from rankmill.results.result import WEIGHT, Result
from rankmill.semantics.semantics import Counting
from rankmill.sources.inputs.any_source import open_source
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.nouns import Catalogue, Labels, LabelsLike, PredictionsLike, SlicesLike
from rankmill.sources.roles.source import MEMORY, Columns, InputOptions
from rankmill.threads import Workers, thread_count


@told_shortly
def compare(
    labels: LabelsLike,
    runs: Mapping[str, PredictionsLike] | None = None,
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    baseline: str | None = None,
    all_pairs: bool = False,
    tests: str | Iterable[str] | Tests = ("t",),
    confidence: float = 0.95,
    cutoffs: str | Iterable[int] | None = None,
    margin: float | None = None,
    by: SlicesLike = (),
    moved: int = 0,
    cluster: str | None = None,
    adjust: Any = None,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
    partitions: int | None = None,
    details: bool = False,
) -> Comparison:
    """Compare systems with a baseline: differences, intervals, tests, and the queries that changed.

    The values of queries are joined by query id. A query counts only if it counts for every system,
    so that all means are over the same queries. Under the default semantics these are all queries
    with labels, and a system without predictions for one of them scores 0 there. Where the
    semantics leave out queries without predictions, a query that any system lacks is left out for
    all; `Comparison.left_out` counts these.

    Parameters
    ----------
    labels
        As for `evaluate`. Or the results of `evaluate_runs`: then nothing is read again, there are
        no `runs`, and `by` and similar options are tables of query ids.
    runs : mapping of str to predictions
        The predictions of two or more systems, each as for `evaluate`.
    metrics : str or iterable of str
        As for `evaluate`, including sets such as "official", "recsys" and "pr". For results, all
        metrics that they have. With ":baseline" after a metric, as in "rbo(p=0.9)@10:baseline", the
        lists of the baseline are its labels. `Comparison.alike` then shows how similar the lists of
        each system are. Metrics that are not means over queries, such as gap, have the intervals
        and the test of a jackknife over groups of queries, which needs `memory` for these.
    baseline : str, optional
        The system that all others are compared with; by default the first.
    all_pairs : bool
        Whether to compare every pair of systems, not only each one with the baseline. p-values are
        then corrected over all pairs and metrics. Slices are still compared with the baseline.
    tests : str, iterable of str, or Tests
        The names of tests, such as "t" and "randomization"; the first one decides the verdict.
        Use `Tests` to also set the correction and the seed.
    confidence : float
        The confidence of intervals; a difference is shown if its corrected p-value is at most
        1 - `confidence`.
    cutoffs : iterable of int, or str, optional
        Cutoffs, such as [1, 5, 10] or "1,5,10": each metric that takes a cutoff is computed at all
        of these instead of its own, and `Comparison.ranks` shows how the ranking of the systems
        changes over them. p-values are corrected over all cutoffs, too.
    margin : float, optional
        A difference that does not matter. With it, systems can be shown to be equal within the
        margin.
    by : str, table or sequence of these
        Slices of the queries, each of which is tested: a column of the labels; a path or a table
        with query ids, where every other column makes slices, or those that the path names at its
        end, as in "users.parquet:country,age:4,signup:month" (a pandas Series has the ids in its
        index, and its name is that of the slices); or a property of each query: "label_count",
        "list_length", "label_popularity", "activity" or "unpredicted".
    moved : int
        For each metric and system, how many of the queries that gained most and of those that lost
        most to list; with a minus sign, such as -5, only those that lost most. Among equal
        differences the smallest ids are listed.
    cluster : str, optional
        A column of the labels, or of a table of `by`, which then makes no slices: queries with the
        same value, such as the sessions of a user, are not independent. Standard errors and tests
        are computed over clusters. A query without a value is its own cluster.
    adjust : str or table, optional
        A number that was known for each query beforehand, such as its value last month: a column of
        the labels, or a path or a table with query ids and the numbers ("users.parquet:visits"
        chooses a column of several). Differences are adjusted by it (CUPED), which narrows their
        intervals; slices are not. It takes the test "t".
    semantics, catalogue, threads, memory, progress, partitions
        As for `evaluate`. On Spark there is no `all_pairs`, `cutoffs`, `cluster`, `adjust` and
        `details`, and a table of `by` may be a DataFrame.
    details : bool
        Whether to keep what all charts of a page show, for `rankmill.nightly.report.page`.

    Returns
    -------
    Comparison
        The errors are those of `evaluate`. A UsageError is also raised if
        there are fewer than two systems, or an option of the comparison is wrong.

    Examples
    --------
    >>> import rankmill
    >>> labels = rankmill.arrays.Ragged.from_lists([[1], [2], [3], [4]])
    >>> runs = {"old": [[1], [9], [9], [9]], "new": [[1], [9, 2], [3], [9, 4]]}
    >>> runs = {name: rankmill.arrays.Ragged.from_lists(lists) for name, lists in runs.items()}
    >>> found = rankmill.compare(labels, runs, ["map@2"])
    >>> new = found.differences["map@2"]["new"]
    >>> new.value, new.won, new.tied, new.lost, new.verdict
    (0.5, 3, 1, 0, 'no difference shown')
    """
    began = time.perf_counter()
    metrics, at = metrics_at(metrics, cutoffs)
    settings = settings_of(tests, confidence, margin, moved, cluster, adjust, all_pairs, at)
    if isinstance(labels, Results):
        check_alone(runs, semantics, catalogue)
        base = baseline_of(labels, baseline)
        weight = next(iter(labels.values())).scope.weight
        cuts = cuts_asked(by, settings, adjust, weight)
        kept = {name: chosen(one, metrics, name) for name, one in labels.items()}
        with Workers(threads) as workers:
            joined = join_results(kept, base, cuts, workers, memory)
    else:
        if isinstance(labels, dict) and any(isinstance(one, Result) for one in labels.values()):
            raise UsageError(
                "labels is a dict of results: compare takes those of one call of evaluate_runs, "
                "as in compare(evaluate_runs(labels, runs)), or compare(labels, runs)"
            )
        base, given, systems = baseline_of(runs, baseline), Labels.of(labels), runs_of(runs)
        names, beside = split_beside(metrics)
        alone: Any = {"all_pairs": all_pairs, "cutoffs": cutoffs, "cluster": cluster}
        alone |= {"adjust": adjust, "details": details, ":baseline": beside or None}
        executor = executor_of(given, systems, Local(threads, progress), partitions, **alone)
        cuts = cuts_asked(by, settings, adjust, given.weight)
        job = parse_job(names or DEFAULT_METRICS, given, semantics, catalogue, memory=memory)
        if not isinstance(executor, Local):
            on_spark: Comparison = executor.compare(
                job, given, systems, base, cuts, settings, catalogue
            )
            return replace(on_spark, seconds=time.perf_counter() - began)
        more: Any = {"details": details, "alike": Alike.of(beside, job.semantics)}
        joined = join_runs(job, given, systems, base, cuts, executor, catalogue, **more)
    with Workers(threads) as workers:
        state = joined.state(workers)
        found = comparison_of(joined, state, settings, workers)
    return replace(found, seconds=time.perf_counter() - began)


def comparison_of(
    joined: Joined, state: ComparisonState, settings: Settings, workers: Workers
) -> Comparison:
    """Return the comparison of systems that were joined, with what their queries add up to."""
    pairs = partial(joined.pairs, state, settings, workers=workers)
    alike, traits = joined.likeness(), joined.traits
    weighted = traits.weights is not None
    told = [] if traits.covariate is None else [traits.covariate.told(weighted)]
    return finish(
        state,
        settings,
        workers.threads,  # the randomization test uses all threads itself
        joined.results,
        joined.without,
        quantiles=quantiles_of(joined, settings),
        moved=joined.moved(settings.moved, workers),
        lacking=joined.aligned.lacking(),
        per_query=joined.aligned.table(),
        told=[*told, *_lists_told(alike)],
        alike=alike,
        details=None if joined.seen is None else details_of(joined, settings, workers),
        pairs=pairs if settings.all_pairs else None,
    )


def _lists_told(alike: Mapping[str, Mapping[str, Likeness]]) -> list[str]:
    """Return a note for each metric of the lists of systems beside those of the baseline."""

    def told(name: str, one: Likeness) -> str:
        value = "no value" if one.value is None else f"{one.value:.6f}"
        return f"{name} {value} over {plural(one.queries, 'query')}"

    each = {metric: [told(*pair) for pair in of.items()] for metric, of in alike.items()}
    return [f"{metric}, where both have a list: {', '.join(of)}" for metric, of in each.items()]


def compare_part(
    labels: LabelsLike,
    runs: Mapping[str, PredictionsLike],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    baseline: str | None = None,
    by: SlicesLike = (),
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
) -> ComparisonState:
    """Return the state of a comparison of some queries, with all that the systems have for them.

    Parameters
    ----------
    labels, runs, metrics, baseline, by
        As for `compare`. Metrics are means over queries, and `by` is not "label_popularity", which
        needs all labels.
    semantics, catalogue, threads, memory, progress
        As for `evaluate`.

    Returns
    -------
    ComparisonState
        Merge it with the states of other queries; then `compare_state` tests it.

    Raises
    ------
    InputError, UsageError
        As `compare`.

    Examples
    --------
    >>> from rankmill.parts import compare_part, compare_state
    >>> import rankmill
    >>> lists = rankmill.arrays.Ragged.from_lists
    >>> parts = [
    ...     compare_part(lists([[1]]), {"old": lists([[2, 1]]), "new": lists([[1]])}, ["map@2"]),
    ...     compare_part(lists([[3]]), {"old": lists([[3]]), "new": lists([[3]])}, ["map@2"]),
    ... ]
    >>> compare_state(parts[0].merge(parts[1])).differences["map@2"]["new"].value
    0.25
    """
    base, cuts = baseline_of(runs, baseline), cuts_of(by)
    given, systems = Labels.of(labels), runs_of(runs)
    if "label_popularity" in cuts.derived:
        raise UsageError("label_popularity needs the labels of all queries: use compare")
    recorder = OriginRecorder()
    how: Any = {"memory": memory, "part": True, "recorder": recorder}
    job = parse_job(metrics, given, semantics, catalogue, **how)
    for metric in job.metrics:
        if metric.spec.kernel is None:
            raise UsageError(
                f"{metric.text} is not a mean over queries, and cannot be part of a state: compare "
                "all queries at once with compare"
            )
    joined = join_runs(job, given, systems, base, cuts, Local(threads, progress), catalogue)
    with Workers(threads) as workers:
        state = joined.state(workers)
    return replace(state, origin=recorder.origin)


def compare_state(
    state: ComparisonState,
    *,
    tests: str | Iterable[str] | Tests = ("t",),
    confidence: float = 0.95,
    margin: float | None = None,
    threads: int | None = None,
) -> Comparison:
    """Test the differences of a state that `compare_part` made, or of several that were merged.

    Parameters
    ----------
    state : ComparisonState
    tests, confidence, margin, threads
        As for `compare`.

    Returns
    -------
    Comparison
        As that of `compare`, without the values of queries and those that moved.

    Raises
    ------
    UsageError
        If an option is wrong, or the state lacks what a test needs.
    """
    settings = settings_of(tests, confidence, margin, 0)
    if not isinstance(state, ComparisonState):
        raise UsageError(
            f"state is a {type(state).__name__}; expected what compare_part returns, or "
            "ComparisonState.from_table"
        )
    return finish(state, settings, thread_count(threads))


# ------------------------------------------------------------------ results that kept their values

AGAIN = "give labels and runs, as in compare(labels, runs)"


def check_alone(runs: Any, semantics: Counting, catalogue: Catalogue | None) -> None:
    """Raise UsageError if runs, or options that say how to score, are given beside results."""
    scoring = (
        ("runs", runs, None),
        ("semantics", semantics, "default"),
        ("catalogue", catalogue, None),
    )
    given = [name for name, one, usual in scoring if one != usual]
    if given:
        raise UsageError(
            f"{given[0]} cannot be combined with results, which are scored already: {AGAIN}"
        )


def join_results(
    kept: dict[str, Result],
    baseline: str,
    cuts: Cuts,
    workers: Workers,
    memory: int,
) -> Joined:
    """Join results as `join_runs` does what it scores, with the same bits; nothing is scored again.

    Raises UsageError if something is asked for that the values of queries do not tell.
    """
    one = kept[baseline]
    if any(_how(each) != _how(one) for each in kept.values()):
        raise UsageError(f"the results are not of one call of evaluate_runs: {AGAIN}")
    asked = tuple(map(parse, one.metrics))
    pooled = [metric.text for metric in asked if aggregate_of(metric) is Gap]
    if pooled:
        raise UsageError(f"{pooled[0]} needs all predictions, which results do not hold: {AGAIN}")
    of_labels = [*cuts.facts, *cuts.derived]
    if of_labels:
        raise UsageError(
            f"{of_labels[0]!r} needs the labels, which results do not hold: give a table of query "
            f"ids instead, or {AGAIN}"
        )
    aligned = Aligned.of(kept)
    rows = _rows(kept, len(aligned.queries))
    classes: dict[str, Classes] = {}
    codes = covariate = None
    if cuts != Cuts():
        name, queries = one.per_query.column_names[0], aligned.queries.filter(rows >= 0)
        known = _inputs(name, queries)
        classes, codes = read_classes(cuts, *known, workers, memory)
        if cuts.adjust is not None:
            covariate = read_covariate(cuts.adjust, *known, workers, memory)
    traits = QueryTraits.of(rows, aligned.weights(), codes, covariate, classes)
    common = None if aligned.common is None else np.flatnonzero(aligned.common)
    return Joined(asked, kept, baseline, aligned, traits.at(common), one.gain_function)


def chosen(result: Result, metrics: str | Iterable[str], name: str) -> Result:
    """Return a result with the metrics asked for: by default all that it has."""
    if not isinstance(result.per_query, pa.Table):
        raise UsageError(
            f"the result of {name} holds no per-query values: evaluate_runs keeps them with "
            f"per_query=True, and JSON does not hold them; or {AGAIN}"
        )
    if metrics is DEFAULT_METRICS:
        return result
    asked = [(one, result.held(one)) for one in split_names(metrics)]
    missing = next((one for one, held in asked if held is None), None)
    if missing is not None:
        there = ", ".join(result.metrics)
        raise UsageError(f"the results have no {missing!r}, but {there}: {AGAIN}")
    names = list(dict.fromkeys(str(held) for _, held in asked))
    table = result.per_query
    beside = [table.column_names[0], *names, WEIGHT]
    columns = [one for one in dict.fromkeys(beside) if one in table.column_names]
    values = {one: result.metrics[one] for one in names}
    return replace(result, metrics=values, per_query=table.select(columns))


def _how(result: Result) -> tuple[Any, ...]:
    """Return what the results of one call have in common."""
    how = result.semantics, result.scope, result.gain_function, result.inputs.get("labels")
    return *how, list(result.metrics)


def _rows(results: Mapping[str, Result], count: int) -> np.ndarray:
    """Return the place of each query among those of the labels; -1 for those behind them."""
    counted = [one.counted.of_labels for one in results.values() if one.counted is not None]
    labelled = int(np.logical_or.reduce(counted).sum()) if counted else count
    return np.where(np.arange(count) < labelled, np.arange(count), NO_ROW)


def _inputs(name: str, queries: Any) -> tuple[Input, LabelIndex]:
    """Return queries as labels of which there is no more than the ids."""
    source = open_source(pa.table({name: queries}), InputOptions("labels"), may_be_empty=True)
    nothing: Any = None  # whoever looks for ids needs no lists
    index = LabelIndex(to_ids(one_chunk(queries), "the query ids of a result"), nothing)
    return Input(source, Columns(name, name, wide=True)), index


# ------------------------------------------------------------------ medians and percentiles


def quantiles_of(joined: Joined, settings: Settings) -> PooledMetrics:
    """Return the values and differences of metrics that are medians or percentiles of values."""
    found = PooledMetrics({}, {}, [])
    for metric in joined.asked:
        if metric.quantile is None or metric.text not in joined.results[joined.baseline].metrics:
            continue
        values = {name: _values(joined, name, metric) for name in joined.results}
        found.values[metric.text] = {
            name: _estimate(joined, name, metric, settings.confidence, of)
            for name, of in values.items()
        }
        for base, system in pairs_of(values, joined.baseline):
            if base == joined.baseline or settings.all_pairs:
                place = system if base == joined.baseline else (base, system)
                pair = values[base], values[system]
                of = [joined.results[each].metrics[metric.text] for each in (system, base)]
                one = _difference(of[0], of[1], pair, metric, joined, settings.confidence)
                found.differences[metric.text, place] = one
    if found.values:
        how = f"of {DRAWS} draws of the queries, so that p is at least {2 / (1 + DRAWS):.2g}"
        how = f"its interval is of values by their order, and that of a difference {how}"
        found.notes.append(not_means([*found.values], how))
    return found


def _values(joined: Joined, system: str, metric: Metric) -> np.ndarray:
    """Return the value of each query that counts for any system, NaN where it does not."""
    of_system = floats_of(one_chunk(joined.aligned.tables[system].column(metric.text)))
    rows = joined.aligned.rows[system]
    if rows is None:
        return of_system
    found = np.full(len(joined.aligned.queries), math.nan)
    found[rows] = of_system
    return found


def _estimate(
    joined: Joined, system: str, metric: Metric, confidence: float, values: np.ndarray
) -> Estimate:
    value, there = joined.results[system].metrics[metric.text], ~np.isnan(values)
    clusters = joined.traits.clusters
    # The clusters of queries that do not count for all systems are not known.
    unknown = clusters is not None and (len(clusters) != len(values) or not there.all())
    if value is None or there.sum() < 2 or unknown:
        return Estimate(value)
    share, bounds = metric.quantile or 0.0, metric.spec.bounds
    return Estimate(value, None, *quantile_ends(values[there], share, bounds, confidence, clusters))


def _difference(
    value: float | None,
    base: float | None,
    pair: tuple[np.ndarray, np.ndarray],
    metric: Metric,
    joined: Joined,
    confidence: float,
) -> Difference:
    """Return the difference with the interval that holds the middle of the draws, and their p."""
    if value is None or base is None:
        return Difference(None, better=metric.better)
    less, clusters = value - base, joined.traits.clusters
    plain = Difference(less, relative(less, base), better=metric.better)
    if clusters is not None and joined.aligned.common is not None:
        return plain
    theirs, mine = drawn_quantiles(pair, metric.summary, metric.quantile or 0.0, clusters)
    drawn = mine - theirs
    if np.isnan(drawn).any():
        return plain
    # As many draws are beyond each end as may be beyond 0 where p is as small.
    place = max(math.floor((1 - confidence) / 2 * (1 + len(drawn))) - 1, 0)
    low, high = np.sort(drawn)[[place, -1 - place]].tolist()
    # The observed difference counts as one draw more, on both sides.
    fewer = min((drawn <= 0).sum(), (drawn >= 0).sum())
    p = min(1.0, 2 * (1 + int(fewer)) / (1 + len(drawn)))
    test = Tested(p, None, low, high, (less > 0) - (less < 0))
    ends: tuple[float | None, float | None] = (None, None)
    if theirs.min() > 0:
        first, last = np.sort(mine / theirs - 1)[[place, -1 - place]].tolist()
        ends = first, last
    return replace(
        plain, low=low, high=high, relative_low=ends[0], relative_high=ends[1], tests={"t": test}
    )
