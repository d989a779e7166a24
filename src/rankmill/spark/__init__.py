"""The same engine on Spark: rows are shuffled by query, and each partition gives an exact state."""

from rankmill.spark.run import evaluate, evaluate_runs

__all__ = ["evaluate", "evaluate_runs"]
