"""Lists as rows of a wide table: query_id, items, and scores or gains."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import arrow_of
from rankmill.columns.ids import id_type, ids_to_arrow
from rankmill.columns.lists import is_list_type
from rankmill.columns.ranked_lists import Lists
from rankmill.engine.progress import Progress
from rankmill.errors import InputError
from rankmill.sources.input_options import Role
from rankmill.sources.inputs.inputs import Input


class WideBlock(NamedTuple):
    """The rows of a block of lists, and what was counted in it."""

    rows: Any
    input_rows: int
    nulls: int
    tied: int


class RowBlocks:
    """Makes rows of the lists of an input, and counts them.

    Ids have a type that fits those of all inputs `among` which it is; by default it is alone.

    Attributes
    ----------
    schema : pyarrow.Schema
        That of the rows. Ids are integers, or bytes, which Arrow sorts and takes; the metadata
        "text" names the columns that hold text.
    rows, nulls, tied : int
        The rows that were read, and the null items and the items of equal rank among them.
    """

    def __init__(self, one: Input, role: Role, among: Sequence[Input] = ()) -> None:
        self._input = one
        self._total = one.source.rows
        self._query, text = _kind(among or [one], "query")
        self._item, text_items = _kind(among or [one], "item")
        fields = [("query_id", self._query), ("items", pa.large_list(self._item))]
        name = one.columns.score or one.columns.gain
        if name is not None:
            self._number = _number_type(one, name)
            numbers = "scores" if role == "predictions" else "gains"
            fields.append((numbers, pa.large_list(self._number)))
        named = [*(["query_id"] if text else []), *(["items"] if text_items else [])]
        self.schema = pa.schema(fields, {"text": ",".join(named)})
        self.rows = self.nulls = self.tied = 0

    def of(self, lists: Lists) -> WideBlock:
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
        return WideBlock(rows, lists.rows, lists.nulls, lists.tied)

    def counted(self, blocks: Iterable[WideBlock], progress: Progress | None) -> Iterator[Any]:
        """Yield the rows of blocks, and count them."""
        for block in blocks:
            self.rows += block.input_rows
            self.nulls += block.nulls
            self.tied += block.tied
            yield block.rows
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


def _kind(inputs: Sequence[Input], role: str) -> tuple[Any, bool]:
    """The type in which ids are sorted and held, and whether they are text."""
    found = {id_type(kind) for one in inputs for kind in one.id_types(role)} - {pa.null()}
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
