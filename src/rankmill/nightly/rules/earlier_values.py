"""The values of an earlier run: by query, to pair a system with it, and those of slices."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.analysis.compare.differences.comparison_state import ComparisonState
from rankmill.analysis.compare.differences.sums import Sums
from rankmill.analysis.compare.queries.alignment import Aligned, rows_in_both
from rankmill.analysis.compare.queries.join import Joined
from rankmill.analysis.compare.queries.label_facts import QueryTraits
from rankmill.analysis.statistics.moments import MINE
from rankmill.columns.ids import is_text_type
from rankmill.engine.cuts import Cuts
from rankmill.engine.segments import natural
from rankmill.errors import InputError
from rankmill.metrics.aggregates.mean import WeightedMean
from rankmill.nightly.rules.baseline import BASELINE, CANDIDATE, Baseline, check_range
from rankmill.nightly.rules.rules import Rule
from rankmill.nightly.runs.folder import Folder
from rankmill.nightly.runs.runs import RecordedMetric, Run, SliceKey
from rankmill.results.result import WEIGHT, Result
from rankmill.results.slices import UNKNOWN
from rankmill.sources.meaning.one_id_kind import check_order

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
        n, effective = (
            (mean.positive, mean.effective)
            if isinstance(mean, WeightedMean)
            else (mean.count, None)
        )
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
        names = [name for name, _ in rule.slices]
        ways = {", ".join(names), ", ".join(reversed(names))}
        if not any(by in ways for by, _ in rows):
            by = " and ".join(names)
            typed, called = first_night([metric], cuts)
            cut = folder.slices_of(runs[metric])
            there = {name for ways, _, _ in cut for name in ways.split(", ")}
            near = [
                one
                for name in names
                for one in get_close_matches(name, sorted(there - {*names}), 1)
            ]
            meant = f"did you mean {' and '.join(near)}? Otherwise, " if near else ""
            raise InputError(
                f"the run {runs[metric].id} of the history {folder.name} has no {metric} by {by}, "
                f"which a rule needs: {rule.text!r}: {meant}record a night with these slices: "
                f"--rule 'queries > 0'{typed} on the command line, {called} in Python"
            )
        found |= {(*key, metric): one for key, one in rows.items()}
    return found


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


def named(by: Sequence[str], value: Sequence[str | None]) -> tuple[str, str]:
    """Return what cuts and the slice as the columns of a row have them."""
    return ", ".join(by), ", ".join(UNKNOWN if one is None else one for one in value)
