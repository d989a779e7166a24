"""Labels with a subtopic a row, turned into labels whose gains say which subtopics they have."""

from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, floats_of, numbers_of, pc
from rankmill.columns.ids import is_text_type, plain
from rankmill.errors import InputError, UsageError
from rankmill.kernels.diversity import SUBTOPICS
from rankmill.sources.roles.source import Batch, Columns, Source, read_batches
from rankmill.sources.roles.streams import open_batches
from rankmill.threads import Workers

# So many labels of a query have exact gains: 2**21 places and 2**32 sets of subtopics.
MOST_LABELS = 1 << 21


def with_subtopics(source: Source, columns: Columns, subtopic: str) -> tuple[Source, Columns]:
    """Return labels with a row an item, whose gains `rankmill.kernels.diversity` understands.

    The source has a row for each query, item and subtopic; with gains, those above 0 are relevant.
    """
    if columns.wide:
        raise UsageError(
            f"{source.name} holds lists of items, and subtopics need a row for each query, item "
            "and subtopic: convert the labels to such rows"
        )
    facts = tuple(name for name in columns.facts if name != subtopic)
    made_of = source.key.parts if source.key else ()  # by which a training set is compared
    beside = tuple(name for name in dict.fromkeys((*facts, *made_of)) if name != subtopic)
    names = list(dict.fromkeys([*columns.names(), *beside, subtopic]))

    def read(batch: Batch) -> pa.Table:
        return pa.Table.from_batches([batch.data.select(names)])

    with Workers(None) as workers, closing(read_batches(read, source, names, workers)) as batches:
        parts = list(batches) or [source.schema.empty_table().select(names)]
    try:
        table = pa.concat_tables(parts, promote_options="permissive").combine_chunks()
    except pa.ArrowException as error:
        raise InputError(f"{source.name}: {error}") from None
    made = _one_a_label(table, columns, source.name, subtopic, beside)
    found = open_batches(
        source.name, made.schema, lambda names: made.select(names).to_batches(), len(made)
    )
    found = replace(
        found,
        **{
            name: getattr(source, name) for name in ("end", "format", "findings", "comments", "key")
        },
    )
    return found, replace(columns, gain=subtopic, facts=facts)


def _one_a_label(
    table: Any, columns: Columns, name: str, subtopic: str, facts: tuple[str, ...]
) -> Any:
    """The first row of each query and item, with a gain."""
    queries, query_of = _numbered(table, columns.query, name)
    items, item_of = _numbered(table, columns.item, name)
    _, subtopic_of = _numbered(table, subtopic, name)
    there = item_of >= 0  # null items are no labels
    relevant = there.copy()
    if columns.gain is not None:
        column = table.column(columns.gain).combine_chunks()
        gains = floats_of(column, f"{name}: column {columns.gain!r}")
        _refuse(there & ~np.isfinite(gains), name, "gain that is a number")
        relevant &= gains > 0
    _refuse(query_of < 0, name, "query id")
    _refuse((subtopic_of < 0) & there, name, "subtopic")
    masks = _masks(query_of, subtopic_of, relevant, queries, name)
    kept = np.flatnonzero(there)
    order = kept[np.lexsort((kept, item_of[kept], query_of[kept]))]
    changes = np.ones(len(order), np.bool_)
    changes[1:] = (np.diff(query_of[order]) != 0) | (np.diff(item_of[order]) != 0)
    starts = np.flatnonzero(changes)
    mask = np.bitwise_or.reduceat(masks[order], starts) if len(starts) else masks[:0]
    first = order[starts]
    gains = _with_places(mask, query_of[first], queries, name)
    back = np.argsort(first, kind="stable")  # the order of queries is that of their rows
    rows = arrow_of(first[back])
    taken = {
        columns.query: queries.take(arrow_of(query_of[first[back]])),
        columns.item: items.take(arrow_of(item_of[first[back]])),
        subtopic: arrow_of(gains[back]),
        **{one: table.column(one).take(rows).combine_chunks() for one in facts},
    }
    return pa.table(taken)


def _refuse(bad: np.ndarray, name: str, what: str) -> None:
    """Raise InputError if a row lacks something."""
    if bad.any():
        raise InputError(
            f"{name}: row {int(bad.argmax())}, counted from 0, has no {what}: fill it in or drop "
            "the row"
        )


def _numbered(table: Any, column: str, name: str) -> tuple[Any, np.ndarray]:
    """The distinct ids of a column, ascending, and the place of each row's; -1 for null."""
    values = plain(table.column(column).combine_chunks(), f"{name}: column {column!r}")
    if not (pa.types.is_integer(values.type) or is_text_type(values.type)):
        raise InputError(
            f"{name}: column {column!r} holds {values.type}; expected integers or strings"
        )
    if is_text_type(values.type):  # views cannot be encoded
        values = values.cast(pa.large_string())
    encoded = values.dictionary_encode()
    order = numbers_of(pc.sort_indices(encoded.dictionary)).astype(np.int64)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    codes = numbers_of(encoded.indices.cast(pa.int64()), -1)
    return encoded.dictionary.take(arrow_of(order)), np.where(codes < 0, -1, place[codes])


def _masks(
    query_of: np.ndarray, subtopic_of: np.ndarray, relevant: np.ndarray, queries: Any, name: str
) -> np.ndarray:
    """The bit of each relevant row's subtopic, numbered within its query by ascending subtopic."""
    masks = np.zeros(len(query_of), np.int64)
    if not relevant.any():
        return masks
    pairs = np.column_stack([query_of[relevant], subtopic_of[relevant]])
    distinct, inverse = np.unique(pairs, axis=0, return_inverse=True)
    number = _within(distinct[:, 0])
    if number.max() >= SUBTOPICS:
        query = queries[int(distinct[number.argmax(), 0])].as_py()
        raise InputError(
            f"{name}: query {query!r} has {int(number.max()) + 1} subtopics; expected {SUBTOPICS} "
            "at most: join some of them"
        )
    masks[relevant] = np.int64(1) << number[inverse.ravel()]
    return masks


def _with_places(mask: np.ndarray, query_of: np.ndarray, queries: Any, name: str) -> np.ndarray:
    """The gains of items that stand by query and ascending id, which have these subtopics."""
    labelled = mask > 0
    places = np.zeros(len(mask), np.int64)
    places[labelled] = _within(query_of[labelled])
    if places.max(initial=0) >= MOST_LABELS:
        query = queries[int(query_of[places.argmax()])].as_py()
        raise InputError(
            f"{name}: query {query!r} has too many labels; expected {MOST_LABELS:,} at most"
        )
    return np.asarray(places << SUBTOPICS | mask, np.float64)


def _within(ascending: np.ndarray) -> np.ndarray:
    """The place of each number among those that equal it, in ascending numbers."""
    return np.asarray(np.arange(len(ascending)) - np.searchsorted(ascending, ascending))
