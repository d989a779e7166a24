"""Tables by which queries are cut into slices, as further sides of the shuffle."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.ids import ids_to_arrow
from rankmill.compare.cutting import Cuts, open_cut, read_table
from rankmill.compare.segments import classes_of
from rankmill.kernels.identity import UNSIGNED
from rankmill.sources.inputs import Input
from rankmill.spark.joining import POPULARITY, TABLE
from rankmill.spark.layout import empty_source, sides_of
from rankmill.spark.popularity import popularity_frame
from rankmill.spark.request import Request, is_frame
from rankmill.threads import Workers


def with_tables(request: Request, cuts: Cuts) -> Request:
    """Return a request with the tables of `by`, and with the popularity of labels if it is asked.

    Raises
    ------
    InputError, UsageError
        As `rankmill.compare`, if a table is not one of query ids and classes.
    """
    labels = request.inputs[0]
    session, memory = request.frames[0].sparkSession, request.job.memory
    found = request
    for number, table in enumerate(cuts.tables):
        frame = table if is_frame(table) else _sent(session, table, labels, memory)
        found = with_side(found, f"{TABLE} {number}", frame, labels)
    if "label_popularity" in cuts.derived:
        frame = popularity_frame(request, "label_popularity")
        found = with_side(found, POPULARITY, frame, labels)
    return found


def with_side(request: Request, side: str, frame: Any, labels: Input) -> Request:
    """Return a request with one more table of query ids, and a value of each in other columns."""
    source = empty_source(frame, "the table of by")
    one = open_cut(source, labels, request.job.memory, part=True)
    return replace(
        request,
        frames=[*request.frames, frame],
        inputs=[*request.inputs, one],
        sides=[*request.sides, *sides_of([frame], {side: one})],
    )


def _sent(session: Any, table: Any, labels: Input, memory: int) -> Any:
    """Return a DataFrame of a table that the driver reads, with its classes as texts."""
    with Workers(None) as workers:
        facts = read_table(table, labels, workers, memory)
    kinds = labels.id_types("query")
    queries, places = facts.queries, np.arange(len(facts.queries.keys))
    if queries.kind == UNSIGNED:  # Spark has no such ids, and those beyond int64 meet no other
        places = np.flatnonzero(queries.keys < np.uint64(1 << 63))
    ids = ids_to_arrow(queries, set()).take(pa.array(places)).cast(next(iter(kinds)))
    columns = {labels.columns.query: ids}
    for name, column in facts.columns.items():
        values, codes = classes_of(name, column)
        texts = pa.array(values, pa.string()).take(pa.array(codes % len(values)))
        columns[name] = texts.take(pa.array(places))
    return session.createDataFrame(pa.table(columns))
