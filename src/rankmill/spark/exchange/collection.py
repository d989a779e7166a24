"""Collecting what tasks return: merged on executors first, where there is much of it."""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from rankmill import package
from rankmill.errors import InputError, Otherwise, RankmillError, UsageError
from rankmill.metrics.base import MetricSpec
from rankmill.metrics.registry import REGISTRY, own_metrics, register
from rankmill.sources.roles.streams import joined
from rankmill.spark.exchange.frame_rows import to_arrow
from rankmill.spark.exchange.returned_rows import (
    RETURNED,
    Returned,
    batch_of,
    merged_rows,
    read_returned,
)
from rankmill.spark.exchange.tasks import partition, spare_the_next_tasks, told

Task = Callable[[Iterator[Any]], Iterator[Any]]
Answering = Callable[[Iterator[Any]], Iterable[Returned]]

# So many rows are merged at once.
FAN = 16


def collected(rows: Any, task: Answering, partitions: int) -> list[Returned]:
    """Run a task on each partition of a DataFrame and return what they return, merged by system.

    With more than `FAN` partitions, executors merge it in rounds, so that the driver never holds
    the confidences of all partitions at once. Raises the error of the first partition that has one.
    """
    from pyspark.sql import functions

    found = mapped(rows, RETURNED, _answered, task)
    while partitions > FAN:
        partitions = -(-partitions // FAN)
        group = (functions.col("partition") / FAN).cast("long")
        found = mapped(found.repartition(partitions, group), RETURNED, _merged)
    merged = merged_rows(read_returned(to_arrow(found)), 0)
    for one in merged:
        if one.error is not None:
            raise one.error
    return merged


def _answered(batches: Iterator[Any], task: Answering) -> Iterator[Any]:
    """Yield what a task returns for a partition, or its error.

    An error is a row instead of an exception, as Spark would try the task again, and show the error
    within the traces of two languages.
    """
    try:
        returned = [*task(batches)]
    except (RankmillError, Otherwise) as error:
        returned = [Returned(partition(), error=told(error, partition()))]
    yield batch_of(returned)


def mapped(rows: Any, schema: Any, task: Callable[..., Iterator[Any]], *known: Any) -> Any:
    """Return a DataFrame of what a task yields, given what it knows: batches of an Arrow schema."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return rows.mapInArrow(function_of(task, *known), from_arrow_schema(schema))


def function_of(task: Callable[..., Iterator[Any]], *known: Any) -> Task:
    """Return a function, which Spark asks for, that does what a task does with what it knows.

    The task gets larger batches than Spark may give it, as each has a fixed cost. Its process may
    wait for another task: it gives back the memory that Arrow would keep. Metrics of somebody's own
    go with it. An error that it raises tells the partition.
    """
    own = [_by_value(spec) for spec in own_metrics()]
    driver = package.__version__

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        if package.__version__ != driver:  # which `on_spark` explains
            raise ImportError(f"rankmill {package.__version__} instead of {driver}")
        spare_the_next_tasks()
        for spec in own:
            there = REGISTRY.get(spec.name)
            if there is None or there.fingerprint != spec.fingerprint:  # else it is compiled
                register(spec)
        try:
            yield from task(joined(batches), *known)
        except RankmillError as error:
            raise told(error, partition()) from None
        except Otherwise as error:  # no driver waits that would read again
            raise InputError(
                f"the {error} ids are text, and all of the first rows are integers: cast those of "
                "all DataFrames to string"
            ) from None
        pa.default_memory_pool().release_unused()

    return run


def _by_value(spec: MetricSpec) -> MetricSpec:
    """Have a metric pickled whole: workers need not have the module of its function."""
    from pyspark import cloudpickle

    if module := sys.modules.get("".join(spec.home[:1])):
        cloudpickle.register_pickle_by_value(module)
    try:
        cloudpickle.dumps(spec)
    except Exception as error:
        raise UsageError(
            f"{spec.name} cannot be sent to the workers, because something that its function uses "
            f"cannot be pickled: {error}"
        ) from error
    return spec


def _merged(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the rows of a partition, merged by system."""
    merged = merged_rows((one for batch in batches for one in read_returned(batch)), partition())
    if merged:
        yield batch_of(merged)
