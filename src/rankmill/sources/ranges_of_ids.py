"""The rows of a range of query ids, out of batches that may hold others."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import numbers_of
from rankmill.columns.ids import plain
from rankmill.sources.base import Batch


class UnsortedError(Exception):
    """An input is not sorted by query id, though its footers looked so."""


def rows_within(batches: Iterator[Batch], query: str, low: Any, high: Any) -> Iterator[Batch]:
    """The rows whose ids are at least `low` and below `high`; None is no end.

    Raises
    ------
    UnsortedError
        If others stand between them.
    """
    for batch in batches:
        ids = plain(batch.data.column(query), f"{batch.source}: column {query!r}")
        if ids.null_count:  # whoever takes its ids refuses it
            yield batch
            continue
        inside = np.ones(len(ids), np.bool_)
        if low is not None:
            inside &= ~_below(ids, low)
        if high is not None:
            inside &= _below(ids, high)
        rows = np.flatnonzero(inside)
        if len(rows) == len(ids):
            yield batch
        elif len(rows):
            first, last = int(rows[0]), int(rows[-1])
            if last - first >= len(rows):
                raise UnsortedError
            data = batch.data.slice(first, len(rows))
            yield Batch(data, batch.source, batch.first_row + first)


def _below(ids: Any, bound: Any) -> np.ndarray:
    if kinds.is_integer(ids.type):
        below: np.ndarray = (
            numbers_of(ids) < bound
        )  # exact, also where the bound is beyond the type
        return below
    import pyarrow.compute as pc

    # The bytes decide, as in the footer, whatever the layout of the strings.
    less = pc.less(ids.cast(pa.large_binary()), pa.scalar(bound, pa.large_binary()))
    return numbers_of(less.cast(pa.uint8())).view(np.bool_)
