"""What rows are shuffled by: it is equal wherever query ids are, whatever columns hold them."""

from collections.abc import Sequence
from typing import Any

from rankmill.sources.roles.source import Key

# What is left out around an id of text, and how integers end that a table of doubles left.
BLANKS, POINT = " \t\n\r\v\f", r"\.0+$"
INTEGERS = frozenset(["tinyint", "smallint", "int", "bigint"])
TIMES = frozenset(["date", "timestamp", "timestamp_ntz"])
DAY = len("2026-01-31")
# Up to here every whole number is a double of its own.
MOST_EXACT = 1 << 53

# Columns of Spark with their types.
Parts = Sequence[tuple[Any, Any]]


def shuffle_keys(sides: Sequence[tuple[Parts, Key | None]]) -> list[Any]:
    """Return what the rows of each side are shuffled by; some other queries may have the same."""
    from pyspark.sql import functions, types

    kinds = {kind.simpleString() for parts, _ in sides for _, kind in parts}
    if kinds <= INTEGERS and not any(key for _, key in sides):
        # The hash of a number depends on its type.
        return [parts[0][0].cast("bigint") for parts, _ in sides]
    joined = any(key and key.texts for _, key in sides)
    found = []
    for parts, key in sides:
        # Times that are equal in other spellings have one day, unless they are within other text.
        if not joined and (kinds & TIMES or key):
            parts = [(_day(_text(*one)), types.StringType()) for one in parts]
        text = query_text(parts, key)
        whole = functions.regexp_replace(text, POINT, "")
        text = functions.when(text.endswith("0"), whole).otherwise(text)
        found.append(text.substr(1, DAY) if joined and kinds & TIMES else text)
    return found


def _day(text: Any) -> Any:
    """Return the day, in the time zone of the session, of a text that begins as times do."""
    from pyspark.sql import functions

    day = functions.date_format(functions.try_to_timestamp(text), "yyyy-MM-dd")
    day = functions.coalesce(day, text.substr(1, DAY))
    return functions.when(text.rlike(r"^\d{4}-\d\d-\d\d"), day).otherwise(text)


def query_text(parts: Parts, key: Key | None) -> Any:
    """Return the text of query ids that columns make, as far as Spark writes it as Arrow does."""
    from pyspark.sql import functions

    texts = [_text(*one) for one in parts]
    if key is None:
        return texts[0]
    if not key.texts:
        texts = [functions.regexp_replace(one, r"([\\,])", r"\\$1") for one in texts]
    between = key.texts or ("", *[","] * (len(texts) - 1), "")
    pairs = zip(map(functions.lit, between), texts, strict=False)
    return functions.concat(*(one for pair in pairs for one in pair), functions.lit(between[-1]))


def _text(value: Any, kind: Any) -> Any:
    from pyspark.sql import functions

    while kind.simpleString().startswith("struct") and len(kind.fields) == 1:
        value, kind = value.getField(kind.fields[0].name), kind.fields[0].dataType
    name = kind.simpleString()
    if name in ("float", "double"):
        value = functions.when(functions.abs(value) <= MOST_EXACT, value.cast("bigint"))
    elif name.startswith("decimal"):
        value = value.cast("decimal(38,0)")
    return functions.btrim(value.cast("string"), functions.lit(BLANKS))
