"""Lists in cells of text: separated, printed, or items and numbers in turn."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, numbers_of, pc
from rankmill.columns.ids import drop_nulls, id_type, is_text_type, text_places
from rankmill.columns.lists import is_list_type, offsets_of
from rankmill.sources.meaning.derived_columns import derived
from rankmill.sources.meaning.later_rows import LaterRows
from rankmill.sources.meaning.looks import (
    MIXED,
    NUMERIC,
    distinct_texts,
    head,
    look,
    look_of,
    without_missing,
)
from rankmill.sources.meaning.plain_ids import tell_missing
from rankmill.sources.meaning.printed_lists import (
    TEXT,
    entries_of,
    entry_type,
    printed,
    texts_of,
)
from rankmill.sources.meaning.shapes import shaped
from rankmill.sources.meaning.values import Values, with_values
from rankmill.sources.roles.source import Batch, Source

LISTS = pa.large_list(TEXT)
# What parts the items of a cell -> how that is told.
SEPARATORS = {"|": "bars", ";": "semicolons", ",": "commas", " ": "spaces"}
PRINTED, PAIRS = "printed lists", "pairs"
RULE = {PRINTED: "printed list", PAIRS: "items and numbers in turn"}
# How a format tells it; "rankmill check" and results say it of an input.
TOLD = {
    **{one: f"items separated by {name}" for one, name in SEPARATORS.items()},
    PRINTED: "items in brackets",
    PAIRS: "items with their confidences",
}
CONFIDENCE = "confidence"
# The bytes of which such a cell has one.
MARKS = np.zeros(256, bool)
MARKS[list(b" |;,[{(")] = True
# The fact that a column has a cell that may hold several items; so many of a batch are told.
CELL, MOST_LATER = "cell", 1000
# What a cell holds that may be more than one item: a separator, or a list in brackets.
APART = r"""(?s)\S[ |;,]+\S|^\[.*\]$|^\[[^\]]*$|^\{['"].*\}$|^(?:array|set|frozenset)\(.*\)$"""


def with_lists(source: Source, item: str, query: Sequence[str], cell: str) -> Source:
    """The source with lists in the place of the cells of a column, and of those beside it."""
    beside = [one for one in _beside(source, item, query, cell) if cell != PAIRS]
    source.findings.used(RULE.get(cell, "separated list"), item)
    for name in beside:
        source.findings.used("list beside the items", name)
    if cell == PAIRS:
        numbers = partial(_of_pairs, name=item, which=1, source=source)
        source = derived(source, CONFIDENCE, (item,), lambda file, schema: LISTS, numbers)
        source = replace(source, numbered={**source.numbered, item: (CONFIDENCE, False)})
        items = partial(_of_pairs, name=item, which=0, source=source)
        source = derived(source, item, (item,), lambda file, schema: LISTS, items)
    else:
        kind = entry_type(source, item) if cell == PRINTED else None
        if kind is not None:
            entries = partial(entries_of, name=item, kind=kind)
            source = shaped(derived(source, item, (item,), lambda file, schema: kind, entries))
        for name in (*beside, *([item] if kind is None else [])):
            own = source if name == item else None
            make = partial(_lists_of, name=name, cell=cell, source=own)
            source = derived(source, name, (name,), lambda file, schema: LISTS, make)
    told = f"{source.format}, {TOLD[cell]}" if source.format else ""
    looks = {one: look for one, look in source.looks.items() if one not in (*beside, item)}
    return replace(source, format=told, looks=looks)


def _beside(source: Source, item: str, query: Sequence[str], cell: str) -> list[str]:
    """The other columns of text whose cells hold as many numbers as those of the items."""
    schema = source.schema
    names = [
        one.name
        for one in schema
        if one.name not in (*query, item) and is_text_type(one.type) and not is_list_type(one.type)
    ]
    if cell == PRINTED:
        return [name for name in names if look_of(source, name) == "list"]
    if not names:
        return []
    rows = head(source, [item, *names], 1000)
    batch = pa.record_batch(rows)
    split = {
        name: _separated(Values(batch.column(name).cast(TEXT), None, batch, name), cell)
        for name in rows
    }
    return [
        name
        for name in names
        if np.array_equal(split[name][0], split[item][0])
        and look(split[name][1]) in (*NUMERIC, MIXED)
    ]


def with_guard(source: Source, item: str, how: str) -> Source:
    """The source that watches for cells that may hold several items, as none of the first rows has.

    With such a cell it is decided anew. Of a stream it is an error, as it cannot be read again.
    """

    def check(values: Values) -> Any:
        if not is_text_type(values.array.type):
            return values.array
        texts = values.array.cast(id_type(values.array.type))
        if not MARKS[text_places(drop_nulls(texts))[2]].any():
            return values.array
        marks = pc.match_substring_regex(texts, APART)
        if not pc.any(marks).as_py():
            return values.array
        if source.kept is None:
            cells = distinct_texts(texts.filter(marks))
            raise LaterRows(*((CELL, source.name, item, one) for one in cells[:MOST_LATER]))
        raise values.error(
            pc.index(marks, True).as_py(),
            f"it may be one item or a list of several, and no earlier row shows which: {how}",
        )

    return with_values(source, item, lambda kind: kind, check)


def _lists_of(batch: Batch, name: str, cell: str, source: Source | None) -> Any:
    """The lists of a column of text of a batch."""
    values = texts_of(batch, name)
    lengths, flat = printed(values) if cell == PRINTED else _separated(values, cell, source)
    return pa.LargeListArray.from_arrays(arrow_of(offsets_of(lengths)), flat)


def _of_pairs(batch: Batch, name: str, which: int, source: Source) -> Any:
    """The items, or the numbers, of cells such as "12 0.9 7 0.8"."""
    values = texts_of(batch, name)
    lengths, flat = _separated(values, " ", source)
    odd = lengths % 2 == 1
    if odd.any():
        raise values.error(
            int(odd.argmax()),
            "expected pairs of an item and a number; if all are items, use the format csv-spaces",
        )
    taken = flat.take(arrow_of(np.arange(which, len(flat), 2)))
    return pa.LargeListArray.from_arrays(arrow_of(offsets_of(lengths // 2)), taken)


def _separated(values: Values, cell: str, items: Source | None = None) -> tuple[np.ndarray, Any]:
    """The lengths of the lists in cells, and what they hold, such as the `items` of a source."""
    texts = pc.utf8_trim(values.array, " \t\r\n" + cell.strip())
    if items is not None and items.exact_ids:
        texts = pc.if_else(pc.equal(texts, ""), pa.nulls(1, TEXT)[0], texts)
    else:
        if items is not None:
            tell_missing(values, items, "item", texts)
        texts = without_missing(texts)
    parts = pc.utf8_split_whitespace(texts) if cell == " " else pc.split_pattern(texts, cell)
    lengths = numbers_of(pc.list_value_length(parts), null=0).astype(np.int64)
    flat = parts.flatten()
    return lengths, flat if cell == " " else pc.utf8_trim_whitespace(flat)
