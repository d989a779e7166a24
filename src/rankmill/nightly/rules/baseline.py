"""What a system is compared with: predictions, or the values or numbers of an earlier run."""

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.analysis.compare.differences.comparison_state import ComparisonState, Sums
from rankmill.analysis.compare.differences.differences import named
from rankmill.analysis.compare.queries.alignment import Aligned, rows_in_both
from rankmill.analysis.compare.queries.join import Joined
from rankmill.analysis.compare.queries.label_facts import QueryTraits
from rankmill.analysis.statistics.moments import MINE
from rankmill.columns.ids import is_text_type
from rankmill.columns.seal import seal_of_table
from rankmill.engine.cuts import Cuts
from rankmill.engine.job import Job
from rankmill.engine.segments import natural
from rankmill.errors import InputError, UsageError, outside
from rankmill.io.stores.urls import opened
from rankmill.metrics.registry import parse
from rankmill.nightly.rules.rules import Rule, range_text
from rankmill.nightly.runs.folder import Folder
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
from rankmill.results.result import PER_QUERY, WEIGHT, Result
from rankmill.results.slices import UNKNOWN
from rankmill.sources.meaning.one_id_kind import check_order
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
    # The last night of a history that held, where predictions of the same labels are paired.
    night: "Baseline | None" = None

    def lacks(self, metric: str) -> bool:
        """Return whether it is of a history that has no run of a metric to compare with yet."""
        return self.kind == "history" and metric not in self.recorded

    def to_dict(self) -> dict[str, Any]:
        """Return what a verdict says of it."""
        return {"kind": self.kind, "source": self.source}


def open_baseline(value: Any, metrics: Iterable[str]) -> Baseline:
    """Find out what a baseline is.

    A Result and the file of its values by query are an earlier run. Anything else is predictions.
    `metrics` are the columns by which the values of queries are known if the file does not say what
    it is.
    """
    if type(value).__name__ in ("History", "ChosenRun"):
        raise UsageError(
            f"the baseline is a {type(value).__name__}; expected predictions, or the name of a run "
            "with its history: baseline='last', history='runs'"
        )
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


# ------------------------------------------------------------------ the values of an earlier run

Value = tuple[str | None, ...]


def with_table(joined: Joined, baseline: Baseline, *, part: bool = False) -> Joined:
    """Return the join of a system alone with the values by query of an earlier run.

    Only queries of both count; a part of all queries may have none.
    """
    mine, table = joined.aligned.tables[CANDIDATE], baseline.table
    assert table is not None  # as it is the kind of this baseline
    rows, places = _in_both(mine, table, baseline.source)
    if not part:
        check_in_both(len(mine), len(table), len(rows), baseline.source)
    both = {*mine.column_names[1:], WEIGHT} & {*table.column_names}
    columns = _floats(table, sorted(both), baseline.source)
    theirs = {name: column.take(pa.array(places)) for name, column in columns.items()}
    tables = {
        BASELINE: pa.table({"query": mine.column(0).take(rows)} | theirs),
        CANDIDATE: mine.take(rows),
    }
    earlier = earlier_result(baseline, joined.results[CANDIDATE], len(table))
    queries = mine.column(0).combine_chunks().take(rows)
    kept = rows.to_numpy()
    values = pa.table({"query": table.column(0)} | columns)
    alone = {CANDIDATE: joined, BASELINE: _alone(joined, earlier, values)}
    return joined._replace(
        results={BASELINE: earlier, **joined.results},
        baseline=BASELINE,
        aligned=Aligned(tables, queries, dict.fromkeys(tables)),
        traits=joined.traits.at(kept),
        seen=None if joined.seen is None else joined.seen.at(kept),
        alone=alone.__getitem__,
    )


def _alone(joined: Joined, earlier: Result, values: pa.Table) -> Joined:
    """Return an earlier run over all its queries, whose slices are not known."""
    weights = None
    if joined.traits.weights is not None and WEIGHT in values.column_names:
        weights = values.column(WEIGHT).to_numpy()
    elif joined.traits.weights is not None:
        values = values.select([0])  # the means of its metrics would be those of equal weights
    return joined._replace(
        results={BASELINE: earlier},
        baseline=BASELINE,
        aligned=Aligned({BASELINE: values}, values.column(0), {BASELINE: None}),
        traits=QueryTraits(weights),
        seen=None,
    )


def earlier_result(baseline: Baseline, result: Result, queries: int) -> Result:
    """Return the result of an earlier run with as many queries, as far as it is known."""
    known = {} if baseline.result is None else baseline.result.metrics
    return Result(
        metrics={name: known.get(name) for name in result.metrics},
        standard_errors={},
        bounds={},
        queries=queries,
        audit=(baseline.result or result).audit,
        inputs={"labels": {}, "predictions": {"source": baseline.source}},
        semantics=result.semantics,
        scope=result.scope,
        notes=result.notes,
    )


def check_in_both(mine: int, theirs: int, both: int, source: str) -> None:
    """Raise InputError if none of the queries of an earlier run is one of this run."""
    if mine and not both:
        raise InputError(
            f"{source}: none of its {theirs:,} queries is among the {mine:,} of this run: it is "
            "from other data"
        )


def check_id_types(mine: Any, theirs: Any, source: str) -> None:
    """Raise InputError if the query ids of an earlier run are texts, and those here integers."""
    if is_text_type(mine) != is_text_type(theirs):
        raise InputError(
            f"{source}: the query ids are {theirs}, but those of the labels are {mine}: it is "
            "from other data"
        )


def _in_both(mine: pa.Table, table: pa.Table, source: str) -> tuple[Any, np.ndarray]:
    """Return the rows of the queries in both tables, and their rows in the second one."""
    check_id_types(mine.schema.field(0).type, table.schema.field(0).type, source)
    here, there = mine.column_names[0], table.column_names[0]
    check_order(here.split(","), there.split(","), source)
    rows, places, repeated = rows_in_both(mine.column(0), table.column(0), f"{source}: {there!r}")
    if repeated >= 0:
        again = table.column(0)[repeated].as_py()
        raise InputError(f"{source}: query {again!r} has two rows; expected one row per query")
    return pa.array(rows), places


def _floats(table: pa.Table, names: list[str], source: str) -> dict[str, Any]:
    """Return columns of an earlier run; a null, or a value that cannot be, is an error."""
    found = {}
    for name in names:
        column = table.column(name)
        if column.type != pa.float64() or column.null_count:
            raise InputError(
                f"column {name!r} of the baseline holds {column.type} with {column.null_count} "
                "nulls; expected float64 without nulls, as --per-query of one system on the "
                "command line, Result.per_query in Python"
            )
        if len(column) and name != WEIGHT:
            values = column.to_numpy()
            check_range(name, float(values.min()), float(values.max()), source)
        found[name] = column
    return found


class SliceValue(NamedTuple):
    """A metric of a system, as a row of the history has it; `by` is None for all queries."""

    by: str | None
    slice: str | None
    metric: str
    value: float | None
    standard_error: float | None
    queries: int
    effective_queries: float | None = None
    third_moment: float | None = None  # of values about their mean


def slice_values(state: ComparisonState, system: str, rules: Iterable[Rule]) -> list[SliceValue]:
    """Return a system in all slices of one name, and in those of two names that a rule is for.

    Its values over all queries, without a slice, come first.
    """
    asked = {frozenset(name for name, _ in one.slices) for one in rules}
    found = [*_values_of(state.whole, system, None, None)]
    for by, of_way in state.slices.items():
        if len(by) > 1 and frozenset(by) not in asked:
            continue
        for value in sorted(of_way, key=lambda value: tuple(map(natural, value))):
            found += _values_of(of_way[value], system, *named(by, value))
    return found


def _values_of(sums: Sums, system: str, by: str | None, value: str | None) -> Iterator[SliceValue]:
    for metric, of in sums.columns.items():
        mean, moments = of[system].mean, of[system].moments
        n, effective = of[system].counted
        third = None
        if moments is not None:
            third = moments.of_side(MINE).spread(0.0).cube * float(effective or n) ** 2
        known = mean.mean, mean.standard_error, n, effective, third
        yield SliceValue(by, value, metric, *known)


def first_night(metrics: Sequence[str], cuts: Cuts) -> tuple[str, str]:
    """Return the options after the rule, and the call, of a gate that begins a history."""
    files = [one for one in cuts.tables if isinstance(one, str)]
    by: list[Any] = [*cuts.columns, *cuts.derived, *files]
    options = [f" --metric {one!r}" for one in metrics] + [f" --by {one!r}" for one in by]
    # A table in memory has no name to paste.
    shown = repr(by) if len(files) == len(cuts.tables) else "by"
    given = [f"metrics={[*metrics]!r}"] * bool(metrics) + [f"by={shown}"] * (cuts != Cuts())
    call = ", ".join(["gate(labels, predictions, 'queries > 0'", *given])
    return "".join(options), f"{call})"


def slices_before(
    folder: Folder, runs: Mapping[str, Run], rules: Iterable[tuple[Rule, str]], cuts: Cuts
) -> dict[SliceKey, RecordedMetric]:
    """Return the slices of earlier runs that rules compare with; only their rows are read.

    `runs` has the baseline of each metric, and `rules` are those for a drop in slices, each with
    the name of its metric. `cuts` is what the run that is compared is cut by. An InputError says
    that a run has none of the slices, as then nothing would break the rule.
    """
    found: dict[SliceKey, RecordedMetric] = {}
    for rule, metric in rules:
        rows = folder.slices_with(runs[metric], metric)
        if not has_slices(folder, runs[metric], rule, metric):
            names = [name for name, _ in rule.slices]
            typed, called = first_night([metric], cuts)
            cut = folder.slices_of(runs[metric])
            there = {name for ways, _, _ in cut for name in ways.split(", ")}
            near = [
                one
                for name in names
                for one in get_close_matches(name, sorted(there - {*names}), 1)
            ]
            record = "record a night with these slices"
            todo = f"{record}: --rule 'queries > 0'{typed} on the command line, {called} in Python"
            if near:
                todo = f"did you mean {' and '.join(near)}? Otherwise, {record}"
            raise InputError(
                f"the run {runs[metric].id} of the history {folder.name} has no {metric} by "
                f"{' and '.join(names)}, which a rule needs: {rule.text!r}: {todo}"
            )
        found |= {(*key, metric): one for key, one in rows.items()}
    return found


def has_slices(folder: Folder, run: Run, rule: Rule, metric: str) -> bool:
    """Return whether a run was cut by what a rule for slices is for."""
    names = [name for name, _ in rule.slices]
    ways = {", ".join(names), ", ".join(reversed(names))}
    return any(by in ways for by, _ in folder.slices_with(run, metric))


def slices_lost(
    found: Mapping[SliceKey, RecordedMetric], rule: Rule, metric: str, there: set[tuple[str, str]]
) -> Iterator[tuple[tuple[str, ...], Value, RecordedMetric]]:
    """Yield the slices of an earlier run that a rule is for, and that are not `there` any more.

    Two values of which one has a comma are not told apart, and are passed over.
    """
    names = tuple(name for name, _ in rule.slices)
    for (by, text, name), one in found.items():
        way = next((each for each in (names, names[::-1]) if ", ".join(each) == by), None)
        if way is None or name != metric or not one.queries:
            continue
        texts = (text,) if len(way) == 1 else tuple(text.split(", "))
        if len(texts) == len(way) and there.isdisjoint(either_order(way, texts)):
            yield way, tuple(None if each == UNKNOWN else each for each in texts), one


def is_gone(key: tuple[str, str], night_before: Mapping[tuple[str, str], Any]) -> bool:
    """Return whether the night before has other slices of this way to cut, and not this one."""
    return key not in night_before and any(by == key[0] for by, _ in night_before)


def either_order(by: Sequence[str], value: Sequence[str | None]) -> list[tuple[str, str]]:
    """Return what a slice may be called by the columns of a row: it may be cut in either order."""
    return [named(by, value), named(by[::-1], value[::-1])]
