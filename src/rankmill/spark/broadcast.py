"""Labels that fit are sent to all tasks, and the predictions stay where they are.

Each task takes the labels of the queries that it has; so it scores some queries with all their
labels and predictions, as after a shuffle. The driver scores the labels that no task took. That no
query is in two partitions is checked exactly. Of a query with labels, two tasks take the same row
of the labels. Of the other queries, keys are shuffled, 8 bytes each: if no two are equal, neither
are the queries.
"""

import math
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa

from rankmill.columns.ids import take_ids, to_ids
from rankmill.engine.job import Job
from rankmill.engine.state import State
from rankmill.errors import Otherwise, RankmillError
from rankmill.kernels.identity import MULTIPLIER, STRING, Ids, hash_strings
from rankmill.matching.lookup import look_up
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.roles.streams import open_table
from rankmill.spark.exchange.collection import FAN, gathered, mapped
from rankmill.spark.exchange.frame_rows import arrow_schema, column
from rankmill.spark.exchange.layout import Side
from rankmill.spark.exchange.returned_rows import (
    RETURNED,
    Odd,
    Returned,
    batch_of,
    merged_rows,
    odd_of_both,
    read_returned,
)
from rankmill.spark.exchange.spark_request import SparkRequest
from rankmill.spark.exchange.tasks import (
    held_input,
    input_of,
    odd_ids,
    ordered,
    partition,
    scored,
    told,
)

# A task scores so many bytes of predictions at a time.
AT_ONCE = 64 << 20


@dataclass(frozen=True)
class Placed:
    """The state of some partitions, and what tells whether a query is in two of them."""

    state: State
    taken: np.ndarray  # the rows of the labels that tasks took
    split: bool = False  # whether a query without labels may be in two partitions

    def merge(self, other: Self) -> Self:
        """Return the sum of both."""
        taken = np.concatenate([self.taken, other.taken])
        return type(self)(self.state.merge(other.state), taken, self.split or other.split)


def score_with_labels(
    batches: Iterator[Any],
    job: Job,
    sent: bytes,
    sides: tuple[Side, Side],
    empty: Placed,
    groups: int,
    seed: int,
) -> Iterator[Any]:
    """Yield the keys of queries without labels, and the state of the partition, once.

    All labels are `sent` as an Arrow stream, which each executor gets once; `sides` are the labels
    and the predictions. Keys are checked in `groups`, and `seed` is that of the keys of strings.
    """
    where = partition()
    of_labels, of_predictions = sides
    labels = pa.ipc.open_stream(sent).read_all()
    placed, label_rows, rows = empty, 0, 0
    odd: Odd = {}
    try:
        known = to_ids(labels.column(of_labels.columns.query).combine_chunks(), "query")
        # Of long predictions, a query may have rows in all batches.
        most = AT_ONCE if of_predictions.columns.wide else math.inf
        read = _tables(batches, [*of_predictions.slots], most)
        # By `map`, as this holds no rows that are not sorted yet.
        for table in map(partial(ordered, side=of_predictions), read):
            odd = odd_of_both(odd, odd_ids([of_predictions]))
            one = Input(open_table(table, of_predictions.name), of_predictions.columns)
            taken, others = _matched(known, table.column(of_predictions.columns.query))
            states = scored(job, held_input(labels.take(taken), of_labels), {"": one})
            placed = placed.merge(Placed(states[""], taken.astype(np.int32)))
            label_rows += len(taken)
            rows += table.num_rows
            yield from _keys(others, groups, seed)
        returned = Returned(where, "", placed, None, label_rows, rows, odd=odd)
    except (RankmillError, Otherwise) as error:
        returned = Returned(where, error=told(error, where))
    yield batch_of([returned], where // FAN)


def _keys(ids: Ids, groups: int, seed: int) -> Iterator[Any]:
    """Yield keys that are equal if ids are, by group, whose number stands for the partition."""
    keys = ids.keys * MULTIPLIER  # different keys stay different, and are spread
    if ids.kind == STRING:
        keys = np.empty(len(ids.keys), np.uint64)
        hash_strings(ids.starts, ids.ends, ids.data, np.uint64(seed), keys)
    group_of = (keys >> np.uint64(32)) % np.uint64(groups)
    for group in np.unique(group_of).tolist():
        yield batch_of([Returned(group, value=keys[group_of == group])])


def _tables(batches: Iterator[Any], names: list[str], most: float) -> Iterator[Any]:
    """Yield the rows of a partition in tables of so many bytes, or all in one."""
    held: list[Any] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= most:
            yield _taken(held, names)
            size = 0
    if held:
        yield _taken(held, names)


def _taken(held: list[Any], names: list[str]) -> Any:
    """Return the batches as a table with columns of these names, and hold them no longer."""
    table = pa.Table.from_batches(held).rename_columns(names)
    held.clear()
    return table


def _matched(known: Ids, queries: Any) -> tuple[np.ndarray, Ids]:
    """Return the rows of the labels of some queries, and the queries that have none.

    Null ids are an error, which the engine tells, as are wide rows of one query.
    """
    asked = to_ids(queries.drop_null().unique(), "query")
    index, _ = look_up(asked)
    places = index.find(known)
    taken = np.flatnonzero(places >= 0)
    others = np.ones(len(asked.keys), np.bool_)
    others[places[taken]] = False
    return taken, take_ids(asked, np.flatnonzero(others))


def _checked(batches: Iterator[Any], empty: Placed) -> Iterator[Any]:
    """Yield the merged state of some partitions, which tells whether keys of a group are equal."""
    states: list[Returned] = []
    keys: dict[int, list[np.ndarray]] = {}
    for one in (one for batch in batches for one in read_returned(batch)):
        if isinstance(one.value, np.ndarray):
            keys.setdefault(one.partition, []).append(one.value)
        else:
            states.append(one)
    if any(_repeated(np.concatenate(some)) for some in keys.values()):
        states.append(Returned(-1, "", replace(empty, split=True)))
    if states:
        yield batch_of(merged_rows(states, partition()))


def _repeated(keys: np.ndarray) -> bool:
    keys = np.sort(keys)
    return bool((keys[1:] == keys[:-1]).any())


def broadcast(request: SparkRequest, number: int, labels: Any) -> Returned | None:
    """Score a system with all labels in each task; None if a query may be in two partitions.

    `number` is that of the system among the sides, and `labels` are those that were read.
    """
    side, frame = request.sides[number], request.frames[number]
    of_labels = odd_ids(request.sides[:1])
    # Spark does not find a column of a name with backticks when it maps rows.
    rows = frame.select(*(column(frame, name).alias(slot) for name, slot in side.slots.items()))
    nothing = arrow_schema(rows).empty_table().rename_columns([*side.slots])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, labels.schema) as writer:
        writer.write_table(labels)
    empty = Placed(State.of(request.job), np.zeros(0, np.int32))
    groups = -(-request.partitions // FAN)
    task = partial(
        score_with_labels,
        job=request.job,
        sent=sink.getvalue().to_pybytes(),
        sides=(request.sides[0], side),
        empty=empty,
        groups=groups,
        seed=secrets.randbits(63) | 1,
    )
    found = mapped(rows, RETURNED, task).repartition(groups, RETURNED.names[0])
    found = mapped(found, RETURNED, _checked, empty)
    for one in gathered(found, groups):
        placed = one.value
        left = np.ones(labels.num_rows, np.bool_)
        left[placed.taken] = False
        if placed.split or len(placed.taken) != labels.num_rows - left.sum():
            return None
        others = held_input(labels.filter(left), request.sides[0])
        alone = scored(request.job, others, {"": input_of(nothing, side)})[""]
        state = placed.state.merge(alone)
        odd = odd_of_both(one.odd, of_labels)
        return replace(one, system=side.system, value=state, label_rows=len(labels), odd=odd)
    return None
