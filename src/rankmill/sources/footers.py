"""The footer of a Parquet file: its rows, its row groups, and the column chunks of each.

A file is read by what its footer said when it was opened: every column chunk is held against it,
and so is the file itself, which must stay as it was to the end. pyarrow tells of column chunks as
well, but ends the process where those of a broken or an encrypted file are asked for.
"""

import os
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds

from rankmill.columns.ids import is_text_type
from rankmill.columns.lists import is_list_type
from rankmill.errors import InputError, is_shortage
from rankmill.kernels.footers import (
    CHUNK_FIELDS,
    COMPRESSED,
    ENCRYPTED,
    HIGH,
    HIGH_SIZE,
    LOW,
    LOW_SIZE,
    PHYSICAL,
    UNCOMPRESSED,
    VALUES,
    parse_footer,
)

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"
REMEDY = "Write or fetch the file again"
# Physical types of ids -> their width in bytes, None if it varies.
WIDTHS = {1: 4, 2: 8, 6: None, 7: None}
# A list is read whole: longer ones would take memory that nothing bounds.
LONGEST_LIST = 1 << 24
# Lists of this many values a byte are not the lists of many queries: one of them holds them all.
MOST_VALUES_A_BYTE = 1 << 14


@dataclass(frozen=True)
class Footer:
    """What the footer of a file says.

    Attributes
    ----------
    path : str
        The file.
    identity : tuple of int
        What `identity_of` said of the file before its footer was read.
    metadata, schema
        The same footer as pyarrow has it, to read rows with.
    rows : int
        The rows of the file.
    groups : list of list of int
        The rows of each row group, and its uncompressed bytes. The rows are no negative numbers and
        add up to those of the file.
    chunks : int64[row groups, leaf columns, CHUNK_FIELDS]
        What `parse_footer` writes: not checked, which `chunks_of` does for one column.
    raw : uint8[n]
        The footer's bytes.
    """

    path: str
    identity: tuple[int, int, int, int]
    metadata: Any
    schema: Any
    rows: int
    groups: list[list[int]]
    chunks: np.ndarray
    raw: np.ndarray


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


def read_footer(path: str) -> Footer:
    """Read the footer of a file, which is closed again.

    Raises
    ------
    InputError
        If the file is no whole Parquet file, or its row groups contradict its number of rows.
    """
    try:
        identity = identity_of(path)
        tail = _tail(path)
        with pq.ParquetFile(pa.BufferReader(tail)) as file:
            metadata, schema = file.metadata, file.schema_arrow
    except (pa.ArrowException, OSError, ValueError) as error:
        if is_shortage(error, f"reading {path}"):
            raise
        raise InputError(
            f"{path} cannot be read as Parquet: {first_line(error)}. Is it a whole Parquet file?"
        ) from None
    raw: np.ndarray = np.frombuffer(tail, np.uint8)[: -len(MAGIC) - 4]
    rows = np.full(1, -1, np.int64)
    groups = np.full((metadata.num_row_groups, 2), -1, np.int64)
    shape = metadata.num_row_groups, metadata.num_columns, CHUNK_FIELDS
    whole = shape[0] * shape[1] <= len(raw)  # a chunk takes more bytes than that
    if whole:
        chunks = np.full(shape, -1, np.int64)
        whole = parse_footer(raw, rows, groups, chunks)
    if not whole or sum(map(_leaves, schema.types)) != metadata.num_columns:
        raise InputError(f"{path} is broken: its footer makes no sense. {REMEDY}")
    of_file, of_groups = int(rows[0]), groups[:, 0].tolist()
    if sum(of_groups) != of_file or min(of_groups, default=0) < 0:
        some = ", ".join(map(str, of_groups[:5])) + (" ..." if len(of_groups) > 5 else "")
        raise InputError(
            f"{path} is broken: its footer says {of_file} rows, but those of its "
            f"{len(of_groups)} row groups ({some}) add up to {sum(of_groups)}. {REMEDY}"
        )
    return Footer(path, identity, metadata, schema, of_file, groups.tolist(), chunks, raw)


def _tail(path: str) -> bytes:
    """The footer, its length, and the magic bytes, with which a file ends."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 8))
        end = file.read(8)
        if end[4:] == ENCRYPTED_MAGIC:
            raise ValueError("its footer is encrypted")
        if end[4:] != MAGIC:
            raise ValueError(f"it ends in {end[-4:]!r} where {MAGIC!r} is expected")
        length = 8 + int.from_bytes(end[:4], "little")
        if length > size:
            raise ValueError(f"its footer takes {length} bytes, but the file holds {size}")
        file.seek(size - length)
        return file.read(length)


def _leaves(kind: Any) -> int:
    """How many columns of Parquet a column of an Arrow type is stored in."""
    if isinstance(kind, pa.BaseExtensionType):
        return _leaves(kind.storage_type)
    return sum(_leaves(kind.field(i).type) for i in range(kind.num_fields)) or 1


# ------------------------------------------------------------------ a file that changes


def identity_of(path: str) -> tuple[int, int, int, int]:
    """What another file in its place differs in, and the same file once it was written to."""
    found = os.stat(path)  # twice as fast as Path's
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def check_unchanged(footer: Footer) -> None:
    """Raise InputError if the file is not the one whose footer was read.

    Called after rows were read, so that what was read before is known to come from that file.
    """
    try:
        changed = identity_of(footer.path) != footer.identity
    except OSError:
        changed = True
    if changed:
        raise InputError(
            f"{footer.path} changed while it was read: it was replaced, written to or removed. "
            "Evaluate again once it is complete"
        )


def broken(footer: Footer, what: str) -> InputError:
    """The error of a file that contradicts its footer; raises another if the file has changed."""
    check_unchanged(footer)
    return InputError(f"{footer.path} is broken: {what}. {REMEDY}")


# ------------------------------------------------------------------ column chunks


def chunks_of(footer: Footer, column: str) -> list[list[int]]:
    """What the footer says of a stored column: the fields of its chunk in each row group.

    Raises
    ------
    InputError
        If the column is encrypted; if what is said of it cannot be so; if its lists are too long to
        be read: more than LONGEST_LIST items on average in a row group, or MOST_VALUES_A_BYTE where
        one list of that length could be among them.
    """
    place = footer.schema.get_field_index(column)
    is_list = is_list_type(footer.schema.field(place).type)
    chunks: list[list[int]] = footer.chunks[
        :, sum(map(_leaves, footer.schema.types[:place]))
    ].tolist()
    for group, chunk in enumerate(chunks):
        rows = footer.groups[group][0]
        values, size, whole = chunk[VALUES], chunk[COMPRESSED], chunk[UNCOMPRESSED]
        if chunk[ENCRYPTED] > 0:
            raise InputError(
                f"{footer.path}: column {column!r} is encrypted; expected one that is not: write "
                "it without encryption"
            )
        bad = (values < rows) if is_list else (values != rows)
        if bad or not 0 <= size <= footer.identity[2] or whole < 0:
            raise broken(
                footer,
                f"its footer says that row group {group} holds {rows} rows, and {values} values of "
                f"column {column!r} in {size} bytes, which cannot be",
            )
        dense = values - rows >= LONGEST_LIST and values > MOST_VALUES_A_BYTE * (1 + whole)
        if is_list and (values > LONGEST_LIST * rows or dense):
            raise InputError(
                f"{footer.path}: row group {group} holds {values} values of column {column!r} in "
                f"{rows} lists of {whole} bytes; a list is read whole, and may hold "
                f"{LONGEST_LIST} values at most: cut the lists at the ranks that count"
            )
    return chunks


def row_groups(footer: Footer, file: int, query: str, item: str) -> list[RowGroup]:
    """The row groups that hold rows; none if the bounds of one of them are not told."""
    if not {query, item} <= set(footer.schema.names):
        return []  # a folder's name gives the ids
    kind = footer.schema.field(query).type
    found = []
    ids, items = chunks_of(footer, query), chunks_of(footer, item)
    for number, (rows, _) in enumerate(footer.groups):
        if rows:
            of_id, of_item = ids[number], items[number]
            low = _bound(footer, of_id[LOW], of_id[LOW_SIZE], of_id[PHYSICAL], kind)
            high = _bound(footer, of_id[HIGH], of_id[HIGH_SIZE], of_id[PHYSICAL], kind)
            if low is None or high is None:
                return []
            sizes = of_item[VALUES], of_id[COMPRESSED], of_item[COMPRESSED]
            found.append(RowGroup(file, number, rows, *sizes, low, high))
    return found


def _bound(footer: Footer, start: int, size: int, physical: int, kind: Any) -> Any:
    """A bound as an integer, or as the bytes of a string; None if it is not told."""
    if start < 0 or physical not in WIDTHS:
        return None
    raw = footer.raw[start : start + size].tobytes()
    width = WIDTHS[physical]
    if width is None and is_text_type(kind):
        return raw
    if size != width or not kinds.is_integer(kind):
        return None
    return int.from_bytes(raw, "little", signed=kinds.is_signed_integer(kind))


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its type."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
