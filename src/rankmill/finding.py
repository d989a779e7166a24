"""One query's list out of an input, read no further than needed."""

from operator import index
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.errors import UsageError
from rankmill.ids import is_text_type, to_ids
from rankmill.kernels.identity import Ids, find_rows
from rankmill.labels import hash_table
from rankmill.reading import Input
from rankmill.sources.base import Batch
from rankmill.sources.convert import Lists, queries_of, wide_lists
from rankmill.sources.long import group_lists, long_rows
from rankmill.workers import BatchReader


def id_of(query: Any, one: Input) -> Ids:
    """A query id as the ids of an input are: an integer (also given as text) or a text.

    Raises
    ------
    UsageError
        If it cannot be one of them.
    """
    name = one.columns.query
    kind = next(iter(one.source.schemas.values())).field(name).type
    if is_text_type(kind):
        if not isinstance(query, str | bytes):
            raise UsageError(
                f"query id {query!r} is no text, but the ids in column {name!r} are: give text"
            )
        return to_ids(pa.array([query]), "the query id")
    try:
        number = int(query) if isinstance(query, str | bytes) else index(query)
        return to_ids(np.array([number], np.uint64 if number > 0 else np.int64), "the query id")
    except (TypeError, ValueError, OverflowError):
        raise UsageError(
            f"query id {query!r} is no integer of 64 bits, but the ids in column {name!r} of "
            f"{one.source.name} are"
        ) from None


def list_of(query: Ids, one: Input, threads: int) -> Lists | None:
    """The list of the only query of `query`; None if it is not there.

    Wide rows are read up to the first row of the query, long rows to the end.
    """
    slots, _ = hash_table(query)

    def rows_of(batch: Batch) -> list[Batch]:
        ids = queries_of(batch, one.columns)
        rows = np.empty(len(ids.keys), np.int64)
        find_rows(query, slots, ids, rows)
        places = np.flatnonzero(rows == 0)
        runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if len(places) else []
        return [
            Batch(batch.data.slice(run[0], len(run)), batch.source, batch.first_row + int(run[0]))
            for run in runs
        ]

    parts: list[Batch] = []
    with BatchReader(one.source.pieces(one.columns.names()), threads) as reader:
        for found in reader.map(rows_of):
            parts += found
            if parts and one.columns.wide:
                first = parts[0]
                return wide_lists(first._replace(data=first.data.slice(0, 1)), one.columns)
    return group_lists([long_rows(part, one.columns) for part in parts]) if parts else None
