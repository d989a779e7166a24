"""Hits as search engines and vector stores give them: the id and the numbers of each, by names.

Nothing of these libraries is imported: a hit is a dict, or an object with attributes, and its id
has one of the usual names, in the hit itself or in the document or the metadata within it.
"""

from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

from rankmill.columns.objects import Spot, is_missing, is_scalar, shown
from rankmill.errors import InputError, UsageError
from rankmill.sources.meaning.names import ALIASES, OF_NUMBER, plain
from rankmill.sources.memory.cells import first_cells, is_list_like

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

    The numbers of a hit may be texts if they have a usual name.
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
        or (isinstance(found, str) and _plain(name) in OF_NUMBER)
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
    paths = paths_of(next(iter(first)) if lists else first, column, number)
    found: dict[str, list[Any]] = {name: [] for name in paths}
    for i, cell in enumerate(cells if paths else ()):
        hits = () if is_missing(cell) else cell if is_list_like(cell) else (cell,)
        for name, path in paths.items():
            taken = [_taken(one, path, i, spot) for one in hits]
            found[name].append(taken if lists else taken[0] if taken else None)
    return found, False


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
