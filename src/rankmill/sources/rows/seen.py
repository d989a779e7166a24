"""Columns with a value a label, which metrics of users see, read apart from the labels."""

from functools import partial

import numpy as np

from rankmill.columns.buffers import validity_of
from rankmill.columns.ids import drop_nulls, plain, to_ids
from rankmill.columns.lists import drop_values, split_lists
from rankmill.kernels.identity import Ids
from rankmill.sources.meaning.values import column_values
from rankmill.sources.roles.source import Batch, Columns
from rankmill.sources.rows.wide import beside_items, queries_of


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
