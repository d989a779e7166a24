"""compare() of DataFrames of Spark."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from rankmill.compare.compare import OPTIONS, asked_of, compared
from rankmill.compare.compare import compare as compare_here
from rankmill.compare.comparison import Comparison
from rankmill.compare.cutting import Cuts, warn_of_strangers
from rankmill.compare.moved import lists_moved
from rankmill.compare.pooled import Without
from rankmill.compare.segments import MOST_CROSSED, MOST_SLICES, check_slices
from rankmill.compare.state import ComparisonState
from rankmill.engine.options import options_of
from rankmill.gate.baseline import Baseline
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.results.result import Result
from rankmill.spark.aligning import TABLE, Comparing, Joining, Sending, Valuing
from rankmill.spark.found import Found
from rankmill.spark.layout import arrow_schema
from rankmill.spark.leaving import left_out
from rankmill.spark.merging import collected, function_of
from rankmill.spark.per_query import per_query_frame
from rankmill.spark.request import NOT_TAKEN, Request, refuse_whole, request_of
from rankmill.spark.rows import RowFormat
from rankmill.spark.run import evaluate_runs, result_of
from rankmill.spark.slices import with_tables, with_values
from rankmill.threads import thread_count


@options_of(compare_here, without=(*NOT_TAKEN, "details"))
def compare(
    labels: Any,
    runs: Mapping[str, Any],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    partitions: int | None = None,
    per_query: bool = False,
    **options: Any,
) -> Comparison:
    """Compare systems in DataFrames of Spark with a baseline, as `rankmill.compare` does.

    Each task joins the systems over its queries and returns exact sums, so that all values, tests
    and intervals have the same bits as on one machine.

    Parameters
    ----------
    labels, runs, metrics, partitions
        As for `rankmill.spark.evaluate_runs`.
    per_query : bool
        Whether `Comparison.per_query` is a Spark DataFrame with the values of each query for all
        systems. It is computed when it is used, and never collected.
    by : str, table or sequence of these
        As for `rankmill.compare`. A table may also be a DataFrame of Spark.

    Returns
    -------
    Comparison
        As that of `rankmill.compare`, whose other options are those of this function; `details` is
        not taken, as a page needs much more of each query. `memory` is that of one task.
    """
    began = time.perf_counter()
    given = {name: options.pop(name) for name in OPTIONS}
    refuse_whole(given)
    asked = asked_of(runs, given, options["weight"])
    scoring = options | {"partitions": partitions, "per_query": False}
    joined = join(
        labels,
        runs,
        metrics,
        scoring,
        baseline=asked.baseline,
        cuts=asked.cuts,
        moved=asked.settings.moved,
        crossed=asked.crossed,
        values=asked.rows,
    )
    found = compared(
        joined.results,
        joined.without,
        joined.found.state,
        asked.settings,
        thread_count(None),
        moved=lists_moved(joined.found.moved),
        per_query=values_of_runs(labels, runs, metrics, **scoring) if per_query else None,
    )
    return replace(found, seconds=time.perf_counter() - began)


class Joined(NamedTuple):
    """Systems that were scored and joined by tasks.

    Attributes
    ----------
    request : Request
    found : Found
        What all queries add up to.
    results : dict of str to Result
    without : dict of str to dict
        The values of metrics over all predictions without some of the queries, as `leave_out`
        finds them: by metric and system.
    """

    request: Request
    found: Found
    results: dict[str, Result]
    without: Mapping[str, Without]


@options_of(evaluate_runs)
def values_of_runs(labels: Any, runs: Mapping[str, Any], metrics: Any, **options: Any) -> Any:
    """Return a DataFrame with the values of each query for all systems; see `join_per_query`.

    The options are those of `evaluate_runs`. Of one system it is what `Result.per_query` is.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    request = request_of(labels, runs, metrics, options | {"per_query": True})
    if len(runs) == 1:
        return per_query_frame(request, 1)
    rows, joining = _joining(request, tuple(runs), next(iter(runs)), Cuts())
    nothing, _ = joining.join(iter(()))
    schema = nothing.aligned.table().schema
    return rows.mapInArrow(function_of(Valuing(joining, schema)), from_arrow_schema(schema))


def join(
    labels: Any,
    runs: Mapping[str, Any],
    metrics: Any,
    options: dict[str, Any],
    *,
    baseline: str,
    cuts: Cuts,
    moved: int,
    crossed: bool,
    values: bool = False,
    alone: bool = False,
    earlier: Baseline | None = None,
) -> Joined:
    """Score all systems and join them; `options` are those of `evaluate_runs`.

    Parameters
    ----------
    labels, runs, metrics, options
    baseline, cuts
        As for the `join` of one machine.
    moved : int
        How many of the queries that moved most are wanted, up and down.
    crossed, values, alone : bool
        Whether slices of two ways to cut are needed, the values that Tukey's test takes, and what
        each system has over all its queries.
    earlier : Baseline, optional
        An earlier run with a DataFrame of its values by query, which the only system is paired
        with.
    """
    facts: Any = dict.fromkeys(cuts.columns, "segment")
    scored = request_of(labels, runs, metrics, options, facts)
    request = with_tables(scored, cuts)
    if earlier is not None:
        request = with_values(request, earlier)
        earlier = replace(earlier, predictions=None)
    rows, joining = _joining(request, tuple(runs), baseline, cuts, earlier)
    comparing = Comparing(joining, moved, crossed, values, alone)
    # What is wrong with the request is found before Spark reads a row.
    form = RowFormat.of(comparing.found(iter(())).to_row())
    (one,) = collected(rows, Sending(comparing, form), Found, form, request.partitions)
    found = Found.from_row(one.fields or {})
    _check_slices(found.state)
    _warn_of_strangers(found.state, cuts, request)
    results, among = {}, {}
    for number, name in enumerate(runs, 1):
        read = found.rows[""], found.rows[request.sides[number].system]
        results[name], among[name] = result_of(request, number, found.states[name], *read)
    without = left_out(request, found.states, among)
    return Joined(request, found, results, without)


def _joining(
    request: Request,
    systems: tuple[str, ...],
    baseline: str,
    cuts: Cuts,
    earlier: Baseline | None = None,
) -> tuple[Any, Joining]:
    """Return the shuffled rows of all sides, and how tasks join them."""
    rows, sides = request.rows(*range(len(request.sides)))
    options = {**request.options, "per_query": True}
    form = tuple(sides), arrow_schema(rows)
    cuts = cuts._replace(tables=())
    return rows, Joining(request.metrics, options, *form, systems, baseline, cuts, earlier)


def _check_slices(state: ComparisonState) -> None:
    """Raise UsageError if there are too many slices; tasks only see their own."""
    for by, of_way in state.slices.items():
        check_slices(by, len(of_way), MOST_SLICES if len(by) == 1 else MOST_CROSSED)


def _warn_of_strangers(state: ComparisonState, cuts: Cuts, request: Request) -> None:
    """Warn of each table none of whose values is known of any query that counts."""
    sides = dict(zip((one.system for one in request.sides), request.inputs, strict=True))
    for number, table in enumerate(cuts.tables):
        names = sides[f"{TABLE}{number}"].columns.facts
        if all(set(state.slices[name,]) <= {(None,)} for name in names):
            warn_of_strangers(table)
