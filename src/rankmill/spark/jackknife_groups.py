"""Leaving groups of queries out on Spark: tasks find where their predictions stand among all."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.analysis.compare.differences.pooled_differences import Without
from rankmill.engine.cuts import Cuts
from rankmill.engine.first_pass import run
from rankmill.engine.held_labels import HeldLabels
from rankmill.engine.job import Job
from rankmill.engine.left_out import LeftOut, groups_in, leave_out, others
from rankmill.engine.slices import GROUP, QueryGroups
from rankmill.engine.state import State
from rankmill.metrics.aggregate import Totals
from rankmill.metrics.gap.gap_counts import Among
from rankmill.results.result import Result
from rankmill.spark.exchange.collection import mapped
from rankmill.spark.exchange.frame_rows import to_arrow
from rankmill.spark.exchange.layout import Form
from rankmill.spark.exchange.returned_rows import packed, unpacked
from rankmill.spark.exchange.spark_request import SparkRequest
from rankmill.spark.exchange.tasks import check_seen, inputs_of, seals_of
from rankmill.threads import Workers

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
    known = _values(request, tuple(wholes.values()), seals) if wholes else []
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


def _values(
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
