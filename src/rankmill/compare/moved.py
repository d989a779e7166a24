"""The queries whose values differ most between two systems."""

from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.compare.differences import Moved


def most_moved(
    ids: Any, before: np.ndarray, after: np.ndarray, differences: np.ndarray, count: int
) -> list[Moved]:
    """Return the queries that gained most, then those that lost most; the last lost most."""
    gained = _most(ids, differences, count)
    lost = _most(ids, -differences, count)[::-1]
    return [
        Moved(_id(ids[place]), *(float(one[place]) for one in (before, after, differences)))
        for place in [*gained, *lost]
    ]


def _most(ids: Any, sizes: np.ndarray, count: int) -> list[int]:
    """Return the places of the largest positive sizes; the smaller id first among equal ones."""
    import pyarrow.compute as pc

    count = min(count, int((sizes > 0).sum()))
    if not count:
        return []
    least = np.partition(sizes, len(sizes) - count)[len(sizes) - count]
    places = np.flatnonzero(sizes >= least)
    table = pa.table({"size": sizes[places], "id": ids.take(pa.array(places))})
    order = pc.sort_indices(table, sort_keys=[("size", "descending"), ("id", "ascending")])
    return [int(one) for one in places[order.to_numpy()[:count]]]


def _id(scalar: Any) -> int | str:
    value = scalar.as_py()
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
