"""A request, checked on the driver before Spark reads a row."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from rankmill.engine.catalogue_inputs import beside, opened
from rankmill.engine.job import Job, open_job
from rankmill.engine.parts import check_in_parts
from rankmill.errors import UsageError, positive
from rankmill.sources.inputs.inputs import Input, open_input
from rankmill.sources.meaning.fact_columns import NO_FACTS, Kind
from rankmill.sources.nouns import Catalogue, Labels, Predictions
from rankmill.spark.exchange.layout import (
    TRAIN,
    Form,
    Side,
    arrow_schema,
    check_as_it_stands,
    check_one_query,
    check_ordered,
    empty_source,
    shuffled,
    sides_of,
    unpadded,
)
from rankmill.spark.exchange.partitions import partition_count, sizes_of
from rankmill.spark.exchange.session import read

# What is told of files, or that one machine alone does.
_OF_FILES = "format", "columns", "encoding"

OLDEST = (3, 5)


@dataclass(frozen=True)
class SparkRequest:
    """A checked request: what to compute, on which DataFrames, and the columns found in them.

    What is known of each side has the number of the side: labels, each system, and what queries had
    in training if it is given.
    """

    job: Job
    names: tuple[str, ...]  # of the systems
    frames: Sequence[Any]
    inputs: Sequence[Input]  # the same, without rows
    sides: Sequence[Side]
    sizes: Sequence[int | None]  # the bytes of each DataFrame, as far as Spark knows them
    partitions: int
    told: bool  # whether the caller chose the number of partitions
    catalogue: Catalogue  # what is given beside labels and predictions

    @property
    def training(self) -> list[int]:
        """The number of the side of what queries had in training; none without it."""
        return [number for number, side in enumerate(self.sides) if side.system == TRAIN]

    @property
    def systems(self) -> range:
        """The numbers of the sides of all systems."""
        return range(1, 1 + len(self.names))

    def rows(self, *numbers: int) -> tuple[Any, Form]:
        """Return the shuffled rows of some sides, by their number, and the form that they have."""
        sides = [self.sides[number] for number in numbers]
        rows = shuffled([self.frames[n] for n in numbers], sides, self.partitions)
        return rows, Form(sides, arrow_schema(rows))


def request_of(
    labels: Labels,
    runs: Mapping[str, Predictions],
    job: Job,
    partitions: int | None = None,
    facts: Mapping[str, Kind] = NO_FACTS,
    catalogue: Catalogue | None = None,
) -> SparkRequest:
    """Check a request on the driver, as `rankmill.evaluate` does, before any row is read.

    `facts` are columns of the labels with a value a query.
    """
    check_inputs(labels, runs)
    check_in_parts(job)
    frames = [labels.data, *(one.data for one in runs.values())]
    with ExitStack() as stack:
        sources = {
            name: replace(one, data=empty_source(one.data, f"the DataFrame of {name or one.role}"))
            for name, one in runs.items()
        }
        empty = replace(labels, data=empty_source(labels.data, "the DataFrame of labels"))
        label_input, inputs = stack.enter_context(open_job(job, empty, sources, facts, noted=True))
    opened_as = [empty, *sources.values()]
    for noun, one in zip(opened_as, (label_input, *inputs.values()), strict=True):
        check_one_query(one)
        if noun is not empty or labels.subtopic is None:  # gains are made of subtopics
            check_as_it_stands(noun.data, one)
    for one in inputs.values():
        check_ordered(one)
    named = {"": label_input} | {f"run {name}": one for name, one in inputs.items()}
    given = Catalogue.of(catalogue)
    if isinstance(given.train, str | PathLike):
        train = read(labels.data.sparkSession, os.fspath(given.train), None)
        given = replace(given, train=train)
    if given.train is not None:
        check_frame(given.train, TRAIN)
        frames.append(given.train)
        named[TRAIN] = _training(given.train, label_input, job)
        check_one_query(named[TRAIN])
    sides = sides_of(frames, named)
    if labels.subtopic is not None:
        sides[0] = _with_subtopics(empty, label_input, frames[0])
    sizes = sizes_of(frames, sides)
    frames = [unpadded(frame, one) for frame, one in zip(frames, named.values(), strict=True)]
    told = partitions is not None
    if partitions is None:
        partitions = partition_count(labels.data.sparkSession, sizes)
    count = positive(partitions, "partitions")
    every = frames, list(named.values()), sides, sizes
    return SparkRequest(job, tuple(runs), *every, count, told, given)


def _training(frame: Any, labels: Input, job: Job) -> Input:
    """Return what queries had in training, without rows, once its columns are checked."""
    source = empty_source(frame, "the DataFrame of train")
    (opener,) = beside(Catalogue(train=source), labels, job.memory).values()
    with opened(TRAIN, opener, labels) as one:
        check_as_it_stands(source, one)
        return one


def _with_subtopics(labels: Labels, made: Input, frame: Any) -> Side:
    """Return the side of labels with subtopics, with the columns that their gains are made of."""
    kinds: dict[str, Kind] = dict.fromkeys(made.columns.facts, "segment")
    kinds[str(labels.subtopic)] = "subtopic"
    read = open_input(labels, may_be_empty=True, facts=kinds)
    (side,) = sides_of([frame], {"": read})
    return replace(side, subtopic=labels.subtopic)


def is_frame(value: Any) -> bool:
    """Return whether a value is a DataFrame of Spark."""
    return all(hasattr(value, name) for name in ("mapInArrow", "schema", "sparkSession"))


def check_inputs(labels: Labels, runs: Mapping[str, Predictions]) -> None:
    """Raise UsageError if an input is no DataFrame of Spark, or is to be read as none can be."""
    for one in (labels, *runs.values()):
        check_frame(one.data, str(one.role))
        for name in _OF_FILES:
            if getattr(one, name, None) is not None:
                raise UsageError(
                    f"{name} of {one.role} does not apply to a DataFrame of Spark: leave it out, "
                    "or use rankmill.evaluate"
                )


def check_frame(frame: Any, what: str) -> None:
    """Raise UsageError if an input is no DataFrame of Spark."""
    if not is_frame(frame):
        raise UsageError(
            f"{what} cannot be a {type(frame).__name__}; expected a DataFrame of Spark"
            f"{' or a path' * (what == TRAIN)}: rankmill.evaluate takes anything else"
        )
    if frame.isStreaming:
        raise UsageError(
            f"{what} cannot be a streaming DataFrame, which never ends: use foreachBatch, or write "
            "it and read it back with spark.read"
        )
    version = frame.sparkSession.version
    if tuple(map(int, version.split(".")[:2])) < OLDEST:
        raise UsageError(f"Spark {version} is too old: expected 3.5 or newer")
