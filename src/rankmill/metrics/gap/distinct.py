"""Distinct confidences and how often each is there."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rankmill.kernels.order import sort_floats

# The sums of gap are computed for this many distinct correct confidences at a time.
RANGE = 1 << 15
# NumPy sorts fewer numbers than this, as kernels for small arrays are not compiled.
FEW = 1 << 16


class Distinct(NamedTuple):
    """Distinct confidences, ascending, and the number of correct predictions with each."""

    values: np.ndarray
    counts: np.ndarray


NONE = Distinct(np.empty(0), np.empty(0, np.int64))


def distinct(parts: Sequence[Any]) -> Distinct:
    """Return the distinct confidences of all parts: of arrays, and of those that were counted."""
    if not any(isinstance(one, Distinct) for one in parts):
        return counted(parts)
    return joined([one if isinstance(one, Distinct) else counted([one]) for one in parts])


def joined(parts: Sequence[Distinct]) -> Distinct:
    """Return the distinct confidences of all parts, each of which has them counted."""
    parts = [one for one in parts if len(one.values)] or parts[:1]
    if len(parts) == 1:  # as where labels without predictions are scored apart
        return parts[0]
    every = np.concatenate([one.values for one in parts])
    counts = np.concatenate([one.counts for one in parts])
    if counts.sum() <= 4 * len(every):  # few are tied, and to sort them is quickest
        return counted([np.repeat(every, counts)])
    values, places = np.unique(every, return_inverse=True)
    sums = np.zeros(len(values), np.int64)
    np.add.at(sums, places, counts)
    return Distinct(values, sums)


def counted(parts: Sequence[np.ndarray]) -> Distinct:
    """Return the distinct confidences of arrays."""
    every = ascending([*parts])
    first = np.flatnonzero(np.append(len(every) > 0, every[1:] != every[:-1]))
    return Distinct(every[first], np.diff(first, append=len(every)))


def narrowed(values: np.ndarray) -> np.ndarray:
    """Return confidences as float32 if it holds all of them: a second pass sorts in such a type."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32, copy=False)
    return narrow if (narrow == values).all() else values


def ascending(parts: list[np.ndarray], kind: Any = np.float32) -> np.ndarray:
    """Return the confidences of arrays, ascending, in a type that holds them all and `kind`.

    The list is emptied, which frees arrays that nothing else holds: sorting takes twice their
    bytes.
    """
    every = np.concatenate([np.empty(0, np.result_type(kind, *parts)), *parts])
    parts.clear()
    if len(every) < FEW:
        every.sort()
        return every
    width = every.itemsize
    bits = every.view(f"i{width}")
    spare = np.empty_like(bits)
    moved = sort_floats(width, bits, spare, np.empty((width, 256), np.int64))
    return (spare if moved else bits).view(every.dtype)
