"""compare() of DataFrames of Spark."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from rankmill.analysis.compare.comparison_request import (
    Tests,
    baseline_of,
    cuts_asked,
    settings_of,
)
from rankmill.analysis.compare.conclusion import finish
from rankmill.analysis.compare.differences.comparison_state import ComparisonState
from rankmill.analysis.compare.differences.moved_queries import lists_moved
from rankmill.analysis.compare.differences.pooled_differences import Without
from rankmill.analysis.compare.view.comparison import Comparison
from rankmill.engine.cuts import Cuts, warn_of_strangers
from rankmill.engine.job import parse_job, runs_of
from rankmill.engine.segments import MOST_CROSSED, MOST_SLICES, check_slices
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.nightly.rules.baseline import Baseline
from rankmill.results.result import Result
from rankmill.semantics.semantics import Counting
from rankmill.sources.meaning.looks import reading_again
from rankmill.sources.nouns import Catalogue, Labels, LabelsLike, PredictionsLike, SlicesLike
from rankmill.sources.roles.source import MEMORY
from rankmill.spark.comparison_tasks import (
    POPULARITY,
    TABLE,
    Findings,
    Joining,
    find,
    values_of,
)
from rankmill.spark.evaluation import per_query_frame, result_of
from rankmill.spark.exchange.collection import collected, mapped
from rankmill.spark.exchange.spark_request import SparkRequest, request_of
from rankmill.spark.exchange.tasks import check_seen, tell
from rankmill.spark.jackknife_groups import left_out
from rankmill.spark.known_items import with_known_items
from rankmill.spark.slice_sides import with_tables, with_values
from rankmill.spark.workers import on_spark
from rankmill.threads import thread_count


@on_spark
@reading_again
def compare(
    labels: LabelsLike,
    runs: Mapping[str, PredictionsLike],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    baseline: str | None = None,
    tests: str | Iterable[str] | Tests = ("t",),
    confidence: float = 0.95,
    margin: float | None = None,
    by: SlicesLike = (),
    moved: int = 0,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    partitions: int | None = None,
    per_query: bool = False,
    memory: int = MEMORY,
) -> Comparison:
    """Compare systems in DataFrames of Spark with a baseline, as `rankmill.compare` does.

    Each task joins the systems over its queries and returns exact sums, so that all values, tests
    and intervals have the same bits as on one machine.

    Parameters
    ----------
    labels, runs, metrics, semantics, catalogue, partitions, memory
        As for `rankmill.spark.evaluate_runs`.
    baseline, tests, confidence, margin, moved
        As for `rankmill.compare`. There is no `cluster` and no `adjust`: both need all queries at
        once.
    per_query : bool
        Whether `Comparison.per_query` is a Spark DataFrame with the values of each query for all
        systems. It is computed when it is used, and never collected.
    by : str, table or sequence of these
        As for `rankmill.compare`. A table may also be a DataFrame of Spark.

    Returns
    -------
    Comparison
        As that of `rankmill.compare`.
    """
    began = time.perf_counter()
    base, given = baseline_of(runs, baseline), Labels.of(labels)
    settings = settings_of(tests, confidence, margin, moved)
    cuts = cuts_asked(by, settings, None, given.weight)
    systems = runs_of(runs)
    how: Any = {"memory": memory, "part": True, "keep_values": False}
    job = parse_job(metrics, given, semantics, catalogue, **how)
    request = request_of(given, systems, job, partitions, cuts.facts, catalogue)
    how = {"moved": moved}
    joined = join(request, base, cuts, **how)
    values = None
    if per_query:
        values = _values(
            request_of(given, systems, joined.request.job, partitions, catalogue=catalogue),
            joined.seals,
        )
    found = finish(
        joined.found.state,
        settings,
        thread_count(None),
        joined.results,
        joined.without,
        moved=lists_moved(joined.found.moved),
        per_query=values,
    )
    return replace(found, seconds=time.perf_counter() - began)


class JoinedOnSpark(NamedTuple):
    """Systems that were scored and joined by tasks."""

    request: SparkRequest
    found: Findings  # what all queries add up to
    results: dict[str, Result]
    without: Mapping[str, Without]  # as `left_out` finds them
    seals: frozenset[int]  # of the queries of each partition


def values_of_runs(
    labels: LabelsLike,
    runs: Mapping[str, PredictionsLike],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    partitions: int | None = None,
    memory: int = MEMORY,
) -> Any:
    """Return a DataFrame with the values of each query for all systems; see `join_per_query`.

    The options are those of `evaluate_runs`. Of one system it is what `Result.per_query` is.
    """
    given = Labels.of(labels)
    job = parse_job(metrics, given, semantics, catalogue, memory=memory, part=True)
    return _values(request_of(given, runs_of(runs), job, partitions, catalogue=catalogue), None)


def _values(request: SparkRequest, seals: frozenset[int] | None) -> Any:
    request = with_known_items(request)
    if len(request.names) == 1:
        return per_query_frame(request, 1, seals)
    rows, joining = _joining(request, request.names[0], Cuts())
    nothing, _ = joining.join(iter(()))
    schema = nothing.aligned.table().schema
    return mapped(rows, schema, values_of, joining, schema, seals)


def join(
    request: SparkRequest,
    baseline: str,
    cuts: Cuts,
    *,
    moved: int,
    crossed: bool = False,
    alone: bool = False,
    moments: Collection[str] | None = None,
    earlier: Baseline | None = None,
) -> JoinedOnSpark:
    """Score all systems and join them.

    Parameters
    ----------
    request
    baseline, cuts
        As for the `join_runs` of one machine.
    moved : int
        How many of the queries that moved most are wanted, up and down.
    crossed, alone : bool
        Whether slices of two ways to cut are needed, and what each system has over all its queries.
    moments
        As for `Joined.state`.
    earlier : Baseline, optional
        An earlier run with a DataFrame of its values by query, to pair with the only system.
    """
    request = with_tables(with_known_items(request), cuts)
    if earlier is not None:
        request = with_values(request, earlier)
        earlier = replace(earlier, predictions=None)
    rows, joining = _joining(request, baseline, cuts, earlier)
    how: Any = {"crossed": crossed, "alone": alone, "moments": moments}
    task = partial(find, joining=joining, count=moved, how=how)
    # What is wrong with the request is found before Spark reads a row.
    nothing = [*task(iter(()))]
    returned = (collected(rows, task, request.partitions) or nothing)[0]
    found: Findings = returned.value
    for by, of_way in found.state.slices.items():  # tasks only see their own
        check_slices(by, len(of_way), MOST_SLICES if len(by) == 1 else MOST_CROSSED)
    _warn_of_strangers(found.state, cuts, request)
    if POPULARITY in found.rows:  # it has a row for each query with labels
        check_seen(
            {state.audit["queries_labelled"] for state in found.states.values()},
            {found.rows[POPULARITY]},
        )
    tell(request.inputs, returned.odd)
    results, among = {}, {}
    for number, name in enumerate(request.names, 1):
        read = found.rows[""], found.rows[request.sides[number].system]
        results[name], among[name] = result_of(request, number, found.states[name], *read)
    without = left_out(request, found.states, among, results, returned.seals)
    return JoinedOnSpark(request, found, results, without, returned.seals)


def _joining(
    request: SparkRequest, baseline: str, cuts: Cuts, earlier: Baseline | None = None
) -> tuple[Any, Joining]:
    """Return the shuffled rows of all sides, and how tasks join them."""
    rows, form = request.rows(*range(len(request.sides)))
    cuts = cuts._replace(tables=())
    return rows, Joining(request.job, form, request.names, baseline, cuts, earlier)


def _warn_of_strangers(state: ComparisonState, cuts: Cuts, request: SparkRequest) -> None:
    """Warn of each table none of whose values is known of any query that counts."""
    sides = dict(zip((one.system for one in request.sides), request.inputs, strict=True))
    for number, table in enumerate(cuts.tables):
        names = sides[f"{TABLE}{number}"].columns.facts
        if all(set(state.slices[name,]) <= {(None,)} for name in names):
            warn_of_strangers(table)
