"""Lists in a cell of text, such as "a b c", "a|b", [1, 2] or pairs of an item and a number."""

import ast
import json
from typing import Any

import numpy as np

from rankmill.columns.place import Place
from rankmill.errors import InputError
from rankmill.kernels.text import split_brackets, split_cells
from rankmill.sources.text import TextBlock, shown

# What parts the items of a cell. BRACKETS stands for a list of JSON, of Python, or of NumPy as
# text; the two others for items each followed by its number, parted by blanks.
BLANK, BRACKETS, PAIR_ITEMS, PAIR_NUMBERS = " ", "[", "pair of item", "pair with number"
SEPARATORS = ("|", ",", ";", BLANK)

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
        count = split_brackets(data, starts, ends, offsets, out_starts, out_ends)
        if count < 0:  # a list with escapes, or none
            return _parsed(block, place, name, data, starts, ends)
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


def _parsed(
    block: TextBlock,
    place: Place,
    name: str,
    data: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
) -> Split:
    """Split cells by a parser of JSON or of Python, which knows their escapes."""
    items: list[bytes] = []
    lengths = []
    for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        text = data[start:end].tobytes().decode(errors="surrogateescape").strip()
        try:
            found = parsed_list(text) if text else []
        except ValueError:
            raise InputError(
                f"{block.file}: {place.of(row)}: {name} is {shown(data, start, end)}; expected a "
                'list, such as ["a", "b"]'
            ) from None
        lengths.append(len(found))
        items += [
            b"" if one is None else str(one).encode(errors="surrogateescape") for one in found
        ]
    ends_of_items = np.cumsum(np.array([len(one) for one in items], np.int64), dtype=np.int64)
    sizes = np.array([len(one) for one in items], np.int64)
    offsets = np.concatenate([[0], np.cumsum(np.array(lengths, np.int64))]).astype(np.int64)
    joined: np.ndarray = np.frombuffer(b"".join(items), np.uint8)
    return offsets, joined, ends_of_items - sizes, ends_of_items


def parsed_list(text: str) -> list[Any]:
    """The list that a text of JSON or Python holds; raises ValueError if it holds none."""
    try:
        found = json.loads(text)
    except ValueError:
        try:
            found = ast.literal_eval(text)
        except (SyntaxError, MemoryError, RecursionError) as error:
            raise ValueError(str(error)) from None
    if not isinstance(found, list) or any(isinstance(one, list | dict) for one in found):
        raise ValueError("it is no list of single values")
    return found
