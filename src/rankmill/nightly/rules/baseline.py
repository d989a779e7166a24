"""What a system is compared with: predictions, an earlier run by query, or the numbers of one."""

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import pyarrow as pa

from rankmill.columns.seal import seal_of_table
from rankmill.engine.job import Job
from rankmill.errors import InputError, UsageError, outside
from rankmill.io.stores.urls import opened
from rankmill.metrics.registry import parse
from rankmill.nightly.rules.limits import range_text
from rankmill.nightly.runs.runs import (
    RecordedMetric,
    Run,
    SliceKey,
    beside_of,
    beside_text,
    looks_at,
)
from rankmill.package import check_stamp
from rankmill.records import record
from rankmill.results.result import PER_QUERY, Result
from rankmill.sources.nouns import Predictions

LONGEST_LINE = 1 << 16
BASELINE, CANDIDATE = "baseline", "candidate"
IN_MEMORY = "a table"


@record(frozen=True)
class Baseline:
    """What a system is compared with."""

    kind: str  # "predictions", "per-query", "result" or "history"
    source: str  # where it comes from
    predictions: Any = None  # what `evaluate` takes, if that is its kind
    table: pa.Table | None = None  # the values of each query of an earlier run
    result: Result | None = None  # that of an earlier run, as far as it is known
    recorded: Mapping[str, RecordedMetric] = field(default_factory=dict)  # metrics of a history
    notes: tuple[str, ...] = ()  # what to know of the choice of a run of a history
    # The slices of the runs of a history that rules compare with.
    slices: Mapping[SliceKey, RecordedMetric] = field(default_factory=dict)
    # Metric -> its slices in the run of the night before, whatever its verdict.
    night_before: Callable[[str], Mapping[tuple[str, str], RecordedMetric]] = lambda metric: {}
    # Metric -> its slices in the run that is the baseline.
    its_slices: Callable[[str], Mapping[tuple[str, str], RecordedMetric]] = lambda metric: {}
    since: Run | None = None  # the run of a history that the user named, the first of several

    def to_dict(self) -> dict[str, Any]:
        """Return what a verdict says of it."""
        return {"kind": self.kind, "source": self.source}


def open_baseline(value: Any, metrics: Iterable[str]) -> Baseline:
    """Find out what a baseline is.

    A Result and the file of its values by query are an earlier run. Anything else is predictions.
    `metrics` are the columns by which the values of queries are known if the file does not say what
    it is.
    """
    if isinstance(value, Result):
        # Its numbers alone go to the tasks of Spark.
        numbers = replace(value, per_query=None, curves={}, counted=None)
        if isinstance(value.per_query, pa.Table):  # no DataFrame of Spark
            return Baseline("per-query", "a Result", table=value.per_query, result=numbers)
        return Baseline("result", "a Result", result=numbers)
    if isinstance(value, pa.Table) and holds_values(value.schema, metrics, IN_MEMORY):
        return _of_table(value, IN_MEMORY)
    if isinstance(value, str | os.PathLike) and os.path.isfile(value):
        path = os.fspath(value)
        opened(path)
        _check_no_result(path)
        table = _read_table(path, metrics)
        if table is not None:
            return _of_table(table, path)
    data = value.data if isinstance(value, Predictions) else value
    name = os.fspath(data) if isinstance(data, str | os.PathLike) else type(data).__name__
    return Baseline("predictions", name, predictions=value)


def _check_no_result(path: str) -> None:
    """Raise UsageError if a file begins as the JSON of a result, or of a verdict."""
    with open(path, "rb") as file:
        begins = re.match(rb'\s*\{\s*"(rankmill|word)":', file.read(LONGEST_LINE))
    if begins and path.endswith(".json"):
        raise UsageError(
            f"the baseline {path} is the JSON of a result, which is none any more: give a file of "
            "its values by query (--per-query on the command line, Result.per_query in Python), or "
            "record runs in a history and compare with last"
        )


def _read_table(path: str, metrics: Iterable[str]) -> pa.Table | None:
    """Return the values by query in a file of Parquet or Arrow, None if it holds something else."""
    import pyarrow.parquet as pq

    try:
        with pa.OSFile(os.fsencode(path)) as file:
            first = file.read(LONGEST_LINE).partition(b"\n")[0]
            of_arrow = first.startswith(b"ARROW1")
            _check_text(path, first, metrics)
            schema = pa.ipc.open_file(file).schema if of_arrow else pq.read_schema(file)
            if not holds_values(schema, metrics, path):
                return None
            table = pa.ipc.open_file(file).read_all() if of_arrow else pq.read_table(file)
            table.validate(full=True)
            return table
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None  # the reader of predictions tells what is wrong


def _check_text(path: str, line: bytes, metrics: Iterable[str]) -> None:
    """Raise UsageError if the first line of a file of text names a metric."""
    if path.endswith((".csv", ".jsonl", ".ndjson")):
        words = re.split(r'[,"]', line.decode(errors="replace").strip())
        if any(name in words for name in metrics):
            raise UsageError(
                f"the baseline {path} holds per-query values as text, which does not show how "
                "they were counted: give --per-query a name in .parquet or .arrow on the command "
                "line, write Result.per_query as .parquet or .arrow in Python"
            )


def holds_values(schema: pa.Schema, metrics: Iterable[str], source: str) -> bool:
    """Return whether columns are values by query, of one system."""
    several = [one for one in schema.names if one.endswith(tuple(f":{name}" for name in metrics))]
    if several:
        raise UsageError(
            f"the baseline {source} is of several systems, as column {several[0]!r} shows: give "
            "the values of one, as --per-query of one system on the command line, Result.per_query "
            "in Python"
        )
    return PER_QUERY in (schema.metadata or {}) or any(one in schema.names for one in metrics)


def _of_table(table: pa.Table, source: str) -> Baseline:
    twice = next((one for one in table.column_names if table.column_names.count(one) > 1), None)
    if twice is not None:
        raise InputError(f"{source} has two columns {twice!r}; expected one of each name")
    rows = written = len(table)
    result, sealed = None, None
    metadata = (table.schema.metadata or {}).get(PER_QUERY)
    if metadata is not None:
        with outside(source, "evaluate it again"):
            told = json.loads(metadata)
            check_stamp(told, source)  # first, as a later format may look different
            sealed = told.pop("values_checksum", None)
            result = _result_of(told, source)
            written = result.queries
    cut = f"holds {rows:,} of the {written:,} queries of its run" if rows != written else ""
    # A table in memory may be a part of what was written.
    if sealed is not None and source != IN_MEMORY and sealed != seal_of_table(table):
        raise InputError(
            f"{source} {cut or 'does not hold the values that rankmill wrote'}, and does not match "
            "its checksum: the file is damaged or was changed; evaluate again"
        )
    notes = (f"the baseline {cut}",) if cut else ()
    return Baseline("per-query", source, table=table, result=result, notes=notes)


def _result_of(told: dict[str, Any], source: str) -> Result:
    try:
        return Result.from_dict(told)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def check_alike(baseline: Baseline, job: Job, metrics: Sequence[str]) -> None:
    """Raise UsageError if an earlier run counted otherwise, or lacks a metric.

    An InputError is raised if its value of a metric is none, or cannot be. The runs of a history
    are chosen by how they counted.
    """
    if baseline.kind in ("predictions", "history"):
        return
    source, one = f"the baseline {baseline.source}", baseline.result
    if one is not None:
        mine: dict[str, Any] = {**job.scope.to_dict(), "gain_function": job.gain_function}
        theirs: dict[str, Any] = {**one.scope.to_dict(), "gain_function": one.gain_function}
        _check_same("semantics", job.semantics.to_dict(), one.semantics.to_dict(), source)
        _check_same("scope", mine, theirs, source)
        if any(map(looks_at, metrics)):
            beside = beside_text(job.beside, job.group)
            _check_same("catalogue", beside, beside_of(one.inputs), source)
    values = {} if one is None else one.metrics
    there = [*values, *([] if baseline.table is None else baseline.table.column_names[1:])]
    lacking = [metric for metric in metrics if metric not in there]
    if lacking:
        raise UsageError(
            f"{source} has {', '.join(dict.fromkeys(there))}, but not {', '.join(lacking)}, which "
            "a rule needs: evaluate it again with all metrics"
        )
    for metric in metrics:
        value = values.get(metric)
        if value is not None:
            check_range(metric, value, value, source)
        elif baseline.table is None:
            raise InputError(
                f"{source} has no value of {metric} (null), which a rule needs, as none of its "
                "queries counted: evaluate it again"
            )


def _check_same(name: str, mine: Mapping[str, Any], theirs: Mapping[str, Any], source: str) -> None:
    """Raise UsageError if a run and the baseline counted otherwise."""
    names = [one for one in {**mine, **theirs} if mine.get(one) != theirs.get(one)]
    pairs = ((one, theirs.get(one), mine.get(one)) for one in names)
    told = ", ".join(f"{one} is {there!r} there, {here!r} here" for one, there, here in pairs)
    if told:
        raise UsageError(f"{source} was counted with another {name}: {told}; evaluate it again")


def check_range(metric: str, least: float, most: float, source: str) -> None:
    """Raise InputError if values of a metric are not in its range."""
    one = parse(metric)
    low, high = one.bounds
    if one.spec.kernel is None:
        high = math.inf  # gap is above 1 where queries have several labels
    # A mean may be rounded past the end of a range.
    if not (low - 1e-9 <= least and most <= high + 1e-9):
        wrong = most if least >= low - 1e-9 else least
        raise InputError(
            f"{source}: {metric} is {wrong:g}, which no run has: it is {range_text(low, high)}; "
            "the file is damaged or was changed: evaluate again"
        )


def check_gains(baseline: Baseline, result: Result) -> None:
    """Raise UsageError if labels had gains in one of an earlier run and this one."""
    earlier = {} if baseline.result is None else baseline.result.inputs
    theirs: Any = earlier.get("labels", {}).get("columns")
    mine: Any = result.inputs["labels"]["columns"]
    if theirs is None or ("gain" in theirs) == ("gain" in mine):
        return
    words = {True: "had gains", False: "were just relevant or not"}
    raise UsageError(
        f"labels {words['gain' in theirs]} in the baseline {baseline.source}, and "
        f"{words['gain' in mine]} here: evaluate it again, or use the --gain or --binary that it "
        "used"
    )
