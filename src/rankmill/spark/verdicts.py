"""gate() of DataFrames of Spark."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from rankmill.analysis.compare.comparison_request import settings_of
from rankmill.analysis.compare.conclusion import finish
from rankmill.analysis.compare.differences.comparison_state import ComparisonState
from rankmill.analysis.compare.differences.differences import lists_moved
from rankmill.engine.job import parse_job
from rankmill.errors import UsageError
from rankmill.nightly.gate.gate import ages_of, verdict_of
from rankmill.nightly.gate.gate_request import Rules, asked_of, metrics_asked
from rankmill.nightly.gate.judge import Evidence
from rankmill.nightly.rules.baseline import (
    BASELINE,
    CANDIDATE,
    Baseline,
    check_gains,
    check_in_both,
    earlier_result,
    holds_values,
    open_baseline,
)
from rankmill.nightly.rules.verdict import Verdict
from rankmill.results.result import Result
from rankmill.semantics.semantics import Counting
from rankmill.sources.meaning.looks import reading_again
from rankmill.sources.nouns import Catalogue, Labels, Predictions
from rankmill.sources.roles.source import MEMORY
from rankmill.spark.evaluation import per_query_frame
from rankmill.spark.exchange.layout import arrow_schema, from_arrow
from rankmill.spark.exchange.spark_request import check_frame, is_frame, on_spark, request_of
from rankmill.spark.slice_sides import EARLIER
from rankmill.spark.systems import JoinedOnSpark, join
from rankmill.threads import thread_count


@on_spark
@reading_again
def gate(
    labels: Any,
    predictions: Any,
    rules: str | Iterable[str] | Rules,
    *,
    baseline: Any = None,
    history: str | Path | None = None,
    metrics: str | Sequence[str] = (),
    by: Any = (),
    moved: int = 0,
    time: datetime | None = None,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    partitions: int | None = None,
    per_query: bool = False,
    memory: int = MEMORY,
) -> Verdict:
    """Check the predictions of a Spark DataFrame against rules.

    Parameters
    ----------
    labels, predictions, semantics, catalogue, partitions, memory
        As for `rankmill.spark.evaluate`.
    rules : str, iterable of str, or Rules
        As for `rankmill.gate`, but not about the age of inputs: a DataFrame has none.
    per_query : bool
        Whether the result of the verdict has the values of each query, as a DataFrame. It may be
        the baseline of a later run.
    baseline : object, optional
        What rules with "drop" and "change" compare with: a DataFrame of predictions, or one with
        the values by query of an earlier run, which are paired; a `Result`, or the local Parquet
        file of its values by query; or a run of a history.
    by : str, table or sequence of these
        As for `rankmill.spark.compare`.
    history, metrics, moved, time
        As for `rankmill.gate`. There is no `cluster` and no `adjust`: both need all queries at
        once.

    Returns
    -------
    Verdict
        As that of `rankmill.gate`.
    """
    began = perf_counter()
    several = by if isinstance(by, list | tuple) else [by]
    # What is checked before anything is read are tables with the columns of DataFrames.
    tables = [arrow_schema(one).empty_table() if is_frame(one) else one for one in several]
    frames = {id(one): frame for one, frame in zip(tables, several, strict=True)}
    of_labels, of_predictions = Labels.of(labels), Predictions.of(predictions)
    check_frame(of_labels.data, "labels")
    opened = partial(_opened, of_labels.data.sparkSession)
    given = Rules.of(rules)
    settings = settings_of("t", given.confidence, None, moved)
    names = metrics_asked(given, metrics)
    how: Any = {"memory": memory, "part": True, "keep_values": False}
    job = parse_job(names, of_labels, semantics, catalogue, **how)
    asked = asked_of(given, job, settings, baseline, history, time, tables, None, opened)
    ages = ages_of(asked, of_labels.data, of_predictions.data)
    runs, earlier, cuts = asked.runs(of_predictions), asked.earlier, asked.cuts
    request = request_of(of_labels, runs, job, partitions, cuts.facts, catalogue)
    joined = join(
        request,
        request.names[0],
        cuts._replace(tables=tuple(frames.get(id(one), one) for one in cuts.tables)),
        moved=moved,
        crossed=asked.crossed,
        moments=asked.dropping,
        alone=earlier is not None and (len(runs) > 1 or earlier.table is not None),
        earlier=earlier if earlier is not None and earlier.table is not None else None,
    )
    results, state = joined.results, joined.found.state
    if earlier is not None:
        check_gains(earlier, results[CANDIDATE])
    if earlier is not None and earlier.table is not None:
        results, state = _paired(earlier, joined)
    if per_query:
        values = per_query_frame(joined.request, len(runs), joined.seals)
        results[CANDIDATE] = replace(results[CANDIDATE], per_query=values)
    comparison = None
    if BASELINE in results:
        threads, lists = thread_count(None), lists_moved(joined.found.moved)
        known = results, joined.without
        comparison = finish(state, settings, threads, *known, moved=lists)
    evidence = Evidence(asked, results, joined.without, state, ages, joined.found.alone)
    found = verdict_of(evidence, comparison)
    return replace(found, seconds=perf_counter() - began)


def _opened(session: Any, value: Any, metrics: Sequence[str]) -> Baseline:
    """Find out what a baseline is; values by query become a DataFrame, which joins the others."""
    if isinstance(value, Predictions):
        return Baseline("predictions", "a DataFrame", predictions=value)
    known = None if is_frame(value) else open_baseline(value, metrics)
    frame = value.per_query if isinstance(value, Result) else value
    if known is not None and known.table is not None:
        return replace(known, predictions=from_arrow(session, known.table))
    if is_frame(frame):
        schema = arrow_schema(frame)
        if known is None and not holds_values(schema, metrics, "a DataFrame"):
            return Baseline("predictions", "a DataFrame", predictions=frame)
        known = known or Baseline("per-query", "a DataFrame")
        return replace(known, kind="per-query", predictions=frame, table=schema.empty_table())
    if known is None or known.kind == "predictions":
        raise UsageError(
            f"baseline is a {type(value).__name__}; expected a DataFrame of predictions or of "
            "per-query values, a Result, or a run of a history"
        )
    return known


def _paired(earlier: Baseline, joined: JoinedOnSpark) -> tuple[dict[str, Result], ComparisonState]:
    """Return the results with that of an earlier run, and the state of both.

    Raises InputError if no query is in both.
    """
    result, state = joined.results[CANDIDATE], joined.found.state
    rows = joined.found.rows[EARLIER]
    check_in_both(result.queries, rows, state.whole.queries, earlier.source)
    before = earlier_result(earlier, result, rows)
    # Tasks do not know this of all queries.
    unpredicted = {
        name: one.audit["queries_only_labelled"]
        for name, one in ((BASELINE, before), (CANDIDATE, result))
    }
    return {BASELINE: before, **joined.results}, replace(state, unpredicted=unpredicted)
