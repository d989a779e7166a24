"""Read columns of Python and pandas: one is converted when it is read, and objects by batches."""

import itertools
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.lists import is_list_type
from rankmill.columns.objects import as_integers, is_missing, list_of, numpy_of
from rankmill.columns.ranked_lists import Place
from rankmill.errors import InputError, UsageError
from rankmill.sources.meaning.values import keyed
from rankmill.sources.memory.cells import (
    UNREADABLE,
    column_of,
    count_items,
    first_cells,
    is_list_like,
    mean_length,
    named_fields,
    nested_type,
    spread,
    type_of_cells,
)
from rankmill.sources.roles.source import (
    BATCH_ROWS,
    BATCH_VALUES,
    Batch,
    Block,
    InputOptions,
    Key,
    Role,
    Source,
)
from rankmill.sources.roles.streams import joined, size_of, validated


def open_pandas(value: Any, asked: InputOptions) -> Source:
    """Open a pandas DataFrame or Series.

    A level of the index of a DataFrame is a column if it has a name. The index of a Series holds
    query ids, and its cells lists or items. Several levels make the query ids of lists together;
    beside numbers, the last of them are the items.
    """
    role = asked.role
    if value.ndim == 2:
        return open_columns(_columns_of(value, role), role, f"the DataFrame of {role}")
    if value.index.nlevels == 1:
        columns = {"query": value.index.array, "items": value.array}
        return open_columns(columns, role, f"the Series of {role}")
    lists = any(map(is_list_like, first_cells(value.array)[:1]))
    frame = value.reset_index(name="items" if lists else asked.kind)
    levels = tuple(map(str, frame.columns[: -1 if lists else -2]))
    source = open_columns(_columns_of(frame, role), role, f"the Series of {role}")
    several = len(levels) > 1 and asked.query is None
    return keyed(source, Key(",".join(levels), levels)) if several else source


def _columns_of(frame: Any, role: Role) -> dict[str, Any]:
    arrays = {}
    for label in frame.index.names:
        if label is not None and label not in frame.columns:
            arrays[str(label)] = frame.index.get_level_values(label).array
    for place, label in enumerate(frame.columns):
        if str(label) in arrays:
            raise UsageError(
                f"the DataFrame of {role} has several columns {str(label)!r}: rename or drop some"
            )
        arrays[str(label)] = frame.iloc[:, place].array
    return arrays


def open_columns(columns: Mapping[Any, Any], role: Role, name: str, **told: Any) -> Source:
    """Open columns by name; those of Python objects are converted by batches, others at once."""
    arrays = {str(column): _array_of(one, f"{name}: {column}") for column, one in columns.items()}
    if len({*map(len, arrays.values())}) > 1:
        lengths = ", ".join(f"{column} has {len(one)}" for column, one in arrays.items())
        raise InputError(
            f"{name}: its columns differ in length ({lengths}): give as many values in each"
        )
    rows = len(next(iter(arrays.values()), ()))
    objects: dict[str, Any] = {
        column: one if isinstance(one, list) else np.asarray(one)
        for column, one in arrays.items()
        if isinstance(one, list) or str(one.dtype) == "object"
    }
    number = "score" if role == "predictions" else "gain"
    for column, cells in [*objects.items()]:
        parts, unordered = spread(column, cells, number, partial(_spot, name, column, 0))
        fields = named_fields(column, parts, {*arrays, *objects})
        objects |= {column: parts.get(column, cells)}
        objects |= {made: parts[part] for made, (_, part) in fields.items()}
        told["fields"] = {**told.get("fields", {}), **fields}
        told["unordered"] = told.get("unordered", False) or (unordered and role == "predictions")
    schema = {
        column: nested_type(objects[column]) or type_of_cells(objects[column])
        if column in objects
        else _type_of(arrays[column])
        for column in dict.fromkeys([*arrays, *objects])
    }

    @cache
    def arrow(column: str) -> Any:
        try:
            return _arrow_of(arrays[column])
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InputError(f"{name}: Arrow cannot read column {column!r}: {error}") from None

    def block(columns: list[str], start: int, end: int, plain: Any) -> Batch:
        place = Place(name, start)
        made = {}
        if plain is not None:
            data = validated(plain, place).data
            made = dict(zip(data.schema.names, data.columns, strict=True))
        for column in columns:
            if column in objects:
                spot = partial(_spot, name, column, start)
                cells = objects[column][start:end]
                made[column] = column_of(cells, schema[column], spot, sets=role != "predictions")
        return Batch(pa.record_batch({column: made[column] for column in columns}), place)

    def pieces(columns: list[str]) -> list[Iterator[Block]]:
        of_objects = [objects[column] for column in columns if column in objects]
        longest = max(map(mean_length, of_objects), default=0)
        step = int(min(BATCH_ROWS, max(1, BATCH_VALUES // max(1, longest))))
        plain = {column: arrow(column) for column in columns if column not in objects}
        batches: list[Any] = [None] * -(-rows // step)
        ends = [min(rows, step * (i + 1)) for i in range(len(batches))]
        if plain:
            batches = pa.table(plain).to_batches(max_chunksize=step)
            batches = batches if of_objects else list(joined(batches))
            ends = list(itertools.accumulate(data.num_rows for data in batches))
        blocks = zip(itertools.pairwise([0, *ends]), batches, strict=True)
        # Each block is a piece, so that every thread converts some.
        return [
            iter((partial(block, columns, *one, data),)) for one, data in blocks if one[0] < one[1]
        ]

    @cache
    def size(column: str) -> tuple[int, int]:
        if column not in objects:
            return size_of(arrow(column))
        values = count_items(objects[column]) if is_list_type(schema[column]) else rows
        return values, 8 * values

    return Source(
        name,
        {name: pa.schema(schema)},
        rows,
        lambda columns: {column: size(column) for column in columns},
        pieces,
        sampled=bool(objects),
        **told,
    )


def _array_of(column: Any, name: str) -> Any:
    """An array of one dimension of NumPy or pandas as it is, and anything else as a list."""
    column = numpy_of(column)
    column = getattr(column, "array", column)  # that of a Series
    if hasattr(column, "to_dense"):  # a sparse one
        column = column.to_dense()
    if str(getattr(column, "dtype", "")).startswith("period"):  # Arrow would take their numbers
        column = [None if is_missing(one) else str(one) for one in column]
    if getattr(column, "ndim", 0) == 1 and hasattr(column, "dtype"):
        return column
    if isinstance(column, np.ndarray) and column.ndim > 1:
        return [*column]
    return list_of(column.values() if isinstance(column, Mapping) else column, name, sets=True)


def _spot(name: str, column: str, start: int, i: int) -> str:
    return f"{name}: column {column!r}: row {start + i}"


def _type_of(array: Any) -> Any:
    """The Arrow type of a pandas array that holds no Python objects."""
    try:
        return _arrow_of(array if array.dtype.kind == "f" else array[:0]).type
    except (pa.ArrowException, TypeError, ValueError):
        return UNREADABLE


def _arrow_of(array: Any) -> Any:
    """A pandas array as an Arrow array; floats are integers if all of them are whole."""
    found = pa.array(array, from_pandas=True)
    return as_integers(found) if isinstance(found, pa.Array) else found
