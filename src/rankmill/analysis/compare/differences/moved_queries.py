"""The queries whose values differ most between two systems."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.analysis.compare.differences.differences import Moved
from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.metrics.base import Better

MovedRows = Mapping[tuple[str, str], pa.Table]
"""Metric and system -> what `rows_moved` returns."""


def rows_moved(
    ids: Any, before: np.ndarray, after: np.ndarray, count: int, better: Better
) -> pa.Table:
    """Return the queries that gained most, then those that lost most; the last lost most.

    They are `count` each at most, with their id and both values. Below 0, they are only those that
    lost, the one that lost most first. Where neither side is better, the queries that rose most are
    first.
    """
    gains = before - after if better == "lower" else after - before
    lost = _most(ids, -gains, abs(count))
    places = lost if count < 0 else [*_most(ids, gains, count), *lost[::-1]]
    columns = {"query": ids, "baseline": arrow_of(before), "value": arrow_of(after)}
    return pa.table(columns).take(arrow_of(np.array(places, np.int64)))


def merged_rows(parts: Sequence[pa.Table], count: int, better: Better) -> pa.Table:
    """Return what `rows_moved` finds of all queries, from what it found of each part of them."""
    rows = pa.concat_tables(parts)
    before, after = (rows[name].to_numpy() for name in ("baseline", "value"))
    return rows_moved(rows["query"].combine_chunks(), before, after, count, better)


def lists_moved(found: MovedRows) -> dict[str, dict[str, list[Moved]]]:
    """Return metric -> system -> the queries that moved most."""
    lists: dict[str, dict[str, list[Moved]]] = {}
    for (metric, system), rows in found.items():
        lists.setdefault(metric, {})[system] = [
            Moved(_id(one["query"]), one["baseline"], one["value"], one["value"] - one["baseline"])
            for one in rows.to_pylist()
        ]
    return lists


def _most(ids: Any, sizes: np.ndarray, count: int) -> list[int]:
    """Return the places of the largest positive sizes; the smaller id first among equal ones."""
    import pyarrow.compute as pc

    count = min(count, int((sizes > 0).sum()))
    if not count:
        return []
    least = np.partition(sizes, len(sizes) - count)[len(sizes) - count]
    places = np.flatnonzero(sizes >= least)
    table = pa.table({"size": arrow_of(sizes[places]), "id": ids.take(arrow_of(places))})
    order = pc.sort_indices(table, sort_keys=[("size", "descending"), ("id", "ascending")])
    return [int(one) for one in places[numbers_of(order)[:count]]]


def _id(value: Any) -> int | str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
