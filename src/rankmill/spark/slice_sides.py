"""Tables by which queries are cut into slices, as further sides of the shuffle."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.ids import ids_to_arrow
from rankmill.engine.cuts import Cuts, open_cut, read_table
from rankmill.engine.segments import classes_of
from rankmill.errors import UsageError
from rankmill.kernels.identity import UNSIGNED
from rankmill.nightly.rules.baseline import Baseline
from rankmill.nightly.rules.earlier_values import check_id_types
from rankmill.results.result import WEIGHT
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.roles.source import Columns
from rankmill.spark.comparison_tasks import EARLIER, POPULARITY, TABLE
from rankmill.spark.exchange.frame_rows import FrameRows, column, from_arrow, spark_type
from rankmill.spark.exchange.layout import Side, sides_of
from rankmill.spark.exchange.query_keys import query_text
from rankmill.spark.exchange.spark_request import SparkRequest, is_frame
from rankmill.spark.popularity import popularity_frame
from rankmill.threads import Workers

# What the query ids of a table are called while it is joined to the labels.
_KEY = "rankmill query"


def with_tables(request: SparkRequest, cuts: Cuts) -> SparkRequest:
    """Return a request with the tables of `by`, and with the popularity of labels if it is asked.

    Errors are as for `rankmill.compare`, of a table that is not one of query ids and classes.
    """
    check_derived(cuts)
    labels = request.inputs[0]
    session, memory = request.frames[0].sparkSession, request.job.memory
    frames = {
        f"{TABLE}{number}": table if is_frame(table) else _sent(session, table, labels, memory)
        for number, table in enumerate(cuts.tables)
    }
    if "label_popularity" in cuts.derived:
        frames[POPULARITY] = popularity_frame(request, "label_popularity")
    for side, frame in frames.items():
        rows = FrameRows(frame, "the table of by")
        one = open_cut(rows.source(), labels, memory, part=True)
        request = with_side(request, side, rows, one)
    return request


def check_derived(cuts: Cuts) -> None:
    """Raise UsageError if Spark does not know a way to cut."""
    if "activity" in cuts.derived:
        raise UsageError(
            "by='activity' is not counted on Spark: make a table of query ids and classes, and "
            "name it in by"
        )


def with_side(request: SparkRequest, side: str, rows: FrameRows, one: Input) -> SparkRequest:
    """Return a request with one more side, which is described without its rows."""
    return replace(
        request,
        frames=[*request.frames, rows.frame],
        inputs=[*request.inputs, one],
        sides=[*request.sides, *sides_of([rows], {side: one})],
    )


def with_values(request: SparkRequest, earlier: Baseline) -> SparkRequest:
    """Return a request with the values by query of an earlier run; ids are in its first column."""
    rows = FrameRows(earlier.predictions, earlier.source)
    source = rows.source()
    schema = source.schema
    query, *others = schema.names
    for kind in request.inputs[0].id_types("query"):
        check_id_types(kind, schema.field(query).type, earlier.source)
    wanted = [*(metric.text for metric in request.job.per_query), WEIGHT]
    columns = Columns(query, query, True, facts=tuple(name for name in wanted if name in others))
    return with_side(request, EARLIER, rows, Input(source, columns))


def with_columns(
    side: Side, tables: Sequence[Any], labels: Input, memory: int
) -> tuple[Any, list[str]]:
    """Return the DataFrame of labels with the columns of tables that the driver reads, and these.

    Raises UsageError if a table is on Spark itself, or has a column that is there already.
    """
    frame, names = side.rows.frame, list[str]()
    for table in tables:
        if is_frame(table):
            raise UsageError(
                "by of evaluate takes columns of the labels, and tables that the driver reads on "
                "Spark: join this DataFrame to the labels, and name its columns in by"
            )
        sent = _sent(frame.sparkSession, table, labels, memory)
        new = sent.columns[1:]
        both = next((name for name in new if name in frame.columns), None)
        if both is not None:
            raise UsageError(f"the labels have a column {both!r} too: rename that of the table")
        sent = sent.toDF(_KEY, *new)
        parts = [(column(frame, name), frame.schema[name].dataType) for name in side.queries]
        query = query_text(parts, side.source.key) == column(sent, _KEY).cast("string")
        frame, names = frame.join(sent, query, "left").drop(_KEY), [*names, *new]
    return frame, names


def _sent(session: Any, table: Any, labels: Input, memory: int) -> Any:
    """Return a DataFrame of a table that the driver reads, with its classes as texts."""
    with Workers(None) as workers:
        facts = read_table(table, labels, workers, memory)
    kinds = labels.id_types("query")
    queries, places = facts.queries, np.arange(len(facts.queries.keys))
    if queries.kind == UNSIGNED:  # Spark has no such ids, and those beyond int64 meet no other
        places = np.flatnonzero(queries.keys < np.uint64(1 << 63))
    ids = ids_to_arrow(queries, set()).take(pa.array(places)).cast(spark_type(next(iter(kinds))))
    columns = {labels.columns.query: ids}
    for name, held in facts.columns.items():
        values, codes = classes_of(name, held)
        texts = pa.array(values, pa.string()).take(pa.array(codes % len(values)))
        columns[name] = texts.take(pa.array(places))
    return from_arrow(session, pa.table(columns))
