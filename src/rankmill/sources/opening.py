"""Opening an input of any kind, and reading its lists on many threads."""

import os
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from rankmill.errors import InputError, UsageError
from rankmill.lists import split_lists
from rankmill.ragged import Ragged
from rankmill.sources.base import Batch, Source
from rankmill.sources.columns import Columns, Role
from rankmill.sources.convert import Lists, confidences_of, wide_lists
from rankmill.sources.long import (
    BYTES_A_ROW,
    group_lists,
    grouped_lists,
    stream_rows,
)
from rankmill.sources.parquet import open_parquet
from rankmill.sources.spill import spilled_lists
from rankmill.sources.table import open_table, ragged_table
from rankmill.workers import Workers

Value = TypeVar("Value")


def open_source(value: Any, role: Role, numbers: Any, *, may_be_empty: bool = False) -> Source:
    """Open labels or predictions of any kind.

    Parameters
    ----------
    value : str, path, list of them, pyarrow.Table or Ragged
        The input.
    role : {"labels", "predictions"}
        Which side it is, for messages.
    numbers : Ragged or other
        Confidences or gains that go with a Ragged; not looked at otherwise.

    may_be_empty : bool
        Whether there may be no rows.

    Raises
    ------
    InputError
        If it cannot be opened, or holds no rows and should.
    UsageError
        If it is of no kind that can be opened.
    """
    if isinstance(value, Ragged):
        number_column = "score" if role == "predictions" else "gain"
        source = open_table(ragged_table(value, numbers, number_column), f"the Ragged of {role}")
    elif isinstance(value, pa.Table):
        source = open_table(value, f"the table of {role}")
    elif isinstance(value, str | os.PathLike):
        source = open_parquet([os.fspath(value)], os.fspath(value))
    elif isinstance(value, list | tuple) and all(isinstance(v, str | os.PathLike) for v in value):
        paths = [os.fspath(one) for one in value]
        if not paths:
            raise UsageError(f"the list of files of {role} is empty")
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        source = open_parquet(paths, paths[0] + more)
    else:
        raise UsageError(
            f"{role} cannot be a {type(value).__name__}; expected a path, a list of paths, a "
            "pyarrow.Table or a Ragged"
        )
    if source.rows == 0 and not may_be_empty:
        raise InputError(f"{source.name} holds no rows; expected {role}")
    return source


def map_lists(
    work: Callable[[Lists], Value],
    source: Source,
    columns: Columns,
    workers: Workers,
    *,
    together: bool = False,
    memory: int | None = None,
) -> Generator[Value, None, None]:
    """Yield work(lists) for all lists of an input, a block at a time, in order; close it.

    Wide rows stream. Long rows stream if the rows of each query are said to stand together (and
    fail with a ScatteredRowsError or a repeated query where they do not); else they are grouped, in
    memory or, where that takes more than `memory` bytes, by way of partitions on disk.
    """
    if columns.wide:
        pieces = source.pieces(columns.names())
        return workers.read(pieces, lambda batch: work(wide_lists(batch, columns)))
    if together:
        portions = stream_rows(source, columns, workers)
        return workers.map(lambda rows: work(group_lists(rows, together=True)), portions)
    if memory is not None and source.rows * BYTES_A_ROW > memory:
        return workers.map(work, spilled_lists(source, columns, workers, memory))
    return workers.map(work, grouped_lists(source, columns, workers))


def map_confidences(
    work: Callable[[np.ndarray, np.ndarray], Value],
    source: Source,
    columns: Columns,
    workers: Workers,
    *,
    memory: int,
    arrange: Callable[[Lists], Lists] | None,
) -> Generator[Value, None, None]:
    """Yield work(offsets, confidences) for all lists once more, a block at a time; close it.

    Only the confidences are read, unless lists are to be arranged, or rows to be grouped. Scattered
    rows take `memory` bytes at most, as in map_lists.
    """
    name = str(columns.score)

    def of_batch(batch: Batch) -> Value:
        offsets, values = split_lists(batch.data.column(name))
        return work(offsets, confidences_of(values, columns))

    def of_lists(lists: Lists) -> Value:
        if arrange is not None:
            lists = arrange(lists)
        return work(lists.offsets, lists.confidences)

    if columns.wide and arrange is None:
        return workers.read(source.pieces([name]), of_batch)
    return map_lists(of_lists, source, columns, workers, memory=memory)
