"""How the columns of labels and predictions travel in the rows of one shuffle."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from rankmill.columns.ids import id_type
from rankmill.columns.lists import is_list_type, value_type
from rankmill.errors import InputError, UsageError
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.roles.columns import Columns
from rankmill.sources.roles.source import Source
from rankmill.sources.roles.streams import open_table

# The column that tells which side a row is of: 0 for labels, and from 1 on for each system.
SIDE = "side"
# The column of query ids, by which rows are shuffled.
QUERY = "query"
# What the side is called of what queries had in training.
TRAIN = "train"


@dataclass(frozen=True)
class Side:
    """Labels, or the predictions of a system: which columns they have, and where these travel."""

    system: str  # its name; empty for labels, and `TRAIN` for what queries had in training
    name: str  # what messages call these rows
    columns: Columns
    slots: Mapping[str, str]  # each column that is read -> the column of the shuffle that holds it
    subtopic: str | None = None  # the column of subtopics of the labels, that gains are made of


class Form(NamedTuple):
    """The sides that are among the rows of a DataFrame, and the Arrow schema of these rows."""

    sides: Sequence[Side]
    schema: Any


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


def empty_source(frame: Any, name: str) -> Any:
    """Return a source with the columns of a DataFrame and no rows."""
    return open_table(arrow_schema(frame).empty_table(), name)


def check_one_query(one: Input) -> None:
    """Raise UsageError if several columns make the query ids, as rows travel by one."""
    if one.source.key is not None:
        raise UsageError(
            f"{one.source.name}: on Spark, one column must hold the query ids: join "
            f"{', '.join(one.source.key.parts)} with withColumn and concat_ws, and name it (query)"
        )


def check_as_it_stands(frame: Source, one: Input) -> None:
    """Raise InputError if a column would have to be converted, as rows travel as they stand."""
    (before,), (after,) = frame.schemas.values(), one.source.schemas.values()
    for role, name in one.columns.mapping().items():
        found = before.field(name).type if name in before.names else None
        if found is None or _plainly(found) != _plainly(after.field(name).type):
            what = f"holds {found}" if found else "is made of several"
            raise InputError(
                f"{one.source.name}: column {name!r} for the {role} {what}; on Spark, ids are "
                "bigint on both sides or string on both, gains, scores and ranks are numbers, and "
                "lists are arrays of these: cast it with withColumn"
            )


def _plainly(kind: Any) -> tuple[bool, Any]:
    """Whether a type is one of lists, and that of its values; texts of any layout are one type."""
    return is_list_type(kind), id_type(value_type(kind))


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


def sides_of(frames: Sequence[Any], inputs: Mapping[str, Input]) -> list[Side]:
    """Return the sides of a shuffle: labels under "", then each system.

    Columns of one type share a column of the shuffle, because rows of another side would only
    hold something empty there.
    """
    sides = []
    for frame, (system, one) in zip(frames, inputs.items(), strict=True):
        types = {field.name: field.dataType.simpleString() for field in frame.schema}
        query = one.columns.query
        slots, used = {query: QUERY}, Counter[str]()
        for name in dict.fromkeys([*one.columns.names(), *one.columns.facts]):
            if name != query:
                slots[name] = f"{types[name]}-{used[types[name]]}"
                used[types[name]] += 1
        sides.append(Side(system, one.source.name, one.columns, slots))
    return sides


def shuffled(frames: Sequence[Any], sides: Sequence[Side], partitions: int) -> Any:
    """Return the rows of all sides as a DataFrame in which a query is in one partition."""
    from pyspark.sql import functions

    kinds = [
        one.schema[side.columns.query].dataType for one, side in zip(frames, sides, strict=True)
    ]
    same = len({kind.simpleString() for kind in kinds}) == 1
    types: dict[str, Any] = {}
    for frame, side in zip(frames, sides, strict=True):
        for name, slot in side.slots.items():
            types.setdefault(slot, _nullable(frame.schema[name].dataType))
    types[QUERY] = kinds[0] if same else _wider(kinds)
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
    # The hash of a number depends on its type: a query is in one partition, whatever the sides are.
    return whole.repartition(partitions, functions.col(QUERY).cast(_wider(kinds)))


def _wider(kinds: Sequence[Any]) -> Any:
    """Return one type for query ids that are all integers, or all text."""
    from pyspark.sql import types

    whole = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)
    return types.LongType() if all(isinstance(one, whole) for one in kinds) else types.StringType()


def _nullable(kind: Any) -> Any:
    """Return the type with room for nulls in lists, which another side may have."""
    from pyspark.sql import types

    return types.ArrayType(kind.elementType) if isinstance(kind, types.ArrayType) else kind


def column(frame: Any, name: str) -> Any:
    """Return a column of a DataFrame by its name, which may hold dots and backticks."""
    quoted = name.replace("`", "``")
    return frame[f"`{quoted}`"]


def unpadded(frame: Any, one: Input) -> Any:
    """Return a DataFrame with nulls instead of the items that are padding."""
    from pyspark.sql import functions

    padding, name = one.columns.padding, one.columns.item
    if padding is None:
        return frame
    items = column(frame, name)
    is_list = one.columns.wide

    def kept(item: Any) -> Any:
        return functions.when(item.cast("string") != padding, item)

    return frame.withColumn(name, functions.transform(items, kept) if is_list else kept(items))


def _nothing(kind: Any) -> Any:
    """Return what stands in a column that a side does not have.

    It is an empty list, as Spark takes six times as long to write null lists for Python.
    """
    from pyspark.sql import functions, types

    return functions.array() if isinstance(kind, types.ArrayType) else functions.lit(None)
