"""Group scattered long rows that exceed the memory limit, with partitions in a temporary file."""

import tempfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.columns.ids import ids_to_arrow, take_ids, to_ids
from rankmill.columns.ranked import Lists
from rankmill.errors import ResourceError
from rankmill.kernels.identity import SEED, parts_of
from rankmill.sources.base import Batch, Source
from rankmill.sources.long import BYTES_A_ROW, Rows, group_lists, long_rows, slice_lists
from rankmill.sources.roles import Columns
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


def spilled_lists(
    source: Source, columns: Columns, workers: Workers, memory: int
) -> Generator[Lists, None, None]:
    """Yield the lists of all rows, which are grouped in partitions of a temporary file.

    All rows of a query go to the same partition and keep their order. The number of partitions is
    chosen so that the partitions in memory use `memory` bytes at most; they may use more if that
    would need more than MOST_PARTITIONS. The file has no name if the system allows it, so it
    disappears however the process ends.

    Raises
    ------
    ResourceError
        If the temporary file cannot be written or read.
    """
    alive = 2 * workers.threads + 2  # partitions in memory: the current one and the waiting ones
    count = min(MOST_PARTITIONS, -(-source.rows * BYTES_A_ROW * alive // memory))
    part = partial(_part, columns=columns, count=count)
    places: list[list[tuple[_Place, _Place, str]]] = [[] for _ in range(count)]
    schemas: dict[Any, Any] = {}  # millions of record batches share a few schemas
    with _temporary_file(source.name) as file:
        with closing(workers.read(source.pieces(columns.names()), part)) as batches:
            for parts in batches:
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
    with _on_disk(name):
        file = tempfile.TemporaryFile(prefix="rankmill-")  # noqa: SIM115 - closed below
    try:
        yield file
    finally:
        with suppress(OSError):  # a late write error does no harm: the file is no longer needed
            file.close()


@contextmanager
def _on_disk(name: str) -> Iterator[None]:
    """Raise ResourceError if the temporary file cannot be created, written or read."""
    try:
        yield
    except OSError as error:
        raise ResourceError(
            f"{name}: rows whose queries are scattered cannot be kept in a temporary file in "
            f"{tempfile.tempdir or 'any folder'}: {error.strerror or error}. Make room there, set "
            "TMPDIR to another folder, or allow more memory"
        ) from None


def _part(batch: Batch, columns: Columns, count: int) -> list[tuple[int, _Packed]]:
    """Split the rows of a batch by partition; partitions without rows are left out."""
    rows = long_rows(batch, columns)
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


def _pack(rows: Rows, places: np.ndarray, item_of_row: np.ndarray | None) -> _Packed:
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


def _unpack(rows: Any, items: Any, source: str) -> Rows:
    """Restore the rows that `_pack` turned into record batches."""
    columns = {name: rows.column(name) for name in rows.schema.names}
    return Rows(
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
