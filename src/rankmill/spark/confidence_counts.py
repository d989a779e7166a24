"""The second pass of gap on Spark: confidences among those of all correct predictions."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.engine.parts import second_pass
from rankmill.engine.second_pass import limits_of, needs_items
from rankmill.engine.state import State
from rankmill.metrics.base import NO_CUTOFF
from rankmill.metrics.gap.gap_counts import Among
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.roles.streams import open_stream
from rankmill.spark.exchange.collection import collected
from rankmill.spark.exchange.layout import Side, arrow_schema, column, shuffled
from rankmill.spark.exchange.partitions import partitions_of
from rankmill.spark.exchange.tasks import inputs_of, partition
from rankmill.spark.exchange.typed_rows import Returned, RowFormat


def count(
    batches: Iterator[Any], sent: tuple[RowFormat, Any], side: Side, schema: Any, memory: int
) -> Iterator[Returned]:
    """Yield the counts of all metrics over the predictions of a partition.

    The name of the metric stands in the place of the system. `sent` is the merged state of all
    partitions, as a row, which Spark sends to each executor once.
    """
    form, row = sent
    (merged,) = form.read(pa.Table.from_batches([row]))
    state = State.from_row(merged.fields or {})
    if _is_shuffled(state, side):
        one = inputs_of(batches, schema, [side])[side.system]
    else:
        named = (pa.RecordBatch.from_arrays(b.columns, names=schema.names) for b in batches)
        source = open_stream(side.name, schema, lambda names: (b.select(names) for b in named))
        one = Input(source, side.columns)
    for name, among in second_pass(state, one, memory=memory, threads=1).items():
        yield Returned(partition(), name, among.to_row())


def _is_shuffled(state: State, side: Side) -> bool:
    """Whether the rows of a query have to be together, as some of its predictions do not count."""
    cut = any(limit < NO_CUTOFF for limit in limits_of(state).values())
    return not side.columns.wide and (cut or needs_items(state))


def counted(state: State, frame: Any, side: Side, partitions: int, memory: int) -> dict[str, Among]:
    """Return the counts of the second pass over the predictions of a system."""
    names = list(side.slots) if needs_items(state) else [str(side.columns.score)]
    if _is_shuffled(state, side):
        rows = shuffled([frame], [side], partitions)
    else:
        # Spark does not find a column of a name with backticks when it maps rows.
        several = enumerate(names)
        rows = frame.select(*(column(frame, name).alias(f"c{place}") for place, name in several))
        partitions = partitions_of(rows, partitions)
    empty = Among(np.zeros(0, np.int64), np.zeros(0, np.int64))
    form = RowFormat.of(empty.to_row())
    row = state.to_row()
    form_of_state = RowFormat.of(row)
    sent = form_of_state, form_of_state.batch([Returned(0, fields=row)])
    schema = arrow_schema(rows)
    if not _is_shuffled(state, side):
        schema = schema.empty_table().rename_columns(names).schema
    task = partial(count, sent=sent, side=side, schema=schema, memory=memory)
    found = collected(rows, task, Among, form, partitions)
    return {one.system: Among.from_row(one.fields or {}) for one in found}
