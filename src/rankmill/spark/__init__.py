"""The same engine on Spark: rows are shuffled by query, and each partition gives an exact state."""

from rankmill.spark.comparing import compare
from rankmill.spark.gating import gate
from rankmill.spark.run import evaluate, evaluate_runs

__all__ = ["compare", "evaluate", "evaluate_runs", "gate"]
