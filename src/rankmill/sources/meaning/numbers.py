"""Scores, gains and ranks of every type as numbers."""

import math
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import array_of_values, pc
from rankmill.columns.ids import is_text_type
from rankmill.columns.lists import value_type
from rankmill.sources.meaning.looks import MISSING, PATTERNS
from rankmill.sources.meaning.values import Values, with_values
from rankmill.sources.roles.source import Source

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
