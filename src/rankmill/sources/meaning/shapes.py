"""What an input means: nested columns as lists, and all rules in turn."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import arrow_of, is_number_type, pc, validity_of
from rankmill.columns.ids import is_text_type
from rankmill.columns.lists import is_list_type, offsets_of, split_lists, value_type
from rankmill.errors import InputError, UsageError
from rankmill.semantics.choices import DEFAULT, Choices
from rankmill.sources.meaning.column_names import (
    ALIASES,
    WEAK_ALIASES,
    Finder,
    plain,
)
from rankmill.sources.meaning.plain_ids import with_plain_ids, with_times
from rankmill.sources.meaning.roles import check_types, find_columns, likely_ids
from rankmill.sources.meaning.values import Values, derived, keyed, with_numbers, with_values
from rankmill.sources.roles.source import Batch, Columns, InputOptions, Source, key_of

# The names of the item in a struct of an item and its number.
PLACES = {"0", "1"}  # of a pair
ITEM_NAMES = (ALIASES["item"], *WEAK_ALIASES["item"], ("key",), PLACES)  # the first that is there
OF_ITEM = {plain(one) for one in itertools.chain(*ITEM_NAMES)}
# The names of columns whose structs stand for an item, or a query.
OF_ID = OF_ITEM | {plain(one) for one in ALIASES["query"]}
WRAPPED, STRUCTS, PAIRS = "struct of one field", "structs of item and number", "pairs in lists"
MAP, FIELDS = "map of items", "field per item"
TENSOR = "arrow.fixed_shape_tensor"  # an extension type whose plain values are lists


class Nested(NamedTuple):
    """How a nested type is read as lists: what is taken of a cell, and of each element."""

    rule: str
    wraps: tuple[str, ...]  # the fields of a cell to follow until there is a list
    item: tuple[str, ...]  # the fields of an element that lead to its item
    number: str | None = None  # the field with its number, if it needs no name
    by_number: bool = False  # numbers rank the items, as the cell has no order
    others: tuple[str, ...] = ()  # the other fields, which have roles by their names


def shaped(source: Source) -> Source:
    """The source with lists in the place of nested columns.

    A struct of one field is that field. Of maps, and of lists of structs with an item and a number,
    the numbers make a column of their own.
    """
    if source.lists is not None or source.bare:
        return source
    source = _decoded(source)
    schema = source.schema
    for field in schema:
        nested = kinds.is_nested(field.type) and field.name not in source.fields
        found = nested_of(field.type, field.name) if nested else None
        if found is not None and schema.names.count(field.name) == 1:
            source.findings.used(found.rule, field.name)
            source = _with_lists(source, field.name, found)
    return source


def _decoded(source: Source) -> Source:
    """The source with plain values in columns of encoded numbers, such as categories of pandas."""
    schemas = [*source.kinds().values()]
    fields = [(one.name, value_type(one.type)) for schema in schemas for one in schema]
    encoded = [name for name, kind in fields if decoded_type(kind) != kind]
    for name in dict.fromkeys(encoded):
        if all(one.names.count(name) == 1 for one in schemas):  # or that is the error
            source = with_values(source, name, decoded_type, _decoded_values)
    return source


def _decoded_values(values: Values) -> Any:
    array = values.array
    return pc.run_end_decode(array) if kinds.is_run_end_encoded(array.type) else array.slice(0)


def decoded_type(kind: Any) -> Any:
    """The type of plain values: that of encoded texts stays, as all that reads ids decodes them."""
    inner = kind
    if kinds.is_run_end_encoded(kind) or kinds.is_dictionary(kind):
        inner = kind.value_type
    elif isinstance(kind, pa.BaseExtensionType):
        inner = kind.storage_type
    texts = is_text_type(inner) and not kinds.is_run_end_encoded(kind)
    nested = kinds.is_nested(inner) and getattr(kind, "extension_name", "") != TENSOR
    return kind if texts or nested else inner


def nested_of(kind: Any, name: str) -> Nested | None:
    """How a nested column is read as lists; None if it needs no change, or cannot be read."""
    wraps: tuple[str, ...] = ()
    while kinds.is_struct(kind) and kind.num_fields == 1:
        wraps = (*wraps, kind.field(0).name)
        kind = kind.field(0).type
    if kinds.is_map(kind):
        number = "value" if is_number_type(kind.item_type) else None
        return Nested(MAP, wraps, ("key",), number, by_number=number is not None)
    if kinds.is_struct(kind):
        each = [kind.field(i) for i in range(kind.num_fields)]
        named = any(plain(one.name) in OF_ITEM for one in each)
        if named and plain(name) in OF_ID:  # of a row, such as {"id": 7, "title": "Heat"}
            return _of_structs(kind, wraps, ())
        numbers = bool(each) and all(_is_number(one.type) for one in each)
        return Nested(FIELDS, wraps, (), by_number=True) if numbers and not named else None
    if not is_list_type(kind):
        return Nested(WRAPPED, wraps, ()) if wraps else None
    element = kind.value_type
    item: tuple[str, ...] = ()
    while kinds.is_struct(element) and element.num_fields == 1:
        item = (*item, element.field(0).name)
        element = element.field(0).type
    if kinds.is_struct(element):
        return _of_structs(element, wraps, item)
    if is_list_type(element) and kinds.is_floating(element.value_type):
        return Nested(PAIRS, wraps, item)
    return Nested(WRAPPED, wraps, item) if wraps or item else None


def _of_structs(element: Any, wraps: tuple[str, ...], item: tuple[str, ...]) -> Nested | None:
    """Of structs, the field with the name of an item, and the others; in a pair, its number."""
    each = {one.name: one.type for one in map(element.field, range(element.num_fields))}
    names = [{*map(plain, some)} for some in ITEM_NAMES]
    found = next((name for some in names for name in each if plain(name) in some), None)
    if found is None:
        return None
    del each[found]
    numbers = [name for name in each if is_number_type(each[name])]
    number = numbers[0] if plain(found) in PLACES and len(numbers) == 1 else None
    others = tuple(name for name in each if name != number)
    return Nested(STRUCTS, wraps, (*item, found), number, others=others)


def _is_number(kind: Any) -> bool:
    return is_number_type(kind) or kinds.is_boolean(kind) or kinds.is_null(kind)


def _with_lists(source: Source, name: str, how: Nested) -> Source:
    def kind_of(file: str, schema: Any, one: Nested = how, which: int = 0) -> Any:
        return _lists(pa.nulls(0, schema.field(name).type), one)[which].type

    def make(batch: Batch, one: Nested = how, which: int = 0) -> Any:
        try:
            return _lists(batch.data.column(name), one)[which]
        except ValueError as error:
            raise InputError(f"{batch.source}: column {name!r}: {error}") from None

    ranked = [how] if how.number is not None or how.rule in (PAIRS, FIELDS) else []
    for one in (*ranked, *(how._replace(number=other) for other in how.others)):
        numbers = f"{name}.{one.number or 'number'}"
        of_numbers = partial(kind_of, one=one, which=1), partial(make, one=one, which=1)
        source = derived(source, numbers, (name,), *of_numbers)
        if one is how:
            source = replace(source, numbered={**source.numbered, name: (numbers, how.by_number)})
        else:
            source = replace(source, fields={**source.fields, numbers: (name, str(one.number))})
    return derived(source, name, (name,), kind_of, make)


def _lists(column: Any, how: Nested) -> tuple[Any, Any]:
    """The lists of items of a column, and those of their numbers if there are any."""
    for one in how.wraps:
        column = pc.struct_field(column, one)
    if how.rule == FIELDS:
        return _of_fields(column)
    if kinds.is_map(column.type):
        element = pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])
        column = column.cast(pa.list_(element)) if len(column) else pa.nulls(0, pa.list_(element))
    elif not is_list_type(column.type):
        numbers = how.number and _field(column, how.number)
        return pc.struct_field(column, how.item) if how.item else column, numbers
    offsets, flat = split_lists(column)
    items, numbers = flat, None
    if how.rule == PAIRS:
        if len(flat) and not pc.all(pc.equal(pc.list_value_length(flat), 2)).as_py():
            raise ValueError("it holds lists of numbers, but not pairs of an item and a number")
        values = flat.flatten()
        items, numbers = (values.take(arrow_of(np.arange(at, len(values), 2))) for at in (0, 1))
    else:
        if how.number is not None:
            numbers = _field(pc.struct_field(flat, [*how.item[:-1]]), how.number)
        if how.item:
            items = pc.struct_field(flat, [*how.item])
    return tuple(
        None if one is None else pa.LargeListArray.from_arrays(arrow_of(offsets), one)
        for one in (items, numbers)
    )  # type: ignore[return-value]


def _field(structs: Any, name: str) -> Any:
    """A field of structs; nulls if it is of another file alone."""
    there = structs.type.get_field_index(name) >= 0
    return pc.struct_field(structs, name) if there else pa.nulls(len(structs))


def _of_fields(column: Any) -> tuple[Any, Any]:
    """Structs that have a field for each item, whose values are the numbers."""
    names = [column.type.field(i).name for i in range(column.type.num_fields)]
    values = [pc.struct_field(column, name).cast(pa.float64()) for name in names]
    there = np.column_stack([validity_of(one) for one in values])
    numbers = np.column_stack([one.fill_null(0).to_numpy() for one in values])
    offsets = arrow_of(offsets_of(there.sum(axis=1)))
    items = pa.array(names, pa.large_string()).take(arrow_of(np.nonzero(there)[1]))
    return (
        pa.LargeListArray.from_arrays(offsets, items),
        pa.LargeListArray.from_arrays(offsets, arrow_of(numbers[there])),
    )


# ------------------------------------------------------------------ what an input means

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
    if not source.bare and any(name[-1:].isdigit() for name in source.schema.names):
        from rankmill.sources.meaning.columns_per_rank import ranked_columns, with_ranked

        ranked = ranked_columns(source.schema.names)
        told = asked.item is not None
        if ranked and (told or likely_ids(source, asked.role, asked.query, None)[1] is None):
            source, asked = with_ranked(source, ranked, asked)
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
