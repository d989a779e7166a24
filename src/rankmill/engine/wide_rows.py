"""Lists as rows of a wide table: query_id, items, and scores or gains; and as a Parquet file."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import arrow_of
from rankmill.columns.ids import id_type, ids_to_arrow
from rankmill.columns.lists import is_list_type
from rankmill.columns.ranked_lists import Lists
from rankmill.engine.progress import Progress
from rankmill.errors import InputError
from rankmill.io.whole_files import whole_file
from rankmill.sources.input_options import Role
from rankmill.sources.inputs.inputs import Input

# A row group ends at either of these. Small ones make narrow ranges of ids and several threads
# possible, large ones are read and compressed best.
GROUP_ROWS = 1 << 17
GROUP_BYTES = 1 << 26


# The rows of some lists, and of these the rows that were read, the null items and the tied ones.
_Block = tuple[Any, int, int, int]


class RowBlocks:
    """Makes rows of the lists of an input; counts them, their null items and those of equal rank.

    In `schema`, ids are integers, or bytes, which Arrow sorts and takes; the metadata "text" names
    the columns that hold text.
    """

    def __init__(self, one: Input, role: Role) -> None:
        self._input = one
        self._total = one.source.rows
        self._query, text = _kind(one, "query")
        self._item, text_items = _kind(one, "item")
        fields = [("query_id", self._query), ("items", pa.large_list(self._item))]
        name = one.columns.score or one.columns.gain
        if name is not None:
            self._number = _number_type(one, name)
            numbers = "scores" if role == "predictions" else "gains"
            fields.append((numbers, pa.large_list(self._number)))
        named = [*(["query_id"] if text else []), *(["items"] if text_items else [])]
        self.schema = pa.schema(fields, {"text": ",".join(named)})
        self.rows = self.nulls = self.tied = 0

    def of(self, lists: Lists) -> _Block:
        """The rows of some lists."""
        source = lists.place.source
        offsets = arrow_of(lists.offsets)
        items = _ids(lists.items, self._item, f"{source}: column {self._input.columns.item!r}")
        columns = [
            _ids(lists.queries, self._query, f"{source}: column {self._input.columns.query!r}"),
            pa.LargeListArray.from_arrays(offsets, items),
        ]
        if len(self.schema) > 2:
            numbers = np.empty(0) if lists.numbers is None else lists.numbers
            columns.append(
                pa.LargeListArray.from_arrays(offsets, arrow_of(numbers).cast(self._number))
            )
        rows = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        return rows, lists.rows, lists.nulls, lists.tied

    def counted(self, blocks: Iterable[_Block], progress: Progress | None) -> Iterator[Any]:
        """Yield the rows of blocks, and count them."""
        for rows, count, nulls, tied in blocks:
            self.rows += count
            self.nulls += nulls
            self.tied += tied
            yield rows
            if progress is not None:
                progress(self.rows, self._total)


def _ids(ids: Any, kind: Any, what: str) -> Any:
    if kinds.is_large_binary(kind):
        return ids_to_arrow(ids, {kind}) if len(ids.keys) else pa.array([], kind)
    try:
        return ids_to_arrow(ids, set()).cast(kind)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{what}: {error}; cast the ids of all files to one integer type, or to strings"
        ) from None


def _kind(one: Input, role: str) -> tuple[Any, bool]:
    """The type in which ids are sorted and held, and whether they are text."""
    found = {*map(id_type, one.id_types(role))} - {pa.null()}
    if any(not kinds.is_integer(kind) for kind in found):
        return pa.large_binary(), all(kinds.is_large_string(kind) for kind in found)
    if len(found) == 1:
        return found.pop(), False
    unsigned = bool(found) and all(map(kinds.is_unsigned_integer, found))
    return (pa.uint64() if unsigned else pa.int64()), False


def _number_type(one: Input, name: str) -> Any:
    """The type of confidences or gains: float where all are, which takes half of double."""
    found = {schema.field(name).type for schema in one.source.kinds().values()}
    found = {kind.value_type if is_list_type(kind) else kind for kind in found}
    narrow = all(kinds.is_float32(kind) or kinds.is_float16(kind) for kind in found)
    return pa.float32() if narrow else pa.float64()


def write_rows(path: str | Path, tables: Iterable[Any], schema: Any) -> tuple[int, int]:
    """Write tables of rows of `RowBlocks`; return how many rows and items were written."""
    import pyarrow.parquet as pq

    text = schema.metadata[b"text"].decode().split(",")
    target = pa.schema([pa.field(one.name, _target(one.type, one.name in text)) for one in schema])
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


def _target(kind: Any, text: bool) -> Any:
    """The type in which a column is written."""
    if kinds.is_large_list(kind):
        return pa.large_list(pa.field("element", _target(kind.value_type, text)))
    if not kinds.is_large_binary(kind):
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
