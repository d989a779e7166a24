"""Ragged lists, held as offsets and values."""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, check_valid, numbers_of
from rankmill.columns.ids import is_text_type
from rankmill.columns.lists import first_bad_offset, split_lists
from rankmill.columns.objects import numpy_of
from rankmill.errors import InputError, plural


class Ragged:
    """Lists of different lengths, held as offsets and values (CSR) and checked once.

    List q is ``values[offsets[q]:offsets[q + 1]]``.

    Parameters
    ----------
    offsets : array_like of int, shape (n + 1,)
        The offsets start at 0, never decrease and end at ``len(values)``. They are copied as int64.
    values : ndarray, pyarrow.Array or sequence of str, shape (m,)
        Integers, floats or strings; strings are held as an Arrow array. An array is not copied.

    Raises
    ------
    InputError
        If the offsets or the values break these rules.

    Examples
    --------
    >>> from rankmill.arrays import Ragged
    >>> lists = Ragged([0, 2, 2, 3], [7, 8, 9])
    >>> len(lists), lists.to_lists()
    (3, [[7, 8], [], [9]])
    >>> Ragged.from_lists([["a"], ["b", "c"]]).offsets.tolist()
    [0, 1, 3]
    """

    __slots__ = ("_offsets", "_values")

    def __init__(self, offsets: Any, values: Any) -> None:
        self._values = _checked_values(values)
        self._offsets = _checked_offsets(offsets, len(self._values))

    @classmethod
    def from_lists(cls, lists: Iterable[Sequence[Any]]) -> Self:
        """Ragged lists from an iterable of sequences of integers, floats or strings.

        Other items are taken as `evaluate` takes them, but floats stay floats, and none may be
        missing, because the values may belong to those of another Ragged. A missing list is empty.
        """
        from rankmill.columns.objects import arrow_lists

        return cls(*arrow_lists(lists, "a Ragged", from_pandas=False))

    @classmethod
    def from_arrow(cls, array: Any) -> Self:
        """Ragged lists from any Arrow list array, sliced or chunked; a null list is empty.

        Raises
        ------
        InputError
            If the array holds no lists, or a list holds a null.
        """
        return cls(*split_lists(checked_arrow(one_chunk(array))))

    @property
    def offsets(self) -> np.ndarray:
        """The offsets, int64[n + 1], read-only."""
        return self._offsets

    @property
    def values(self) -> Any:
        """The values: a read-only NumPy array, or an Arrow array of strings."""
        return self._values

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, q: int) -> Any:
        """The list at position q, as a view."""
        if not -len(self) <= q < len(self):
            raise IndexError(f"there is no list {q}; expected one of {len(self)}, counted from 0")
        q %= len(self)
        return self._values[int(self._offsets[q]) : int(self._offsets[q + 1])]

    def to_lists(self) -> list[list[Any]]:
        """The lists as Python lists."""
        flat = self._values.tolist()
        ends = self._offsets.tolist()
        return [flat[start:end] for start, end in itertools.pairwise(ends)]

    def to_arrow(self) -> Any:
        """The lists as an Arrow large_list array, without a copy of the values."""
        values = self._values
        if isinstance(values, np.ndarray):
            values = arrow_of(values)
        return pa.LargeListArray.from_arrays(arrow_of(self._offsets), values)

    def __repr__(self) -> str:
        values = self._values
        kind = values.dtype if isinstance(values, np.ndarray) else values.type
        count = plural(len(values), "value")
        return f"Ragged({plural(len(self), 'list')}, {count} of {kind})"


def one_chunk(array: Any) -> Any:
    """A chunked Arrow array as one array; any other object is returned unchanged."""
    if isinstance(array, pa.ChunkedArray):
        if array.num_chunks == 1:
            return array.chunk(0)
        kind = array.type
        if pa.types.is_list(kind):  # the combined chunks may be too long for 32-bit offsets
            array = array.cast(pa.large_list(kind.value_field))
        return array.combine_chunks()
    return array


def _checked_values(values: Any) -> Any:
    values = numpy_of(values)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    text = isinstance(values, np.ndarray) and values.dtype.kind in "UO"
    if text or not isinstance(values, np.ndarray | pa.Array):
        from rankmill.columns.objects import array_of

        values = array_of(list(values), lambda i: f"value {i}", from_pandas=False)
    if isinstance(values, pa.Array):
        values = checked_arrow(values)
        if pa.types.is_null(values.type) and len(values) == 0:
            values = values.cast(pa.int64())
        if values.null_count:
            null = values.is_null().index(True).as_py()
            raise _bad_values(f"value {null} is null; drop it first")
        if is_text_type(values.type):
            return values
        if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
            raise _bad_values(f"they are {values.type}")
        values = numbers_of(values)
    if values.ndim != 1 or values.dtype.kind not in "iuf" or values.dtype.itemsize > 8:
        raise _bad_values(f"they are {values.ndim}-dimensional, of {values.dtype}")
    view = values.astype(values.dtype.newbyteorder("="), copy=False).view()
    view.flags.writeable = False
    return view


def checked_arrow(array: Any) -> Any:
    """The Arrow array, validated in full, because kernels trust it; raises InputError."""
    if not isinstance(array, pa.Array):
        raise InputError(f"expected an Arrow array, found {type(array).__name__}")
    check_valid(array, "an array")
    return array


def _bad_values(found: str) -> InputError:
    return InputError(
        "the values of a Ragged must be a one-dimensional array of integers, floats or strings, "
        f"without nulls: {found}"
    )


def _checked_offsets(offsets: Any, end: int) -> np.ndarray:
    array = np.asarray(numpy_of(offsets))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            f"the offsets of a Ragged must be a one-dimensional array of integers, not "
            f"{array.ndim}-d {array.dtype}"
        )
    checked = array.astype(np.int64)  # a copy, because the caller must not change it later
    bad = first_bad_offset(checked, end)
    if bad >= 0:
        found = f"offset {bad} is {checked[bad]}" if checked.size else "there are no offsets"
        raise InputError(
            f"bad offsets: {found}; expected offsets that start at 0, never fall and end at the "
            f"number of values, {end}"
        )
    checked.flags.writeable = False
    return checked


# ------------------------------------------------------------------ groups of items

# The shares of items in their groups are integers up to this.
LARGEST_UNIT = 1 << 30


class Groups:
    """The groups of each item of a catalogue, such as its genres.

    The codes from offsets[i] to offsets[i + 1] are those of item i: its groups, ascending, by their
    place among `names`, which are in order. An item has `whole` units, of which each of its groups
    has its `units`; all are int64.
    """

    def __init__(self, offsets: np.ndarray, codes: np.ndarray, names: list[str]) -> None:
        self.offsets = offsets
        self.codes = codes
        self.names = names
        sizes = np.diff(offsets)
        self.largest = int(sizes.max(initial=0))
        self.most_items = int((sizes > 0).sum())
        self.whole = min(math.lcm(*np.unique(sizes[sizes > 0]).tolist()), LARGEST_UNIT)
        self.units = self.whole // np.maximum(1, sizes)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The arrays that kernels take."""
        return self.offsets, self.codes, self.units
