"""Reading items and lists of items from what users hold: Python objects, NumPy, pandas, Arrow.

A column of items is an Arrow array of integers or strings, with null for a missing item. If the
items are neither all integers nor all strings, they stay a list of Python objects until
``comparable`` numbers them.
"""

import collections
import itertools
import math
import operator
import sys
from array import array as number_array
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import numbers_of
from rankmill.columns.ids import is_text_type, plain
from rankmill.columns.lists import offsets_of, split_lists
from rankmill.columns.ragged import Ragged, checked_arrow, one_chunk
from rankmill.errors import InputError

PER_IMAGE = 5  # the number of predictions that count for an image


def is_missing(item: Any) -> bool:
    """Return whether an item is None, NaN, or pandas' NA or NaT."""
    return any(item is one for one in no_values()) or bool(item != item)


def no_values() -> set[Any]:
    """Return None and pandas' NA (if loaded); other missing items differ from themselves."""
    return {None, getattr(sys.modules.get("pandas"), "NA", None)}


def to_list(row: Any, what: str, *, ordered: bool = True) -> list[Any]:
    """Return one list of items as a Python list; a missing list becomes an empty one.

    Raises
    ------
    InputError
        If it is a string or no sequence, or if it is a set and the order of items matters.
    """
    if type(row) is list:
        return row
    if ordered and isinstance(row, set | frozenset):
        raise InputError(f"{what} is {_shown(row)}, which has no order; expected a list of items")
    if isinstance(row, str | bytes | Mapping):
        hint = ": split it first" if isinstance(row, str) else ""
        raise InputError(f"{what} is {_shown(row)}; expected a list of items{hint}")
    try:
        items = row.tolist() if hasattr(row, "tolist") else list(row)
    except TypeError:
        items = None
    if isinstance(items, list):
        return items
    if is_missing(row):
        return []
    raise InputError(f"{what} is {_shown(row)}; expected a list of items")


def to_column(items: Any, what: str) -> Any:
    """Return a column of items from a sequence, an array, a pandas Series or an Arrow array.

    Whole floats become integers, because pandas turns integers into floats if an item is missing.

    Raises
    ------
    InputError
        If it is a string or no sequence.
    """
    if isinstance(items, pa.Array | pa.ChunkedArray):
        array = plain(checked_arrow(one_chunk(items)), what)
        found = _as_ids(array)
        return array.to_pylist() if found is None else found
    if not isinstance(items, np.ndarray | list) and not hasattr(items, "dtype"):
        items = to_list(items, what)
    try:
        found = _as_ids(plain(to_arrow(items), what))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        found = None  # the items have several types, or a type that Arrow does not know
    return to_list(items, what) if found is None else found


def to_arrow(values: Any) -> Any:
    """Return an Arrow array of Python objects or of a NumPy or pandas array; errors are Arrow's."""
    # NaN becomes null, except in arrays of floats, which are taken without a copy.
    floats = isinstance(values, np.ndarray) and values.dtype.kind == "f"
    return pa.array(values, from_pandas=not floats)


def _as_ids(array: Any) -> Any:
    """Return the Arrow array as integers or strings, or None if it holds other items."""
    kind = array.type
    if kinds.is_floating(kind):
        return _whole(numbers_of(array, null=math.nan))
    if kinds.is_null(kind):
        return array.cast(pa.int64())
    if kinds.is_string_view(kind):
        return array.cast(pa.large_string())
    if kinds.is_integer(kind):  # widened, because ids are compared as 64 bits
        return array if kinds.is_uint64(kind) else array.cast(pa.int64())
    return array if kinds.is_string(kind) or kinds.is_large_string(kind) else None


def _whole(floats: np.ndarray) -> Any:
    """Return whole floats as integers, with null for NaN; None if any float is not whole."""
    floats = floats.astype(np.float64, copy=False)
    missing = np.isnan(floats)
    with np.errstate(invalid="ignore"):  # for NaN and numbers outside of int64
        integers = floats.astype(np.int64)
    if not ((integers == floats) & (floats < 2.0**63) | missing).all():
        return None
    return pa.array(integers, mask=missing if missing.any() else None)


def to_lists(lists: Any, what: str, limit: int | None = None) -> tuple[np.ndarray, Any]:
    """Return the offsets, int64[n + 1], and the column of all items of n lists.

    A missing list becomes an empty one. With a `limit` the lists must be in rank order, and items
    after the first `limit` may be dropped.

    Raises
    ------
    InputError
        If `lists` does not hold lists of items.
    """
    if isinstance(lists, Ragged):
        return lists.offsets, to_column(lists.values, what)
    if isinstance(lists, pa.Array | pa.ChunkedArray):
        offsets, values = split_lists(checked_arrow(one_chunk(lists)))
        return offsets, to_column(values, what)
    if hasattr(lists, "to_numpy"):  # a Series of lists, or a DataFrame with one column a rank
        lists = lists.to_numpy()
    if isinstance(lists, np.ndarray) and lists.ndim == 2:
        table = lists[:, :limit]
        return offsets_of(np.full(len(table), table.shape[1])), to_column(table.ravel(), what)
    if isinstance(lists, np.ndarray) and lists.ndim == 1:
        lists = list(lists)
    return _join(to_list(lists, what), what, limit)


def _join(rows: list[Any], what: str, limit: int | None) -> tuple[np.ndarray, Any]:
    """Join lists one after the other, without a Python loop over the items."""
    types = set(map(type, rows))
    arrays = types == {np.ndarray} and _of_one_kind(rows)
    if not (arrays or types <= {list}):
        rows = [
            row if type(row) is list else to_list(row, f"{what}[{i}]", ordered=limit is not None)
            for i, row in enumerate(rows)
        ]
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))

    def shortened() -> Iterable[Any]:
        if limit is None or lengths.max(initial=0) <= limit:
            return rows
        # Slices are made one at a time: millions of them at once would slow the garbage collector.
        return map(operator.itemgetter(slice(limit)), rows)

    offsets = offsets_of(lengths if limit is None else np.minimum(lengths, limit))
    if arrays:
        kept = [row for row in shortened() if len(row)]
        return offsets, to_column(np.concatenate(kept) if kept else [], what)
    integers = _join_integers(shortened())
    if integers is not None:
        return offsets, pa.array(integers)
    return offsets, to_column(list(itertools.chain.from_iterable(shortened())), what)


def _join_integers(rows: Iterable[list[Any]]) -> np.ndarray | None:
    """Join lists of integers in half of Arrow's time; return None if any item is no integer."""
    joined = number_array("q")
    try:
        collections.deque(map(joined.fromlist, rows), maxlen=0)  # runs the map in C
    except (TypeError, OverflowError):
        return None
    return np.asarray(joined)


def _of_one_kind(rows: list[np.ndarray]) -> bool:
    """Return whether joining arrays changes no item, as it would with integers and floats."""
    kept = {row.dtype.kind for row in rows if row.size}
    return len(kept) <= 1 and {row.ndim for row in rows} == {1}


def comparable(labels: Any, predictions: Any) -> tuple[Any, Any]:
    """Return two columns as Arrow arrays, both of integers or both of strings.

    If a column holds other items, all items are numbered: equal items get the same number.

    Raises
    ------
    InputError
        If one side holds only integers and the other only strings, or an item cannot be hashed.
    """
    if isinstance(labels, list) or isinstance(predictions, list):
        numbers: dict[Any, int] = {}
        return _numbered(labels, numbers, "labels"), _numbered(predictions, numbers, "predictions")
    if is_text_type(labels.type) != is_text_type(predictions.type):
        if labels.null_count == len(labels):
            return pa.nulls(len(labels), predictions.type), predictions
        if predictions.null_count == len(predictions):
            return labels, pa.nulls(len(predictions), labels.type)
        raise InputError(
            f"labels are {labels.type} and predictions {predictions.type}, so that none could be "
            "right; make both integers or both strings"
        )
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


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__} ({text[:40]} …)"
