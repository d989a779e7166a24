"""Facts of queries: columns with one value a query, such as a weight or a country."""

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import validity_of
from rankmill.columns.ids import (
    drop_nulls,
    grouped,
    id_text,
    is_text_type,
    join_ids,
    plain,
    take_ids,
    to_ids,
)
from rankmill.columns.lists import drop_values, split_lists
from rankmill.columns.ragged_lists import one_chunk
from rankmill.errors import InputError
from rankmill.kernels.identity import Ids, run_starts
from rankmill.sources.meaning.values import column_values
from rankmill.sources.roles.source import Batch, Columns, Source, read_batches
from rankmill.sources.rows.wide import beside_items, queries_of
from rankmill.threads import Workers


class QueryFacts(NamedTuple):
    """The distinct queries of a source, and for each column an Arrow array with a value a query."""

    queries: Ids
    columns: dict[str, Any]


def read_columns(source: Source, names: Sequence[str], workers: Workers) -> dict[str, Any]:
    """Read columns of facts as they stand, a value a row, each as one Arrow array."""

    def read(batch: Batch) -> Any:
        return _encoded(batch.data.select(list(names)))

    with closing(read_batches(read, source, list(names), workers)) as batches:
        whole = _joined(source, names, list(batches))
    return {name: one_chunk(whole.column(name)) for name in names}


def _encoded(data: Any) -> pa.Table:
    """Return a record batch as a table; texts become dictionaries, as they are told apart later."""
    table = pa.Table.from_batches([data])
    for i, field in enumerate(table.schema):
        if is_text_type(field.type) and not kinds.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).dictionary_encode())
    return table


def _joined(source: Source, names: Sequence[str], parts: Sequence[pa.Table]) -> pa.Table:
    if not parts:
        schema = source.schema
        fields = pa.schema([schema.field(name) for name in names])
        parts = [_encoded(pa.RecordBatch.from_pylist([], fields))]
    try:
        return pa.concat_tables(parts, promote_options="permissive").combine_chunks()
    except pa.ArrowException as error:
        raise InputError(f"{source.name}: {', '.join(names)}: {error}") from None


def read_facts(
    source: Source, columns: Columns, names: Sequence[str], workers: Workers
) -> QueryFacts:
    """Read columns of facts; the rows of a query must agree."""

    def read(batch: Batch) -> tuple[Ids, Any]:
        queries = queries_of(batch, columns)
        first = np.empty(len(queries.keys), np.int64)
        first = first[: run_starts(queries, first)]
        table = _encoded(batch.data.select(list(names)))
        if len(first) < len(queries.keys):
            last = np.append(first[1:], len(queries.keys)) - 1
            # Of the rows of a run, the first and those that differ from the row before are kept.
            first = _with_changes(table, first, last)
            queries, table = take_ids(queries, first), table.take(pa.array(first))
        return join_ids([queries]), table

    wanted = [*dict.fromkeys([columns.query, *names])]  # a slice for each query is of its id
    with closing(read_batches(read, source, wanted, workers)) as batches:
        parts = list(batches)
    queries = join_ids([one for one, _ in parts])
    whole = _joined(source, names, [one for _, one in parts])
    return _one_a_query(source.name, queries, whole, list(names))


def _with_changes(table: pa.Table, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the first row of each run, and each later row of it that may hold another value."""
    changes = np.zeros(len(table), np.bool_)
    changes[first] = True
    for column in table.columns:
        codes = _codes(column)
        changes[1:] |= codes[1:] != codes[:-1]
    return np.flatnonzero(changes)


def _one_a_query(name: str, queries: Ids, table: pa.Table, names: list[str]) -> QueryFacts:
    groups, first = grouped(queries)
    if len(first) < len(groups):
        for one in names:
            codes = _codes(table.column(one))
            other = np.flatnonzero(codes != codes[first][groups])
            if len(other):
                place, before = int(other[0]), int(first[groups[other[0]]])
                values = (repr(table.column(one)[i].as_py()) for i in (before, place))
                raise InputError(
                    f"{name}: query {id_text(queries, place)} has {' and '.join(values)} in column "
                    f"{one!r}; expected the same value in all rows of a query: fix its rows"
                )
        queries, table = take_ids(queries, first), table.take(pa.array(first))
    return QueryFacts(queries, {one: one_chunk(table.column(one)) for one in names})


def _codes(column: Any) -> np.ndarray:
    """Return numbers that are equal where values are equal; nulls are equal."""
    encoded = one_chunk(column)
    if not kinds.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode("encode")
    return np.asarray(encoded.indices.fill_null(-1).to_numpy())


# ------------------------------------------------------------------ columns that metrics see


def seen_rows(batch: Batch, columns: Columns) -> tuple[Ids, np.ndarray, Ids, dict[str, np.ndarray]]:
    """The queries of a batch, the offsets and items of their lists, and numbers of each item.

    These are the gains, and the columns that metrics see, by name.
    """
    what, queries = f"{batch.source}: column {columns.item!r}", queries_of(batch, columns)
    values, of_items = batch.data.column(columns.item), batch.data.column
    offsets = np.arange(len(values) + 1)
    if columns.wide:
        offsets, values = split_lists(values)
        of_items = partial(beside_items, batch, columns, queries, offsets)
    values = plain(values, what)
    kept = validity_of(values)
    names = filter(None, [columns.gain, *columns.seen])
    numbers = {name: column_values(batch, name, of_items(name))[kept] for name in names}
    return queries, drop_values(offsets, kept), to_ids(drop_nulls(values), what), numbers
