"""Joining systems in DataFrames of Spark: what the driver does, and what each task does."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from rankmill.analysis.compare.differences.comparison_state import ComparisonState
from rankmill.analysis.compare.differences.differences import MovedRows, merged_rows
from rankmill.analysis.compare.differences.pooled_differences import Without
from rankmill.analysis.compare.queries.join import Joined, join_runs
from rankmill.engine.cuts import Cuts, warn_of_strangers
from rankmill.engine.evaluate import Local
from rankmill.engine.first_pass import run
from rankmill.engine.held_labels import HeldLabels
from rankmill.engine.job import Job
from rankmill.engine.left_out import LeftOut, groups_in, leave_out, others
from rankmill.engine.segments import MOST_CROSSED, MOST_SLICES, check_slices
from rankmill.engine.slices import GROUP, QueryGroups
from rankmill.engine.state import State
from rankmill.metrics.aggregate import Totals
from rankmill.metrics.gap.gap_counts import Among
from rankmill.metrics.registry import parse
from rankmill.nightly.rules.baseline import Baseline, with_table
from rankmill.records import record
from rankmill.results.result import Result
from rankmill.sources.nouns import Labels, Predictions
from rankmill.spark.evaluation import per_query_frame, result_of
from rankmill.spark.exchange.layout import TRAIN, Form, to_arrow
from rankmill.spark.exchange.returned_rows import Returned, packed, unpacked
from rankmill.spark.exchange.spark_request import SparkRequest
from rankmill.spark.exchange.tasks import (
    check_seen,
    collected,
    input_of,
    inputs_of,
    mapped,
    odd_ids,
    partition,
    seals_of,
    tables_of,
    tell,
    with_training,
)
from rankmill.spark.slice_sides import (
    EARLIER,
    POPULARITY,
    TABLE,
    with_known_items,
    with_tables,
    with_values,
)
from rankmill.threads import Workers

# ------------------------------------------------------------------ what a task does


@record(frozen=True)
class Joining:
    """How a task joins the systems over the queries of a partition."""

    job: Job
    form: Form  # its sides are the labels, the systems, and tables of slices
    systems: tuple[str, ...]
    baseline: str
    cuts: Cuts  # without the tables, which come with the rows
    # An earlier run whose values by query come with the rows: the baseline of the only system.
    earlier: Baseline | None = None

    def join(self, batches: Iterator[Any]) -> tuple[Joined, dict[str, int]]:
        """Return the systems over the queries of a partition, and the rows of each side."""
        tables = tables_of(batches, self.form)
        rows = {side: one.num_rows for side, one in tables.items()}
        several = 1 + len(self.systems)
        inputs = {  # the labels, the systems and what queries had in training, among the sides
            side.system: input_of(tables.pop(side.system), side)
            for number, side in enumerate(self.form.sides)
            if number < several or side.system == TRAIN
        }
        others = {
            side.system: side.read(tables[side.system])
            for side in self.form.sides
            if side.system in tables
        }
        job = with_training(self.job, inputs)
        labels, *runs = inputs.values()
        cuts = self.cuts._replace(
            tables=tuple(one for side, one in others.items() if side.startswith(TABLE)),
            popularity=others.get(POPULARITY),
        )
        systems = {name: Predictions(one) for name, one in zip(self.systems, runs, strict=True)}
        found = join_runs(job, Labels(labels), systems, self.baseline, cuts, Local(threads=1))
        if self.earlier is not None:
            earlier = replace(self.earlier, table=others[EARLIER])
            found = with_table(found, earlier, part=True)
        return found, rows


@record(frozen=True)
class Findings:
    """What some queries of a comparison add up to."""

    state: ComparisonState
    states: Mapping[str, State]  # those of the systems that were scored
    moved: MovedRows  # the queries that moved most, by metric and system, up to `count` each
    count: int
    rows: Mapping[str, int]  # how many were read of each side
    # Those of the queries of each of two systems, also of those that do not count for both.
    alone: Mapping[str, ComparisonState]

    @classmethod
    def of(
        cls,
        joined: Joined,
        rows: Mapping[str, int],
        count: int,
        *,
        crossed: bool,
        alone: bool,
        moments: Collection[str] | None = None,
    ) -> Self:
        """Return what the queries of a join add up to; the options are those of `systems.join`."""
        with Workers(1) as workers:
            state = joined.state(workers, crossed=crossed, moments=moments)
            moved = joined.moved_rows(count, workers)
            each = {}
            if alone:
                each = joined.states_alone(workers, crossed=crossed, moments=moments)
            return cls(state, joined.states, moved, count, rows, each)

    def merge(self, other: Self) -> Self:
        """Return the same of the queries of both."""
        moved = {
            task: merged_rows([rows, other.moved[task]], self.count, parse(task[0]).better)
            for task, rows in self.moved.items()
        }
        states = {name: one.merge(other.states[name]) for name, one in self.states.items()}
        rows = {side: count + other.rows[side] for side, count in self.rows.items()}
        state = self.state.merge(other.state)
        alone = {name: one.merge(other.alone[name]) for name, one in self.alone.items()}
        return type(self)(state, states, moved, self.count, rows, alone)


def find(
    batches: Iterator[Any], joining: Joining, count: int, how: Mapping[str, Any]
) -> Iterator[Returned]:
    """Yield what the queries of a partition add up to; `how` are the options of `Findings.of`."""
    joined, rows = joining.join(batches)
    yield Returned(
        partition(),
        "",
        Findings.of(joined, rows, count, **how),
        seals=seals_of(joining.job, joined.states.values()),
        odd=odd_ids(joining.form.sides),
    )


def values_of(
    batches: Iterator[Any], joining: Joining, schema: Any, seals: frozenset[int] | None
) -> Iterator[Any]:
    """Yield the values of the queries of a partition for all systems, as in `schema`."""
    joined, _ = joining.join(batches)
    check_seen(seals_of(joining.job, joined.states.values()), seals)
    yield from joined.aligned.table().cast(schema).to_batches()


# ------------------------------------------------------------------ what the driver does


class JoinedOnSpark(NamedTuple):
    """Systems that were scored and joined by tasks."""

    request: SparkRequest
    found: Findings  # what all queries add up to
    results: dict[str, Result]
    without: Mapping[str, Without]  # as `left_out` finds them
    seals: frozenset[int]  # of the queries of each partition


def values_of_systems(request: SparkRequest, seals: frozenset[int] | None = None) -> Any:
    """Return a DataFrame with the values of each query for all systems.

    `seals` are those of the pass before, if there was one.
    """
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


# ------------------------------------------------------------------ leaving groups of queries out

# The predictions of a task are in its memory already, with more bytes each.
UNLIMITED = 1 << 62
_TASK = {"task": pa.int32(), "group": pa.int32()}
# Where the predictions of a group are, in one partition.
PLACES = pa.schema(_TASK | {"places": pa.binary()})
# The value without a group.
VALUES = pa.schema(_TASK | {"value": pa.float64()})


class Whole(NamedTuple):
    """A metric of a system that needs a second pass."""

    side: str  # that of the system in the shuffle
    metric: str
    all: Any  # the aggregate of all queries
    among: Among
    together: dict[int, int]  # by the number of a group, with which one it is left out
    groups: list[tuple[Any, Totals]]  # the aggregate of each of these, and the totals of all others


def _places(
    batches: Iterator[Any], job: Job, form: Form, sent: bytes, seals: frozenset[int]
) -> Iterator[Any]:
    """Yield where the predictions of each group of a partition are among the correct ones.

    `sent` are the metrics, packed, whose place in it is the number of their rows; all else is as
    for `score`.
    """
    wholes: tuple[Whole, ...] = unpacked(sent)
    inputs = inputs_of(batches, form)
    held = HeldLabels(inputs.pop(""))
    wanted = {one.metric for one in wholes}
    metrics = tuple(one for one in job.metrics if one.text in wanted)
    more: dict[str, Any] = {"memory": UNLIMITED, "keep_values": False, "hold": True}
    more |= {"groups": QueryGroups(), "cuts": Cuts()}
    job = replace(job, metrics=metrics, beside=(), catalogue=None, **more)
    with Workers(1) as workers, closing(run(job, held, inputs, workers)) as tallies:
        for side in inputs:
            state = next(tallies).state
            check_seen(seals_of(job, [state]), seals)
            yield from places_in(state, {n: w for n, w in enumerate(wholes) if w.side == side})


def places_in(state: State, wholes: Mapping[int, Whole]) -> Iterator[Any]:
    """Yield rows of `PLACES` for the groups of the predictions of a partition."""
    for (by, group), of_group in state.slices.items():
        for number, one in wholes.items() if by == GROUP else ():
            places = [
                _places_among(one.all.correct.values, some)
                for some in of_group.aggregates[one.metric].held() or ()
            ]
            if places:
                together = one.together[int(group or 0)]
                counted = np.unique(np.concatenate(places), return_counts=True)
                row = {"task": number, "group": together, "places": packed(counted)}
                yield pa.RecordBatch.from_pylist([row], PLACES)


def _places_among(values: np.ndarray, confidences: np.ndarray) -> np.ndarray:
    """Return 2 i for what equals value i, and 2 i + 1 for what is between it and the next."""
    after = np.searchsorted(values, confidences, side="right")
    before = np.searchsorted(values, confidences, side="left")
    places = 2 * after - 1 - (after > before)
    found: np.ndarray = places[places >= 0]
    return found


def values_left(batches: Iterator[Any], sent: bytes) -> Iterator[Any]:
    """Yield the value without each group, whose rows stand together."""
    wholes: tuple[Whole, ...] = unpacked(sent)
    rows = (row for batch in batches for row in _rows(batch))
    with Workers(1) as workers:
        for (task, group), several in groupby(rows, lambda row: row[0]):
            found = _value(wholes[task], group, [places for _, places in several], workers)
            row = {"task": task, "group": group, "value": found}
            yield pa.RecordBatch.from_pylist([row], VALUES)


def _value(
    whole: Whole, group: int, several: list[tuple[np.ndarray, np.ndarray]], workers: Workers
) -> float | None:
    counts = np.zeros((len(whole.all.correct.values), 2), np.int64)
    for places, many in several:
        counts.reshape(-1)[places] += many
    some, totals = whole.groups[group]
    one, among = whole.all.less(some, whole.among, Among(counts[:, 0], counts[:, 1]))
    found: float | None = one.finish(totals._replace(among=among, workers=workers)).value
    return found


def _rows(batch: Any) -> Iterator[tuple[tuple[int, int], tuple[np.ndarray, np.ndarray]]]:
    tasks, groups = (batch.column(name).to_pylist() for name in _TASK)
    places = (unpacked(one.as_buffer()) for one in batch.column("places"))
    yield from zip(zip(tasks, groups, strict=True), places, strict=True)


def left_out(
    request: SparkRequest,
    states: Mapping[str, State],
    among: Mapping[str, Mapping[str, Among]],
    results: Mapping[str, Result],
    seals: frozenset[int],
) -> Mapping[str, Without]:
    """Return for each metric that is no mean over queries its values without each group of them.

    `states` are what the queries of each system add up to, and `among` the counts of its second
    pass by metric. Raises InputError if a partition is not one of those before, whose
    `seals` are given.
    """
    found: dict[str, dict[str, LeftOut | str]] = {}
    wholes = {
        (name, metric): whole_of(state, metric, counts, request.sides[number].system)
        for number, (name, state) in enumerate(states.items(), 1)
        for metric, counts in among[name].items()
    }
    known = _values_of_wholes(request, tuple(wholes.values()), seals) if wholes else []
    values = dict(zip(wholes, known, strict=True))
    with Workers(1) as workers:
        for name, state in states.items():
            of = {metric: values[name, metric] for metric in among[name]}
            numbers = results[name].metrics
            for metric, left in leave_out(state, among[name], numbers, workers, of).items():
                found.setdefault(metric, {})[name] = left
    return found


def whole_of(state: State, metric: str, among: Among, side: str) -> Whole:
    """Return what tasks have to know of a metric of a system."""
    groups = groups_in(state)
    together = {one: place for place, numbers in enumerate(groups) for one in numbers}
    each = [
        (one.aggregates[metric], rest.totals._replace(needs={}))
        for one, rest in others([*groups.values()])
    ]
    return Whole(side, metric, state.aggregates[metric].small(), among, together, each)


def _values_of_wholes(
    request: SparkRequest, wholes: tuple[Whole, ...], seals: frozenset[int]
) -> list[list[float | None]]:
    """Return the values of each metric without each group; all others have no prediction."""
    rows, form = request.rows(0, *request.systems)
    sent = packed(wholes)
    places = mapped(rows, PLACES, _places, request.job, form, sent, seals)
    groups = max(1, sum(len(one.groups) for one in wholes))
    together = places.repartition(min(groups, request.partitions), *_TASK)
    together = together.sortWithinPartitions(*_TASK)
    told = to_arrow(mapped(together, VALUES, values_left, sent)).to_pylist()
    known = {(row["task"], row["group"]): row["value"] for row in told}
    with Workers(1) as workers:
        return [
            [
                known[number, group]
                if (number, group) in known
                else _value(one, group, [], workers)
                for group in range(len(one.groups))
            ]
            for number, one in enumerate(wholes)
        ]
