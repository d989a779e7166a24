"""Group scattered long rows: in memory, or beyond its limit in partitions of a temporary file."""

import itertools
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.columns.ids import ids_to_arrow, take_ids, to_ids
from rankmill.columns.ranked_lists import Lists
from rankmill.kernels.identity import SEED, parts_of
from rankmill.sources.files.spool import on_disk, temporary_file
from rankmill.sources.roles.roles import Columns
from rankmill.sources.roles.source import Source
from rankmill.sources.rows.long import BYTES_A_ROW, LongRows, group_lists, read_rows, slice_lists
from rankmill.threads import Workers

# The most parts into which a batch of rows is cut, because smaller parts would be slow.
MOST_PARTITIONS = 256


class _Place(NamedTuple):
    """The position of a record batch in the file, and its schema."""

    start: int
    size: int
    schema: Any


@dataclass(frozen=True)
class _Packed:
    """Some rows as two record batches: `rows` has one row a row, `items` one row an item."""

    rows: Any
    items: Any
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
    would need more than MOST_PARTITIONS. The file has no name if the system allows it, so it
    disappears however the process ends.
    """
    alive = 2 * workers.threads + 2  # partitions in memory: the current one and the waiting ones
    count = MOST_PARTITIONS
    if source.rows is not None:
        count = min(count, -(-source.rows * BYTES_A_ROW * alive // memory))
    places: list[list[tuple[_Place, _Place, str]]] = [[] for _ in range(count)]
    schemas: dict[Any, Any] = {}  # millions of record batches share a few schemas
    with _temporary_file(source.name) as file:
        with closing(workers.map(partial(_part, count=count), batches)) as parted:
            for parts in parted:
                for number, packed in parts:
                    with _on_disk(source.name):
                        both = [_write(file, one, schemas) for one in (packed.rows, packed.items)]
                    places[number].append((both[0], both[1], packed.source))
        for partition in places:
            if partition:
                yield from slice_lists(_grouped(file, partition, columns, source.name))


def _grouped(
    file: IO[bytes], partition: list[tuple[_Place, _Place, str]], columns: Columns, name: str
) -> Lists:
    """Group the rows of a partition into lists; the rows are freed on return."""
    with _on_disk(name):
        return group_lists(
            [
                _unpack(_read(file, of_rows), _read(file, of_items), source)
                for of_rows, of_items, source in partition
            ],
            columns,
        )


@contextmanager
def _temporary_file(name: str) -> Iterator[IO[bytes]]:
    file = temporary_file(name)
    try:
        yield file
    finally:
        with suppress(OSError):  # a late write error does no harm: the file is no longer needed
            file.close()


@contextmanager
def _on_disk(name: str) -> Iterator[None]:
    """Raise ResourceError if the temporary file cannot be written or read."""
    with on_disk(f"{name}: rows whose queries are scattered", ", or allow more memory"):
        yield


def _part(rows: LongRows, count: int) -> list[tuple[int, _Packed]]:
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
            parted.append((number, _pack(rows, order[start:end], item_of_row)))
        start = end
    return parted


def _pack(rows: LongRows, places: np.ndarray, item_of_row: np.ndarray | None) -> _Packed:
    columns = {"query": ids_to_arrow(take_ids(rows.queries, places), set())}
    items = places
    if rows.keep is not None and item_of_row is not None:
        keep = rows.keep[places]
        columns["keep"] = arrow_of(keep.view(np.uint8))
        items = item_of_row[places[keep]]
    if rows.numbers is not None:
        columns["number"] = arrow_of(rows.numbers[places])
    if rows.ranks is not None:
        columns["rank"] = arrow_of(rows.ranks[places])
    item = ids_to_arrow(take_ids(rows.items, items), set())
    return _Packed(_batch_of(columns), _batch_of({"item": item}), rows.source)


def _batch_of(columns: dict[str, Any]) -> Any:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _unpack(rows: Any, items: Any, source: str) -> LongRows:
    """Restore the rows that `_pack` turned into record batches."""
    columns = {name: rows.column(name) for name in rows.schema.names}
    return LongRows(
        queries=to_ids(columns["query"], source),
        items=to_ids(items.column("item"), source),
        keep=numbers_of(columns["keep"]).view(np.bool_) if "keep" in columns else None,
        numbers=numbers_of(columns["number"]) if "number" in columns else None,
        ranks=numbers_of(columns["rank"]) if "rank" in columns else None,
        source=source,
    )


def _write(file: IO[bytes], batch: Any, schemas: dict[Any, Any]) -> _Place:
    message = batch.serialize()
    start = file.tell()
    file.write(message)
    return _Place(start, message.size, schemas.setdefault(batch.schema, batch.schema))


def _read(file: IO[bytes], place: _Place) -> Any:
    file.seek(place.start)
    return pa.ipc.read_record_batch(pa.py_buffer(file.read(place.size)), place.schema)
