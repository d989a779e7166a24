"""The second pass of gap on Spark: confidences among those of all correct predictions."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pyarrow as pa

from rankmill.engine.finish import limits_of, needs_items, reread_among
from rankmill.engine.state import State
from rankmill.metrics.base import NO_CUTOFF
from rankmill.metrics.gap.gap_counts import Among
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.roles.streams import open_stream
from rankmill.spark.exchange.collection import collected
from rankmill.spark.exchange.frame_rows import arrow_schema, column
from rankmill.spark.exchange.layout import Form, Side, shuffled
from rankmill.spark.exchange.partitions import tasks_of
from rankmill.spark.exchange.returned_rows import Returned, packed, unpacked
from rankmill.spark.exchange.tasks import check_seen, inputs_of, partition
from rankmill.threads import Workers


def count(
    batches: Iterator[Any], sent: bytes, side: Side, schema: Any, memory: int
) -> Iterator[Returned]:
    """Yield the counts of all metrics over the predictions of a partition.

    The name of the metric stands in the place of the system. `sent` is the merged state of all
    partitions, packed, which Spark sends to each executor once.
    """
    state: State = unpacked(sent)
    if _is_shuffled(state, side):
        one = inputs_of(batches, Form([side], schema))[side.system]
    else:
        tables = (pa.Table.from_batches([b]).rename_columns(schema.names) for b in batches)
        names = _names(state, side)
        read = (one for table in tables for one in side.read(table, names).to_batches())
        kind = side.read(schema.empty_table(), names).schema
        source = open_stream(side.name, kind, lambda asked: (b.select(asked) for b in read))
        one = Input(source, side.columns)
    with closing(one.source), Workers(1) as workers:
        found = reread_among(state, one, workers, memory, checksum=True)
    for name, among in found.items():
        yield Returned(partition(), name, among)


def _is_shuffled(state: State, side: Side) -> bool:
    """Whether the rows of a query have to be together, as some of its predictions do not count."""
    cut = any(limit < NO_CUTOFF for limit in limits_of(state).values())
    return not side.columns.wide and (cut or needs_items(state))


def _names(state: State, side: Side) -> list[str]:
    """The columns that are read in place: all of them if items do not count by their confidence."""
    return side.columns.names() if needs_items(state) else [str(side.columns.score)]


def counted(state: State, frame: Any, side: Side, partitions: int, memory: int) -> dict[str, Among]:
    """Return the counts of the second pass over the predictions of a system."""
    if _is_shuffled(state, side):
        rows = shuffled([frame], [side], partitions)
        schema = arrow_schema(rows)
    else:
        # Spark does not find a column of a name with backticks when it maps rows.
        made_of = side.rows.needed(side.source, _names(state, side))
        several = enumerate(made_of)
        rows = frame.select(*(column(frame, name).alias(f"c{place}") for place, name in several))
        partitions = tasks_of(rows) or partitions
        schema = arrow_schema(rows).empty_table().rename_columns(made_of).schema
    task = partial(count, sent=packed(state), side=side, schema=schema, memory=memory)
    found = {one.system: one.value for one in collected(rows, task, partitions)}
    check_seen(
        {(name, cast(Any, one).seen) for name, one in state.two_passes.items()},
        {(name, one.seen) for name, one in found.items()},
    )
    # All tasks have the same state, whose fingerprint takes as long as some of them count.
    return {name: replace(one, state=state.counted_among(name)) for name, one in found.items()}
