"""Results of several systems side by side, joined by query id."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.ids import ids_to_arrow, join_ids, take_ids, to_ids
from rankmill.errors import UsageError
from rankmill.kernels.identity import Ids
from rankmill.results.result import CountedQueries, Result


def join_per_query(results: Mapping[str, Result]) -> pa.Table:
    """Join the values of each query for all systems, by query id.

    Parameters
    ----------
    results : mapping of str to Result
        The results of one call of `evaluate_runs`, with their tables of each query.

    Returns
    -------
    pyarrow.Table
        One row for each query that counts for any system: the queries of the labels in their order,
        then all others by id. The columns are the query id and a float64 column SYSTEM:METRIC for
        each system and metric. A value is null if the query does not count for that system.

    Raises
    ------
    UsageError
        If the queries differ and the results are not from one call.
    """
    tables = {name: one.per_query for name, one in results.items() if one.per_query is not None}
    first = next(iter(tables.values()))
    queries, rows = first.column(0), [np.arange(first.num_rows)] * len(tables)
    if not all(one.column(0).equals(queries) for one in tables.values()):
        queries, rows = _joined_ids(list(tables.values()), _counted(results))
    columns = {
        f"{name}:{metric}": _spread(table.column(metric), of_table, len(queries))
        for (name, table), of_table in zip(tables.items(), rows, strict=True)
        for metric in table.column_names[1:]
    }
    query = first.column_names[0]
    return pa.table({"query" if query in columns else query: queries, **columns})


def same_queries(results: Mapping[str, Result]) -> bool | None:
    """Return whether all systems of one call of `evaluate_runs` have the same queries in the mean.

    Returns None if their numbers are the same and the results do not tell which queries count.
    """
    first, *others = results.values()
    if any(one.queries != first.queries for one in others):
        return False
    if not others or not first.semantics.counts_by_predictions:
        return True
    if any(one.counted is None for one in results.values()):
        return None
    counted = _counted(results)
    if any((one.of_labels != counted[0].of_labels).any() for one in counted):
        return False
    strange = [_ids(one.others) for one in counted if one.others is not None]
    return not strange or len(_numbered(join_ids(strange))[1]) == len(strange[0].keys)


def _counted(results: Mapping[str, Result]) -> list[CountedQueries]:
    counted = [one.counted for one in results.values() if one.counted is not None]
    if len(counted) < len(results) or len({len(one.of_labels) for one in counted}) > 1:
        raise UsageError(
            f"the results of {', '.join(results)} are of different queries and cannot be joined: "
            "evaluate the systems in one call of evaluate_runs"
        )
    return counted


def _joined_ids(
    tables: list[pa.Table], counted: list[CountedQueries]
) -> tuple[pa.Array, list[np.ndarray]]:
    """Return the distinct ids of all tables, and for each table the places of its rows among them.

    Matching has already found the rows of the labels by id, so queries of the labels are joined by
    their row. Only the other queries are joined by id here.
    """
    among = np.logical_or.reduce([one.of_labels for one in counted])
    row_of_label = np.cumsum(among) - 1
    rows = [row_of_label[one.of_labels] for one in counted]
    parts = [_ids(one.column(0)) for one in tables]
    pairs = list(zip(parts, rows, strict=True))
    strange = join_ids([take_ids(ids, np.arange(len(of), len(ids.keys))) for ids, of in pairs])
    numbers, first = _numbered(strange)
    row_of_other = int(among.sum()) + _ranks(take_ids(strange, first))
    ends = np.cumsum([len(ids.keys) - len(of) for ids, of in pairs])
    of_others = np.split(row_of_other[numbers], ends[:-1])
    rows = [np.concatenate(both) for both in zip(rows, of_others, strict=True)]
    place = np.empty(int(among.sum()) + len(first), np.int64)
    place[np.concatenate(rows)] = np.arange(sum(map(len, rows)))
    kinds = {one.schema.field(0).type for one in tables}
    return ids_to_arrow(take_ids(join_ids(parts), place), kinds), rows


def _ids(column: Any) -> Ids:
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return to_ids(column, "the query ids of a result")


def _numbered(ids: Ids) -> tuple[np.ndarray, np.ndarray]:
    """Number the distinct ids. Returns the number of each id, and a place of each distinct id."""
    encoded = ids_to_arrow(ids, set()).dictionary_encode()
    numbers = encoded.indices.to_numpy()
    place = np.empty(len(encoded.dictionary), np.int64)
    place[numbers] = np.arange(len(numbers))
    return numbers, place


def _ranks(ids: Ids) -> np.ndarray:
    """Return for each id how many ids are smaller."""
    import pyarrow.compute as pc

    order = pc.sort_indices(ids_to_arrow(ids, set())).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _spread(column: Any, rows: np.ndarray, count: int) -> pa.Array:
    """Return a system's values at the rows of their queries, and null in all other rows."""
    values, missing = np.zeros(count), np.ones(count, np.bool_)
    values[rows] = column.to_numpy()
    missing[rows] = False
    return pa.array(values, mask=missing)
