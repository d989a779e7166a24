"""Select the rows of a range of query ids from batches that may hold other rows."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import numbers_of
from rankmill.columns.ids import plain
from rankmill.errors import Otherwise
from rankmill.sources.roles.source import Batch, Block, batch_of, of_batch


class UnsortedError(Otherwise):
    """An input is not sorted by query id, although the bounds in its footers allow it."""


def rows_within(blocks: Iterator[Block], query: str, low: Any, high: Any) -> Iterator[Batch]:
    """Yield the rows whose ids are at least `low` and below `high`; None means no bound.

    Raise UnsortedError if rows with other ids are between them.
    """
    for batch in map(batch_of, blocks):
        ids = of_batch(partial(_ids, query=query), batch)
        if ids.null_count:  # the code that reads the ids raises the error
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
            yield Batch(data, batch.place.onwards(first))


def _ids(batch: Batch, query: str) -> Any:
    return plain(batch.data.column(query), f"{batch.source}: column {query!r}")


def _below(ids: Any, bound: Any) -> np.ndarray:
    if kinds.is_integer(ids.type):
        # This is exact even if the bound does not fit the integer type.
        below: np.ndarray = numbers_of(ids) < bound
        return below
    import pyarrow.compute as pc

    # Strings are compared as bytes, as in the footer, whatever their Arrow type is.
    less = pc.less(ids.cast(pa.large_binary()), pa.scalar(bound, pa.large_binary()))
    return numbers_of(less.cast(pa.uint8())).view(np.bool_)
