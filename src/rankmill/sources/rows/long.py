"""Turn long rows into lists: by streaming if each query's rows are adjacent, else by grouping."""

import itertools
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import arrow_of, numbers_of, validity_of
from rankmill.columns.ids import (
    drop_nulls,
    grouped,
    id_text,
    ids_to_arrow,
    in_partitions,
    join_ids,
    plain,
    slice_ids,
    take_ids,
    to_ids,
)
from rankmill.columns.lists import drop_values, sort_values
from rankmill.columns.ranked_lists import Lists, Place
from rankmill.errors import InputError, Otherwise
from rankmill.io.overflow import Overflow
from rankmill.kernels.identity import Ids, run_starts
from rankmill.kernels.lists import sort_by_group
from rankmill.records import record
from rankmill.sources.roles.source import BATCH_VALUES, Batch, Columns, Source, read_batches
from rankmill.sources.rows.wide import checked_numbers, number_error, queries_of
from rankmill.threads import Workers

# The most bytes of memory that grouping needs for each scattered row, without the bytes of strings.
BYTES_A_ROW = 96


class ScatteredRowsError(Otherwise):
    """The rows of a query are not adjacent."""


@record(frozen=True)
class LongRows:
    """Some rows of a long input; most arrays have one value for every row."""

    queries: Ids
    items: Ids  # only those of the rows that are marked in `keep`
    keep: np.ndarray | None  # the rows whose item is not null; None: all rows
    numbers: np.ndarray | None
    ranks: np.ndarray | None
    source: str


def long_rows(batch: Batch, columns: Columns) -> LongRows:
    """The rows of a batch of long rows."""
    queries = queries_of(batch, columns)
    values = plain(batch.data.column(columns.item), f"{batch.source}: column {columns.item!r}")
    keep = validity_of(values) if values.null_count else None
    items = to_ids(drop_nulls(values), f"{batch.source}: column {columns.item!r}")
    numbers = ranks = None
    name = columns.score or columns.gain
    if name is not None:
        raw = batch.data.column(name)
        numbers, bad = checked_numbers(raw, keep, columns, batch.source)
        if bad >= 0:
            where = f"{batch.place.of(bad)} (query {id_text(queries, bad)})"
            raise number_error(batch.source, where, name, raw[bad])
    if columns.rank is not None:
        ranks = _ranks(batch, columns.rank, keep)
    return LongRows(queries, items, keep, numbers, ranks, batch.source)


def stream_rows(
    source: Source, columns: Columns, workers: Workers
) -> Generator[list[LongRows], None, None]:
    """Yield rows in portions for group_lists; adjacent rows of a query stay in one portion."""
    carried: list[LongRows] = []
    with closing(read_rows(source, columns, workers)) as batches:
        for rows in batches:
            keys = rows.queries.keys
            others = keys != keys[-1:]
            if others.any():
                start = 0
                if carried:  # the first rows may be of the same query; the others are not copied
                    start = int((keys != carried[-1].queries.keys[-1]).argmax())
                    yield [*carried, slice_rows(rows, 0, start)] if start else carried
                # The next batch may hold more rows of the last query.
                last = len(keys) - int(others[::-1].argmax())
                if last > start:
                    yield [slice_rows(rows, start, last)]
                carried = [slice_rows(rows, last, len(keys))]
            elif carried and len(keys) and carried[-1].queries.keys[-1] != keys[0]:
                yield carried
                carried = [rows]
            elif len(keys):
                carried.append(rows)
    if carried:
        yield carried


def read_rows(
    source: Source, columns: Columns, workers: Workers
) -> Generator[LongRows, None, None]:
    """Yield all rows, a batch at a time, in the order of the input."""
    return read_batches(partial(long_rows, columns=columns), source, columns.names(), workers)


def group_lists(parts: list[LongRows], columns: Columns, *, together: bool = False) -> Lists:
    """Group long rows into one list for each query, in the order of the queries' first rows.

    The items of a query are sorted by rank if there are ranks, else by descending confidence if
    there are confidences and the columns do not say that rows are in order. Rows with the same rank
    or confidence, and rows without either, stay in row order. With `together`, rows of a query that
    are not adjacent raise ScatteredRowsError.
    """
    rows = parts[0] if len(parts) == 1 else join_rows(parts)
    queries, count = rows.queries, len(rows.queries.keys)
    first = np.empty(count, np.int64)
    first = first[: run_starts(queries, first)]
    offsets = np.append(first, count)
    groups, distinct = grouped(take_ids(queries, first))
    found = len(distinct)
    order = None
    if found < len(first):
        if together:
            raise ScatteredRowsError
        groups = np.repeat(groups, np.diff(offsets))
        first = first[distinct]
        offsets, order = np.empty(found + 1, np.int64), np.empty(count, np.int64)
        sort_by_group(groups, found, offsets, order)
    item_of_row = None
    if rows.keep is not None:
        order = np.arange(count) if order is None else order
        offsets = drop_values(offsets, rows.keep[order])
        order = order[rows.keep[order]]
        item_of_row = np.cumsum(rows.keep) - 1
    tied = 0
    if rows.ranks is not None:
        order, tied = sort_values(offsets, rows.ranks, order)
    elif rows.numbers is not None and not columns.in_order:
        order, tied = sort_values(offsets, -rows.numbers, order)
    items, numbers = rows.items, rows.numbers
    if order is not None:
        items = take_ids(items, order if item_of_row is None else item_of_row[order])
        numbers = None if numbers is None else numbers[order]
    nulls = count - len(rows.items.keys)
    queries = take_ids(queries, first)
    return Lists(queries, offsets, items, numbers, nulls, tied, Place(rows.source), count)


def join_rows(parts: list[LongRows]) -> LongRows:
    """The rows of all parts, in one part."""
    keep = None
    if any(part.keep is not None for part in parts):
        keep = np.concatenate(
            [np.ones(len(p.queries.keys), np.bool_) if p.keep is None else p.keep for p in parts]
        )
    return LongRows(
        join_ids([part.queries for part in parts]),
        join_ids([part.items for part in parts]),
        keep,
        _joined([part.numbers for part in parts]),
        _joined([part.ranks for part in parts]),
        parts[0].source,
    )


def slice_lists(lists: Lists) -> list[Lists]:
    """Cut lists into blocks of about BATCH_VALUES items; the first block has all the counts."""
    count = len(lists.offsets) - 1
    steps = np.arange(BATCH_VALUES, lists.offsets[-1] + BATCH_VALUES, BATCH_VALUES)
    ends = np.unique([*np.searchsorted(lists.offsets, steps).clip(max=count), count])
    blocks: list[Lists] = []
    start = 0
    for end in ends.tolist():
        block = lists.slice(start, end)
        block = block if not blocks else replace(block, nulls=0, tied=0)
        blocks.append(replace(block, rows=len(block.items.keys) + block.nulls))
        start = end
    return blocks


def slice_rows(rows: LongRows, start: int, end: int) -> LongRows:
    """The rows from `start` to `end` (exclusive), as views."""
    first, last = start, end
    if rows.keep is not None:
        first = int(rows.keep[:start].sum())
        last = first + int(rows.keep[start:end].sum())
    return replace(
        rows,
        queries=slice_ids(rows.queries, start, end),
        items=slice_ids(rows.items, first, last),
        keep=None if rows.keep is None else rows.keep[start:end],
        numbers=None if rows.numbers is None else rows.numbers[start:end],
        ranks=None if rows.ranks is None else rows.ranks[start:end],
    )


def _ranks(batch: Batch, name: str, keep: Any) -> np.ndarray:
    raw = batch.data.column(name)
    if raw.null_count:
        missing = ~validity_of(raw)
        if keep is not None:
            missing &= keep
        if missing.any():
            raise InputError(
                f"{batch.source}: {batch.place.of(int(missing.argmax()))} has no rank (null "
                f"in column {name!r}); expected an integer in every row"
            )
        if kinds.is_null(raw.type):  # all items of this file are null
            return np.zeros(len(raw), np.int64)
        raw = raw.fill_null(0)
    try:
        return numbers_of(raw.cast(pa.int64()))
    except pa.ArrowInvalid as error:
        raise InputError(f"{batch.source}: column {name!r} for the rank: {error}") from None


def _joined(parts: list[Any]) -> np.ndarray | None:
    return None if not parts or parts[0] is None else np.concatenate(parts)


# ------------------------------------------------------------------ scattered rows beyond memory

# The most parts into which rows are cut, because smaller parts would be slow.
MOST_PARTITIONS = 256
# Rows are cut together if there is room, until a part has so many: each part has a cost of its own.
ROWS_OF_A_PART = 1 << 10


# Where a record batch of some rows is in the file, its schema, and the source of the rows.
_Packed = tuple[tuple[int, int], Any, str]


def grouped_lists(
    source: Source, columns: Columns, workers: Workers, memory: int | None
) -> Generator[Lists, None, None]:
    """Yield the lists of all rows, grouped in memory, or on disk if that needs more than `memory`.

    If `memory` is None, there is no limit.
    """
    held: list[LongRows] = []
    count = 0
    with closing(read_rows(source, columns, workers)) as batches:
        for rows in batches:
            held.append(rows)
            count += len(rows.queries.keys)
            if memory is not None and max(count, source.rows or 0) * BYTES_A_ROW > memory:
                every = itertools.chain(_emptied(held), batches)
                yield from _spilled_lists(every, source, columns, workers, memory)
                return
    if held:
        yield from slice_lists(group_lists(held, columns))


def _emptied(held: list[LongRows]) -> Iterator[LongRows]:
    """Yield the rows and drop each from the list, so that it is freed when it is done with."""
    held.reverse()
    while held:
        yield held.pop()


def _spilled_lists(
    batches: Iterable[LongRows], source: Source, columns: Columns, workers: Workers, memory: int
) -> Generator[Lists, None, None]:
    """Yield the lists of all rows, which are grouped in partitions of a temporary file.

    All rows of a query go to the same partition and keep their order. The number of partitions is
    chosen so that the partitions in memory use `memory` bytes at most; they may use more if that
    would need more than MOST_PARTITIONS.
    """
    # One partition is grouped, while others wait as lists, which take a third of that.
    a_row = BYTES_A_ROW + (2 * workers.threads + 1) * BYTES_A_ROW // 3
    count = MOST_PARTITIONS
    if source.rows is not None:
        count = min(count, -(-source.rows * a_row // memory))
    places: list[list[_Packed]] = [[] for _ in range(count)]
    schemas: dict[Any, Any] = {}  # many record batches share a few schemas
    with Overflow(source.name, "rows whose queries are scattered") as file:
        # Named by their roles, because a column may have several.
        roles: dict[str, Any] = {role: role for role in columns.mapping()}
        columns = replace(columns, **roles)
        part = partial(_part, columns=columns, count=count)
        portions = _portions(batches, min(count * ROWS_OF_A_PART, memory // a_row))
        with closing(workers.map(part, portions)) as parted:
            for parts in parted:
                for number, data, name in parts:
                    schema = schemas.setdefault(data.schema, data.schema)
                    places[number].append((file.add(data.serialize()), schema, name))
        for partition in places:
            if partition:
                yield from slice_lists(_grouped(file, partition, columns))


def _portions(batches: Iterable[LongRows], rows: int) -> Iterator[list[LongRows]]:
    """Yield batches, so many together that they have `rows` rows; the last ones may have fewer."""
    held: list[LongRows] = []
    count = 0
    for one in batches:
        held.append(one)
        count += len(one.queries.keys)
        if count >= rows:
            yield held
            held, count = [], 0
    if held:
        yield held


def _grouped(file: Overflow, partition: list[_Packed], columns: Columns) -> Lists:
    """Group the rows of a partition into lists; the rows are freed on return."""
    rows = []
    for place, schema, source in partition:
        data = pa.ipc.read_record_batch(file.read(place), schema)
        rows.append(long_rows(Batch(data, Place(source)), columns))
    return group_lists(rows, columns)


def _part(portion: list[LongRows], columns: Columns, count: int) -> list[tuple[int, Any, str]]:
    """Split some rows by partition, into record batches; partitions without rows are left out."""
    rows = portion[0] if len(portion) == 1 else join_rows(portion)
    order, partitions = in_partitions(rows.queries, count)
    data = _pack(rows, columns, order)
    return [
        (number, data.slice(start, end - start), rows.source)
        for number, (start, end) in enumerate(partitions)
        if end > start
    ]


def _pack(rows: LongRows, columns: Columns, order: np.ndarray) -> Any:
    """Rows in an order as a batch, from which `long_rows` makes them again."""
    made = {columns.query: ids_to_arrow(take_ids(rows.queries, order), set())}
    if rows.keep is None:
        items = ids_to_arrow(take_ids(rows.items, order), set())
    else:
        keep = rows.keep[order]
        item_of_row = np.cumsum(rows.keep) - 1
        items = ids_to_arrow(take_ids(rows.items, item_of_row[order[keep]]), set())
        items = items.take(arrow_of(np.cumsum(keep) - 1, ~keep))
    made[columns.item] = items
    if rows.numbers is not None:
        made[str(columns.score or columns.gain)] = arrow_of(rows.numbers[order])
    if rows.ranks is not None:
        made[str(columns.rank)] = arrow_of(rows.ranks[order])
    return pa.RecordBatch.from_arrays([*made.values()], names=[*made])
