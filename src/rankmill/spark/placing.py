"""Where the rows of a system are scored: where they are, if that is known to do, or shuffled."""

from dataclasses import dataclass
from typing import Any, Literal

from rankmill.engine.state import State
from rankmill.spark.broadcasting import broadcast
from rankmill.spark.layout import arrow_schema, column
from rankmill.spark.merging import collected
from rankmill.spark.partitions import PARTITION_BYTES
from rankmill.spark.request import Request
from rankmill.spark.rows import Returned, RowFormat
from rankmill.spark.tasks import Scoring

# Labels may take so many times the limit in memory, as the limit is one for files.
UNPACKED = 4


@dataclass(frozen=True)
class Placing:
    """How the rows of a system come to the tasks that score them, and why so."""

    how: Literal["broadcast", "shuffle"]
    why: str


def placing_of(request: Request, number: int) -> Placing:
    """Return how the rows of a system come to the tasks."""
    if request.told:
        return Placing("shuffle", "the number of partitions was told")
    size = request.sizes[0]
    if size is None:
        return Placing("shuffle", "Spark does not tell the size of the labels")
    if not request.sides[number].columns.wide:
        return Placing("shuffle", "predictions are long, so that a query may be in two partitions")
    most = limit(request.frames[0].sparkSession)
    if size > most:
        return Placing("shuffle", f"labels have {size:,} bytes, which is more than {most:,}")
    return Placing("broadcast", f"labels have {size:,} bytes, which is at most {most:,}")


def limit(session: Any) -> int:
    """Return how many bytes of labels are sent to all tasks, by the statistics of Spark."""
    own = int(session._jsparkSession.sessionState().conf().autoBroadcastJoinThreshold())
    return 0 if own < 0 else max(own, PARTITION_BYTES)


def first_pass(request: Request) -> dict[str, Returned]:
    """Return the states of the systems, by the names of their sides."""
    numbers = range(1, len(request.sides))
    small = [one for one in numbers if placing_of(request, one).how == "broadcast"]
    labels = _labels_of(request) if small else None
    returned = [broadcast(request, one, labels) for one in small if labels is not None]
    found = {one.system: one for one in returned if one is not None}
    left = [one for one in numbers if request.sides[one].system not in found]
    if left:
        found |= {one.system: one for one in _shuffled(request, left)}
    return found


def _labels_of(request: Request) -> Any:
    """Return the labels as a table; None if they take too much memory."""
    frame, side = request.frames[0], request.sides[0]
    labels = frame.select(*(column(frame, name).alias(name) for name in side.slots)).toArrow()
    return labels if labels.nbytes <= UNPACKED * limit(frame.sparkSession) else None


def _shuffled(request: Request, numbers: list[int]) -> list[Returned]:
    rows, sides = request.rows(0, *numbers)
    form = RowFormat.of(State.of(request.job).to_row())
    task = Scoring(request.metrics, request.options, tuple(sides), arrow_schema(rows), form)
    # A state without confidences is so small that the driver merges those of all partitions.
    tree = request.partitions if request.job.pooled else 0
    return collected(rows, task, State, form, tree)
