"""Finding the list of one query in an input."""

from contextlib import closing
from operator import index
from string import whitespace
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import array_of_values
from rankmill.columns.ids import is_text_type, slice_ids, to_ids
from rankmill.columns.ranked_lists import Lists
from rankmill.errors import UsageError
from rankmill.kernels.identity import Ids
from rankmill.matching.index import look_up, repeated_query
from rankmill.sources.inputs.inputs import Input, map_lists
from rankmill.sources.roles.source import Batch, read_batches
from rankmill.sources.rows.long import group_lists, long_rows
from rankmill.sources.rows.wide import queries_of, wide_lists
from rankmill.threads import Workers


def id_of(query: Any, one: Input) -> Ids:
    """Return a query id in the type of an input's ids: an integer (also from text) or a text.

    Raises UsageError if the input cannot have such an id.
    """
    name = one.columns.query
    kind = one.source.schema.field(name).type
    if is_text_type(kind):
        if not isinstance(query, str | bytes):
            raise UsageError(
                f"query id {query!r} is not text, but the ids in column {name!r} are: give text"
            )
        if isinstance(query, str):
            # As `tidy` reads the ids.
            query = query if one.source.exact_ids else query.strip(whitespace)
            try:
                query = query.encode(errors="surrogateescape")  # Python's form of undecoded bytes
            except UnicodeEncodeError:
                raise UsageError(f"query id {query!r} is not valid UTF-8 text") from None
        return to_ids(array_of_values([query], pa.binary()), "the query id")
    try:
        number = int(query) if isinstance(query, str | bytes) else index(query)
        return to_ids(np.array([number], np.uint64 if number > 0 else np.int64), "the query id")
    except (TypeError, ValueError, OverflowError):
        raise UsageError(
            f"query id {query!r} is not a 64-bit integer, but the ids in column {name!r} of "
            f"{one.source.name} are"
        ) from None


def lists_of(queries: Ids, one: Input, workers: Workers) -> list[Lists | None]:
    """Return the list of each of some different queries; None where the input lacks the query.

    All rows are read once, and InputError is raised if two rows of a wide input have a query.
    """
    lookup, _ = look_up(queries)

    def rows_of(batch: Batch) -> list[tuple[int, Batch]]:
        numbers = lookup.find(queries_of(batch, one.columns))
        places = np.flatnonzero(numbers >= 0)
        ends = (np.diff(places) > 1) | (np.diff(numbers[places]) != 0)
        runs = np.split(places, np.flatnonzero(ends) + 1) if len(places) else []
        return [
            (
                int(numbers[run[0]]),
                Batch(batch.data.slice(run[0], len(run)), batch.place.onwards(int(run[0]))),
            )
            for run in runs
        ]

    def lists_at(lists: Lists) -> list[tuple[int, Lists]]:
        numbers = lookup.find(lists.queries)
        places = np.flatnonzero(numbers >= 0).tolist()
        return [(int(numbers[place]), lists.slice(place, place + 1)) for place in places]

    read: Any  # of rows or lists, each with the number of its query
    if one.source.lists is None:
        read = read_batches(rows_of, one.source, one.columns.names(), workers)
    else:  # each list belongs to one query
        read = map_lists(lists_at, one.source, one.columns, workers)
    parts: list[list[Any]] = [[] for _ in range(len(queries.keys))]
    with closing(read) as blocks:
        for block in blocks:
            for number, part in block:
                parts[number].append(part)
    if one.source.lists is not None:
        return [of[-1] if of else None for of in parts]
    return [_list_in(of, slice_ids(queries, i, i + 1), one) for i, of in enumerate(parts)]


def _list_in(parts: list[Batch], query: Ids, one: Input) -> Lists | None:
    """Return the list of a query, given all of its rows."""
    if not parts:
        return None
    if not one.columns.wide:
        return group_lists([long_rows(part, one.columns) for part in parts], one.columns)
    rows = [(part.place, i) for part in parts for i in range(part.data.num_rows)]
    if len(rows) > 1:
        raise repeated_query(query, 0, *rows[1])
    return wide_lists(parts[0], one.columns)
