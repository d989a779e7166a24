"""rankmill: a fast, exact evaluator of ranked predictions.

Importing rankmill is cheap: what needs NumPy, numba or pyarrow is loaded when it is first used.
"""

from __future__ import annotations

__version__ = "0.1.0"

# As typing has it; but loading typing takes longer than all that a command does before it is ready
# for Ctrl-C.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from rankmill.comparing import compare_semantics
    from rankmill.differences import Comparison
    from rankmill.errors import InputError, RankmillError, ResourceError, UsageError
    from rankmill.evaluation import evaluate, evaluate_part, evaluate_runs
    from rankmill.gap import AmongState, CorrectState, global_average_precision
    from rankmill.measures import (
        average_precision,
        dcg,
        f1,
        first_hit_precision,
        hit,
        ndcg,
        precision,
        r_precision,
        recall,
    )
    from rankmill.parts import State, count_part
    from rankmill.planning import plan
    from rankmill.ragged import Ragged
    from rankmill.result import Result
    from rankmill.semantics import Semantics
    from rankmill.state import MeanState
    from rankmill.traced import Trace
    from rankmill.tracing import trace

# Public name -> the module that it lives in.
_HOMES = {
    "Comparison": "differences",
    "compare_semantics": "comparing",
    "InputError": "errors",
    "RankmillError": "errors",
    "ResourceError": "errors",
    "UsageError": "errors",
    "AmongState": "gap",
    "CorrectState": "gap",
    "MeanState": "state",
    "Trace": "traced",
    "trace": "tracing",
    "Ragged": "ragged",
    "Result": "result",
    "Semantics": "semantics",
    "State": "parts",
    "count_part": "parts",
    "evaluate": "evaluation",
    "evaluate_part": "evaluation",
    "evaluate_runs": "evaluation",
    "global_average_precision": "gap",
    "plan": "planning",
    "average_precision": "measures",
    "dcg": "measures",
    "f1": "measures",
    "first_hit_precision": "measures",
    "hit": "measures",
    "ndcg": "measures",
    "precision": "measures",
    "r_precision": "measures",
    "recall": "measures",
}

__all__ = [
    "AmongState",
    "Comparison",
    "CorrectState",
    "InputError",
    "MeanState",
    "Ragged",
    "RankmillError",
    "ResourceError",
    "Result",
    "Semantics",
    "State",
    "Trace",
    "UsageError",
    "average_precision",
    "compare_semantics",
    "count_part",
    "dcg",
    "evaluate",
    "evaluate_part",
    "evaluate_runs",
    "f1",
    "first_hit_precision",
    "global_average_precision",
    "hit",
    "ndcg",
    "plan",
    "precision",
    "r_precision",
    "recall",
    "trace",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rankmill' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"rankmill.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
