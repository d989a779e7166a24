"""Sides of the shuffle besides those that are scored: tables of slices, and the catalogue."""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import numbers_of
from rankmill.columns.ids import ids_to_arrow, take_ids
from rankmill.engine.cuts import Cuts, open_cut, read_table
from rankmill.engine.held_labels import (
    HeldLabels,
    described_beside,
    item_counts,
    training_of,
    warn_of_padding,
    with_catalogue,
)
from rankmill.engine.job import Job
from rankmill.engine.segments import POPULARITY as CLASS_OF
from rankmill.engine.segments import class_of_items, class_of_median, classes_of
from rankmill.errors import RankmillError, UsageError
from rankmill.kernels.identity import UNSIGNED
from rankmill.matching.catalogue import KnownItems, Training
from rankmill.metrics.aggregates.list_means import UsualPopularity, usual_popularity
from rankmill.metrics.aggregates.mean import Mean
from rankmill.metrics.records.item_counts import ItemCounts
from rankmill.metrics.records.record import Count, Record, nested
from rankmill.nightly.rules.baseline import Baseline, check_id_types
from rankmill.records import record
from rankmill.results.result import WEIGHT
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.nouns import is_spark_frame
from rankmill.sources.roles.source import Columns
from rankmill.sources.roles.streams import open_table
from rankmill.spark.exchange.layout import (
    TRAIN,
    Form,
    FrameRows,
    Side,
    column,
    from_arrow,
    query_text,
    sides_of,
    spark_type,
    to_arrow,
)
from rankmill.spark.exchange.returned_rows import Returned
from rankmill.spark.exchange.spark_request import SparkRequest, check_frame
from rankmill.spark.exchange.tasks import (
    collected,
    history_of,
    inputs_of,
    mapped,
    partition,
    seal_of_items,
)
from rankmill.threads import Workers

# What sides besides those that are scored are called: tables of slices, the popularity of labels,
# and the values by query of an earlier run.
TABLE, POPULARITY, EARLIER = "by ", "popularity", "earlier"
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
        f"{TABLE}{number}": table
        if is_spark_frame(table)
        else _sent(session, table, labels, memory)
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
        if is_spark_frame(table):
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


# ------------------------------------------------------------------ popularity

QUERY, ITEM, LABELS, HEAD, HEAD_OR_MIDDLE = "query", "item", "labels", "head", "head or middle"


def _pairs(batches: Iterator[Any], job: Job, form: Form, schema: Any) -> Iterator[Any]:
    """Yield the query and the item of each label of a partition, as the engine counts them, once.

    `schema` is that of the pairs.
    """
    (labels,) = inputs_of(batches, form).values()
    try:
        with Workers(1) as workers:
            index = HeldLabels(labels).index(job, workers)
    except RankmillError:  # the comparison reads the same labels, and its error has no traces
        return
    rows = np.repeat(np.arange(len(index.queries.keys)), np.diff(index.labels.offsets))
    ids = take_ids(index.queries, rows), index.labels.items
    arrays = [ids_to_arrow(one, {kind}) for one, kind in zip(ids, schema.types, strict=True)]
    yield from pa.table(arrays, schema=schema).to_batches()


def _classes(batches: Iterator[Any], table: Any) -> Iterator[Any]:
    """Yield queries with their classes, from how many labels of each class they have."""
    for batch in batches:
        counts = (numbers_of(batch.column(name)) for name in (LABELS, HEAD, HEAD_OR_MIDDLE))
        names = [CLASS_OF[one] for one in class_of_median(*counts).tolist()]
        arrays = [batch.column(QUERY), pa.array(names, pa.string())]
        yield pa.RecordBatch.from_arrays(arrays, schema=table)


def popularity_frame(request: SparkRequest, name: str) -> Any:
    """Return a DataFrame with the class of each query that has labels, in the column `name`.

    How often each item is a label is counted on executors. The driver only holds how many items
    are a label of one query, of two, and so on.
    """
    from pyspark.sql import functions

    rows, form = request.rows(0)
    query, item = (
        spark_type(next(iter(request.inputs[0].id_types(role)))) for role in ("query", "item")
    )
    kinds = {QUERY: query}
    table = pa.schema({**kinds, ITEM: item})
    pairs = mapped(rows, table, _pairs, request.job, form, table)
    items = pairs.groupBy(ITEM).agg(functions.count(functions.lit(1)).alias(LABELS))
    many = to_arrow(items.groupBy(LABELS).agg(functions.count(functions.lit(1)).alias("items")))
    least = _least(*(numbers_of(many.column(one).combine_chunks()) for one in (LABELS, "items")))
    popular = items.select(
        ITEM, *((functions.col(LABELS) >= size).cast("long").alias(n) for n, size in least.items())
    )
    counted = pairs.join(popular, ITEM).groupBy(QUERY)
    counts = counted.agg(
        functions.count(functions.lit(1)).alias(LABELS),
        *(functions.sum(one).alias(one) for one in least),
    )
    table = pa.schema({**kinds, name: pa.string()})
    return mapped(counts, table, _classes, table)


def _least(sizes: np.ndarray, items: np.ndarray) -> dict[str, int]:
    """Return how many labels an item of the head has at least, and one of the head or middle."""
    order = np.argsort(-sizes)
    sizes = sizes[order]
    classes = class_of_items(sizes, items[order])
    ends = (sizes[classes <= most] for most in (0, 1))
    return {
        name: int(one.min(initial=np.iinfo(np.int64).max))
        for name, one in zip((HEAD, HEAD_OR_MIDDLE), ends, strict=True)
    }


# ------------------------------------------------------------------ the catalogue

_COUNTS = nested(ItemCounts)._replace(
    read=lambda row, at, name: ItemCounts.from_row(row, f"{at}{name}.", 1)
)


@record(frozen=True)
class TrainingCounts(Record):
    """How many of some queries had each item in training, and how many had any."""

    items: Annotated[ItemCounts, _COUNTS] = field(default_factory=lambda: ItemCounts(1))
    queries: Count = 0


def count_training(
    batches: Iterator[Any], job: Job, form: Form, training: Training | None
) -> Iterator[Returned]:
    """Yield what the queries of a partition had, or how popular it is in `training`."""
    index = history_of(job, inputs_of(batches, form)[TRAIN], training)
    counts: Record = TrainingCounts(*item_counts(index))
    if training is not None:
        counts = usual_popularity(training.of_part(index))
    yield Returned(partition(), "", counts, None, 0, index.rows, seal_of_items(index))


def with_known_items(request: SparkRequest) -> SparkRequest:
    """Return a request whose job knows the catalogue, as far as it is not told by query.

    The driver holds items, their groups and features. Of training it only holds how many queries
    had each item: each task has what its own queries had. Errors are as for `rankmill.evaluate`.
    """
    job, given = request.job, request.catalogue
    if not job.beside or job.catalogue is not None:
        return request
    small = replace(
        given,
        train=None,
        items=_collected(given.items, "items"),
        features=_collected(given.features, "features"),
    )
    job = replace(job, beside=tuple(name for name in job.beside if name != TRAIN))
    with Workers(None) as workers:
        known = with_catalogue(job, small, request.inputs[0], workers).catalogue
    training, described = _counted(request) if request.training else (None, {})
    items = None if known is None else known.items
    if training is not None and given.items is None:
        items = training.items
        warn_of_padding(items)
    assert items is not None
    groups, features = (None, None) if known is None else (known.groups, known.features)
    columns = {} if known is None else known.columns
    described |= {} if known is None else known.described
    # States of one request are of one catalogue: no hash of it has to tell that.
    found = KnownItems(items, training, described, groups, features, "on Spark", columns)
    return replace(request, job=replace(request.job, catalogue=found))


def _collected(value: Any, name: str) -> Any:
    """Return what is given as a DataFrame as rows that the driver holds; all else as it is."""
    if not is_spark_frame(value):
        return value
    check_frame(value, name)
    return open_table(to_arrow(value), f"the DataFrame of {name}")


def _counted(request: SparkRequest) -> tuple[Training, dict[str, dict[str, object]]]:
    """Return how many queries had each item in training, and what was read."""
    one = request.inputs[request.training[0]]
    found = _added_up(request, TrainingCounts(), None)
    training = training_of(found.value.items, found.value.queries, one)
    training.seals = found.seals
    if UsualPopularity in request.job.needs:
        training.usual = _added_up(request, Mean(), training).value.mean or 0.0
    return training, {TRAIN: described_beside(TRAIN, one) | {"rows": found.rows}}


def _added_up(request: SparkRequest, nothing: Record, training: Training | None) -> Returned:
    """Return what tasks count of training, `nothing` if there is none."""
    rows, form = request.rows(*request.training)
    task = partial(count_training, job=request.job, form=form, training=training)
    return (collected(rows, task, request.partitions) or [Returned(0, "", nothing)])[0]
