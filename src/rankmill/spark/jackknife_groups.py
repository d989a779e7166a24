"""What gap comes to without some of the queries on Spark: tasks leave out the groups."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from rankmill.analysis.compare.differences.gap_differences import NO_VALUE, Without
from rankmill.engine.first_pass import run
from rankmill.engine.held_labels import HeldLabels
from rankmill.engine.job import Job
from rankmill.engine.state import State
from rankmill.metrics.gap.distinct import Distinct
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.gap.gap_counts import Among
from rankmill.metrics.gap.gap_groups import GroupPlaces, LeftOut, groups_in, places_of, sum_less
from rankmill.semantics.choices import Choices
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
# What all predictions without those of a group add up to, and how many correct ones it has.
SUMS = pa.schema(_TASK | {"sum": pa.float64(), "correct": pa.int64()})


class Whole(NamedTuple):
    """A metric of a system over all predictions."""

    side: str  # that of the system in the shuffle
    metric: str
    correct: Distinct
    among: Among
    together: np.ndarray  # for each group the one that it is left out with


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
    more: dict[str, Any] = {"memory": UNLIMITED, "keep_values": False, "gap_groups": True}
    job = replace(job, metrics=metrics, beside=(), catalogue=None, **more)
    with Workers(1) as workers, closing(run(job, held, inputs, workers)) as tallies:
        for side in inputs:
            state = next(tallies).state
            check_seen(seals_of(job, [state]), seals)
            groups = groups_in(state.aggregates)
            for number, one in enumerate(wholes):
                for tagged in (groups[one.metric].parts or ()) if one.side == side else ():
                    found = places_of(tagged, one.correct.values, one.together)
                    for group, places in found.items():
                        row = {"task": number, "group": group, "places": packed(places)}
                        yield pa.RecordBatch.from_pylist([row], PLACES)


def _left(batches: Iterator[Any], sent: bytes, semantics: Choices) -> Iterator[Any]:
    """Yield the sum of all predictions without those of each group, whose rows stand together."""
    wholes: tuple[Whole, ...] = unpacked(sent)
    rows = (row for batch in batches for row in _rows(batch))
    for (task, group), several in groupby(rows, lambda row: row[0]):
        whole = wholes[task]
        own = np.zeros((3, len(whole.correct.values)), np.int64)
        for _, places in several:
            places.add_to(own)
        found = sum_less(whole.correct, whole.among, semantics, own)
        values = [task, group, found, int(own[0].sum())]
        yield pa.RecordBatch.from_pylist([dict(zip(SUMS.names, values, strict=True))], SUMS)


def _rows(batch: Any) -> Iterator[tuple[tuple[int, int], GroupPlaces]]:
    tasks, groups = (batch.column(name).to_pylist() for name in _TASK)
    places = (unpacked(one.as_buffer()) for one in batch.column("places"))
    yield from zip(zip(tasks, groups, strict=True), places, strict=True)


def left_out(
    request: SparkRequest,
    states: Mapping[str, State],
    among: Mapping[str, Mapping[str, Among]],
    seals: frozenset[int],
) -> Mapping[str, Without]:
    """Return for each metric over all predictions its values without each group of queries.

    `states` are what the queries of each system add up to, and `among` the counts of its second
    pass by metric. Raises InputError if a partition is not one of those before, whose
    `seals` are given.
    """
    found: dict[str, dict[str, LeftOut | str]] = {}
    wholes = {}
    for number, (name, state) in enumerate(states.items(), 1):
        for metric, counts in among[name].items():
            found.setdefault(metric, {})[name] = NO_VALUE
            together = groups_in(state.aggregates)[metric].together()
            if together is not None:
                correct = cast(Gap, state.aggregates[metric]).correct
                side = request.sides[number].system
                wholes[name, metric] = Whole(side, metric, correct, counts, together)
    sums = _sums(request, tuple(wholes.values()), seals) if wholes else {}
    for number, ((name, metric), whole) in enumerate(wholes.items()):
        of_groups = {row["group"]: row for row in sums.get(number, ())}
        found[metric][name] = _divided(whole, states[name], of_groups) or NO_VALUE
    return found


def _sums(
    request: SparkRequest, wholes: tuple[Whole, ...], seals: frozenset[int]
) -> dict[int, list[dict[str, Any]]]:
    """Return the rows of `SUMS` of each of the metrics by its number."""
    rows, form = request.rows(0, *request.systems)
    sent = packed(wholes)
    places = mapped(rows, PLACES, _places, request.job, form, sent, seals)
    groups = sum(int(one.together.max()) + 1 for one in wholes)
    together = places.repartition(min(groups, request.partitions), *_TASK)
    together = together.sortWithinPartitions(*_TASK)
    sums = mapped(together, SUMS, _left, sent, request.job.semantics)
    found: dict[int, list[dict[str, Any]]] = {}
    for row in to_arrow(sums).to_pylist():
        found.setdefault(row["task"], []).append(row)
    return found


def _divided(
    whole: Whole, state: State, of_groups: Mapping[int, Mapping[str, Any]]
) -> LeftOut | None:
    """Return gap without each group; a group without a row has no prediction."""
    correct, among = whole.correct, whole.among
    nothing = np.zeros((3, len(correct.values)), np.int64)
    every = sum_less(correct, among, state.semantics, nothing)
    numbers = range(int(whole.together.max()) + 1)
    hits = [of_groups[group]["correct"] if group in of_groups else 0 for group in numbers]
    sums = [of_groups[group]["sum"] if group in of_groups else every for group in numbers]
    return groups_in(state.aggregates)[whole.metric].divided(
        state.semantics, np.array(hits), [every, *sums]
    )
