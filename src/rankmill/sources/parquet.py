"""Parquet: one file, several, a glob, or a directory, also Hive-partitioned."""

import glob
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.types import is_dictionary

from rankmill.errors import InputError, UsageError
from rankmill.lists import is_list_type
from rankmill.sources.base import BATCH_BYTES, BATCH_ROWS, BATCH_VALUES, Batch, Source
from rankmill.sources.footers import RowGroup, read_row_groups
from rankmill.sources.within import rows_within

SUFFIXES = (".parquet", ".parq", ".pq")
# Rows that are read to see how long lists are.
SAMPLE_ROWS = 1024
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class ParquetPart:
    """A file, its footer, and the columns that the names of its folders give, as key=value."""

    path: str
    metadata: Any
    schema: Any
    partition: dict[str, Any]
    groups: Collection[int]  # those to read


def open_parquet(paths: Sequence[str], name: str) -> Source:
    """Open Parquet files by path, glob or directory; only footers are read yet.

    Raises
    ------
    InputError
        If nothing is there, or a file is no readable Parquet.
    """
    return _source(name, _typed_partitions([_open_part(path) for path in find_files(paths)]))


def _source(name: str, parts: list[ParquetPart]) -> Source:
    return Source(
        name=name,
        schemas={part.path: part.schema for part in parts},
        rows=sum(part.metadata.num_rows for part in parts),
        sizes=lambda columns: {name: _size(parts, name) for name in columns},
        pieces=lambda columns: [
            _read_groups(part, groups, first_row, columns, batch_rows)
            for part in parts
            for batch_rows in [list[int]()]  # filled in by the first piece of a file that is read
            for groups, first_row in _runs_of_groups(part, columns)
        ],
        row_groups=partial(_row_groups, parts),
        within=partial(_within, name, parts),
    )


def _row_groups(parts: list[ParquetPart], query: str, item: str) -> list[RowGroup]:
    """The row groups of all files; none if one file does not tell the bounds of all of its own."""
    found = []
    for number, part in enumerate(parts):
        groups = read_row_groups(part.path, number, part.schema, query, item)
        if sum(group.rows for group in groups) != part.metadata.num_rows:
            return []
        found += groups
    return found


def _within(
    name: str, parts: list[ParquetPart], groups: list[RowGroup], query: str, low: Any, high: Any
) -> Source:
    chosen: dict[int, set[int]] = {}
    for group in groups:
        chosen.setdefault(group.file, set()).add(group.number)
    source = _source(name, [replace(parts[i], groups=chosen[i]) for i in sorted(chosen)])
    return replace(
        source,
        rows=sum(group.rows for group in groups),
        pieces=lambda columns: [
            rows_within(piece, query, low, high) for piece in source.pieces(columns)
        ],
    )


def find_files(paths: Sequence[str]) -> list[str]:
    """The files that paths, globs and directories stand for, each directory's in order of name.

    Raises
    ------
    InputError
        If a path leads nowhere or cannot be looked at.
    UsageError
        If a path is empty.
    """
    found: list[str] = []
    for path in paths:
        if not path:
            raise UsageError("a path is empty; expected a Parquet file, a glob or a directory")
        try:
            exists = Path(path).exists()
            matches = [path] if exists else sorted(glob.glob(path, recursive=True))
            for match in matches:
                found += _files_of_directory(match) if Path(match).is_dir() else [match]
        except OSError as error:
            raise InputError(f"{path} cannot be opened: {error.strerror or error}") from None
        if not matches:
            kind = "no file matches" if glob.has_magic(path) else "no such file or directory:"
            raise InputError(f"{kind} {path}; expected a Parquet file, a glob or a directory")
    return found


def _files_of_directory(directory: str) -> list[str]:
    root = Path(directory)
    files = [
        str(path)
        for path in sorted(root.rglob("*"))
        if path.suffix.lower() in SUFFIXES
        and path.is_file()
        and not any(part[0] in "._" for part in path.relative_to(root).parts)
    ]
    if not files:
        raise InputError(
            f"the directory {directory} holds no Parquet file; expected names that end in "
            f"{', '.join(SUFFIXES)} (those that start with . or _ are passed over)"
        )
    return files


def _open_part(path: str) -> ParquetPart:
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            metadata = file.metadata
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as Parquet: {first_line(error)}. Is it a whole Parquet file?"
        ) from None
    folders = [part.partition("=") for part in Path(path).parts[:-1] if "=" in part]
    partition = {unquote(key): unquote(value) for key, _, value in folders}
    stored = set(schema.names)
    return ParquetPart(
        path,
        metadata,
        schema,
        {key: partition[key] for key in partition if key not in stored},
        range(metadata.num_row_groups),
    )


def _typed_partitions(parts: list[ParquetPart]) -> list[ParquetPart]:
    """Give columns of folder names a type: int64 if all are plain integers, else string."""
    values: dict[str, set[str]] = {}
    for part in parts:
        for key, value in part.partition.items():
            values.setdefault(key, set()).add(value)
    whole = {
        key: all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", one) for one in texts - {HIVE_NULL})
        for key, texts in values.items()
    }
    typed = []
    for part in parts:
        scalars = {
            key: pa.scalar(
                None if value == HIVE_NULL else int(value) if whole[key] else value,
                pa.int64() if whole[key] else pa.string(),
            )
            for key, value in part.partition.items()
        }
        schema = part.schema
        for key, scalar in scalars.items():
            schema = schema.append(pa.field(key, scalar.type))
        typed.append(replace(part, partition=scalars, schema=schema))
    return typed


def _size(parts: list[ParquetPart], column: str) -> tuple[int, int]:
    """The values of a column in all files, nulls and empty lists included, and its bytes."""
    values = size = 0
    for part in parts:
        values += part.metadata.num_rows if column in part.partition else 0
        leaves = [
            i
            for i in range(part.metadata.num_columns)
            if re.match(
                rf"{re.escape(column)}(\.list|\.bag|$)", part.metadata.schema.column(i).path
            )
        ]
        for group in range(part.metadata.num_row_groups):
            for i in leaves:
                chunk = part.metadata.row_group(group).column(i)
                values += chunk.num_values
                size += chunk.total_compressed_size
    return values, size


def _runs_of_groups(part: ParquetPart, columns: list[str]) -> list[tuple[list[int], int]]:
    """Row groups, small ones together, and the first row of each run."""
    kinds = [part.schema.field(name).type for name in columns]
    # The reader cannot join the dictionaries of row groups within lists.
    apart = any(is_list_type(kind) and is_dictionary(kind.value_type) for kind in kinds)
    runs: list[tuple[list[int], int]] = []
    start = rows = size = 0
    for number in range(part.metadata.num_row_groups):
        group = part.metadata.row_group(number)
        rows += group.num_rows
        size += group.total_byte_size
        joins = not apart and runs and runs[-1][0][-1] == number - 1
        if number not in part.groups:
            pass
        elif joins and rows <= BATCH_ROWS and size <= BATCH_BYTES:
            runs[-1][0].append(number)
        else:
            runs.append(([number], start))
            rows, size = group.num_rows, group.total_byte_size
        start += group.num_rows
    return runs


def _read_groups(
    part: ParquetPart, groups: list[int], first_row: int, columns: list[str], batch_rows: list[int]
) -> Iterator[Batch]:
    which = f"row group {groups[0]}" + (f" to {groups[-1]}" if len(groups) > 1 else "")
    expected = sum(part.metadata.row_group(group).num_rows for group in groups)
    row = first_row
    try:
        with pq.ParquetFile(
            part.path, metadata=part.metadata, page_checksum_verification=True
        ) as file:
            stored = [name for name in columns if name not in part.partition]
            for data in _batches(file, groups, stored, batch_rows):
                yield Batch(_with_partition(data, part, columns), part.path, row)
                row += data.num_rows
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{part.path} is broken: {which} cannot be read: {first_line(error)}. "
            "Write or fetch the file again"
        ) from None
    if row - first_row != expected:  # the reader may stop early without a word
        raise InputError(
            f"{part.path} is broken: {which} gave {row - first_row} rows, but its footer says "
            f"{expected}. Write or fetch the file again"
        )


def _with_partition(data: Any, part: ParquetPart, columns: list[str]) -> Any:
    for name in columns:
        if name in part.partition:
            data = data.append_column(name, pa.repeat(part.partition[name], data.num_rows))
    return data


def _batches(
    file: Any, groups: list[int], columns: list[str], batch_rows: list[int]
) -> Iterator[Any]:
    """The record batches of some row groups, in batches of about BATCH_VALUES values a column."""
    if len(groups) > 1:  # iter_batches would end a batch with each row group
        table = file.read_row_groups(groups, columns=columns, use_threads=False)
        yield from table.combine_chunks().to_batches()
        return
    read = partial(file.iter_batches, row_groups=groups, columns=columns, use_threads=False)
    rows = max(1, file.metadata.row_group(groups[0]).num_rows)
    if not batch_rows and rows > SAMPLE_ROWS:
        # The footer would tell the number of values, but asking a broken one ends the process.
        sample = next(read(batch_size=SAMPLE_ROWS))
        longest = max(_count_values(column) for column in sample.columns) / sample.num_rows
        batch_rows.append(max(1, int(BATCH_VALUES / max(1, longest))))
    largest = min(BATCH_ROWS, *batch_rows) if batch_rows else BATCH_ROWS
    batches = -(-rows // largest)
    yield from read(batch_size=-(-rows // batches))


def _count_values(column: Any) -> int:
    return len(column.flatten()) if is_list_type(column.type) else len(column)


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its type."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
