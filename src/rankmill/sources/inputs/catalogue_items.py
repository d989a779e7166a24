"""The items of a catalogue and their features, a column of any table or file with lists or rows."""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import floats_of, is_number_type, pc
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
from rankmill.columns.lists import is_list_type, offsets_of, split_lists, values_in
from rankmill.columns.ragged_lists import Groups
from rankmill.columns.ranked_lists import Place
from rankmill.errors import InputError, UsageError
from rankmill.kernels.identity import Ids
from rankmill.sources.inputs.any_source import open_source
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.meaning.looks import NUMBERS, look_of
from rankmill.sources.meaning.plain_ids import with_plain_ids, without_padding
from rankmill.sources.meaning.roles import find_item
from rankmill.sources.meaning.shapes import NO_FACTS
from rankmill.sources.meaning.values import column_values, with_column, with_numbers
from rankmill.sources.roles.source import Batch, Columns, InputOptions, Source, read_batches
from rankmill.threads import Workers


def open_items(
    value: Any,
    item: str | None,
    group: str | None = None,
    padding: str | None = None,
    seen: Mapping[str, str] = NO_FACTS,
) -> Input:
    """Open a catalogue of items, whose column may have the name `item`.

    `group` names the column of their groups, with a value or a list of values a row; `padding` is
    an item that is none. `seen` are columns, each with the metric that sees it.
    """
    source = _open(value, item)
    try:
        schema = source.schema
        named = item if item in schema.names else None
        others = [name for name in schema.names if name != group and name not in seen]
        if named is None and len(others) == 1:
            named = others[0]
        named = find_item(source, named, "items")
        wide = is_list_type(schema.field(named).type)
        if group is not None:
            if group == named:
                raise UsageError(
                    f"{group!r} is the column of the items: name another one with --item-group"
                )
            _check_group(source, group, wide)
        for name, metric in seen.items():
            source = with_column(source, name, metric, (named, group))
        if wide and seen:
            raise InputError(
                f"{source.name}: the items are in lists, so {', '.join(seen)} cannot be of each: "
                "give one row per item"
            )
        source = with_plain_ids(source, named, "item")
        if padding is not None:
            source = without_padding(source, named, padding)
    except BaseException:
        source.close()
        raise
    facts = () if group is None else (group,)
    return Input(source, Columns("", named, wide, facts=facts, seen=(*seen,)))


def _open(value: Any, item: str | None) -> Source:
    """Open what may be no table: a list of texts is one of files."""
    todo = "; give items as a table, such as pyarrow.table({'item_id': [1, 2, 3]})"
    if isinstance(value, str | os.PathLike):
        todo = ""
    try:
        return open_source(value, InputOptions("items", item=item))
    except InputError as error:
        raise InputError(f"{error}{todo}") from None
    except UsageError as error:
        raise UsageError(f"{error}{todo}") from None


def _check_group(source: Source, group: str, wide: bool) -> None:
    for file, schema in source.schemas.items():
        if source.bare or group not in schema.names:
            there = ", ".join(schema.names)
            raise InputError(
                f"{file}: no column {group!r} for the groups; the columns are {there}: name one "
                "with --item-group"
            )
    if wide:
        raise InputError(
            f"{source.name}: the items are in lists, so {group!r} cannot give the group of each: "
            "give one row per item"
        )


class CatalogueItems(NamedTuple):
    """What a catalogue holds: its distinct items, their groups if asked for, how many rows.

    The columns that metrics see are float64, by name.
    """

    items: Ids
    groups: Groups | None
    rows: int
    columns: dict[str, np.ndarray]


def read_items(items: Input, workers: Workers) -> CatalogueItems:
    """Read a catalogue."""
    name, seen = items.columns.item, items.columns.seen
    named = [name, *items.columns.facts, *seen]

    def read(batch: Batch) -> _Part:
        values, data = values_in(batch.data.column(name)), batch.data
        what = f"{batch.source}: column {name!r}"
        values = plain(values, what)
        texts = None
        for group in items.columns.facts:
            there = pa.array(values.is_valid())
            texts = _texts(data.column(group).filter(there), f"{batch.source}: column {group!r}")
        ids, there = to_ids(drop_nulls(values), what), np.asarray(values.is_valid())
        columns = np.empty((len(seen), len(ids.keys)))
        for row, one in zip(columns, seen, strict=True):
            row[:] = column_values(batch, one)[there]
        only = distinct(ids) if texts is None and not seen else join_ids([ids])
        return only, texts, columns, data.num_rows

    found: Generator[_Part, None, None]
    if items.source.lists is not None:
        of_lists = items.source.lists(replace(items.columns, query=items.source.schema.names[0]))
        nothing = np.empty((0, 0))
        found = workers.read(of_lists, lambda one: (one.items, None, nothing, one.rows))
    else:
        found = read_batches(read, items.source, named, workers)
    with closing(found) as blocks:
        parts: list[_Part] = list(blocks)
    every = join_ids([ids for ids, *_ in parts])
    if not len(every.keys):
        raise InputError(f"{items.source.name} holds no items in column {name!r}; expected some")
    groups, first = grouped(every)
    only = join_ids([take_ids(every, first)])
    told = None
    if items.columns.facts:
        told = _groups(groups, len(first), [texts for _, texts, *_ in parts])
        if not len(told.names):
            raise InputError(
                f"{items.source.name}: column {items.columns.facts[0]!r} is empty; expected groups"
            )
    columns: dict[str, np.ndarray] = {}
    every_values = np.concatenate([each for _, _, each, _ in parts], axis=1)
    for one, values in zip(seen, every_values, strict=True):
        columns[one] = low = np.full(len(first), np.nan)
        high = low.copy()
        np.fmin.at(low, groups, values)
        np.fmax.at(high, groups, values)
        if (low < high).any():
            i = int((low < high).argmax())
            raise InputError(
                f"{items.source.name}: item {id_text(only, i)} has {low[i]:g} and {high[i]:g} in "
                f"column {one!r}; expected the same value in all rows of an item: fix its rows"
            )
    return CatalogueItems(only, told, sum(rows for *_, rows in parts), columns)


# Items, how many groups each row has and all of them, each column, and how many rows.
_Part = tuple[Ids, Any, np.ndarray, int]


def _texts(column: Any, what: str) -> tuple[np.ndarray, Any]:
    """Return how many groups each row has, and all of them as texts."""
    if is_list_type(column.type):
        offsets, values = split_lists(column)
    else:
        offsets, values = np.arange(len(column) + 1), column
    values = plain(values, what)
    valid = np.asarray(values.is_valid())
    if pa.types.is_floating(values.type):  # NaN is how a column of numbers says null
        valid = ~np.isnan(values.to_numpy(zero_copy_only=False))
    row = np.repeat(np.arange(len(column)), np.diff(offsets))[valid]
    try:
        texts = values.filter(pa.array(valid)).cast(pa.large_string())
    except pa.ArrowException as error:
        raise InputError(f"{what} holds no groups: {error}") from None
    return np.bincount(row, minlength=len(column)), texts


def _groups(item_of_row: np.ndarray, count: int, parts: list[tuple[np.ndarray, Any]]) -> Groups:
    """Return the groups of each distinct item: those of all of its rows."""
    texts = pa.chunked_array([one for _, one in parts], pa.large_string())
    names = sorted(pc.unique(texts).to_pylist())
    places = pc.index_in(texts, value_set=pa.array(names, pa.large_string()))
    code = np.asarray(places.to_numpy()).astype(np.int64)
    item = np.repeat(item_of_row, np.concatenate([sizes for sizes, _ in parts]))
    pairs = np.unique(item * len(names) + code)
    sizes = np.bincount(pairs // max(1, len(names)), minlength=count)
    return Groups(offsets_of(sizes), pairs % max(1, len(names)), names)


def distinct(ids: Ids) -> Ids:
    """Return each id once, in order of first appearance, as a copy."""
    return join_ids([take_ids(ids, grouped(ids)[1])])


# ------------------------------------------------------------------ features of items


def open_features(value: Any, item: str | None, group: str | None = None) -> Input:
    """Open the features of items, whose column may have the name `item`.

    The vector is the only column with lists of numbers. Without one, all other columns are numbers.
    The column `group` is that of the groups of items, and no part of a vector.
    """
    source = open_source(value, InputOptions("features", item=item), may_be_empty=False)
    try:
        if source.lists is not None:
            raise UsageError(
                f"{source.name} holds lists of items; expected a vector for each item: give a "
                "table, {item: vector}, or a matrix whose row i is the vector of item i"
            )
        named = _item_column(source, item)
        source = with_plain_ids(source, named, "item")
        source = _with_texts_as_numbers(source, (named, group))
        vectors = _vector_columns(source, [named, group])
    except BaseException:
        source.close()
        raise
    return Input(source, Columns("", named, wide=False, facts=tuple(vectors)))


def _with_texts_as_numbers(source: Source, apart: Sequence[str | None]) -> Source:
    """The source with numbers in the place of columns of text that hold numbers."""
    schema = source.schema
    for field in schema if not source.bare else ():
        text = is_text_type(field.type) and not is_list_type(field.type)
        if text and field.name not in apart and look_of(source, field.name) in NUMBERS:
            source = with_numbers(source, field.name, "vector")
    return source


def _item_column(source: Source, item: str | None) -> str:
    """Return the column of items."""
    schema = source.schema
    if source.bare:
        return str(schema.names[0])
    if item in schema.names:
        return str(item)
    others = [field.name for field in schema if not is_list_type(field.type)]
    return find_item(source, others[0] if len(others) == 1 else None, "features")


def _vector_columns(source: Source, apart: list[str | None]) -> list[str]:
    """Return the columns that hold the vectors, which all files have; others stand apart."""
    file, schema = next(iter(source.schemas.items()))
    others = [name for name in schema.names if name not in apart]
    lists = [name for name in others if _is_numbers(schema.field(name).type, lists=True)]
    found = lists or others
    for other, fields in source.schemas.items():
        for name in found:
            kind = fields.field(name).type if name in fields.names else "nothing"
            if not _is_numbers(kind, lists=bool(lists)):
                wanted = "lists of numbers" if lists else "a number of each vector"
                raise InputError(
                    f"{other}: column {name!r} holds {kind}; expected {wanted}: leave out all "
                    "columns that are not of the vectors, or give the vectors as one column of "
                    "lists"
                )
    if len(lists) > 1:
        raise InputError(
            f"{file}: several columns hold lists of numbers: {', '.join(lists)}: leave out "
            "all but that of the vectors"
        )
    if not found:
        raise InputError(
            f"{file}: there is no column other than {apart[0]!r}; expected the vectors of the "
            "items: a column of lists of numbers, or columns of numbers"
        )
    return found


def _is_numbers(kind: Any, *, lists: bool) -> bool:
    if isinstance(kind, str) or is_list_type(kind) != lists:
        return False
    value = kind.value_type if lists else kind
    return is_number_type(value) or bool(kinds.is_null(value))


class ItemVectors(NamedTuple):
    """The distinct items that have a vector, the vectors float64[items, numbers], how many rows."""

    items: Ids
    vectors: np.ndarray
    rows: int


class _PartOfVectors(NamedTuple):
    """The items of a batch that have a vector, the rows where they stand, and the total of rows."""

    items: Ids
    vectors: np.ndarray
    rows: np.ndarray
    place: Place
    total: int


def read_features(features: Input, workers: Workers) -> ItemVectors:
    """Read the vectors of items. An item without a vector, or with one of zeros, is left out."""
    source, columns = features.source, features.columns
    read, names = partial(_read, columns=columns), [columns.item, *columns.facts]
    with closing(read_batches(read, source, names, workers)) as batches:
        found = list(batches)
    parts = [part for part in found if len(part.rows)]
    if not parts:
        raise InputError(f"{source.name} holds no vectors in {_named(columns)}; expected some")
    size = parts[0].vectors.shape[1]
    for part in parts:
        if part.vectors.shape[1] != size:
            raise _other_length(part.place, int(part.rows[0]), part.vectors.shape[1], size)
    items = _once(parts)
    vectors = np.concatenate([part.vectors for part in parts], dtype=np.float64)
    there = vectors.any(axis=1)
    if not there.any():
        raise InputError(f"{source.name}: all vectors are zeros; expected one with a direction")
    if not there.all():
        items, vectors = join_ids([take_ids(items, np.flatnonzero(there))]), vectors[there]
    return ItemVectors(items, vectors, sum(part.total for part in found))


def _named(columns: Columns) -> str:
    some = ", ".join(map(repr, columns.facts[:5]))
    return some + (f" and {len(columns.facts) - 5} more" if len(columns.facts) > 5 else "")


def _read(batch: Batch, columns: Columns) -> _PartOfVectors:
    what = f"{batch.source}: column {columns.item!r}"
    items = plain(batch.data.column(columns.item), what)
    known = np.asarray(items.is_valid())
    first = batch.data.column(columns.facts[0])
    if is_list_type(first.type):
        there, vectors = _of_lists(batch, columns.facts[0], known)
    else:
        there = known
        each = [_floats(plain(batch.data.column(n), n), batch, n) for n in columns.facts]
        vectors = np.column_stack(each)[known]
    rows = np.flatnonzero(there)
    bad = ~np.isfinite(vectors)
    if bad.any():
        i, j = (int(one[0]) for one in np.nonzero(bad))
        place = repr(columns.facts[j]) if len(columns.facts) > 1 else f"place {j}"
        raise InputError(
            f"{_where(batch.place, int(rows[i]))}: the vector has {vectors[i, j]} at {place}; "
            "expected a finite number: leave out the row if the item has no vector"
        )
    ids = to_ids(drop_nulls(items), what)
    of_rows = join_ids([take_ids(ids, np.cumsum(known)[rows] - 1)])
    return _PartOfVectors(of_rows, vectors, rows, batch.place, batch.data.num_rows)


def _of_lists(batch: Batch, name: str, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows have a list, and the numbers of each of these."""
    offsets, values = split_lists(batch.data.column(name))
    lengths = np.diff(offsets)
    there = known & (lengths > 0)
    rows = np.flatnonzero(there)
    size = int(lengths[rows[0]]) if len(rows) else 0
    other = np.flatnonzero(lengths[rows] != size)
    if len(other):
        row = int(rows[other[0]])
        raise _other_length(batch.place, row, int(lengths[row]), size)
    numbers = _floats(plain(values, name), batch, name)
    if not there.all():
        numbers = numbers[np.repeat(there, lengths)]
    return there, numbers.reshape(len(rows), size)


def _floats(numbers: Any, batch: Batch, name: str) -> np.ndarray:
    return floats_of(numbers, f"{batch.source}: column {name!r}")


def _other_length(place: Place, row: int, found: int, wanted: int) -> InputError:
    return InputError(
        f"{_where(place, row)}: the vector has {found} numbers, and the first one has {wanted}; "
        "expected vectors of one length"
    )


def _where(place: Place, row: int) -> str:
    at = place.at(row)
    return ": ".join(filter(None, [at.source, at.of(0)]))


def _once(parts: list[_PartOfVectors]) -> Ids:
    """Return the items of all parts; InputError if one is in two rows."""
    items = join_ids([part.items for part in parts])
    groups, first = grouped(items)
    if len(first) < len(groups):
        again = int((first[groups] != np.arange(len(groups))).argmax())
        ends = offsets_of(np.array([len(part.rows) for part in parts]))
        where = []
        for i in (again, int(first[groups[again]])):
            n = int(np.searchsorted(ends, i, side="right")) - 1
            where.append(_where(parts[n].place, int(parts[n].rows[i - ends[n]])))
        raise InputError(
            f"{where[0]}: item {id_text(items, again)} has a vector already in {where[1]}; "
            "expected each item once: leave one out"
        )
    return items
