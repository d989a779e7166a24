"""Lists in a cell of text, such as "a b c", "a|b", [1, 2] or pairs of an item and a number."""

import ast
import io
import itertools
import json
import tokenize
from typing import Any

import numpy as np

from rankmill.columns.place import Place
from rankmill.errors import InputError
from rankmill.kernels.text import split_brackets, split_cells
from rankmill.sources.files.text_blocks import TextBlock, shown

# What parts the items of a cell. BRACKETS stands for a list of JSON, of Python, or of NumPy as
# text; the two others for items each followed by its number, parted by blanks.
BLANK, BRACKETS, PAIR_ITEMS, PAIR_NUMBERS = " ", "[", "pair of item", "pair with number"
SEPARATORS = ("|", ",", ";", BLANK)

# What a list may hold.
SINGLE = (str, int, float, type(None))

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def split(
    block: TextBlock,
    place: Place,
    name: str,
    cell: str,
    data: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
) -> Split:
    """The offsets of the lists, and the data, starts and ends of their items.

    Raises
    ------
    InputError
        If a cell holds no such list.
    """
    most = int((ends - starts).sum()) + len(starts)
    offsets = np.empty(len(starts) + 1, np.int64)
    out_starts, out_ends = np.empty((2, most), np.int64)
    if cell == BRACKETS:
        other = np.empty(len(starts), np.bool_)
        count = split_brackets(data, starts, ends, offsets, out_starts, out_ends, other)
        if other.any():  # lists with escapes, or none
            found = offsets, data, out_starts[:count], out_ends[:count]
            return _with_parsed(block, place, name, np.flatnonzero(other), starts, ends, found)
    else:
        separator = ord(BLANK if cell in (PAIR_ITEMS, PAIR_NUMBERS) else cell)
        count = split_cells(data, starts, ends, separator, offsets, out_starts, out_ends)
    if cell in (PAIR_ITEMS, PAIR_NUMBERS):
        odd = np.diff(offsets) % 2 == 1
        if odd.any():
            row = int(odd.argmax())
            raise InputError(
                f"{block.file}: {place.of(row)}: {shown(data, starts[row], ends[row])} holds "
                f"{offsets[row + 1] - offsets[row]} words; expected pairs of an item and a number"
            )
    return offsets, data, out_starts[:count], out_ends[:count]


def _with_parsed(
    block: TextBlock,
    place: Place,
    name: str,
    rows: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    found: Split,
) -> Split:
    """Put the items of some rows in by a parser of JSON or Python, which knows their escapes."""
    offsets, data, item_starts, item_ends = found
    items: list[bytes] = []
    lengths = np.zeros(len(starts), np.int64)
    for row in rows.tolist():
        start, end = int(starts[row]), int(ends[row])
        text = data[start:end].tobytes().decode(errors="surrogateescape").strip()
        try:
            values = parsed_list(text)
        except ValueError:
            raise InputError(
                f"{block.file}: {place.of(row)}: {name} is {shown(data, start, end)}; expected a "
                'list, such as ["a", "b"], with all its items'
            ) from None
        lengths[row] = len(values)
        items += [_bytes_of(one) for one in values]
    sizes = np.array([len(one) for one in items], np.int64)
    stops = len(data) + np.cumsum(sizes, dtype=np.int64)
    before = np.repeat(offsets[rows], lengths[rows])
    item_starts = np.insert(item_starts, before, stops - sizes)
    item_ends = np.insert(item_ends, before, stops)
    offsets[1:] += np.cumsum(lengths)
    return (
        offsets,
        np.frombuffer(data.tobytes() + b"".join(items), np.uint8),
        item_starts,
        item_ends,
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
            raise ValueError("Python joins texts that no comma parts") from None
    if not isinstance(found, list) or not all(isinstance(one, SINGLE) for one in found):
        raise ValueError("it is no list of single values")
    return found
