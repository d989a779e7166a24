"""Evaluate and compare in parts, as on a cluster, with exact states that merge."""

from rankmill.analysis.compare.compare import compare_part, compare_state
from rankmill.analysis.compare.differences.comparison_state import ComparisonState
from rankmill.engine.parts import evaluate_part, second_pass
from rankmill.engine.state import State

__all__ = [
    "ComparisonState",
    "State",
    "compare_part",
    "compare_state",
    "evaluate_part",
    "second_pass",
]
