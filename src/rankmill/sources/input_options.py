"""What the caller told of an input, for the formats that do not tell it themselves."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from rankmill.errors import UsageError

# The default memory limit in bytes. If the confidences need more, they are read twice; if scattered
# rows need more, they are grouped on disk.
MEMORY = 1 << 31
# Within less than this, batches are smaller, and fewer of them are read ahead.
FRUGAL = 1 << 29

Role = Literal["labels", "predictions", "train", "items", "features", "by", "adjust"]


class Key(NamedTuple):
    """The columns that make a query id."""

    name: str  # of the column that is made
    parts: tuple[str, ...]  # the columns
    # What stands before the first part, between the parts, and behind the last; empty for a tuple.
    texts: tuple[str, ...] = ()


Query = str | Sequence[str] | Key | None
"""How a caller names the query ids: a column, several, or a template."""


def key_of(query: Query, names: Collection[str]) -> Key | None:
    """The key that several columns make; None if a column alone holds the ids.

    `names` are the columns there are: one of them is never taken for several.

    Examples
    --------
    >>> key_of("session,type", ()), key_of(["session"], ()), key_of("a,b", ("a,b",))
    (Key(name='session,type', parts=('session', 'type'), texts=()), None, None)
    >>> key_of("{session}_{type}", ())
    Key(name='session_type', parts=('session', 'type'), texts=('', '_', ''))
    """
    if query is None or isinstance(query, Key) or query in names:
        return query if isinstance(query, Key) else None
    if isinstance(query, str):
        pieces = re.split(r"\{([^{}]+)\}", query)
        if len(pieces) > 1:
            texts, parts = tuple(pieces[::2]), tuple(pieces[1::2])
            if not all(texts[1:-1]):
                raise UsageError(
                    f"the template {query!r} has columns with nothing between them, so 1 and 23 "
                    "would be the same as 12 and 3: put a text between them, as in "
                    "'{session}_{type}'"
                )
            _check_parts(parts)
            name = "".join(pieces)
            return Key(query if name in names else name, parts, texts)
        query = query.split(",")
    _check_parts(query)
    if len(query) < 2:
        return None
    name = ",".join(query)
    return Key(f"({name})" if name in names else name, tuple(query))


def _check_parts(parts: Sequence[str]) -> None:
    listed = isinstance(parts, Sequence) and len(parts) > 0
    if not listed or not all(isinstance(one, str) and one for one in parts):
        raise UsageError(
            f"query is {parts!r}; expected the name of a column, or of each that makes the query"
        )
    twice = next((one for place, one in enumerate(parts) if one in parts[:place]), None)
    if twice is not None:
        raise UsageError(f"the query uses column {twice!r} twice: name another column")


def column_of(query: Query) -> str | None:
    """The column that holds the ids, where `key_of` finds no key."""
    return query if query is None or isinstance(query, str) else "".join(query[:1])


@dataclass(frozen=True)
class InputOptions:
    """What the caller told of an input; most fields are as `Labels` and `Predictions` have them."""

    role: Role = "labels"  # all but predictions are read as labels are
    format: str | None = None
    columns: tuple[str, ...] = ()  # their names, if the files have no header
    query: Query = None
    item: str | None = None
    numbers: Any = None  # the column of confidences or gains, or what is beside a Ragged
    rank: str | None = None
    in_order: bool = False
    binary: bool = False
    padding: str | None = None
    exact_ids: bool = False
    decimal: str = "."  # or a comma: the decimal mark of numbers in text
    facts: tuple[str, ...] = ()  # more columns of the labels, with a value a query
    seen: tuple[str, ...] = ()  # others, with a value a label, which metrics of users see
    encoding: str | None = None
    memory: int = MEMORY  # the most bytes of a part of a file, or of what can be read only once
    batch: tuple[int, int, int] | None = None  # the most rows, values and bytes of Parquet's
    block: int | None = None  # how many bytes of text are read at a time; None: the usual number

    @property
    def kind(self) -> str:
        """What the numbers of items are."""
        return "score" if self.role == "predictions" else "gain"

    def columns_by_role(self, key: Key | None) -> dict[str, str | None]:
        """The column of each role that was told; `key` is how the query ids are made."""
        numbers = self.numbers if isinstance(self.numbers, str | None) else self.kind
        query = key.name if key else column_of(self.query)
        return {"item": self.item, "rank": self.rank, self.kind: numbers, "query": query}


def column_names(names: str | Sequence[str] | None) -> tuple[str, ...]:
    """The names of columns, which a text has between commas.

    Examples
    --------
    >>> column_names("query,item"), column_names(["query"]), column_names(None)
    (('query', 'item'), ('query',), ())
    """
    return tuple(names.split(",") if isinstance(names, str) else names or ())
