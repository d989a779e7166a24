"""The values of a column in a batch, be it one a row or lists of them, and how they are changed."""

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import (
    NO_FLOAT,
    array_of_values,
    arrow_of,
    floats_of,
    is_number_type,
    pc,
    values_of,
)
from rankmill.columns.ids import id_type, is_id_type, is_text_type, plain
from rankmill.columns.lists import is_list_type, split_lists, value_type
from rankmill.columns.ranked_lists import Place
from rankmill.errors import InputError
from rankmill.sources.meaning.looks import MISSING, PATTERNS
from rankmill.sources.roles.source import Batch, Block, Key, OddIds, Source, batch_of, of_batch

# ------------------------------------------------------------------ columns made of others
# A `Key` says of which columns a query id is made, and how their texts are joined. `keyed` opens a
# source with one more column, which holds the joined texts; all that reads query ids reads it as
# any other column, in every format, so that nothing else knows that there were several.
#
# A list of columns is a tuple: its parts are compared one by one. Their texts are joined by commas,
# and a comma or a backslash within a part gets a backslash, so that no two tuples have one text. A
# template, such as "{session}_{type}", gives the text that the other side has as it stands. There
# two of its columns may not both hold what stands between them, which would make texts ambiguous.


BYTES, TEXT = pa.large_binary(), pa.large_string()


def keyed(source: Source, key: Key) -> Source:
    """The source with a column of the query ids that a key makes."""
    held: dict[str, str] = {}  # the parts that hold what stands between parts, each with a value

    def kind_of(file: str, schema: Any) -> Any:
        found = [_part_type(file, schema, part) for part in key.parts]
        return BYTES if any(id_type(one) == BYTES for one in found) else TEXT

    make = partial(_joined, key=key, held=held)
    return derived(source, key.name, key.parts, kind_of, make, key=key)


def _part_type(file: str, schema: Any, part: str) -> Any:
    """The type of a column of ids that is a part of a key."""
    count = schema.names.count(part)
    found = schema.field(part).type if count == 1 else None
    if found is None or not is_id_type(found):
        what = "no column" if count == 0 else f"{count} columns"
        what = f"column {part!r} holds {found}" if found else f"{what} {part!r} for the query"
        raise InputError(
            f"{file}: {what}; the columns are {', '.join(schema.names)}: name columns of "
            "integers or strings with --query or --label-query on the command line, "
            "Labels(query=...) or Predictions(query=...) in Python"
        )
    return found


def derived(
    source: Source,
    name: str,
    parts: Sequence[str],
    kind_of: Callable[[str, Any], Any],
    make: Callable[[Batch], Any],
    key: Key | None = None,
) -> Source:
    """The source with a column that `make` gives of each batch, which holds the columns `parts`.

    `kind_of` takes a file and its schema, and returns the type of the column there.
    """
    made = {
        id(schema): _with_field(schema, name, kind_of(file, schema))
        for file, schema in source.kinds().items()
    }

    def read(columns: Sequence[str]) -> list[str]:
        both = [parts if one == name else (one,) for one in columns]
        return list(dict.fromkeys(one for some in both for one in some))

    def pieces(columns: list[str]) -> Sequence[Iterator[Block]]:
        found = source.pieces(read(columns))
        if name not in columns:
            return found
        return [(partial(_batch, block, name, make) for block in one) for one in found]

    def sizes(columns: list[str]) -> dict[str, tuple[int, int]]:
        found = source.sizes(read(columns))
        if name in columns:
            counts, sizes = zip(*(found[part] for part in parts), strict=True)
            found[name] = max(counts), sum(sizes)
        return {one: found[one] for one in columns}

    def kept(memory: int, columns: list[str] | None) -> Source:
        assert source.kept is not None
        held = source.kept(memory, columns and read(columns))
        return derived(held, name, parts, kind_of, make, key)

    def peek(columns: list[str]) -> Batch | None:
        assert source.peek is not None
        found = source.peek(read(columns))
        return found if found is None or name not in columns else _batch(found, name, make)

    return replace(
        source,
        key=key or source.key,
        schemas={file: made[id(one)] for file, one in source.schemas.items()},
        sizes=sizes,
        pieces=pieces,
        kept=source.kept and kept,
        peek=source.peek and peek,
    )


def _with_field(schema: Any, name: str, kind: Any) -> Any:
    place = schema.get_field_index(name)
    made = pa.field(name, kind)
    return schema.append(made) if place < 0 else schema.set(place, made)


def _batch(block: Block, name: str, make: Callable[[Batch], Any]) -> Batch:
    batch = batch_of(block)
    columns = dict(zip(batch.data.schema.names, batch.data.columns, strict=True))
    columns[name] = of_batch(make, batch)
    return batch._replace(data=pa.record_batch(columns))


def _joined(batch: Batch, key: Key, held: dict[str, str]) -> Any:
    """The ids of a batch; null where a part is null."""
    parts, kind = [], TEXT
    for name in key.parts:
        column = plain(batch.data.column(name), f"{batch.source}: column {name!r}")
        if is_text_type(column.type):
            kind = BYTES if id_type(column.type) == BYTES else kind
            column = column.cast(BYTES)
            if not key.texts:
                for one in (b"\\", b","):
                    column = pc.replace_substring(column, pattern=one, replacement=b"\\" + one)
        else:
            column = column.cast(TEXT).view(BYTES)
        parts.append(column)
    if not key.texts:
        joined = pc.binary_join_element_wise(*parts, pa.scalar(b",", BYTES))
        return joined.view(kind)
    _check_unambiguous(batch, key, parts, held)
    texts = [pa.scalar(one.encode(), BYTES) for one in key.texts]
    both = [one for pair in zip(texts, parts, strict=False) for one in pair]
    return pc.binary_join_element_wise(*both, texts[-1], pa.scalar(b"", BYTES)).view(kind)


def _check_unambiguous(batch: Batch, key: Key, parts: list[Any], held: dict[str, str]) -> None:
    """Raise InputError if two parts hold what stands between parts: then no text tells them apart.

    If only one does, the others end where the first or the last of these characters stands.
    """
    for name, column in zip(key.parts, parts, strict=True):
        for one in sorted(set("".join(key.texts[1:-1]))):
            if name in held:
                break
            row = pc.index(pc.match_substring(column, pattern=one), True).as_py()
            if row >= 0:
                held[name] = f"{column[row].as_py().decode(errors='backslashreplace')!r}"
                if len(held) > 1:
                    told = " and ".join(f"{value} in {part!r}" for part, value in held.items())
                    raise InputError(
                        f"{batch.source}: {batch.place.of(row)}: several columns of the query hold "
                        f"{one!r}, which also separates them: {told}; so a joined text may be of "
                        "different queries: change the ids, or give both sides by their columns, "
                        f"as --query {','.join(key.parts)} on the command line, "
                        f"query={[*key.parts]} of both in Python"
                    )


Convert = Callable[["Values"], Any]


class Values(NamedTuple):
    """The values of a column in a batch."""

    array: Any
    offsets: np.ndarray | None  # of lists; None if there is a value a row
    batch: Batch
    name: str

    @classmethod
    def of(cls, batch: Batch, name: str) -> Self:
        """The values of a column."""
        column, offsets = batch.data.column(name), None
        if is_list_type(column.type):
            offsets, column = split_lists(column)
        return cls(plain(column, f"{batch.source}: column {name!r}"), offsets, batch, name)

    def texts(self) -> Any:
        """Texts or bytes as large_string; InputError where they are not valid UTF-8."""
        raw = self.array.cast(id_type(self.array.type)).cast(pa.large_binary())
        try:
            return raw.cast(pa.large_string())
        except pa.ArrowInvalid:
            found = (one or b"" for one in raw.to_pylist())
            odd = next(
                i for i, one in enumerate(found) if one.decode(errors="ignore").encode() != one
            )
        raise self._replace(array=raw).error(odd, "expected text in UTF-8")

    def error(self, i: int, todo: str) -> InputError:
        """The error for value i."""
        row = i if self.offsets is None else int(np.searchsorted(self.offsets, i, "right")) - 1
        where = ", ".join(filter(None, [self.batch.place.of(row), f"column {self.name!r}"]))
        found = self.array[i].as_py()
        return InputError(f"{self.batch.source} ({where}): found {found!r:.80}; {todo}")

    def whole(self, most: float, todo: Callable[[float], str]) -> Any:
        """Floats as integers, NaN as null; `todo` tells of one that is a fraction or beyond."""
        floats = floats_of(self.array).astype(np.float64)
        missing = np.isnan(floats)
        floats[missing] = 0
        bad = (np.floor(floats) != floats) | (np.abs(floats) > most)
        if bad.any():
            i = int(bad.argmax())
            raise self.error(i, todo(float(floats[i])))
        return arrow_of(floats.astype(np.int64), missing)

    def tell(
        self, source: Source, marks: Any, rule: str, what: tuple[str, str, str], todo: str
    ) -> None:
        """Tell how many of the values are marked, which is said of them, and one of these."""
        number = pc.sum(marks).as_py() or 0
        texts = self.array.cast(id_type(self.array.type))
        example = pc.min(texts.filter(marks)).as_py() if number else None
        kind = OddIds(source.name, self.name, rule, what, todo)
        source.findings.count(self.batch.place, kind, number, example)


def with_values(
    source: Source,
    name: str,
    kinds_of: Callable[[Any], Any],
    change: Convert,
) -> Source:
    """The source with other values in a column; `kinds_of` takes the type that they have so far."""

    def kind_of(file: str, schema: Any) -> Any:
        kind = schema.field(name).type
        made = kinds_of(value_type(kind))
        return pa.large_list(made) if is_list_type(kind) else made

    def make(batch: Batch) -> Any:
        values = Values.of(batch, name)
        made = change(values)
        if made is values.array:
            return batch.data.column(name)
        if values.offsets is None:
            return made
        return pa.LargeListArray.from_arrays(arrow_of(values.offsets), made)

    return derived(source, name, (name,), kind_of, make)


# ------------------------------------------------------------------ numbers of every type

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


def numbers_or_none(array: Any, name: str) -> np.ndarray | None:
    """Numbers, booleans or texts of them as floats, NaN where one is missing; None of others."""
    if not _is_value(array.type) or kinds.is_temporal(array.type):
        return None
    values = Values(plain(array, name), None, Batch(None, Place("")), name)
    with suppress(InputError):
        return floats_of(_numbers(values, "score", whole=False, comma=False))
    return None


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
        if whole and not comma:
            with suppress(pa.ArrowInvalid):  # where a float64 may be another rank
                return values.texts().cast(pa.int64())
        array = _of_texts(values, role, comma)
        _check_exact(values, floats_of(array))
    ranks = whole and not kinds.is_integer(array.type)
    return values._replace(array=array).whole(math.inf, lambda found: WHOLE) if ranks else array


def _check_exact(values: Values, floats: np.ndarray) -> None:
    """Raise InputError if a text is an integer beyond 2**53 that is another one as a float."""
    large = np.flatnonzero(np.abs(floats) >= MOST_EXACT)
    texts = values.texts().take(arrow_of(large)).to_pylist() if len(large) else ()
    for i, text in zip(large.tolist(), texts, strict=True):
        if _INTEGER.fullmatch(text) and int(text) != float(floats[i]):
            raise values.error(i, f"it {NO_FLOAT}")


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


MOST_EXACT = 2.0**53
_INTEGER = re.compile(r"\s*[-+]?[0-9]{1,400}\s*")
_NUMBER = f"^(?:{PATTERNS['fraction'].pattern}|[-+]?inf(?:inity)?|nan)$"
