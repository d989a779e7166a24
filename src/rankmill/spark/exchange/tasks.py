"""What runs in the tasks of Spark, Arrow batches in and typed rows out, and how it is collected."""

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import replace
from functools import reduce
from pathlib import PurePath
from typing import Any
from zipimport import zipimporter

import numpy as np
import pyarrow as pa

from rankmill import errors, package
from rankmill.columns.buffers import numbers_of
from rankmill.columns.ranked_lists import Place
from rankmill.columns.seal import SEEDS, seal_of, sum_pairs
from rankmill.engine.held_labels import opened, training_index
from rankmill.engine.job import Job
from rankmill.engine.parts import part_states
from rankmill.engine.state import State
from rankmill.errors import InputError, Otherwise, RankmillError, UsageError
from rankmill.matching.catalogue import Training
from rankmill.matching.index import LabelIndex
from rankmill.metrics.base import MetricSpec
from rankmill.metrics.registry import REGISTRY, own_metrics, register
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.nouns import Labels, Predictions
from rankmill.sources.roles.streams import joined, open_table
from rankmill.sources.rows.subtopics import with_subtopics
from rankmill.spark.exchange.layout import SIDE, TRAIN, Form, Side, to_arrow
from rankmill.spark.exchange.returned_rows import (
    RETURNED,
    Odd,
    Returned,
    batch_of,
    merged_rows,
    odd_of_both,
    read_returned,
)
from rankmill.threads import Workers

# How the names of Spark's own archives of modules begin.
_ARCHIVES = ("pyspark", "py4j", "spark-core")


def score(batches: Iterator[Any], job: Job, form: Form) -> Iterator[Returned]:
    """Yield the states of all systems over the queries of a partition."""
    runs = inputs_of(batches, form)
    labels, job = runs.pop(""), with_training(job, runs)
    systems = {name: Predictions(one) for name, one in runs.items()}
    states = part_states(job, Labels(labels), systems, threads=1)
    for name, one in runs.items():
        rows = labels.source.rows or 0, one.source.rows or 0
        seals = seals_of(job, [states[name]] if job.keep_values else [])
        yield Returned(partition(), name, states[name], None, *rows, seals, odd_ids(form.sides))


def with_training(job: Job, inputs: dict[str, Input]) -> Job:
    """Return the job with what the queries of a partition had in training; `inputs` lose it."""
    train = inputs.pop(TRAIN, None)
    if train is None or job.catalogue is None:
        return job
    index = history_of(job, train, job.catalogue.training)
    return replace(job, catalogue=job.catalogue.of_part(index))


def history_of(job: Job, train: Input, counted: Training | None) -> LabelIndex:
    """Return what the queries of a partition had in training, as a pass before has `counted` it."""
    with opened(TRAIN, lambda: train, train) as one, Workers(1) as workers:
        index = training_index(one, job, workers)
    check_seen(seal_of_items(index), None if counted is None else counted.seals)
    return index


# ------------------------------------------------------------------ what a pass before has seen


def seals_of(job: Job, states: Iterable[State]) -> frozenset[int]:
    """Return seals of what the queries of a partition add up to: of each mean and each gap.

    Each partition of a later pass has one of these again, as a query is always in the partition of
    its hash, and states do not depend on the order of rows.
    """
    return frozenset(
        int(seal_of({"metric": one.text} | state.aggregates[one.text].to_row()), 16)
        for state in states
        for one in (*job.per_query, *job.pooled)
    )


def seal_of_items(index: LabelIndex) -> frozenset[int]:
    """Return the seal of the items that the queries of a partition had; none of no rows.

    Without rows, the driver finds out what is wrong with a request.
    """
    seal = sum_pairs(index.queries, index.labels.offsets, index.labels.items, None, SEEDS[0])
    return frozenset([seal] if index.rows else [])


def check_seen(found: Set[Any], known: Set[Any] | None) -> None:
    """Raise InputError if what a pass has found is not `known` from the one before, if any was."""
    if known is not None and not found <= known:
        raise InputError(
            "a DataFrame has other rows than when it was read before, so that results would "
            "contradict each other: Spark computes its rows each time it reads them: call "
            "persist() on it, or write it and read it back, and evaluate again"
        )


def spare_the_next_tasks() -> None:
    """Save each later task of this process 0.12 s of what Spark does around it.

    Before a task, Spark asks Python to look for new modules; Python 3.11 then reads the table of
    contents of each archive that it ever found a module in, which for Spark's own never changes.
    After a task, Spark collects garbage; the modules that are loaded by now are none.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and PurePath(finder.archive).name.startswith(_ARCHIVES):
            del sys.path_importer_cache[path]
    if not gc.get_freeze_count():
        gc.freeze()


def partition() -> int:
    """Return the number of the partition that this task has."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def odd_ids(sides: Iterable[Side]) -> Odd:
    """Return what was told of the ids of some sides that a task has just read."""
    return reduce(odd_of_both, (side.source.findings.counts() for side in sides), {})


def tell(inputs: Iterable[Input], odd: Odd) -> None:
    """Let inputs on the driver tell of the ids that tasks have counted."""
    for one in inputs:
        one.source.findings.forget()
        for kind, found in odd.items():
            if kind.source == one.source.name:
                one.source.findings.count(Place(kind.source), kind, *found)


def told(error: Exception, where: int) -> Exception:
    """Return the error, of its public class, with the number of the partition."""
    if isinstance(error, Otherwise):  # the driver knows another way
        return error
    known: type[RankmillError] = next(
        one for one in type(error).__mro__ if one.__name__ in errors.__all__
    )
    return known(f"{error.args[0]} (in partition {where}; rows are counted within it)")


def inputs_of(batches: Iterable[Any], form: Form) -> dict[str, Input]:
    """Return what is among the rows of a shuffle: labels under "", and each other side."""
    tables = tables_of(batches, form)
    # Rows that are not sorted yet are not kept, and what Arrow took for them is given back: all
    # else that needs memory does not take it from Arrow.
    found = {side.system: input_of(tables.pop(side.system), side) for side in form.sides}
    pa.default_memory_pool().release_unused()
    return found


def input_of(table: Any, side: Side) -> Input:
    """Return the rows of a side as an input."""
    source = open_table(_ordered(table, side), side.name)
    if side.subtopic is not None:
        return Input(*with_subtopics(source, side.columns, side.subtopic))
    return Input(source, side.columns)


def tables_of(batches: Iterable[Any], form: Form) -> dict[str, Any]:
    """Return the same as tables, with the rows as they come."""
    sides, nothing = form.sides, pa.RecordBatch.from_pylist([], form.schema)
    found: list[list[Any]] = [[] for _ in sides]
    for batch in batches:
        numbers = numbers_of(batch.column(SIDE))
        for number in np.unique(numbers).tolist():
            chosen = numbers == number
            of_side = batch if chosen.all() else batch.filter(pa.array(chosen))
            found[number].append(_columns(of_side, sides[number]))
    tables = {}
    for side, parts in zip(sides, found, strict=True):
        tables[side.system] = pa.Table.from_batches(parts or [_columns(nothing, side)])
    return tables


def _columns(batch: Any, side: Side) -> Any:
    arrays = [batch.column(slot) for slot in side.slots.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(side.slots))


def _ordered(table: Any, side: Side) -> Any:
    """Return what rows mean, those of long predictions by query and item, as they have no order.

    So items of equal rank or confidence always rank the same: by their id.
    """
    columns, read = side.columns, side.read(table)
    if columns.wide or not side.system:
        return read
    return read.sort_by([(columns.query, "ascending"), (columns.item, "ascending")])


# ------------------------------------------------------------------ collecting what they return

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
        register_here(own)
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


def register_here(own: Iterable[MetricSpec]) -> None:
    """Register metrics in the process of a task, which has those of tasks before.

    What is pickled with a task would ask the registry of the driver, which has all of them.
    """
    for spec in own:
        there = REGISTRY.get(spec.name)
        if there is None or there.fingerprint != spec.fingerprint:  # else it is compiled
            register(spec)


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
