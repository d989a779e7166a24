"""Convert Arrow arrays to NumPy arrays and back, without a copy.

Arrow's own ``to_numpy``, its scalars, and ``pyarrow.array`` of a NumPy array import pandas if it is
installed, which takes longer than a small run. Importing ``pyarrow.compute`` takes 30 ms, and some
methods of Arrow import it on their first call; `pc` stands for it, and imports it when it is used.
"""

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import chain, islice
from operator import attrgetter, iadd, itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.errors import InputError
from rankmill.kernels.lists import unpack_strings

_DTYPES = {
    pa.from_numpy_dtype(dtype): np.dtype(dtype)
    for dtype in (*"bhilBHIL", np.float16, np.float32, np.float64)
}
_ARROW_TYPES = {dtype: kind for kind, dtype in _DTYPES.items()}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# What is wrong with an integer beyond 2**53, and what to do.
NO_FLOAT = (
    "has no float64 of the same value: give smaller numbers, or a rank in place of a score; if "
    "rounding does no harm, cast the column to double (in text, write 7.0 for 7)"
)
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


class _Compute:
    """The functions of ``pyarrow.compute``."""

    def __getattr__(self, name: str) -> Any:
        import pyarrow.compute

        found = getattr(pyarrow.compute, name)
        setattr(self, name, found)  # it is not asked for again
        return found


pc: Any = _Compute()


def numbers_of(array: Any, null: float | None = None) -> np.ndarray:
    """The numbers of an Arrow array of integers or floats, as a read-only view.

    A null is replaced by `null`; without it, the array must hold none.
    """
    if array.null_count and null is not None:
        array = array.fill_null(null)
    dtype = _DTYPES[array.type]
    if len(array) == 0:
        return np.empty(0, dtype)
    data: np.ndarray = np.frombuffer(array.buffers()[1], dtype)
    return data[array.offset : array.offset + len(array)]


def validity_of(array: Any) -> np.ndarray:
    """Booleans that are true where an Arrow array holds a value and false where it holds a null."""
    return numbers_of(array.is_valid().cast(pa.uint8())).view(np.bool_)


def floats_of(numbers: Any, name: str = "") -> np.ndarray:
    """Numbers of any Arrow type as float32 or float64; a null becomes NaN.

    Errors begin with the `name`, which tells what holds the numbers.
    """
    told = f"{name}: " if name else ""
    kind = numbers.type
    if kinds.is_decimal(kind):  # through text, because Arrow rounds other casts more than once
        exact, numbers = numbers, numbers.cast(pa.string()).cast(pa.float64())
        for one in exact.filter(pc.greater_equal(pc.abs(numbers), 2.0**53)).to_pylist():
            if one % 1 == 0 and one != float(one):
                raise InputError(f"{told}the number {one} {NO_FLOAT}")
        kind = numbers.type
    if kinds.is_float16(kind):
        numbers = numbers.cast(pa.float32())
    if kinds.is_null(kind):
        return np.full(len(numbers), math.nan)
    if not is_number_type(kind):
        raise InputError(f"{told}it holds {kind}; expected numbers")
    if not kinds.is_integer(kind):
        return numbers_of(numbers, null=math.nan)
    integers = numbers_of(numbers, null=0)
    floats = integers.astype(np.float64)
    # For 64-bit integers the limit rounds to 2**63 or 2**64, which is beyond the integer type.
    limit = float(np.iinfo(integers.dtype).max)
    inexact = (floats >= limit) if limit > 2**53 else np.zeros(len(floats), np.bool_)
    inexact |= np.where(inexact, 0, floats).astype(integers.dtype) != np.where(inexact, 0, integers)
    if inexact.any():
        raise InputError(f"{told}the number {integers[int(inexact.argmax())]} {NO_FLOAT}")
    if numbers.null_count:
        floats[~validity_of(numbers)] = math.nan
    return floats


def values_of(values: Any) -> np.ndarray:
    """Numbers, booleans, and seconds since 1970 (UTC) of dates and times; NaN for a null.

    They are float64, the same for a time in any unit.
    """
    if kinds.is_boolean(values.type):
        values = values.cast(pa.uint8())
    if kinds.is_date(values.type):
        values = values.cast(pa.timestamp("ms"))
    if kinds.is_timestamp(values.type):
        per = _PER_SECOND[values.type.unit]
        whole, part = np.divmod(numbers_of(values.cast(pa.int64()), null=0), per)
        return np.where(validity_of(values), whole + part / per, math.nan)
    return floats_of(values).astype(np.float64) + 0.0  # -0.0 is 0.0


def check_valid(data: Any, name: str) -> None:
    """Raise InputError unless Arrow data is valid in full, because kernels trust it."""
    try:
        data.validate(full=True)
    except (pa.ArrowInvalid, IndexError) as error:
        if "does not fit in precision" in str(error):  # DuckDB's largest HUGEINT
            raise InputError(
                f"{name} holds a number of more than 38 digits, the most of a decimal: cast the "
                "column to text, or to a smaller integer"
            ) from None
        raise InputError(f"{name} breaks the rules of the Arrow format: {error}") from None


def is_number_type(kind: Any) -> bool:
    """Whether values of an Arrow type are integers, floats or decimals."""
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def arrow_of(numbers: np.ndarray, missing: np.ndarray | None = None) -> Any:
    """A NumPy array as an Arrow array; numbers in native byte order are a view.

    It is null where `missing` is true.
    """
    if numbers.dtype.kind not in "iufb":
        return pa.array(numbers, mask=missing)
    native = numbers
    if numbers.dtype.kind == "b":
        native = np.packbits(numbers, bitorder="little")
    elif not (numbers.flags.c_contiguous and numbers.dtype.isnative):
        native = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("="))
    there = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    kind = _ARROW_TYPES.get(numbers.dtype) or pa.from_numpy_dtype(numbers.dtype.newbyteorder("="))
    return pa.Array.from_buffers(kind, len(numbers), [there, pa.py_buffer(native)])


def table_of(rows: Sequence[dict[str, Any]], schema: Any) -> Any:
    """Rows as a table, as `pyarrow.Table.from_pylist` makes it.

    Of a schema with texts, bytes, numbers, times in microseconds, and lists and maps of them.
    """
    columns = ([row.get(field.name) for row in rows] for field in schema)
    arrays = [array_of_values(of, field.type) for of, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def array_of_values(values: list[Any], kind: Any) -> Any:
    """Values, or None, as an Arrow array of a type that `table_of` takes."""
    there = np.array([one is not None for one in values], np.bool_)
    buffers = [pa.py_buffer(np.packbits(there, bitorder="little"))]
    children = []
    if kinds.is_string(kind) or kinds.is_binary(kind):
        parts: list[Any] = [one.encode() if isinstance(one, str) else one or b"" for one in values]
        buffers += [_offsets(parts), pa.py_buffer(b"".join(parts))]
    elif kinds.is_list(kind) or kinds.is_map(kind):
        parts = [one or [] for one in values]
        buffers.append(_offsets(parts))
        children = [array_of_values([one for part in parts for one in part], kind.field(0).type)]
    elif kinds.is_struct(kind):
        columns = ([one[i] for one in values] for i in range(kind.num_fields))
        children = [
            array_of_values(of, field.type) for of, field in zip(columns, kind, strict=True)
        ]
    elif kinds.is_timestamp(kind):
        since = [0 if one is None else (one - _EPOCH) // _MICROSECOND for one in values]
        buffers.append(pa.py_buffer(np.array(since, np.int64)))
    else:
        known = [0 if one is None else one for one in values]
        buffers.append(pa.py_buffer(np.array(known, _DTYPES[kind])))
    # pyarrow 18 ends the process over a map whose entries may have nulls for all that it was told.
    nulls = len(values) - int(there.sum())
    return pa.Array.from_buffers(kind, len(values), buffers, nulls, children=children or None)


def _offsets(parts: list[Any]) -> Any:
    return pa.py_buffer(np.cumsum([0, *map(len, parts)]).astype(np.int32))


def narrowest(numbers: np.ndarray) -> np.dtype:
    """Return the narrowest type that holds the bits of all numbers of an array."""
    kind = numbers.dtype
    if kind == np.float64:
        with np.errstate(over="ignore"):
            back = numbers.astype(np.float32).astype(kind)
        same = (back.view(np.int64) == numbers.view(np.int64)).all()
        return np.dtype(np.float32) if same else kind
    if kind.kind not in "iu":
        return kind
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    return np.min_scalar_type(high if low >= 0 else min(low, -1 - high))


# ------------------------------------------------------------------ items of many lists

LARGE_STRING = pa.large_string()
# Beyond so many bytes, texts need 64-bit offsets.
MOST_SHORT = 2**31 - 1
# The items of so many lists are joined at once.
PORTION = 128


def join_arrays(cells: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """The lengths of arrays of integers of one type, and all their integers; None for others."""
    dtype, *others = set(map(attrgetter("dtype"), cells))
    if others or dtype.kind not in "iu" or set(map(attrgetter("ndim"), cells)) != {1}:
        return None
    return np.fromiter(map(len, cells), np.int64, len(cells)), np.concatenate(cells)


def join_items(cells: Any, count: int, limit: int | None = None) -> Any:
    """All items of lists, sets or dicts, which are `count`, in the form that is fastest."""

    def each() -> Iterable[Any]:
        # Slices are made one at a time: millions of them at once would slow the garbage collector.
        return cells if limit is None else map(itemgetter(slice(limit)), cells)

    first = next(chain.from_iterable(each()), None)
    joined = None
    if isinstance(first, str):
        joined = join_texts(each(), count)
    elif type(first) is int:
        joined = join_integers(each())
    return list(chain.from_iterable(each())) if joined is None else joined


def join_texts(cells: Any, count: int, kind: Any = LARGE_STRING) -> Any:
    """Join lists of texts in half of Arrow's time; None if any item is not text."""
    try:
        joined = "\0".join(map("\0".join, filter(None, _portions(cells))))
        data = np.frombuffer(joined.encode(), np.uint8)
    except (TypeError, UnicodeError):
        return None
    offsets = np.zeros(count + 1, np.int64)
    packed = np.empty(len(data), np.uint8)
    if unpack_strings(data, offsets[1:], packed) != count:  # a text holds the byte that parts them
        return None
    if kind != LARGE_STRING:
        if offsets[-1] > MOST_SHORT:
            return None
        offsets = offsets.astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(packed)]
    return pa.Array.from_buffers(kind, count, buffers)


def join_integers(cells: Any) -> np.ndarray | None:
    """Join lists of integers in half of Arrow's time; None if any item is no integer."""
    try:
        return pack_numbers(cells, np.int64)
    except struct.error:
        return None


def pack_numbers(cells: Iterable[Iterable[Any]], dtype: type[np.int64 | np.float64]) -> np.ndarray:
    """All numbers of lists, in half of Arrow's time, or an error of struct for what is none."""
    kind = np.dtype(dtype).char
    parts = (struct.pack(f"{len(part)}{kind}", *part) for part in _portions(cells))
    return np.frombuffer(b"".join(parts), dtype)


def _portions(cells: Iterable[Iterable[Any]]) -> Iterator[list[Any]]:
    """Yield the items of a few lists at a time, which stay in the cache."""
    cells = iter(cells)
    while some := list(islice(cells, PORTION)):
        yield reduce(iadd, some, [])
