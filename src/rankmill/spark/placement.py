"""Where the rows of a system are scored: where they are, if that is known to do, or shuffled."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from rankmill.show.tables import size_text
from rankmill.spark.broadcast import broadcast
from rankmill.spark.exchange.collection import collected
from rankmill.spark.exchange.layout import Side, arrow_schema, column, to_arrow
from rankmill.spark.exchange.partitions import PARTITION_BYTES, tasks_of
from rankmill.spark.exchange.returned_rows import Returned
from rankmill.spark.exchange.spark_request import SparkRequest
from rankmill.spark.exchange.tasks import inputs_of, score
from rankmill.spark.local_join import joined, joined_inputs, together

# Labels may take so many times the limit in memory, as the limit is one for files.
UNPACKED = 4
# Partitions stay in place if they have at most so many bytes of files.
LARGEST = 8 * PARTITION_BYTES


@dataclass(frozen=True)
class Placing:
    """How the rows of a system come to the tasks that score them, and why so.

    Attributes
    ----------
    how : {"broadcast", "in place", "shuffle"}
    why : str
    rows : pyspark.sql.DataFrame or None
        The joined rows of both sides, if these stay in place.
    tasks : int or None
        How many tasks score them; None if Spark decides when it reads the predictions.
    """

    how: Literal["broadcast", "in place", "shuffle"]
    why: str
    rows: Any = None
    tasks: int | None = None


def placing_of(request: SparkRequest, number: int, largest: int = LARGEST) -> Placing:
    """Return how the rows of a system come to the tasks; partitions beyond `largest` are cut."""
    why, size = _why_shuffled(request, number), request.sizes[0]
    if not why:
        most = limit(request.frames[0].sparkSession)
        if size is not None and size <= most:
            return Placing("broadcast", f"the labels are not larger than {size_text(most)}")
        rows = joined(request, number)
        if rows is None:
            known = "are larger than" if size is not None else "may be larger than"
            why = f"the labels {known} {size_text(most)}"
        else:
            tasks = tasks_of(rows) or request.partitions
            held = sum(request.sizes[one] or 0 for one in (0, number)) // tasks
            if held <= largest:
                why = "both sides are partitioned by query in the same way"
                return Placing("in place", why, rows, tasks)
            why = f"a partition of both sides has {size_text(held)}, more than {size_text(largest)}"
    return Placing("shuffle", why, tasks=request.partitions)


def _why_shuffled(request: SparkRequest, number: int) -> str:
    """Return why rows are shuffled, whatever their size is; "" if they need not be."""
    if request.told:
        return "the number of partitions was given"
    if request.training:
        return "the training set is shuffled by query"
    if not hasattr(request.frames[0], "_jdf"):
        return "Spark Connect gives neither sizes nor partitions"
    if not request.sides[number].columns.wide and not together(request, number):
        return "a query of long predictions may be in two partitions"
    return ""


def limit(session: Any) -> int:
    """Return how many bytes of labels are sent to all tasks, by the statistics of Spark."""
    own = int(session._jsparkSession.sessionState().conf().autoBroadcastJoinThreshold())
    return 0 if own < 0 else max(own, PARTITION_BYTES)


def first_pass(request: SparkRequest) -> dict[str, Returned]:
    """Return the states of the systems, by the names of their sides."""
    placings = {number: placing_of(request, number) for number in request.systems}
    sent = any(one.how == "broadcast" for one in placings.values())
    labels = _labels_of(request) if sent else None
    returned, left = [], []
    for number, placing in placings.items():
        one = None
        if placing.how == "broadcast" and labels is not None:
            one = broadcast(request, number, labels)
        if placing.how == "in place":
            returned += _in_place(request, number, placing.rows)
        elif one is None:
            left.append(number)
        else:
            returned.append(one)
    returned += _shuffled(request, left) if left else []
    return {one.system: one for one in returned}


def _labels_of(request: SparkRequest) -> Any:
    """Return the labels as a table; None if they take too much memory."""
    frame, side = request.frames[0], request.sides[0]
    labels = to_arrow(frame.select(*(column(frame, name).alias(name) for name in side.slots)))
    return labels if labels.nbytes <= UNPACKED * limit(frame.sparkSession) else None


def _shuffled(request: SparkRequest, numbers: list[int]) -> list[Returned]:
    return _scored(request, *request.rows(0, *numbers, *request.training))


def _in_place(request: SparkRequest, number: int, rows: Any) -> list[Returned]:
    return _scored(request, rows, [request.sides[one] for one in (0, number)], joined_inputs)


def _scored(
    request: SparkRequest, rows: Any, sides: Sequence[Side], inputs: Any = inputs_of
) -> list[Returned]:
    schema = arrow_schema(rows)
    task = partial(score, job=request.job, sides=sides, schema=schema, inputs=inputs)
    # A state without confidences is so small that the driver merges those of all partitions.
    return collected(rows, task, request.partitions if request.job.pooled else 0)
