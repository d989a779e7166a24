"""The session of a command, and what it reads."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rankmill.errors import InputError, UsageError, install

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
