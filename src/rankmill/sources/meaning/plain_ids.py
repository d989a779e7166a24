"""Ids of every type as integers or texts: what the type alone decides, for one side."""

import math
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import arrow_of, floats_of
from rankmill.columns.ids import as_text, drop_nulls, id_type, is_text_type, text_places
from rankmill.columns.lists import is_list_type, value_type
from rankmill.kernels.odd_texts import first_odd
from rankmill.sources.meaning.derived_columns import derived
from rankmill.sources.meaning.looks import are_missing, without_missing
from rankmill.sources.meaning.values import Values, with_values
from rankmill.sources.roles.findings import OddIds
from rankmill.sources.roles.source import Batch, Source

# Up to here every whole number is a double of its own.
MOST_EXACT = 2.0**53
UUID_BYTES = 16
EXACT = "use --exact-ids to compare ids as they stand"
UUID = "UUID"
TEXT, BYTES = pa.large_string(), pa.large_binary()
# Decimals of so many digits are integers of 64 bits.
DIGITS = 18


def with_plain_ids(source: Source, name: str, role: str) -> Source:
    """The source with integers or texts in a column of ids, of which blanks and words are left out.

    Whole doubles (to 2**53) and decimals become integers, UUIDs and times their text; booleans are
    ids of queries only, such as a part of a key.
    """
    schemas = source.kinds().values()
    if source.lists is not None or any(one.names.count(name) != 1 for one in schemas):
        return source  # the code that reads the column raises the error
    source = _with_empty_lists(source, name)
    every = {value_type(one.field(name).type) for one in source.kinds().values()}
    if all(kinds.is_integer(one) or kinds.is_null(one) for one in every):
        return source
    if any(map(kinds.is_nested, every)) or (role != "query" and any(map(_names_queries, every))):
        return source
    if any(map(is_uuid, every)):
        source.looks[name] = UUID
    texts = all(is_text_type(one) and not is_uuid(one) for one in every)
    if texts and source.exact_ids:
        return source
    return with_values(source, name, _plain_type, partial(_plain, source=source), rarely=texts)


def _names_queries(kind: Any) -> bool:
    """Whether values of an Arrow type may name queries, but no items."""
    return bool(kinds.is_boolean(kind) or kinds.is_temporal(kind))


def _with_empty_lists(source: Source, name: str) -> Source:
    """The source with nulls in files where a column of lists holds nothing but missing numbers.

    pandas writes such a column as doubles.
    """
    every = [one.field(name).type for one in source.kinds().values()]
    if not any(map(is_list_type, every)) or not any(map(kinds.is_floating, every)):
        return source

    def kind_of(file: str, schema: Any) -> Any:
        kind = schema.field(name).type
        return pa.null() if kinds.is_floating(kind) else kind

    def make(batch: Batch) -> Any:
        column = batch.data.column(name)
        if not kinds.is_floating(column.type):
            return column
        there = column.is_valid(), column.is_nan()
        values = Values(column, None, batch, name)
        for i in range(len(column)):
            if there[0][i].as_py() and not there[1][i].as_py():
                raise values.error(i, "expected a list, as in the other files")
        return pa.nulls(len(column))

    return derived(source, name, (name,), kind_of, make)


def _plain_type(kind: Any) -> Any:
    if is_uuid(kind) or kinds.is_temporal(kind) or kinds.is_boolean(kind):
        return TEXT
    if kinds.is_decimal(kind):
        return pa.int64() if kind.precision - kind.scale <= DIGITS else TEXT
    if kinds.is_floating(kind):
        return pa.int64()
    return BYTES if id_type(kind) == BYTES else kind  # without blanks, they have no fixed size


def is_uuid(kind: Any) -> bool:
    """Whether an Arrow type holds UUIDs: the extension type, or 16 bytes."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return bool(kinds.is_fixed_size_binary(kind) and kind.byte_width == UUID_BYTES)


def _plain(values: Values, source: Source) -> Any:
    kind = values.array.type
    if is_uuid(kind):
        return _uuids(values.array)
    if is_text_type(kind):
        return values.array if source.exact_ids else tidy(values, source)
    if kinds.is_floating(kind):
        return _whole(values)
    if kinds.is_decimal(kind):
        return _of_decimals(values)
    if kinds.is_temporal(kind):
        return _times(values.array)
    return values.array.cast(TEXT) if kinds.is_boolean(kind) else values.array


def _uuids(array: Any) -> Any:
    """UUIDs as text, in lower case."""
    import uuid

    texts = [None if one is None else str(uuid.UUID(bytes=one)) for one in array.to_pylist()]
    return pa.array(texts, TEXT)


def _times(array: Any) -> Any:
    """Dates and times as text; midnight is its date, and no fraction ends in zeros."""
    import pyarrow.compute as pc

    if kinds.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", array.type.tz), safe=False)
    found = pc.replace_substring_regex(array.cast(TEXT), r"(\.\d*?)0+(Z?)$", r"\1\2")
    return pc.replace_substring_regex(found, r"(?: 00:00:00)?\.?(Z?)$", r"\1")


def _whole(values: Values) -> Any:
    """Doubles as integers; NaN is a missing id."""
    floats = floats_of(values.array).astype(np.float64)
    missing = np.isnan(floats)
    floats[missing] = 0
    bad = (np.floor(floats) != floats) | (np.abs(floats) > MOST_EXACT)
    if bad.any():
        i = int(bad.argmax())
        what = (
            "a fraction"
            if abs(floats[i]) <= MOST_EXACT or not math.isfinite(floats[i])
            else ("beyond 2**53, where doubles skip integers")
        )
        raise values.error(i, f"{what} is not an id: write integers or text")
    return arrow_of(floats.astype(np.int64), missing)


def _of_decimals(values: Values) -> Any:
    array = values.array
    wide = array.type.precision - array.type.scale > DIGITS
    try:
        whole = array.cast(pa.decimal256(array.type.precision, 0) if wide else pa.int64())
    except pa.ArrowInvalid:
        odd = next(i for i, one in enumerate(array.to_pylist()) if one is not None and one % 1)
        raise values.error(odd, "a fraction is not an id: write integers or text") from None
    return whole.cast(TEXT) if wide else whole


def tidy(values: Values, source: Source) -> Any:
    """Texts without blanks around them; those that stand for a missing value are null.

    Both are counted, and told.
    """
    import pyarrow.compute as pc

    if first_odd(*text_places(drop_nulls(values.array))) < 0:
        return values.array
    texts = as_text(values.array)
    # Only blanks that the kernel looks for, or those of an id would depend on its batch.
    trimmed = pc.ascii_trim_whitespace(texts)
    padded = pc.not_equal(trimmed, texts)
    missing = are_missing(trimmed)
    if not pc.any(pc.or_(padded, missing)).as_py():
        return values.array  # such as "no"
    words = pc.and_(missing, pc.binary_length(trimmed).cast(pa.bool_()))
    _tell(values, source, padded, "have blanks around them", f"these are left out; {EXACT}")
    _tell(
        values,
        source,
        words,
        "stand for a missing value",
        f"they are read as missing; {EXACT}",
    )
    return without_missing(trimmed).view(id_type(values.array.type))


def _tell(values: Values, source: Source, marks: Any, what: str, done: str) -> None:
    import pyarrow.compute as pc

    number = pc.sum(marks).as_py() or 0
    example = pc.min(values.array.filter(marks)).as_py() if number else None
    kind = OddIds(source.name, values.name, f"{what}, such as", done)
    source.findings.count(values.batch.place, kind, number, example)
