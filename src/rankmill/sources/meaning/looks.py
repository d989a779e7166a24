"""What the first values of a column look like, for the rules that cannot go by its type alone."""

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import array_of_values, pc
from rankmill.columns.ids import id_type, is_text_type, plain
from rankmill.columns.lists import is_list_type, value_type, values_in
from rankmill.errors import Otherwise
from rankmill.sources.roles.source import FIRST_ROWS, Source, batch_of

ROWS = FIRST_ROWS
# So many different texts are looked at for one pattern after the other.
TEXTS = 2_000
# Words that stand for a missing value, as pandas, NumPy, SQL and JSON write it.
MISSING = (
    *("", "nan", "NaN", "NAN", "None", "none", "null", "NULL", "Null", "NaT", "<NA>", "\\N"),
)
NUMBER = r"[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)(e[-+]?\d+)?"
# What texts look like -> the pattern that all of them match; 02139 is a code, and no number.
PATTERNS = {
    "integer": re.compile(r"[-+]?(0|[1-9]\d*)(\.0*)?"),
    "boolean": re.compile(r"true|false", re.I),
    "flag": re.compile(r"yes|no|y|n|t|f", re.I),
    "fraction": re.compile(NUMBER + r"|[-+]?inf(inity)?", re.I),
    "percent": re.compile(r"[-+]?\d+([.,]\d+)? ?%"),
    "decimal comma": re.compile(r"[-+]?(0|[1-9]\d*)(,\d+)?"),
    "list": re.compile(r"\[.*\]|\{.*\}|(array|set|frozenset)?\(.*\)", re.S),
}
# The looks of numbers, and that of a column with other texts among them.
NUMERIC = ("integer", "fraction", "percent", "decimal comma")
MIXED = "mixed"
BOOLEAN = ("boolean", "flag")
NUMBERS = ("integer", "fraction", "boolean")


def look(array: Any) -> str:
    """What an Arrow array holds: a key of PATTERNS, MIXED, or a word such as "nothing".

    Examples
    --------
    >>> look(pa.array(["7", None, "8.0"])), look(pa.array(["yes", "no"])), look(pa.array([True]))
    ('integer', 'flag', 'boolean')
    >>> look(pa.array(["007"])), look(pa.array([0.5])), look(pa.array(["nan"]))
    ('words', 'fraction', 'nothing')
    """
    kind = array.type
    for fits, name in (
        (kinds.is_null, "nothing"),
        (kinds.is_boolean, "boolean"),
        (kinds.is_integer, "integer"),
        (kinds.is_temporal, "time"),
        (is_list_type, "list"),
    ):
        if fits(kind):
            return name
    if kinds.is_floating(kind) or kinds.is_decimal(kind):
        return "integer" if _are_whole(array) else "fraction"
    if not is_text_type(kind) or kinds.is_nested(kind):
        return "other"
    texts = distinct_texts(array)
    found = (name for name, pattern in PATTERNS.items() if all(map(pattern.fullmatch, texts)))
    if not texts:
        return "nothing"
    numbers = sum(map(bool, map(PATTERNS["fraction"].fullmatch, texts)))
    return next(found, MIXED if 2 * numbers >= len(texts) else "words")


def _are_whole(array: Any) -> bool:
    if not len(array):  # of a type alone, which takes no pyarrow.compute
        return True
    values = array.cast(pa.float64())  # Arrow can neither round decimals nor half floats
    values = values.filter(pc.is_finite(values))
    return pc.all(pc.equal(pc.floor(values), values)).as_py() is not False


def distinct_texts(array: Any, most: int = TEXTS) -> list[str]:
    """Some different values of an array as texts, without spaces around them or missing ones."""
    texts = (
        one.decode(errors="replace") if isinstance(one, bytes) else str(one)
        for one in pc.unique(with_bytes(array)).to_pylist()[:most]
        if one is not None
    )
    return [one for one in map(str.strip, texts) if one not in MISSING]


def with_bytes(array: Any) -> Any:
    """The plain array, its text as bytes: Python cannot hold text that is not valid UTF-8."""
    array = plain(array, "a column")
    is_text = is_text_type(array.type)
    return array.cast(id_type(array.type)).cast(pa.large_binary()) if is_text else array


def are_missing(texts: Any) -> Any:
    """Which texts of an Arrow array of large strings stand for a missing value."""
    return pc.is_in(texts, _missing(texts.type))


@cache
def _missing(kind: Any) -> Any:
    return array_of_values([*MISSING], pa.string()).cast(kind)


def without_missing(texts: Any) -> Any:
    """Texts of Arrow, null where they stand for a missing value."""
    return pc.if_else(are_missing(texts), pa.nulls(1, texts.type)[0], texts)


def head(source: Source, names: Iterable[str], rows: int = ROWS) -> dict[str, Any]:
    """The first rows of some columns, as Arrow arrays; arrays without values if there is no row.

    Of several files or batches, those that hold a value in each column come first.
    """
    wanted = list(dict.fromkeys(names))
    found = _first_batch(source, wanted)
    schema = source.schema
    if found is None:
        return {name: pa.nulls(0, schema.field(name).type) for name in wanted}
    return {name: found.column(name).slice(0, rows) for name in wanted}


def first_values(source: Source, name: str) -> Any:
    """The first values of a column, or of its lists."""
    return values_in(head(source, [name])[name])


def _first_batch(source: Source, names: list[str]) -> Any:
    first, seen = None, 0
    if source.peek is not None:
        found = source.peek(names)
        first = found and found.data
        if source.kept is not None or _has_values(first, names):
            return first
    pieces: Sequence[Any] = source.pieces(names)  # generators, or other iterators
    for piece in pieces:
        with closing(piece) if hasattr(piece, "close") else nullcontext():
            for block in piece:
                data = batch_of(block).data
                seen += data.num_rows
                if first is None and data.num_rows:
                    first = data
                if _has_values(data, names):
                    return data
                if seen >= ROWS:
                    return first
    return first


def _has_values(data: Any, names: list[str]) -> bool:
    """Whether a batch has a value in each column."""
    if data is None:
        return False
    return all(data.column(name).null_count < data.num_rows for name in names)


def look_of(source: Source, name: str) -> str:
    """What the values of a column look like, by their type, or by the first rows if they are text.

    The texts of a source are looked at together, with one reading of its first rows.
    """
    if name not in source.looks:
        schema = source.schema
        kind = schema.field(name).type
        if not is_text_type(value_type(kind)):
            return look(pa.nulls(0, value_type(kind)))
        seen = Counter(schema.names)
        fields = [one for one in schema if seen[one.name] == 1]
        found = head(source, [one.name for one in fields if is_text_type(value_type(one.type))])
        for one, array in found.items():
            source.looks[one] = look(values_in(array))
    return source.looks[name]


# ------------------------------------------------------------------ what later rows contradict

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_KNOWN: ContextVar[frozenset[tuple[str, ...]]] = ContextVar("_KNOWN", default=frozenset())


class LaterRows(Otherwise):
    """Later rows tell something that the first ones did not."""

    def __init__(self, *facts: tuple[str, ...]) -> None:
        super().__init__(*facts)
        self.facts = facts


def known() -> frozenset[tuple[str, ...]]:
    """The facts that later rows told when the inputs were read before."""
    return _KNOWN.get()


def reading_again(work: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Call a function, which opens inputs, again with each fact that later rows tell."""

    @functools.wraps(work)
    def run(*args: Parameters.args, **more: Parameters.kwargs) -> Result:
        before = _KNOWN.set(known())
        try:
            while True:
                try:
                    return work(*args, **more)
                except LaterRows as error:
                    if known() >= {*error.facts}:
                        raise
                    _KNOWN.set(known() | {*error.facts})
        finally:
            _KNOWN.reset(before)

    return run
