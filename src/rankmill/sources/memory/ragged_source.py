"""A Ragged as a source of lists, whose query ids are 0 to n - 1."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of
from rankmill.columns.ids import to_ids
from rankmill.columns.place import Place
from rankmill.columns.ragged_lists import Ragged
from rankmill.columns.ranked_lists import Lists
from rankmill.errors import InputError
from rankmill.sources.input_options import InputOptions
from rankmill.sources.roles.columns import Columns
from rankmill.sources.roles.source import BATCH_ROWS, BATCH_VALUES, Source
from rankmill.sources.rows.wide import by_score, numbers_of_lists


def open_ragged(items: Ragged, asked: InputOptions, name: str | None = None) -> Source:
    """Open Ragged items, with optional Ragged numbers for these items, as a source."""
    numbers, number_column = asked.numbers, asked.kind
    name = name or f"the Ragged of {asked.role}"
    sides = {"items": items}
    if numbers is not None:
        if not isinstance(numbers, Ragged) or not np.array_equal(numbers.offsets, items.offsets):
            raise InputError(
                f"{number_column} for Ragged items must be a Ragged with the same offsets, one "
                f"number per item; found {numbers!r} with {items!r}"
            )
        sides[number_column] = numbers
    kinds = {side: pa.large_list(_value_type(one)) for side, one in sides.items()}
    if not len(items.values):  # an input without items can be compared with ids of any type
        kinds["items"] = pa.large_list(pa.null())

    def sizes(columns: list[str]) -> dict[str, tuple[int, int]]:
        whole = {side: (len(one.values), one.values.nbytes) for side, one in sides.items()}
        whole["query"] = len(items), 8 * len(items)
        return {column: whole[column] for column in columns}

    def lists(columns: Columns) -> list[Iterator[Lists]]:
        return [_block(items, numbers, columns, name, *ends) for ends in _blocks(items.offsets)]

    schema = pa.schema({"query": pa.int64(), **kinds})
    whole = {name: schema}
    return Source(name, whole, len(items), sizes, lists=lists, positional=True, bare=True)


def _value_type(one: Ragged) -> Any:
    values = one.values
    return pa.from_numpy_dtype(values.dtype) if isinstance(values, np.ndarray) else values.type


def _blocks(offsets: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield ranges of lists, each with about BATCH_VALUES values and at most BATCH_ROWS lists."""
    start, count = 0, len(offsets) - 1
    while start < count:
        enough = int(np.searchsorted(offsets, offsets[start] + BATCH_VALUES))
        end = min(max(enough, start + 1), start + BATCH_ROWS, count)
        yield start, end
        start = end


def _block(
    items: Ragged, numbers: Ragged | None, columns: Columns, name: str, start: int, end: int
) -> Iterator[Lists]:
    """Yield the one block of a piece; a generator, as then the thread that takes it does it."""
    queries = to_ids(np.arange(start, end), name)
    first, last = items.offsets[start], items.offsets[end]
    offsets = items.offsets[start : end + 1] - first
    taken = None
    column = columns.score or columns.gain
    if column is not None and numbers is not None:
        raw = arrow_of(numbers.values[first:last])
        taken = numbers_of_lists(raw, None, offsets, queries, columns, Place(name, start))
    ids = to_ids(items.values[first:last], f"{name}: column {columns.item!r}")
    lists = Lists(queries, offsets, ids, taken, 0, 0, Place(name, start), end - start)
    yield by_score(lists) if columns.unordered else lists
