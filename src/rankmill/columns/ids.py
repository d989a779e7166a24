"""Columns of ids, which are integers or strings of any Arrow or NumPy type, compared exactly."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import arrow_of, check_valid, numbers_of, pc
from rankmill.errors import InputError
from rankmill.kernels.identity import (
    SEED,
    SIGNED,
    STRING,
    TOP_BIT,
    UNSIGNED,
    Ids,
    group_rows,
    hash_strings,
    parts_of,
)
from rankmill.kernels.jit import read_only
from rankmill.kernels.lists import pack_strings

NO_PLACES = read_only(np.empty(0, np.int64))
NO_DATA = read_only(np.empty(0, np.uint8))
_STRINGS = {one.id for one in (pa.string(), pa.large_string(), pa.string_view())}
_TEXTS = _STRINGS | {
    one.id for one in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1))
}
_WRONG_OFFSETS = "an Arrow string column has offsets that do not fit its data: write it again"


def to_ids(array: Any, what: str) -> Ids:
    """The ids of an Arrow array without nulls, or of a NumPy array of integers.

    These are integers of any width, or strings or bytes of any layout, dictionary-encoded or not;
    anything else is an error, which calls the array `what`.
    """
    array = plain(arrow_of(array) if isinstance(array, np.ndarray) else array, what)
    kind = array.type
    if kinds.is_unsigned_integer(kind):
        return _of_integers(array, pa.uint64(), UNSIGNED)
    if kinds.is_integer(kind) or kinds.is_null(kind):
        return _of_integers(array, pa.int64(), SIGNED)
    if _is_text(kind):
        return _of_strings(array)
    hint = " (cast them to integers or strings first)" if kinds.is_floating(kind) else ""
    raise InputError(f"{what} holds {kind}; ids are integers or strings{hint}")


def plain(array: Any, what: str) -> Any:
    """The array with dictionary and extension types replaced by plain values and plain nulls."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if kinds.is_dictionary(array.type):
        check_valid(array, what)
        words = array.dictionary
        if _is_text(words.type):
            # Decoded texts may need more than 32-bit offsets, and views cannot be decoded.
            words = words.cast(pa.large_binary() if _is_bytes(words.type) else pa.large_string())
            array = pa.DictionaryArray.from_arrays(array.indices, words, safe=False)
        array = array.dictionary_decode()
    return array


def drop_nulls(array: Any) -> Any:
    """The array without its nulls."""
    kind = array.type
    if array.null_count and (kinds.is_string_view(kind) or kinds.is_binary_view(kind)):
        array = array.cast(pa.large_binary())  # Arrow cannot filter views
    return array.drop_null() if array.null_count else array


def is_id_type(kind: Any) -> bool:
    """Whether an Arrow type can hold ids; the null type of an empty column counts as one."""
    kind = _bare(kind)
    return kinds.is_integer(kind) or kinds.is_null(kind) or _is_text(kind)


def is_text_type(kind: Any) -> bool:
    """Whether ids of this Arrow type are compared as bytes."""
    return _is_text(_bare(kind))


def id_type(kind: Any) -> Any:
    """The plain type of ids: the integer type, large_string, large_binary, or null."""
    kind = _bare(kind)
    if not _is_text(kind):
        return kind
    return pa.large_binary() if _is_bytes(kind) else pa.large_string()


def as_text(array: Any) -> Any:
    """Texts or bytes as large_string, with the same bytes, which need not be valid UTF-8."""
    return array.cast(id_type(array.type)).cast(pa.large_binary()).view(pa.large_string())


def _bare(kind: Any) -> Any:
    """The type of the values inside a dictionary type or an extension type."""
    if kinds.is_dictionary(kind):
        kind = kind.value_type
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _is_text(kind: Any) -> bool:
    return kind.id in _TEXTS


def _of_integers(array: Any, wide: Any, kind: int) -> Ids:
    if array.type != wide:
        array = array.cast(wide)
    return Ids(numbers_of(array).view(np.uint64), NO_PLACES, NO_PLACES, NO_DATA, kind)


def _of_strings(array: Any) -> Ids:
    starts, ends, data = text_places(array)
    ids = Ids(np.empty(len(array), np.uint64), starts, ends, data, STRING)
    if hash_strings(starts, ends, data, SEED, ids.keys) >= 0:
        raise InputError(_WRONG_OFFSETS)
    return ids


def grouped(ids: Ids) -> tuple[np.ndarray, np.ndarray]:
    """The number of each id among the distinct ones, and where each of these comes first."""
    groups, first = np.empty((2, len(ids.keys)), np.int64)
    return groups, first[: group_rows(ids, SEED, groups, first)]


def text_places(array: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each text of an Arrow array starts and ends in its bytes, and these, unchecked."""
    kind = array.type
    if kinds.is_string(kind) or kinds.is_binary(kind):
        width: type = np.int32
    else:
        width = np.int64
        if not (kinds.is_large_string(kind) or kinds.is_large_binary(kind)):
            array = array.cast(pa.large_binary() if _is_bytes(kind) else pa.large_string())
    if len(array) == 0:
        return NO_PLACES, NO_PLACES, NO_DATA
    _, offset_buffer, data_buffer = array.buffers()
    raw: np.ndarray = np.frombuffer(offset_buffer, width)[
        array.offset : array.offset + len(array) + 1
    ]
    if len(raw) <= len(array):
        raise InputError(_WRONG_OFFSETS)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else NO_DATA
    offsets = raw.astype(np.int64, copy=False)
    return offsets[:-1], offsets[1:], data


def _is_bytes(kind: Any) -> bool:
    return kind.id in _TEXTS - _STRINGS


def ids_to_arrow(ids: Ids, kinds_read: set[Any]) -> Any:
    """The ids as an Arrow array.

    Its type is the one in `kinds_read`; if there are several or none, it is a common wide type.
    """
    if ids.kind == STRING:
        offsets = np.zeros(len(ids.keys) + 1, np.int64)
        data = np.empty(_size(ids), np.uint8)
        pack_strings(ids.starts, ids.ends, ids.data, 0, offsets[1:], data)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        as_bytes = any(_is_bytes(_bare(kind)) for kind in kinds_read)
        common = pa.large_binary() if as_bytes else pa.large_string()
        # The bytes are passed on unchanged, even if they are not valid UTF-8.
        array = pa.Array.from_buffers(common, len(ids.keys), buffers)
    else:
        array = arrow_of(ids.keys if ids.kind == UNSIGNED else ids.keys.view(np.int64))
        common = array.type
    kind = next(iter(kinds_read)) if len(kinds_read) == 1 else common
    if kinds.is_dictionary(kind):
        return _dictionary(ids_to_arrow(ids, {kind.value_type}), kind.index_type)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, array.cast(kind.storage_type))
    # The first cast of a process imports pyarrow.compute, which takes 30 ms.
    return array if array.type == kind else array.cast(kind)


def _dictionary(array: Any, index_type: Any) -> Any:
    encoded = array.dictionary_encode()
    try:
        indices = encoded.indices.cast(index_type)
    except pa.ArrowInvalid:  # all ids together may be too many for the index type of one batch
        return encoded
    return pa.DictionaryArray.from_arrays(indices, encoded.dictionary)


def ascending(column: Any) -> tuple[Any, np.ndarray]:
    """Return the distinct ids of an Arrow array, ascending, and the place of each id among them."""
    encoded = column.dictionary_encode()
    order = numbers_of(pc.sort_indices(encoded.dictionary)).astype(np.int64)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return encoded.dictionary.take(arrow_of(order)), places[numbers_of(encoded.indices)]


def slice_ids(ids: Ids, start: int, end: int) -> Ids:
    """The ids from `start` to `end` (exclusive), as views."""
    return take_ids(ids, slice(start, end))


def _size(ids: Ids) -> int:
    """The total number of bytes of all strings."""
    return int(ids.ends.sum() - ids.starts.sum())


def take_ids(ids: Ids, at: np.ndarray | slice) -> Ids:
    """The ids at some places; the bytes of strings are not copied."""
    if ids.kind != STRING:
        return ids._replace(keys=ids.keys[at])
    return Ids(ids.keys[at], ids.starts[at], ids.ends[at], ids.data, STRING)


def in_partitions(ids: Ids, count: int) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """The places of ids in the order of `count` partitions, and where each starts and ends there.

    Equal ids are in one partition, in their order.
    """
    parts = np.empty(len(ids.keys), np.uint16)
    parts_of(ids.keys, SEED, count, parts)
    ends = np.cumsum(np.bincount(parts, minlength=count)).tolist()
    return np.argsort(parts, kind="stable"), list(pairwise([0, *ends]))


# The most values to reserve memory for at first, because the count in a footer may be wrong.
LARGEST_RESERVE = 1 << 27


class Growing:
    """A one-dimensional array that grows as values are appended.

    At first the array reserves memory for `capacity` values; the system provides memory only when
    it is written to. When more values come, the array grows by at least an eighth, in place if the
    system can.
    """

    def __init__(
        self, dtype: Any, capacity: int = 0, settle: Callable[[], None] = lambda: None
    ) -> None:
        try:
            self._array = np.empty(min(capacity, LARGEST_RESERVE), dtype)
        except MemoryError:  # there may be fewer values than `capacity` in the end
            self._array = np.empty(0, dtype)
        self._count = 0
        self._settle = settle

    def extend(self, values: np.ndarray) -> None:
        """Append values."""
        self.room(len(values))[:] = values

    def room(self, count: int) -> np.ndarray:
        """Append `count` undefined values and return them as a view.

        The caller sets them at once, or when `settle` is called: the array moves after that.
        """
        start, end = self._count, self._count + count
        if end > len(self._array):
            self._settle()
            self._array.resize(max(end, len(self._array) * 9 // 8), refcheck=False)
        self._count = end
        return self._array[start:end]

    def finish(self) -> np.ndarray:
        """All values; nothing may be added after this."""
        return self._array[: self._count]


class IdStore:
    """A store to which ids are appended; it copies the ids and the bytes of strings.

    `settle` is as in `Growing`.
    """

    def __init__(self, capacity: int = 0, settle: Callable[[], None] = lambda: None) -> None:
        self._capacity = capacity
        self._settle = settle
        self._keys = Growing(np.uint64, capacity, settle)
        self._offsets = Growing(np.int64)
        self._data = Growing(np.uint8, settle=settle)
        self._bytes = 0
        self._kinds: set[int] = set()

    def add(self, ids: Ids) -> None:
        """Append ids."""
        self.place(ids)()

    def place(self, ids: Ids) -> Callable[[], None]:
        """Make room for ids; what is returned copies them there, on any thread."""
        if not len(ids.keys):
            return lambda: None
        keys = self._keys.room(len(ids.keys))
        if ids.kind != STRING:
            return partial(_copy_integers, ids, keys, self._kinds)
        if STRING not in self._kinds:
            self._kinds.add(STRING)
            self._offsets = Growing(np.int64, self._capacity + 1, self._settle)
            self._offsets.extend(np.zeros(1, np.int64))
            # To grow later takes longer than all copies: the system clears the memory at once.
            expected = _size(ids) * self._capacity // len(ids.keys)
            self._data = Growing(np.uint8, expected + expected // 16, self._settle)
        size, before = _size(ids), self._bytes
        self._bytes += size
        out = self._offsets.room(len(ids.keys)), self._data.room(size)
        return partial(_copy_strings, ids, before, keys, *out)

    def finish(self) -> Ids:
        """All ids; nothing may be added after this."""
        keys = self._keys.finish()
        if STRING in self._kinds:
            offsets = self._offsets.finish()
            return Ids(keys, offsets[:-1], offsets[1:], self._data.finish(), STRING)
        if len(self._kinds) > 1:
            raise InputError(
                "an input mixes negative ids (in one file) with unsigned ids of 2**63 or more (in "
                "another): cast both to one integer type, or to strings"
            )
        kind = self._kinds.pop() if self._kinds else SIGNED
        return Ids(keys, NO_PLACES, NO_PLACES, NO_DATA, kind)


def as_stored(ids: Ids) -> Ids:
    """The ids as an `IdStore` returns them that holds no others, but not copied."""
    if not len(ids.keys):
        return Ids(ids.keys, NO_PLACES, NO_PLACES, NO_DATA, SIGNED)
    small = ids.kind == UNSIGNED and not ids.keys.max() >> TOP_BIT
    return ids._replace(kind=SIGNED) if small else ids


def _copy_integers(ids: Ids, keys: np.ndarray, kinds_found: set[int]) -> None:
    keys[:] = ids.keys
    if keys.max() >> TOP_BIT:
        kinds_found.add(ids.kind)


def _copy_strings(
    ids: Ids, before: int, keys: np.ndarray, ends: np.ndarray, data: np.ndarray
) -> None:
    keys[:] = ids.keys
    pack_strings(ids.starts, ids.ends, ids.data, before, ends, data)


def join_ids(parts: list[Ids]) -> Ids:
    """The ids of all parts, concatenated; the copy holds no bytes except those of these ids."""
    store = IdStore(sum(len(part.keys) for part in parts))
    for part in parts:
        store.add(part)
    return store.finish()


def id_value(ids: Ids, i: int) -> int | str:
    """Id i as an int or str; bytes that are not valid UTF-8 are escaped."""
    if ids.kind == STRING:
        text = ids.data[ids.starts[i] : ids.ends[i]].tobytes()
        return text.decode(errors="backslashreplace")
    return int(ids.keys[i] if ids.kind == UNSIGNED else ids.keys.view(np.int64)[i])


def id_text(ids: Ids, i: int) -> str:
    """Id i as text for a message."""
    return repr(id_value(ids, i))


# ------------------------------------------------------------------ ids that other tools change

KEEP_TEXT = "read with dtype=str, and don't save it from a spreadsheet"
"""How ids stay as they are."""
_MOST_ZEROS = 20


def plain_ids(ids: Any) -> Any:
    """Return text without leading zeros, and without .0 at the end."""
    import pyarrow.compute as pc

    return pc.ascii_ltrim(pc.replace_substring_regex(ids, r"\.0+$", ""), characters="0")


def other_forms(ids: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield all ids with other zeros in front, with or without .0 at the end; the plain ones first.

    A run of a million queries should not wait for the import of the functions of `plain_ids`.
    """
    plain = [re.sub(rb"\.0+\Z", b"", one).lstrip(b"0") for one in ids]
    for ending in (b"", b".0"):
        for count in range(_MOST_ZEROS + 1):
            yield [b"0" * count + one + ending for one in plain]
