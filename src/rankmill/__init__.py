"""rankmill: a fast, exact evaluator of ranked predictions.

Labels and predictions are paths, frames, tables or dicts. ``Labels`` and ``Predictions`` name
columns without a usual name, which is one such as user_id, item_id or score::

    import rankmill

    labels = {"ann": ["a", "b"], "bob": ["c"]}
    old, new = {"ann": ["x", "a"], "bob": ["c"]}, {"ann": ["a", "b"], "bob": ["c"]}
    result = rankmill.evaluate(labels, new, ["map@12", "recall@5"])
    print(result, result["map@12"], result.to_pandas(), result.per_query)

    print(rankmill.evaluate(labels, new, "official", semantics="trec_eval"))
    print(rankmill.compare(labels, {"old": old, "new": new}, "map@12", by="label_count"))
    verdict = rankmill.gate(labels, new, "map@12 drop <= 1%", baseline=old)
    rankmill.History("history").record(verdict)
    verdict.raise_for_failure()

``help(rankmill.evaluate)`` tells what is taken as labels and predictions, ``rankmill docs`` lists
pages and ``rankmill metrics`` the metrics; ``help(rankmill.spark)`` is about DataFrames of Spark.

The modules arrays, config, kaggle, metrics, parts, spark and torch hold what fewer programs need.
Importing rankmill is cheap: modules that need NumPy, numba or pyarrow are loaded on first use.
"""

from __future__ import annotations

import sys
from types import ModuleType

from rankmill.homes import handed_on
from rankmill.version import __version__ as __version__

# This replaces typing.TYPE_CHECKING, because importing typing would delay the moment when a command
# handles Ctrl-C.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from rankmill import arrays as arrays
    from rankmill import config as config
    from rankmill import kaggle as kaggle
    from rankmill import metrics as metrics
    from rankmill import parts as parts
    from rankmill import spark as spark
    from rankmill import torch as torch
    from rankmill.compare.asked import Tests as Tests
    from rankmill.compare.compare import compare as compare
    from rankmill.compare.comparison import Comparison as Comparison
    from rankmill.compare.stability import stability as stability
    from rankmill.compare.stability_view import Stability as Stability
    from rankmill.engine.convert import convert as convert
    from rankmill.engine.evaluate import evaluate as evaluate
    from rankmill.engine.evaluate import evaluate_runs as evaluate_runs
    from rankmill.engine.head import head as head
    from rankmill.engine.plan import plan as plan
    from rankmill.engine.results import Results as Results
    from rankmill.errors import InputError as InputError
    from rankmill.errors import RankmillError as RankmillError
    from rankmill.errors import RegressionError as RegressionError
    from rankmill.errors import ResourceError as ResourceError
    from rankmill.errors import UsageError as UsageError
    from rankmill.explain.evaluators import explain_evaluators as explain_evaluators
    from rankmill.explain.trace import explain as explain
    from rankmill.explain.trace_view import Trace as Trace
    from rankmill.fuse.fuse import fuse as fuse
    from rankmill.gate.asked import Rules as Rules
    from rankmill.gate.gate import gate as gate
    from rankmill.gate.history import History as History
    from rankmill.gate.power import gate_power as gate_power
    from rankmill.gate.verdict import Verdict as Verdict
    from rankmill.results.result import Result as Result
    from rankmill.semantics.semantics import Semantics as Semantics
    from rankmill.sources.nouns import Catalogue as Catalogue
    from rankmill.sources.nouns import Labels as Labels
    from rankmill.sources.nouns import Predictions as Predictions

# Public name -> the module that defines it.
_HOMES = {
    "Catalogue": "sources.nouns",
    "Comparison": "compare.comparison",
    "History": "gate.history",
    "InputError": "errors",
    "Labels": "sources.nouns",
    "Predictions": "sources.nouns",
    "RankmillError": "errors",
    "RegressionError": "errors",
    "ResourceError": "errors",
    "Result": "results.result",
    "Results": "engine.results",
    "Rules": "gate.asked",
    "Semantics": "semantics.semantics",
    "Stability": "compare.stability_view",
    "Tests": "compare.asked",
    "Trace": "explain.trace_view",
    "UsageError": "errors",
    "Verdict": "gate.verdict",
    "compare": "compare.compare",
    "convert": "engine.convert",
    "evaluate": "engine.evaluate",
    "evaluate_runs": "engine.evaluate",
    "explain": "explain.trace",
    "explain_evaluators": "explain.evaluators",
    "fuse": "fuse.fuse",
    "gate": "gate.gate",
    "gate_power": "gate.power",
    "head": "engine.head",
    "plan": "engine.plan",
    "stability": "compare.stability",
}
# The public modules, which hand the other names on.
_MODULES = ("arrays", "config", "kaggle", "metrics", "parts", "spark", "torch")

__all__ = [
    "Catalogue",
    "Comparison",
    "History",
    "InputError",
    "Labels",
    "Predictions",
    "RankmillError",
    "RegressionError",
    "ResourceError",
    "Result",
    "Results",
    "Rules",
    "Semantics",
    "Stability",
    "Tests",
    "Trace",
    "UsageError",
    "Verdict",
    "compare",
    "convert",
    "evaluate",
    "evaluate_runs",
    "explain",
    "explain_evaluators",
    "fuse",
    "gate",
    "gate_power",
    "head",
    "plan",
    "stability",
]

__getattr__, __dir__ = handed_on(__name__, _HOMES, _MODULES)


class _Package(ModuleType):
    """A package that keeps a public function when a subpackage of the same name is imported.

    Python sets each imported subpackage as an attribute of its package. Without this class,
    ``rankmill.explain`` would become the subpackage as soon as one of its modules is imported.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _HOMES or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
