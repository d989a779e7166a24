"""Ids of every type as integers or texts: what the type alone decides, for one side."""

import math
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import arrow_of, floats_of, pc, validity_of
from rankmill.columns.ids import (
    as_text,
    drop_nulls,
    id_type,
    is_text_type,
    plain,
    text_places,
    to_ids,
)
from rankmill.columns.lists import is_list_type, value_type
from rankmill.columns.objects import array_of
from rankmill.errors import UsageError
from rankmill.kernels.hits import count_last
from rankmill.kernels.identity import SIGNED, STRING, UNSIGNED, Ids
from rankmill.kernels.odd_texts import first_odd
from rankmill.sources.meaning.looks import (
    are_missing,
    distinct_texts,
    first_values,
    without_missing,
)
from rankmill.sources.meaning.values import Values, derived, with_values
from rankmill.sources.roles.source import Batch, Source

UUID_BYTES = 16
BLANK = 32  # a text of bytes has none below
EXACT = "use --exact-ids to compare ids as they stand"
# Blanks beyond ASCII at the start or the end of a text, such as a no-break space.
OTHER_BLANKS = r"[\x{A0}\x{2000}-\x{200B}\x{202F}\x{3000}\x{FEFF}]"
AROUND = rf"\A{OTHER_BLANKS}|{OTHER_BLANKS}\z"
# What looks so is compared in lower case.
UUID, BOOLEAN = "UUID", "boolean"
TIMES = "times"  # and what looks so in one spelling
# Dates and times as others write them, without and with a zone.
WRITTEN = (
    r"^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
    r"(?:[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?)?$"
)
ZONED = WRITTEN[:-2] + r"(?:Z|[+-]\d\d(?::?\d\d)?)$"
TEXT, BYTES = pa.large_string(), pa.large_binary()
# Decimals of so many digits are integers of 64 bits.
DIGITS = 18

# What a type of ids is -> the rule that reads it.
KINDS: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (kinds.is_temporal, "dates and times"),
    (kinds.is_boolean, "booleans as ids"),
    (kinds.is_decimal, "decimals"),
    (kinds.is_floating, "whole doubles"),
)


def with_plain_ids(source: Source, name: str, role: str) -> Source:
    """The source with integers or texts in a column of ids, of which blanks and words are left out.

    Whole doubles (to 2**53) and decimals become integers, UUIDs and times their text; booleans are
    ids of queries only, such as a part of a key.
    """
    schemas = source.kinds().values()
    if source.lists is not None or any(one.names.count(name) != 1 for one in schemas):
        return source  # the code that reads the column raises the error
    whole = [one.field(name).type for one in schemas]
    every = {*map(value_type, whole)}
    integers = all(kinds.is_integer(one) or kinds.is_null(one) for one in every)
    if integers and not source.sampled:
        return source
    if any(map(is_list_type, whole)) and any(map(kinds.is_floating, whole)):
        source = _with_empty_lists(source, name)
        every = {value_type(one.field(name).type) for one in source.kinds().values()}
    texts = all(map(is_text_type, every))
    strange = () if texts else every
    if any(map(kinds.is_nested, strange)) or (
        role != "query" and any(map(_names_queries, strange))
    ):
        return source
    for fits, rule in KINDS:
        if any(map(fits, strange)):
            source.findings.used(rule, name)
    if any(map(is_uuid, every)) or (BYTES in map(id_type, every) and _are_uuids(source, name)):
        source.findings.used("UUIDs", name)
        source.looks[name] = UUID
        return with_values(source, name, lambda kind: TEXT, _uuids)
    for fits, look in ((kinds.is_boolean, BOOLEAN), (_is_time, TIMES)):
        if any(map(fits, strange)):
            source.looks[name] = look
    if texts and source.exact_ids:
        return source
    return with_values(source, name, _plain_type, partial(_plain, source=source, role=role))


def _are_uuids(source: Source, name: str) -> bool:
    """Whether the first bytes of a column are UUIDs, which not every library keeps as a type."""
    first = plain(first_values(source, name), name).cast(BYTES).drop_null()
    sizes = pc.min_max(pc.binary_length(first)).as_py()
    return {*sizes.values()} == {UUID_BYTES} and any(min(one) < BLANK for one in first.to_pylist())


def _names_queries(kind: Any) -> bool:
    """Whether values of an Arrow type may name queries, but no items."""
    return kinds.is_boolean(kind) or _is_time(kind)


def _is_time(kind: Any) -> bool:
    """Whether values of an Arrow type have a text: those of intervals have none."""
    return kinds.is_temporal(kind) and not kinds.is_interval(kind)


def _with_empty_lists(source: Source, name: str) -> Source:
    """The source with nulls in files where a column of lists holds nothing but missing numbers.

    pandas writes such a column as doubles.
    """

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

    source.findings.used("missing lists", name)
    return derived(source, name, (name,), kind_of, make)


def _plain_type(kind: Any) -> Any:
    if _is_time(kind) or kinds.is_boolean(kind):
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


def _plain(values: Values, source: Source, role: str) -> Any:
    kind = values.array.type
    if is_text_type(kind):
        return values.array if source.exact_ids else _tidy(values, source, role)
    if kinds.is_floating(kind):
        return _whole(values)
    if kinds.is_decimal(kind):
        return _of_decimals(values)
    if _is_time(kind):
        return _times(values.array)
    return values.array.cast(TEXT) if kinds.is_boolean(kind) else values.array


def _uuids(values: Values) -> Any:
    """UUIDs as text, in lower case."""
    import uuid

    found = values.array.to_pylist()
    for i, one in enumerate(found):
        if one is not None and len(one) != UUID_BYTES:
            raise values.error(i, "expected a UUID of 16 bytes, as in the first rows")
    return pa.array([None if one is None else str(uuid.UUID(bytes=one)) for one in found], TEXT)


def _times(array: Any) -> Any:
    """Dates and times, in UTC if they have a time zone, as text without needless zeros."""
    if kinds.is_timestamp(array.type) and array.type.tz:
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    found = pc.replace_substring_regex(array.cast(TEXT), r"(\.\d*?)0+(Z?)$", r"\1\2")
    return pc.replace_substring_regex(found, r"(?: 00:00:00)?\.?(Z?)$", r"\1")


def times_of(texts: Any) -> Any:
    """Texts, in which dates and times are spelled as those of Arrow's types are."""
    finer = pc.match_substring_regex(texts, r"\.\d{6}\d*[1-9]")  # stands as it is
    for pattern, zone in ((WRITTEN, None), (ZONED, "UTC")):
        marks = pc.match_substring_regex(texts, pattern)
        found = pc.if_else(pc.and_not(marks, finer), texts, None)
        found = pc.replace_substring_regex(found, r"(\.\d{6})\d+", r"\1")
        times = _cast(found, pa.timestamp("us", zone))
        texts = pc.coalesce(_times(times), texts)
    return texts


def _cast(texts: Any, kind: Any) -> Any:
    """Times of texts; null for what is none, such as 30 February."""
    with suppress(pa.ArrowInvalid):
        return texts.cast(kind)
    if len(texts) == 1:
        return pa.nulls(1, kind)
    half = len(texts) // 2
    return pa.concat_arrays([_cast(texts[:half], kind), _cast(texts[half:], kind)])


def with_times(source: Source, name: str) -> Source:
    """The source with one spelling of the dates and times in a column of text, a part of a key.

    It does not depend on the other side, which may have them as types.
    """
    every = [one.names.count(name) == 1 for one in source.kinds().values()]
    if not all(every) or source.exact_ids or source.looks.get(name) == TIMES:
        return source
    first = first_values(source, name)
    texts = distinct_texts(first) if is_text_type(first.type) else []
    if not texts or not all(re.match(f"{WRITTEN}|{ZONED}", one) for one in texts):
        return source
    source.findings.used("times in text", name)
    return with_values(source, name, lambda kind: TEXT, lambda values: times_of(values.texts()))


def _whole(values: Values) -> Any:
    """Floats as integers, up to where each integer is a float of its own; NaN is a missing id."""
    bits = np.finfo(floats_of(values.array).dtype).nmant + 1

    def todo(found: float) -> str:
        beyond = f"beyond 2**{bits}, where {values.array.type}s skip integers"
        fraction = abs(found) <= 2.0**bits or not math.isfinite(found)
        return f"{'a fraction' if fraction else beyond} is not an id: write integers or text"

    return values.whole(2.0**bits, todo)


def _of_decimals(values: Values) -> Any:
    array = values.array
    wide = array.type.precision - array.type.scale > DIGITS
    try:
        whole = array.cast(pa.decimal256(array.type.precision, 0) if wide else pa.int64())
    except pa.ArrowInvalid:
        odd = next(i for i, one in enumerate(array.to_pylist()) if one is not None and one % 1)
        raise values.error(odd, "a fraction is not an id: write integers or text") from None
    return whole.cast(TEXT) if wide else whole


def _tidy(values: Values, source: Source, role: str) -> Any:
    """Texts without spaces around them; those that stand for a missing value are null.

    Both are counted, and told, as are other blanks.
    """
    if first_odd(*text_places(drop_nulls(values.array))) < 0:
        return values.array
    texts = as_text(values.array)
    # Only blanks that the kernel looks for, or those of an id would depend on its batch.
    trimmed = pc.ascii_trim_whitespace(texts)
    padded = pc.not_equal(trimmed, texts)
    missing = are_missing(trimmed)
    other = pc.match_substring_regex(trimmed, AROUND)
    if not pc.any(pc.or_(pc.or_(padded, missing), other)).as_py():
        return values.array  # such as "no"
    todo = f"these are left out; {EXACT}"
    values.tell(source, padded, "spaces around ids", ("has", "have", "spaces around"), todo)
    todo = "they are compared as they stand: leave these out of the ids of both inputs"
    what = ("has", "have", "other blanks around")
    values.tell(source, other, "other blanks around ids", what, todo)
    tell_missing(values, source, role, trimmed)
    return without_missing(trimmed).view(id_type(values.array.type))


def tell_missing(values: Values, source: Source, role: str, texts: Any) -> None:
    """Count the words for missing ids; InputError if one may be a name: as a query, or twice."""
    marks = pc.and_(are_missing(texts), pc.binary_length(texts).cast(pa.bool_()))
    found = {*texts.filter(marks).to_pylist()}
    for word in sorted(found if role == "query" else found & source.findings.missing(found)):
        why = "every row needs a query" if role == "query" else "the other input has it, too"
        raise values.error(
            pc.index(texts, pa.scalar(word, texts.type)).as_py(),
            f"it stands for a missing value, and {why}: if it is an id, read both inputs with "
            "--exact-ids; otherwise drop these rows",
        )
    todo = f"they are read as missing; {EXACT}"
    values.tell(
        source, marks, "words for missing", ("stands", "stand", "for a missing value"), todo
    )


# ------------------------------------------------------------------ items that only fill up lists

# What implicit and FAISS put behind the items of a list that is too short.
USUAL_PADDING = "-1"
# How to say that an item is padding; notes of results are read by programs and at command lines.
SAY_PADDING = "--padding -1 on the command line, padding=-1 of Labels and Predictions in Python"
INTEGER = re.compile(r"-?[0-9]{1,20}")


def without_padding(source: Source, item: str, padding: str) -> Source:
    """The source with nulls in the place of the items that are padding."""
    if source.lists is not None:
        raise UsageError(
            f"{source.name} holds no padding that could be dropped, as each of its lists has a "
            "length of its own: leave the items out, or give lists or a matrix"
        )
    for file, schema in source.schemas.items():
        found = value_type(schema.field(item).type)
        if kinds.is_integer(found) and not INTEGER.fullmatch(padding):
            raise UsageError(
                f"padding is {padding!r}, but the items in {item!r} of {file} are {found}: give an "
                "integer"
            )

    def unpadded(values: Values) -> Any:
        array = values.array.cast(id_type(values.array.type))  # Arrow cannot take from views
        there = validity_of(array)
        keep = there.copy()
        keep[there] = ~is_id(to_ids(drop_nulls(array), values.batch.source), padding)
        return array.take(arrow_of(np.arange(len(array)), ~keep))

    source.findings.used("padding", item)
    return with_values(source, item, id_type, unpadded)


def padded_tails(offsets: np.ndarray, items: Ids) -> int:
    """How many lists of several items end in what is usually padding."""
    if items.kind == UNSIGNED:
        return 0
    return int(count_last(offsets, items, _usual_padding(items.kind)))


@cache
def _usual_padding(kind: int) -> Ids:
    padding = USUAL_PADDING if kind == STRING else int(USUAL_PADDING)
    return to_ids(array_of([padding], str), "padding")


def padding_notes(lists: int) -> list[str]:
    """A note if so many lists end in what usually is padding."""
    what = f"lists of predictions end in the item {USUAL_PADDING}, which counts as any other"
    return [f"{what}: if it is padding, use {SAY_PADDING}"] if lists else []


def is_id(ids: Ids, text: str) -> np.ndarray:
    """Whether each id is the one that a text names, be it an integer or the text itself."""
    if ids.kind != STRING:
        number = int(text) if INTEGER.fullmatch(text) else 2**64
        low = -(2**63) if ids.kind == SIGNED else 0
        fits = low <= number < low + 2**64
        equal: np.ndarray = ids.keys == np.uint64(number % 2**64)
        return equal & fits
    wanted = np.frombuffer(text.encode(errors="surrogateescape"), np.uint8)
    same: np.ndarray = ids.ends - ids.starts == len(wanted)
    for place, byte in enumerate(wanted.tolist()):
        at = np.flatnonzero(same)
        same[at] = ids.data[ids.starts[at] + place] == byte
    return same
