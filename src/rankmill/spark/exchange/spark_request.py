"""A request to Spark, checked before it reads a row: sizes, session, and what workers lack."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from os import PathLike
from typing import Any, ParamSpec, TypeVar

from rankmill.engine.held_labels import beside, opened
from rankmill.engine.job import Job, check_subtopics
from rankmill.engine.parts import check_in_parts
from rankmill.errors import InputError, ResourceError, UsageError, install, positive
from rankmill.records import record
from rankmill.sources.files.formats import FORMATS
from rankmill.sources.inputs.inputs import Input, open_inputs
from rankmill.sources.meaning.shapes import NO_FACTS, Kind
from rankmill.sources.nouns import Catalogue, Labels, Predictions, is_spark_frame
from rankmill.sources.rows.subtopics import with_subtopics
from rankmill.spark.exchange.layout import (
    TRAIN,
    Form,
    FrameRows,
    Side,
    arrow_schema,
    check_ordered,
    column,
    shuffled,
    sides_of,
)

# What is told of files, or that one machine alone does.
_OF_FILES = "format", "columns", "encoding"

# The formats that tell what a cell of text holds.
CELLS = [name for name, one in FORMATS.items() if one.files]
OLDEST = (3, 5)


@record(frozen=True)
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
    check_in_parts(job, several=len(runs) > 1)
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


def check_inputs(labels: Labels, runs: Mapping[str, Predictions]) -> None:
    """Raise UsageError if an input is no DataFrame of Spark, or is to be read as none can be."""
    for one in (labels, *runs.values()):
        check_frame(one.data, str(one.role))
        for name in _OF_FILES:
            told = getattr(one, name, None)
            if told is not None and told not in CELLS:
                raise UsageError(
                    f"{name} of {one.role} does not apply to a DataFrame of Spark: leave it out"
                )


def check_frame(frame: Any, what: str) -> None:
    """Raise UsageError if an input is no DataFrame of Spark."""
    if not is_spark_frame(frame):
        raise UsageError(
            f"{what} cannot be a {type(frame).__name__}; expected a DataFrame of Spark"
            f"{' or a path' * (what == TRAIN)}, as another input is one: read it with Spark, or "
            "give all inputs as files or frames of this machine"
        )
    if frame.isStreaming:
        raise UsageError(
            f"{what} cannot be a streaming DataFrame, which never ends: use foreachBatch, or write "
            "it and read it back with spark.read"
        )
    version = frame.sparkSession.version
    if tuple(map(int, version.split(".")[:2])) < OLDEST:
        raise UsageError(f"Spark {version} is too old: expected 3.5 or newer")


# ------------------------------------------------------------------ partitions

# So many bytes of files go to a partition: in memory they take two to four times as much.
PARTITION_BYTES = 32 << 20
# Spark says that a source whose size it does not know has more than this.
UNKNOWN = 1 << 60


def sizes_of(frames: Sequence[Any], sides: Sequence[Side]) -> list[int | None]:
    """Return the bytes of the columns that are read of each DataFrame; None if not known."""
    return [
        _bytes_of(frame.select(*(column(frame, name) for name in side.slots)))
        for frame, side in zip(frames, sides, strict=True)
    ]


def partition_count(session: Any, sizes: Sequence[int | None]) -> int:
    """Return a number of partitions that suits the size of what is read."""
    if None in sizes:
        least = int(session.conf.get("spark.sql.shuffle.partitions"))
    else:
        least = int(session.sparkContext.defaultParallelism)
    return max(least, -(-sum(size or 0 for size in sizes) // PARTITION_BYTES))


def _bytes_of(frame: Any) -> int | None:
    """Return the bytes of a DataFrame by Spark's statistics; None if they are not known."""
    plan = getattr(frame, "_jdf", None)  # sessions of Spark Connect have none
    if plan is None:
        return None
    whole = plan.queryExecution().optimizedPlan()
    leaves = whole.collectLeaves()
    read = sum(int(leaves.apply(i).stats().sizeInBytes()) for i in range(leaves.size()))
    # Spark takes a join to be as large as both sides multiplied.
    size = min(int(whole.stats().sizeInBytes()), read)
    return size if size < UNKNOWN else None


def tasks_of(frame: Any) -> int | None:
    """Return how many partitions a DataFrame has, without a job; None where Spark does not tell."""
    plan = getattr(frame, "_jdf", None)
    if plan is None:
        return None
    execution = plan.queryExecution()
    physical = execution.executedPlan()
    if physical.nodeName() == "AdaptiveSparkPlan":  # which is decided while it runs
        return int(physical.initialPlan().outputPartitioning().numPartitions()) or None
    return int(execution.toRdd().getNumPartitions())


# ------------------------------------------------------------------ the session of a command

_SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".orc": "orc"}
_GZ = ".gz"
# What Spark calls formats that rankmill has another name for, and how to read text.
_FORMATS = {"tsv": "csv", "jsonl": "json"}
_SEPARATORS = {"csv": ",", "tsv": "\t"}


def session(*, quiet: bool = False) -> Any:
    """Return the session of spark-submit, or start one; it shows its progress by stages.

    Raises UsageError if pyspark is not installed.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise UsageError(
            f"pyspark is not installed: {install('spark')}; it needs Java 17 or later"
        ) from None
    builder = SparkSession.builder.appName("rankmill")
    return builder.config("spark.ui.showConsoleProgress", str(not quiet).lower()).getOrCreate()


def read(
    spark: Any,
    text: str,
    told: str | None,
    columns: str | None = None,
    encoding: str | None = None,
) -> Any:
    """Return the DataFrame of a path, of several separated by commas, or of a table.

    `columns` are the names of the columns of text without a header, separated by commas, and
    `encoding` is that of text, as Java calls it. Raises InputError if Spark cannot open it.
    """
    paths = text.split(",")
    name = paths[0].lower().removesuffix(_GZ)
    kind = told or next((k for end, k in _SUFFIXES.items() if name.endswith(end)), "parquet")
    separator = _SEPARATORS.get(kind)
    if columns is not None and separator is None:
        raise UsageError(f"{text} is {kind}, which names its own columns: leave out those given")
    header = "true" if columns is None else "false"
    # Each value stays as it is written, such as 007.
    options = {"header": header, "sep": separator} if separator else {}
    if encoding is not None:
        options["encoding"] = encoding
    with _on_spark(f"{text} cannot be read by Spark as {kind}"):
        if kind == "table":
            return spark.read.table(text)
        frame = spark.read.options(**options).format(_FORMATS.get(kind, kind)).load(paths)
        return frame if columns is None else frame.toDF(*columns.split(","))


def write(values: Any, place: str) -> None:
    """Write a DataFrame as Parquet to a new folder; raises InputError if Spark cannot."""
    with _on_spark(f"{place} cannot be written by Spark"):
        values.write.parquet(place)


@contextmanager
def _on_spark(failure: str) -> Iterator[None]:
    """Raise InputError with the first line of an error of Spark, without the trace of Java."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        java = getattr(error, "java_exception", None)
        text = str(error) if java is None else str(java.getMessage())
        said = next(iter(text.splitlines()), type(error).__name__)
        raise InputError(f"{failure}: {said}") from None


# ------------------------------------------------------------------ what workers cannot do

_LACKING = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'", re.MULTILINE)
_OTHER = re.compile(r"^ImportError: rankmill (\S+) instead of (\S+)", re.MULTILINE)
_OURS = re.compile(r"^rankmill\.errors\.InputError: (.+)", re.MULTILINE)
# What Python says where it gets no more addresses, while it loads libraries or later.
_FULL = re.compile(
    r"failed to map segment|cannot allocate memory|MemoryError|can't start new thread|"
    r"realloc of size|malloc of size|Could not find/load shared object file 'libllvmlite",
    re.IGNORECASE,
)
PYTHON_MEMORY = "spark.executor.pyspark.memory"


Given = ParamSpec("Given")
Found = TypeVar("Found")


def on_spark(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """Let a function tell the way out where tasks cannot run."""

    @wraps(function)
    def run(*args: Given.args, **options: Given.kwargs) -> Found:
        try:
            return function(*args, **options)
        except Exception as error:
            # Spark 4 has a class of its own for this, and Spark 3.5 has none.
            if isinstance(error, ImportError) and "must be installed" in str(error):
                raise UsageError(
                    f"Spark needs a package that is not installed here: {error}: {install('spark')}"
                ) from None
            # pyspark has such an error for classic sessions, and one for Spark Connect.
            text = str(error) if type(error).__name__ == "PythonException" else ""
            if ours := _OURS.search(text):
                raise InputError(ours[1]) from None
            lacking = _LACKING.search(text)
            if lacking is not None:
                raise UsageError(
                    f"the Python of Spark's workers has no module {lacking[1]!r}: install rankmill "
                    "for it, or set PYSPARK_PYTHON to a Python that has it before the session "
                    "starts: on one machine os.environ['PYSPARK_PYTHON'] = sys.executable; "
                    "see 'rankmill docs spark' for clusters"
                ) from None
            other = _OTHER.search(text)
            if other is not None:
                raise UsageError(
                    f"the Python of Spark's workers has rankmill {other[1]}, and the driver has "
                    f"{other[2]}: install the same version for both; see 'rankmill docs spark' for "
                    "clusters"
                ) from None
            limit = _limit() if _FULL.search(text) else None
            if limit is None:
                raise
            raise ResourceError(
                f"{PYTHON_MEMORY} is {limit}, which is too little for the Python of the executors: "
                # It limits addresses, of which libraries reserve more than they use.
                "leave it out, or set it to 1.1GB and four times the rows of a task for each core "
                "of an executor"
            ) from None

    return run


def _limit() -> str | None:
    """Return the limit of the Python of executors, if the session has one."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    return None if session is None else session.conf.get(PYTHON_MEMORY, None)
