"""rankmill: a fast, exact evaluator of ranked predictions.

Labels and predictions are paths, frames, tables or dicts. Columns with usual names, such as
user_id, item_id or score, are found; use ``Labels`` and ``Predictions`` to name others::

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

``help(rankmill.evaluate)`` describes labels and predictions, ``rankmill docs`` lists the pages and
``rankmill metrics`` the metrics, and ``help(rankmill.spark)`` is about Spark DataFrames.

The modules arrays, config, ir_measures, kaggle, metrics, parts, pytrec_eval, spark and torch are
for special uses. Importing rankmill is fast: modules that need NumPy, numba or pyarrow are loaded
on first use.
"""

from __future__ import annotations

from rankmill.package import __version__ as __version__
from rankmill.package import handed_on

# This replaces typing.TYPE_CHECKING, because importing typing would delay the moment when a command
# handles Ctrl-C.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from rankmill import arrays as arrays
    from rankmill import config as config
    from rankmill import ir_measures as ir_measures
    from rankmill import kaggle as kaggle
    from rankmill import metrics as metrics
    from rankmill import parts as parts
    from rankmill import pytrec_eval as pytrec_eval
    from rankmill import spark as spark
    from rankmill import torch as torch
    from rankmill.analysis.compare.compare import compare as compare
    from rankmill.analysis.compare.comparison_request import Tests as Tests
    from rankmill.analysis.compare.view.comparison import Comparison as Comparison
    from rankmill.analysis.explain.evaluators import explain_evaluators as explain_evaluators
    from rankmill.analysis.explain.trace import explain as explain
    from rankmill.analysis.explain.trace_view import Trace as Trace
    from rankmill.engine.convert import convert as convert
    from rankmill.engine.evaluate import evaluate as evaluate
    from rankmill.engine.evaluate import evaluate_runs as evaluate_runs
    from rankmill.engine.evaluate import plan as plan
    from rankmill.engine.head import head as head
    from rankmill.engine.results import Results as Results
    from rankmill.errors import InputError as InputError
    from rankmill.errors import RankmillError as RankmillError
    from rankmill.errors import RegressionError as RegressionError
    from rankmill.errors import ResourceError as ResourceError
    from rankmill.errors import UsageError as UsageError
    from rankmill.metrics.own import metric as metric
    from rankmill.nightly.gate.gate import gate as gate
    from rankmill.nightly.gate.gate import gate_power as gate_power
    from rankmill.nightly.gate.gate_request import Rules as Rules
    from rankmill.nightly.history import History as History
    from rankmill.nightly.rules.verdict import Verdict as Verdict
    from rankmill.results.result import Result as Result
    from rankmill.semantics.semantics import Semantics as Semantics
    from rankmill.sources.nouns import Catalogue as Catalogue
    from rankmill.sources.nouns import Labels as Labels
    from rankmill.sources.nouns import Predictions as Predictions

# Public name -> the module that defines it.
_HOMES = {
    "Catalogue": "sources.nouns",
    "Comparison": "analysis.compare.view.comparison",
    "History": "nightly.history",
    "InputError": "errors",
    "Labels": "sources.nouns",
    "Predictions": "sources.nouns",
    "RankmillError": "errors",
    "RegressionError": "errors",
    "ResourceError": "errors",
    "Result": "results.result",
    "Results": "engine.results",
    "Rules": "nightly.gate.gate_request",
    "Semantics": "semantics.semantics",
    "Tests": "analysis.compare.comparison_request",
    "Trace": "analysis.explain.trace_view",
    "UsageError": "errors",
    "Verdict": "nightly.rules.verdict",
    "compare": "analysis.compare.compare",
    "convert": "engine.convert",
    "evaluate": "engine.evaluate",
    "evaluate_runs": "engine.evaluate",
    "explain": "analysis.explain.trace",
    "explain_evaluators": "analysis.explain.evaluators",
    "gate": "nightly.gate.gate",
    "gate_power": "nightly.gate.gate",
    "head": "engine.head",
    "metric": "metrics.own",
    "plan": "engine.evaluate",
}
# The public modules, which hand the other names on.
_MODULES = (
    *("arrays", "config", "ir_measures", "kaggle", "metrics", "parts", "pytrec_eval", "spark"),
    "torch",
)

__all__ = [*_HOMES]
__getattr__, __dir__ = handed_on(__name__, _HOMES, _MODULES, {"ir_measures": "ir_measures"})
