"""Items and lists of items from what notebooks hold.

Objects become Arrow by the one way of `columns/objects.py`. What a notebook's ``==`` compares and
ids are not (floats, booleans, tuples, integers beside strings, ...) stays a list of Python objects
until ``comparable`` numbers them.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.ids import is_text_type, plain
from rankmill.columns.lists import offsets_of, split_lists
from rankmill.columns.objects import (
    as_integers,
    cells_of,
    is_missing,
    join_cells,
    known_array,
    list_of,
)
from rankmill.columns.ragged_lists import Ragged, checked_arrow, one_chunk
from rankmill.errors import InputError

PER_IMAGE = 5  # the number of predictions that count for an image


def to_column(items: Any, what: str) -> Any:
    """Return items as an Arrow array of integers or strings, with null for a missing one.

    Other items are returned as a list of Python objects; a string or no sequence is an InputError.
    """
    if isinstance(items, pa.Array | pa.ChunkedArray):
        items = checked_arrow(one_chunk(items))
    elif not isinstance(items, np.ndarray) and not hasattr(items, "dtype"):
        items = list_of(items, what)
    found = _as_ids(items, what)
    return list_of(items, what) if found is None else found


def _as_ids(items: Any, what: str) -> Any:
    array = known_array(items)
    if array is None:
        return None
    array = as_integers(plain(array, what))
    kind = array.type
    if kind in (pa.int64(), pa.uint64(), pa.string(), pa.large_string()):
        return array
    if kinds.is_string_view(kind):
        return array.cast(pa.large_string())
    # Integers are widened, because ids are compared as 64 bits.
    return array.cast(pa.int64()) if kinds.is_integer(kind) or kinds.is_null(kind) else None


def to_lists(lists: Any, what: str, limit: int | None = None) -> tuple[np.ndarray, Any]:
    """Return the offsets, int64[n + 1], and the column of all items of n lists.

    A missing list becomes an empty one. With a `limit` the lists must be in rank order, and items
    after the first `limit` may be dropped.
    """
    if isinstance(lists, Ragged):
        return lists.offsets, to_column(lists.values, what)
    if isinstance(lists, pa.Array | pa.ChunkedArray):
        offsets, values = split_lists(checked_arrow(one_chunk(lists)))
        return offsets, to_column(values, what)
    cells = cells_of(lists, what)
    lengths, items = join_cells(cells, lambda i: f"{what}[{i}]", limit, sets=limit is None)
    return offsets_of(lengths), to_column(items, what)


def comparable(labels: Any, predictions: Any) -> tuple[Any, Any]:
    """Return two columns as Arrow arrays, both of integers or both of strings.

    If a column holds other items, all items are numbered: equal items get the same number. If one
    holds integers and the other strings, no prediction is a label, so that all are missing ones.
    """
    if isinstance(labels, list) or isinstance(predictions, list):
        numbers: dict[Any, int] = {}
        return _numbered(labels, numbers, "labels"), _numbered(predictions, numbers, "predictions")
    unlike = is_text_type(labels.type) != is_text_type(predictions.type)
    if unlike or predictions.null_count == len(predictions):
        return labels, pa.nulls(len(predictions), labels.type)
    return labels, predictions


def _numbered(column: Any, numbers: dict[Any, int], what: str) -> Any:
    items = column if isinstance(column, list) else column.to_pylist()
    try:
        found = [
            None if is_missing(item) else numbers.setdefault(item, len(numbers)) for item in items
        ]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"an item of {what} cannot be compared ({error}); expected integers, strings or other "
            "hashable items"
        ) from None
    return pa.array(found, pa.int64())
