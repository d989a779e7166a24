"""A request, checked on the driver before Spark reads a row."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from rankmill.config.options import keys
from rankmill.engine.job import Job, make_job, open_job
from rankmill.engine.options import COLUMNS, split_options
from rankmill.engine.parts import check_in_parts
from rankmill.errors import UsageError, positive
from rankmill.sources.facts import NO_FACTS, Kind
from rankmill.sources.inputs import Input
from rankmill.spark.layout import (
    Side,
    check_one_query,
    check_ordered,
    empty_source,
    shuffled,
    sides_of,
)
from rankmill.spark.partitions import partition_count, sizes_of

# Options of `evaluate` that files have, or that are Spark's own business.
NOT_TAKEN = (*(name for name, one in keys().items() if not one.frames), "progress")


@dataclass(frozen=True)
class Request:
    """A checked request: what to compute, on which DataFrames, and the columns found in them.

    Attributes
    ----------
    job : Job
    options : dict
        All options of `rankmill.evaluate` for a task, without the names of columns.
    frames : list of pyspark.sql.DataFrame
        The labels, and the predictions of each system.
    inputs : list of Input
        The same, without rows.
    sides : list of Side
    sizes : list of int or None
        The bytes of each DataFrame, as far as Spark knows them.
    partitions : int
    told : bool
        Whether the caller chose the number of partitions.
    """

    job: Job
    options: Mapping[str, Any]
    frames: Sequence[Any]
    inputs: Sequence[Input]
    sides: Sequence[Side]
    sizes: Sequence[int | None]
    partitions: int
    told: bool

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(metric.text for metric in self.job.metrics)

    def rows(self, *numbers: int) -> tuple[Any, list[Side]]:
        """Return the shuffled rows of some sides, by their number, and these sides."""
        sides = [self.sides[number] for number in numbers]
        return shuffled([self.frames[n] for n in numbers], sides, self.partitions), sides


def request_of(
    labels: Any,
    runs: Mapping[str, Any],
    metrics: Any,
    options: dict[str, Any],
    facts: Mapping[str, Kind] = NO_FACTS,
) -> Request:
    """Check a request on the driver, as `rankmill.evaluate` does, before any row is read.

    `facts` are columns of the labels with a value a query.

    Raises
    ------
    InputError, UsageError
        As `rankmill.evaluate`, if columns and types are enough to find the error.
    """
    options = {**options, **dict.fromkeys(NOT_TAKEN), "threads": 1}
    partitions, per_query = options.pop("partitions"), options.pop("per_query")
    frames = [labels, *runs.values()]
    for frame, what in zip(frames, ["labels", *["predictions"] * len(runs)], strict=True):
        check_frame(frame, what)
    columns, _, choices = split_options(options)
    job = make_job(metrics, per_query=per_query, part=True, **choices)
    check_in_parts(job)
    with ExitStack() as stack:
        sources = {
            name: empty_source(frame, f"the DataFrame {f'of {name}' if name else 'of predictions'}")
            for name, frame in runs.items()
        }
        empty = empty_source(labels, "the DataFrame of labels")
        opened = open_job(job, empty, sources, columns, facts)
        label_input, inputs = stack.enter_context(opened)
    for one in (label_input, *inputs.values()):
        check_one_query(one)
    for one in inputs.values():
        check_ordered(one)
    named = {"": label_input} | {f"run {name}": one for name, one in inputs.items()}
    sides = sides_of(frames, named)
    sizes = sizes_of(frames, sides)
    told = partitions is not None
    if partitions is None:
        partitions = partition_count(labels.sparkSession, sizes)
    count = positive(partitions, "partitions")
    bare = options | dict.fromkeys(COLUMNS) | {"binary": False, "in_order": False}
    return Request(job, bare, frames, list(named.values()), sides, sizes, count, told)


def refuse_whole(given: Mapping[str, Any]) -> None:
    """Raise UsageError if queries come in clusters, or their differences are to be adjusted."""
    for name, why in (
        ("cluster", "a cluster may be in several partitions"),
        ("adjust", "no partition has the regression of all queries"),
    ):
        if given[name] is not None:
            raise UsageError(
                f"{name} is not for Spark, where {why}: collect the rows, and use rankmill.compare "
                "or rankmill.gate"
            )


def is_frame(value: Any) -> bool:
    """Return whether a value is a DataFrame of Spark."""
    return all(hasattr(value, name) for name in ("mapInArrow", "schema", "sparkSession"))


def check_frame(frame: Any, what: str) -> None:
    """Raise UsageError if an input is no DataFrame of Spark."""
    if not is_frame(frame):
        raise UsageError(
            f"{what} cannot be a {type(frame).__name__}; expected a DataFrame of Spark: "
            "rankmill.evaluate takes all else"
        )
