"""Checksums of sets of rows, and of what is written to be read again: rows, tables and JSON.

It does not depend on how the same numbers and texts are held: Python's or NumPy's, narrow or wide,
in one chunk or several.
"""

import hashlib
import json
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import numbers_of, validity_of
from rankmill.columns.ids import take_ids
from rankmill.kernels.identity import STRING, Ids, hash_strings

# ------------------------------------------------------------------ checksums of sets of rows

# Arrays are hashed in pieces of this many rows, so hashing needs almost no memory.
PIECE = 1 << 16
# Two seeds give 128 bits. They are odd, as those of strings have to be.
SEEDS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)


def mix(bits: np.ndarray) -> None:
    """Change each uint64 so that all its bits depend on all: the finalizer of MurmurHash3."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        bits ^= bits >> np.uint64(33)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(33)


def hash_ids(ids: Ids, seed: np.uint64) -> np.ndarray:
    """Return a hash of each id as uint64; equal integers have equal ones, whatever their type."""
    if ids.kind != STRING:
        hashed = ids.keys ^ seed
    else:
        hashed = np.empty(len(ids.keys), np.uint64)
        hash_strings(ids.starts, ids.ends, ids.data, seed, hashed)
    mix(hashed)
    return hashed


def sum_ids(ids: Ids, seed: np.uint64) -> int:
    """Return the checksum of ids."""
    return _sum(hash_ids(ids, seed))


def sum_pairs(
    left: Ids, offsets: np.ndarray, right: Ids, codes: np.ndarray | None, seed: np.uint64
) -> int:
    """Return the checksum of the pairs of each left id and its right ones.

    Those of left id i are from offsets[i] to offsets[i + 1]: of `right`, or of `codes`, which are
    places in `right`.
    """
    hashes, total = hash_ids(left, seed), 0
    others = None if codes is None else hash_ids(right, seed)
    for start in range(0, int(offsets[-1]), PIECE):
        place = np.arange(start, min(start + PIECE, int(offsets[-1])))
        of_left = hashes[np.searchsorted(offsets, place, side="right") - 1]
        if codes is None or others is None:
            of_right = hash_ids(take_ids(right, place), seed)
        else:
            of_right = others[codes[place]]
        total += sum_rows(of_left, of_right)
    return total % 2**64


def sum_rows(left: np.ndarray, right: np.ndarray) -> int:
    """Return the checksum of rows of two hashes each."""
    both = left * SEEDS[0] + right
    mix(both)
    return _sum(both)


def _sum(hashes: np.ndarray) -> int:
    return int(hashes.sum(dtype=np.uint64))


SIZE = 8
DIGITS = 2 * SIZE
_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def seal_of(value: Any) -> str:
    """Return the checksum of a value, which may be nested, as 16 hexadecimal digits.

    In a mapping, a key without a value is as no key.

    Examples
    --------
    >>> seal_of({"a": [1, 2], "b": None}) == seal_of({"a": np.int32([1, 2])})
    True
    >>> seal_of([1.0, 2.0]) == seal_of([1.0, 3.0])
    False
    """
    found = hashlib.blake2b(digest_size=SIZE)
    _add(found, value)
    return found.hexdigest()


def seal_of_json(told: Any) -> str:
    """Return the checksum of what JSON says, whatever the order of its keys."""
    return seal_of(json.dumps(told, sort_keys=True))


def seal_of_table(table: pa.Table) -> str:
    """Return the checksum of the names and the values of a table's columns."""
    found = hashlib.blake2b(digest_size=SIZE)
    for name, column in zip(table.column_names, table.columns, strict=True):
        parts = [hashlib.blake2b(digest_size=SIZE) for _ in range(3)]
        row = 0
        for chunk in column.chunks:
            _add_chunk(parts, chunk, row)
            row += len(chunk)
        _add(found, [name, *(one.hexdigest() for one in parts)])
    return found.hexdigest()


def _add_chunk(parts: list[Any], chunk: pa.Array, row: int) -> None:
    """Add an array to three checksums: of the rows without a value, of numbers, of all else."""
    if pa.types.is_dictionary(chunk.type):
        chunk = chunk.dictionary_decode()
    if chunk.null_count:
        missing = np.flatnonzero(~validity_of(chunk))
        parts[0].update((missing + row).astype(np.int64).tobytes())
        chunk = chunk.drop_null()
    if pa.types.is_integer(chunk.type) or pa.types.is_floating(chunk.type):
        parts[1].update(np.ascontiguousarray(_wide(numbers_of(chunk))))
    elif any(is_kind(chunk.type) for is_kind in _TEXT):
        texts = chunk.cast(pa.large_binary())
        _, offsets, content = texts.buffers()
        ends = np.frombuffer(offsets, np.int64)[texts.offset :][: len(texts) + 1]
        parts[1].update(np.diff(ends))
        parts[2].update(memoryview(content or b"")[ends[0] : ends[-1]])
    else:
        for cell in chunk.to_pylist():
            _add(parts[2], cell)


def _wide(numbers: np.ndarray) -> np.ndarray:
    """Return numbers in the type that stands for all of their kind."""
    return numbers.astype(np.float64 if numbers.dtype.kind == "f" else np.uint64, copy=False)


def _add(found: Any, value: Any) -> None:
    """Add a value with a mark of its kind and its length, so that no two values are alike."""
    if isinstance(value, str | bytes):
        text = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        found.update(b"%c%d:%b" % (b"s" if isinstance(value, str) else b"b", len(text), text))
    elif isinstance(value, float | np.floating):
        found.update(b"f" + np.float64(value).tobytes())
    elif isinstance(value, list | tuple | np.ndarray):
        numbers = _numbers(value)
        if numbers is None:
            found.update(b"l%d:" % len(value))
            for one in value:
                _add(found, one)
        else:
            found.update(b"%c%d:" % (numbers.dtype.kind.encode(), len(numbers)))
            found.update(numbers.tobytes())
    elif isinstance(value, dict):
        there = {str(key): one for key, one in value.items() if one is not None}
        found.update(b"m%d:" % len(there))
        for key in sorted(there):
            _add(found, key)
            _add(found, there[key])
    elif isinstance(value, datetime):
        found.update(b"t%r;" % value.timestamp())
    else:  # an integer of any width, True, None, or what no row holds
        plain = value.item() if isinstance(value, np.generic) else value
        found.update(f"{plain!r};".encode("utf-8", "backslashreplace"))


def _numbers(value: Any) -> np.ndarray | None:
    """Return a list of numbers as an array, None for other lists and those of nothing."""
    if not len(value) or (not isinstance(value, np.ndarray) and isinstance(value[0], str | bytes)):
        return None
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):  # raised for nested lists of different lengths
        return None
    return _wide(array) if array.ndim == 1 and array.dtype.kind in "iuf" else None
