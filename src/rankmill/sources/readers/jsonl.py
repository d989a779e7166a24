"""Read JSON Lines, such as {"query_id": 1, "items": [7, 8], "scores": [0.9, 0.1]} in each line."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.types as kinds

from rankmill.columns.lists import is_list_type, value_type
from rankmill.columns.objects import shown
from rankmill.sources.files.files import File
from rankmill.sources.files.folders import folder_columns, whole_schema, with_folders
from rankmill.sources.files.footers import first_line
from rankmill.sources.files.text_blocks import TextBlock, count_lines, read_blocks, sizes_of
from rankmill.sources.input_options import InputOptions
from rankmill.sources.roles.source import Batch, Block, Source

# So many blocks are read at most to learn the types of columns that begin with empty lists.
MOST_SAMPLED = 16


def open_files(files: Sequence[File], name: str, asked: InputOptions) -> Source:
    """Open files of JSON Lines; the first lines tell the columns and their types."""
    sampled = [_sample(file) for file in files]
    schemas, densities = [one for one, _ in sampled], [one for _, one in sampled]
    return _source(files, name, schemas, densities)


def _source(
    files: Sequence[File], name: str, schemas: Sequence[Any], densities: Sequence[float]
) -> Source:
    folders = folder_columns(files, schemas)

    def pieces(columns: list[str]) -> list[Iterator[Block]]:
        return [_read(*one, columns) for one in zip(files, schemas, folders, strict=True)]

    def typed(types: Mapping[str, Any]) -> Source:
        return _source(files, name, [_typed(schema, types) for schema in schemas], densities)

    whole = {
        file.name: whole_schema(schema, of_file)
        for file, schema, of_file in zip(files, schemas, folders, strict=True)
    }
    source = Source(name, whole, None, sizes_of(files, densities), pieces, format="JSON Lines")
    return replace(source, typed=typed)


def _typed(schema: Any, types: Mapping[str, Any]) -> Any:
    """The schema with other types of values for some columns."""
    for name, kind in types.items():
        place = schema.get_field_index(name)
        if place >= 0:
            is_list = is_list_type(schema.field(place).type)
            schema = schema.set(place, pa.field(name, pa.list_(kind) if is_list else kind))
    return schema


def _sample(file: File) -> tuple[Any, float]:
    """The schema of the first lines, and the number of lines a byte."""
    schema, density = pa.schema([]), 0.0
    with closing(read_blocks(file)) as blocks:  # type: ignore[type-var]
        for block in itertools.islice(blocks, MOST_SAMPLED):
            density = density or count_lines(block.data) / len(block.data)
            found = _parse(block, None).schema
            schema = pa.unify_schemas([schema, found], promote_options="permissive")
            if not any(kinds.is_null(value_type(kind)) for kind in schema.types):
                break
    fields = [field.with_type(_as_text(field.type)) for field in schema]
    return pa.schema(fields), density


def _as_text(kind: Any) -> Any:
    """The type with strings for what Arrow takes for times."""
    if is_list_type(kind):
        return pa.list_(_as_text(kind.value_type))
    return pa.string() if kinds.is_temporal(kind) else kind


def _read(
    file: File, schema: Any, folders: Mapping[str, Any], columns: list[str]
) -> Iterator[Block]:
    names = [name for name in columns if name in schema.names]
    wanted = pa.schema([schema.field(name) for name in names])
    for block in read_blocks(file):
        yield partial(_batch, block, wanted, folders, columns)


def _batch(block: TextBlock, schema: Any, folders: Mapping[str, Any], columns: list[str]) -> Batch:
    table = _parse(block, schema).combine_chunks()
    lines = _lines_of(block)
    place = block.place(lines)
    if table.num_rows != len(lines):  # several objects on a line
        place = place._replace(first=-1, lines=None)
    data = pa.RecordBatch.from_arrays(
        [table.column(name).combine_chunks() for name in schema.names], names=schema.names
    )
    return Batch(with_folders(data, folders, columns), place)


def _lines_of(block: TextBlock) -> np.ndarray:
    """The lines that are not empty, counted from 0."""
    texts = block.data.tobytes().split(b"\n")
    return np.array([i for i, text in enumerate(texts) if text.strip()], np.int64)


def _parse(block: TextBlock, schema: Any) -> Any:
    """A block as a table; with the columns and types of a schema, or with all that are found."""
    text = block.data.tobytes()
    options = pj.ParseOptions(
        explicit_schema=schema,
        unexpected_field_behavior="infer" if schema is None else "ignore",
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
