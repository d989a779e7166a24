"""From batches of an input to lists: wide rows as they are, long rows grouped by query."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from rankmill.buffers import numbers_of, validity_of
from rankmill.errors import InputError
from rankmill.ids import drop_nulls, id_text, join_ids, slice_ids, take_ids, to_ids
from rankmill.kernels.identity import Ids, group_rows
from rankmill.kernels.lists import sort_by_group, sort_lists
from rankmill.lists import drop_values, split_lists
from rankmill.sources.base import BATCH_VALUES, Batch
from rankmill.sources.columns import Columns


@dataclass(frozen=True)
class Lists:
    """The lists of some queries.

    Attributes
    ----------
    queries : Ids, n
    offsets, items : int64[n + 1], Ids
        The items of each query, null items left out.
    numbers : float32 or float64, one an item, or None
        Confidences of predictions, gains of labels.
    nulls : int
        Null items that were left out.
    tied : int
        Items whose place among equal confidences was decided by file order.
    place : tuple of str and int
        The file, and the row of the first list if each row is a list, else -1.
    """

    queries: Ids
    offsets: np.ndarray
    items: Ids
    numbers: np.ndarray | None
    nulls: int
    tied: int
    place: tuple[str, int]

    @property
    def confidences(self) -> np.ndarray:
        """The numbers, which were asked for."""
        assert self.numbers is not None
        return self.numbers


@dataclass(frozen=True)
class Rows:
    """Some rows of a long input; ``keep`` marks those with an item, ``items`` holds only these."""

    queries: Ids
    items: Ids
    keep: np.ndarray | None
    numbers: np.ndarray | None
    ranks: np.ndarray | None
    source: str


def wide_lists(batch: Batch, columns: Columns) -> Lists:
    """The lists of a batch of wide rows."""
    queries = _queries(batch, columns)
    offsets, values = split_lists(batch.data.column(columns.item))
    numbers = None
    name = columns.score or columns.gain
    keep = validity_of(values) if values.null_count else None
    if name is not None:
        number_offsets, raw = split_lists(batch.data.column(name))
        if not np.array_equal(offsets, number_offsets):
            row = int((np.diff(offsets) != np.diff(number_offsets)).argmax())
            raise InputError(
                f"{batch.source}: row {batch.first_row + row} (query {id_text(queries, row)}) has "
                f"{offsets[row + 1] - offsets[row]} items in {columns.item!r} and "
                f"{number_offsets[row + 1] - number_offsets[row]} numbers in {name!r}; expected as "
                "many of both"
            )
        numbers, bad = _numbers(raw, keep, allow_infinite=columns.gain is None)
        if bad >= 0:
            row = int(np.searchsorted(offsets, bad, side="right")) - 1
            where = f"row {batch.first_row + row} (query {id_text(queries, row)})"
            spot = f"{where}, place {bad - offsets[row]} of its list"
            raise _number_error(batch.source, spot, name, raw[bad])
    nulls = values.null_count
    if keep is not None:
        offsets = drop_values(offsets, keep)
        values = drop_nulls(values)
        numbers = None if numbers is None else numbers[keep]
    items = to_ids(values, f"{batch.source}: column {columns.item!r}")
    place = (batch.source, batch.first_row)
    return Lists(queries, offsets, items, numbers, nulls, 0, place)


def long_rows(batch: Batch, columns: Columns) -> Rows:
    """The rows of a batch of long rows."""
    queries = _queries(batch, columns)
    values = batch.data.column(columns.item)
    keep = validity_of(values) if values.null_count else None
    items = to_ids(drop_nulls(values), f"{batch.source}: column {columns.item!r}")
    numbers = ranks = None
    name = columns.score or columns.gain
    if name is not None:
        raw = batch.data.column(name)
        numbers, bad = _numbers(raw, keep, allow_infinite=columns.gain is None)
        if bad >= 0:
            where = f"row {batch.first_row + bad} (query {id_text(queries, bad)})"
            raise _number_error(batch.source, where, name, raw[bad])
    if columns.rank is not None:
        ranks = _ranks(batch, columns.rank, keep)
    return Rows(queries, items, keep, numbers, ranks, batch.source)


def group_lists(parts: list[Rows]) -> Lists:
    """The lists of all long rows: by query in order of first appearance.

    Within a query by rank if there are ranks, else by falling confidence if there are any, equal
    ones in row order, else in row order.
    """
    queries = join_ids([part.queries for part in parts])
    items = join_ids([part.items for part in parts])
    groups = np.empty(len(queries.keys), np.int64)
    first = np.empty(len(queries.keys), np.int64)
    count = group_rows(queries, groups, first)
    first = first[:count]
    offsets = np.empty(count + 1, np.int64)
    order = np.empty(len(groups), np.int64)
    sort_by_group(groups, count, offsets, order)
    nulls = len(groups) - len(items.keys)
    item_of_row = None
    if nulls:
        keep = np.concatenate(
            [np.ones(len(p.queries.keys), np.bool_) if p.keep is None else p.keep for p in parts]
        )
        item_of_row = np.cumsum(keep) - 1
        offsets = drop_values(offsets, keep[order])
        order = order[keep[order]]
    numbers = _joined([part.numbers for part in parts])
    ranks = _joined([part.ranks for part in parts])
    tied = 0
    if ranks is not None:
        sort_lists(offsets, ranks, order)
    elif numbers is not None:
        tied = sort_lists(offsets, -numbers, order)
    return Lists(
        take_ids(queries, first),
        offsets,
        take_ids(items, order if item_of_row is None else item_of_row[order]),
        None if numbers is None else numbers[order],
        nulls,
        tied,
        (parts[0].source, -1),
    )


def slice_lists(lists: Lists) -> list[Lists]:
    """The same lists in blocks of about BATCH_VALUES items; the first one carries the counts."""
    count = len(lists.offsets) - 1
    steps = np.arange(BATCH_VALUES, lists.offsets[-1] + BATCH_VALUES, BATCH_VALUES)
    ends = np.unique(np.minimum(np.searchsorted(lists.offsets, steps), count))
    blocks = []
    start = 0
    for end in ends.tolist() or [count]:
        a, b = lists.offsets[start], lists.offsets[end]
        blocks.append(
            Lists(
                slice_ids(lists.queries, start, end),
                lists.offsets[start : end + 1] - a,
                slice_ids(lists.items, a, b),
                None if lists.numbers is None else lists.numbers[a:b],
                lists.nulls if start == 0 else 0,
                lists.tied if start == 0 else 0,
                lists.place,
            )
        )
        start = end
    return blocks


def _queries(batch: Batch, columns: Columns) -> Ids:
    column = batch.data.column(columns.query)
    if column.null_count:
        row = batch.first_row + pc.index(column.is_null(), True).as_py()
        raise InputError(
            f"{batch.source}: row {row} has no query id (null in column {columns.query!r}); "
            "expected an id in every row: fill it in or drop the row"
        )
    return to_ids(column, f"{batch.source}: column {columns.query!r}")


def as_floats(numbers: Any) -> Any:
    """Numbers of any Arrow type as float32 or float64, without loss."""
    kind = numbers.type
    if kinds.is_float32(kind) or kinds.is_float64(kind):
        return numbers
    try:
        return numbers.cast(pa.float32() if kinds.is_float16(kind) else pa.float64())
    except pa.ArrowInvalid as error:  # float64 cannot hold every integer beyond 2**53
        raise InputError(f"numbers cannot be compared exactly as float64: {error}") from None


def _numbers(raw: Any, keep: Any, allow_infinite: bool) -> tuple[np.ndarray, int]:
    """Numbers as float32 or float64, and the first bad place among those to keep, or -1."""
    values = numbers_of(as_floats(raw), null=math.nan)
    if allow_infinite and not (len(values) and np.isnan(values.max())):
        return values, -1
    good = ~np.isnan(values) if allow_infinite else np.isfinite(values)
    if keep is not None:
        good |= ~keep
    return values, -1 if good.all() else int(good.argmin())


def _number_error(source: str, where: str, name: str, found: Any) -> InputError:
    return InputError(
        f"{source}: {where}: column {name!r} is {found.as_py()}; expected a number for every item: "
        "fill it in or drop the item"
    )


def _ranks(batch: Batch, name: str, keep: Any) -> np.ndarray:
    raw = batch.data.column(name)
    if raw.null_count:
        missing = ~validity_of(raw)
        if keep is not None:
            missing &= keep
        if missing.any():
            raise InputError(
                f"{batch.source}: row {batch.first_row + int(missing.argmax())} has no rank (null "
                f"in column {name!r}); expected an integer in every row"
            )
        raw = raw.fill_null(0)
    try:
        return numbers_of(raw.cast(pa.int64()))
    except pa.ArrowInvalid as error:
        raise InputError(f"{batch.source}: column {name!r} for the rank: {error}") from None


def _joined(parts: list[Any]) -> np.ndarray | None:
    return None if not parts or parts[0] is None else np.concatenate(parts)
