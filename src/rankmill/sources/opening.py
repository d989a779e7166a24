"""Opening an input of any kind, and reading its lists on many threads."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from rankmill.errors import InputError, UsageError
from rankmill.ragged import Ragged
from rankmill.sources.base import Source
from rankmill.sources.columns import Columns, Role
from rankmill.sources.convert import Lists, group_lists, long_rows, slice_lists, wide_lists
from rankmill.sources.parquet import open_parquet
from rankmill.sources.table import open_table, ragged_table
from rankmill.workers import BatchReader


def open_source(value: Any, role: Role, numbers: Any) -> Source:
    """Open labels or predictions of any kind.

    Parameters
    ----------
    value : str, path, list of them, pyarrow.Table or Ragged
        The input.
    role : {"labels", "predictions"}
        Which side it is, for messages.
    numbers : Ragged or other
        Confidences or gains that go with a Ragged; not looked at otherwise.

    Raises
    ------
    InputError
        If it cannot be opened, or holds no rows.
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
    if source.rows == 0:
        raise InputError(f"{source.name} holds no rows; expected {role}")
    return source


def list_pieces(
    source: Source, columns: Columns, threads: int
) -> tuple[list[Iterator[Any]], Callable[[Any], Lists]]:
    """Pieces of an input for a BatchReader, and the function that makes lists of a batch.

    Wide rows stream. Long rows are read and grouped here, as their queries may be scattered.
    """
    pieces = source.pieces(columns.names())
    if columns.wide:
        return pieces, partial(wide_lists, columns=columns)
    with BatchReader(pieces, threads) as reader:
        rows = list(reader.map(partial(long_rows, columns=columns)))
    return [iter(slice_lists(group_lists(rows)))], lambda lists: lists
