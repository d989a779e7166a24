"""rankmill: a fast, exact evaluator of ranked predictions.

Importing rankmill is cheap: modules that need NumPy, numba or pyarrow are loaded on first use.
"""

from __future__ import annotations

import sys
from types import ModuleType

from rankmill.version import __version__ as __version__

# This replaces typing.TYPE_CHECKING, because importing typing would delay the moment when a command
# handles Ctrl-C.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from rankmill.cli.config import Config, read_config
    from rankmill.columns.ragged import Ragged
    from rankmill.compare.compare import compare, compare_part, compare_state
    from rankmill.compare.comparison import Comparison
    from rankmill.compare.stability import stability
    from rankmill.compare.stability_view import Stability
    from rankmill.compare.state import ComparisonState
    from rankmill.engine.convert import convert
    from rankmill.engine.evaluate import evaluate, evaluate_runs
    from rankmill.engine.parts import evaluate_part, second_pass
    from rankmill.engine.plan import plan
    from rankmill.engine.results import Results
    from rankmill.engine.state import State
    from rankmill.errors import (
        InputError,
        RankmillError,
        RegressionError,
        ResourceError,
        UsageError,
    )
    from rankmill.explain.evaluators import explain_evaluators
    from rankmill.explain.evaluators_view import EvaluatorDifferences
    from rankmill.explain.trace import explain
    from rankmill.explain.trace_view import Trace
    from rankmill.fuse.fuse import fuse
    from rankmill.gate.gate import gate
    from rankmill.gate.history import History, history
    from rankmill.gate.power import gate_power
    from rankmill.gate.power_view import GatePower
    from rankmill.gate.record import record
    from rankmill.gate.verdict import Verdict
    from rankmill.metrics.arrays import (
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
    from rankmill.metrics.gap_array import global_average_precision
    from rankmill.results.result import Result
    from rankmill.semantics.choices import Semantics

# Public name -> the module that defines it.
_HOMES = {
    "Config": "cli.config",
    "read_config": "cli.config",
    "Comparison": "compare.comparison",
    "ComparisonState": "compare.state",
    "compare": "compare.compare",
    "compare_part": "compare.compare",
    "compare_state": "compare.compare",
    "Stability": "compare.stability_view",
    "stability": "compare.stability",
    "EvaluatorDifferences": "explain.evaluators_view",
    "explain_evaluators": "explain.evaluators",
    "InputError": "errors",
    "RankmillError": "errors",
    "RegressionError": "errors",
    "ResourceError": "errors",
    "UsageError": "errors",
    "Trace": "explain.trace_view",
    "explain": "explain.trace",
    "fuse": "fuse.fuse",
    "History": "gate.history",
    "history": "gate.history",
    "record": "gate.record",
    "Ragged": "columns.ragged",
    "Result": "results.result",
    "Results": "engine.results",
    "Semantics": "semantics.choices",
    "State": "engine.state",
    "second_pass": "engine.parts",
    "Verdict": "gate.verdict",
    "convert": "engine.convert",
    "gate": "gate.gate",
    "GatePower": "gate.power_view",
    "gate_power": "gate.power",
    "evaluate": "engine.evaluate",
    "evaluate_part": "engine.parts",
    "evaluate_runs": "engine.evaluate",
    "global_average_precision": "metrics.gap_array",
    "plan": "engine.plan",
    "average_precision": "metrics.arrays",
    "dcg": "metrics.arrays",
    "f1": "metrics.arrays",
    "first_hit_precision": "metrics.arrays",
    "hit": "metrics.arrays",
    "ndcg": "metrics.arrays",
    "precision": "metrics.arrays",
    "r_precision": "metrics.arrays",
    "recall": "metrics.arrays",
}

__all__ = [
    "Comparison",
    "ComparisonState",
    "Config",
    "EvaluatorDifferences",
    "GatePower",
    "History",
    "InputError",
    "Ragged",
    "RankmillError",
    "RegressionError",
    "ResourceError",
    "Result",
    "Results",
    "Semantics",
    "Stability",
    "State",
    "Trace",
    "UsageError",
    "Verdict",
    "average_precision",
    "compare",
    "compare_part",
    "compare_state",
    "convert",
    "dcg",
    "evaluate",
    "evaluate_part",
    "evaluate_runs",
    "explain",
    "explain_evaluators",
    "f1",
    "first_hit_precision",
    "fuse",
    "gate",
    "gate_power",
    "global_average_precision",
    "history",
    "hit",
    "ndcg",
    "plan",
    "precision",
    "r_precision",
    "read_config",
    "recall",
    "record",
    "second_pass",
    "stability",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rankmill' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"rankmill.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(one for one in globals() if one.startswith("__"))])


class _Package(ModuleType):
    """A package that keeps a public function when a subpackage of the same name is imported.

    Python sets each imported subpackage as an attribute of its package. Without this class,
    ``rankmill.explain`` would become the subpackage as soon as one of its modules is imported.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOMES or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
