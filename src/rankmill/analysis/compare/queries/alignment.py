"""Results of several systems side by side, joined by query id."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankmill.columns.buffers import arrow_of, floats_of
from rankmill.columns.ids import ascending, id_value, ids_to_arrow, join_ids, take_ids, to_ids
from rankmill.columns.ragged_lists import one_chunk
from rankmill.errors import UsageError
from rankmill.kernels.identity import Ids
from rankmill.matching.index import look_up
from rankmill.metrics.texts import OF_BASELINE
from rankmill.results.result import WEIGHT, CountedQueries, Result

MOST_NAMED = 3
"""Of the queries that a system lacks, so many are named."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def join_per_query(results: Mapping[str, Result]) -> pa.Table:
    """Join the values of each query for all systems of one call of `evaluate_runs`, by query id.

    There is one row for each query that counts for any system: the queries of the labels in their
    order, then all others by id. The columns are the query id and a float64 column SYSTEM:METRIC
    for each system and metric. A value is null if the query does not count for that system. If
    queries have weights, the last column is "weight". Raises UsageError if the queries differ and
    the results are not from one call.
    """
    return Aligned.of(results).table()


def check_names(runs: Mapping[Any, Any]) -> None:
    """Raise UsageError unless the names of systems are texts, which Arrow takes."""
    for name in runs:
        if not isinstance(name, str) or _SURROGATE.search(name):
            raise UsageError(
                f"a system is called {name!r}; expected valid UTF-8 text as the name of a system"
            )


class Aligned(NamedTuple):
    """The tables of several systems, and where their rows stand among the queries of all."""

    tables: dict[str, pa.Table]  # the values of each query, for each system
    queries: Any  # the ids of all queries that count for any system
    # The place of each row of a system among these, ascending; None if it has all of them.
    rows: dict[str, np.ndarray | None]
    common: np.ndarray | None = None  # which of these count for all systems; None if every one does

    @classmethod
    def of(cls, results: Mapping[str, Result]) -> Self:
        """Join the tables of the results of one call of `evaluate_runs`."""
        tables = {name: one.per_query for name, one in results.items() if one.per_query is not None}
        first, *others = tables.values()
        if all(one.column(0).equals(first.column(0)) for one in others):
            return cls(tables, first.column(0), dict.fromkeys(tables))
        queries, rows = _joined_ids(list(tables.values()), _counted(results))
        common = np.bincount(np.concatenate(rows), minlength=len(queries)) == len(tables)
        found = cls(tables, queries, dict(zip(tables, rows, strict=True)))
        return found if common.all() else found._replace(common=common)

    @property
    def queries_of_all(self) -> int:
        """The number of queries that count for all systems."""
        return len(self.queries) if self.common is None else int(self.common.sum())

    def table(self) -> pa.Table:
        """Return the joined table, as `join_per_query` does."""
        columns = {
            f"{valid(name)}:{metric}": _spread(
                table.column(metric), self.rows[name], len(self.queries)
            )
            for name, table in self.tables.items()
            for metric in table.column_names[1:]
            if metric != WEIGHT
        }
        for name in [one for one in columns if one.endswith(OF_BASELINE)]:
            there = ~np.isnan(floats_of(one_chunk(columns[name])))
            columns[name] = pc.if_else(arrow_of(there), columns[name], None)
        weights = self.weights()
        if weights is not None:
            columns[WEIGHT] = arrow_of(weights)
        query = next(iter(self.tables.values())).column_names[0]
        return pa.table({"query" if query in columns else query: self.queries, **columns})

    def weights(self) -> np.ndarray | None:
        """Return the weight of each query, which is the same in all tables that have the query."""
        if WEIGHT not in next(iter(self.tables.values())).column_names:
            return None
        weights = np.empty(len(self.queries))
        for name, table in self.tables.items():
            rows = self.rows[name]
            weights[slice(None) if rows is None else rows] = table.column(WEIGHT).to_numpy()
        return weights

    def lacking(self) -> dict[str, list[int | str]]:
        """Return the smallest ids, a few, of the queries that do not count for each system."""
        found = {}
        for name, rows in self.rows.items():
            if rows is not None and len(rows) < len(self.queries):
                without = np.ones(len(self.queries), np.bool_)
                without[rows] = False
                ids = _ids(self.queries.filter(arrow_of(without)))
                places = pc.bottom_k_unstable(ids_to_arrow(ids, set()), MOST_NAMED)
                found[name] = [id_value(ids, place) for place in places.to_pylist()]
        return found

    def values(self, name: str, metric: str) -> np.ndarray:
        """Return the values of a system in the queries that count for all, in their order."""
        found: np.ndarray = floats_of(one_chunk(self.tables[name].column(metric)))
        rows, kept = self.rows[name], self.common
        if kept is not None:
            found = found[kept if rows is None else kept[rows]]
        return found

    def ids(self) -> Any:
        """Return the ids of the queries that count for all."""
        return self.queries if self.common is None else self.queries.filter(arrow_of(self.common))


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
    distinct, ranks = ascending(ids_to_arrow(strange, set()))
    ends = np.cumsum([len(ids.keys) - len(of) for ids, of in pairs])
    of_others = np.split(int(among.sum()) + ranks, ends[:-1])
    rows = [np.concatenate(both) for both in zip(rows, of_others, strict=True)]
    place = np.empty(int(among.sum()) + len(distinct), np.int64)
    place[np.concatenate(rows)] = np.arange(sum(map(len, rows)))
    kinds = {one.schema.field(0).type for one in tables}
    return ids_to_arrow(take_ids(join_ids(parts), place), kinds), rows


def rows_in_both(
    one: pa.ChunkedArray, other: pa.ChunkedArray, name: str
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the rows of the ids that are in two columns, those of the same ids in the other.

    With them is the first row of the other column, which is called `name`, that repeats an id; -1
    if none does.
    """
    lookup, repeated = look_up(to_ids(other.combine_chunks(), name))
    places = lookup.find(to_ids(one.combine_chunks(), "the query ids"))
    rows = np.flatnonzero(places >= 0)
    return rows, places[rows], repeated


def _ids(column: Any) -> Ids:
    return to_ids(one_chunk(column), "the query ids of a result")


def valid(name: str) -> str:
    r"""Return a name as Arrow takes it: a file's name need not be valid UTF-8.

    Examples
    --------
    >>> valid("a\udce9b")
    'a\\udce9b'
    """
    return name.encode(errors="backslashreplace").decode()


def _spread(column: Any, rows: np.ndarray | None, count: int) -> Any:
    """Return a system's values at the rows of their queries, and null in all other rows."""
    if rows is None:
        return column
    values, missing = np.zeros(count), np.ones(count, np.bool_)
    values[rows] = column.to_numpy()
    missing[rows] = False
    return arrow_of(values, missing)
