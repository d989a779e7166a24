"""Each name that a library exports is given its name here, or refused by name with the reason."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankmill import UsageError
from rankmill.metrics.elsewhere import exported_names
from rankmill.metrics.libraries import table
from rankmill.metrics.registry import REGISTRY, parse, parse_all

COMPUTED, REFUSED = table("computed"), table("refused")
# Where a library lists its metrics, and what stands there and is none.
LISTS = {
    "ranx": ("ranx", "metrics/__init__.py", set[str]()),
    "rectools": (
        "rectools",
        "metrics/__init__.py",
        {"calc_metrics", "DebiasConfig", "debias_interactions", "PairwiseDistanceCalculator"}
        | {"PairwiseHammingDistanceCalculator", "SparsePairwiseHammingDistanceCalculator"},
    ),
    "recbole": ("recbole", "evaluator/metrics.py", set()),
    "replay": (
        "replay",
        "metrics/__init__.py",
        {"Metric", "CalculationDescriptor", "Mean", "PerUser", "Experiment", "OfflineMetrics"},
    ),
    "lenskit": (
        "lenskit",
        "metrics/__init__.py",
        {"Metric", "MetricFunction", "MeasurementCollector", "ListMetric", "GlobalMetric"}
        | {"RankingMetricBase", "RunAnalysis", "RunAnalysisResult", "quick_measure_model"}
        | {"call_metric", "MetricAccumulator"}
        | {"RankWeight", "GeometricRankWeight", "LogRankWeight"},
    ),
    "elliot": ("elliot", "evaluation/metrics/__init__.py", set()),
    "cornac": ("cornac", "metrics/__init__.py", {"RatingMetric", "RankingMetric"}),
    "torchmetrics": ("torchmetrics", "retrieval/__init__.py", set()),
}
# Names of other releases, or of a part that is not among the others.
BESIDE = {"cornac": {"PHR"}, "replay": {"NCISPrecision"}}


def exported(library: str, tree: ast.Module) -> Iterator[str]:
    """The names as users type them, read without importing the library and all it needs."""
    for node in ast.walk(tree):
        if library == "ranx":
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
                yield from (one.value for one in node.comparators if isinstance(one, ast.Constant))
        elif library == "recbole":
            if isinstance(node, ast.ClassDef):
                yield node.name
        elif library == "elliot":
            if isinstance(node, ast.Dict):
                yield from (one.value for one in node.keys if isinstance(one, ast.Constant))
        elif library in ("replay", "cornac"):
            if isinstance(node, ast.ImportFrom):
                yield from (one.name for one in node.names)
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            yield from ast.literal_eval(node.value)


@pytest.mark.parametrize("library", LISTS)
def test_every_name_of_a_library_is_told(library: str) -> None:
    module, path, no_metrics = LISTS[library]
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{library} is not installed")
    text = (Path(spec.submodule_search_locations[0]) / path).read_text(encoding="utf-8")
    there = set(exported(library, ast.parse(text))) - no_metrics
    told = COMPUTED[library].keys() | REFUSED.get(library, {}).keys()
    assert there | BESIDE.get(library, set()) == told


def test_every_name_of_ir_measures_is_told() -> None:
    there = pytest.importorskip("ir_measures", reason="ir_measures is not installed")
    told = COMPUTED["ir_measures"].keys() | REFUSED["ir_measures"].keys()
    assert set(there.measures.registry) == told


@pytest.mark.small
def test_what_is_told_is_a_metric_here_or_a_reason() -> None:
    for library, names in COMPUTED.items():
        assert not names.keys() & REFUSED.get(library, {}).keys()
        for here in names.values():
            assert all(one.name in REGISTRY for one in parse_all(here.partition(";")[0]))
    rows = exported_names(REGISTRY, refused=True)
    told = [(library, name) for library, names, *_ in rows for name in names.split(", ")]
    every = [(library, one) for of in (COMPUTED, REFUSED) for library in of for one in of[library]]
    assert sorted(told) == sorted(every)
    assert all(bool(here) != bool(why) for *_, here, why in rows)
    assert ["rectools", "MCC", "mcc(items=1000)@10", ""] in rows
    only = exported_names(["mcc"], refused=False)
    assert only == [["rectools", "MCC", "mcc(items=1000)@10", ""]]


@pytest.mark.small
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("PAP", "PAP is not a metric here: in rectools, it is the auc of the best"),
        ("RMSE@3", "in recbole, it is the error of predicted ratings"),
        ("prefs_simp", "in trec_eval, it counts preferences, which only trec_eval reads: pair_acc"),
        ("map_avgjg", "evaluate the labels of each judge, and take the mean"),
        ("RetrievalFallOut", 'type fallout@10 with Semantics(no_relevant="scored"), where its'),
        ("NCISPrecision", "in replay, it weights each prediction"),
        ("PHR", "type hit@10 for that of cornac"),
        ("ndcg_burges", "type ndcg(gain=exp)@10 for that of ranx"),
        ("AveragePopularity", "type popularity@10 for that of recbole"),
    ],
)
def test_typing_such_a_name_tells_what_to_do(name: str, told: str) -> None:
    with pytest.raises(UsageError) as error:
        parse(name)
    assert told in str(error.value)
