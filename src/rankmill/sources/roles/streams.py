"""Read tables and streams of Arrow record batches."""

import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from rankmill.columns.buffers import check_valid, pc
from rankmill.columns.lists import is_list_type
from rankmill.columns.ranked_lists import Place
from rankmill.errors import InputError, RankmillError, is_shortage
from rankmill.io.overflow import Overflow
from rankmill.sources.roles.source import BATCH_BYTES, BATCH_ROWS, Batch, Block, Source

# Small batches are joined until they have this many rows.
SMALL_ROWS = 1 << 13
# Buffers with so many bytes a row are few.
FEW_BYTES = BATCH_BYTES // SMALL_ROWS


def open_table(table: Any, name: str) -> Source:
    """Open a pyarrow.Table; the columns that are read are validated, because kernels trust them."""

    def pieces(columns: list[str]) -> list[Iterator[Block]]:
        needed = table.select(columns)
        check_valid(needed, name)
        return [_blocks(needed.to_batches(max_chunksize=BATCH_ROWS), name, checked=True)]

    def sizes(columns: list[str]) -> dict[str, tuple[int, int]]:
        return {column: size_of(table.column(column)) for column in columns}

    return Source(name, {name: table.schema}, table.num_rows, sizes, pieces)


def size_of(column: Any) -> tuple[int, int]:
    """The number of values of an Arrow column, those in lists if it holds lists, and its bytes."""
    try:
        size = column.nbytes
    except pa.ArrowTypeError:  # before pyarrow 21, views have no range of bytes
        size = column.get_total_buffer_size()
    if not is_list_type(column.type):
        return len(column), size
    # Wrong offsets are found when the rows are read.
    return max(0, pc.sum(pc.list_value_length(column)).as_py() or 0), size


def open_batches(
    name: str,
    schema: Any,
    batches: Callable[[list[str]], Iterable[Any]],
    rows: int | None = None,
    *,
    checked: bool = False,
) -> Source:
    """Open what gives record batches of some columns, in their order, as often as it is asked.

    Unless batches were `checked` before, they are validated, because kernels trust them.
    """

    def produce(columns: list[str]) -> Iterator[Any]:
        with produced(name):
            yield from batches(columns)

    def pieces(columns: list[str]) -> list[Iterator[Block]]:
        return [_blocks(produce(columns), name, checked)]

    return Source(name, {name: schema}, rows, pieces=pieces)


def open_stream(
    name: str, schema: Any, begin: Callable[[list[str]], Iterator[Any]], *, checked: bool = False
) -> Source:
    """Open what gives record batches only once; `begin` is called with the columns to read."""
    once = _Once(begin, schema.names)

    def kept(memory: int, columns: list[str] | None = None) -> Source:
        keeper = _Keeper(name, once.batches(columns or schema.names), memory)
        source = open_batches(name, schema, keeper.batches, checked=checked)
        return replace(source, end=keeper.close)

    def peek(columns: list[str]) -> Batch | None:
        with produced(name):
            first = once.first()
        if first is None:
            return None
        found = Batch(first, Place(name)) if checked else validated(first, Place(name))
        return found.select(columns)

    source = open_batches(name, schema, once.batches, checked=checked)
    return replace(source, kept=kept, peek=peek)


@contextmanager
def produced(name: str) -> Iterator[None]:
    """Raise InputError, which names an input, for an error of what gives its rows.

    This is the boundary to code of others: generators, queries, and readers of other libraries. A
    shortage of the machine stays one.
    """
    try:
        yield
    except RankmillError:
        raise
    except Exception as error:
        if is_shortage(error, f"reading {name}"):
            raise
        told, _, cause = f"{type(error).__name__}: {error}".partition(". Detail: Python exception:")
        line = cause.strip().splitlines()[-1] if cause else told.splitlines()[0].rstrip(":. ")
        raise InputError(
            f"{name} broke off: {line}; expected all rows: fix what gives them, and try again"
        ) from error


def _blocks(batches: Iterable[Any], name: str, checked: bool) -> Iterator[Block]:
    first = 0
    for data in joined(sliced(batches)):
        place = Place(name, first)
        first += data.num_rows
        yield Batch(data, place) if checked else partial(validated, data, place)


def validated(data: Any, place: Place) -> Batch:
    """A batch of record batch `data`; raises InputError if it breaks the rules of Arrow."""
    check_valid(data, place.source)
    return Batch(data, place)


def sliced(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches, with large ones cut into slices."""
    for data in batches:
        if 0 < data.num_rows <= BATCH_ROWS:  # not sliced, as that takes longer than all else here
            yield data
        else:
            for start in range(0, data.num_rows, BATCH_ROWS):
                yield data.slice(start, BATCH_ROWS)


def joined(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches, with small ones joined because each batch has a fixed cost."""
    small: list[Any] = []
    rows = size = 0
    for data in batches:
        small.append(data)
        rows += data.num_rows
        size += _bytes_of(data)
        if rows >= SMALL_ROWS or size >= BATCH_BYTES:
            yield from _join(small)
            small = []
            rows = size = 0
    yield from _join(small)


def _bytes_of(data: Any) -> int:
    """Return the bytes of a batch, or those of its whole buffers if these are not many either.

    Those of the buffers are told twenty times as fast. If all batches have so few, their rows are
    enough to end a joined batch.
    """
    whole = int(data.get_total_buffer_size())
    return whole if whole <= data.num_rows * FEW_BYTES else int(data.nbytes)


def _join(batches: list[Any]) -> list[Any]:
    if len(batches) < 2:
        return batches
    try:
        whole: list[Any] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    # Arrow cannot join views, or lists of dictionary-encoded items.
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return batches
    return whole


class _Once:
    """The batches of a stream, of which the first may be looked at before the columns are known."""

    def __init__(self, begin: Callable[[list[str]], Iterator[Any]], names: list[str]) -> None:
        self._begin, self._names = begin, names
        self._rest: Iterator[Any] | None = None
        self._first: list[Any] = []  # at most one with rows, and those without before it

    def first(self) -> Any:
        """The first batch that has rows, with all columns; None if no row comes."""
        if self._rest is None:
            self._rest = self._begin(self._names)
            for data in self._rest:
                self._first.append(data)
                if data.num_rows:
                    break
        return self._first[-1] if self._first and self._first[-1].num_rows else None

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Yield all batches, with some columns."""
        if self._rest is None:
            yield from self._begin(columns)
            return
        first, rest = self._first, self._rest
        self._first, self._rest = [], None
        for data in itertools.chain(first, rest):
            yield data.select(columns)


class _Keeper:
    """The batches of a stream, kept as they are read: in memory, and beyond it on disk."""

    def __init__(self, name: str, rest: Iterator[Any], memory: int) -> None:
        self._rest = rest
        self._free = memory
        self._held: list[Any] = []  # a batch, its place in the file, or the error after the last
        self._file = Overflow(name, "a stream that is read twice")

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Yield all batches from the first on; those not read before come from the stream."""
        place = 0
        while True:
            if place == len(self._held):
                try:
                    data = next(self._rest, None)
                    if data is None:
                        return
                    self._held.append(self._keep(data))
                except BaseException as error:  # the stream would end here if it was read again
                    self._held.append(error)
                    raise
            else:
                data = self._load(self._held[place])
            place += 1
            yield data.select(columns)

    def _keep(self, data: Any) -> Any:
        if data.nbytes <= self._free:
            self._free -= data.nbytes
            return data
        self._free = 0
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, data.schema) as writer:
            writer.write_batch(data)
        return self._file.add(sink.getbuffer())

    def _load(self, kept: Any) -> Any:
        if isinstance(kept, BaseException):
            raise kept
        if not isinstance(kept, tuple):
            return kept
        return pa.ipc.open_stream(self._file.read(kept)).read_next_batch()

    def close(self) -> None:
        """Drop what is kept."""
        self._held = []
        self._file.close()
