"""gate() of DataFrames of Spark."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rankmill.compare.compare import compared
from rankmill.compare.moved import lists_moved
from rankmill.compare.state import ComparisonState
from rankmill.engine.options import options_of
from rankmill.errors import UsageError
from rankmill.gate.asked import OPTIONS, asked_of
from rankmill.gate.baseline import (
    BASELINE,
    CANDIDATE,
    Baseline,
    check_gains,
    holds_values,
    open_baseline,
)
from rankmill.gate.gate import ages_of, verdict_of
from rankmill.gate.gate import gate as gate_here
from rankmill.gate.pairing import check_in_both, earlier_result
from rankmill.gate.verdict import Verdict
from rankmill.results.result import Result
from rankmill.spark.aligning import EARLIER
from rankmill.spark.comparing import Joined, join
from rankmill.spark.layout import arrow_schema
from rankmill.spark.per_query import per_query_frame
from rankmill.spark.request import NOT_TAKEN, check_frame, is_frame, refuse_whole
from rankmill.threads import thread_count


@options_of(gate_here, without=(*NOT_TAKEN, "details", "now"))
def gate(
    labels: Any,
    predictions: Any,
    rules: str | Iterable[str],
    *,
    partitions: int | None = None,
    per_query: bool = False,
    **options: Any,
) -> Verdict:
    """Evaluate the predictions of a Spark DataFrame, and say whether they keep rules.

    Parameters
    ----------
    labels, predictions, partitions
        As for `rankmill.spark.evaluate`.
    rules : str or iterable of str
        As for `rankmill.gate`, but not about the age of inputs: a DataFrame has none.
    per_query : bool
        Whether the result of the verdict has the values of each query, as a DataFrame. It may be
        the baseline of a later run.
    baseline : object, optional
        What rules with "drop" and "change" compare with: a DataFrame of predictions, or one with
        the values by query of an earlier run, which are paired; a `Result`, its JSON file, or the
        local Parquet file of its values by query; or a run of a history.
    by : str, table or sequence of these
        As for `rankmill.spark.compare`.

    Returns
    -------
    Verdict
        As that of `rankmill.gate`, whose other options are those of this function.
    """
    began = time.perf_counter()
    given = {name: options.pop(name) for name in OPTIONS}
    refuse_whole(given)
    by = given["by"] if isinstance(given["by"], list | tuple) else [given["by"]]
    # What is checked before anything is read are tables with the columns of DataFrames.
    given["by"] = [arrow_schema(one).empty_table() if is_frame(one) else one for one in by]
    frames = {id(one): frame for one, frame in zip(given["by"], by, strict=True)}
    check_frame(labels, "labels")
    opened = partial(_opened, labels.sparkSession)
    asked = asked_of(rules, given, {**options, **dict.fromkeys(NOT_TAKEN)}, opened)
    ages = ages_of(asked, labels, predictions, None)
    runs, earlier, cuts = asked.runs(predictions), asked.earlier, asked.cuts
    joined = join(
        labels,
        runs,
        asked.metrics,
        options | {"partitions": partitions, "per_query": False},
        baseline=next(iter(runs)),
        cuts=cuts._replace(tables=tuple(frames.get(id(one), one) for one in cuts.tables)),
        moved=asked.settings.moved,
        crossed=asked.crossed,
        alone=earlier is not None and (len(runs) > 1 or earlier.table is not None),
        earlier=earlier if earlier is not None and earlier.table is not None else None,
    )
    results, state = joined.results, joined.found.state
    if earlier is not None:
        check_gains(earlier, results[CANDIDATE])
    if earlier is not None and earlier.table is not None:
        results, state = _paired(earlier, joined)
    if per_query:
        values = per_query_frame(joined.request, len(runs))
        results[CANDIDATE] = replace(results[CANDIDATE], per_query=values)
    comparison = None
    if BASELINE in results:
        threads, moved = thread_count(None), lists_moved(joined.found.moved)
        known = results, joined.without
        comparison = compared(*known, state, asked.settings, threads, moved=moved)
    found = verdict_of(asked, results, joined.without, state, ages, comparison, joined.found.alone)
    return replace(found, seconds=time.perf_counter() - began)


def _opened(session: Any, value: Any, metrics: Sequence[str]) -> Baseline:
    """Find out what a baseline is; values by query become a DataFrame, which joins the others."""
    known = open_baseline(value, metrics) if not is_frame(value) else None
    frame = value.per_query if isinstance(value, Result) else value
    if known is not None and known.table is not None:
        return replace(known, predictions=session.createDataFrame(known.table))
    if is_frame(frame):
        schema = arrow_schema(frame)
        if known is not None:
            return replace(known, kind="per-query", predictions=frame, table=schema.empty_table())
        if holds_values(schema, metrics, "a DataFrame"):
            table = schema.empty_table()
            return Baseline("per-query", "a DataFrame", predictions=frame, table=table)
        return Baseline("predictions", "a DataFrame", predictions=frame)
    if known is None or known.kind == "predictions":
        raise UsageError(
            f"baseline is a {type(value).__name__}; expected a DataFrame of predictions or of "
            "values by query, a Result, its JSON file, or a run of a history"
        )
    return known


def _paired(earlier: Baseline, joined: Joined) -> tuple[dict[str, Result], ComparisonState]:
    """Return the results with that of an earlier run, and the state of both.

    Raises
    ------
    InputError
        If no query is in both.
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
