"""How many partitions rows are shuffled into."""

from collections.abc import Sequence
from typing import Any

from rankmill.spark.layout import Side, column

# So many bytes of files go to a partition: in memory they take two to four times as much.
PARTITION_BYTES = 32 << 20
# Spark says that a source whose size it does not know has more than this.
UNKNOWN = 1 << 60


def partition_count(frames: Sequence[Any], sides: Sequence[Side]) -> int:
    """Return a number of partitions that suits the size of what is read."""
    session = frames[0].sparkSession
    usual = int(session.conf.get("spark.sql.shuffle.partitions"))
    size = 0
    for frame, side in zip(frames, sides, strict=True):
        known = _bytes_of(frame.select(*(column(frame, name) for name in side.slots)))
        if known is None:
            return usual
        size += known
    parallel = session.sparkContext.defaultParallelism
    return max(int(parallel), -(-size // PARTITION_BYTES))


def _bytes_of(frame: Any) -> int | None:
    """Return the bytes of a DataFrame by Spark's statistics; None if they are not known."""
    plan = getattr(frame, "_jdf", None)  # sessions of Spark Connect have none
    if plan is None:
        return None
    size = int(plan.queryExecution().optimizedPlan().stats().sizeInBytes())
    return size if size < UNKNOWN else None


def partitions_of(frame: Any, guess: int) -> int:
    """Return how many partitions a DataFrame has; a guess where Spark does not tell."""
    plan = getattr(frame, "_jdf", None)
    return guess if plan is None else max(guess, int(plan.rdd().getNumPartitions()))
