"""Collecting what tasks return: merged on executors first, where there is much of it."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Protocol, Self, TypeVar

import pyarrow as pa

from rankmill.errors import RankmillError, UsageError
from rankmill.metrics.base import MetricSpec
from rankmill.metrics.registry import REGISTRY, own_metrics, register
from rankmill.sources.roles.streams import joined
from rankmill.spark.exchange.layout import to_arrow
from rankmill.spark.exchange.tasks import partition, spare_the_next_tasks, told
from rankmill.spark.exchange.typed_rows import Returned, RowFormat, check_once, first_error

Merged = TypeVar("Merged", bound="Mergeable")

Task = Callable[[Iterator[Any]], Iterator[Any]]
Answering = Callable[[Iterator[Any]], Iterable[Returned]]


class Mergeable(Protocol):
    """A state, or counts of the second pass."""

    def merge(self, other: Self) -> Self:
        """Return the sum of both."""

    def to_row(self) -> dict[str, Any]:
        """Return a flat row."""

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Return what `to_row` made a row of."""


# So many rows are merged at once.
FAN = 16


def collected(
    rows: Any, task: Answering, kind: type[Merged], form: RowFormat, partitions: int
) -> list[Returned]:
    """Run a task on each partition of a DataFrame and return what they return, merged by system.

    Raises
    ------
    InputError, UsageError
        The error of the first partition that has one.
    """
    return gathered(mapped(rows, form.schema, _answered, task, form), kind, form, partitions)


def _answered(batches: Iterator[Any], task: Answering, form: RowFormat) -> Iterator[Any]:
    """Yield what a task returns for a partition, or its error.

    An error is a row instead of an exception, as Spark would try the task again, and show the error
    within the traces of two languages.
    """
    try:
        returned = [*task(batches)]
    except RankmillError as error:
        returned = [Returned(partition(), error=told(error, partition()))]
    yield form.batch(returned)


def gathered(found: Any, kind: type[Merged], form: RowFormat, partitions: int) -> list[Returned]:
    """Return what is in a DataFrame of what tasks return, merged by system.

    With more than `FAN` partitions, executors merge it in rounds, so that the driver never holds
    the confidences of all partitions at once.

    Raises
    ------
    InputError, UsageError
        The error of the first partition that has one.
    """
    from pyspark.sql import functions

    while partitions > FAN:
        partitions = -(-partitions // FAN)
        group = (functions.col("partition") / FAN).cast("long")
        found = found.repartition(partitions, group)
        found = mapped(found, form.schema, _merged, kind, form)
    merged = merged_rows(list(form.read(to_arrow(found))), kind, 0)
    failed = first_error(merged)
    if failed is not None and failed.error is not None:
        raise failed.error
    return merged


def mapped(rows: Any, schema: Any, task: Callable[..., Iterator[Any]], *known: Any) -> Any:
    """Return a DataFrame of what a task yields, given what it knows: batches of an Arrow schema."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return rows.mapInArrow(function_of(task, *known), from_arrow_schema(schema))


def function_of(task: Callable[..., Iterator[Any]], *known: Any) -> Task:
    """Return a function, which Spark asks for, that does what a task does with what it knows.

    The task gets larger batches than Spark may give it, as each has a fixed cost. Its process may
    wait for another task: it gives back the memory that Arrow would keep. Metrics of somebody's own
    go with it.
    """
    own = [_by_value(spec) for spec in own_metrics()]

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        spare_the_next_tasks()
        for spec in own:
            there = REGISTRY.get(spec.name)
            if there is None or there.fingerprint != spec.fingerprint:  # else it is compiled
                register(spec)
        yield from task(joined(batches), *known)
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


def _merged(batches: Iterator[Any], kind: type[Merged], form: RowFormat) -> Iterator[Any]:
    """Yield the rows of a partition, merged by system."""
    rows = [one for batch in batches for one in form.read(pa.Table.from_batches([batch]))]
    if rows:
        yield form.batch(merged_rows(rows, kind, partition()))


def merged_rows(rows: Sequence[Returned], kind: type[Merged], where: int) -> list[Returned]:
    """Return a row a system; if there are errors, only the first by partition."""
    failed = first_error(rows)
    if failed is not None:
        return [failed]
    check_once(rows)
    found = []
    for system in dict.fromkeys(one.system for one in rows):
        own = [one for one in rows if one.system == system]
        read = (kind.from_row(one.fields or {}) for one in own)
        whole = reduce(lambda one, other: one.merge(other), read)
        sums = sum(one.label_rows for one in own), sum(one.rows for one in own)
        found.append(Returned(where, system, whole.to_row(), None, *sums))
    return found
