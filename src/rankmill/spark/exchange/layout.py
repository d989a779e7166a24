"""A DataFrame as an input, and how the columns of several travel in the rows of one shuffle."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from rankmill.columns.ids import is_text_type
from rankmill.errors import UsageError
from rankmill.records import record
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.meaning.looks import ROWS
from rankmill.sources.meaning.shapes import shaped
from rankmill.sources.roles.source import Block, Columns, Key, Source, batch_of
from rankmill.sources.roles.streams import open_table

# ------------------------------------------------------------------ the rows of a DataFrame


class FrameRows:
    """The rows of a DataFrame that are at hand: its first ones on the driver, some in a task.

    A source of them goes to tasks with all that was decided on the driver, but without a row.
    """

    def __init__(self, frame: Any, name: str) -> None:
        self.frame, self.name = frame, name
        self._asked: list[str] = []
        self._first = pa.table({})  # of the columns that were looked at
        self._given: Any = None  # what a task reads

    def __reduce__(self) -> tuple[Any, ...]:
        return FrameRows.__new__, (FrameRows,), {"name": self.name, "_given": None}

    def source(self) -> Source:
        """Return the rows as a source; nested columns are lists."""
        schema = arrow_schema(self.frame)
        return shaped(Source(self.name, {self.name: schema}, None, pieces=self._pieces))

    def needed(self, source: Source, names: Sequence[str]) -> list[str]:
        """Return the columns of the DataFrame that columns of a source of its rows are made of."""
        source.pieces(list(names))
        return list(dict.fromkeys(self._asked))

    def read(self, table: Any, source: Source, names: Sequence[str]) -> Any:
        """Return columns of a source of these rows, made of the rows of a table."""
        if source.pieces == self._pieces:
            return table.select(names)
        source.findings.forget()
        self._given = table
        try:
            blocks = (block for one in source.pieces(list(names)) for block in one)
            parts = [pa.Table.from_batches([batch_of(one).data.select(names)]) for one in blocks]
        finally:
            self._given = None
        if not parts:
            schema = source.schema
            return schema.empty_table().select(names)
        return pa.concat_tables(parts, promote_options="permissive")

    def _pieces(self, columns: list[str]) -> list[Iterator[Block]]:
        self._asked = columns
        return [self._blocks(columns)]

    def _blocks(self, columns: list[str]) -> Iterator[Block]:
        table = self._look(columns) if self._given is None else self._given
        yield from open_table(table, self.name).pieces(columns)[0]

    def _look(self, columns: Sequence[str]) -> Any:
        """Return the first rows, with all texts, which are looked at together."""
        held = self._first.column_names
        if not {*columns} <= {*held}:
            schema = arrow_schema(self.frame)
            texts = [one.name for one in schema if is_text_type(one.type)]
            names = dict.fromkeys([*held, *columns, *texts])
            once = [column(self.frame, o).alias(o) for o in names if schema.names.count(o) == 1]
            self._first = to_arrow(self.frame.select(*once).limit(ROWS))
        return self._first


def arrow_schema(frame: Any) -> Any:
    """Return the Arrow schema of a DataFrame.

    What Arrow lacks becomes a struct, which no role takes, as do lists and structs of times since
    Spark 4.2.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import TimestampType

    def kind(of: Any) -> Any:
        if isinstance(of, TimestampType):  # rows come with the time zone of the session
            return pa.timestamp("us", frame.sparkSession.conf.get("spark.sql.session.timeZone"))
        try:
            return to_arrow_type(of)
        except (PySparkException, AssertionError):  # the latter of times without a time zone
            return pa.struct([])

    return pa.schema([pa.field(one.name, kind(one.dataType)) for one in frame.schema])


def to_arrow(frame: Any) -> Any:
    """Return the rows of a DataFrame as a table; Spark 3.5 has no public method for it."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    if hasattr(frame, "_collect_as_arrow"):
        batches = frame._collect_as_arrow()
        return pa.Table.from_batches(batches, None if batches else arrow_schema(frame))
    client = frame.sparkSession.client  # of Spark Connect
    return client.to_table(frame._plan.to_proto(client))[0]


def from_arrow(session: Any, table: Any) -> Any:
    """Return a DataFrame of a table, which createDataFrame of Spark 3.5 does not take."""
    from pyspark.sql.pandas.types import from_arrow_schema

    if int(session.version.split(".")[0]) >= 4:
        return session.createDataFrame(table)
    return session.createDataFrame(table.to_pylist(), from_arrow_schema(table.schema))


def column(frame: Any, name: str) -> Any:
    """Return a column of a DataFrame by its name, which may hold dots and backticks."""
    quoted = name.replace("`", "``")
    return frame[f"`{quoted}`"]


def spark_type(kind: Any) -> Any:
    """Return the Arrow type of ids as Spark has it, which knows no large texts."""
    plain = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    return plain.get(kind, kind)


# ------------------------------------------------------------------ the rows of the shuffle

# The column that tells which side a row is of: 0 for labels, and from 1 on for each system.
SIDE = "side"
# What the side is called of what queries had in training.
TRAIN = "train"


@record(frozen=True)
class Side:
    """Labels, or the predictions of a system: which columns they have, and where these travel."""

    system: str  # its name; empty for labels, and `TRAIN` for what queries had in training
    columns: Columns
    slots: Mapping[str, str]  # each column that is read -> the column of the shuffle that holds it
    queries: Sequence[str]  # those of them that make the query ids
    source: Source  # of `rows`, as tasks read them
    rows: FrameRows
    subtopic: str | None = None  # the column of subtopics of the labels, that gains are made of

    @property
    def name(self) -> str:
        """What messages call these rows."""
        return self.source.name

    def read(self, table: Any, names: Sequence[str] = ()) -> Any:
        """Return some rows of the DataFrame, or some columns of them, as what they mean."""
        return self.rows.read(table, self.source, names or self.columns.every())


class Form(NamedTuple):
    """The sides that are among the rows of a DataFrame, and the Arrow schema of these rows."""

    sides: Sequence[Side]
    schema: Any


def check_ordered(one: Input) -> None:
    """Raise UsageError if predictions rank in the order of their rows, as these have none."""
    columns = one.columns
    if columns.wide or columns.rank is not None:
        return
    if columns.in_order or columns.score is None:
        raise UsageError(
            f"{one.source.name} would rank by the order of its rows, but rows of Spark have no "
            "order: name a column of ranks (rank) or of confidences (score)"
        )


def sides_of(rows: Sequence[FrameRows], inputs: Mapping[str, Input]) -> list[Side]:
    """Return the sides of a shuffle: labels under "", then each system.

    Columns of one type share a column of the shuffle, because rows of another side would only
    hold something empty there.
    """
    sides = []
    for each, (system, one) in zip(rows, inputs.items(), strict=True):
        types = {field.name: field.dataType.simpleString() for field in each.frame.schema}
        slots, used = dict[str, str](), Counter[str]()
        queries = each.needed(one.source, [one.columns.query])
        others = each.needed(one.source, one.columns.every())
        for name in dict.fromkeys([*queries, *others]):
            kind = types[name].replace("`", "'")
            slots[name] = f"{kind}-{used[kind]}"
            used[kind] += 1
        sides.append(Side(system, one.columns, slots, queries, one.source, each))
    return sides


def shuffled(frames: Sequence[Any], sides: Sequence[Side], partitions: int) -> Any:
    """Return the rows of all sides as a DataFrame in which a query is in one partition."""
    from pyspark.sql import functions

    types: dict[str, Any] = {}
    for frame, side in zip(frames, sides, strict=True):
        for name, slot in side.slots.items():
            types.setdefault(slot, _nullable(frame.schema[name].dataType))
    whole = None
    for number, (frame, side) in enumerate(zip(frames, sides, strict=True)):
        names = {slot: name for name, slot in side.slots.items()}
        columns = [functions.lit(number).cast("tinyint").alias(SIDE)]
        for slot, kind in types.items():
            value = column(frame, names[slot]) if slot in names else _nothing(kind)
            columns.append(value.cast(kind).alias(slot))
        part = frame.select(*columns)
        whole = part if whole is None else whole.unionByName(part)
    assert whole is not None
    made_of = [tuple(side.slots[name] for name in side.queries) for side in sides]
    parts = [[(column(whole, slot), types[slot]) for slot in slots] for slots in made_of]
    keys = [side.source.key for side in sides]
    found = shuffle_keys([*zip(parts, keys, strict=True)])
    by = found[0]
    for number, key in enumerate(found):
        if (made_of[number], keys[number]) != (made_of[0], keys[0]):
            by = functions.when(column(whole, SIDE) == number, key).otherwise(by)
    return whole.repartition(partitions, by)


def _nullable(kind: Any) -> Any:
    """Return a type with room for nulls in its lists and structs, which another side may have."""
    from pyspark.sql import types

    if isinstance(kind, types.ArrayType):
        return types.ArrayType(_nullable(kind.elementType))
    if isinstance(kind, types.MapType):
        return types.MapType(kind.keyType, _nullable(kind.valueType))
    if isinstance(kind, types.StructType):
        return types.StructType([types.StructField(f.name, _nullable(f.dataType)) for f in kind])
    return kind


def _nothing(kind: Any) -> Any:
    """Return what stands in a column that a side does not have.

    It is an empty list, as Spark takes six times as long to write null lists for Python.
    """
    from pyspark.sql import functions, types

    return functions.array() if isinstance(kind, types.ArrayType) else functions.lit(None)


# ------------------------------------------------------------------ what rows are shuffled by

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
