"""A DataFrame as an input: its first rows decide what it means, and every task reads it so."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from rankmill.columns.ids import is_text_type
from rankmill.sources.meaning.looks import ROWS
from rankmill.sources.meaning.shapes import shaped
from rankmill.sources.roles.source import Block, Source, batch_of
from rankmill.sources.roles.streams import open_table


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
