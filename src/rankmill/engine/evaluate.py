"""evaluate() scores predictions against labels, here or on Spark; plan() tells what it reads."""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple, cast

from rankmill.engine.cuts import check_several, job_of
from rankmill.engine.finish import finish, sealed
from rankmill.engine.first_pass import Progress, progress_of, run
from rankmill.engine.held_labels import HeldLabels, beside, described_beside, opened
from rankmill.engine.job import Job, open_job, parse_job, runs_of
from rankmill.engine.results import Results
from rankmill.engine.tally import Tally
from rankmill.errors import UsageError, told_shortly
from rankmill.matching.catalogue import KnownItems
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.metrics.exposure import GIVE_ITEMS, Exposure
from rankmill.metrics.records.item_counts import ItemCounts
from rankmill.package import stamp
from rankmill.results.result import Result
from rankmill.semantics.choices import WHOLE, Scope
from rankmill.semantics.semantics import Counting
from rankmill.show.tables import Column, Facts, Part, Table, View, size_text
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.meaning.looks import reading_again
from rankmill.sources.meaning.shapes import NO_FACTS, Kind
from rankmill.sources.nouns import (
    Catalogue,
    Labels,
    LabelsLike,
    Predictions,
    PredictionsLike,
    SlicesLike,
    is_spark_frame,
)
from rankmill.sources.roles.source import MEMORY
from rankmill.threads import Workers


@told_shortly
def evaluate(
    labels: LabelsLike,
    predictions: PredictionsLike,
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    semantics: Counting = "default",
    by: SlicesLike = (),
    sums: str | Iterable[str] = (),
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    per_query: bool = True,
    progress: Progress | bool | None = None,
    partitions: int | None = None,
) -> Result:
    """Score ranked predictions against labels.

    By default, queries without a label are left out of the means, and a query with labels but no
    predictions scores 0. Labels are a set. A repeated prediction counts at its first place. A null
    item is not a prediction: the predictions after it move up. Equal confidences count in gap with
    the expected value over all their orders. `semantics` changes each of these rules, so the
    result can follow the rules of another library.

    Parameters
    ----------
    labels, predictions : Labels and Predictions, or what these hold
        `Labels` and `Predictions` say how their data are read, such as the names of columns that
        are not found by their usual names (user_id, query_id, item_id, items, score, rank, gain and
        so on). Data with usual column names can be given as they are. A Parquet file, several, a
        glob, a directory (also Hive-partitioned); or a frame of pandas or Polars, a DuckDB
        relation, a pyarrow.Table or anything that exports an Arrow stream; or ``{query: [items]}``,
        ``{query: {item: score or gain}}``, or lists aligned by position (``rankmill docs
        notebooks`` shows all of them). *Wide*: one row for each query, with a list column of items
        in rank order and, optionally, a list column of confidences. *Long*: one row for each query
        and item, optionally with a rank or a confidence. A long list is sorted by rank if there are
        ranks, else by descending confidence, else it keeps the order of its rows, if no column of
        numbers is left over. Ids are integers or strings. If one side is a `Ragged` or a list of
        lists, so must be the other, and list q of both belongs to query q. DataFrames of Spark are
        scored on its cluster, all of them (``rankmill docs spark``).
    metrics : str or iterable of str
        Names such as "map@12", "first_hit" or "gap", "map@5,10" for two cutoffs and "map@1..100"
        for a hundred; a set of them, which is "official" (what trec_eval prints), "recsys" or "pr"
        (precision over recall); or "@FILE" for the names in a file. ``rankmill metrics`` prints all
        names, and with ``--sets`` what a set holds.
    semantics : str, Semantics or mapping
        How to count, where evaluators differ: the name of a preset such as "trec_eval"
        (``rankmill presets`` prints all of them), or a `Semantics` with your own choices. A mapping
        names only the fields that differ from the default.
    by : str, table or sequence of these
        Slices of the queries, for which the metrics are also computed: a column of the labels; a
        path or a table with query ids, where every other column makes slices, or those that the
        path names at its end, as in "users.parquet:country,age:4,signup:month", which makes 4
        groups of age; or "label_count", "list_length", "label_popularity", "activity" (how many
        items a query had in training) or "unpredicted", as for `compare`. The slices are in
        `Result.by`, each with the values that its queries have alone, to the last bit.
    sums : str or iterable of str
        Weighted sums of metrics, each with a name: "total = 0.3*recall@20:micro[type=carts] +
        0.7*map", where [] holds one slice of `by`. They are in `Result.sums`.
    catalogue : Catalogue, optional
        The items that can be shown, and what queries had in training, for metrics such as coverage,
        novelty and ild.
    threads : int, optional
        The number of threads; by default the number of CPUs that this process may use. The result
        does not depend on it.
    memory : int
        A limit in bytes, in addition to what the program and the current batches take. If the
        confidences for gap need more, they are read a second time, and those of correct predictions
        go to a temporary file; so do long predictions whose queries are scattered. If labels need
        more, both sides are Parquet files and `per_query` is False, one share of the queries is
        scored after the other. The result does not depend on the limit.
    per_query : bool
        Whether the result holds a table with the values of each query. On Spark it is a DataFrame,
        which is computed when it is used.
    progress : bool or callable, optional
        True prints progress on standard error. A function is called with the number of prediction
        rows done and their total.
    partitions : int, optional
        How many partitions DataFrames of Spark are shuffled into, by query. By default one for each
        32 MB of both inputs; if Spark does not know their size, as of `createDataFrame`, at least
        spark.sql.shuffle.partitions (200), which is slow for small frames.

    Returns
    -------
    Result
        Values, standard errors, the audit of what was counted, and the table of each query.

    Raises
    ------
    InputError
        If the data breaks a rule; the message names the file, the row (counted from 0) and what to
        do.
    UsageError
        If the arguments are wrong, such as an unknown metric.
    ResourceError
        If the labels of files, or their lists of predictions, need more than `memory` at once.

    Examples
    --------
    >>> import rankmill
    >>> import pyarrow as pa
    >>> labels = pa.table({"user_id": [7, 8], "items": [[1, 2], [3]]})
    >>> predictions = pa.table({"user_id": [8, 7], "items": [[4, 3], [1, 5, 2]]})
    >>> result = rankmill.evaluate(labels, predictions, ["map@12", "first_hit"])
    >>> result["map@12"], result["first_hit"]
    (0.6666666666666666, 0.75)

    Name a column that does not have a usual name. "recsys" is a set of metrics.

    >>> labels = rankmill.Labels(pa.table({"buyer": [7, 8], "items": [[1, 2], [3]]}), query="buyer")
    >>> rankmill.evaluate(labels, predictions, "recsys")["hit@10"]
    1.0

    Use `by` to evaluate slices of the queries.

    >>> sliced = rankmill.evaluate(labels, predictions, "recall@2", by="label_count")
    >>> sliced.by.to_pylist()[0]["value"]
    1.0
    """
    given, runs = Labels.of(labels), {"": Predictions.of(predictions)}
    executor = executor_of(given, runs, Local(threads, progress), partitions)
    job = job_of(
        metrics, given, semantics, catalogue, by, sums, memory=memory, keep_values=per_query
    )
    results: dict[str, Result] = executor.evaluate(job, given, runs, catalogue)
    return results[""]


@told_shortly
def evaluate_runs(
    labels: LabelsLike,
    runs: Mapping[str, PredictionsLike],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    semantics: Counting = "default",
    by: SlicesLike = (),
    sums: str | Iterable[str] = (),
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    per_query: bool = True,
    progress: Progress | bool | None = None,
    partitions: int | None = None,
) -> Results:
    """Score several systems against the same labels, which are read only once.

    Parameters
    ----------
    labels, metrics, semantics, by, sums, catalogue, threads, memory, per_query
        As for `evaluate`. All systems have the same slices: "list_length" is that of the first
        one, and "unpredicted" is refused.
    progress, partitions
        As for `evaluate`.
    runs : mapping of str to predictions
        The predictions of each system, each as for `evaluate`.

    Returns
    -------
    Results
        A dict with the result of each system, shown as a table. Errors are as for `evaluate`; a
        UsageError is also raised if `runs` is not a mapping.

    Examples
    --------
    >>> import rankmill
    >>> labels = rankmill.arrays.Ragged.from_lists([[1], [2]])
    >>> runs = {"old": [[1], [3]], "new": [[1], [3, 2]]}
    >>> runs = {name: rankmill.arrays.Ragged.from_lists(lists) for name, lists in runs.items()}
    >>> results = rankmill.evaluate_runs(labels, runs, ["first_hit"])
    >>> {name: result["first_hit"] for name, result in results.items()}
    {'old': 0.5, 'new': 0.75}
    """
    given, systems = Labels.of(labels), runs_of(runs)
    executor = executor_of(given, systems, Local(threads, progress), partitions)
    job = job_of(
        metrics, given, semantics, catalogue, by, sums, memory=memory, keep_values=per_query
    )
    return Results(executor.evaluate(job, given, systems, catalogue))


# ------------------------------------------------------------------ where it is done


class Local(NamedTuple):
    """The executor of one machine: how many threads it takes, and who is told of progress."""

    threads: int | None = None
    progress: Progress | bool | None = None

    def workers(self) -> Workers:
        """Return a pool of so many threads."""
        return Workers(self.threads)

    @reading_again
    def evaluate(
        self,
        job: Job,
        labels: Labels,
        runs: Mapping[str, Predictions],
        catalogue: Catalogue | None,
    ) -> dict[str, Result]:
        """Return the result of each system."""
        results = {}
        if len(runs) > 1:
            check_several(job)
        with closing(score_systems(job, labels, runs, *self, catalogue)) as systems:
            for one in systems:
                results[one.name] = sealed(one.result)
                del one  # frees the tally before the next system is scored
        return results


def executor_of(
    labels: Labels,
    runs: Mapping[str, Predictions],
    local: Local,
    partitions: int | None,
    **alone: Any,
) -> Any:
    """Return that of Spark if an input is a DataFrame of Spark; else `local`, which is given.

    Raises UsageError if an option is for the other one; `alone` are those of this machine, beside
    how many threads it takes.
    """
    if not any(is_spark_frame(one.data) for one in (labels, *runs.values())):
        if partitions is not None:
            raise UsageError(
                "partitions are those of DataFrames of Spark, and no input is one: leave it out"
            )
        return local
    for name, value in {**alone, **local._asdict()}.items():
        if value is not None and value is not False:
            raise UsageError(
                f"{name} is not supported on Spark: leave it out, or give the same rows in files"
            )
    # Spark's stands above all that is done on one machine, which imports nothing of it.
    return import_module("rankmill.spark.executor").OnSpark(partitions)


class ScoredSystem(NamedTuple):
    """A scored system: its tally and result, and the inputs that they came from."""

    name: str
    tally: Tally
    result: Result
    labels: Input
    predictions: Input


def _scored(
    job: Job,
    labels: Input,
    inputs: Mapping[str, Input],
    workers: Workers,
    progress: Progress | None,
    catalogue: Catalogue | None,
) -> Generator[Tally, None, None]:
    """Yield the tally of each system; one catalogue is that of all, where none is given."""
    held = HeldLabels(labels)
    if len(inputs) > 1 and job.own_catalogue and not job.part:
        job = replace(job, catalogue=_shown_by_any(job, held, inputs, workers))
    yield from run(job, held, inputs, workers, progress, catalogue)


def _shown_by_any(
    job: Job, labels: HeldLabels, inputs: Mapping[str, Input], workers: Workers
) -> KnownItems:
    """Return all items of the labels and of the predictions of any system, by a pass of its own."""
    once = next((one.source.name for one in inputs.values() if one.source.kept), None)
    if once is not None:
        raise UsageError(
            f"{', '.join(job.own_catalogue)} of several systems is a share of the items of all of "
            f"them, and {once} can be read only once: {GIVE_ITEMS}, or read it into a table"
        )
    (metric, *_) = (one for one in job.metrics if one.text in job.own_catalogue)
    nothing: Any = {"aside": (), "cuts": None, "by": (), "sums": (), "groups": None, "alike": None}
    nothing |= {"keep_values": False, "keep_lengths": False}
    found = ItemCounts(1)
    with closing(
        run(replace(job, metrics=(metric,), **nothing), labels, inputs, workers)
    ) as tallies:
        for tally in tallies:
            exposure = cast(Exposure, tally.state.aggregates[Exposure.name])
            items, counts = exposure.shown.joined()
            found = found.merge(exposure.labels).with_counts(items, counts[:, :1])
            del tally, exposure
    return KnownItems(found.joined()[0])


def score_systems(
    job: Job,
    labels: Labels,
    runs: Mapping[str, Predictions],
    threads: int | None = None,
    progress: Progress | bool | None = None,
    catalogue: Catalogue | None = None,
    facts: Mapping[str, Kind] = NO_FACTS,
) -> Generator[ScoredSystem, None, None]:
    """Score one system after the other; the caller closes the generator.

    `facts` are more columns of the labels with a value a query, which the caller reads while a
    system is given.
    """
    facts = {**facts, **(job.cuts.facts if job.cuts else {})}
    began = time.perf_counter()
    told = progress_of(progress)
    with (
        open_job(job, labels, runs, facts, noted=not job.part) as (label_input, inputs),
        Workers(threads, job.waiting) as workers,
        closing(_scored(job, label_input, inputs, workers, told, catalogue)) as tallies,
    ):
        several = len(runs) > 1
        for name, one in inputs.items():
            tally = next(tallies)  # zip would hold it while the next system is scored
            result = finish(tally, label_input, one, workers, began, several=several)
            yield ScoredSystem(name, tally, result, label_input, one)
            del tally
            began = time.perf_counter()


# ------------------------------------------------------------------ what will be read


def plan(
    labels: LabelsLike,
    predictions: PredictionsLike,
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    memory: int = MEMORY,
) -> dict[str, Any]:
    """Show what `evaluate` with the same arguments would read, from the footers of files only.

    Parameters
    ----------
    labels, predictions, metrics, semantics, catalogue, memory
        As for `evaluate`.

    Returns
    -------
    dict
        "labels" and "predictions": source, files, rows, values, bytes (compressed, to read), shape,
        columns, unread (the columns that are not read, if any), rules (those that read each
        column), and so "train", "items" and "features", if given; "scope": `rel`, `depth`,
        `judged_only` and `weight`.

    Raises
    ------
    InputError, UsageError
        As `evaluate`, if footers are enough to find the error.

    Examples
    --------
    >>> import rankmill
    >>> import pyarrow as pa
    >>> labels = pa.table({"user_id": [7, 8], "items": [[1, 2], [3]]})
    >>> rankmill.plan(labels, labels, ["map"])["labels"]["values"]
    3
    """
    whole = plan_runs(labels, {"": predictions}, metrics, semantics, catalogue, memory)
    return whole | {"predictions": whole["predictions"][""]}


def plan_runs(
    labels: LabelsLike,
    runs: Mapping[str, PredictionsLike],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    memory: int = MEMORY,
) -> dict[str, Any]:
    """Do the same as `plan` for `evaluate_runs`; "predictions" is a dict by name of the system."""
    given, systems = Labels.of(labels), runs_of(runs)
    job = parse_job(metrics, given, semantics, catalogue, memory=memory)
    with open_job(job, given, systems) as (label_input, inputs):
        told: dict[str, Any] = {"labels": _described(label_input)}
        told["predictions"] = {name: _described(one) for name, one in inputs.items()}
        for name, opener in beside(catalogue, label_input, job).items():
            with opened(name, opener, label_input) as one:
                told[name] = described_beside(name, one) | _sizes(one)
        return {**told, "scope": job.scope.to_dict()}


def _described(one: Input) -> dict[str, Any]:
    return one.described() | _sizes(one) | {"rules": one.source.findings.rules()}


def _sizes(one: Input) -> dict[str, Any]:
    sizes = one.source.sizes([name for name in one.columns.every() if name])
    return {
        "values": sizes[one.columns.item][0],
        "bytes": sum(size for _, size in sizes.values()),
    }


def plan_view(plan: Mapping[str, Any]) -> View:
    """Return what is shown of what `plan_runs` returned."""
    runs = plan["predictions"]
    if len(runs) == 1:
        runs = {"predictions": next(iter(runs.values()))}
    more = {name: plan[name] for name in ("train", "items", "features") if name in plan}
    inputs = {"labels": plan["labels"], **runs, **more}

    def rows(keys: Collection[str], between: str) -> list[list[Any]]:
        found = []
        for name, one in inputs.items():
            columns = (f"{role}={column}" for role, column in one["columns"].items() if column)
            found.append([name, *(one.get(key) for key in keys), between.join(columns)])
        return found

    shown = {name: Column(name, "count") for name in ("files", "rows", "values")}
    shown |= {"bytes": Column("to read", "size"), "shape": Column("shape")}
    told = "source", "shape", "files", "rows", "values", "bytes"
    table = Table([Column("input"), *shown.values(), Column("columns")], rows(shown, ", "))
    exact = Table([Column(name) for name in ("input", *told, "columns")], rows(told, " "))
    facts = {"to read": size_text(sum(one["bytes"] for one in inputs.values()))}
    scope = Scope(**plan["scope"])
    facts |= {"scope": str(scope)} if scope != WHOLE else {}
    screen: list[Part] = [table, "", Facts(facts.items())]
    return View(lambda: screen, lambda: [table], lambda: exact, lambda: {**stamp(), **plan})
