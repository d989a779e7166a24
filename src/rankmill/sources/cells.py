"""Convert Python objects to Arrow: ids and numbers of any scalar type, and lists of them."""

import math
import struct
import uuid
from array import array as number_array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from numbers import Integral, Real
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import arrow_of, validity_of
from rankmill.columns.ids import is_text_type
from rankmill.columns.lists import is_list_type, offsets_of, split_lists
from rankmill.columns.numbers import floats_of
from rankmill.errors import InputError
from rankmill.kernels.lists import unpack_strings

Spot = Callable[[int], str]

LISTS = (list, tuple, np.ndarray, set, frozenset)
SETS = (set, frozenset)
# How many cells of a column are looked at to find its type. Every later cell must fit it.
SAMPLE = 100
# The type of a column that Arrow has no type for: whoever reads it gets the error that tells why.
UNREADABLE = pa.null()
# Beyond this, not every integer is a float64.
EXACT = 2.0**53


def is_missing(value: Any) -> bool:
    """Whether a Python object stands for a missing value: None, NaN, or the NA and NaT of pandas.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), np.float32("nan"), 0, "nan")]
    [True, True, True, False, False]
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def array_of(values: Any, spot: Spot) -> Any:
    """The Arrow array of Python scalars of one kind; missing values are null.

    Parameters
    ----------
    values : list, one-dimensional ndarray or pyarrow.Array
        Integers, floats, texts, bytes or UUIDs, of Python or NumPy. A UUID becomes its text.
    spot : callable
        Takes the place of a value; returns where it stands, for messages.

    Raises
    ------
    InputError
        If a value is of another kind, or the values are of several kinds.
    """
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "iu":
            return arrow_of(values)
        if values.dtype.kind != "f":
            values = values.tolist()
    try:
        found = values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        found = _one_by_one(values, spot)
    kind = found.type
    if kinds.is_boolean(kind) or kinds.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
        found = _one_by_one(found.to_pylist(), spot)
    if isinstance(found, pa.ChunkedArray):  # texts of more than 2 GB
        wide = pa.large_string() if kinds.is_string(found.type) else pa.large_binary()
        found = found.cast(wide).combine_chunks()
    return found


def _one_by_one(values: Iterable[Any], spot: Spot) -> Any:
    """Do the same as `array_of` slowly: for UUIDs and large integers, and to find what is wrong."""
    plain = []
    first: tuple[Any, str] | None = None
    for i, value in enumerate(values):
        plain.append(_plain(value, i, spot))
        if plain[-1] is None:
            continue
        kind = "a text" if isinstance(plain[-1], str | bytes) else "a number"
        first = first or (value, kind)
        if kind != first[1]:
            raise InputError(
                f"{spot(i)} holds {value!r}, {kind}, but {first[0]!r} before it is {first[1]}: "
                "make all of them integers, or all texts"
            )
    try:
        try:
            return pa.array(plain)
        except OverflowError:  # Arrow takes int64 by default; the integers may fit uint64
            return pa.array(plain, pa.uint64())
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        bad = next((i for i, one in enumerate(plain) if _is_bad(one)), None)
        where = f"{spot(bad)} holds {plain[bad]!r}" if bad is not None else f"{spot(0)} ff. {error}"
        raise InputError(
            f"{where}; expected integers that all fit int64, or all uint64, or texts of valid "
            "Unicode: make them texts"
        ) from None


def _plain(value: Any, i: int, spot: Spot) -> Any:
    if is_missing(value):
        return None
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, uuid.UUID):
        return str(value)
    if not isinstance(value, bool | np.bool_):
        if isinstance(value, Integral):
            return int(value)
        if isinstance(value, Real):
            return float(value)
    hint = ""
    if isinstance(value, (*LISTS, Mapping)):
        hint = " (a dict of columns becomes a table by pyarrow.table)"
    raise InputError(
        f"{spot(i)} holds {shown(value)}; expected integers or texts as ids and numbers as "
        f"confidences or gains{hint}"
    )


def _is_bad(one: Any) -> bool:
    if isinstance(one, str):
        return any("\ud800" <= letter <= "\udfff" for letter in one)
    return isinstance(one, int) and not -(2**63) <= one < 2**64


def shown(value: Any) -> str:
    """A value for a message, shortened, and its type."""
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:40] + ' …'} ({type(value).__name__})"


def as_integers(array: Any) -> Any:
    """An Arrow array of floats as integers if all are whole and exact; any other array as it is.

    pandas makes floats of integers if one is missing.
    """
    if not kinds.is_floating(array.type) or array.null_count == len(array):
        return array
    floats = floats_of(array)
    missing = np.isnan(floats)
    floats = np.where(missing, 0, floats)
    for part in (floats[:SAMPLE], floats):  # most columns of floats are told by the first of them
        if not ((np.floor(part) == part) & (abs(part) < EXACT)).all():
            return array
    integers = floats.astype(np.int64)
    return pa.array(integers, mask=missing) if missing.any() else arrow_of(integers)


def check_kind(array: Any, declared: Any, spot: Spot) -> None:
    """Raise InputError if an array holds texts, but the column numbers so far, or the reverse."""
    kind = array.type
    if kinds.is_null(kind) or kinds.is_null(declared) or array.null_count == len(array):
        return
    if is_text_type(kind) != is_text_type(declared):
        i = int(validity_of(array).argmax())
        found, before = ("a text", "a number") if is_text_type(kind) else ("a number", "a text")
        raise InputError(
            f"{spot(i)} holds {array[i].as_py()!r}, {found}, but the first of this input is "
            f"{before}: make all of them integers, or all texts"
        )


def join_cells(cells: Any, spot: Spot) -> tuple[np.ndarray, Any]:
    """The lengths of lists, and all their items one after the other.

    The items are what `array_of` takes. A missing list is empty. A set is a list in any order.

    Raises
    ------
    InputError
        If a cell is no list.
    """
    if isinstance(cells, np.ndarray) and cells.ndim == 2:
        return np.full(len(cells), cells.shape[1]), cells.ravel()
    types = set(map(type, cells))
    if np.ndarray in types:
        with suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
            offsets, values = split_lists(pa.array(cells, from_pandas=True))
            return np.diff(offsets), values
    if not types <= {list, tuple, set, frozenset}:
        cells = [_list_of(cell, i, spot) for i, cell in enumerate(cells)]
    lengths = np.fromiter(map(len, cells), np.int64, len(cells))
    return lengths, join_items(cells, int(lengths.sum()))


def join_items(cells: Any, count: int) -> Any:
    """All items of lists, sets or dicts, which are `count`, in the form that is fastest."""
    first = next((next(iter(cell)) for cell in cells if len(cell)), None)
    joined = None
    if isinstance(first, str):
        joined = _join_texts(cells, count)
    elif type(first) is int:
        joined = _join_integers(cells)
    if joined is not None:
        return joined
    flat: list[Any] = []
    deque(map(flat.extend, cells), maxlen=0)  # runs the map in C
    return flat


def _join_texts(cells: Any, count: int) -> Any:
    """Join lists of texts in half of Arrow's time; None if any item is no text."""
    try:
        data = np.frombuffer("\0".join(map("\0".join, filter(None, cells))).encode(), np.uint8)
    except (TypeError, UnicodeError):
        return None
    offsets = np.zeros(count + 1, np.int64)
    packed = np.empty(len(data), np.uint8)
    if unpack_strings(data, offsets[1:], packed) != count:  # a text holds the byte that parts them
        return None
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(packed)]
    return pa.Array.from_buffers(pa.large_string(), count, buffers)


def _join_integers(cells: Any) -> np.ndarray | None:
    """Join lists of integers in half of Arrow's time; None if any item is no integer."""
    joined = number_array("q")
    try:
        deque(map(joined.fromlist, cells), maxlen=0)
    except (TypeError, OverflowError):
        return None
    return np.asarray(joined)


def _list_of(cell: Any, i: int, spot: Spot) -> Any:
    """A cell as a list; a list is returned as it is."""
    if isinstance(cell, np.ndarray):
        if cell.ndim != 1:
            raise InputError(f"{spot(i)} holds an array of {cell.ndim} dimensions; expected a list")
        return cell.tolist()
    if isinstance(cell, LISTS):
        return cell
    if is_missing(cell):
        return ()
    if isinstance(cell, pa.Array | pa.ChunkedArray):
        return cell.to_pylist()
    if not isinstance(cell, str | bytes | Mapping) and isinstance(cell, Iterable):
        return list(cell)
    raise InputError(f"{spot(i)} holds {shown(cell)}; expected a list of items: write [item]")


def first_cells(cells: Sequence[Any]) -> list[Any]:
    """Some of the first cells that are neither missing nor empty lists."""
    start, size = 0, SAMPLE
    while start < len(cells):
        found = [cell for cell in cells[start : start + size] if not _is_void(cell)]
        if found:
            return found[:SAMPLE]
        start, size = start + size, 2 * size
    return []


def _is_void(cell: Any) -> bool:
    if isinstance(cell, str | bytes):
        return False
    return is_missing(cell) or (hasattr(cell, "__len__") and len(cell) == 0)


def type_of_cells(cells: Sequence[Any]) -> Any:
    """The Arrow type of Python objects, told by the first of them; lists are large_list."""
    first = first_cells(cells)
    if first and (isinstance(first[0], LISTS) or is_list_like(first[0])):
        try:
            _, flat = join_cells(first, str)
        except InputError:
            return pa.large_list(UNREADABLE)
        return pa.large_list(_type_of(flat))
    return _type_of(first)


def is_list_like(value: Any) -> bool:
    """Whether a Python object is a list of another library, such as an Arrow array."""
    scalar = isinstance(value, str | bytes | Mapping | pa.Scalar)
    return not scalar and isinstance(value, Iterable) and hasattr(value, "__len__")


def _type_of(values: Any) -> Any:
    for some in (values, values[:1]):  # if they are of several kinds, reading them tells where
        try:
            return as_integers(array_of(some, str)).type
        except InputError:
            continue
    return UNREADABLE


def column_of(cells: Sequence[Any], declared: Any, spot: Spot, *, sets: bool) -> Any:
    """The Arrow array of some cells of a column; with `declared` its type as found before.

    Parameters
    ----------
    cells, declared
        Some cells of the column, and what `type_of_cells` said of all.
    spot : callable
        Takes the place of a cell; returns where it stands.
    sets : bool
        Whether a list may be a set, which has no order.
    """
    if not is_list_type(declared):
        array = array_of(cells, spot)
        check_kind(array, declared, spot)
        return as_integers(array) if kinds.is_integer(declared) else array
    if not sets:
        refuse_sets(cells, spot)
    lengths, flat = join_cells(cells, spot)
    return lists_of(lengths, flat, declared.value_type, spot)


def lists_of(lengths: np.ndarray, flat: Any, declared: Any, spot: Spot) -> Any:
    """The Arrow lists of some lengths, with their items one after the other."""
    offsets = offsets_of(lengths)

    def spot_of_item(i: int) -> str:
        cell = int(np.searchsorted(offsets, i, side="right")) - 1
        return f"{spot(cell)}, place {i - offsets[cell]} of its list,"

    items = array_of(flat, spot_of_item)
    check_kind(items, declared, spot_of_item)
    if kinds.is_integer(declared):
        items = as_integers(items)
    return pa.LargeListArray.from_arrays(arrow_of(offsets), items)


def number_lists(
    lengths: np.ndarray, lists: Callable[[], Iterable[Collection[Any]]], spot: Spot
) -> Any:
    """The Arrow lists of some lengths of lists of numbers, which `lists` gives one by one."""
    try:
        # Arrow and NumPy take twice as long for Python floats.
        raw = b"".join([_packer(len(one))(*one) for one in lists()])
    except (struct.error, OverflowError):
        exact = False
    else:
        joined = np.frombuffer(raw, np.float64)
        exact = not len(joined) or float(abs(joined).max()) < EXACT
    if not exact:  # missing numbers, texts, and integers that a float64 may not hold
        return lists_of(lengths, list(chain.from_iterable(lists())), pa.float64(), spot)
    return pa.LargeListArray.from_arrays(arrow_of(offsets_of(lengths)), arrow_of(joined))


@lru_cache(1000)
def _packer(length: int) -> Callable[..., bytes]:
    return struct.Struct(f"={length}d").pack


def refuse_sets(cells: Iterable[Any], spot: Spot) -> None:
    """Raise InputError if a cell is a set."""
    if not set(map(type, cells)).isdisjoint(SETS):
        i = next(i for i, cell in enumerate(cells) if isinstance(cell, SETS))
        raise InputError(f"{spot(i)} holds a set, which has no order: give predictions as a list")


def mean_length(cells: Sequence[Any]) -> float:
    """About how many items a list of these cells has, from some of them."""
    some = cells[:: max(1, len(cells) // 1000)]
    lengths = [len(cell) for cell in some if hasattr(cell, "__len__")]
    return math.fsum(lengths) / max(1, len(lengths))
