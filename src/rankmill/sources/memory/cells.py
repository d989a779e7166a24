"""Columns of Python objects: their type, told by the first cells, and their Arrow arrays."""

import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from numbers import Number
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import arrow_of, pack_numbers
from rankmill.columns.lists import is_list_type, offsets_of, value_type
from rankmill.columns.objects import (
    EXACT,
    SAMPLE,
    Spot,
    array_of,
    as_integers,
    check_kind,
    is_missing,
    is_scalar,
    join_cells,
    lists_of,
    shown,
)
from rankmill.errors import InputError, UsageError
from rankmill.sources.meaning.column_names import ALIASES, GRADED, OF_NUMBER, plain, words_of

# The type of a column that Arrow has no type for: whoever reads it gets the error that tells why.
UNREADABLE = pa.null()
PLAIN = (list, dict)
# So many hits tell what fields they have.
MANY = 1000


def first_cells(cells: Sequence[Any]) -> list[Any]:
    """Some of the first cells that are neither missing nor empty lists."""
    start, size = 0, SAMPLE
    while start < len(cells):
        some = cells[start : start + size]
        # Most are plain lists or dicts.
        found = [one for one in some if (type(one) in PLAIN and one) or not _is_void(one)]
        if found:
            return found[:SAMPLE]
        start, size = start + size, 2 * size
    return []


def _is_void(cell: Any) -> bool:
    if isinstance(cell, str | bytes):
        return False
    has_length = hasattr(cell, "__len__") and not is_scalar(cell)
    return is_missing(cell) or (has_length and len(cell) == 0)


def type_of_cells(cells: Sequence[Any]) -> Any:
    """The Arrow type of Python objects, told by the first of them; lists are large_list."""
    first = first_cells(cells)
    if first and is_list_like(first[0]):
        try:
            _, flat = join_cells(first, str)
        except InputError:
            return pa.large_list(UNREADABLE)
        return pa.large_list(type_of_values(flat))
    return type_of_values(first)


def nested_type(cells: Sequence[Any]) -> Any:
    """The Arrow type of dicts, or of lists of dicts or lists, told by all of them; else None."""
    first: Any = next(iter(first_cells(cells)), None)
    inner = next(iter(first), None) if is_list_like(first) else None
    if isinstance(first, Mapping) or isinstance(inner, Mapping) or is_list_like(inner):
        with suppress(pa.ArrowException, TypeError, ValueError):  # reading it tells what is wrong
            return pa.array([*cells], from_pandas=True).type
    return None


def is_list_like(value: Any) -> bool:
    """Whether a Python object is a list of another library, such as an Arrow array."""
    if type(value) is list:
        return True
    scalar = isinstance(value, str | bytes | Mapping | pa.Scalar) or is_scalar(value)
    return not scalar and isinstance(value, Iterable) and hasattr(value, "__len__")


def type_of_values(values: Any) -> Any:
    """The Arrow type of Python scalars, told by the first where they are of several kinds."""
    for some in (values, values[:1]):  # if they are of several kinds, reading them tells where
        try:
            return as_integers(array_of(some, str)).type
        except InputError:
            continue
    return UNREADABLE


def column_of(cells: Sequence[Any], declared: Any, spot: Spot, *, sets: bool) -> Any:
    """The Arrow array of some cells of a column, of which `type_of_cells` told the declared type.

    `spot` says where a cell stands. A list may be a set, which has no order, if `sets` allows it.
    """
    if kinds.is_nested(value_type(declared)):
        return pa.array([*cells], declared, from_pandas=True)  # as `nested_type` did
    if not is_list_type(declared):
        array = array_of(cells, spot)
        check_kind(array, declared, spot)
        return as_integers(array) if kinds.is_integer(declared) else array
    lengths, flat = join_cells(cells, spot, sets=sets)
    return lists_of(lengths, flat, declared.value_type, spot)


def number_lists(
    lengths: np.ndarray, lists: Callable[[], Iterable[Collection[Any]]], declared: Any, spot: Spot
) -> Any:
    """The Arrow lists of some lengths of lists of numbers, which `lists` gives one by one.

    They may be texts, as the declared type tells.
    """
    try:
        joined = pack_numbers(lists(), np.float64)
    except (struct.error, OverflowError):
        exact = False
    else:
        exact = not len(joined) or float(abs(joined).max()) < EXACT
    if not exact:  # missing numbers, texts, and integers that a float64 may not hold
        return lists_of(lengths, list(chain.from_iterable(lists())), declared, spot)
    return pa.LargeListArray.from_arrays(arrow_of(offsets_of(lengths)), arrow_of(joined))


def count_items(lists: Collection[Any]) -> int:
    """How many items lists have; what is missing, or no list, counts as empty."""
    try:
        return sum(map(len, lists))
    except TypeError:
        return sum(len(one) for one in lists if hasattr(one, "__len__") and not is_scalar(one))


def mean_length(cells: Sequence[Any]) -> float:
    """About how many items a list of these cells has, from some of them."""
    some = cells[:: max(1, len(cells) // 1000)]
    return count_items(some) / max(1, len(some))


# ------------------------------------------------------------------ hits of search engines
# Nothing of these libraries is imported: a hit is a dict, or an object with attributes, and its id
# has one of the usual names, in the hit itself or in the document or the metadata within it.


# What holds the hits of an answer, such as {"hits": {"hits": [...]}} of Elasticsearch.
ANSWERS = (
    *("body", "ids", "hits", "matches", "points", "objects", "source_nodes", "response", "docs"),
    *("results", "result", "root", "children", "documents"),
)
# The plain names of the id of a hit, the first of which it has is taken; and what else may hold it.
IDS = (*dict.fromkeys(map(plain, ALIASES["item"])), "nodeid", "id", "uuid", "objectid")
DOCUMENTS = ("node", "document", "metadata", "payload", "entity")
# The attributes of a hit that is no dict.
ATTRIBUTES = ("doc_id", "docid", "node_id", "id", "id_", "uuid", "score", "distance")


def answered(value: Any) -> Any:
    """The list of hits within the answer of an engine or a store; anything else as it is."""
    mapped, plain_list = isinstance(value, Mapping), is_list_like(value)
    if value.keys().isdisjoint(ANSWERS) if mapped else plain_list and not hasattr(value, "body"):
        return value  # as most are
    for name in ANSWERS:
        inner = _field(value, name)
        if name == "ids" and is_list_like(inner):  # Chroma's, of one query
            return hits_by_place(value)[0] if len(inner) else []
        if is_list_like(inner) or isinstance(inner, Mapping):
            return answered(inner)
    return value


def refuse_one_answer(value: Mapping[Any, Any], name: str) -> None:
    """Raise UsageError for a mapping that is the answer of one search, and not one by query."""
    if answered(value) is value:
        return
    held = [key for key, one in value.items() if path_of(next(iter(_hits_of(one)), None))]
    if len(held) == 1 and held[0] in ANSWERS:
        raise UsageError(
            f"{name} is the answer of one search, with its hits in {held[0]!r}; expected that of "
            "each query: give {query: answer}"
        )


def _hits_of(value: Any) -> Any:
    inner = answered(value)
    return inner if is_list_like(inner) else ()


def hits_by_place(answer: Mapping[str, Any]) -> list[Any]:
    """The hits of each query in an answer of Chroma."""
    ids, far = answer["ids"], answer.get("distances")
    if not is_list_like(next(iter(ids), None)):  # of one query
        ids, far = [ids], far and [far]
    both = zip(ids, far or ids, strict=True)
    name = "distance" if far else "rank"
    return [[{"id": i, name: one} for i, one in zip(*row, strict=True)] for row in both]


def path_of(hit: Any) -> tuple[Any, ...]:
    """The names that lead to the id of a hit; none if it is no hit."""
    if hit is None or isinstance(hit, str | bytes | Number) or is_list_like(hit):
        return ()
    names = {_plain(name): name for name in _names(hit)}
    for name in filter(names.__contains__, IDS):
        found = _field(hit, names[name])
        if not (isinstance(found, float | Mapping) or is_list_like(found)):
            return (names[name],)
    inner = ((name, path_of(_field(hit, name))) for name in DOCUMENTS)
    return next(((name, *path) for name, path in inner if path), ())


def paths_of(one: Any, column: str, number: str) -> dict[str, tuple[Any, ...]]:
    """The names and places that lead to the value of each column, of a hit or of a pair.

    What a hit has beside its id may be text if its name tells of grades or scores.
    """
    if isinstance(one, tuple | list) and len(one) == 2:
        known = _is_number(one[1]) or is_missing(one[1])
        return {column: (0, *path_of(one[0])), number: (1,)} if known else {}
    if not (path := path_of(one)):
        return {}
    numbers = {
        str(name): (name,)
        for name in _names(one)
        if _plain(name) not in IDS
        if _is_number(found := _field(one, name))
        or (isinstance(found, str) and words_of(str(name)) & (OF_NUMBER | GRADED))
    }
    return {column: path, **numbers}


def spread(
    column: str, cells: Sequence[Any], number: str, spot: Spot
) -> tuple[dict[str, list[Any]], bool]:
    """The columns of cells that hold items with numbers; none if these are others.

    They are lists of hits or of pairs, dicts of items and numbers, which have no order as the
    second value says, or a hit each. `number` is the name of numbers that have none.
    """
    first = next(iter(first_cells(cells)), None)
    if answered(first) is not first:
        return spread(column, [*map(answered, cells)], number, spot)
    weighed = isinstance(first, Mapping) and not path_of(first)
    if weighed and all(map(_is_number, first.values())):
        cells = [[*one.items()] if isinstance(one, Mapping) else one for one in cells]
        return spread(column, cells, number, spot)[0], True
    lists = is_list_like(first)
    one = next(iter(first)) if lists else first
    paths = paths_of(one, column, number)
    if path_of(one):  # later hits may have more fields
        some = (cell if is_list_like(cell) else (cell,) for cell in first_cells(cells))
        for each in filter(path_of, islice(chain.from_iterable(some), MANY)):
            paths |= paths_of(each, column, number) | paths
    found: dict[str, list[Any]] = {name: [] for name in paths}
    for i, cell in enumerate(cells if paths else ()):
        hits = () if is_missing(cell) else cell if is_list_like(cell) else (cell,)
        for name, path in paths.items():
            taken = [_taken(one, path, i, spot) for one in hits]
            found[name].append(taken if lists else taken[0] if taken else None)
    return found, False


def named_fields(
    column: str, parts: Mapping[str, Any], taken: Collection[str]
) -> dict[str, tuple[str, str]]:
    """The names of columns that `spread` made of one -> that one, and the field of each."""
    own = [part for part in parts if part != column]
    return {f"{column}.{one}" if one in taken else one: (column, one) for one in own}


def _taken(one: Any, path: tuple[Any, ...], i: int, spot: Spot) -> Any:
    """The value that a path leads to in a hit or a pair of cell i."""
    value, pair = one, isinstance(one, tuple | list) and len(one) == 2
    for name in path if pair == isinstance(path[0], int) else ():
        value = value[name] if isinstance(name, int) else _field(value, name)
    if value is one or (value is None and _plain(path[-1]) in IDS):
        expected = "expected a hit with an id, or a pair (item, number), as in the first"
        raise InputError(f"{spot(i)} holds {shown(one)}; {expected}")
    return value


def _names(hit: Any) -> Sequence[Any]:
    held = hit if isinstance(hit, Mapping) else ATTRIBUTES
    return [name for name in held if not is_missing(_field(hit, name))]


def _plain(name: Any) -> str:
    return plain(str(name))


def _is_number(value: Any) -> bool:
    return isinstance(value, Number) or is_scalar(value)


def _field(hit: Any, name: Any) -> Any:
    return hit.get(name) if isinstance(hit, Mapping) else getattr(hit, name, None)
