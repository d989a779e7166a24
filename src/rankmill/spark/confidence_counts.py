"""The second pass of gap on Spark: confidences among those of all correct predictions."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.engine.parts import second_pass
from rankmill.engine.second_pass import limits_of, needs_items
from rankmill.engine.state import State
from rankmill.errors import RankmillError
from rankmill.metrics.base import NO_CUTOFF
from rankmill.metrics.gap.gap_counts import Among
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.roles.streams import open_stream
from rankmill.spark.exchange.collection import collected
from rankmill.spark.exchange.layout import Side, arrow_schema, column, shuffled
from rankmill.spark.exchange.partitions import partitions_of
from rankmill.spark.exchange.tasks import inputs_of, partition, told
from rankmill.spark.exchange.typed_rows import Returned, RowFormat


@dataclass(frozen=True)
class Counting:
    """What a task of the second pass does.

    Attributes
    ----------
    state : tuple of RowFormat and pyarrow.RecordBatch
        The merged state of all partitions, as a row. Spark sends it to each executor once.
    side : Side
        The predictions.
    schema : pyarrow.Schema
        Of the rows that come.
    form : RowFormat
        That of the counts of one metric, whose name stands in the place of the system.
    memory : int
    """

    state: tuple[RowFormat, Any]
    side: Side
    schema: Any
    form: RowFormat
    memory: int

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the counts of all metrics over the predictions of a partition, once."""
        where = partition()
        try:
            form, row = self.state
            (merged,) = form.read(pa.Table.from_batches([row]))
            state = State.from_row(merged.fields or {})
            one = self._input(batches, state)
            counted = second_pass(state, one, memory=self.memory, threads=1)
            returned = [Returned(where, name, among.to_row()) for name, among in counted.items()]
        except RankmillError as error:
            returned = [Returned(where, error=told(error, where))]
        yield self.form.batch(returned)

    def _input(self, batches: Iterator[Any], state: State) -> Input:
        side = self.side
        if _is_shuffled(state, side):
            return inputs_of(batches, self.schema, [side])[side.system]
        columns, schema = side.columns, self.schema
        batches = (pa.RecordBatch.from_arrays(b.columns, names=schema.names) for b in batches)
        if not columns.wide:  # all confidences count, so that they may come as one list a batch
            columns = replace(columns, wide=True)
            batches = map(_one_list, batches)
            schema = _one_list(pa.RecordBatch.from_pylist([], schema)).schema
        return Input(
            open_stream(side.name, schema, lambda names: _selected(batches, names)), columns
        )


def _one_list(batch: Any) -> Any:
    offsets = pa.array([0, batch.num_rows], pa.int32())
    values = pa.ListArray.from_arrays(offsets, batch.column(0))
    return pa.RecordBatch.from_arrays([values], names=batch.schema.names)


def _selected(batches: Iterator[Any], names: list[str]) -> Iterator[Any]:
    return (batch.select(names) for batch in batches)


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
    task = Counting(sent, side, schema, form, memory)
    found = collected(rows, task, Among, form, partitions)
    return {one.system: Among.from_row(one.fields or {}) for one in found}
