"""Lists in cells of text as JSON, Python or NumPy print them, also of items with numbers."""

import ast
import json
import re
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import numbers_of, pc
from rankmill.sources.meaning.looks import MISSING, distinct_texts, head, without_missing
from rankmill.sources.meaning.names import plain
from rankmill.sources.meaning.shapes import OF_ITEM
from rankmill.sources.meaning.values import Values
from rankmill.sources.roles.source import Batch, Source

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
