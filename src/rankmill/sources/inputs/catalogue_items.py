"""Reading the items of a catalogue: a column of any table or file, with an item a row or lists."""

import os
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import pc
from rankmill.columns.ids import drop_nulls, grouped, id_text, join_ids, plain, take_ids, to_ids
from rankmill.columns.lists import is_list_type, offsets_of, split_lists, values_in
from rankmill.columns.ragged_lists import Groups
from rankmill.errors import InputError, UsageError
from rankmill.kernels.identity import Ids
from rankmill.sources.inputs.any_source import open_source
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.meaning.plain_ids import with_plain_ids, without_padding
from rankmill.sources.meaning.roles import find_item
from rankmill.sources.meaning.shapes import NO_FACTS
from rankmill.sources.meaning.values import column_values, with_column
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
