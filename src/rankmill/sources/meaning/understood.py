"""What an input means: its shape, the role of each column, and its ids, numbers, and facts."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

import pyarrow.types as kinds

from rankmill.errors import InputError, UsageError
from rankmill.semantics.choices import DEFAULT, Choices
from rankmill.sources.input_options import InputOptions, key_of
from rankmill.sources.meaning.column_names import Finder
from rankmill.sources.meaning.derived_columns import keyed
from rankmill.sources.meaning.numbers import with_numbers
from rankmill.sources.meaning.plain_ids import with_plain_ids, with_times
from rankmill.sources.meaning.roles import check_types, find_columns, likely_ids
from rankmill.sources.meaning.shapes import ranked_columns, shaped, with_ranked
from rankmill.sources.roles.source import Columns, Source

Kind = Literal["number", "segment", "subtopic"]
"""What a column holds: a number, any value by which queries are told apart, or subtopics."""

NO_FACTS: Mapping[str, Kind] = MappingProxyType({})

_ROLES: dict[Kind, str] = {"number": "weight", "segment": "slices", "subtopic": "subtopic"}


def with_key(source: Source, asked: InputOptions) -> Source:
    """The source with the column of query ids that several columns make, if they do."""
    names = source.schema.names
    key = None if source.key is not None else key_of(asked.query, names)
    if key is None:
        return source
    for part in key.parts:
        source.findings.used("part of the query", part)
        source = with_plain_ids(source, part, "query")
        source = source if key.texts else with_times(source, part)
    return keyed(source, key)


def understood(
    source: Source,
    asked: InputOptions,
    *,
    need_score: bool = False,
    semantics: Choices = DEFAULT,
) -> tuple[Source, Columns]:
    """The source with plain lists, ids and numbers, and the columns that have a role.

    `need_score` says whether a metric needs confidences. The semantics decide whether confidences
    order the predictions, and whether some may be missing.
    """
    source = shaped(source)
    if asked.exact_ids or asked.decimal != source.decimal:
        source = replace(source, exact_ids=asked.exact_ids, decimal=asked.decimal)
    source = with_key(source, asked)
    if asked.item is None and not source.bare:
        schema = source.schema
        ranked = ranked_columns(schema.names)
        if ranked and likely_ids(schema, asked.role, asked.query, None)[1] is None:
            source, item = with_ranked(source, ranked)
            asked = replace(asked, item=item)
    columns = find_columns(source, asked, need_score=need_score, semantics=semantics)
    if source.key is None:
        source = with_plain_ids(source, columns.query, "query")
    source = with_plain_ids(source, columns.item, "item")
    for role in ("score", "gain", "rank"):
        name = getattr(columns, role)
        source = source if name is None else with_numbers(source, name, role)
    check_types(source, columns, asked.role)
    return source, columns


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
