"""Tables of text: blocks of rows of fields, read by pyarrow.csv with each value as it stands."""

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from rankmill.columns.buffers import array_of_values
from rankmill.columns.buffers import pc as compute
from rankmill.columns.ranked_lists import Place
from rankmill.kernels.text import HASH, NEWLINE
from rankmill.records import record
from rankmill.sources.files.files import File, folder_columns, whole_schema, with_folders
from rankmill.sources.files.text_blocks import (
    ALL,
    Rows,
    TextBlock,
    check_widths,
    cut_rows,
    has_quotes,
    one_byte,
    read_blocks,
    rows_of,
    sizes_of,
)
from rankmill.sources.roles.source import Batch, Source

TEXT = pa.large_string()
COMMENT = re.compile(rb"^[ \t]*#.*", re.MULTILINE)

Comments = dict[tuple[str, int], int]


@record(frozen=True)
class Layout:
    """How the rows of a file are to be read."""

    fields: tuple[str, ...]  # the names of those of a row
    separator: str
    columns: tuple[str, ...]  # the fields that may be read
    header: int = 0  # how many lines are before the first row
    density: float = 0.0  # the rows a byte, as the first rows have it
    trec: bool = False  # without quotes, and with comments
    written: tuple[str, ...] = ()  # names as the header has them, with the blanks around them
    most: int = ALL  # so many fields of a row are kept where blanks separate them

    @property
    def schema(self) -> Any:
        """The Arrow types of the columns."""
        return pa.schema([(name, TEXT) for name in self.columns])

    @property
    def quotes(self) -> bool:
        """Whether a field may be quoted."""
        return not self.trec and has_quotes(self.separator)

    @property
    def cut(self) -> Any:
        """What tells where the last whole row of a block ends."""
        return cut_rows(self.separator, self.quotes)

    def parse(self, block: TextBlock, names: list[str], comments: Comments | None) -> Batch:
        """Some columns of a block."""
        data = block.data
        if comments is not None:
            text, count = COMMENT.subn(b"", data.tobytes()) if (data == HASH).any() else (data, 0)
            comments[block.file, block.first_line] = count
            data = np.frombuffer(text, np.uint8)
        quoted = self.quotes and block.quotes
        if quoted:  # pyarrow reads on behind them, and to the end if they are not closed
            self._check(block, data)
        try:
            table = self._table(data, names, quoted)
        except pa.ArrowInvalid:
            if self._check(block, data):  # some rows have more fields, which are not read
                table = self._table(data, names, quoted, self.most)
            else:
                table = self.schema.empty_table().select(names or self.columns[:1])
        arrays = [one.combine_chunks() for one in table.columns]
        if self.header and names[1:]:
            self._check_no_header(block, data, dict(zip(names, arrays, strict=True)))
        if not names:  # the folders give all columns
            names, arrays = [""], [pa.nulls(table.num_rows)]
        place = Place(block.file, block.first_line, "line")
        if table.num_rows != block.lines + (block.data[-1] != NEWLINE):
            place = block.place(self._rows(data).lines)
        return Batch(pa.RecordBatch.from_arrays(arrays, names=names), place)

    def _check_no_header(self, block: TextBlock, data: np.ndarray, columns: dict[str, Any]) -> None:
        """Raise InputError if a row has the names of the columns, as in files that were joined."""
        names = array_of_values([*columns], pa.string()).cast(TEXT)  # a scalar would load pandas
        again = reduce(compute.and_, map(compute.equal, columns.values(), names))
        if not compute.any(again).as_py():
            return
        line = int(self._rows(data).lines[compute.index(again, True).as_py()])
        raise block.error(line, "it holds the names of the columns again: leave this line out")

    def _table(self, data: np.ndarray, names: list[str], quoted: bool, most: int = ALL) -> Any:
        data, delimiter = one_byte(data, self.separator, most)
        return pc.read_csv(
            pa.py_buffer(data),
            pc.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self.fields),
            pc.ParseOptions(delimiter=delimiter, quote_char='"' if quoted else False),
            pc.ConvertOptions(
                check_utf8=False,  # blocks were checked
                column_types=dict.fromkeys(self.fields, TEXT),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                include_columns=names or self.columns[:1],
            ),
        )

    def _rows(self, data: np.ndarray) -> Rows:
        return rows_of(data, self.separator, self.most, self.quotes)

    def _check(self, block: TextBlock, data: np.ndarray) -> int:
        """Raise InputError for the first wrong row of a block; return how many rows it has."""
        expected = f"{len(self.fields)}{' or more' if self.most < ALL else ''}"
        rows = self._rows(data)
        check_widths(block, rows, len(self.fields), expected)
        return len(rows.lines)


def open_text(
    files: Sequence[File],
    name: str,
    layouts: Sequence[Any],
    format: str,
    comments: Comments | None = None,
) -> Source:
    """Open files of text, each with its layout.

    A layout is a `Layout`, or has its attributes `schema`, `density`, `header` and `cut`, and its
    method `parse`.
    """
    folders = folder_columns(files, [layout.schema for layout in layouts])

    def pieces(columns: list[str]) -> list[Generator[Any, None, None]]:
        each = zip(files, layouts, folders, strict=True)
        return [_read(*one, columns, comments) for one in each]

    schemas = {
        file.name: whole_schema(layout.schema, of_file)
        for file, layout, of_file in zip(files, layouts, folders, strict=True)
    }
    every = list(dict.fromkeys(next(iter(schemas.values())).names))
    counts = None if comments is None else dict(comments)  # of what is looked at, counted later
    first: list[Batch | None] = []

    def peek(columns: list[str]) -> Batch | None:
        # It is looked at for one rule after the other.
        if not first:
            with closing(_read(files[0], layouts[0], folders[0], every, counts)) as blocks:
                filled = (one for one in (block() for block in blocks) if one.data.num_rows)
                first.append(next(filled, None))
        return None if first[0] is None else first[0].select(columns)

    sizes = sizes_of(files, [layout.density for layout in layouts])
    return Source(
        name,
        schemas,
        None,
        sizes,
        pieces,
        format=format,
        comments=comments,
        peek=peek,
    )


def _read(
    file: File,
    layout: Any,
    folders: Mapping[str, Any],
    columns: list[str],
    comments: Comments | None,
) -> Generator[Any, None, None]:
    names = [name for name in columns if name not in folders]

    def parse(block: TextBlock) -> Batch:
        batch: Batch = layout.parse(block, names, comments)
        return batch._replace(data=with_folders(batch.data, folders, columns))

    for block in read_blocks(file, layout.cut, header=layout.header):
        yield partial(parse, block)
