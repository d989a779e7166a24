"""Write sorted rows of lists as a Parquet file."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from rankmill.io.whole_files import whole_file

# A row group ends at either of these. Small ones make narrow ranges of ids and several threads
# possible, large ones are read and compressed best.
GROUP_ROWS = 1 << 17
GROUP_BYTES = 1 << 26


def write_rows(path: str | Path, tables: Iterable[Any], schema: Any) -> tuple[int, int]:
    """Write tables of rows; return how many rows and items were written."""
    import pyarrow.parquet as pq

    target = written_schema(schema)
    rows = items = 0
    with (
        whole_file(path) as file,
        pq.ParquetWriter(
            file,
            target,
            compression="zstd",
            use_dictionary=["items.list.element"],
            write_statistics=["query_id"],
            write_page_index=True,
            write_page_checksum=True,
            store_schema=False,  # else lists and strings would be read with 64-bit offsets
        ) as writer,
    ):
        for group in _groups(tables):
            rows += len(group)
            items += sum(len(chunk.flatten()) for chunk in group.column("items").chunks)
            # The bytes of text are written as they were read, valid or not.
            writer.write_table(group.cast(target, safe=False), row_group_size=len(group))
    return rows, items


def written_schema(schema: Any) -> Any:
    """Return the schema in which rows of a schema of `RowBlocks` are written."""
    text = schema.metadata[b"text"].decode().split(",")
    return pa.schema([pa.field(one.name, _target(one.type, one.name in text)) for one in schema])


def _target(kind: Any, text: bool) -> Any:
    """The type in which a column is written."""
    if pa.types.is_large_list(kind):
        return pa.large_list(pa.field("element", _target(kind.value_type, text)))
    if not pa.types.is_large_binary(kind):
        return kind
    return pa.large_string() if text else kind


def _groups(tables: Iterable[Any]) -> Iterator[Any]:
    """Yield tables of the rows of a row group each."""
    held: list[Any] = []
    rows = size = 0
    for table in _pieces(tables):
        if held and (rows + len(table) > GROUP_ROWS or size + table.nbytes > GROUP_BYTES):
            yield pa.concat_tables(held)
            held, rows, size = [], 0, 0
        held.append(table)
        rows, size = rows + len(table), size + table.nbytes
    if held:
        yield pa.concat_tables(held)


def _pieces(tables: Iterable[Any]) -> Iterator[Any]:
    """Yield tables of an eighth of a row group at most, unless a single list is longer."""
    for table in tables:
        most = min(GROUP_ROWS, GROUP_BYTES * len(table) // max(1, table.nbytes)) // 8
        for start in range(0, len(table), max(1, most)):
            yield table.slice(start, max(1, most))
