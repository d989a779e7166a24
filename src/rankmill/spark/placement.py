"""Where the rows of a system are scored: where they are, if that is known to do, or shuffled.

Both sides stay in place where they are partitioned so that a join by query needs no shuffle. Such
are tables in the same number of buckets by query, and DataFrames that were partitioned so.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import numbers_of
from rankmill.show.tables import size_text
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.meaning.derived_columns import OutOfOrder
from rankmill.sources.roles.streams import open_table
from rankmill.spark.broadcast import broadcast
from rankmill.spark.exchange.collection import collected
from rankmill.spark.exchange.frame_rows import arrow_schema, column, to_arrow
from rankmill.spark.exchange.layout import Form, Side
from rankmill.spark.exchange.partitions import PARTITION_BYTES, tasks_of
from rankmill.spark.exchange.query_keys import INTEGERS
from rankmill.spark.exchange.returned_rows import Returned
from rankmill.spark.exchange.spark_request import SparkRequest
from rankmill.spark.exchange.tasks import check_seen, inputs_of, score

# Labels may take so many times the limit in memory, as the limit is one for files.
UNPACKED = 4
# Partitions stay in place if they have at most so many bytes of files.
LARGEST = 8 * PARTITION_BYTES
# The line of a plan that moves rows.
_EXCHANGE = re.compile(r"^[^A-Za-z]*(?:Broadcast)?Exchange\b", re.MULTILINE)


class Placing(NamedTuple):
    """How the rows of a system come to the tasks that score them, and why so."""

    how: Literal["broadcast", "in place", "shuffle"]
    why: str
    rows: Any = None  # the joined rows of both sides, if these stay in place
    tasks: int | None = None  # None if Spark decides when it reads the predictions


def placing_of(request: SparkRequest, number: int, largest: int = LARGEST) -> Placing:
    """Return how the rows of a system come to the tasks; partitions beyond `largest` are cut."""
    why, size = _why_shuffled(request, number), request.sizes[0]
    if not why:
        most = limit(request.frames[0].sparkSession)
        if size is not None and size <= most:
            return Placing("broadcast", f"the labels are not larger than {size_text(most)}")
        rows = joined(request, number)
        if rows is None:
            known = "are larger than" if size is not None else "may be larger than"
            why = f"the labels {known} {size_text(most)}"
        else:
            tasks = tasks_of(rows) or request.partitions
            held = sum(request.sizes[one] or 0 for one in (0, number)) // tasks
            if held <= largest:
                why = "both sides are partitioned by query in the same way"
                return Placing("in place", why, rows, tasks)
            why = f"a partition of both sides has {size_text(held)}, more than {size_text(largest)}"
    return Placing("shuffle", why, tasks=request.partitions)


def _why_shuffled(request: SparkRequest, number: int) -> str:
    """Return why rows are shuffled, whatever their size is; "" if they need not be."""
    if request.told:
        return "the number of partitions was given"
    if request.training:
        return "the training set is shuffled by query"
    if request.job.keep_values:
        return "the values of each query are shuffled by query"
    if not hasattr(request.frames[0], "_jdf"):
        return "Spark Connect gives neither sizes nor partitions"
    if not request.sides[number].columns.wide and not together(request, number):
        return "a query of long predictions may be in two partitions"
    return ""


def limit(session: Any) -> int:
    """Return how many bytes of labels are sent to all tasks, by the statistics of Spark."""
    own = int(session._jsparkSession.sessionState().conf().autoBroadcastJoinThreshold())
    return 0 if own < 0 else max(own, PARTITION_BYTES)


def first_pass(request: SparkRequest) -> dict[str, Returned]:
    """Return the states of the systems, by the names of their sides."""
    placings = {number: placing_of(request, number) for number in request.systems}
    sent = any(one.how == "broadcast" for one in placings.values())
    labels = _labels_of(request) if sent else None
    returned, left = [], []
    for number, placing in placings.items():
        one = None
        if placing.how == "broadcast" and labels is not None:
            one = broadcast(request, number, labels)
        if placing.how == "in place":
            with suppress(OutOfOrder):
                returned += _in_place(request, number, placing.rows)
                continue
        if one is None:
            left.append(number)
        else:
            returned.append(one)
    returned += _shuffled(request, left) if left else []
    # Systems that are placed otherwise read the labels by themselves.
    check_seen({one.label_rows for one in returned}, {one.label_rows for one in returned[:1]})
    return {one.system: one for one in returned}


def _labels_of(request: SparkRequest) -> Any:
    """Return the labels as a table; None if they take too much memory."""
    frame, side = request.frames[0], request.sides[0]
    labels = to_arrow(frame.select(*(column(frame, name).alias(name) for name in side.slots)))
    return side.read(labels) if labels.nbytes <= UNPACKED * limit(frame.sparkSession) else None


def _shuffled(request: SparkRequest, numbers: list[int]) -> list[Returned]:
    return _scored(request, *request.rows(0, *numbers, *request.training), inputs_of)


def _in_place(request: SparkRequest, number: int, rows: Any) -> list[Returned]:
    form = Form([request.sides[one] for one in (0, number)], arrow_schema(rows))
    return _scored(request, rows, form, joined_inputs)


def _scored(request: SparkRequest, rows: Any, form: Form, inputs: Any) -> list[Returned]:
    task = partial(score, job=request.job, form=form, inputs=inputs)
    # A state without confidences is so small that the driver merges those of all partitions.
    return collected(rows, task, request.partitions if request.job.pooled else 0)


# ------------------------------------------------------------------ both sides in place


def joined_inputs(batches: Iterator[Any], form: Form) -> dict[str, Input]:
    """Return joined rows, which hold a row of the labels, of a system, or both, as `inputs_of`."""
    whole = pa.Table.from_batches(batches, form.schema)
    inputs = {}
    for number, side in enumerate(form.sides):
        held = whole.select([_row(number), *_names(number, side)])
        held = held.filter(held.column(0).is_valid())
        rows = numbers_of(held.column(0).combine_chunks())
        first = np.unique(rows, return_index=True)[1]
        if len(first) < len(rows):  # one query has several rows on the other side: an error
            held = held.take(np.sort(first))
        table = held.drop_columns([_row(number)]).rename_columns(list(side.slots))
        inputs[side.system] = _with_its_queries(table, side)
    return inputs


def _with_its_queries(table: Any, side: Side) -> Input:
    """Return rows as an input; raises OutOfOrder if a query is not what Spark joined it by."""
    read = side.read(table)
    before, after = table.column(side.queries[0]), read.column(side.columns.query)
    if after.type != before.type:
        after = after.cast(before.type)
    if not after.equals(before):
        raise OutOfOrder
    return Input(open_table(read, side.name), side.columns)


def joined(request: SparkRequest, number: int) -> Any:
    """Return the joined rows of the labels and a system; None if they had to be shuffled."""
    from pyspark.sql import functions

    numbers = (0, number)
    sides = [request.sides[one] for one in numbers]
    if not all(side.columns.wide for side in sides):  # rows of a query would be multiplied
        return None
    kinds = {
        request.frames[one].schema[name].dataType.simpleString()
        for one, side in zip(numbers, sides, strict=True)
        for name in side.queries
    }
    if any(side.source.key for side in sides) or not (kinds <= INTEGERS or kinds == {"string"}):
        return None  # Spark would join by what is not compared
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
    frame, queries = request.frames[number], request.sides[number].queries
    rows = frame.select(*(column(frame, name).alias(f"c{i}") for i, name in enumerate(queries)))
    return exchanges(rows.groupBy(*rows.columns).count()) == exchanges(rows)


def exchanges(frame: Any) -> int:
    """Return how often the plan of a DataFrame moves rows."""
    return len(_EXCHANGE.findall(frame._jdf.queryExecution().executedPlan().toString()))


def _row(number: int) -> str:
    """Return the column that numbers the rows of a side."""
    return f"row{number}"


def _names(number: int, side: Side) -> list[str]:
    """Return the columns of a side among joined rows; the first holds the queries."""
    return [f"side{number}_{i}" for i in range(len(side.slots))]
