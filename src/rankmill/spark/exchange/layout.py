"""How the columns of labels and predictions travel in the rows of one shuffle."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rankmill.errors import UsageError
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.roles.source import Columns, Source
from rankmill.spark.exchange.frame_rows import FrameRows, column
from rankmill.spark.exchange.query_keys import shuffle_keys

# The column that tells which side a row is of: 0 for labels, and from 1 on for each system.
SIDE = "side"
# What the side is called of what queries had in training.
TRAIN = "train"


@dataclass(frozen=True)
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
