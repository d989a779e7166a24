"""Ragged lists as bare arrays: reading them from Arrow, joining, dropping, gathering."""

from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.types as kinds

from rankmill.buffers import numbers_of
from rankmill.errors import InputError
from rankmill.kernels.lists import first_bad_offset, kept_offsets, list_indices


def is_list_type(kind: Any) -> bool:
    """Whether an Arrow type is one of the list types."""
    return bool(
        kinds.is_list(kind)
        or kinds.is_large_list(kind)
        or kinds.is_fixed_size_list(kind)
        or kinds.is_list_view(kind)
        or kinds.is_large_list_view(kind)
    )


def split_lists(array: Any) -> tuple[np.ndarray, Any]:
    """The int64 offsets and the Arrow values of any Arrow list array; a null list is empty.

    Raises
    ------
    InputError
        If the array holds no lists, or its offsets do not fit its values.
    """
    if not is_list_type(array.type):
        raise InputError(f"expected lists, found {array.type}")
    offsets = offsets_of(numbers_of(pc.list_value_length(array), null=0))
    values = array.flatten()  # follows slices and leaves out what lies under null lists
    if first_bad_offset(offsets, len(values)) >= 0:
        raise InputError("an Arrow list column has offsets that do not fit its values")
    return offsets, values


def join_offsets(parts: list[np.ndarray]) -> np.ndarray:
    """The offsets of lists that are put behind each other."""
    lengths = [np.diff(part) for part in parts]
    return offsets_of(np.concatenate(lengths)) if lengths else np.zeros(1, np.int64)


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """The offsets of lists of those lengths."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def drop_values(offsets: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """The offsets of lists once the values not kept are gone."""
    left = np.empty_like(offsets)
    kept_offsets(offsets, keep, left)
    return left


def take_lists(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lists at `rows`: their offsets, and the indices of their values; row -1 is empty."""
    known = rows >= 0
    safe = np.where(known, rows, 0) if not known.all() else rows
    lengths = (
        np.where(known, offsets[safe + 1] - offsets[safe], 0) if len(offsets) > 1 else 0 * rows
    )
    taken = offsets_of(lengths)
    indices = np.empty(taken[-1], np.int64)
    list_indices(offsets, rows, taken, indices)
    return taken, indices
