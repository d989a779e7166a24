"""Read what other libraries give as Arrow: frames, queries, datasets and streams."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from rankmill.columns.ranked_lists import Place
from rankmill.errors import InputError
from rankmill.sources.memory.cells import UNREADABLE
from rankmill.sources.roles.source import BATCH_ROWS, Batch, InputOptions, Source
from rankmill.sources.roles.streams import (
    open_batches,
    open_stream,
    open_table,
    produced,
    validated,
)


def open_arrays(value: Any, asked: InputOptions) -> Source:
    """Open a record batch or an Arrow array of structs, also chunked, of any library."""
    chunks = value.chunks if isinstance(value, pa.ChunkedArray) else [value]
    try:
        schema = pa.schema(value.type) if isinstance(value, pa.ChunkedArray) else None
        table = pa.Table.from_batches([pa.record_batch(chunk) for chunk in chunks], schema)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"the {type(value).__name__} of {asked.role} cannot be read as a record batch: "
            f"{error}; expected structs with a field for each column"
        ) from None
    return open_table(table, f"the {type(value).__name__} of {asked.role}")


def open_reader(value: Any, asked: InputOptions) -> Source:
    """Open what exports an Arrow stream, of which nothing tells that it does so twice."""
    name = f"the {type(value).__name__} of {asked.role}"
    with produced(name):
        try:
            # The stream of a reader would turn the errors of Python into texts.
            is_reader = isinstance(value, pa.RecordBatchReader)
            reader = value if is_reader else pa.RecordBatchReader.from_stream(value)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InputError(
                f"{name} is not a stream of record batches: {error}; expected a table, with a "
                "column of query ids in addition to that of items"
            ) from None
    return open_stream(name, reader.schema, lambda columns: _selected(reader, columns))


def _selected(reader: Any, columns: list[str]) -> Iterator[Any]:
    # To select costs as much as all else that is done with a small batch.
    whole = columns == reader.schema.names
    for data in reader:
        yield data if whole else data.select(columns)


def open_polars(frame: Any, asked: InputOptions) -> Source:
    """Open a DataFrame or LazyFrame of Polars; the columns that are read are exported each time."""
    name, is_lazy = f"the {type(frame).__name__} of {asked.role}", hasattr(frame, "collect")
    with produced(name):
        schema = _schema_of(frame.head(0).collect() if is_lazy else frame.head(0))

    def batches(columns: list[str]) -> Iterator[Any]:
        chosen = frame.select(columns)
        if not is_lazy:
            parts = chosen.iter_slices(BATCH_ROWS)
        elif hasattr(chosen, "collect_batches"):
            parts = chosen.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True)
        else:  # Polars before 1.34
            parts = [chosen.collect(engine="streaming")]
        for part in parts:
            yield from _batches_of(part, name)

    def sizes(columns: list[str]) -> dict[str, tuple[int, int]]:
        return {one: (_values_of(frame[one]), int(frame[one].estimated_size())) for one in columns}

    source = open_batches(name, schema, batches)
    return source if is_lazy else replace(source, sizes=sizes, rows=frame.height)


def _values_of(values: Any) -> int:
    """How many values a Polars Series holds, or its lists; those of an Array have one length."""
    kind = str(values.dtype.base_type())
    if kind not in ("List", "Array"):
        return len(values)
    return len(values) * values.dtype.size if kind == "Array" else int(values.list.len().sum())


def open_duckdb(relation: Any, asked: InputOptions) -> Source:
    """Open a DuckDB relation: its query runs once as a stream, after one for its first rows."""
    name = f"the relation of {asked.role}"
    with produced(name):
        schema = _duckdb_reader(relation.limit(0)).schema

    def chosen(columns: list[str]) -> Any:
        quoted = (column.replace('"', '""') for column in columns)
        return relation.project(", ".join(f'"{column}"' for column in quoted))

    def begin(columns: list[str]) -> Iterator[Any]:
        # The query starts at the first batch, because a connection runs one at a time.
        yield from _duckdb_reader(chosen(columns))

    def peek(columns: list[str]) -> Batch | None:
        # Of both inputs, before either is read: by queries of their own, which end here.
        with produced(name):
            found = _duckdb_reader(chosen(columns).limit(BATCH_ROWS)).read_all()
        batches = found.combine_chunks().to_batches()
        return validated(batches[0], Place(name)) if batches else None

    return replace(open_stream(name, schema, begin), peek=peek)


def _duckdb_reader(relation: Any) -> Any:
    names = ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader")  # the last before 1.4
    return getattr(relation, next(filter(partial(hasattr, relation), names)))(BATCH_ROWS)


def open_dataset(dataset: Any, asked: InputOptions, name: str | None = None) -> Source:
    """Open a dataset of pyarrow; the columns that are read are scanned each time."""

    def batches(columns: list[str]) -> Iterator[Any]:
        # Scans with more readahead hold many batches.
        scanner = dataset.scanner(
            columns=columns, batch_size=BATCH_ROWS, batch_readahead=4, fragment_readahead=1
        )
        yield from scanner.to_reader()

    return open_batches(name or f"the dataset of {asked.role}", dataset.schema, batches)


def open_scanner(scanner: Any, asked: InputOptions) -> Source:
    """Open a scanner of pyarrow, which has its columns and may be read once."""
    name = f"the scanner of {asked.role}"

    def begin(columns: list[str]) -> Iterator[Any]:
        yield from _selected(scanner.to_reader(), columns)

    return open_stream(name, scanner.projected_schema, begin)


def open_hugging_face(dataset: Any, asked: InputOptions) -> Source:
    """Open a dataset of Hugging Face; rows that were selected or shuffled are read in its order."""
    name = f"the {type(dataset).__name__} of {asked.role}"
    held = dataset.with_format("arrow")
    features = dataset.features  # a stream may not know them
    with produced(name):
        first = next(held.iter(1), pa.table({})) if features is None else None
    schema = features.arrow_schema if first is None else first.schema

    def batches(columns: list[str]) -> Iterator[Any]:
        for table in held.select_columns(columns).iter(BATCH_ROWS):
            yield from table.to_batches()

    return open_batches(name, schema, batches, getattr(dataset, "num_rows", None))


def _batches_of(frame: Any, name: str) -> Any:
    for column, kind in frame.schema.items():
        if str(kind) == "Object":  # Polars exports where the objects are in memory
            raise InputError(
                f"{name}: Arrow has no type for the objects of column {column!r}: cast them to text"
            )
    try:
        return frame.to_arrow().to_batches()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"{name}: Arrow has no type for a column that is read: {error}; cast it to another"
        ) from None


def _schema_of(empty: Any) -> Any:
    """The Arrow schema of an empty Polars DataFrame, which may have columns of no Arrow type."""
    kinds = dict.fromkeys(empty.schema, UNREADABLE)
    for column, kind in empty.schema.items():
        with suppress(pa.ArrowException, TypeError, ValueError):
            if str(kind) != "Object":
                kinds[column] = empty.select(column).to_arrow().schema.field(column).type
    return pa.schema(kinds)
