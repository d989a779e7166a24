"""The executor of a cluster: what evaluate, compare and gate do with DataFrames of Spark."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from rankmill.analysis.compare.conclusion import finish
from rankmill.analysis.compare.differences.differences import Settings, lists_moved
from rankmill.analysis.compare.view.comparison import Comparison
from rankmill.engine.cuts import Cuts
from rankmill.engine.job import Job, parse_job, runs_of
from rankmill.errors import UsageError
from rankmill.nightly.gate.gate_request import CheckedGate
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
from rankmill.results.result import Result
from rankmill.sources.meaning.looks import reading_again
from rankmill.sources.nouns import Catalogue, Labels, Predictions, is_spark_frame
from rankmill.spark.evaluation import evaluate, per_query_frame, request_to_evaluate
from rankmill.spark.exchange.layout import arrow_schema, from_arrow
from rankmill.spark.exchange.spark_request import check_frame, on_spark, request_of
from rankmill.spark.slice_sides import EARLIER
from rankmill.spark.systems import JoinedOnSpark, join, values_of_systems
from rankmill.threads import thread_count


class OnSpark(NamedTuple):
    """The executor of Spark, which shuffles all inputs by query into so many partitions."""

    partitions: int | None = None

    @on_spark
    @reading_again
    def evaluate(
        self,
        job: Job,
        labels: Labels,
        runs: Mapping[str, Predictions],
        catalogue: Catalogue | None,
    ) -> dict[str, Result]:
        """Return the result of each system."""
        job = replace(job, part=True)
        return evaluate(request_to_evaluate(labels, runs, job, self.partitions, catalogue))

    @on_spark
    @reading_again
    def compare(
        self,
        job: Job,
        labels: Labels,
        runs: Mapping[str, Predictions],
        baseline: str,
        cuts: Cuts,
        settings: Settings,
        catalogue: Catalogue | None,
    ) -> Comparison:
        """Return the comparison of systems.

        Each task joins the systems over its queries and returns exact sums, so that all values,
        tests and intervals have the same bits as on one machine.
        """
        request = request_of(labels, runs, _part(job), self.partitions, cuts.facts, catalogue)
        joined = join(request, baseline, cuts, moved=settings.moved)
        request = replace(request, job=joined.request.job)
        return _compared(joined, settings, per_query=values_of_systems(request, joined.seals))

    def opens(self, labels: Labels) -> Callable[[Any, Sequence[str]], Baseline]:
        """Return what opens a baseline of a gate."""
        check_frame(labels.data, str(labels.role))
        return partial(_opened, labels.data.sparkSession)

    @on_spark
    @reading_again
    def measured(
        self,
        asked: CheckedGate,
        labels: Labels,
        predictions: Predictions,
        catalogue: Catalogue | None,
        ages: Mapping[str, float],
    ) -> tuple[Evidence, Comparison | None]:
        """Return what the rules of a gate are held against, and the comparison with a baseline."""
        runs, earlier = asked.runs(predictions), asked.earlier
        request = request_of(
            labels, runs, _part(asked.job), self.partitions, asked.cuts.facts, catalogue
        )
        table = earlier is not None and earlier.table is not None
        joined = join(
            request,
            request.names[0],
            asked.cuts,
            moved=asked.settings.moved,
            crossed=asked.crossed,
            moments=asked.dropping,
            alone=table or len(runs) > 1,
            earlier=earlier if table else None,
        )
        if earlier is not None:
            check_gains(earlier, joined.results[CANDIDATE])
        if earlier is not None and table:
            joined = _paired(earlier, joined)
        values = per_query_frame(joined.request, len(runs), joined.seals)
        joined.results[CANDIDATE] = replace(joined.results[CANDIDATE], per_query=values)
        both = BASELINE in joined.results
        found = joined.found
        evidence = Evidence(asked, joined.results, joined.without, found.state, ages, found.alone)
        return evidence, _compared(joined, asked.settings) if both else None


def values_of_runs(asked: Mapping[str, Any]) -> Any:
    """Return the values of each query for all systems, given the arguments of `evaluate_runs`."""
    labels, catalogue = Labels.of(asked["labels"]), asked.get("catalogue")
    memory = {name: asked[name] for name in asked if name == "memory"}
    how = asked["metrics"], labels, asked.get("semantics", "default"), catalogue
    job = parse_job(*how, part=True, **memory)
    runs = labels, runs_of(asked["runs"]), job, asked.get("partitions")
    return values_of_systems(request_of(*runs, catalogue=catalogue))


def _part(job: Job) -> Job:
    return replace(job, part=True, keep_values=False)


def _compared(joined: JoinedOnSpark, settings: Settings, **facts: Any) -> Comparison:
    known = joined.results, joined.without
    lists = lists_moved(joined.found.moved)
    return finish(joined.found.state, settings, thread_count(None), *known, moved=lists, **facts)


def _opened(session: Any, value: Any, metrics: Sequence[str]) -> Baseline:
    """Find out what a baseline is; values by query become a DataFrame, which joins the others."""
    if isinstance(value, Predictions):
        return Baseline("predictions", "a DataFrame", predictions=value)
    known = None if is_spark_frame(value) else open_baseline(value, metrics)
    frame = value.per_query if isinstance(value, Result) else value
    if known is not None and known.table is not None:
        return replace(known, predictions=from_arrow(session, known.table))
    if is_spark_frame(frame):
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


def _paired(earlier: Baseline, joined: JoinedOnSpark) -> JoinedOnSpark:
    """Return a system with the result of an earlier run, and the state of both.

    Raises InputError if no query is in both.
    """
    result, found = joined.results[CANDIDATE], joined.found
    rows = found.rows[EARLIER]
    check_in_both(result.queries, rows, found.state.whole.queries, earlier.source)
    before = earlier_result(earlier, result, rows)
    # Tasks do not know this of all queries.
    unpredicted = {
        name: one.audit["queries_only_labelled"]
        for name, one in ((BASELINE, before), (CANDIDATE, result))
    }
    found = replace(found, state=replace(found.state, unpredicted=unpredicted))
    return joined._replace(found=found, results={BASELINE: before, **joined.results})
