"""Read Python objects: dicts by query, lists aligned by position, and named tuples."""

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, join_items
from rankmill.columns.lists import is_list_type
from rankmill.columns.objects import (
    SAMPLE,
    SETS,
    Spot,
    array_of,
    as_integers,
    is_missing,
    join_cells,
    lists_of,
    refuse_sets,
    shown,
)
from rankmill.columns.ranked_lists import Place
from rankmill.errors import InputError, UsageError
from rankmill.sources.files.formats import format_of_name
from rankmill.sources.memory.cells import (
    answered,
    column_of,
    count_items,
    first_cells,
    is_list_like,
    mean_length,
    named_fields,
    number_lists,
    path_of,
    paths_of,
    spread,
    type_of_cells,
)
from rankmill.sources.memory.frames import open_columns
from rankmill.sources.roles.source import (
    BATCH_ROWS,
    BATCH_VALUES,
    Batch,
    InputOptions,
    Role,
    Source,
)
from rankmill.sources.roles.streams import open_stream, produced

# What the list of a query is: items, hits or pairs of an item and a number, or a mapping of items
# to numbers.
Shape = Literal["items", "hits", "mapping"]

OF_TEXTS, OF_INTEGERS = pa.large_list(pa.large_string()), pa.large_list(pa.int64())
EXPECTED = (
    "expected {query: [items]}, {query: {item: number}} or {query: [(item, number)]}; several "
    "systems are for evaluate_runs"
)
ZEROS_AND_ONES = (int, float, np.number, np.bool_)
ROW = (2, 3)  # so many values has a row of query and item, or of these and a number
# So many lists tell whether their numbers may be ranks.
SOME = 1_000
# So many items are few, and less than a batch.
FEW = BATCH_ROWS
VECTORS = "{item: vector}, or a matrix whose row i is item i"


def open_mapping(value: Mapping[Any, Any], role: Role, name: str) -> Source:
    """Open a mapping of query ids to items, to items with numbers, or to mappings of both."""
    keys = list(value)
    queries = as_integers(array_of(keys, lambda i: f"{name}: key {i}"))
    lists = list(value.values())
    one = lists[0] if lists else None
    if isinstance(one, str) and role != "features" and format_of_name(one) is None:  # no path
        return open_columns({"query": queries, "items": lists}, role, name)
    # Of a frame, table or dataset the items would be the names of columns, or rows.
    frame = hasattr(one, "columns") or hasattr(one, "column_names")
    known = isinstance(one, Mapping) or is_list_like(one) or is_missing(one)
    if frame or not (known or answered(one) is not one):
        held = f"a {type(one).__name__}" if frame else shown(one)
        raise UsageError(f"{name}: the value of {keys[0]!r} is {held}; {_expected(role, EXPECTED)}")
    return _open_lists(lists, queries, role, name)


def open_ranx(value: Any, asked: InputOptions) -> Source:
    """Open the Qrels or the Run of ranx."""
    return open_mapping(value.to_dict(), asked.role, f"the dict of {asked.role}")


def open_series_of_lists(value: Any, asked: InputOptions) -> Source:
    """Open a Series of pandas whose row numbers are no ids, as a column taken out of a frame."""
    return open_positional(value.tolist(), asked.role, f"the Series of {asked.role}")


def open_positional(value: Any, role: Role, name: str) -> Source:
    """Open lists whose places are the query ids, such as a list of lists or a matrix."""
    if isinstance(value, np.ndarray) and not 0 < value.ndim <= 2:
        expected = _expected(role, "expected two, with a row of items for each query")
        raise InputError(f"{name} has {value.ndim} dimensions; {expected}")
    if role == "labels" and isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        value = value.reshape(len(value), -1) if value.ndim == 1 else value  # a class a query
    first = first_cells(value)
    if first and hasattr(first[0], "columns"):
        raise UsageError(
            f"{name} holds tables; expected one: join its parts, as with pandas.concat or "
            "pyarrow.concat_tables"
            + "; several systems are for evaluate_runs and compare, as {name: table}"
            * (role == "predictions")
        )
    held = answered(first[0]) if first else []
    if not (is_list_like(held) or isinstance(held, Mapping)) or path_of(held):
        lists = "expected a list of items for each query, such as [[1, 2], [3]], or [[1, 2]] for a "
        raise UsageError(
            f"{name} holds {shown(first[0])}; {_expected(role, f'{lists}single query')}"
        )
    if not (isinstance(value, np.ndarray) and value.ndim == 2):
        value = list(value)
    rows = (
        isinstance(value, list)
        and len(value) > 0
        and all(
            isinstance(one, tuple) and len(one) in ROW and not any(map(is_list_like, one))
            for one in value
        )
    )
    return replace(_open_lists(value, None, role, name), tuples=rows)


def refuse_spark(value: Any, asked: InputOptions) -> Source:
    """Raise UsageError for a DataFrame of Spark."""
    raise UsageError(
        f"{asked.role} cannot be a DataFrame of Spark here: only evaluate, evaluate_runs, "
        "compare and gate take one; give its toArrow()"
    )


def _expected(role: Role, of_lists: str) -> str:
    """Return what is expected of an object: vectors of items as features, else what is told."""
    return f"expected {VECTORS}" if role == "features" else of_lists


def _open_lists(lists: Any, queries: Any, role: Role, name: str) -> Source:
    """Open lists with their query ids; without ids, their places are the ids."""
    first = first_cells(lists) or [one for one in lists[:SAMPLE] if not is_missing(one)]
    shape = _shape_of(first, role, name)
    number = "score" if role == "predictions" else "gain"
    if shape == "hits":
        keys = np.arange(len(lists)) if queries is None else queries.to_pylist()
        parts = spread("items", lists, number, lambda i: f"{name}: query {keys[i]!r}")[0]
        fields = named_fields("items", parts, {"query"})
        own = {made: parts[part] for made, (_, part) in fields.items()}
        columns = {"query": keys, "items": parts["items"], **own}
        more = {"positional": queries is None, "bare": True, "fields": fields}
        return open_columns(columns, role, name, **more)
    # Features have the vector of an item where all else has the list of a query.
    key, listed = ("item", "vector") if role == "features" else ("query", "items")
    kind = (first and _known_type(first[0])) or type_of_cells(
        [*map(list, first)] if shape == "mapping" else first
    )
    schema = {
        key: pa.int64() if queries is None else queries.type,
        listed: kind if is_list_type(kind) else pa.large_list(pa.null()),
    }
    if shape != "items":
        texts = isinstance(next(iter(first[0].values()), None), str)
        schema[number] = pa.large_list(pa.large_string() if texts else pa.float64())
    elif role != "features" and first:
        fractions = pa.types.is_floating(schema[listed].value_type)
        counts = _are_counts(first)
        if fractions or counts or all(map(_is_of_zeros_and_ones, first)):
            way = "rankmill.arrays.Matrix(...)" + " or {query: {item: number}}" * (
                queries is not None
            )
            held = "floats" if fractions else "lists of 0 and 1 alone, with repeats"
            if counts:
                held = "Series of counts, with the items in their index, as value_counts() gives"
                way = "{query: series.to_dict()}, and series.tolist() if the values are the items"
            raise InputError(
                f"{name} contains {held}; expected the items of each query, which are integers or "
                f"strings. If it has the {number} of each item, use {way}"
            )
    mean = mean_length(lists)
    rows = int(min(BATCH_ROWS, max(1, BATCH_VALUES // max(1, mean))))

    def data_of(columns: list[str], start: int) -> Any:
        some = lists[start : start + rows]

        def spot(i: int) -> str:
            query = start + i if queries is None else queries[start + i].as_py()
            return f"{name}: {key} {query!r}"

        if role == "predictions":
            refuse_sets(some, spot)
        lengths, items, numbers = _split(some, shape, spot)
        data = {}
        for column in columns:
            if column == key and queries is None:
                data[column] = arrow_of(np.arange(start, start + len(some)))
            elif column == key:
                data[column] = queries.slice(start, len(some))
            elif column == listed:
                data[column] = lists_of(lengths, items, schema[listed].value_type, spot)
            else:
                data[column] = number_lists(lengths, numbers, schema[number].value_type, spot)
        return pa.record_batch(data)

    made: list[Any] = []

    def block(columns: list[str], start: int) -> Batch:
        # A few lists are converted once, for all that look at them.
        few = max(1, mean) * len(lists) <= FEW
        if few and not made:
            made.append(data_of([*schema], start))
        data = made[0].select(columns) if few else data_of(columns, start)
        return Batch(data, Place(name, start, "list"))

    @cache
    def size(column: str) -> tuple[int, int]:
        values = len(lists) if column == key else count_items(lists)
        return values, 8 * values

    source = Source(
        name,
        {name: pa.schema(schema)},
        len(lists),
        lambda columns: {column: size(column) for column in columns},
        # Each block is a piece, so that every thread converts some.
        lambda columns: [iter((partial(block, columns, at),)) for at in range(0, len(lists), rows)],
        positional=queries is None,
        unordered=shape == "mapping" and role == "predictions",
        bare=True,
    )
    some = [one for one in lists[:SOME] if len(one) > 1] if source.unordered else []
    ranked = sum([*one.values()] == [*range(1, len(one) + 1)] for one in some)
    if 2 * ranked > len(some):
        source.findings.say(
            f"{name}: the numbers of {ranked:,} of the first {len(some):,} lists are 1, 2, and so "
            "on, and the highest comes first: if they are ranks, give lists of items in order"
        )
    return source


def _is_of_zeros_and_ones(cell: Any) -> bool:
    """Whether a list can be a row of a matrix of labels, and none of different items."""
    return len(cell) > 2 and all(isinstance(one, ZEROS_AND_ONES) and one in (0, 1) for one in cell)


def _are_counts(cells: list[Any]) -> bool:
    """Whether cells are Series of pandas that hold integers of the items in their index.

    The index of others tells of the rows that they were cut from: row numbers, queries or times.
    """
    if not all(hasattr(one, "iloc") and one.dtype.kind in "iu" for one in cells):
        return False
    if not all(one.index.is_unique and type(one.index).__name__ != "RangeIndex" for one in cells):
        return False
    if all(one.name == "count" or one.index.inferred_type == "string" for one in cells):
        return max(map(len, cells)) > 1  # a text may be the query of a row
    in_order = all(one.index.is_monotonic_increasing for one in cells)
    return not in_order and all(one.is_monotonic_decreasing for one in cells)


def _shape_of(first: list[Any], role: Role, name: str) -> Shape:
    """What the lists are, told by some of the first of them that are not empty."""
    if not first:
        return "items"
    held = answered(first[0])
    inner = next(iter(held.values() if isinstance(held, Mapping) else held), None)
    if role == "features":
        unordered = isinstance(first[0], (Mapping, *SETS))
        if unordered or is_list_like(inner) or isinstance(inner, Mapping | str | bytes):
            raise UsageError(f"{name} holds {shown(first[0])}; expected {VECTORS}")
        return "items"
    if isinstance(held, tuple) and len(held) == 2 and all(map(_are_integers, held)):
        raise UsageError(
            f"{name} holds {shown(held)}, a tuple of two lists; expected a list of items: of ids "
            "with their distances, give the ids alone, or pairs: [(item, number)]"
        )
    if held is not first[0] or paths_of(inner, "", "number"):
        return "hits"
    if isinstance(first[0], Mapping):
        if is_list_like(inner) or isinstance(inner, Mapping):
            raise UsageError(f"{name} holds a dict with {shown(inner)}; {EXPECTED}")
        return "mapping"
    if role == "predictions" and isinstance(first[0], SETS):
        raise UsageError(
            f"{name} holds a set, which has no order: give each query a list in rank order, or a "
            "dict of items and scores"
        )
    return "items"


def _are_integers(value: Any) -> bool:
    return type(value) is list and {*map(type, value)} == {int}


def _known_type(cell: Any) -> Any:
    """The type of lists of ASCII texts or integers, which is told without conversion; else None."""
    types = set(map(type, cell)) if type(cell) in (list, dict) else set()
    if types == {str} and all(map(str.isascii, cell)):
        return OF_TEXTS
    if types == {int} and min(cell) >= -(2**63) and max(cell) < 2**63:
        return OF_INTEGERS
    return None


def _split(cells: Any, shape: Shape, spot: Spot) -> tuple[np.ndarray, Any, Any]:
    """The lengths of lists, their items one after the other, and what gives their numbers."""
    if shape == "items":
        return *join_cells(cells, spot), list
    if not all(issubclass(kind, Mapping) for kind in set(map(type, cells))):
        cells = [_mapping_of(cell, i, spot) for i, cell in enumerate(cells)]
    lengths = np.fromiter(map(len, cells), np.int64, len(cells))
    items = join_items(cells, int(lengths.sum()))
    return lengths, items, lambda: map(operator.methodcaller("values"), cells)


def _mapping_of(cell: Any, i: int, spot: Spot) -> Mapping[Any, Any]:
    if is_missing(cell):
        return {}
    if isinstance(cell, Mapping):
        return cell
    raise InputError(f"{spot(i)} holds {shown(cell)}; expected {{item: number}} as in the first")


def open_ir_dataset(dataset: Any, asked: InputOptions) -> Source:
    """Open the qrels of a dataset of ir_datasets as labels, or its scoreddocs as predictions."""
    role = asked.role
    rows = {"labels": "qrels_iter", "predictions": "scoreddocs_iter"}.get(role, "")
    if not hasattr(dataset, rows):
        raise UsageError(
            f"{role} cannot be a dataset of ir_datasets without {rows or 'such rows'}: its qrels "
            "are labels, and its scoreddocs predictions"
        )
    return open_rows(getattr(dataset, rows)(), role, f"the {rows} of {role}")


def open_rows(rows: Iterable[Any], role: Role, name: str) -> Source:
    """Open named tuples, one a query and item, such as those of ir_measures.

    A list can be read again; what gives each tuple only once is kept where it has to be.
    """
    with produced(name):
        every = iter(rows)
        first = list(itertools.islice(every, SAMPLE))
    fields = getattr(first[0], "_fields", None) if first else ()
    if fields is None:
        raise UsageError(
            f"{name} gives {shown(first[0])}; expected named tuples such as (query_id, doc_id, "
            f"score): give {VECTORS if role == 'features' else 'a list of lists or a dict'} instead"
        )

    def values(chunk: list[Any], field: str, start: int) -> list[Any]:
        try:
            return list(map(operator.attrgetter(field), chunk))
        except AttributeError:
            i = next(i for i, row in enumerate(chunk) if not hasattr(row, field))
            raise InputError(
                f"{name}: row {start + i} is {shown(chunk[i])}; expected a {field} as in the first"
            ) from None

    if isinstance(rows, Sequence):
        return open_columns({one: values([*rows], one, 0) for one in fields}, role, name)
    schema = pa.schema({field: type_of_cells(values(first, field, 0)) for field in fields})

    def batches(columns: list[str]) -> Iterator[Any]:
        rest = itertools.chain(first, every)
        start = 0
        while chunk := list(itertools.islice(rest, BATCH_ROWS)):
            yield pa.record_batch({one: column(chunk, one, start) for one in columns})
            start += len(chunk)

    def column(chunk: list[Any], field: str, start: int) -> Any:
        return column_of(
            values(chunk, field, start),
            schema.field(field).type,
            lambda i: f"{name}: row {start + i}: {field}",
            sets=role != "predictions",
        )

    return replace(open_stream(name, schema, batches, checked=True), sampled=True)
