"""Fuse the lists of one range of query ids."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.analysis.fuse.hit_rates import stacked
from rankmill.analysis.fuse.methods import Fusion
from rankmill.columns.buffers import arrow_of
from rankmill.columns.ids import id_text, to_ids
from rankmill.engine.wide_rows import written_schema
from rankmill.errors import InputError
from rankmill.kernels.fusion import fuse_lists
from rankmill.kernels.identity import SEED


class FusedBlock(NamedTuple):
    """The fused rows of some queries: how many of them all runs have, and the repeats left out."""

    rows: Any
    in_all: int
    repeats: int


def joined_rows(tables: Iterable[Any], schema: Any) -> Any:
    """Join tables of rows of a schema, with the types that are written."""
    whole = pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()
    return whole.cast(written_schema(schema), safe=False)


def fuse_block(tables: Sequence[Any], fusion: Fusion, schema: Any) -> FusedBlock:
    """Fuse tables of a run each, which have all rows of a range of queries; None has no rows."""
    lists = stacked(tables, fusion.needs_scores)
    ids = to_ids(lists.items, "items")
    places, scores = np.empty(len(lists.items), np.int64), np.empty(len(lists.items))
    lengths = np.empty(len(lists.queries), np.int64)
    repeats, bad = fuse_lists(
        lists.starts,
        lists.ends,
        ids,
        lists.scores,
        fusion.weights,
        np.argsort(fusion.weights, kind="stable"),
        fusion.factors,
        fusion.rates,
        *fusion.how,
        fusion.k,
        fusion.parameter,
        fusion.row.absent,
        fusion.top,
        SEED,
        places,
        scores,
        lengths,
    )
    if bad >= 0:
        query = id_text(to_ids(lists.queries, "queries"), bad)
        raise InputError(
            f"query {query}: {fusion.method} of its lists is not a finite number, as confidences "
            "are infinite, too large or too close, or none is positive for norm 'max': fix them, "
            "or fuse by ranks (rrf, or norm 'rank')"
        )
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    items = lists.items.take(arrow_of(places[: offsets[-1]]))
    columns = [
        lists.queries,
        pa.LargeListArray.from_arrays(arrow_of(offsets), items),
        pa.LargeListArray.from_arrays(arrow_of(offsets), arrow_of(scores[: offsets[-1]])),
    ]
    in_all = 0 if any(table is None for table in tables) else _in_all(tables, len(lists.queries))
    return FusedBlock(pa.Table.from_arrays(columns, schema=schema), in_all, int(repeats))


def _in_all(tables: Sequence[Any], queries: int) -> int:
    """Return how many queries are in all tables."""
    if all(len(table) == queries for table in tables):
        return queries
    import pyarrow.compute as pc

    ids = tables[0].column(0)
    for table in tables[1:]:
        ids = ids.filter(pc.is_in(ids, table.column(0)))
    return len(ids)
