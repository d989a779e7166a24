"""Lists, and how wide rows become lists."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.buffers import numbers_of, validity_of
from rankmill.errors import InputError
from rankmill.ids import drop_nulls, id_text, plain, to_ids
from rankmill.kernels.identity import Ids
from rankmill.lists import drop_values, split_lists
from rankmill.sources.base import Batch
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
    rows : int
        Rows of the input that they came from.
    repeats : int
        Items that were dropped since they repeat an earlier one of their list.
    """

    queries: Ids
    offsets: np.ndarray
    items: Ids
    numbers: np.ndarray | None
    nulls: int
    tied: int
    place: tuple[str, int]
    rows: int
    repeats: int = 0

    @property
    def confidences(self) -> np.ndarray:
        """The numbers, which were asked for."""
        assert self.numbers is not None
        return self.numbers


def wide_lists(batch: Batch, columns: Columns) -> Lists:
    """The lists of a batch of wide rows."""
    queries = queries_of(batch, columns)
    offsets, values = split_lists(batch.data.column(columns.item))
    values = plain(values, f"{batch.source}: column {columns.item!r}")
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
        numbers, bad = checked_numbers(raw, keep, columns)
        if bad >= 0:
            row = int(np.searchsorted(offsets, bad, side="right")) - 1
            where = f"row {batch.first_row + row} (query {id_text(queries, row)})"
            spot = f"{where}, place {bad - offsets[row]} of its list"
            raise number_error(batch.source, spot, name, raw[bad])
    nulls = values.null_count
    if keep is not None:
        offsets = drop_values(offsets, keep)
        values = drop_nulls(values)
        numbers = None if numbers is None else numbers[keep]
    items = to_ids(values, f"{batch.source}: column {columns.item!r}")
    place = (batch.source, batch.first_row)
    return Lists(queries, offsets, items, numbers, nulls, 0, place, batch.data.num_rows)


def queries_of(batch: Batch, columns: Columns) -> Ids:
    """The query ids of a batch; raises InputError if one is null."""
    column = plain(batch.data.column(columns.query), f"{batch.source}: column {columns.query!r}")
    if column.null_count:
        import pyarrow.compute as pc

        row = batch.first_row + pc.index(column.is_null(), True).as_py()
        raise InputError(
            f"{batch.source}: row {row} has no query id (null in column {columns.query!r}); "
            "expected an id in every row: fill it in or drop the row"
        )
    return to_ids(column, f"{batch.source}: column {columns.query!r}")


def floats_of(numbers: Any) -> np.ndarray:
    """Numbers of any Arrow type as float32 or float64, a null as NaN.

    Raises
    ------
    InputError
        If an integer has no float64 of the same value.
    """
    kind = numbers.type
    if kinds.is_float16(kind):
        numbers = numbers.cast(pa.float32())
    if kinds.is_null(kind):
        return np.full(len(numbers), math.nan)
    if not kinds.is_integer(kind):
        return numbers_of(numbers, null=math.nan)
    integers = numbers_of(numbers, null=0)
    floats = integers.astype(np.float64)
    limit = float(np.iinfo(integers.dtype).max)  # 2**63 or 2**64 as float64: beyond the type
    inexact = (floats >= limit) if limit > 2**53 else np.zeros(len(floats), np.bool_)
    inexact |= np.where(inexact, 0, floats).astype(integers.dtype) != np.where(inexact, 0, integers)
    if inexact.any():
        raise InputError(
            f"the number {integers[int(inexact.argmax())]} has no float64 of the same value; cast "
            "the column to double first if rounding does no harm"
        )
    if numbers.null_count:
        floats[~validity_of(numbers)] = math.nan
    return floats


def confidences_of(raw: Any, columns: Columns) -> np.ndarray:
    """Confidences as float32 or float64, not yet checked."""
    values = floats_of(raw)
    if columns.nan_last and len(values) and np.isnan(values.max()):
        values = np.where(np.isnan(values), values.dtype.type(-math.inf), values)
    return values


def checked_numbers(raw: Any, keep: Any, columns: Columns) -> tuple[np.ndarray, int]:
    """Numbers as float32 or float64, and the first bad place among those to keep, or -1."""
    allow_infinite = columns.gain is None
    values = confidences_of(raw, columns)
    if allow_infinite and not (len(values) and np.isnan(values.max())):
        return values, -1
    good = ~np.isnan(values) if allow_infinite else np.isfinite(values)
    if keep is not None:
        good |= ~keep
    return values, -1 if good.all() else int(good.argmin())


def number_error(source: str, where: str, name: str, found: Any) -> InputError:
    """The error of a number that is missing or cannot be ordered by."""
    return InputError(
        f"{source}: {where}: column {name!r} is {found.as_py()}; expected a number for every item: "
        "fill it in or drop the item"
    )
