"""Read one JSON object or list: by query, as pytrec_eval and ranx have it, or a table."""

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

from rankmill.columns.objects import SAMPLE, SETS, is_missing, shown
from rankmill.errors import InputError, UsageError
from rankmill.sources.files.files import File
from rankmill.sources.files.text_blocks import last_character, read_blocks
from rankmill.sources.meaning.column_names import ALIASES, ITEM_ALIASES, WEAK_ALIASES, plain
from rankmill.sources.meaning.columns_per_rank import ranked_columns
from rankmill.sources.memory.cells import hits_by_place, is_list_like, refuse_one_answer
from rankmill.sources.memory.frames import open_columns
from rankmill.sources.memory.python_objects import open_mapping, open_positional, open_rows
from rankmill.sources.roles.source import InputOptions, Source, column_of, key_of
from rankmill.sources.roles.streams import produced

# ------------------------------------------------------------------ nested objects

# So many names of a dict are looked at: each step of a training may give a dict of queries.
NAMES = 32
BOOLEANS = (bool, np.bool_)
# The usual names of the columns that a table has; those of a later group if there is none before.
USUAL = {
    role: [{*map(plain, names)} for names in groups]
    for role, groups in {
        "query": (ALIASES["query"], *WEAK_ALIASES["query"]),
        "item": (itertools.chain(ALIASES["item"], *ITEM_ALIASES.values()), *WEAK_ALIASES["item"]),
    }.items()
}


def open_document(value: Any, asked: InputOptions, name: str | None = None) -> Source:
    """Open a nested object: a table, or lists by query or by place."""
    body = getattr(value, "body", None)  # of an answer of Elasticsearch, which is no mapping
    value = body if isinstance(body, Mapping) else value
    role, keyed = asked.role, isinstance(value, Mapping)
    name = name or f"the {'dict' if keyed else type(value).__name__} of {role}"
    if names := getattr(getattr(value, "dtype", None), "names", None):  # of structs of NumPy
        return open_columns({one: value[one] for one in names}, role, name)
    if not keyed and not isinstance(value, Sequence | np.ndarray):
        every = iter(value)
        first = next(every, None)
        every = itertools.chain([first], every)
        lists = is_list_like(first) or isinstance(first, Mapping)
        if isinstance(value, SETS) or hasattr(first, "_fields") or not lists:
            return open_rows(every, role, name)
        with produced(name):
            value = [*every]
    if isinstance(value, np.ndarray) and not value.ndim:
        return open_positional(value, role, name)  # which refuses it
    if not keyed and len(value) and hasattr(value[0], "_fields"):
        return open_rows(value, role, name)
    if role != "features":
        table = _table_of(value, asked, name) if keyed else _of_rows(value, asked, name)
        if table is not None:
            return open_columns(table, role, name)
        if keyed and "ids" in value and ("distances" in value or "documents" in value):
            return open_positional(hits_by_place(value), role, name)
        if keyed:
            refuse_one_answer(value, name)
    return open_mapping(value, role, name) if keyed else open_positional(value, role, name)


def _table_of(value: Mapping[Any, Any], asked: InputOptions, name: str) -> dict[str, Any] | None:
    """The columns of a mapping that is a table; None of one by query."""
    if "columns" in value and "data" in value:
        return _of_split(value, name)
    first: Any = next(iter(value.values()), None)
    if _roles(value, asked):
        single = not (is_list_like(first) or isinstance(first, Mapping))
        return {one: [cell] for one, cell in value.items()} if single else {**value}
    inner = itertools.islice(value.values(), NAMES)
    rows = [one for one in inner if type(one) is list and one and type(one[0]) is dict]
    if len(rows) == 1 and _roles(rows[0][0], asked):  # such as {"data": [...]}
        return _of_rows(rows[0], asked, name)
    found = _roles(first, asked, ("item",)) if isinstance(first, Mapping) else {}
    if not found:
        return None
    if _roles(first, asked):
        return _of_records([*value.values()], name)
    if not is_list_like(first[found["item"]]) and not plain(found["item"]).endswith("id"):
        return None  # a mapping of items and numbers, one of which has such a name
    return {"query": [*value], **_of_records([*value.values()], name)}


def _of_split(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The columns of a split or tight dict of pandas, whose index may have no name."""
    levels = [one or "index" for one in value.get("index_names") or [None]]
    index = value.get("index", ())
    entries = index if len(levels) > 1 else [[one] for one in index]
    each = itertools.zip_longest(value["data"], entries, fillvalue=())
    rows = [[*row, *entry] for row, entry in each]
    names = [*value["columns"], *(levels if len(index) else ())]
    if {*map(len, rows)} - {len(names)} or len({*names}) < len(names):
        raise InputError(f"{name}: expected rows with a value for each of {names}, all different")
    return {one: [row[i] for row in rows] for i, one in enumerate(names)}


def _of_rows(value: Sequence[Any], asked: InputOptions, name: str) -> dict[str, Any] | None:
    """The columns of records, or of triples whose third is a number; None of lists."""
    first: Any = value[0] if len(value) else None
    if type(first).__name__ == "Row" and hasattr(first, "keys"):  # of SQLite
        first, value = dict(first), [*map(dict, value)]
    if isinstance(first, Mapping) and _roles(first, asked):
        return _of_records(value, name)
    some = value[:SAMPLE]
    # Lists of three ids have no fraction or boolean, and no number beside a text.
    if (
        first is None
        or not all(map(_is_triple, some))
        or not any(
            isinstance(row[0], str)
            or isinstance(row[2], BOOLEANS)
            or not (isinstance(row[2], Integral) or is_missing(row[2]))
            for row in some
        )
    ):
        return None
    bad = next((i for i, row in enumerate(value) if not is_list_like(row) or len(row) != 3), None)
    if bad is not None:
        raise InputError(f"{name}: row {bad} is {shown(value[bad])}; expected three values")
    each = enumerate(("query", "item", asked.kind))
    return {column: [row[place] for row in value] for place, column in each}


def _of_records(rows: Sequence[Any], name: str) -> dict[str, Any]:
    """The columns of dicts; a value is missing where a dict has none."""
    bad = next((i for i, row in enumerate(rows) if not isinstance(row, Mapping)), None)
    if bad is not None:
        raise InputError(f"{name}: row {bad} is {shown(rows[bad])}; expected a dict as the first")
    fields = dict.fromkeys(itertools.chain.from_iterable(rows))
    return {field: [row.get(field) for row in rows] for field in fields}


def _roles(
    names: Iterable[Any], asked: InputOptions, roles: Sequence[str] = ("query", "item")
) -> dict[str, str]:
    """The columns of some roles among names, told or usual; empty if one is missing.

    Weak names, and columns per rank, the first of which is given, are items beside a query alone:
    as keys of a dict they may be items themselves.
    """
    texts = [one for one in itertools.islice(names, NAMES) if type(one) is str]
    plains = plain("\0".join(texts)).split("\0")  # a training gives other names in each step
    rest = {*plains}
    key = key_of(asked.query, texts)
    told = {"query": key.parts[0] if key else column_of(asked.query), "item": asked.item}
    found: dict[str, str] = {}
    for role in roles[-1:] if asked.role == "items" else roles:
        groups = USUAL[role] if role == "query" or "query" in found else USUAL[role][:1]
        usual = next(filter(None, map(rest.intersection, groups)), None)
        if told[role] in texts:
            found[role] = str(told[role])
        elif usual:
            found[role] = texts[min(map(plains.index, usual))]
        elif "query" in found and (ranked := ranked_columns(texts)):
            found[role] = ranked[0]
        else:
            return {}
        rest.discard(plain(found[role]))
    return found


def _is_triple(row: Any) -> bool:
    """Whether a list can be a row of a query, an item and a number."""
    if not isinstance(row, tuple | list) or len(row) != 3:
        return False
    return isinstance(row[2], (Real, Decimal, np.bool_)) and not any(
        isinstance(one, float) for one in row[:2]
    )


def open_files(files: Sequence[File], name: str, asked: InputOptions) -> Source:
    """Open a file that holds one JSON object; it is read whole, and held in memory."""
    if len(files) > 1:
        raise InputError(
            f"{name}: a JSON object by query is one file, but there are {len(files)}; give one, or "
            "write JSON Lines"
        )
    (file,) = files
    text = b"".join(block.data.tobytes() for block in read_blocks(file, last_character))
    huge = re.search(rb"[eE]\+?[0-9]{3}", text) is not None
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_float=_finite if huge else float)
    except ValueError as error:
        raise InputError(
            f"{file.name}: {error}; expected one JSON object or list, or JSON Lines"
        ) from None
    if not isinstance(found, dict | list):
        raise InputError(f"{file.name} holds {shown(found)}; expected an object or a list")
    try:
        return replace(open_document(found, asked, file.name), format="JSON")
    except UsageError as error:  # of an argument in Python; here it is the file that is wrong
        raise InputError(str(error)) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of some names and values; json keeps the last of equal names without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((again, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the name {again!r} appears twice in one object")
    return found


def _finite(text: str) -> float:
    """The number of a text; json makes one that is too large infinite without a word."""
    if math.isinf(float(text)):
        raise ValueError(f"the number {text} is too large for float64")
    return float(text)
