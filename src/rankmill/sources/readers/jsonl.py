"""Read JSON Lines, such as {"query_id": 1, "items": [7, 8], "scores": [0.9, 0.1]} in each line."""

import itertools
import json
import re
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.types as kinds

from rankmill.columns.buffers import pc
from rankmill.columns.lists import is_list_type, value_type
from rankmill.columns.objects import EXACT, shown
from rankmill.errors import InputError
from rankmill.sources.files.files import File, first_line
from rankmill.sources.files.text_blocks import TextBlock, count_lines, last_line_end, read_blocks
from rankmill.sources.readers.text_tables import open_text
from rankmill.sources.roles.source import Batch, InputOptions, Source

# So many blocks are read at most to learn the types of columns that begin with empty lists.
MOST_SAMPLED = 16


# What Arrow says of a number that is no integer of 64 bits where all before it were; what we say.
FAILED = "Failed to convert JSON to int64, couldn't parse:(.*)"
NOT_WHOLE = "is no integer of 64 bits, but all numbers of the first lines are"


class Lines(NamedTuple):
    """How a file of JSON Lines is to be read."""

    schema: Any
    density: float  # the lines a byte, as the first ones have it
    header: int = 0
    cut: Any = last_line_end

    def parse(self, block: TextBlock, names: list[str], comments: None) -> Batch:
        """Some columns of a block."""
        fields = [self.schema.field(name) for name in names]
        if not fields:  # the folders give all columns, of as many rows
            fields, names = [pa.field("", pa.null())], [""]
        table = _with_fractions(block, pa.schema(fields)).combine_chunks()
        lines = _lines_of(block)
        place = block.place(lines)
        if table.num_rows != len(lines):  # several objects on a line
            place = place._replace(first=-1, lines=None)
        arrays = [table.column(name).combine_chunks() for name in names]
        return Batch(pa.RecordBatch.from_arrays(arrays, names=names), place)


def open_files(files: Sequence[File], name: str, asked: InputOptions) -> Source:
    """Open files of JSON Lines; the first lines tell the columns and their types."""
    source = open_text(files, name, [_sample(file) for file in files], "JSON Lines")
    return replace(source, sampled=True)


def _sample(file: File) -> Lines:
    schema, density = pa.schema([]), 0.0
    with closing(read_blocks(file)) as blocks:  # type: ignore[type-var]
        filled = (one for one in blocks if one.data.tobytes().strip())
        for block in itertools.islice(filled, MOST_SAMPLED):
            density = density or count_lines(block.data) / len(block.data)
            found = _exact(block, _parse(block, None))
            schema = pa.unify_schemas([schema, found], promote_options="permissive")
            if not any(kinds.is_null(value_type(kind)) for kind in schema.types):
                break
    # Arrow takes some texts for times.
    types = [_changed(kind, kinds.is_temporal, pa.string()) for kind in schema.types]
    return Lines(pa.schema(zip(schema.names, types, strict=True)), density)


def _exact(block: TextBlock, table: Any) -> Any:
    """The schema of a block, with integers where Arrow makes floats of those beyond int64."""
    schema = table.schema
    for place, field in enumerate(schema):
        if _largest(table.column(place)) >= 2.0**63:
            exact = field.with_type(_changed(field.type, kinds.is_floating, pa.uint64()))
            with suppress(InputError):  # if some are fractions or negative
                _parse(block, pa.schema([exact]))
                schema = schema.set(place, exact)
    return schema


def _with_fractions(block: TextBlock, schema: Any) -> Any:
    """A block as a table of some columns; where all numbers were whole so far, some may not be."""
    try:
        return _parse(block, schema)
    except InputError as error:
        if NOT_WHOLE not in str(error):
            raise
    for place, field in enumerate(schema):
        try:
            _parse(block, pa.schema([field]))
        except InputError:
            wider = field.with_type(_changed(field.type, kinds.is_integer, pa.float64()))
            if _largest(_parse(block, pa.schema([wider])).column(0)) >= EXACT:
                raise  # as an integer it may be another one
            schema = schema.set(place, wider)
    return _parse(block, schema)


def _changed(kind: Any, fits: Callable[[Any], bool], other: Any) -> Any:
    """The type with another one in the place of all within it that fit."""
    if is_list_type(kind):
        return pa.list_(_changed(kind.value_type, fits, other))
    if kinds.is_struct(kind):
        return pa.struct([one.with_type(_changed(one.type, fits, other)) for one in kind])
    return other if fits(kind) else kind


def _largest(column: Any) -> float:
    """The largest of the doubles in a column without their signs."""
    if is_list_type(column.type):
        return _largest(pc.list_flatten(column))
    if kinds.is_struct(column.type):
        return max(map(_largest, column.flatten()))
    return pc.max(pc.abs(column)).as_py() or 0.0 if kinds.is_floating(column.type) else 0.0


def _lines_of(block: TextBlock) -> np.ndarray:
    """The lines that are not empty, counted from 0."""
    texts = block.data.tobytes().split(b"\n")
    return np.array([i for i, text in enumerate(texts) if text.strip()], np.int64)


def _parse(block: TextBlock, schema: Any) -> Any:
    """A block as a table; with the columns and types of a schema, or with all that are found."""
    text = block.data.tobytes()
    options = pj.ParseOptions(
        explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore"
    )
    size = pj.ReadOptions(use_threads=False, block_size=max(1, len(block.data)))
    try:
        return pj.read_json(pa.BufferReader(text), size, options)
    except pa.ArrowInvalid as error:
        what = first_line(error).removeprefix("JSON parse error: ")
        row = re.search(r" in row (\d+)$", what)
        lines = _lines_of(block)
        if row is None or int(row[1]) >= len(lines):
            todo = "expected such integers, or numbers below 2**53"
            what = re.sub(FAILED, rf"\1 {NOT_WHOLE}; {todo}", what)
            raise block.error(0, f"this line or a later one is broken: {what}") from None
        line = int(lines[int(row[1])])
        changed = re.match(r"Column\(/([^/]*)(?:/\[\])?\) changed from (\w+) to ", what)
        if changed is None:
            what = f"{what[: row.start()]}; expected an object, as before"
        else:
            value = json.loads(text.splitlines()[line]).get(changed[1])
            kind = f"{'an' if changed[2] == 'array' else 'a'} {changed[2]}"
            kind += " for each item" if isinstance(value, list) else ""
            what = f"{changed[1]} is {shown(value)}; expected {kind}, as before"
        raise block.error(line, what) from None
