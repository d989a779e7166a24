"""Convert Python objects to Arrow: ids and numbers of any scalar type, and lists of them.

This is the one way for all that takes Python objects, so that all of it takes the same ones.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import (
    arrow_of,
    floats_of,
    join_arrays,
    join_integers,
    join_items,
    join_texts,
    pack_numbers,
    validity_of,
)
from rankmill.columns.ids import is_text_type
from rankmill.columns.lists import offsets_of, split_lists
from rankmill.errors import InputError

Spot = Callable[[int], str]

LISTS = (list, tuple, np.ndarray, set, frozenset)
SETS = (set, frozenset)
# Types with a value that is not a number, or no time, and differs from itself.
NAN_LIKE = (float, np.floating, Decimal, np.datetime64, np.timedelta64)
# How many cells of a column are looked at to find its type. Every later cell must fit it.
SAMPLE = 100
# Beyond this, not every integer is a float64.
EXACT = 2.0**53


def is_missing(value: Any) -> bool:
    """Whether a Python object stands for a missing value: None, NA, masked, or any NaN or NaT.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), np.float32("nan"), 0, "nan")]
    [True, True, True, False, False]
    """
    if type(value) is str or type(value) is int:  # most are
        return False
    if value is None or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True
    return isinstance(value, NAN_LIKE) and bool(value != value)


def is_scalar(value: Any) -> bool:
    """Whether a value is a number as an array or a tensor of no dimension, or a NumPy scalar."""
    return getattr(value, "ndim", None) == 0


def array_of(values: Any, spot: Spot, *, from_pandas: bool = True) -> Any:
    """The Arrow array of Python scalars of one kind; missing values are null.

    The values are a list, a one-dimensional array of NumPy or an array of Arrow, of integers,
    floats, booleans, texts, bytes or UUIDs, which become texts. `spot` takes the place of a value,
    and tells where it stands. With `from_pandas`, NaN is a missing value, as it is among ids; among
    numbers it may be one of them.
    """
    found = known_array(values, from_pandas=from_pandas)
    return _one_by_one(values, spot) if found is None else found


def known_array(values: Any, *, from_pandas: bool = True) -> Any:
    """The same as `array_of` for values that Arrow takes as they are; None for others."""
    if isinstance(values, np.ndarray):
        masked = hasattr(values, "mask")
        if values.dtype.kind in "iu" and values.ndim == 1 and not masked:
            return arrow_of(values)
        if values.dtype.kind != "f" or masked:
            values = values.tolist()
    found = values if isinstance(values, pa.Array) else _of_one_type(values)
    try:
        found = pa.array(values, from_pandas=from_pandas) if found is None else found
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    kind = found.type
    if kinds.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
        return None
    if isinstance(found, pa.ChunkedArray):  # texts of more than 2 GB
        wide = pa.large_string() if kinds.is_string(found.type) else pa.large_binary()
        found = found.cast(wide).combine_chunks()
    return found


def _of_one_type(values: Any) -> Any:
    """Python's texts or numbers as an Arrow array; Arrow itself would import pandas. Else None."""
    types = set(map(type, values)) if isinstance(values, list) else {object}
    if not types:
        return pa.nulls(0)
    if types == {str}:
        return join_texts([values], len(values), pa.string())
    joined = join_integers([values]) if types == {int} else None
    if types == {float}:
        numbers = pack_numbers([values], np.float64)
        joined = None if np.isnan(numbers).any() else numbers
    return joined if joined is None else arrow_of(joined)


def _one_by_one(values: Iterable[Any], spot: Spot) -> Any:
    """Do the same as `array_of` slowly: for UUIDs and large integers, and to find what is wrong."""
    plain = []
    first: tuple[Any, str] | None = None
    for i, value in enumerate(values.tolist() if hasattr(values, "tolist") else values):
        plain.append(_plain(value, i, spot))
        if plain[-1] is None:
            continue
        kind = _word(isinstance(plain[-1], str | bytes), isinstance(plain[-1], bool))
        first = first or (value, kind)
        if kind != first[1]:
            raise InputError(
                f"{spot(i)} holds {value!r}, {kind}, but {first[0]!r} before it is {first[1]}: "
                "make all of them integers, or all strings"
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
            f"{where}; expected integers that all fit int64, or all uint64, or strings of valid "
            "Unicode: make them strings"
        ) from None


def _plain(value: Any, i: int, spot: Spot) -> Any:
    if is_missing(value):
        return None
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, uuid.UUID):
        return str(value)
    if is_scalar(value) and not isinstance(value, np.generic):
        return _plain(numpy_of(value)[()], i, spot)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    hint = ""
    if isinstance(value, LISTS):
        hint = (
            ": of ids beside their scores, give the ids alone, and an id of several values as text"
        )
    raise InputError(
        f"{spot(i)} holds {shown(value)}; expected integers or strings as ids and numbers as "
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
    exact = 2.0 ** (np.finfo(floats.dtype).nmant + 1)
    for part in (floats[:SAMPLE], floats):  # most columns of floats are told by the first of them
        if not ((np.floor(part) == part) & (abs(part) < exact)).all():
            return array
    integers = floats.astype(np.int64)
    return arrow_of(integers, missing if missing.any() else None)


def check_kind(array: Any, declared: Any, spot: Spot) -> None:
    """Raise InputError if an array holds texts, but the column numbers so far, and the like."""
    kind = array.type
    if kinds.is_null(kind) or kinds.is_null(declared) or array.null_count == len(array):
        return
    found, before = (_word(is_text_type(one), kinds.is_boolean(one)) for one in (kind, declared))
    if found != before:
        i = int(validity_of(array).argmax())
        raise InputError(
            f"{spot(i)} holds {array[i].as_py()!r}, {found}, but the first of this input is "
            f"{before}: make all of them integers, or all strings"
        )


def _word(text: bool, boolean: bool) -> str:
    return "a text" if text else "a boolean" if boolean else "a number"


def arrow_lists(
    lists: Any, name: str, *, sets: bool = True, from_pandas: bool = True
) -> tuple[np.ndarray, Any]:
    """The offsets and the Arrow values of a list of lists, which messages call `name`.

    `sets` and `from_pandas` are those of `column_of` and `array_of`.
    """

    def spot(i: int) -> str:
        return f"{name}: list {i}"

    cells = cells_of(lists, name)
    lengths, flat = join_cells(cells, spot, sets=sets, from_pandas=from_pandas)
    return split_lists(lists_of(lengths, flat, pa.null(), spot, from_pandas=from_pandas))


def cells_of(lists: Any, name: str) -> Any:
    """The cells of a list of lists, a Series or a frame: a list, or a matrix with a row a list."""
    if is_missing(lists):
        raise InputError(f"{name} holds {shown(lists)}; expected a list of lists")
    lists = numpy_of(lists)
    if hasattr(lists, "to_numpy"):
        lists = lists.to_numpy()
    is_matrix = isinstance(lists, np.ndarray) and lists.ndim == 2
    return lists if is_matrix else list_of(lists, name)


def join_cells(
    cells: Any, spot: Spot, limit: int | None = None, *, sets: bool = True, from_pandas: bool = True
) -> tuple[np.ndarray, Any]:
    """The lengths of lists, and all their items one after the other.

    The items are what `array_of` takes. A missing list is empty. A set is a list in any order, if
    `sets` allows it. With a `limit`, which is for lists without sets, only the first items of each
    list are taken.
    """
    if isinstance(cells, np.ndarray) and cells.ndim == 2:
        cells = cells[:, :limit]
        return np.full(len(cells), cells.shape[1]), cells.ravel()
    if limit is None:
        cells = cells if isinstance(cells, list) else list(cells)
    types = set(map(type, cells))
    if not (sets or types.isdisjoint(SETS)):
        refuse_sets(cells, spot)
    if types == {np.ndarray} and limit is None and (joined := join_arrays(cells)):
        return joined
    if np.ndarray in types and not any(hasattr(kind, "mask") for kind in types):
        with suppress(pa.ArrowException, TypeError, ValueError, OverflowError, IndexError):
            some = cells if limit is None else [cell[:limit] for cell in cells]
            offsets, values = split_lists(pa.array(some, from_pandas=from_pandas))
            if not kinds.is_binary(values.type):  # these may have been bytes and texts
                return np.diff(offsets), values
    if not types <= {list, tuple, set, frozenset}:
        cells = [_list_of(cell, i, spot) for i, cell in enumerate(cells)]
    lengths = np.fromiter(map(len, cells), np.int64, len(cells))
    if limit is not None and lengths.max(initial=0) > limit:
        lengths = np.minimum(lengths, limit)
        return lengths, join_items(cells, int(lengths.sum()), limit)
    return lengths, join_items(cells, int(lengths.sum()))


def list_of(value: Any, name: str, *, sets: bool = False) -> list[Any]:
    """One list of items, or of lists, as a Python list; a missing one is empty."""
    if type(value) is list:
        return value
    if not sets:
        refuse_sets([value], lambda _: name)
    return list(_list_of(value, 0, lambda _: name))


def _list_of(cell: Any, i: int, spot: Spot) -> Any:
    """A cell as a list; a list is returned as it is."""
    cell = numpy_of(cell)
    if isinstance(cell, np.ndarray):
        if cell.ndim != 1:
            raise InputError(
                f"{spot(i)} holds an array of {cell.ndim} dimensions; expected a list: of several "
                "arrays, such as FAISS's distances and ids, give that of the ids alone"
            )
        return cell.tolist()
    if isinstance(cell, LISTS):
        return cell
    if is_missing(cell):
        return ()
    if isinstance(cell, pa.Array | pa.ChunkedArray):
        return cell.to_pylist()
    if not isinstance(cell, str | bytes | Mapping) and isinstance(cell, Iterable):
        return list(cell)
    hint = "split it first, or write [item]" if isinstance(cell, str) else "write [item]"
    raise InputError(f"{spot(i)} holds {shown(cell)}; expected a list of items: {hint}")


def lists_of(
    lengths: np.ndarray, flat: Any, declared: Any, spot: Spot, *, from_pandas: bool = True
) -> Any:
    """The Arrow lists of some lengths, with their items one after the other."""
    offsets = offsets_of(lengths)

    def spot_of_item(i: int) -> str:
        cell = int(np.searchsorted(offsets, i, side="right")) - 1
        return f"{spot(cell)}, place {i - offsets[cell]} of its list,"

    items = array_of(flat, spot_of_item, from_pandas=from_pandas)
    check_kind(items, declared, spot_of_item)
    if kinds.is_integer(declared):
        items = as_integers(items)
    return pa.LargeListArray.from_arrays(arrow_of(offsets), items)


def refuse_sets(cells: Iterable[Any], spot: Spot) -> None:
    """Raise InputError if a cell is a set."""
    if not set(map(type, cells)).isdisjoint(SETS):
        i = next(i for i, cell in enumerate(cells) if isinstance(cell, SETS))
        raise InputError(f"{spot(i)} holds a set, which has no order: give a list")


# ------------------------------------------------------------------ tensors, without PyTorch


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch, or of a class that is made of it."""
    return any((one.__module__, one.__name__) == ("torch", "Tensor") for one in type(value).__mro__)


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse tensor of PyTorch, of any layout."""
    return is_tensor(value) and str(value.layout) != "torch.strided"


def numpy_of(value: Any) -> Any:
    """A dense tensor as an array; anything else as it is.

    The array is a view if the tensor is in the memory of the CPU; from another device it is copied.
    NumPy has no bfloat16: float32 has all its values.
    """
    if not is_tensor(value):
        return value
    check_dense(value)
    try:
        held = value.detach().cpu()
        return (held.float() if str(held.dtype) == "torch.bfloat16" else held).numpy()
    except (TypeError, NotImplementedError) as error:  # of a meta tensor, or of 8 bits
        raise InputError(
            f"a tensor of {value.dtype} on {value.device} is not a NumPy array: {error}"
        ) from None


def check_dense(tensor: Any) -> None:
    """Raise InputError if a tensor is sparse."""
    if is_sparse(tensor):
        raise InputError(
            f"a tensor of layout {tensor.layout} is not read: give its to_dense(), or a sparse "
            "array of SciPy"
        )
