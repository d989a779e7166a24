"""Lists in cells of text: separated, printed, or items and numbers in turn."""

import ast
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, numbers_of, pc
from rankmill.columns.ids import drop_nulls, id_type, is_text_type, text_places
from rankmill.columns.lists import is_list_type, offsets_of
from rankmill.sources.meaning.column_names import plain
from rankmill.sources.meaning.looks import (
    MISSING,
    MIXED,
    NUMERIC,
    LaterRows,
    distinct_texts,
    head,
    look,
    look_of,
    without_missing,
)
from rankmill.sources.meaning.plain_ids import tell_missing
from rankmill.sources.meaning.shapes import OF_ITEM, shaped
from rankmill.sources.meaning.values import Values, derived, with_values
from rankmill.sources.roles.source import Batch, Source

# ------------------------------------------------------------------ printed lists

TEXT = pa.large_string()
PYTHON_SET = re.compile(r"\s*(?:frozen)?set\(")
# Most printed lists: of integers, or of texts in single or in double quotes without escapes.
OF_INTEGERS = r"^\s*\[\s*(?:-?\d+(?:\s*,\s*-?\d+|\s+-?\d+)*\s*,?)?\s*\]\s*$"
OF_TEXTS = (
    r"""^\s*\[\s*(?:'[^'\\,\[\]"]*'(?:\s*,\s*'[^'\\,\[\]"]*')*)?\s*\]\s*$""",
    r"""^\s*\[\s*(?:"[^"\\,\[\]']*"(?:\s*,\s*"[^"\\,\[\]']*")*)?\s*\]\s*$""",
)
# So many cells tell whether items have numbers; and as what pairs of both are read.
FEW = 100
PAIR = pa.large_list(pa.struct({"0": TEXT, "1": pa.float64()}))
BY_ITEM = pa.map_(TEXT, pa.float64())


def texts_of(batch: Batch, name: str) -> Values:
    """The texts of a column of a batch."""
    values = Values.of(batch, name)
    return values._replace(array=values.texts())


def entry_type(source: Source, name: str) -> Any:
    """The nested Arrow type of printed items with their numbers; None if the items have none."""
    column = head(source, [name])[name]
    texts = distinct_texts(column)[:FEW]
    found: list[Any] = []
    for text in texts:
        with suppress(ValueError):
            found.append(printed_value(text))
    if found and all(isinstance(one, dict) for one in found):
        return (
            BY_ITEM if all(_is_number(number) for one in found for number in one.values()) else None
        )
    entries = [one for some in found if isinstance(some, list | tuple) for one in some]
    if entries and all(map(_is_pair, entries)):
        return PAIR
    if not entries or not all(isinstance(one, dict) for one in entries):
        return None
    fields = dict.fromkeys(str(field) for one in entries for field in one)
    numbers = {
        field: plain(field) not in OF_ITEM and all(_is_number(one.get(field)) for one in entries)
        for field in fields
    }
    struct = {field: pa.float64() if number else TEXT for field, number in numbers.items()}
    return pa.large_list(pa.struct(struct))


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _is_pair(value: Any) -> bool:
    """Whether a value is an item and its number, and not two ids."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return False
    return isinstance(value[0], int | str) and isinstance(value[1], float)


def entries_of(batch: Batch, name: str, kind: Any) -> Any:
    """The items and numbers of the printed cells of a batch, as a nested column of a type."""
    values = texts_of(batch, name)
    texts = values.array.to_pylist()
    try:
        return pa.array([_entries(text, kind) for text in texts], kind)
    except _NO_ENTRIES:
        for i, text in enumerate(texts):
            try:
                pa.array([_entries(text, kind)], kind)
            except _NO_ENTRIES:
                raise values.error(i, "expected items with numbers, as in the first rows") from None
        raise


_NO_ENTRIES = (pa.ArrowException, AttributeError, TypeError, ValueError)


def _entries(text: str | None, kind: Any) -> Any:
    """The entries of one cell; one of `_NO_ENTRIES` is raised if they are not of the type."""
    if text is None or text.strip() in MISSING:
        return None
    found = printed_value(text)
    if kind == BY_ITEM:
        return [(_text(item), number) for item, number in found.items()]
    if kind == PAIR:
        return [{"0": _text(item), "1": number} for item, number in found]
    texts = [field.name for field in kind.value_type if field.type == TEXT]
    return [{**one, **{name: _text(one.get(name)) for name in texts}} for one in found]


def printed(values: Values) -> tuple[np.ndarray, Any]:
    """The same of lists as JSON, Python or NumPy print them."""
    for pattern in (OF_INTEGERS, *OF_TEXTS):  # most lists need no parser
        if pc.all(pc.match_substring_regex(values.array, pattern)).as_py():
            inner = without_missing(pc.utf8_trim(values.array, "[] \t\r\n,"))
            apart = r"[\s,]+" if pattern == OF_INTEGERS else r"\s*,\s*"
            parts = pc.split_pattern_regex(inner, apart)
            lengths = numbers_of(pc.list_value_length(parts), null=0).astype(np.int64)
            flat = parts.flatten()
            return lengths, flat if pattern == OF_INTEGERS else pc.utf8_trim(flat, "'\"")
    lists = [_parsed(values, i, one) for i, one in enumerate(values.array.to_pylist())]
    lengths = np.array([len(one) for one in lists], np.int64)
    return lengths, pa.array([one for some in lists for one in some], TEXT)


def _parsed(values: Values, i: int, text: str | None) -> list[str | None]:
    """The items of one printed list as text."""
    if text is None or text.strip() in MISSING:
        return []
    if "..." in text:
        raise values.error(
            i,
            "it was cut short when it was printed: write whole lists, as "
            "numpy.set_printoptions(threshold=sys.maxsize) does",
        )
    try:
        found = set() if PYTHON_SET.match(text) else printed_value(text)
    except ValueError:
        raise values.error(i, 'expected a list with all its items, such as ["a", "b"]') from None
    if not isinstance(found, list | tuple):
        raise values.error(i, 'it has no order of items: write a list, such as ["a", "b"]')
    if any(isinstance(one, list | tuple | dict | set) for one in found):
        raise values.error(i, "expected a list of items: write items and numbers in two columns")
    return [_text(one) for one in found]


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def printed_value(text: str) -> Any:
    """The value that JSON, Python or NumPy printed; ValueError if none of them did.

    Examples
    --------
    >>> printed_value("[12.  3.]"), printed_value("['a' 'b']"), printed_value("[np.int64(7)]")
    ([12.0, 3.0], ['a', 'b'], [7])
    >>> printed_value("array([1, 2], dtype=int32)"), printed_value('["a", null]')
    ([1, 2], ['a', None])
    >>> printed_value("[x, a]"), printed_value("[01 1.50]")
    (['x', 'a'], ['01', '1.50'])
    """
    text = re.sub(r"\b(?:np|numpy)\.\w+\(([^()]*)\)", r"\1", text.strip())
    text = re.sub(r"^array\((.*?)(?:, dtype=[^()]*)?\)$", r"\1", text, flags=re.S)
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    bare = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", "''", text)
    if re.fullmatch(r"\[[^,]*\]", bare, re.S) and re.search(r"\S\s+\S", bare[1:-1].strip()):
        words = re.findall(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s\[\]]+", text)
        text = f"[{', '.join(words)}]"
    text = re.sub(r"\b(?:nan|NaN|NaT|null|None)\b|<NA>", "None", text)
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        if not re.fullmatch(r"""\[[^][(){}'"]*\]""", text):
            raise ValueError(str(error)) from None
    bare_words = (one.strip() for one in text[1:-1].split(","))  # as Spark writes them
    return [None if one in MISSING else one for one in bare_words]


LISTS = pa.large_list(TEXT)
# What parts the items of a cell -> how that is told.
SEPARATORS = {"|": "bars", ";": "semicolons", ",": "commas", "\t": "tabs", " ": "spaces"}
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
MARKS[list(b" \t|;,[{(")] = True
# The fact that a column has a cell that may hold several items; so many of a batch are told.
CELL, MOST_LATER = "cell", 1000
# What a cell holds that may be more than one item: a separator, or a list in brackets.
APART = r"""(?s)\S[ \t|;,]+\S|^\[.*\]$|^\[[^\]]*$|^\{['"].*\}$|^(?:array|set|frozenset)\(.*\)$"""


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
    if cell != " ":
        parts = pc.split_pattern(texts, cell)
    elif pc.all(pc.string_is_ascii(texts)).as_py() is False:
        parts = pc.utf8_split_whitespace(texts)
    else:  # in a third of the time
        parts = pc.ascii_split_whitespace(texts)
    lengths = numbers_of(pc.list_value_length(parts), null=0).astype(np.int64)
    flat = parts.flatten()
    return lengths, flat if cell == " " else pc.utf8_trim_whitespace(flat)
