"""How large DataFrames are, as far as Spark knows, and how many partitions that makes."""

from collections.abc import Sequence
from typing import Any

from rankmill.spark.exchange.frame_rows import column
from rankmill.spark.exchange.layout import Side

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
