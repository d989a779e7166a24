"""Read a table in memory, a pyarrow.Table."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from rankmill.columns.lists import is_list_type
from rankmill.columns.place import Place
from rankmill.errors import InputError
from rankmill.sources.base import BATCH_ROWS, Batch, Source
from rankmill.sources.stream import joined


def open_table(table: Any, name: str) -> Source:
    """Open a pyarrow.Table as a source; its data is validated because kernels trust it.

    Raises
    ------
    InputError
        If the table breaks the rules of the Arrow format.
    """

    def pieces(columns: list[str]) -> list[Iterator[Batch]]:
        needed = table.select(columns)
        try:
            needed.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InputError(f"{name} breaks the rules of the Arrow format: {error}") from None
        return [_read(needed, name)]

    def sizes(columns: list[str]) -> dict[str, tuple[int, int]]:
        found = {}
        for column in columns:
            chunks = table.column(column).chunks
            flat = is_list_type(table.schema.field(column).type)
            values = sum(len(chunk.flatten() if flat else chunk) for chunk in chunks)
            found[column] = values, table.column(column).nbytes
        return found

    return Source(name, {name: table.schema}, table.num_rows, sizes, pieces)


def _read(table: Any, name: str) -> Iterator[Batch]:
    first_row = 0
    for data in joined(table.to_batches(max_chunksize=BATCH_ROWS)):
        yield Batch(data, Place(name, first_row))
        first_row += data.num_rows
