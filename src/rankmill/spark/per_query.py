"""The values of each query as a DataFrame, which is computed where its rows are."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa

from rankmill.engine.finish import per_query_table
from rankmill.engine.first_pass import run
from rankmill.engine.held_labels import HeldLabels
from rankmill.engine.job import Job
from rankmill.results.result import WEIGHT
from rankmill.spark.exchange.collection import mapped
from rankmill.spark.exchange.layout import QUERY, Form
from rankmill.spark.exchange.spark_request import SparkRequest
from rankmill.spark.exchange.tasks import inputs_of, with_training
from rankmill.threads import Workers


def _values(batches: Iterator[Any], job: Job, form: Form, schema: Any) -> Iterator[Any]:
    """Yield the values of the queries of a partition, as in `schema`."""
    inputs = inputs_of(batches, form)
    labels = inputs.pop("")
    job = with_training(job, inputs)
    (predictions,) = inputs.values()
    with (
        Workers(1) as workers,
        closing(run(job, HeldLabels(labels), {"": predictions}, workers)) as tallies,
    ):
        found = per_query_table(next(tallies), labels, predictions)()
    yield from found.rename_columns(schema.names).cast(schema).to_batches()


def per_query_frame(request: SparkRequest, number: int) -> Any:
    """Return a DataFrame with the values of each query that counts for a system."""
    rows, form = request.rows(0, number, *request.training)
    names = [metric.text for metric in request.job.per_query]
    names += [WEIGHT] if request.job.scope.weight is not None else []
    query = request.inputs[0].columns.query
    fields = {"query" if query in names else query: form.schema.field(QUERY).type}
    schema = pa.schema({**fields, **dict.fromkeys(names, pa.float64())})
    job = replace(request.job, keep_values=True, cuts=None, by=(), sums=())
    return mapped(rows, schema, _values, job, form, schema)
