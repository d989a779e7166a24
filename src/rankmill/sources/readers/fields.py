"""Rows of text made of fields: where each column is in a row, and what its text stands for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of
from rankmill.columns.place import Place
from rankmill.errors import plural
from rankmill.kernels.cells import first_with_blank
from rankmill.kernels.text import (
    BAD_COUNT,
    UNCLOSED,
    last_row_end,
    scan_blanks,
    scan_delimited,
    undouble,
)
from rankmill.sources.files.doubts import Doubts, doubt_lists, doubt_quotes, doubt_returns
from rankmill.sources.files.files import File
from rankmill.sources.files.folders import folder_columns, whole_schema, with_folders
from rankmill.sources.files.text_blocks import (
    TextBlock,
    Texts,
    integers,
    last_line_end,
    numbers,
    read_blocks,
    sizes_of,
    strings,
)
from rankmill.sources.files.text_lists import PAIR_ITEMS, PAIR_NUMBERS, split
from rankmill.sources.roles.source import Batch, Block, Source

TEXT, NUMBER = pa.large_string(), pa.float64()


class FieldColumn(NamedTuple):
    """A column of rows of fields."""

    field: int  # that holds it, counted from 0
    type: Any  # of a value; in a list, of an item
    cell: str = ""  # what parts the items of a list, as in `text_lists.split`; empty for one value
    # Whether what may part items is not expected within a value. In a value that is no list it is
    # an error, because no value among the first rows had it; in the items of a list, the lists are
    # counted.
    guarded: bool = False


@dataclass(frozen=True)
class Layout:
    """How the rows of a file are to be read."""

    columns: dict[str, FieldColumn]
    fields: int  # how many a row has
    delimiter: int = 0  # the byte between fields; 0 if runs of blanks part them
    header: int = 0  # how many bytes are before the first row
    density: float = 0.0  # the rows a byte, as the first rows have it
    more: bool = False  # whether rows may have more fields, which are not read

    @property
    def schema(self) -> Any:
        """The Arrow types of the columns."""
        each = self.columns.items()
        return pa.schema([(name, pa.large_list(c.type) if c.cell else c.type) for name, c in each])

    def typed(self, types: Mapping[str, Any]) -> "Layout":
        """The same layout with other types of values."""
        columns = {
            name: column._replace(type=types.get(name, column.type))
            for name, column in self.columns.items()
        }
        return replace(self, columns=columns)

    def parse(self, block: TextBlock, names: list[str], doubts: Doubts) -> Batch:
        """Some columns of a block."""
        read = [(name, self.columns[name]) for name in names]
        fields = [*dict.fromkeys(one.field for _, one in read)]
        rows = scan(block, self, fields)
        count = rows.starts.shape[1]
        doubts.read(block.file, block.first_line, count, rows.comments)
        doubt_returns(block, self.delimiter, doubts)
        arrays = [column_of(rows, fields.index(one.field), name, one, doubts) for name, one in read]
        if not arrays:  # the folders give all columns
            names, arrays = [""], [pa.nulls(count)]
        return Batch(pa.RecordBatch.from_arrays(arrays, names=names), rows.place)


class TextRows(NamedTuple):
    """The fields of some rows: the place of each field that is read, int64[columns, rows]."""

    data: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    doubled: np.ndarray
    indented: np.ndarray
    place: Place
    comments: int


def open_text(
    files: Sequence[File],
    name: str,
    layouts: Sequence[Any],
    format: str,
    doubts: Doubts | None = None,
) -> Source:
    """Open files of text, each with its layout; with `doubts`, ids are text, too.

    A layout is a `Layout`, or has its attributes `schema`, `density`, `delimiter` and `header`, and
    its methods `typed` and `parse`.
    """
    folders = folder_columns(files, [layout.schema for layout in layouts])

    def pieces(columns: list[str]) -> list[Iterator[Block]]:
        each = zip(files, layouts, folders, strict=True)
        return [_read(*one, columns, doubts) for one in each]

    def typed(types: Mapping[str, Any]) -> Source:
        again = [layout.typed(types) for layout in layouts]
        return open_text(files, name, again, format, doubts)

    schemas = {
        file.name: whole_schema(layout.schema, of_file)
        for file, layout, of_file in zip(files, layouts, folders, strict=True)
    }
    sizes = sizes_of(files, [layout.density for layout in layouts])
    delimiter = chr(layouts[0].delimiter) if layouts[0].delimiter else ""
    source = Source(name, schemas, None, sizes, pieces, format=format, delimiter=delimiter)
    return replace(source, typed=typed, text_ids=doubts is not None, doubts=doubts)


def _read(
    file: File, layout: Any, folders: Mapping[str, Any], columns: list[str], doubts: Doubts | None
) -> Iterator[Block]:
    names = [name for name in columns if name not in folders]

    def parse(block: TextBlock) -> Batch:
        batch: Batch = layout.parse(block, names, doubts)
        return batch._replace(data=with_folders(batch.data, folders, columns))

    for block in read_blocks(file, cut_rows(layout.delimiter), header=layout.header):
        yield partial(parse, block)


def cut_rows(delimiter: int) -> Any:
    """The function that tells where the last whole row ends; quotes matter in delimited text."""

    def cut(data: np.ndarray, quotes: bool) -> int:
        return int(last_row_end(data, delimiter)) if quotes and delimiter else last_line_end(data)

    return cut


def scan(block: TextBlock, layout: Layout, fields: list[int]) -> TextRows:
    """Find some fields of all rows of a block."""
    wanted = np.full(layout.fields, -1)
    wanted[fields] = np.arange(len(fields))
    # A row has a delimiter or a line end behind each field, which bounds the rows of many fields.
    most = min(block.lines, (len(block.data) + 1) // max(1, layout.fields)) + 1
    starts, ends = np.empty((2, len(fields), most), np.int64)
    marks = np.zeros((2, len(fields)), np.bool_)
    lines = np.empty(most, np.int64)
    bad = np.zeros(3, np.int64)
    if layout.delimiter:
        count = scan_delimited(
            block.data, layout.delimiter, wanted, starts, ends, marks, lines, bad
        )
    else:
        count = scan_blanks(block.data, wanted, layout.more, starts, ends, lines, bad)
    if count < 0:
        cut = int(bad[0]) == most - 1  # this line has no end
        raise block.error(int(bad[0]), _what(count, int(bad[1]), layout, cut))
    place = block.place(lines[:count])
    found = starts[:, :count], ends[:, :count], marks[0], marks[1]
    return TextRows(block.data, *found, place, int(bad[2]))


def _what(code: int, found: int, layout: Layout, cut: bool) -> str:
    if code == BAD_COUNT:
        expected = f"{layout.fields} or more" if layout.more else f"{layout.fields}"
        end = "; it is the last line and has no end, so the file may be cut off" if cut else ""
        return f"{plural(found, 'column')}; expected {expected}, as in the first line{end}"
    if code == UNCLOSED:
        return "a quoted text that starts here is not closed; expected a quote at its end"
    return (
        "a quoted text is followed by more text; expected the end of the field after its quote: "
        'write a quote within the text as ""'
    )


def column_of(rows: TextRows, place: int, name: str, column: FieldColumn, doubts: Doubts) -> Any:
    """The Arrow array of a column; `place` is its number among the fields that were found."""
    texts = Texts(name, rows.place, rows.data, rows.starts[place], rows.ends[place])
    if rows.indented[place]:
        doubt_quotes(texts, doubts)
    if rows.doubled[place]:
        starts, ends = texts.starts.copy(), texts.ends.copy()
        data = np.empty(int(ends.sum() - starts.sum()), np.uint8)
        undouble(rows.data, starts, ends, data)
        texts = texts._replace(data=data, starts=starts, ends=ends)
    if column.guarded and not column.cell:
        _check_guarded(texts)
    if not column.cell:
        return _values(texts, column.type)
    texts = split(texts, column.cell)
    offsets = texts.offsets
    assert offsets is not None
    if column.guarded:
        doubt_lists(texts, column.cell, doubts)
    if column.cell in (PAIR_ITEMS, PAIR_NUMBERS):
        own, offsets = slice(int(column.cell == PAIR_NUMBERS), None, 2), offsets // 2
        texts = texts._replace(starts=texts.starts[own], ends=texts.ends[own], offsets=offsets)
    return pa.LargeListArray.from_arrays(arrow_of(offsets), _values(texts, column.type))


def _check_guarded(texts: Texts) -> None:
    bad = first_with_blank(texts.data, texts.starts, texts.ends)
    if bad >= 0:
        raise texts.error(
            bad,
            f"the item {texts.shown(bad)} may be one item or a list of several, and no earlier "
            "row shows which; name the format: csv-long or csv-wide, with --labels-as or "
            "--predictions-as",
        )


def _values(texts: Texts, kind: Any) -> Any:
    where = texts.data, texts.starts, texts.ends
    if kind == TEXT:
        return strings(*where)
    whole = pa.types.is_integer(kind)
    array, bad = integers(*where, kind) if whole else numbers(*where)
    if bad >= 0:
        expected = "a number"
        if whole:
            expected = (
                "an integer of 64 bits without leading zeros; ids are integers on both sides, or "
                "strings on both"
            )
        raise texts.error(bad, f"{texts.name} is {texts.shown(bad)}; expected {expected}")
    return array
