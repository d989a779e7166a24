"""Both sides joined by query, where they are partitioned so that the join needs no shuffle.

Such are tables in the same number of buckets by query, and DataFrames that were partitioned so.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import numbers_of
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.roles.streams import open_table
from rankmill.spark.exchange.layout import QUERY, Side, column
from rankmill.spark.exchange.spark_request import SparkRequest

# The line of a plan that moves rows.
_EXCHANGE = re.compile(r"^[^A-Za-z]*(?:Broadcast)?Exchange\b", re.MULTILINE)


def joined_inputs(batches: Iterator[Any], schema: Any, sides: Sequence[Side]) -> dict[str, Input]:
    """Return joined rows, which hold a row of the labels, of a system, or both, as `inputs_of`."""
    whole = pa.Table.from_batches(batches, schema)
    inputs = {}
    for number, side in enumerate(sides):
        held = whole.select([_row(number), *_names(number, side)])
        held = held.filter(held.column(0).is_valid())
        rows = numbers_of(held.column(0).combine_chunks())
        first = np.unique(rows, return_index=True)[1]
        if len(first) < len(rows):  # one query has several rows on the other side: an error
            held = held.take(np.sort(first))
        table = held.drop_columns([_row(number)]).rename_columns(list(side.slots))
        inputs[side.system] = Input(open_table(table, side.name), side.columns)
    return inputs


def joined(request: SparkRequest, number: int) -> Any:
    """Return the joined rows of the labels and a system; None if they had to be shuffled."""
    from pyspark.sql import functions

    numbers = (0, number)
    sides = [request.sides[one] for one in numbers]
    if not all(side.columns.wide for side in sides):  # rows of a query would be multiplied
        return None
    both = []
    for place, (one, side) in enumerate(zip(numbers, sides, strict=True)):
        frame = request.frames[one]
        names = zip(_names(place, side), side.slots, strict=True)
        columns = [column(frame, name).alias(new) for new, name in names]
        row = functions.monotonically_increasing_id().alias(_row(place))
        both.append(frame.select(row, *columns))
    on = functions.col(_names(0, sides[0])[0]) == functions.col(_names(1, sides[1])[0])
    rows = both[0].join(both[1], on, "full_outer")
    return rows if exchanges(rows) == sum(map(exchanges, both)) else None


def together(request: SparkRequest, number: int) -> bool:
    """Return whether Spark knows that all rows of a query are in one partition."""
    query = column(request.frames[number], request.sides[number].columns.query)
    rows = request.frames[number].select(query.alias(QUERY))
    return exchanges(rows.groupBy(QUERY).count()) == exchanges(rows)


def exchanges(frame: Any) -> int:
    """Return how often the plan of a DataFrame moves rows."""
    return len(_EXCHANGE.findall(frame._jdf.queryExecution().executedPlan().toString()))


def _row(number: int) -> str:
    """Return the column that numbers the rows of a side."""
    return f"row{number}"


def _names(number: int, side: Side) -> list[str]:
    """Return the columns of a side among joined rows; the first holds the queries."""
    return [f"side{number}_{i}" for i in range(len(side.slots))]
