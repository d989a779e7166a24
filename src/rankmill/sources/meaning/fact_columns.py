"""Columns of facts: those with one value a query, such as a weight or a country."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

import pyarrow.types as kinds

from rankmill.errors import InputError, UsageError
from rankmill.sources.meaning.column_names import Finder
from rankmill.sources.meaning.numbers import with_numbers
from rankmill.sources.roles.source import Source

Kind = Literal["number", "segment", "subtopic"]
"""What a column holds: a number, any value by which queries are told apart, or subtopics."""

NO_FACTS: Mapping[str, Kind] = MappingProxyType({})

_ROLES: dict[Kind, str] = {"number": "weight", "segment": "slices", "subtopic": "subtopic"}


def find_facts(source: Source, wanted: Mapping[str, Kind]) -> Source:
    """The source with columns of facts, of which those of numbers hold numbers."""
    if source.bare:
        asked = " and ".join(f"{_ROLES[kind]} {name!r}" for name, kind in wanted.items())
        raise UsageError(
            f"{source.name} holds lists of items and no columns, so there is no {asked}: give the "
            "labels as a table or a file that has this column"
        )
    for file, schema in source.schemas.items():
        for name, kind in wanted.items():
            finder = Finder(replace(source, schemas={file: schema}), {_ROLES[kind]: name}, "labels")
            finder.find(_ROLES[kind], ())
    for name, kind in wanted.items():
        source = with_numbers(source, name, "weight") if kind == "number" else source
    for file, schema in source.schemas.items():
        for name, kind in wanted.items():
            _check_type(file, name, kind, schema.field(name).type)
    return source


def _check_type(file: str, name: str, wanted: Kind, found: Any) -> None:
    numbers = kinds.is_integer(found) or kinds.is_floating(found) or kinds.is_null(found)
    fits = numbers if wanted == "number" else not kinds.is_nested(found)
    if not fits:
        what = "a number" if wanted == "number" else "a single value"
        raise InputError(
            f"{file}: column {name!r} holds {found}; expected {what} for each query: "
            "name another column, or convert it"
        )
