"""Lists in a cell of text, such as "a b c", "a|b", [1, 2] or pairs of an item and a number."""

import ast
import io
import itertools
import json
import tokenize
from typing import Any

import numpy as np

from rankmill.kernels.cells import count_between, split_brackets, split_cells
from rankmill.kernels.text import RETURN, SPACE, TAB
from rankmill.sources.files.text_blocks import Texts

# What parts the items of a cell. BRACKETS stands for a list of JSON, of Python, or of NumPy as
# text; the two others for items each followed by its number, parted by blanks.
BLANK, BRACKETS, PAIR_ITEMS, PAIR_NUMBERS = " ", "[", "pair of item", "pair with number"
SEPARATORS = ("|", ",", ";", BLANK)

# What a list may hold.
SINGLE = (str, int, float, type(None))


def split(texts: Texts, cell: str) -> Texts:
    """The items of the lists in cells."""
    data, starts, ends = texts.data, texts.starts, texts.ends
    offsets = np.empty(len(starts) + 1, np.int64)
    if cell == BRACKETS:
        out_starts, out_ends = np.empty((2, int((ends - starts).sum()) + len(starts)), np.int64)
        other = np.empty(len(starts), np.bool_)
        count = split_brackets(data, starts, ends, offsets, out_starts, out_ends, other)
        if other.any():  # lists with escapes, or none
            found = out_starts[:count], out_ends[:count], offsets
            return _with_parsed(texts, np.flatnonzero(other), *found)
    else:
        separator = ord(BLANK if cell in (PAIR_ITEMS, PAIR_NUMBERS) else cell)
        # A cell has at most an item more than separators. Larger arrays would be new memory each.
        most = len(starts) + count_between(data, separator, separator)
        if separator == SPACE:
            most += count_between(data, TAB, RETURN)
        out_starts, out_ends = np.empty((2, most), np.int64)
        count = split_cells(data, starts, ends, separator, offsets, out_starts, out_ends)
    if cell in (PAIR_ITEMS, PAIR_NUMBERS):
        odd = np.diff(offsets) % 2 == 1
        if odd.any():
            row = int(odd.argmax())
            words = f"{texts.shown(row)} holds {offsets[row + 1] - offsets[row]} words"
            raise texts.error(row, f"{words}; expected pairs of an item and a number")
    return texts._replace(starts=out_starts[:count], ends=out_ends[:count], offsets=offsets)


def _with_parsed(
    texts: Texts, rows: np.ndarray, starts: np.ndarray, ends: np.ndarray, offsets: np.ndarray
) -> Texts:
    """Put the items of some rows in by a parser of JSON or Python, which knows their escapes.

    `starts`, `ends` and `offsets` are those of the items of all other rows.
    """
    data = texts.data
    items: list[bytes] = []
    lengths = np.zeros(len(texts.starts), np.int64)
    for row in rows.tolist():
        cell = data[texts.starts[row] : texts.ends[row]].tobytes()
        text = cell.decode(errors="surrogateescape").strip()
        try:
            values = parsed_list(text)
        except ValueError:
            raise texts.error(
                row,
                f"{texts.name} is {texts.shown(row)}; expected a list, such as "
                '["a", "b"], with all its items',
            ) from None
        lengths[row] = len(values)
        items += [_bytes_of(one) for one in values]
    sizes = np.array([len(one) for one in items], np.int64)
    stops = len(data) + np.cumsum(sizes, dtype=np.int64)
    before = np.repeat(offsets[rows], lengths[rows])
    offsets[1:] += np.cumsum(lengths)
    return texts._replace(
        data=np.frombuffer(data.tobytes() + b"".join(items), np.uint8),
        starts=np.insert(starts, before, stops - sizes),
        ends=np.insert(ends, before, stops),
        offsets=offsets,
    )


def _bytes_of(value: Any) -> bytes:
    missing = value is None or value != value
    return b"" if missing else str(value).encode(errors="surrogateescape")


def parsed_list(text: str) -> list[Any]:
    """The list that a text of JSON or Python holds; raises ValueError if it holds none."""
    try:
        found = json.loads(text)
    except ValueError:
        try:
            found = ast.literal_eval(text)
            words = tokenize.generate_tokens(io.StringIO(text).readline)
            kinds = [word.type for word in words if word.type != tokenize.NL]
        except (SyntaxError, MemoryError, RecursionError, tokenize.TokenError) as error:
            raise ValueError(str(error)) from None
        if any(a == b == tokenize.STRING for a, b in itertools.pairwise(kinds)):
            raise ValueError("two strings have no comma between them") from None
    if not isinstance(found, list) or not all(isinstance(one, SINGLE) for one in found):
        raise ValueError("it is not a list of single values")
    return found
