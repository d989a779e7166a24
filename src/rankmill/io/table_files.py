"""Tables as files: the suffix of a name tells the format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from rankmill.errors import UsageError
from rankmill.io.inert_text import csv_cell
from rankmill.io.stores.urls import shown

if TYPE_CHECKING:
    import pyarrow as pa

# So many rows are text at a time.
ROWS = 1 << 16


def suffix_of(path: str | Path) -> str:
    """Return the suffix of a path or URL in lower case."""
    return Path(shown(str(path))).suffix.lower()


def check_table_name(path: str | Path, more: Sequence[str] = ()) -> None:
    """Raise UsageError unless a suffix tells in which format a table is written to a path.

    `more` are suffixes that are taken, too.
    """
    if suffix_of(path) not in (*more, *_WRITERS):
        place = "standard output" if str(path) == "-" else shown(str(path))
        raise UsageError(
            f"cannot write a table to {place}: the suffix sets the format; expected a name that "
            f"ends in {', '.join([*more, NAMED])}"
        )


def write_by_suffix(file: BinaryIO, table: pa.Table, path: str | Path) -> None:
    """Write a table to an open file in the format of a path's suffix; without one it is Parquet."""
    _WRITERS.get(suffix_of(path), _write_parquet)(file, table)


def _write_parquet(file: BinaryIO, table: pa.Table) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, file)


def _write_arrow(file: BinaryIO, table: pa.Table) -> None:
    import pyarrow as pa

    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _write_csv(file: BinaryIO, table: pa.Table) -> None:
    for rows in _rows(table, [table.column_names]):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([csv_cell(cell) for cell in row] for row in rows)
        file.write(text.getvalue().encode())


def _write_lines(file: BinaryIO, table: pa.Table) -> None:
    for rows in _rows(table, []):
        objects = (dict(zip(table.column_names, row, strict=True)) for row in rows)
        lines = [json.dumps(one, allow_nan=False) + "\n" for one in objects]
        file.write("".join(lines).encode())


def _rows(table: pa.Table, first: list[Any]) -> Iterator[Any]:
    """Yield the rows of a table in parts, with bytes as text; before them `first`."""
    yield first
    for batch in table.to_batches(max_chunksize=ROWS):
        columns = (column.to_pylist() for column in batch.columns)
        yield zip(*([_text(cell) for cell in column] for column in columns), strict=True)


def _text(cell: Any) -> Any:
    return cell.decode("utf-8", "backslashreplace") if isinstance(cell, bytes) else cell


_WRITERS: dict[str, Callable[[BinaryIO, pa.Table], None]] = {
    **dict.fromkeys((".parquet", ".parq", ".pq"), _write_parquet),
    ".csv": _write_csv,
    **dict.fromkeys((".jsonl", ".ndjson"), _write_lines),
    **dict.fromkeys((".arrow", ".feather"), _write_arrow),
}
SUFFIXES = tuple(_WRITERS)
NAMED = ".parquet, .csv, .jsonl, .arrow or .feather"
"""The suffixes that messages and help name."""
