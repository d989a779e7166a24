"""Distinct confidences and how often each is there."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

# The sums of gap are computed for this many distinct correct confidences at a time.
RANGE = 1 << 15


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
    if counts.sum() <= 2 * len(every):  # few are tied, and to sort them is quickest
        return counted([np.repeat(every, counts)], of_runs=True)
    values, places = np.unique(every, return_inverse=True)
    sums = np.zeros(len(values), np.int64)
    np.add.at(sums, places, counts)
    return Distinct(values, sums)


def counted(parts: Sequence[np.ndarray], *, of_runs: bool = False) -> Distinct:
    """Return the distinct confidences of arrays; those `of_runs` ascend in pieces."""
    dtype = np.result_type(np.float32, *parts)
    every = np.concatenate([np.empty(0, dtype), *parts])
    every.sort(kind="stable" if of_runs else None)  # a stable sort merges runs, and is then quicker
    first = np.flatnonzero(np.append(len(every) > 0, every[1:] != every[:-1]))
    return Distinct(every[first], np.diff(first, append=len(every)))
