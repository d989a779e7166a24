"""The catalogue on Spark: what is known of items goes to all tasks, what queries had by query."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

from rankmill.engine.held_labels import (
    described_beside,
    item_counts,
    training_of,
    warn_of_padding,
    with_catalogue,
)
from rankmill.engine.job import Job
from rankmill.matching.catalogue import KnownItems, Training
from rankmill.metrics.aggregates.list_means import UsualPopularity, usual_popularity
from rankmill.metrics.aggregates.mean import Mean
from rankmill.metrics.records.item_counts import ItemCounts
from rankmill.metrics.records.record import Count, Record, nested
from rankmill.sources.roles.streams import open_table
from rankmill.spark.exchange.collection import collected
from rankmill.spark.exchange.frame_rows import to_arrow
from rankmill.spark.exchange.layout import TRAIN, Form
from rankmill.spark.exchange.returned_rows import Returned
from rankmill.spark.exchange.spark_request import SparkRequest, check_frame, is_frame
from rankmill.spark.exchange.tasks import history_of, inputs_of, partition, seal_of_items
from rankmill.threads import Workers

_COUNTS = nested(ItemCounts)._replace(
    read=lambda row, at, name: ItemCounts.from_row(row, f"{at}{name}.", 1)
)


@dataclass(frozen=True)
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
    if not is_frame(value):
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
