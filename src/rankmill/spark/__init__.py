"""The same engine on Spark: each task has the rows of some queries, and gives an exact state."""

from rankmill.spark.comparing import compare
from rankmill.spark.gating import gate
from rankmill.spark.planning import plan, plan_runs
from rankmill.spark.run import evaluate, evaluate_runs

__all__ = ["compare", "evaluate", "evaluate_runs", "gate", "plan", "plan_runs"]
