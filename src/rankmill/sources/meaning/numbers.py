"""Scores, gains and ranks of every type as numbers."""

import math
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import array_of_values, is_number_type, pc, values_of
from rankmill.columns.ids import is_text_type, plain
from rankmill.columns.lists import is_list_type, value_type
from rankmill.errors import InputError
from rankmill.sources.meaning.looks import MISSING, PATTERNS
from rankmill.sources.meaning.values import Values, with_values
from rankmill.sources.roles.source import Batch, Source

TEXT = pa.large_string()
WHOLE = (
    "expected a whole number for the rank: rank with method='first', or leave the rows in rank "
    "order with --in-order"
)


def with_numbers(source: Source, name: str, role: str) -> Source:
    """The source with numbers in a column of scores, gains or ranks.

    Booleans are 0 and 1, and texts the numbers that they hold. Ranks that are floats have to be
    whole. Anything else is an error that names the row.
    """
    if source.lists is not None:
        return source
    every = [
        value_type(one.field(name).type) for one in source.kinds().values() if name in one.names
    ]
    whole = role == "rank"
    odd = [one for one in every if _is_odd(one, whole)]
    if not odd and not (whole and source.sampled):
        return source
    for one in odd:
        boolean = "booleans as numbers" if kinds.is_boolean(one) else "whole ranks"
        source.findings.used("numbers in text" if is_text_type(one) else boolean, name)
    kind_of, comma = partial(_kind, whole=whole), source.decimal == ","
    if comma and any(map(is_text_type, odd)):
        source.findings.used("decimal commas", name)
    return with_values(
        source, name, kind_of, partial(_numbers, role=role, whole=whole, comma=comma)
    )


def with_column(
    source: Source, name: str, metric: str, ids: Collection[str | None], *, lists: bool = False
) -> Source:
    """The source with numbers in the place of text in a column that a metric of a user sees.

    InputError if the column is missing, is one of the `ids`, or holds something that `values_of`
    does not take.
    """
    for file, schema in source.schemas.items():
        nothing = source.bare or source.lists is not None
        there = [] if nothing else [one for one in schema.names if one not in ids]
        if there.count(name) != 1:
            raise InputError(
                f"{file}: {metric} sees a column {name!r}, which is not there; the columns other "
                f"than ids are {', '.join(there) or 'none'}: give a table that has it, or name "
                "another"
            )
        kind = schema.field(name).type
        if is_list_type(kind) != lists or not _is_value(value_type(kind)):
            wanted = "lists of them, as long as those of the items" if lists else "one a row"
            raise InputError(
                f"{file}: column {name!r}, which {metric} sees, holds {kind}; expected numbers, "
                f"booleans, dates or timestamps, {wanted}: convert it"
            )
    return with_numbers(source, name, f"column of {metric}")


def column_values(batch: Batch, name: str, raw: Any = None) -> np.ndarray:
    """The values of such a column in a batch, as float64; `raw` are those of its lists."""
    what = f"{batch.source}: column {name!r}"
    try:
        return values_of(plain(batch.data.column(name) if raw is None else raw, what))
    except InputError as error:
        raise InputError(f"{what}: {error}") from None


def _is_value(kind: Any) -> bool:
    kind = kind.value_type if kinds.is_dictionary(kind) else kind
    times = kinds.is_date(kind) or kinds.is_timestamp(kind)
    return times or is_number_type(kind) or _is_odd(kind, False) or kinds.is_null(kind)


def _is_odd(kind: Any, whole: bool) -> bool:
    floats = kinds.is_floating(kind) or kinds.is_decimal(kind)
    return bool(is_text_type(kind) or kinds.is_boolean(kind) or (whole and floats))


def _kind(kind: Any, whole: bool) -> Any:
    if not _is_odd(kind, whole):
        return kind
    return pa.int64() if whole else pa.uint8() if kinds.is_boolean(kind) else pa.float64()


def _numbers(values: Values, role: str, whole: bool, comma: bool) -> Any:
    array = values.array
    if kinds.is_boolean(array.type):
        return array.cast(pa.uint8()).cast(pa.int64() if whole else pa.uint8())
    if is_text_type(array.type):
        array = _of_texts(values, role, comma)
    ranks = whole and not kinds.is_integer(array.type)
    return values._replace(array=array).whole(math.inf, lambda found: WHOLE) if ranks else array


def _of_texts(values: Values, role: str, comma: bool) -> Any:
    texts = values.texts()
    with suppress(pa.ArrowInvalid):  # most columns have nothing but numbers
        if not comma:
            return texts.cast(pa.float64())
    texts = pc.utf8_trim_whitespace(texts)
    if comma:  # a point would part thousands, and is no number
        texts = pc.replace_substring(pc.replace_substring(texts, ".", ". "), ",", ".")
    # An error tells of NaN as it stands.
    words = array_of_values([one for one in MISSING if one.lower() != "nan"], pa.string())
    texts = pc.if_else(pc.is_in(texts, words.cast(TEXT)), pa.nulls(1, TEXT)[0], texts)
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        pass
    lower = pc.utf8_lower(texts)
    for word, number in (("true", "1"), ("false", "0")):
        lower = pc.if_else(pc.equal(lower, word), number, lower)
    try:
        return lower.cast(pa.float64())
    except pa.ArrowInvalid:
        bad = pc.fill_null(pc.invert(pc.match_substring_regex(lower, _NUMBER)), False)
        i = pc.index(bad, True).as_py()
        found = str(texts[i].as_py())
    todo = f"expected a number for the {role}: name another column, or write numbers"
    if PATTERNS["percent"].fullmatch(found):
        todo = f"expected a number for the {role}: leave out the percent signs"
    elif PATTERNS["decimal comma"].fullmatch(found):
        noun = "Predictions" if role in ("score", "rank") else "Labels"
        told = f"--decimal ',' on the command line, {noun}(decimal=',') in Python"
        todo = f"expected a number for the {role}: write a decimal point, or use {told}"
    elif role == "gain":
        todo = (
            "expected a number for the gain: write words as numbers, such as 1 and 0; or use "
            "--binary if every row counts as relevant"
        )
    raise values.error(i, todo)


_NUMBER = f"^(?:{PATTERNS['fraction'].pattern}|[-+]?inf(?:inity)?|nan)$"
