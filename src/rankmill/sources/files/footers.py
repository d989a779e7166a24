"""The footer of a Parquet file: its rows, its row groups, and the column chunks of each.

The footer is read when a file is opened. Later every column chunk is compared with the footer, and
the file must not change until it is read to its end. pyarrow parses the footer, too, but its
metadata of a column chunk ends the process if the chunk is encrypted, or if its bounds are broken;
so rankmill takes these from the bytes.
"""

import os
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds

from rankmill.columns.lists import is_list_type
from rankmill.errors import InputError, is_shortage
from rankmill.io.stores.store_objects import failure, is_of_store, open_ranges
from rankmill.kernels.footers import (
    CHUNK_FIELDS,
    COMPRESSED,
    ENCRYPTED,
    UNCOMPRESSED,
    VALUES,
    parse_footer,
)
from rankmill.records import record
from rankmill.sources.files.files import REMEDY, File, broken, first_line
from rankmill.sources.files.formats import FIRST_BYTES, binary_kind

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"
# A list is always read whole, so longer lists would need an unbounded amount of memory.
LONGEST_LIST = 1 << 24
# If a row group has more values a byte than this, they are probably all in one very long list.
MOST_VALUES_A_BYTE = 1 << 14
# Footers may say something else in every file, such as its number of rows for pandas.
MOST_KNOWN = 64
# The end of a file is read at once, as most footers are shorter.
REMOTE_TAIL, LOCAL_TAIL = 1 << 16, 1 << 13


@record(frozen=True)
class Footer:
    """The content of a file's footer."""

    file: File
    identity: tuple[int, int, int, int]  # of the file before the footer was read
    metadata: Any  # the footer as pyarrow needs it to read rows; None if pyarrow parses it then
    schema: Any  # one object for all files of a source whose footers say it in the same bytes
    rows: int
    groups: list[list[int]]  # of each row group, the rows, which add up, and uncompressed bytes
    # What `parse_footer` found: int64[row groups, leaf columns, CHUNK_FIELDS]. It is not checked;
    # `chunks_of` checks one column, and keeps it in `checked`.
    chunks: np.ndarray
    raw: np.ndarray  # the bytes of the footer
    # The open object of a store, as each opening asks the store for its size; None on the disk.
    opened: Any = None
    checked: dict[str, list[list[int]]] = field(default_factory=dict)


def read_footer(file: File, known: dict[tuple[bytes, int], Any] | None = None) -> Footer:
    """Read the footer of a file, and close the file.

    `known` are the schemas of the footers read before, by all bytes that say them and their numbers
    of leaf columns. pyarrow parses a footer with other ones only, which takes most of the time.
    """
    path, metadata = file.name, None
    known = {} if known is None else known
    try:
        identity = file.listed or file.identity()
        remote = None if file.filesystem is None else open_ranges(file.filesystem, file.path, path)
        if remote is None:
            with open(file.path, "rb", buffering=0) as local:
                tail = _tail(local, LOCAL_TAIL)
        else:
            tail = _tail(remote, REMOTE_TAIL)
        raw: np.ndarray = np.frombuffer(tail, np.uint8)[: -len(MAGIC) - 4]
        leaves = next((count for _, count in [*known][-1:]), 0)
        parsed = _parsed(raw, 1, leaves) if leaves else None
        schema = known.get((parsed.key, leaves)) if parsed else None
        if parsed is None or schema is None or parsed.error:
            with pq.ParquetFile(pa.BufferReader(tail)) as opened:
                metadata, schema = opened.metadata, opened.schema_arrow
            leaves = metadata.num_columns
            parsed = _parsed(raw, metadata.num_row_groups, leaves)
    except InputError:  # a store does not give the file
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        if is_shortage(error, f"reading {path}"):
            raise
        if file.filesystem is not None and is_of_store(error):
            raise InputError(f"{path} cannot be read: {failure(path, error)}") from None
        with file.opened() as opened:
            what = binary_kind(bytes(opened.read(FIRST_BYTES)))
        if what and metadata is None and "name the format parquet" not in what:
            raise InputError(f"{path} is {what}") from None
        raise InputError(
            f"{path} cannot be read as Parquet: {first_line(error)}. Is it a whole Parquet file?"
        ) from None
    if parsed is None or (metadata and sum(map(_leaves, schema.types)) != leaves):
        raise InputError(f"{path} is broken: its footer makes no sense. {REMEDY}")
    if parsed.error:
        raise InputError(f"{path} is broken: {parsed.error}. {REMEDY}")
    if len(known) < MOST_KNOWN:
        schema = known.setdefault((parsed.key, leaves), schema)
    rows, groups, chunks = parsed.rows, parsed.groups, parsed.chunks
    return Footer(file, identity, metadata, schema, rows, groups, chunks, raw, remote)


class _Parsed(NamedTuple):
    """What the bytes of a footer say; `key` is all that does not depend on the rows."""

    rows: int
    groups: list[list[int]]
    chunks: np.ndarray
    key: bytes

    @property
    def error(self) -> str:
        """Why the rows cannot be right; empty if they can."""
        rows = [one[0] for one in self.groups]
        if sum(rows) == self.rows and min(rows, default=0) >= 0:
            return ""
        some = ", ".join(map(str, rows[:5])) + (" ..." if len(rows) > 5 else "")
        return (
            f"its footer says {self.rows} rows, but those of its {len(rows)} row groups ({some}) "
            f"add up to {sum(rows)}"
        )


def _parsed(raw: np.ndarray, row_groups: int, leaves: int) -> _Parsed | None:
    """Parse a footer of so many row groups and columns, or fewer; None if it is no such footer."""
    if row_groups * leaves > len(raw):  # each column chunk takes more than one byte
        return None
    numbers, groups = np.full(3, -1, np.int64), np.full((row_groups, 2), -1, np.int64)
    chunks = np.full((row_groups, leaves, CHUNK_FIELDS), -1, np.int64)
    if not parse_footer(raw, numbers, groups, chunks):
        return None
    rows, begin, end = numbers.tolist()
    return _Parsed(rows, groups.tolist(), chunks, bytes(raw[:begin]) + bytes(raw[end:]))


def _tail(file: Any, at_once: int) -> bytes:
    """The end of an open file: the footer, its length, and the magic bytes.

    `at_once` is how many bytes are read first.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - at_once))
    read: bytes = file.read(at_once)
    end = read[-8:]
    if end[4:] == ENCRYPTED_MAGIC:
        raise ValueError("its footer is encrypted")
    if end[4:] != MAGIC:
        found = f"it ends in the bytes {end[-4:].hex(' ')} and not in {MAGIC.decode()}"
        raise ValueError(found if end else "it is empty")
    length = 8 + int.from_bytes(end[:4], "little")
    if length > size:
        raise ValueError(f"its footer takes {length} bytes, but the file holds {size}")
    if length <= len(read):
        return read[-length:]
    file.seek(size - length)
    tail: bytes = file.read(length)
    return tail


def _leaves(kind: Any) -> int:
    """The number of Parquet columns that store one column of an Arrow type."""
    if isinstance(kind, pa.BaseExtensionType):
        return _leaves(kind.storage_type)
    return sum(_leaves(kind.field(i).type) for i in range(kind.num_fields)) or 1


def _has_lists(kind: Any) -> bool:
    """Whether a row of the first Parquet column that stores an Arrow type may hold many values."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if kinds.is_struct(kind) and kind.num_fields:
        return _has_lists(kind.field(0).type)
    return is_list_type(kind) or bool(kinds.is_map(kind))


# ------------------------------------------------------------------ column chunks


def chunks_of(footer: Footer, column: str) -> list[list[int]]:
    """The checked fields of a stored column: those of its column chunk in each row group."""
    if column in footer.checked:
        return footer.checked[column]
    place = footer.schema.get_field_index(column)
    is_list = _has_lists(footer.schema.field(place).type)
    chunks: list[list[int]] = footer.chunks[
        :, sum(map(_leaves, footer.schema.types[:place]))
    ].tolist()
    for group, chunk in enumerate(chunks):
        rows = footer.groups[group][0]
        values, size, whole = chunk[VALUES], chunk[COMPRESSED], chunk[UNCOMPRESSED]
        if chunk[ENCRYPTED] > 0:
            raise InputError(
                f"{footer.file.name}: column {column!r} is encrypted; expected one that is not: "
                "write it without encryption"
            )
        bad = (values < rows) if is_list else (values != rows)
        if bad or not 0 <= size <= footer.identity[2] or whole < 0:
            what = f"row group {group} holds {rows} rows, and {values} values of column {column!r}"
            what = f"its footer says that {what} in {size} bytes, which cannot be"
            raise broken(footer.file, what, footer.identity)
        # One list of that length may be among them.
        dense = values - rows >= LONGEST_LIST and values > MOST_VALUES_A_BYTE * (1 + whole)
        if is_list and (values > LONGEST_LIST * rows or dense):
            raise InputError(
                f"{footer.file.name}: row group {group} holds {values} values of column {column!r} "
                f"in {rows} lists of {whole} bytes; a list is read whole, and may hold "
                f"{LONGEST_LIST} values at most: cut the lists at the ranks that count"
            )
    footer.checked[column] = chunks
    return chunks
