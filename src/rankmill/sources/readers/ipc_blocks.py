"""The record batches of an Arrow IPC file: where they are and how many rows they have.

pyarrow does not tell either. The metadata are flatbuffers; only the few fields that are needed are
parsed, and each position is checked.
"""

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

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
        return _read(file)
    except (struct.error, IndexError):
        raise ValueError("its footer makes no sense") from None


def _read(file: Any) -> Blocks:
    size = file.size()
    tail = _at(file, max(0, size - 10), 10)
    if tail[4:] != MAGIC:
        raise ValueError(f"it ends in {tail[4:]!r}, not in {MAGIC!r}; it may be truncated")
    length = _number("<i", tail, 0)
    end = size - 10 - length
    if length <= 0 or end < 8:
        raise ValueError(f"its footer takes {length} bytes, but the file holds {size}")
    footer = _at(file, end, length)
    root = _number("<I", footer, 0)
    batches, dictionaries = (_blocks(footer, root, field) for field in (3, 2))
    _check_whole(np.concatenate([batches, dictionaries]), _schema_end(file), end)
    starts, heads, bodies = (batches[name].tolist() for name in ("start", "head", "body"))
    rows = [
        _rows(_at(file, *place), body) for *place, body in zip(starts, heads, bodies, strict=True)
    ]
    return Blocks(starts, heads, bodies, rows, int(dictionaries["body"].sum()))


def _at(file: Any, start: int, size: int) -> bytes:
    file.seek(start)
    raw: bytes = file.read(size)
    return raw


def _schema_end(file: Any) -> int | None:
    """Where the schema ends; None if it has no length before it, as Polars writes it."""
    raw = _at(file, 8, 8)
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
