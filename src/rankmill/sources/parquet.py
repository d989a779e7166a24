"""Parquet: one file, several, a glob, or a directory, also Hive-partitioned."""

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rankmill.errors import InputError
from rankmill.sources.base import BATCH_ROWS, BATCH_VALUES, Batch, Source

SUFFIXES = (".parquet", ".parq", ".pq")


@dataclass(frozen=True)
class ParquetPart:
    """A file, its footer, and the columns that its place in a Hive-partitioned directory gives."""

    path: str
    metadata: Any
    schema: Any
    partition: dict[str, Any]


def open_parquet(paths: Sequence[str], name: str) -> Source:
    """Open Parquet files by path, glob or directory; only footers are read yet.

    Raises
    ------
    InputError
        If nothing is there, or a file is no readable Parquet.
    """
    parts = [_open_part(path, partition) for path, partition in _find_files(paths)]
    return Source(
        name=name,
        schemas={part.path: part.schema for part in parts},
        rows=sum(part.metadata.num_rows for part in parts),
        values=lambda column: sum(_count_values(part.metadata, column) for part in parts),
        pieces=lambda columns: [
            _read_row_group(part, group, columns)
            for part in parts
            for group in range(part.metadata.num_row_groups)
        ],
    )


def _find_files(paths: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    for path in paths:
        if Path(path).is_dir():
            found += _files_of_directory(path)
        elif Path(path).exists():
            found.append((path, {}))
        else:
            matches = sorted(glob.glob(path, recursive=True))
            if not matches:
                kind = "no file matches" if glob.has_magic(path) else "no such file or directory:"
                raise InputError(f"{kind} {path}; expected a Parquet file, a glob or a directory")
            for match in matches:
                found += _files_of_directory(match) if Path(match).is_dir() else [(match, {})]
    return found


def _files_of_directory(directory: str) -> list[tuple[str, dict[str, Any]]]:
    root = Path(directory)
    files = [
        path
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
    if not any("=" in part for path in files for part in path.relative_to(root).parts[:-1]):
        return [(str(path), {}) for path in files]
    import pyarrow.dataset as ds

    names = [str(path) for path in files]
    dataset = ds.dataset(names, format="parquet", partitioning="hive", partition_base_dir=directory)
    keys = {
        fragment.path: ds.get_partition_keys(fragment.partition_expression)
        for fragment in dataset.get_fragments()
    }
    return [(name, keys.get(name, {})) for name in names]


def _open_part(path: str, partition: dict[str, Any]) -> ParquetPart:
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            metadata = file.metadata
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as Parquet: {_first_line(error)}. Is it a whole Parquet file?"
        ) from None
    for name, value in partition.items():
        if name not in schema.names:
            schema = schema.append(pa.field(name, pa.scalar(value).type))
    return ParquetPart(path, metadata, schema, partition)


def _read_row_group(part: ParquetPart, group: int, columns: list[str]) -> Iterator[Batch]:
    stored = [name for name in columns if name in part.metadata.schema.to_arrow_schema().names]
    first_row = sum(part.metadata.row_group(i).num_rows for i in range(group))
    try:
        with pq.ParquetFile(
            part.path, metadata=part.metadata, page_checksum_verification=True
        ) as file:
            for data in file.iter_batches(
                batch_size=_batch_rows(part.metadata.row_group(group)),
                row_groups=[group],
                columns=stored,
                use_threads=False,
            ):
                yield Batch(_with_partition(data, part, columns), part.path, first_row)
                first_row += data.num_rows
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{part.path} is broken: row group {group} cannot be read: {_first_line(error)}. "
            "Write or fetch the file again"
        ) from None


def _with_partition(data: Any, part: ParquetPart, columns: list[str]) -> Any:
    for name in columns:
        if name not in data.schema.names:
            constant = pa.repeat(pa.scalar(part.partition[name]), data.num_rows)
            data = data.append_column(name, constant)
    return data


def _count_values(metadata: Any, column: str) -> int:
    """The values of a column in a file, nulls and empty lists included."""
    if metadata.num_row_groups == 0:
        return 0
    first = metadata.row_group(0)
    leaves = [
        i
        for i in range(first.num_columns)
        if f"{first.column(i).path_in_schema}.".startswith(f"{column}.")
    ]
    if not leaves:  # a column of the directory's names, one value a row
        return int(metadata.num_rows)
    return sum(
        metadata.row_group(group).column(leaves[0]).num_values
        for group in range(metadata.num_row_groups)
    )


def _batch_rows(row_group: Any) -> int:
    """Rows a batch, in batches of one size of at most about BATCH_VALUES values a column."""
    rows = max(1, row_group.num_rows)
    values = max(row_group.column(i).num_values for i in range(row_group.num_columns))
    batches = max(-(-values // BATCH_VALUES), -(-rows // BATCH_ROWS))
    return int(-(-rows // min(rows, batches)))


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
