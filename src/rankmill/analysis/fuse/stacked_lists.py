"""The lists of all runs, one after the other, for kernels that see those of a query together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, numbers_of

NO_SCORES = np.empty(0)


class Stacked(NamedTuple):
    """The lists of all runs, one after the other; those of query q are row q of both arrays."""

    queries: Any
    starts: np.ndarray
    ends: np.ndarray
    items: Any
    scores: np.ndarray


def stacked(tables: Sequence[Any], with_scores: bool) -> Stacked:
    """Stack tables of a run each; None has no rows."""
    there = [table for table in tables if table is not None]
    queries, rows = _union([table.column(0).combine_chunks() for table in there])
    starts, ends = np.zeros((2, len(queries), len(tables)), np.int64)
    items, scores = [], []
    base = 0
    at = iter(rows)
    for r, table in enumerate(tables):
        if table is None:
            continue
        lists = table.column(1).combine_chunks()
        offsets = numbers_of(lists.offsets)
        own = next(at)
        starts[own, r] = offsets[:-1] - offsets[0] + base
        ends[own, r] = offsets[1:] - offsets[0] + base
        items.append(lists.flatten())
        base += len(items[-1])
        if with_scores:
            flat = numbers_of(table.column(2).combine_chunks().flatten())
            scores.append(flat.astype(np.float64, copy=False))
    joined = np.concatenate(scores) if scores else NO_SCORES
    return Stacked(queries, starts, ends, pa.concat_arrays(items), joined)


def _union(columns: Sequence[Any]) -> tuple[Any, list[np.ndarray]]:
    """Return the distinct ids of columns, ascending, and the places of each column's among them.

    The ids of each column ascend.
    """
    if all(column.equals(columns[0]) for column in columns[1:]):
        return columns[0], [np.arange(len(columns[0]))] * len(columns)
    import pyarrow.compute as pc

    encoded = pa.concat_arrays(columns).dictionary_encode()
    order = numbers_of(pc.sort_indices(encoded.dictionary)).astype(np.int64)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    of_rows = places[numbers_of(encoded.indices)]
    ends = np.cumsum([len(column) for column in columns])
    return encoded.dictionary.take(arrow_of(order)), np.split(of_rows, ends[:-1])
