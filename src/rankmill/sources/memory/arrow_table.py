"""Read a table in memory, a pyarrow.Table."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from rankmill.columns.lists import is_list_type
from rankmill.columns.place import Place
from rankmill.errors import InputError
from rankmill.sources.roles.source import BATCH_ROWS, Batch, Source
from rankmill.sources.roles.streams import joined


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
        return {column: size_of(table.column(column)) for column in columns}

    return Source(name, {name: table.schema}, table.num_rows, sizes, pieces)


def size_of(column: Any) -> tuple[int, int]:
    """The number of values of an Arrow column, those in lists if it holds lists, and its bytes."""
    try:
        size = column.nbytes
    except pa.ArrowTypeError:  # before pyarrow 21, views have no range of bytes
        size = column.get_total_buffer_size()
    if not is_list_type(column.type):
        return len(column), size
    import pyarrow.compute as pc

    # Wrong offsets are found when the rows are read.
    return max(0, pc.sum(pc.list_value_length(column)).as_py() or 0), size


def _read(table: Any, name: str) -> Iterator[Batch]:
    first_row = 0
    for data in joined(table.to_batches(max_chunksize=BATCH_ROWS)):
        yield Batch(data, Place(name, first_row))
        first_row += data.num_rows
