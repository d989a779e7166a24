"""What every kind of input is: a source of batches, its columns, and what is found in it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, Literal, NamedTuple, Self, TypeVar

from rankmill.columns.ranked_lists import Lists, Place
from rankmill.errors import InputError, UsageError, plural
from rankmill.records import record
from rankmill.threads import Workers

# ------------------------------------------------------------------ what the caller told

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


@record(frozen=True)
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


Value = TypeVar("Value")

# A batch is the data that one thread reads, matches and scores at once. A batch has about this many
# values, rows and bytes at most.
BATCH_VALUES = 1 << 20
BATCH_ROWS = 1 << 16
BATCH_BYTES = 1 << 23


# So many rows tell what a column holds.
FIRST_ROWS = 20_000


class Batch(NamedTuple):
    """Some rows of a source: an Arrow record batch, and where its rows stand."""

    data: Any
    place: Place

    @property
    def source(self) -> str:
        """The file, or what else holds the rows."""
        return self.place.source

    def select(self, columns: list[str]) -> Batch:
        """Some of its columns."""
        return self._replace(data=self.data.select(columns))

    def files(self) -> list[Batch]:
        """The rows of each file, if they are of several; else nothing."""
        starts = [start for start, _ in self.place.files]
        ends = [*starts, self.data.num_rows][1:]
        return [
            Batch(self.data.slice(start, end - start), place)
            for (start, place), end in zip(self.place.files, ends, strict=True)
        ]


Block = Batch | Callable[[], Batch]


@record(frozen=True)
class Columns:
    """The columns of an input."""

    query: str
    item: str
    wide: bool  # a row has the lists of a query; in a long input it has one item
    score: str | None = None
    rank: str | None = None
    gain: str | None = None
    nan_last: bool = False  # a confidence that is NaN or null counts as minus infinity
    in_order: bool = False  # the order of rows is that of items, whatever their confidences
    unordered: bool = False  # the lists are ranked by confidence
    facts: tuple[str, ...] = ()  # columns with a value a query, which are read apart from items
    seen: tuple[str, ...] = ()  # columns with a value an item, which metrics of users see
    padding: str | None = None  # items equal to it are read as nulls
    # What to say of columns that could be gains or scores and are not read.
    doubts: tuple[str, ...] = field(default=(), compare=False)

    def mapping(self) -> dict[str, str]:
        """The role of each column that is read -> the name of the column."""
        roles = {"query": self.query, "item": self.item, "score": self.score, "rank": self.rank}
        named = {**roles, "gain": self.gain}.items()
        return {role: name for role, name in named if name is not None}

    def names(self) -> list[str]:
        """The names of the columns to read, without repeats."""
        return list(dict.fromkeys(self.mapping().values()))

    def every(self) -> list[str]:
        """The same, and the names of those that are read apart."""
        return list(dict.fromkeys([*self.names(), *self.facts, *self.seen]))


class OddIds(NamedTuple):
    """A kind of ids of a column that are not compared as they stand."""

    source: str
    column: str
    rule: str
    what: tuple[str, str, str]  # a verb of one, that of several, and what follows
    todo: str

    def told(self, number: int, example: Any) -> str:
        """What is told of so many of them."""
        *verb, rest = self.what
        found = f"in {self.column!r}, {plural(number, 'id', *verb)} {rest}, such as {example!r}"
        return f"{self.source}: {found}: {self.todo}"


# The rules that make a column of several.
PARTS = {"part of the query", "column per rank"}


class InputFindings:
    """Notes on an input; a batch that is read again replaces what it told before."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}
        self._found: dict[OddIds, dict[tuple[str, int], tuple[int, Any]]] = {}
        self._missing: set[str] = set()
        self._rules: dict[tuple[str, str], None] = {}
        self.compared: Sequence[InputFindings] = ()  # of the inputs that have the same items

    def say(self, note: str) -> None:
        """Add a note, once."""
        self._said[note] = None

    def count(self, place: Place, kind: OddIds, number: int, example: Any) -> None:
        """Add how many ids of a kind a batch has, if any; any thread may call it."""
        if number:
            self.used(kind.rule, kind.column)
            of_kind = self._found.setdefault(kind, {})
            of_kind[place.source, place.first] = number, example

    def used(self, rule: str, column: str) -> None:
        """Add that a rule of `RULES` read a column."""
        self._rules[column, rule] = None

    def rules(self) -> dict[str, list[str]]:
        """The rules that read each column so far."""
        found: dict[str, list[str]] = {}
        for column, rule in list(self._rules):
            found.setdefault(column, []).append(rule)
        return found

    def missing(self, words: Iterable[str]) -> set[str]:
        """Add words that stand for missing items; return those that another input has, too."""
        self._missing.update(words)
        return self._missing & {word for one in self.compared for word in list(one._missing)}

    def forget(self) -> None:
        """Count anew, as other rows are read."""
        self._found.clear()

    def counts(self) -> dict[OddIds, tuple[int, Any]]:
        """How many ids of each kind there are, and the first of them by its text."""
        found = {kind: list(of_kind.values()) for kind, of_kind in self._found.items()}
        return {
            kind: (sum(number for number, _ in each), min(example for _, example in each))
            for kind, each in found.items()
        }

    def notes(self) -> list[str]:
        """Everything that is to be told, in an order that no thread changes."""
        found = self.counts()
        return [*self._said, *(kind.told(*found[kind]) for kind in sorted(found))]


@record(frozen=True)
class Source:
    """An opened input."""

    name: str  # in messages and results
    schemas: Mapping[str, Any]  # the Arrow schema of each file
    rows: int | None  # in all files; None if that is not known before all rows are read
    # Takes column names; returns for each the number of values and the bytes to read, or 0 for both
    # if they are not known. A list counts as the number of its items.
    sizes: Callable[[list[str]], dict[str, tuple[int, int]]] = lambda columns: dict.fromkeys(
        columns, (0, 0)
    )
    # Takes column names; returns an iterator of blocks for each piece, which may have more columns.
    # Pieces can be read independently of each other. A block is a batch, or a function that makes
    # it, if that takes long and can be done by another thread than the one that reads.
    pieces: Callable[[list[str]], Sequence[Iterator[Block]]] = lambda columns: []
    # Takes the `Columns`; returns an iterator of lists for each piece. Only a source that holds
    # lists instead of rows has it, and such a source has no `pieces`.
    lists: Callable[[Any], list[Iterator[Lists]]] | None = None
    # Takes a number of bytes and column names (None: all); returns the source in a form that can be
    # read several times: held in memory up to that size, and beyond it in a temporary file. Only a
    # source that can be read once has it.
    kept: Callable[[int, list[str] | None], Self] | None = None
    end: Callable[[], None] | None = None  # ends what the source holds open
    # Takes a number of predictions and the order of equal ones, as semantics name it; returns the
    # source with no more of each list than its first ones are made of. Only a matrix has it.
    best: Callable[[int, str], Self] | None = None
    width: int | None = None  # the number of items, if their ids are the places 0 to width - 1
    positional: bool = False  # the query ids are the places of the lists
    tuples: bool = False  # so they are, but each is a tuple of two or three, as a row of a table is
    bare: bool = False  # there are lists and their ids only, and no columns of its own
    unordered: bool = False  # lists of predictions have no order of their own: scores rank them
    format: str = ""  # of the files; empty for objects in memory
    delimiter: str = ""  # of the fields of a row; empty if it is no delimited text
    written: tuple[str, ...] = ()  # the names in its header, with the blanks around them
    sampled: bool = False  # the first rows told the types, but integers may be followed by floats
    # The number of comments in each block that was read, by its file and its first line.
    comments: dict[tuple[str, int], int] | None = None
    key: Key | None = None  # how the query ids are made, if a column of several holds them
    # Takes column names; returns the first rows of what is dear or impossible to read twice. They
    # are read again with the others.
    peek: Callable[[list[str]], Batch | None] | None = None
    whole: bool = True  # all columns can be read again, and not only those with a role
    # A column of items -> that of their numbers, which stand in the same cells, and whether these
    # rank the items.
    numbered: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    # A column made of a field of structs -> the column of these, and the name of the field.
    fields: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    ranked: tuple[Role, Sequence[str]] | None = None  # columns per rank that nobody named
    exact_ids: bool = False  # ids are compared as they stand, with blanks and words for missing
    decimal: str = "."  # the decimal mark of numbers in text
    findings: InputFindings = field(
        default_factory=InputFindings
    )  # what is told of it beside results
    looks: dict[str, str] = field(
        default_factory=dict
    )  # what columns look like, once that is known
    made: dict[Any, Any] | None = None  # what was made of prepared labels, for all their readers

    @property
    def schema(self) -> Any:
        """The schema of the first file."""
        return next(iter(self.schemas.values()))

    def kinds(self) -> dict[str, Any]:
        """The first file of each schema, and the schema: thousands of files share one object."""
        if len(self.schemas) == 1:
            return dict(self.schemas)
        first: dict[int, tuple[str, Any]] = {}
        for one in self.schemas.items():
            first.setdefault(id(one[1]), one)
        return dict(first.values())

    def shared(self) -> Self:
        """The source for one of several readers, whose `close` ends nothing."""
        return replace(self, end=None)

    def close(self) -> None:
        """End what the source holds open."""
        if self.end is not None:
            self.end()


class Prepared:
    """Data of labels that many calls read, such as those of each epoch of a training.

    They are opened once, and kept with what was made of them; threads may share it. What has to be
    closed is opened for each call, which closes it.
    """

    def __init__(self, data: Any) -> None:
        self.data = data
        self._made: dict[Any, Any] = {}
        self._source: Source | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type, tuple[Any]]:
        return Prepared, (self.data,)  # another process opens them itself

    def opened(self, begin: Callable[[Any], Source]) -> Source:
        """Return the source; UsageError if it can be read only once."""
        with self._lock:
            if self._source is not None:
                return self._source
            source = replace(begin(self.data), made=self._made)
            if source.kept is not None:
                source.close()
                raise UsageError(
                    f"{source.name} can be read only once, and prepare() keeps labels for many "
                    "calls: read it into a table first"
                )
            if source.end is None:
                self._source = source
            return source


def batch_of(block: Block) -> Batch:
    """The batch that a block is or makes."""
    return block if isinstance(block, Batch) else block()


def of_batch(work: Callable[[Batch], Value], block: Block) -> Value:
    """Return work(batch) of a block; what is wrong with several files names the one at fault."""
    batch = batch_of(block)
    try:
        return work(batch)
    except InputError:
        for one in batch.files():
            work(one)
        raise


def read_batches(
    work: Callable[[Batch], Value], source: Source, columns: list[str], workers: Workers
) -> Generator[Value, None, None]:
    """Yield work(batch) for all batches of a source, in order. The caller closes the generator."""
    yield from workers.read(source.pieces(columns), partial(of_batch, work))
