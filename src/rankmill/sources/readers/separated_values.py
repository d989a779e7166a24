"""Read CSV and TSV: one item a row, or a row a query with a list of items in a cell."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.errors import InputError, UsageError, plural
from rankmill.sources.files.doubts import LINE_ENDS, PARTED_BY, Doubts
from rankmill.sources.files.files import File
from rankmill.sources.files.text_blocks import TextBlock, count_lines, read_head
from rankmill.sources.files.text_lists import BLANK, BRACKETS, PAIR_ITEMS, PAIR_NUMBERS, SEPARATORS
from rankmill.sources.input_options import InputOptions
from rankmill.sources.readers.fields import (
    NUMBER,
    TEXT,
    FieldColumn,
    Layout,
    cut_rows,
    open_text,
    scan,
)
from rankmill.sources.roles.roles import likely_ids
from rankmill.sources.roles.source import Source

DELIMITERS = {"csv": ",", "tsv": "\t"}
# A header without the usual delimiter may have one of these instead.
OTHERS = {"csv": ";|\t", "tsv": ""}
SAMPLED_ROWS = 10_000
CONFIDENCE = "confidence"
# What parts the items of a cell -> how a result tells it.
PARTED = {
    **{one: f"items separated by {name}" for one, name in PARTED_BY.items()},
    BRACKETS: "items in brackets",
    PAIR_ITEMS: "items with their confidences",
    PAIR_NUMBERS: "items with their confidences",
}

# What a format says that parts the items, as in csv-commas -> what parts them.
SHAPES = {name: one for one, name in PARTED_BY.items()}
# The types of columns that may turn out to hold lists of numbers.
BESIDE = (TEXT, pa.null())
# Tuples, sets and arrays of Python as text, such as ('a', 'b'), {1, 2} and array([1, 2]).
NO_LIST = re.compile(r"[({].*[)}]|\w+\([\[{].*[\]}].*\)|\w+\(\)", re.DOTALL)

Cells = dict[str, list[str]]


def open_files(files: Sequence[File], name: str, asked: InputOptions) -> Source:
    """Open CSV or TSV files; their first rows tell the columns and the shape."""
    kind, _, shape = str(asked.format).partition("-")
    layouts = [_layout(file, kind, shape, asked) for file in files]
    cells = map(_cells_of, layouts)
    found = {cell: file for cell, file in zip(cells, files, strict=True) if cell}
    if len(found) > 1:
        told = ", but ".join(f"{file.name} holds {PARTED[cell]}" for cell, file in found.items())
        raise InputError(f"{told}; expected one way in all files: write all of them alike")
    for cell in found:  # some files may have no list among their first rows
        pairs = zip(files, layouts, strict=True)
        layouts = [
            one if _cells_of(one) else _layout(file, kind, shape, asked, cell)
            for file, one in pairs
        ]
    parted = map(PARTED.__getitem__, found)
    return open_text(files, name, layouts, ", ".join([kind.upper(), *parted]), Doubts())


def _cells_of(layout: Layout) -> str:
    """What parts the items of a cell; an empty text if no column holds lists."""
    return next((column.cell for column in layout.columns.values() if column.cell), "")


def _layout(file: File, kind: str, shape: str, asked: InputOptions, cell: str = "") -> Layout:
    """The layout of one file; `cell` is what parts the items of a cell, if another file tells."""
    delimiter = ord(DELIMITERS[kind])
    head = read_head(file, cut_rows(delimiter))
    first = head.data[: _first_row_end(head, delimiter)]
    for other in OTHERS[kind]:
        text = first.tobytes().decode(errors="replace")
        if chr(delimiter) not in text and other in text:
            delimiter = ord(other)
    names = asked.columns or tuple(_fields_of(head, first, delimiter))
    header = 0 if asked.columns else len(first)
    if not names:
        raise InputError(f"{file.name} is empty; expected a header with the names of the columns")
    if len(set(names)) < len(names):
        again = next(one for one in names if names.count(one) > 1)
        raise head.error(0, f"two columns are called {again!r}; rename one")
    sample = _sample(head, header, names, delimiter, asked)
    columns = columns_of(sample, shape, asked, file.name, cell)
    return Layout(columns, len(names), delimiter, header, head.lines / max(1, len(head.data)))


def _first_row_end(head: TextBlock, delimiter: int) -> int:
    """Where the first row ends, which may hold line ends in quotes."""
    text = head.data.tobytes()
    end = text.find(b"\n") + 1
    while 0 < end < len(text) and text[:end].count(b'"') % 2:
        end = text.find(b"\n", end) + 1 or len(text)
    return end or len(text)


def _fields_of(head: TextBlock, row: np.ndarray, delimiter: int) -> list[str]:
    """The names in the header."""
    import csv

    text = row.tobytes().decode(errors="backslashreplace").rstrip("\r\n")
    try:
        return [name.strip() for name in next(csv.reader([text], delimiter=chr(delimiter)), [])]
    except csv.Error as error:
        if "\r" in text:
            raise head.error(
                0, f"a carriage return within the line does not end it: {LINE_ENDS}"
            ) from None
        raise head.error(0, f"the names of the columns cannot be read: {error}") from None


def _sample(
    head: TextBlock, header: int, names: Sequence[str], delimiter: int, asked: InputOptions
) -> Cells:
    """The cells of the first rows, by column."""
    skipped = count_lines(head.data[:header])
    data, line = head.data[header:], head.first_line + skipped
    block = TextBlock(data, head.file, line, head.lines - skipped)
    layout = Layout({}, len(names), delimiter)
    try:
        rows = scan(block, layout, list(range(len(names))))
    except InputError as error:
        if not asked.columns:
            raise
        raise UsageError(f"columns names {plural(len(names), 'column')}, but {error}") from None
    places = zip(names, rows.starts[:, :SAMPLED_ROWS], rows.ends[:, :SAMPLED_ROWS], strict=True)
    return {
        name: [
            block.data[start:end].tobytes().decode(errors="replace").strip()
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        for name, starts, ends in places
    }


def columns_of(
    sample: Cells, shape: str, asked: InputOptions, file: str, cell: str = ""
) -> dict[str, FieldColumn]:
    """What the columns hold, by the cells of the first rows.

    `shape` is what the format adds to csv or tsv, and `cell` what parts the items of a cell, as in
    `text_lists.split`; where they are empty, the cells of the item column have to tell.
    """
    columns = {
        name: FieldColumn(i, _type_of(cells)) for i, (name, cells) in enumerate(sample.items())
    }
    schema = pa.schema({name: column.type for name, column in columns.items()})
    query, item = likely_ids(schema, asked.role, asked.query, asked.item)
    if item is None:
        return columns
    for name in (*query, item):
        columns[name] = columns[name]._replace(type=TEXT)
    if not query:  # of a catalogue
        return columns
    cell = cell or _cell_of(sample, query, item, shape, asked, file)
    if not cell:
        guarded = shape != "long" and not _any_separator(sample[item])
        columns[item] = columns[item]._replace(guarded=guarded)
        return columns
    guessed = cell in SEPARATORS and shape not in SHAPES
    items = columns[item]._replace(cell=cell, guarded=guessed)
    columns[item] = items
    if cell == PAIR_ITEMS:
        columns[CONFIDENCE] = FieldColumn(items.field, NUMBER, PAIR_NUMBERS)
    for name, column in columns.items():
        if not column.cell and name not in query and (column.type in BESIDE or cell == BRACKETS):
            columns[name] = _beside(column, sample[name], sample[item], cell)
    return columns


def _cell_of(
    sample: Cells, query: tuple[str, ...], item: str, shape: str, asked: InputOptions, file: str
) -> str:
    """What parts the items of a cell of the item column; an empty text if a cell is one item."""
    cells = [cell for cell in sample[item] if cell]
    if shape in SHAPES:
        return SHAPES[shape]
    if shape == "long":
        return ""
    if shape == "pairs":
        return PAIR_ITEMS
    # The few others are bad rows of such a file, and errors once they are read.
    if _most(lambda cell: cell[0] == "[", cells):
        return BRACKETS
    if _most(NO_LIST.fullmatch, cells):
        raise InputError(
            f"{file}: {cells[0]!r} in {item!r} looks like a tuple, a set or an array of Python; "
            "expected a list: write lists, such as ['a', 'b'], or name the format csv-long if each "
            "is one item"
        )
    if not shape and not _any_separator(cells):
        return ""
    if not shape and asked.role == "predictions" and _are_pairs(cells):
        if not all(_is_fraction(word) for cell in cells for word in cell.split()[::2]):
            return PAIR_ITEMS
        raise InputError(
            f"{file}: {cells[0]!r} in {item!r} may be an item and its confidence, or several "
            "items: name the format, csv-pairs or csv-wide, with --predictions-as"
        )
    ids = [*zip(*map(sample.get, query), strict=True)]
    rows, distinct = len(ids), len(set(ids))
    if not shape and rows > distinct:
        again = next(one for one, count in Counter(ids).items() if count > 1)
        raise InputError(
            f"{file}: {rows - distinct} of the first {rows} rows repeat a query, such as "
            f"{', '.join(map(str, again))!r}, and the items in {item!r}, such as "
            f"{next(filter(_has_separator, cells))[:40]!r}, may be one item or a list of several: "
            "if a query should have one row, drop the others ('rankmill check' lists them); else "
            "name the format, csv-long or csv-wide, with --labels-as or "
            "--predictions-as; if several columns make a query, name them all, as --query "
            f"{query[0]},OTHER on the command line, query={[query[0], 'OTHER']} in Python"
        )
    parted = sum(map(_has_separator, cells))
    held = {one: sum(one in cell for cell in cells) for one in SEPARATORS}
    return next((one for one in SEPARATORS if 2 * held[one] >= parted > 0), BLANK)


def _beside(column: FieldColumn, cells: list[str], items: list[str], cell: str) -> FieldColumn:
    """The column as lists of numbers, if its cells have as many numbers as the items' cells."""
    split = _splitter(cell)
    numbers = list(map(split, cells))
    if cell == BRACKETS:  # an item may hold what parts the others
        same = [not one or one[0] == "[" for one in cells]
    else:
        pairs = zip(numbers, map(split, items), strict=True)
        same = [len(a) == len(b) for a, b in pairs]
    kind = _type_of([str(one) for each in numbers for one in each])
    if kind == TEXT or 2 * sum(same) < len(same):
        return column
    return column._replace(type=kind if pa.types.is_null(kind) else NUMBER, cell=cell)


def _splitter(cell: str) -> Callable[[str], list[Any]]:
    """The function that splits a cell of the sample."""
    if cell == BRACKETS:
        return lambda text: text[1:-1].replace(",", " ").split() if text else []
    return lambda text: text.split(None if cell not in SEPARATORS[:-1] else cell) if text else []


def _type_of(cells: list[str]) -> Any:
    """The type of the values of a column, if it holds no ids; null if nothing tells.

    The few texts among numbers are errors if the column is read.
    """
    held = [cell for cell in cells if cell]
    if not held:
        return pa.null()
    if all(cell.removeprefix("-").isdecimal() for cell in held):
        return pa.int64()
    return NUMBER if 2 * sum(map(_is_number, held)) > len(held) else TEXT


def _most(test: Callable[[str], Any], cells: list[str]) -> bool:
    """Whether more than nine of ten cells pass a test."""
    return 10 * sum(map(bool, map(test, cells))) > 9 * len(cells)


def _any_separator(cells: list[str]) -> bool:
    return _has_separator("\n".join(cells))


def _has_separator(cell: str) -> bool:
    return any(one in cell for one in SEPARATORS)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _are_pairs(cells: list[str]) -> bool:
    """Whether the cells hold items that are each followed by a number, most of them fractions.

    A confidence may be written as 1 or 0, but lists of items that are integers are no pairs.
    """
    parted = sum(all(map(_is_fraction, cell.split()[1::2])) for cell in cells)
    if 20 * parted < 9 * len(cells):  # of which no half of nine tenths of the cells can be
        return False
    held = [cell for cell in cells if _is_pairs(cell)]
    fractions = sum(all(map(_is_fraction, cell.split()[1::2])) for cell in held)
    return 10 * len(held) > 9 * len(cells) and 2 * fractions >= len(held)


def _is_pairs(cell: str) -> bool:
    """Whether a cell holds items that are each followed by a number."""
    words = cell.split()
    return len(words) % 2 == 0 and all(map(_is_number, words[1::2]))


def _is_fraction(text: str) -> bool:
    return not text.lstrip("-").isdecimal() and _is_number(text)
