"""What the footer of a Parquet file tells of each row group: how much it holds, and which ids.

pyarrow tells the same, but ends the process where the statistics of a broken footer are asked for.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow.types as kinds

from rankmill.ids import is_text_type

# A footer is read at some 3 MB a second; those of very many columns or row groups are left out.
LARGEST_FOOTER = 16 << 20
# Physical types of ids -> their width in bytes, None if it varies.
WIDTHS = {1: 4, 2: 8, 6: None, 7: None}


class RowGroup(NamedTuple):
    """Rows of a file that can be read on their own.

    Attributes
    ----------
    file, number : int
        Which file of its source, and which row group there.
    rows, values : int
        How many rows and how many items, null ones and empty lists included.
    query_bytes, item_bytes : int
        What the columns take in the file.
    low, high : int or bytes
        No query id is below or above, says the footer.
    """

    file: int
    number: int
    rows: int
    values: int
    query_bytes: int
    item_bytes: int
    low: Any
    high: Any


def read_row_groups(path: str, file: int, schema: Any, query: str, item: str) -> list[RowGroup]:
    """The row groups of a file; none if its footer does not tell the bounds of all of them."""
    try:
        kind = schema.field(query).type
        groups = _struct(_read_footer(path), 0)[0].get(4, [])
        return [
            _row_group(file, number, group, query, item, kind)
            for number, group in enumerate(groups)
            if group[3] > 0
        ]
    except (OSError, LookupError, ValueError, TypeError, AttributeError, RecursionError):
        return []  # broken, or without statistics: whoever reads the rows will tell, if need be


def _read_footer(path: str) -> bytes:
    with open(path, "rb") as file:
        file.seek(-8, os.SEEK_END)
        size = int.from_bytes(file.read(4), "little")
        if file.read(4) != b"PAR1" or size > LARGEST_FOOTER:
            raise ValueError
        file.seek(-8 - size, os.SEEK_END)
        return file.read(size)


def _row_group(
    file: int, number: int, group: dict[int, Any], query: str, item: str, kind: Any
) -> RowGroup:
    """A row group from its Thrift fields, which are numbered in parquet.thrift."""
    chunks = [chunk[3] for chunk in group[1]]
    (ids,) = (chunk for chunk in chunks if chunk[3] == [query.encode()])
    items = [chunk for chunk in chunks if chunk[3][0] == item.encode()]
    sizes = (group[3], sum(one[5] for one in items), ids[7], sum(one[7] for one in items))
    if not all(isinstance(size, int) for size in sizes):
        raise ValueError
    low, high = (_bound(ids[12][field], ids[1], kind) for field in (6, 5))
    return RowGroup(file, number, *sizes, low, high)


def _bound(raw: bytes, physical: int, kind: Any) -> Any:
    """A bound as an integer, or as the bytes of a string."""
    width = WIDTHS[physical]
    if not isinstance(raw, bytes):
        raise ValueError
    if width is None and is_text_type(kind):
        return raw
    if len(raw) != width or not kinds.is_integer(kind):
        raise ValueError
    return int.from_bytes(raw, "little", signed=kinds.is_signed_integer(kind))


# ------------------------------------------------------------------ Thrift's compact protocol


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return value >> 1 ^ -(value & 1), at


def _binary(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _varint(data, at)
    if at + size > len(data):
        raise ValueError
    return data[at : at + size], at + size


def _list(data: bytes, at: int) -> tuple[list[Any], int]:
    size, kind = data[at] >> 4, data[at] & 15
    at += 1
    if size == 15:
        size, at = _varint(data, at)
    if size > len(data) - at:
        raise ValueError
    values = []
    for _ in range(size):
        value, at = READERS[kind](data, at)
        values.append(value)
    return values, at


def _struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """The fields of a structure, by their number."""
    fields = {}
    number = 0
    while header := data[at]:
        at += 1
        kind = header & 15
        if header >> 4:
            number += header >> 4
        else:
            number, at = _integer(data, at)
        fields[number], at = READERS[kind](data, at)
    return fields, at + 1


READERS: dict[int, Callable[[bytes, int], tuple[Any, int]]] = {
    1: lambda data, at: (True, at),
    2: lambda data, at: (False, at),
    3: lambda data, at: (data[at], at + 1),
    4: _integer,
    5: _integer,
    6: _integer,
    7: lambda data, at: (None, at + 8),  # a double, which a footer has no use for
    8: _binary,
    9: _list,
    10: _list,
    12: _struct,
}
