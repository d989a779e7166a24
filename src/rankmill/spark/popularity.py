"""Whether the labels of each query are popular, which depends on the labels of all queries."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import numbers_of
from rankmill.columns.ids import ids_to_arrow, take_ids
from rankmill.engine.held_labels import HeldLabels
from rankmill.engine.job import Job
from rankmill.engine.segments import POPULARITY, class_of_items, class_of_median
from rankmill.errors import RankmillError
from rankmill.spark.exchange.collection import mapped
from rankmill.spark.exchange.frame_rows import spark_type, to_arrow
from rankmill.spark.exchange.layout import Form
from rankmill.spark.exchange.spark_request import SparkRequest
from rankmill.spark.exchange.tasks import inputs_of
from rankmill.threads import Workers

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
        names = [POPULARITY[one] for one in class_of_median(*counts).tolist()]
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
