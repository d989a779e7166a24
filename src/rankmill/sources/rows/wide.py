"""Turn wide rows into lists, and check query ids and numbers of any shape."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from rankmill.columns.buffers import floats_of, pc, validity_of
from rankmill.columns.ids import drop_nulls, id_text, plain, take_ids, to_ids
from rankmill.columns.lists import drop_values, sort_values, split_lists
from rankmill.columns.ranked_lists import Lists, Place
from rankmill.errors import InputError
from rankmill.kernels.identity import Ids
from rankmill.sources.roles.source import Batch, Columns


def wide_lists(batch: Batch, columns: Columns) -> Lists:
    """The lists of a batch of wide rows."""
    queries = queries_of(batch, columns)
    offsets, values = split_lists(batch.data.column(columns.item))
    values = plain(values, f"{batch.source}: column {columns.item!r}")
    numbers = ranks = None
    name = columns.score or columns.gain
    keep = validity_of(values) if values.null_count else None
    beside = partial(beside_items, batch, columns, queries, offsets)
    if name is not None:
        numbers = numbers_of_lists(beside(name), keep, offsets, queries, columns, batch.place)
    if columns.rank is not None:
        ranks = floats_of(beside(columns.rank), f"{batch.source}: column {columns.rank!r}")
        if np.isnan(ranks if keep is None else ranks[keep]).any():
            raise InputError(
                f"{batch.source}: column {columns.rank!r} for the rank: a rank is missing; "
                "expected an integer for every item"
            )
    nulls = values.null_count
    if keep is not None:
        offsets = drop_values(offsets, keep)
        values = drop_nulls(values)
        numbers = None if numbers is None else numbers[keep]
        ranks = None if ranks is None else ranks[keep]
    items = to_ids(values, f"{batch.source}: column {columns.item!r}")
    lists = Lists(queries, offsets, items, numbers, nulls, 0, batch.place, batch.data.num_rows)
    if ranks is not None:
        return _ordered(lists, ranks)
    return by_score(lists) if columns.unordered else lists


def beside_items(
    batch: Batch, columns: Columns, queries: Ids, offsets: np.ndarray, name: str
) -> Any:
    """The values of the lists of a column, as many as there are items."""
    number_offsets, raw = split_lists(batch.data.column(name))
    if not np.array_equal(offsets, number_offsets):
        row = int((np.diff(offsets) != np.diff(number_offsets)).argmax())
        raise InputError(
            f"{batch.source}: {batch.place.of(row)} (query {id_text(queries, row)}) has "
            f"{offsets[row + 1] - offsets[row]} items in {columns.item!r} and "
            f"{number_offsets[row + 1] - number_offsets[row]} numbers in {name!r}; expected "
            "the same number of both"
        )
    return raw


def by_score(lists: Lists) -> Lists:
    """The lists in the order of falling confidence, as long rows are."""
    return _ordered(lists, -lists.confidences)


def _ordered(lists: Lists, keys: np.ndarray) -> Lists:
    order, tied = sort_values(lists.offsets, keys)
    if order is None:
        return replace(lists, tied=tied)
    numbers = None if lists.numbers is None else lists.numbers[order]
    return replace(lists, items=take_ids(lists.items, order), numbers=numbers, tied=tied)


def numbers_of_lists(
    raw: Any, keep: Any, offsets: np.ndarray, queries: Ids, columns: Columns, place: Place
) -> np.ndarray:
    """The checked numbers of the items of lists; `place` tells where the lists stand."""
    numbers, bad = checked_numbers(raw, keep, columns, place.source)
    if bad >= 0:
        row = int(np.searchsorted(offsets, bad, side="right")) - 1
        where = f"{place.of(row)} (query {id_text(queries, row)})"
        spot = f"{where}, place {bad - offsets[row]} of its list"
        raise number_error(place.source, spot, str(columns.score or columns.gain), raw[bad])
    return numbers


def queries_of(batch: Batch, columns: Columns) -> Ids:
    """The query ids of a batch; raises InputError if one is null."""
    column = plain(batch.data.column(columns.query), f"{batch.source}: column {columns.query!r}")
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise InputError(
            f"{batch.source}: {batch.place.of(row)} has no query id (null in column "
            f"{columns.query!r}); expected an id in every row: fill it in or drop the row"
        )
    return to_ids(column, f"{batch.source}: column {columns.query!r}")


def confidences_of(raw: Any, columns: Columns, source: str) -> np.ndarray:
    """Confidences as float32 or float64, not yet checked."""
    values = floats_of(raw, f"{source}: column {columns.score or columns.gain!r}")
    if columns.nan_last and len(values) and np.isnan(values.max()):
        values = np.where(np.isnan(values), values.dtype.type(-math.inf), values)
    return values


def checked_numbers(raw: Any, keep: Any, columns: Columns, source: str) -> tuple[np.ndarray, int]:
    """Numbers as float32 or float64, and the place of the first bad number, or -1.

    Only the numbers marked in `keep` are checked. NaN is bad, and so is an infinite gain.
    """
    allow_infinite = columns.gain is None
    values = confidences_of(raw, columns, source)
    if allow_infinite and not (len(values) and np.isnan(values.max())):
        return values, -1
    good = ~np.isnan(values) if allow_infinite else np.isfinite(values)
    if keep is not None:
        good |= ~keep
    return values, -1 if good.all() else int(good.argmin())


def number_error(source: str, where: str, name: str, found: Any) -> InputError:
    """Return the error for a number that is missing or not valid."""
    value = found.as_py()
    shown = "missing (null or NaN)" if value is None else value
    return InputError(
        f"{source}: {where}: column {name!r} is {shown}; expected a number for every item: "
        "fill it in or drop the item"
    )
