"""Group scattered long rows: in memory, or beyond its limit in partitions of a temporary file."""

import itertools
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of
from rankmill.columns.ids import ids_to_arrow, in_partitions, take_ids
from rankmill.columns.place import Place
from rankmill.columns.ranked_lists import Lists
from rankmill.io.overflow import Overflow
from rankmill.sources.roles.source import Batch, Columns, Source
from rankmill.sources.rows.long import (
    BYTES_A_ROW,
    LongRows,
    group_lists,
    join_rows,
    long_rows,
    read_rows,
    slice_lists,
)
from rankmill.threads import Workers

# The most parts into which rows are cut, because smaller parts would be slow.
MOST_PARTITIONS = 256
# Rows are cut together if there is room, until a part has so many: each part has a cost of its own.
ROWS_OF_A_PART = 1 << 10


# Where a record batch of some rows is in the file, its schema, and the source of the rows.
_Packed = tuple[tuple[int, int], Any, str]


def grouped_lists(
    source: Source, columns: Columns, workers: Workers, memory: int | None
) -> Generator[Lists, None, None]:
    """Yield the lists of all rows, grouped in memory, or on disk if that needs more than `memory`.

    If `memory` is None, there is no limit.
    """
    held: list[LongRows] = []
    count = 0
    with closing(read_rows(source, columns, workers)) as batches:
        for rows in batches:
            held.append(rows)
            count += len(rows.queries.keys)
            if memory is not None and max(count, source.rows or 0) * BYTES_A_ROW > memory:
                every = itertools.chain(_emptied(held), batches)
                yield from _spilled_lists(every, source, columns, workers, memory)
                return
    if held:
        yield from slice_lists(group_lists(held, columns))


def _emptied(held: list[LongRows]) -> Iterator[LongRows]:
    """Yield the rows and drop each from the list, so that it is freed when it is done with."""
    held.reverse()
    while held:
        yield held.pop()


def _spilled_lists(
    batches: Iterable[LongRows], source: Source, columns: Columns, workers: Workers, memory: int
) -> Generator[Lists, None, None]:
    """Yield the lists of all rows, which are grouped in partitions of a temporary file.

    All rows of a query go to the same partition and keep their order. The number of partitions is
    chosen so that the partitions in memory use `memory` bytes at most; they may use more if that
    would need more than MOST_PARTITIONS.
    """
    # One partition is grouped, while others wait as lists, which take a third of that.
    a_row = BYTES_A_ROW + (2 * workers.threads + 1) * BYTES_A_ROW // 3
    count = MOST_PARTITIONS
    if source.rows is not None:
        count = min(count, -(-source.rows * a_row // memory))
    places: list[list[_Packed]] = [[] for _ in range(count)]
    schemas: dict[Any, Any] = {}  # many record batches share a few schemas
    with Overflow(source.name, "rows whose queries are scattered") as file:
        # Named by their roles, because a column may have several.
        roles: dict[str, Any] = {role: role for role in columns.mapping()}
        columns = replace(columns, **roles)
        part = partial(_part, columns=columns, count=count)
        portions = _portions(batches, min(count * ROWS_OF_A_PART, memory // a_row))
        with closing(workers.map(part, portions)) as parted:
            for parts in parted:
                for number, data, name in parts:
                    schema = schemas.setdefault(data.schema, data.schema)
                    places[number].append((file.add(data.serialize()), schema, name))
        for partition in places:
            if partition:
                yield from slice_lists(_grouped(file, partition, columns))


def _portions(batches: Iterable[LongRows], rows: int) -> Iterator[list[LongRows]]:
    """Yield batches, so many together that they have `rows` rows; the last ones may have fewer."""
    held: list[LongRows] = []
    count = 0
    for one in batches:
        held.append(one)
        count += len(one.queries.keys)
        if count >= rows:
            yield held
            held, count = [], 0
    if held:
        yield held


def _grouped(file: Overflow, partition: list[_Packed], columns: Columns) -> Lists:
    """Group the rows of a partition into lists; the rows are freed on return."""
    rows = []
    for place, schema, source in partition:
        data = pa.ipc.read_record_batch(file.read(place), schema)
        rows.append(long_rows(Batch(data, Place(source)), columns))
    return group_lists(rows, columns)


def _part(portion: list[LongRows], columns: Columns, count: int) -> list[tuple[int, Any, str]]:
    """Split some rows by partition, into record batches; partitions without rows are left out."""
    rows = portion[0] if len(portion) == 1 else join_rows(portion)
    order, partitions = in_partitions(rows.queries, count)
    data = _pack(rows, columns, order)
    return [
        (number, data.slice(start, end - start), rows.source)
        for number, (start, end) in enumerate(partitions)
        if end > start
    ]


def _pack(rows: LongRows, columns: Columns, order: np.ndarray) -> Any:
    """Rows in an order as a batch, from which `long_rows` makes them again."""
    made = {columns.query: ids_to_arrow(take_ids(rows.queries, order), set())}
    if rows.keep is None:
        items = ids_to_arrow(take_ids(rows.items, order), set())
    else:
        keep = rows.keep[order]
        item_of_row = np.cumsum(rows.keep) - 1
        items = ids_to_arrow(take_ids(rows.items, item_of_row[order[keep]]), set())
        items = items.take(arrow_of(np.cumsum(keep) - 1, ~keep))
    made[columns.item] = items
    if rows.numbers is not None:
        made[str(columns.score or columns.gain)] = arrow_of(rows.numbers[order])
    if rows.ranks is not None:
        made[str(columns.rank)] = arrow_of(rows.ranks[order])
    return pa.RecordBatch.from_arrays([*made.values()], names=[*made])
