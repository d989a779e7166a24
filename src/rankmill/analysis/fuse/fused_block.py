"""Fuse the lists of one range of query ids."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.analysis.fuse.methods import Fusion
from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.columns.ids import id_text, to_ids
from rankmill.errors import InputError
from rankmill.kernels.fusion import fuse_lists
from rankmill.kernels.identity import SEED

NO_SCORES = np.empty(0)


class FusedBlock(NamedTuple):
    """The fused rows of some queries: how many of them all runs have, and the repeats left out."""

    rows: Any
    in_all: int
    repeats: int


class Stacked(NamedTuple):
    """The lists of all runs, one after the other; those of query q are row q of both arrays."""

    queries: Any
    starts: np.ndarray
    ends: np.ndarray
    items: Any
    scores: np.ndarray


def fuse_block(tables: Sequence[Any], fusion: Fusion, schema: Any) -> FusedBlock:
    """Fuse tables of a run each, which have all rows of a range of queries; None has no rows."""
    lists = _stacked(tables, fusion.needs_scores)
    ids = to_ids(lists.items, "items")
    places, scores = np.empty(len(lists.items), np.int64), np.empty(len(lists.items))
    lengths = np.empty(len(lists.queries), np.int64)
    repeats, bad = fuse_lists(
        lists.starts,
        lists.ends,
        ids,
        lists.scores,
        fusion.weights,
        fusion.factors,
        *fusion.how,
        fusion.k,
        fusion.parameter,
        fusion.top,
        SEED,
        places,
        scores,
        lengths,
    )
    if bad >= 0:
        query = id_text(to_ids(lists.queries, "queries"), bad)
        raise InputError(
            f"query {query}: {fusion.method} of its lists is no finite number, as confidences are "
            "infinite or too large, or none is positive for norm 'max': mend them, or fuse by "
            "ranks (rrf, or norm 'rank')"
        )
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    items = lists.items.take(arrow_of(places[: offsets[-1]]))
    columns = [
        lists.queries,
        pa.LargeListArray.from_arrays(arrow_of(offsets), items),
        pa.LargeListArray.from_arrays(arrow_of(offsets), arrow_of(scores[: offsets[-1]])),
    ]
    in_all = 0 if any(table is None for table in tables) else _in_all(tables, len(lists.queries))
    return FusedBlock(pa.Table.from_arrays(columns, schema=schema), in_all, repeats)


def _in_all(tables: Sequence[Any], queries: int) -> int:
    """Return how many queries are in all tables."""
    if all(len(table) == queries for table in tables):
        return queries
    import pyarrow.compute as pc

    ids = tables[0].column(0)
    for table in tables[1:]:
        ids = ids.filter(pc.is_in(ids, table.column(0)))
    return len(ids)


def _stacked(tables: Sequence[Any], with_scores: bool) -> Stacked:
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
