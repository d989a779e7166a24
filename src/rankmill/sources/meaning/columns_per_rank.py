"""A column for each rank as one list a query, and columns that hold values of items instead."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import arrow_of, is_number_type
from rankmill.errors import InputError
from rankmill.sources.meaning.column_names import (
    ALIASES,
    ITEM_ALIASES,
    Finder,
    how,
    named_columns,
    plain,
)
from rankmill.sources.meaning.looks import BOOLEAN, head
from rankmill.sources.meaning.values import derived, numbers_or_none
from rankmill.sources.roles.source import Batch, InputOptions, Role, Source

# What a column per rank may be called, before its number: names of ranks, those that may also be of
# the value of an item, and those that are, if there are numbers.
SURELY = {plain(one) for one in ITEM_ALIASES["predictions"]} | {
    *("rec", "pred", "top", "rank", "choice"),
}
OF_VALUES = {"label", "target", "relevant"}
OF_RANKS = SURELY | OF_VALUES | {plain(one) for one in ALIASES["item"]} | {"", "movie"}
# So many rows tell whether columns hold items, and grades are small up to this one.
ROWS, GRADE = 1_000, 5
PADDING = -1
# What no ids can be, whatever they are called.
BOOLEANS, FRACTIONS = NO_IDS = "hold booleans", "hold fractions"


def ranked_columns(names: Iterable[str]) -> list[str]:
    """The columns per rank, such as rec_1, rec_2, rec_3, in the order of ranks; none if unclear.

    Examples
    --------
    >>> ranked_columns(["user_id", "rec_2", "rec_1", "age"]), ranked_columns(["f1", "f2"])
    (['rec_1', 'rec_2'], [])
    """
    stems: dict[str, dict[int, str]] = {}
    for name in names:
        stem, number = _parts(name)
        if number and plain(stem) in OF_RANKS:
            stems.setdefault(stem, {})[int(number)] = name
    runs = [of for of in stems.values() if len(of) > 1 and max(of) - min(of) == len(of) - 1]
    runs = [of for of in runs if min(of) in (0, 1)]
    return [runs[0][rank] for rank in sorted(runs[0])] if len(runs) == 1 else []


def _parts(name: str) -> tuple[str, str]:
    """The name before its number, and the number; empty if there is none."""
    found = re.fullmatch(r"(.*?)[-_ ]?(\d+)", name)
    return (found[1], found[2]) if found else (name, "")


def with_ranked(
    source: Source, names: Sequence[str], asked: InputOptions
) -> tuple[Source, InputOptions]:
    """The source with one column of lists in the place of a column per rank.

    InputError if these seem to hold values, unless they are named together as the item.
    """
    name = _together(names)
    if asked.item not in (None, name):
        return source, asked
    if asked.item is None:
        if seen := _values_seen(source, names):
            raise _no_items(source, names, asked.role, seen)
        source = replace(source, ranked=(asked.role, names))
    return _with_lists(source, names, name), replace(asked, item=name)


def _together(columns: Sequence[str]) -> str:
    return f"{columns[0]} to {columns[-1]}"


def _with_lists(source: Source, columns: Sequence[str], name: str) -> Source:
    def kind_of(file: str, schema: Any) -> Any:
        return pa.large_list(_common({schema.field(one).type for one in columns}))

    def make(batch: Batch) -> Any:
        arrays = [batch.data.column(one) for one in columns]
        kind = _common({one.type for one in arrays})
        count, rows = len(columns), batch.data.num_rows
        flat = pa.concat_arrays([one.cast(kind) for one in arrays])
        at = (np.arange(count) * rows)[None, :] + np.arange(rows)[:, None]
        offsets = arrow_of(np.arange(0, count * rows + 1, count))
        return pa.LargeListArray.from_arrays(offsets, flat.take(arrow_of(at.ravel())))

    for one in columns:
        source.findings.used("column per rank", one)
    return derived(source, name, tuple(columns), kind_of, make)


def _common(found: set[Any]) -> Any:
    """A type for the values of several columns; a column of nulls has that of the others."""
    some = {one for one in found if not kinds.is_null(one)} or {pa.null()}
    if len(some) == 1:
        return some.pop()
    if all(map(kinds.is_integer, some)):
        return pa.int64()
    return pa.float64() if all(map(is_number_type, some)) else pa.large_string()


# ------------------------------------------------------------------ values instead of items


def _values_seen(source: Source, columns: Sequence[str]) -> str:
    """What tells that the columns hold a value for each item; empty if they may hold items."""
    finder = Finder(source, {}, "labels")
    looks = {finder.look(one) for one in columns} - {"nothing"}
    for some, what in (({*BOOLEAN}, BOOLEANS), ({"percent"}, "hold percentages")):
        if looks and looks <= some:
            return what
    grid = _grid(source, columns) if looks <= {"integer", "fraction", "boolean"} else None
    if grid is None:
        return ""
    found = grid[~np.isnan(grid)]
    if (found % 1 > 0).any():
        return FRACTIONS
    if not len(found):
        return ""
    least, most = found.min(), found.max()
    if (least, most) == (0, 1):
        return "hold nothing but 0 and 1"
    again = list(map(_repeats, grid.tolist()))
    if 2 * sum(again) > len(again):
        row = grid[again.index(True)]
        return f"repeat a number in most rows, such as {_shown(row)}"
    stem = plain(_parts(columns[0])[0])
    if stem in OF_VALUES:
        return f"hold numbers, such as {_shown(grid[0])}"
    if stem not in SURELY and least >= 0 and most <= GRADE:
        return f"hold nothing but small numbers, such as {_shown(grid[0])}"
    return ""


def _grid(source: Source, columns: Sequence[str]) -> np.ndarray | None:
    """The numbers of the first rows, NaN where one is missing; None if some are no numbers."""
    rows = head(source, columns, ROWS)
    found = [numbers_or_none(rows[one], one) for one in columns]
    some = [one for one in found if one is not None]
    return np.column_stack(some) if len(some) == len(found) else None


def _repeats(row: list[float]) -> bool:
    """Whether a row repeats a number that is no padding, as that behind its last item is."""
    there = [one for one in row if one == one and one != PADDING]
    while there[1:] and there[-1] == there[-2]:
        there.pop()
    return len({*there}) < len(there)


def _shown(row: np.ndarray) -> str:
    return ", ".join(f"{one:.0f}" for one in row[~np.isnan(row)][:3].tolist())


def check_no_values(source: Source, ids: set[str]) -> None:
    """Raise InputError if columns per rank are named after the ids of the other side instead."""
    side, columns = source.ranked or ("labels", ())
    numbers = {str(int(_parts(one)[1])) for one in columns}
    grid = _grid(source, columns) if ids and ids <= numbers else None
    if grid is None:
        return
    values = {f"{one:.0f}" for one in grid[~np.isnan(grid)].tolist()} - {f"{PADDING}"}
    surely = plain(_parts(columns[0])[0]) in SURELY
    strange = not values & ids if surely else not values <= numbers
    if values and strange:
        theirs = ", ".join(sorted(ids, key=int)[:3])
        what = f"hold {_shown(grid[0])}, and the other side the items {theirs}, after which "
        raise _no_items(source, columns, side, what + "they are named")


def _no_items(source: Source, columns: Sequence[str], side: Role, seen: str) -> InputError:
    number = "score" if side == "predictions" else "gain"
    todo = (
        f"if each is of an item, give rows of a user, an item and its {number}, or a "
        "rankmill.arrays.Matrix in Python"
    )
    if side in ("labels", "predictions") and seen not in NO_IDS:
        told = how("item", side, _together(columns))
        if side == "predictions":  # the option alone would be of both sides
            told = told.replace(" on the", " and --label-item NAME on the", 1)
        todo += f"; if they hold an item for each rank, use {told}"
    file = next(iter(source.schemas))
    return InputError(
        f"{file} ({named_columns(columns)}): they {seen}, so they may be no items: {todo}"
    )
