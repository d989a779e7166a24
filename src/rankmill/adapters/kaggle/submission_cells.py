"""A solution or a submission as its file has it: the text of each cell, and its row."""

import os
from contextlib import closing, suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.errors import InputError
from rankmill.sources.files.formats import format_of_name
from rankmill.sources.inputs.any_source import open_source
from rankmill.sources.readers.separated_values import DELIMITERS
from rankmill.sources.roles.source import Batch, InputOptions

TEXT = pa.large_string()


class Cells(NamedTuple):
    """The cells of a table as text, null where one is empty; and the "line" or "row" of each.

    `delimiter` is what delimits the columns, and `usual` what the name of the file promises; both
    are empty if it is no text.
    """

    columns: dict[str, Any]
    rows: np.ndarray
    unit: str
    delimiter: str
    usual: str


class CellItems(NamedTuple):
    """The items in all cells of a column: the row, the text and the text of the confidence of each.

    `broken` are the rows that hold no pairs, although they should; they have no items here.
    """

    rows: np.ndarray
    items: Any
    scores: Any
    broken: np.ndarray


def read_cells(value: Any, role: Any) -> Cells:
    """Read a file or a frame as text, with leading zeros; InputError if it is no table."""
    told = format_of_name(os.fspath(value)) if isinstance(value, str | os.PathLike) else "memory"
    format = {"csv": "csv-long", "tsv": "tsv-long", None: "csv-long"}.get(told)
    if hasattr(value, "iloc") and value.ndim == 2:
        # pandas reads a large file by parts, and one may hold only integers
        mixed = [name for name, kind in value.dtypes.items() if kind == "object"]
        try:
            value = value.assign(**{name: value[name].map(_as_text) for name in mixed})
        except UnicodeEncodeError as error:
            raise InputError(f"{error.object!r} is not Unicode text; expected text") from None
    source = open_source(value, InputOptions(role=role, format=format), may_be_empty=True)
    with closing(source):
        names = list(source.schema.names)
        pieces = [block for piece in source.pieces(names) for block in piece]
        batches = [block if isinstance(block, Batch) else block() for block in pieces]
    columns = {
        name: [
            _text(batch.data.column(name), f"{source.name}: column {name!r}") for batch in batches
        ]
        for name in names
    }
    rows = [np.empty(0, np.int64)]
    for data, place in batches:
        rows.append(np.arange(len(data)) + place.first if place.lines is None else place.lines)
    return Cells(
        {name: pa.concat_arrays([pa.array([], TEXT), *some]) for name, some in columns.items()},
        np.concatenate(rows),
        batches[0].place.unit if batches else "row",
        source.delimiter,
        DELIMITERS[str(format).partition("-")[0]] if source.delimiter else "",
    )


def _as_text(cell: Any) -> Any:
    return str(cell) if isinstance(cell, int) else cell


def _text(column: Any, what: str) -> Any:
    """A column as text. pandas makes floats of integers where one is missing: they go back."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
        with suppress(pa.ArrowInvalid):
            column = column.cast(pa.int64())
    try:
        texts = pc.utf8_trim_whitespace(column.cast(TEXT))
    except (pa.ArrowException, NotImplementedError):
        raise InputError(
            f"{what} holds {column.type}; expected text, with items separated by spaces as in a CSV"
        ) from None
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, TEXT), texts)


def split_cells(column: Any, pairs: bool) -> CellItems:
    """The items between the blanks of each cell, each followed by its confidence if in pairs."""
    lists = pc.ascii_split_whitespace(column)
    lengths = numbers_of(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)
    words, rows = lists.flatten(), np.repeat(np.arange(len(column)), lengths)
    if not pairs:
        return CellItems(rows, words, None, np.empty(0, np.int64))
    whole = np.repeat(lengths % 2 == 0, lengths)
    words, rows = words.filter(arrow_of(whole)), rows[whole]
    items, scores = (words.take(arrow_of(np.arange(at, len(words), 2))) for at in (0, 1))
    return CellItems(rows[::2], items, scores, np.flatnonzero(lengths % 2))


def numbers_in(texts: Any) -> np.ndarray:
    """The numbers that texts stand for; NaN where one stands for none."""
    try:
        return np.array(numbers_of(texts.cast(pa.float64()), null=np.nan))
    except pa.ArrowInvalid:
        return np.array([_number_in(text) for text in texts.to_pylist()], np.float64)


def _number_in(text: str | None) -> float:
    try:
        return float(text) if text and "_" not in text else np.nan
    except ValueError:
        return np.nan


def by_id(
    codes: np.ndarray, ids: Any, listed: CellItems, scores: np.ndarray | None, sort: bool
) -> Any:
    """A row for each of the `ids` with its list; `codes` says which id each row of cells has.

    With `sort`, the items of an id stand by falling score, and equal ones by their rows.
    """
    group = codes[listed.rows]
    keys = (-scores, group) if sort and scores is not None else (group,)
    order = np.lexsort(keys)
    counts = np.bincount(group, minlength=len(ids))
    offsets = arrow_of(np.concatenate([[0], np.cumsum(counts)]))
    table = {"query": ids, "items": _lists(offsets, listed.items.take(arrow_of(order)))}
    if scores is not None:
        table["scores"] = _lists(offsets, arrow_of(scores[order]))
    return pa.table(table)


def _lists(offsets: Any, values: Any) -> Any:
    return pa.LargeListArray.from_arrays(offsets, values)
