"""Read Arrow IPC files (also called Feather) and IPC streams."""

import itertools
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.ranked_lists import Place
from rankmill.errors import InputError
from rankmill.records import record
from rankmill.sources.files.files import (
    File,
    Identity,
    blamed,
    broken,
    check_room,
    check_unchanged,
    folder_columns,
    native,
    whole_schema,
    with_folders,
)
from rankmill.sources.files.formats import compression_of
from rankmill.sources.roles.source import BATCH_BYTES, Batch, InputOptions, Source
from rankmill.sources.roles.streams import joined, sliced

# ------------------------------------------------------------------ record batches of a file
# pyarrow does not tell either. The metadata are flatbuffers; only the few fields that are needed
# are parsed, and each position is checked.


MAGIC = b"ARROW1"
CONTINUED = 0xFFFFFFFF
RECORD_BATCH = 3  # the type of a message
# Writers align messages to at most this many bytes, and one end marker stands before the footer.
LARGEST_GAP = 64 + 8

_TEXTS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())

_BLOCK = np.dtype(
    {"names": ["start", "head", "body"], "formats": ["<i8", "<i4", "<i8"], "offsets": [0, 8, 16]}
)


class Blocks(NamedTuple):
    """The record batches of a file: start, bytes of metadata, bytes of data, rows of each."""

    starts: list[int]
    heads: list[int]
    bodies: list[int]
    rows: list[int]
    dictionary_bytes: int


def read_blocks(file: Any) -> Blocks:
    """Read the blocks of an IPC file; raise ValueError unless its footer tells of all bytes."""
    try:
        return _blocks_of(file)
    except (struct.error, IndexError):
        raise ValueError("its footer makes no sense") from None


def _blocks_of(file: Any) -> Blocks:
    size = file.size()
    tail = _bytes_at(file, max(0, size - 10), 10)
    if tail[4:] != MAGIC:
        raise ValueError(f"it ends in {tail[4:]!r}, not in {MAGIC!r}; it may be truncated")
    length = _number("<i", tail, 0)
    end = size - 10 - length
    if length <= 0 or end < 8:
        raise ValueError(f"its footer takes {length} bytes, but the file holds {size}")
    footer = _bytes_at(file, end, length)
    root = _number("<I", footer, 0)
    batches, dictionaries = (_blocks(footer, root, field) for field in (3, 2))
    _check_whole(np.concatenate([batches, dictionaries]), _schema_end(file), end)
    starts, heads, bodies = (batches[name].tolist() for name in ("start", "head", "body"))
    rows = [
        _rows(_bytes_at(file, *place), body)
        for *place, body in zip(starts, heads, bodies, strict=True)
    ]
    return Blocks(starts, heads, bodies, rows, int(dictionaries["body"].sum()))


def _bytes_at(file: Any, start: int, size: int) -> bytes:
    file.seek(start)
    raw: bytes = file.read(size)
    return raw


def _schema_end(file: Any) -> int | None:
    """Where the schema ends; None if it has no length before it, as Polars writes it."""
    raw = _bytes_at(file, 8, 8)
    return 16 + _number("<i", raw, 4) if _number("<I", raw, 0) == CONTINUED else None


def _check_whole(blocks: Any, start: int | None, end: int) -> None:
    """Raise ValueError if blocks overlap, or bytes between `start` and `end` are in none."""
    order = np.argsort(blocks["start"], kind="stable")
    if start is None:
        start = max(len(MAGIC), int(blocks["start"].min(initial=end)))
    for first, head, body in blocks[order].tolist():
        if not (0 <= first - start <= LARGEST_GAP and head >= 8 and 0 <= body <= end):
            raise ValueError(f"its footer says that a record batch starts at byte {first}")
        start = first + head + body
    if not 0 <= end - start <= LARGEST_GAP:
        raise ValueError(f"its footer says that its record batches end at byte {start}")


def _rows(message: bytes, body: int) -> int:
    """The rows of a record batch by its metadata."""
    begin = 8 if _number("<I", message, 0) == CONTINUED else 4
    root = begin + _number("<I", message, begin)
    kind = _field(message, root, 1)
    header = _field(message, root, 2)
    its_body = _field(message, root, 3)
    if not (kind and header) or message[kind] != RECORD_BATCH:
        raise ValueError("its footer names a record batch where there is none")
    if its_body and _number("<q", message, its_body) != body:
        raise ValueError("its footer and a record batch differ in the bytes of the batch")
    length = _field(message, header + _number("<I", message, header), 0)
    rows = _number("<q", message, length) if length else 0
    if not 0 <= rows <= 1 << 48:
        raise ValueError(f"a record batch has {rows} rows")
    return rows


def buffers_of(kind: Any) -> int | None:
    """How many buffers an array of a type has in a record batch; None if its batch tells."""
    if pa.types.is_null(kind):
        return 0
    if pa.types.is_dictionary(kind):
        return 2
    if pa.types.is_union(kind) or "view" in str(kind) or isinstance(kind, pa.BaseExtensionType):
        return None
    own = 1 if pa.types.is_struct(kind) or pa.types.is_fixed_size_list(kind) else 2
    if kind in _TEXTS:
        own = 3
    below = [buffers_of(kind.field(place).type) for place in range(kind.num_fields)]
    return None if None in below else own + sum(filter(None, below))


def decompressed(message: bytes, wanted: set[int] | None, at: Callable[[int, int], bytes]) -> int:
    """The bytes that buffers of a record batch take without their compression; 0 if it has none.

    `message` are its metadata, and `wanted` the numbers of the buffers, None for all. `at` gives
    bytes of the body, by their place and number.
    """
    begin = 8 if _number("<I", message, 0) == CONTINUED else 0
    root = begin + _number("<I", message, begin)
    kind, header = (_field(message, root, number) for number in (1, 2))
    if not (kind and header) or message[kind] != RECORD_BATCH:
        return 0
    header += _number("<I", message, header)
    place = _field(message, header, 2)
    if not place or not _field(message, header, 3):
        return 0
    place += _number("<I", message, place)
    total = 0
    for number in range(_number("<I", message, place)):
        start, length = struct.unpack_from("<qq", message, place + 4 + 16 * number)
        if length >= 8 and (wanted is None or number in wanted):
            size = _number("<q", at(start, 8), 0)
            total += length if size < 0 else size  # -1: stored as it is
    return total


def _blocks(raw: bytes, root: int, field: int) -> Any:
    place = _field(raw, root, field)
    if not place:
        return np.empty(0, _BLOCK)
    place += _number("<I", raw, place)
    count = _number("<I", raw, place)
    if 24 * count > len(raw):
        raise ValueError(f"its footer names {count} record batches in {len(raw)} bytes")
    whole = np.frombuffer(raw, np.uint8, 24 * count, place + 4)
    return np.ndarray(count, _BLOCK, whole.tobytes(), 0, (24,))


def _field(raw: bytes, table: int, number: int) -> int:
    """The position of a field of a table; 0 if the field is not stored."""
    fields = table - _number("<i", raw, table)
    size = _number("<H", raw, fields)
    slot = 4 + 2 * number
    offset = _number("<H", raw, fields + slot) if slot + 2 <= size else 0
    return table + offset if offset else 0


def _number(kind: str, raw: bytes, place: int) -> int:
    if place < 0:  # struct would count from the end
        raise struct.error
    number: int = struct.unpack_from(kind, raw, place)[0]
    return number


STREAM_MAGIC = b"\xff\xff\xff\xff"
OLD_FEATHER_MAGIC = b"FEA1"
END_OF_STREAM = STREAM_MAGIC + bytes(4)
# A file is read in about this many pieces at most, as each reads the footer and dictionaries anew.
MOST_PIECES = 64
READ_AT_ONCE = 1 << 26


@record(frozen=True)
class IpcPart:
    """A file, its schema, and the columns that its folders give."""

    file: File
    identity: Identity
    stored: Any
    folders: dict[str, Any]
    blocks: Blocks | None  # the record batches of a file; a stream has none, and is read in order
    memory: int


def open_files(files: Sequence[File], name: str, asked: InputOptions) -> Source:
    """Open Arrow IPC files and streams; only metadata are read at this point."""
    opened = [_opened(file) for file in files]
    folders = folder_columns(files, [stored for _, stored, _ in opened])
    parts = [
        IpcPart(file, identity, stored, of_file, blocks, asked.memory)
        for file, (identity, stored, blocks), of_file in zip(files, opened, folders, strict=True)
    ]
    known = [None if part.blocks is None else sum(part.blocks.rows) for part in parts]
    return Source(
        name=name,
        schemas={part.file.name: whole_schema(part.stored, part.folders) for part in parts},
        rows=None if None in known else sum(filter(None, known)),
        pieces=lambda columns: [piece for part in parts for piece in _pieces(part, columns)],
        format="Arrow IPC",
    )


def _opened(file: File) -> tuple[Identity, Any, Blocks | None]:
    """The identity of a file, its schema, and its record batches if it is no stream."""
    try:
        identity = file.identity()
    except OSError as error:
        raise InputError(f"{file.name} cannot be opened: {error.strerror or error}") from None
    with blamed(file, identity, "its schema"), _raw(file) as raw:
        head = raw.read(len(MAGIC))
        if head[:4] == OLD_FEATHER_MAGIC:
            raise InputError(
                f"{file.name} is Feather version 1, which is not read: write it again as "
                "version 2, as pyarrow.feather.write_feather does"
            )
        if head[:4] == STREAM_MAGIC:
            with _raw(file) as stream:
                return identity, pa.ipc.open_stream(stream).schema, None
        if head != MAGIC:
            raise InputError(
                f"{file.name} cannot be read as Arrow IPC: it starts with {head!r}. Is it a whole "
                "Arrow file or stream?"
            )
        if compression_of(file.name):
            raise InputError(
                f"{file.name} is a compressed Arrow file, whose batches cannot be found: "
                "decompress it first"
            )
        blocks = read_blocks(raw)
        return identity, pa.ipc.open_file(raw).schema, blocks


@contextmanager
def _raw(file: File) -> Iterator[Any]:
    """Open a file, and decompress it if its name says that it is compressed."""
    compression = compression_of(file.name)
    with ExitStack() as stack:
        opened = stack.enter_context(native(file))
        if compression is not None:
            opened = stack.enter_context(pa.CompressedInputStream(opened, compression))
        yield opened


def _pieces(part: IpcPart, columns: list[str]) -> list[Iterator[Batch]]:
    if part.blocks is None:
        return [_read(part, _of_stream(part, _stored(part, columns)), columns, 0)]
    pieces = []
    first = 0
    for numbers in _runs(part.blocks):
        read = _of_file(part, part.blocks, numbers, _stored(part, columns))
        pieces.append(_read(part, read, columns, first))
        first += sum(part.blocks.rows[number] for number in numbers)
    return pieces


def _stored(part: IpcPart, columns: list[str]) -> list[str]:
    return [name for name in columns if name not in part.folders]


def _runs(blocks: Blocks) -> list[list[int]]:
    """The numbers of the record batches of each piece."""
    least = max(BATCH_BYTES, sum(blocks.bodies) // MOST_PIECES, 4 * blocks.dictionary_bytes)
    runs: list[list[int]] = []
    size = least
    for number, body in enumerate(blocks.bodies):
        if size >= least:
            runs.append([])
            size = 0
        runs[-1].append(number)
        size += body
    return runs


def _read(part: IpcPart, read: Iterator[Any], columns: list[str], row: int) -> Iterator[Batch]:
    """Yield the batches of a piece; `row` is its first row."""
    stored = _stored(part, columns)
    for data in joined(sliced(_checked(part, read))):
        whole = with_folders(data, part.folders, columns) if part.folders else data.select(stored)
        yield Batch(whole, Place(part.file.name, row))
        row += data.num_rows


def _checked(part: IpcPart, read: Iterator[Any]) -> Iterator[Any]:
    """Yield valid batches, because kernels trust them, of a file that did not change."""
    for data in read:
        check_unchanged(part.file, part.identity)
        try:
            data.validate(full=True)
        except (pa.ArrowException, IndexError) as error:
            raise broken(part.file, f"it breaks the rules of the Arrow format: {error}") from None
        yield data


def _of_file(
    part: IpcPart, blocks: Blocks, numbers: Iterable[int], stored: list[str]
) -> Iterator[Any]:
    if not stored:  # the names of the folders give all columns
        yield from (_nothing(blocks.rows[number]) for number in numbers)
        return
    with ExitStack() as stack:
        with blamed(part.file, part.identity, "its footer"):
            raw = stack.enter_context(native(part.file))
            reader = pa.ipc.open_file(raw, options=_options(part, stored))
        wanted = _buffers(part, stored)
        for number in numbers:
            with blamed(part.file, part.identity, f"record batch {number}"):
                start, head = blocks.starts[number], blocks.heads[number]
                raw.seek(start)
                size = decompressed(raw.read(head), wanted, partial(_at, raw, start + head))
                check_room(part.file, f"record batch {number}", size, part.memory)
                data = reader.get_batch(number)
            if data.num_rows != blocks.rows[number]:
                what = f"{data.num_rows} rows, and {blocks.rows[number]} by its metadata"
                raise broken(part.file, f"record batch {number} has {what}", part.identity)
            yield data


def _of_stream(part: IpcPart, stored: list[str]) -> Iterator[Any]:
    with ExitStack() as stack:
        with blamed(part.file, part.identity, "its schema"):
            raw = _Remembering(stack.enter_context(_raw(part.file)))
            reader = pa.ipc.open_stream(raw, options=_options(part, stored))
        sizes = _sizes_of_stream(part, _buffers(part, stored))
        for number in itertools.count():
            with blamed(part.file, part.identity, f"record batch {number}"):
                check_room(part.file, f"record batch {number}", next(sizes, 0), part.memory)
                data = next(reader, None)
            if data is None:
                break
            yield data if stored else _nothing(data.num_rows)
        with blamed(part.file, part.identity, "its end"):
            if raw.last != END_OF_STREAM:
                raise ValueError(
                    f"no end marker follows record batch {number - 1}; it may be truncated"
                )
            if raw.read(1):
                raise ValueError(
                    f"more bytes follow the end marker after record batch {number - 1}; expected "
                    "one stream in a file"
                )


def _buffers(part: IpcPart, stored: list[str]) -> set[int] | None:
    """The numbers of the buffers of some columns in a record batch; None if they are not known."""
    wanted: set[int] = set()
    first = 0
    for field in part.stored:
        count = buffers_of(field.type)
        if count is None:
            return None
        wanted |= {*range(first, first + count)} if field.name in stored else set()
        first += count
    return wanted


def _at(raw: Any, body: int, start: int, size: int) -> bytes:
    """Some bytes of the body of a record batch."""
    raw.seek(body + start)
    found: bytes = raw.read(size)
    return found


def _sizes_of_stream(part: IpcPart, wanted: set[int] | None) -> Iterator[int]:
    """Yield the decompressed bytes of the record batches of a stream; none if not compressed."""
    with _raw(part.file) as raw:
        for message in pa.ipc.MessageReader.open_stream(_Remembering(raw)):
            if message.type == "record batch":
                body = message.body
                size = decompressed(
                    message.metadata.to_pybytes(),
                    wanted,
                    lambda start, size, body=body: body.slice(start, size).to_pybytes(),  # type: ignore[misc]
                )
                if not size:
                    return
                yield size


class _Remembering:
    """A file for reading that remembers the last bytes that were read, until there are no more."""

    closed = False

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.last = b""

    def read(self, size: int) -> bytes:
        """The next bytes, fewer at the end of the file.

        They are read in parts, because a broken file may ask for more bytes than fit into memory.
        """
        parts: list[bytes] = []
        while size > 0 and (part := self._raw.read(min(size, READ_AT_ONCE))):
            parts.append(part)
            size -= len(part)
        found = parts[0] if len(parts) == 1 else b"".join(parts)
        # Data may end in the same bytes as a stream, but only behind its end nothing is asked for.
        self.last = b"" if size else (self.last + found)[-len(END_OF_STREAM) :]
        return found

    def close(self) -> None:
        """Leave the file open; the one who opened it closes it."""


def _options(part: IpcPart, stored: list[str]) -> Any:
    included = [part.stored.get_field_index(name) for name in stored]
    return pa.ipc.IpcReadOptions(included_fields=included, use_threads=False)


def _nothing(rows: int) -> Any:
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], names=[""])
