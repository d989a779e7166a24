"""Reading the items of a catalogue: a column of any table or file, with an item a row or lists."""

from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from rankmill.columns.ids import drop_nulls, join_ids, plain, take_ids, to_ids
from rankmill.columns.lists import is_list_type, split_lists
from rankmill.errors import InputError
from rankmill.kernels.identity import SEED, Ids, group_rows
from rankmill.sources.asked import Asked
from rankmill.sources.base import Batch, read_batches
from rankmill.sources.inputs import Input
from rankmill.sources.opening import open_source
from rankmill.sources.roles import Columns, find_item
from rankmill.threads import Workers


def open_items(value: Any, item: str | None) -> Input:
    """Open a catalogue of items, whose column may have the name `item`.

    Raises
    ------
    InputError, UsageError
        If it cannot be opened, or no column looks like the items.
    """
    source = open_source(value, None, Asked("labels", item=item), may_be_empty=False)
    try:
        schema = next(iter(source.schemas.values()))
        named = item if item in schema.names else None
        if named is None and len(schema.names) == 1:
            named = schema.names[0]
        named = find_item(source, named)
    except BaseException:
        source.close()
        raise
    wide = is_list_type(schema.field(named).type)
    return Input(source, Columns("", named, wide))


def read_items(items: Input, workers: Workers) -> tuple[Ids, int]:
    """Return the distinct items of a catalogue, and the number of its rows."""
    name = items.columns.item

    def read(batch: Batch) -> tuple[Ids, int]:
        values = batch.data.column(name)
        if is_list_type(values.type):
            values = split_lists(values)[1]
        what = f"{batch.source}: column {name!r}"
        return distinct(to_ids(drop_nulls(plain(values, what)), what)), batch.data.num_rows

    if items.source.lists is not None:
        columns = replace(items.columns, query=next(iter(items.source.schemas.values())).names[0])
        found = workers.read(items.source.lists(columns), lambda one: (one.items, one.rows))
    else:
        found = read_batches(read, items.source, [name], workers)
    with closing(found) as blocks:
        parts = list(blocks)
    every = distinct(join_ids([ids for ids, _ in parts]))
    if not len(every.keys):
        raise InputError(f"{items.source.name} holds no items in column {name!r}; expected some")
    return every, sum(rows for _, rows in parts)


def distinct(ids: Ids) -> Ids:
    """Return each id once, in order of first appearance, as a copy."""
    groups, first = np.empty((2, len(ids.keys)), np.int64)
    count = group_rows(ids, SEED, groups, first)
    return join_ids([take_ids(ids, first[:count])])
