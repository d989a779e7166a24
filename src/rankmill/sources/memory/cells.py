"""Columns of Python objects: their type, told by the first cells, and their Arrow arrays."""

import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import arrow_of
from rankmill.columns.item_buffers import pack_numbers
from rankmill.columns.lists import is_list_type, offsets_of, value_type
from rankmill.columns.objects import (
    EXACT,
    SAMPLE,
    Spot,
    array_of,
    as_integers,
    check_kind,
    is_missing,
    is_scalar,
    join_cells,
    lists_of,
)
from rankmill.errors import InputError

# The type of a column that Arrow has no type for: whoever reads it gets the error that tells why.
UNREADABLE = pa.null()
PLAIN = (list, dict)


def first_cells(cells: Sequence[Any]) -> list[Any]:
    """Some of the first cells that are neither missing nor empty lists."""
    start, size = 0, SAMPLE
    while start < len(cells):
        some = cells[start : start + size]
        # Most are plain lists or dicts.
        found = [one for one in some if (type(one) in PLAIN and one) or not _is_void(one)]
        if found:
            return found[:SAMPLE]
        start, size = start + size, 2 * size
    return []


def _is_void(cell: Any) -> bool:
    if isinstance(cell, str | bytes):
        return False
    has_length = hasattr(cell, "__len__") and not is_scalar(cell)
    return is_missing(cell) or (has_length and len(cell) == 0)


def type_of_cells(cells: Sequence[Any]) -> Any:
    """The Arrow type of Python objects, told by the first of them; lists are large_list."""
    first = first_cells(cells)
    if first and is_list_like(first[0]):
        try:
            _, flat = join_cells(first, str)
        except InputError:
            return pa.large_list(UNREADABLE)
        return pa.large_list(type_of_values(flat))
    return type_of_values(first)


def nested_type(cells: Sequence[Any]) -> Any:
    """The Arrow type of dicts, or of lists of dicts or lists, told by all of them; else None."""
    first: Any = next(iter(first_cells(cells)), None)
    inner = next(iter(first), None) if is_list_like(first) else None
    if isinstance(first, Mapping) or isinstance(inner, Mapping) or is_list_like(inner):
        with suppress(pa.ArrowException, TypeError, ValueError):  # reading it tells what is wrong
            return pa.array([*cells], from_pandas=True).type
    return None


def is_list_like(value: Any) -> bool:
    """Whether a Python object is a list of another library, such as an Arrow array."""
    if type(value) is list:
        return True
    scalar = isinstance(value, str | bytes | Mapping | pa.Scalar) or is_scalar(value)
    return not scalar and isinstance(value, Iterable) and hasattr(value, "__len__")


def type_of_values(values: Any) -> Any:
    """The Arrow type of Python scalars, told by the first where they are of several kinds."""
    for some in (values, values[:1]):  # if they are of several kinds, reading them tells where
        try:
            return as_integers(array_of(some, str)).type
        except InputError:
            continue
    return UNREADABLE


def column_of(cells: Sequence[Any], declared: Any, spot: Spot, *, sets: bool) -> Any:
    """The Arrow array of some cells of a column, of which `type_of_cells` told the declared type.

    `spot` says where a cell stands. A list may be a set, which has no order, if `sets` allows it.
    """
    if kinds.is_nested(value_type(declared)):
        return pa.array([*cells], declared, from_pandas=True)  # as `nested_type` did
    if not is_list_type(declared):
        array = array_of(cells, spot)
        check_kind(array, declared, spot)
        return as_integers(array) if kinds.is_integer(declared) else array
    lengths, flat = join_cells(cells, spot, sets=sets)
    return lists_of(lengths, flat, declared.value_type, spot)


def number_lists(
    lengths: np.ndarray, lists: Callable[[], Iterable[Collection[Any]]], declared: Any, spot: Spot
) -> Any:
    """The Arrow lists of some lengths of lists of numbers, which `lists` gives one by one.

    They may be texts, as the declared type tells.
    """
    try:
        joined = pack_numbers(lists(), np.float64)
    except (struct.error, OverflowError):
        exact = False
    else:
        exact = not len(joined) or float(abs(joined).max()) < EXACT
    if not exact:  # missing numbers, texts, and integers that a float64 may not hold
        return lists_of(lengths, list(chain.from_iterable(lists())), declared, spot)
    return pa.LargeListArray.from_arrays(arrow_of(offsets_of(lengths)), arrow_of(joined))


def count_items(lists: Collection[Any]) -> int:
    """How many items lists have; what is missing, or no list, counts as empty."""
    try:
        return sum(map(len, lists))
    except TypeError:
        return sum(len(one) for one in lists if hasattr(one, "__len__") and not is_scalar(one))


def mean_length(cells: Sequence[Any]) -> float:
    """About how many items a list of these cells has, from some of them."""
    some = cells[:: max(1, len(cells) // 1000)]
    return count_items(some) / max(1, len(some))
