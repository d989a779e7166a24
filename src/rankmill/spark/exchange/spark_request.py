"""A request, checked on the driver before Spark reads a row."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from rankmill.engine.held_labels import beside, opened
from rankmill.engine.job import Job, check_subtopics
from rankmill.engine.parts import check_in_parts
from rankmill.errors import UsageError, positive
from rankmill.sources.files.formats import FORMATS
from rankmill.sources.inputs.inputs import Input, open_inputs
from rankmill.sources.meaning.understood import NO_FACTS, Kind
from rankmill.sources.nouns import Catalogue, Labels, Predictions
from rankmill.sources.rows.subtopics import with_subtopics
from rankmill.spark.exchange.frame_rows import FrameRows, arrow_schema
from rankmill.spark.exchange.layout import TRAIN, Form, Side, check_ordered, shuffled, sides_of
from rankmill.spark.exchange.partitions import partition_count, sizes_of
from rankmill.spark.exchange.session import read

# What is told of files, or that one machine alone does.
_OF_FILES = "format", "columns", "encoding"

# The formats that tell what a cell of text holds.
CELLS = [name for name, one in FORMATS.items() if one.files]
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
    inputs: Sequence[Input]  # the same, of which the driver reads the first rows at most
    sides: Sequence[Side]
    partitions: int
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
    """Check a request on the driver, as `rankmill.evaluate` does, by the first rows at most.

    These are read where a type does not tell what a column holds, as of text. `facts` are columns
    of the labels with a value a query.
    """
    check_inputs(labels, runs)
    check_in_parts(job)
    check_subtopics(job, labels.subtopic)
    rows = [FrameRows(labels.data, "the DataFrame of labels")]
    rows += [FrameRows(one.data, f"the DataFrame of {n or one.role}") for n, one in runs.items()]
    nouns: Any = labels, *runs.values()
    nouns = [replace(one, data=of.source()) for one, of in zip(nouns, rows, strict=True)]
    weight: dict[str, Kind] = {} if job.scope.weight is None else {job.scope.weight: "number"}
    more: dict[str, Kind] = {} if labels.subtopic is None else {labels.subtopic: "subtopic"}
    with open_inputs(
        replace(nouns[0], subtopic=None),
        dict(zip(runs, nouns[1:], strict=True)),
        memory=job.memory,
        need_score=bool(job.pooled),
        semantics=job.semantics,
        may_be_empty=True,
        facts={**facts, **weight, **more},
        seen=job.columns("hit"),
        noted=True,
    ) as (label_input, inputs):
        named = {"": label_input} | {f"run {name}": one for name, one in inputs.items()}
    for one in inputs.values():
        check_ordered(one)
    given = Catalogue.of(catalogue)
    if isinstance(given.train, str | PathLike):
        train = read(labels.data.sparkSession, os.fspath(given.train), None)
        given = replace(given, train=train)
    if given.train is not None:
        check_frame(given.train, TRAIN)
        rows.append(FrameRows(given.train, "the DataFrame of train"))
        named[TRAIN] = _training(rows[-1], label_input, job)
    sides = sides_of(rows, named)
    if labels.subtopic is not None:
        sides[0] = replace(sides[0], subtopic=labels.subtopic)
        empty = replace(label_input.source, pieces=lambda names: [])
        named[""] = Input(*with_subtopics(empty, label_input.columns, labels.subtopic))
    frames = [one.frame for one in rows]
    if partitions is None:
        partitions = partition_count(labels.data.sparkSession, sizes_of(frames, sides))
    count = positive(partitions, "partitions")
    return SparkRequest(job, tuple(runs), frames, list(named.values()), sides, count, given)


def _training(rows: FrameRows, labels: Input, job: Job) -> Input:
    """Return what queries had in training, once its columns are checked."""
    (opener,) = beside(Catalogue(train=rows.source()), labels, job).values()
    with opened(TRAIN, opener, labels) as one:
        return one


def is_frame(value: Any) -> bool:
    """Return whether a value is a DataFrame of Spark."""
    return all(hasattr(value, name) for name in ("mapInArrow", "schema", "sparkSession"))


def check_inputs(labels: Labels, runs: Mapping[str, Predictions]) -> None:
    """Raise UsageError if an input is no DataFrame of Spark, or is to be read as none can be."""
    for one in (labels, *runs.values()):
        check_frame(one.data, str(one.role))
        for name in _OF_FILES:
            told = getattr(one, name, None)
            if told is not None and told not in CELLS:
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
