"""Group scattered long rows: in memory, or beyond its limit in partitions of a temporary file."""

import itertools
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of
from rankmill.columns.ids import ids_to_arrow, take_ids
from rankmill.columns.place import Place
from rankmill.columns.ranked_lists import Lists
from rankmill.io.overflow import Overflow
from rankmill.kernels.identity import SEED, parts_of
from rankmill.sources.roles.roles import Columns
from rankmill.sources.roles.source import Batch, Source
from rankmill.sources.rows.long import (
    BYTES_A_ROW,
    LongRows,
    group_lists,
    long_rows,
    read_rows,
    slice_lists,
)
from rankmill.threads import Workers

# The most parts into which a batch of rows is cut, because smaller parts would be slow.
MOST_PARTITIONS = 256


class _Packed(NamedTuple):
    """Some rows as a record batch, or its place in the file; and its schema."""

    data: Any
    schema: Any
    source: str


def grouped_lists(
    source: Source, columns: Columns, workers: Workers, memory: int | None
) -> Generator[Lists, None, None]:
    """Yield the lists of all rows, grouped in memory, or on disk if that needs more than `memory`.

    If `memory` is None, there is no limit.

    Raises
    ------
    ResourceError
        If the temporary file cannot be written or read.
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
    alive = 2 * workers.threads + 2  # partitions in memory: the current one and the waiting ones
    count = MOST_PARTITIONS
    if source.rows is not None:
        count = min(count, -(-source.rows * BYTES_A_ROW * alive // memory))
    places: list[list[_Packed]] = [[] for _ in range(count)]
    schemas: dict[Any, Any] = {}  # millions of record batches share a few schemas
    with closing(Overflow(source.name, "rows whose queries are scattered")) as file:
        # Named by their roles, because a column may have several.
        roles: dict[str, Any] = {role: role for role in columns.mapping()}
        columns = replace(columns, **roles)
        part = partial(_part, columns=columns, count=count)
        with closing(workers.map(part, batches)) as parted:
            for parts in parted:
                for number, (data, schema, name) in parts:
                    schema = schemas.setdefault(schema, schema)
                    places[number].append(_Packed(file.add(data.serialize()), schema, name))
        for partition in places:
            if partition:
                yield from slice_lists(_grouped(file, partition, columns))


def _grouped(file: Overflow, partition: list[_Packed], columns: Columns) -> Lists:
    """Group the rows of a partition into lists; the rows are freed on return."""
    rows = []
    for place, schema, source in partition:
        data = pa.ipc.read_record_batch(file.read(place), schema)
        rows.append(long_rows(Batch(data, Place(source)), columns))
    return group_lists(rows, columns)


def _part(rows: LongRows, columns: Columns, count: int) -> list[tuple[int, _Packed]]:
    """Split some rows by partition; partitions without rows are left out."""
    target = np.empty(len(rows.queries.keys), np.uint16)
    parts_of(rows.queries.keys, SEED, count, target)
    order = np.argsort(target, kind="stable")
    ends = np.searchsorted(target[order], np.arange(count), side="right")
    item_of_row = None if rows.keep is None else np.cumsum(rows.keep) - 1
    parted = []
    start = 0
    for number, end in enumerate(ends.tolist()):
        if end > start:
            parted.append((number, _pack(rows, columns, order[start:end], item_of_row)))
        start = end
    return parted


def _pack(
    rows: LongRows, columns: Columns, places: np.ndarray, item_of_row: np.ndarray | None
) -> _Packed:
    """Some rows as a batch, from which `long_rows` makes them again."""
    made = {columns.query: ids_to_arrow(take_ids(rows.queries, places), set())}
    if rows.keep is None or item_of_row is None:
        items = ids_to_arrow(take_ids(rows.items, places), set())
    else:
        keep = rows.keep[places]
        items = ids_to_arrow(take_ids(rows.items, item_of_row[places[keep]]), set())
        items = items.take(pa.array(np.cumsum(keep) - 1, mask=~keep))
    made[columns.item] = items
    if rows.numbers is not None:
        made[str(columns.score or columns.gain)] = arrow_of(rows.numbers[places])
    if rows.ranks is not None:
        made[str(columns.rank)] = arrow_of(rows.ranks[places])
    data = pa.RecordBatch.from_arrays([*made.values()], names=[*made])
    return _Packed(data, data.schema, rows.source)
