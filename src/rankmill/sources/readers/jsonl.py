"""Read JSON Lines, such as {"query_id": 1, "items": [7, 8], "scores": [0.9, 0.1]} in each line."""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.types as kinds

from rankmill.columns.lists import is_list_type, value_type
from rankmill.columns.objects import shown
from rankmill.errors import InputError
from rankmill.sources.files.files import File
from rankmill.sources.files.footers import first_line
from rankmill.sources.files.text_blocks import TextBlock, count_lines, last_line_end, read_blocks
from rankmill.sources.input_options import InputOptions
from rankmill.sources.readers.text_tables import open_text
from rankmill.sources.roles.source import Batch, Source

# So many blocks are read at most to learn the types of columns that begin with empty lists.
MOST_SAMPLED = 16


class Lines(NamedTuple):
    """How a file of JSON Lines is to be read."""

    schema: Any
    density: float  # the lines a byte, as the first ones have it
    header: int = 0
    cut: Any = last_line_end

    def typed(self, types: Mapping[str, Any]) -> Self:
        """The same with other types of values for some columns."""
        schema = self.schema
        for name, kind in types.items():
            place = schema.get_field_index(name)
            if place >= 0:
                is_list = is_list_type(schema.field(place).type)
                schema = schema.set(place, pa.field(name, pa.list_(kind) if is_list else kind))
        return self._replace(schema=schema)

    def parse(self, block: TextBlock, names: list[str], comments: None) -> Batch:
        """Some columns of a block."""
        fields = [self.schema.field(name) for name in names]
        if not fields:  # the folders give all columns, of as many rows
            fields, names = [pa.field("", pa.null())], [""]
        table = _parse(block, pa.schema(fields)).combine_chunks()
        lines = _lines_of(block)
        place = block.place(lines)
        if table.num_rows != len(lines):  # several objects on a line
            place = place._replace(first=-1, lines=None)
        arrays = [table.column(name).combine_chunks() for name in names]
        return Batch(pa.RecordBatch.from_arrays(arrays, names=names), place)


def open_files(files: Sequence[File], name: str, asked: InputOptions) -> Source:
    """Open files of JSON Lines; the first lines tell the columns and their types."""
    return _open(files, name, [_sample(file) for file in files])


def _open(files: Sequence[File], name: str, layouts: Sequence[Lines]) -> Source:
    def typed(types: Mapping[str, Any]) -> Source:
        return _open(files, name, [layout.typed(types) for layout in layouts])

    return replace(open_text(files, name, layouts, "JSON Lines"), text=False, typed=typed)


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
    fields = [field.with_type(_as_text(field.type)) for field in schema]
    return Lines(pa.schema(fields), density)


def _exact(block: TextBlock, table: Any) -> Any:
    """The schema of a block, with integers where Arrow makes floats of those beyond int64."""
    import pyarrow.compute as pc

    schema = table.schema
    for place, field in enumerate(schema):
        listed = is_list_type(field.type)
        values = pc.list_flatten(table.column(place)) if listed else table.column(place)
        if kinds.is_floating(values.type) and (pc.max(values).as_py() or 0) >= 2.0**63:
            exact = field.with_type(pa.list_(pa.uint64()) if listed else pa.uint64())
            with suppress(InputError):  # if some are fractions or negative
                _parse(block, pa.schema([exact]))
                schema = schema.set(place, exact)
    return schema


def _as_text(kind: Any) -> Any:
    """The type with strings for what Arrow takes for times."""
    if is_list_type(kind):
        return pa.list_(_as_text(kind.value_type))
    return pa.string() if kinds.is_temporal(kind) else kind


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
            raise block.error(0, f"this line or a later one is broken: {what}") from None
        line = int(lines[int(row[1])])
        changed = re.match(r"Column\(/([^/]*)(?:/\[\])?\) changed from (\w+) to ", what)
        if changed is None:
            what = f"{what[: row.start()]}; expected an object, as before"
        else:
            value = json.loads(text.splitlines()[line]).get(changed[1])
            kind = f"{'an' if changed[2] == 'array' else 'a'} {changed[2]}"
            kind += " for each item" if isinstance(value, list) else ""
            before = ", as before" if schema is None else ""
            what = f"{changed[1]} is {shown(value)}; expected {kind}{before}"
        raise block.error(line, what) from None
