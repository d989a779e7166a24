"""gauc, fallout, mcc and yaap by hand and to the formulas of the libraries that have them."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

import rankmill
from rankmill import UsageError
from rankmill.metrics.registry import parse
from strategies import examples

pytestmark = pytest.mark.small


def random_lists(draw: random.Random, ties: int) -> tuple[dict[int, Any], dict[int, Any]]:
    """Every label is predicted; some queries have hits alone, or none."""
    labels, run = {}, {}
    for query in range(12):
        items = [f"i{n}" for n in range(draw.randint(2, 9))]
        labels[query] = draw.sample(items, draw.randint(0, len(items)))
        run[query] = {item: draw.randint(1, ties) / 64 for item in items}
    return {query: listed for query, listed in labels.items() if listed}, run


@pytest.mark.parametrize("ties", [4, 10**6])
@pytest.mark.parametrize("by", ["predictions", "hits"])
def test_gauc_is_the_weighted_mean_of_scikit_learn(by: str, ties: int) -> None:
    """With ties as scikit-learn and the mean ranks of RecBole count them: half a pair."""
    sklearn = pytest.importorskip("sklearn.metrics")
    for seed in range(examples(30)):
        labels, run = random_lists(random.Random(seed), ties)
        total = weights = 0.0
        for query, listed in labels.items():
            right = [item in listed for item in run[query]]
            if not all(right):
                weight = sum(right) if by == "hits" else len(right)
                total += weight * sklearn.roc_auc_score(right, list(run[query].values()))
                weights += weight
        rows = [(q, item, score) for q, one in run.items() for item, score in one.items()]
        names = "query_id", "item_id", "score"
        predictions = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
        semantics = {"order": "expected", "unlabelled": "skip"}
        result = rankmill.evaluate(labels, predictions, f"gauc(by={by})", semantics=semantics)
        found = result.metrics[f"gauc(by={by})"]
        assert found == (pytest.approx(total / weights, rel=1e-13) if weights else None)


def test_gauc_leaves_out_lists_without_a_pair() -> None:
    labels = {1: ["a"], 2: ["b"], 3: ["c"], 4: ["d"]}
    run = {1: ["x", "a", "y"], 2: ["b"], 3: ["x"], 4: []}
    assert rankmill.evaluate(labels, run, "gauc")["gauc"] == 0.5
    assert rankmill.evaluate(labels, run, "gauc@1").metrics["gauc@1"] is None
    with pytest.raises(UsageError, match="a micro-average already"):
        parse("gauc:median")


@pytest.mark.parametrize("metric", ["gauc", "gauc(by=hits)"])
@pytest.mark.parametrize("name", ["default", "zero", "one", "scored"])
def test_a_query_that_gauc_leaves_out_is_null_in_the_table_of_queries(
    metric: str, name: str
) -> None:
    """It has hits alone, none, no predictions, or no label."""
    labels = {1: {"a": 1}, 2: {"b": 1}, 3: {"c": 1}, 4: {"d": 1}, 5: {"e": 0}}
    run = {1: ["x", "a", "y"], 2: ["b"], 3: ["x"], 4: [], 5: ["e", "x"], 6: ["a", "x"]}
    semantics = {} if name == "default" else {"no_relevant": name}
    if name in ("zero", "one"):
        semantics["unlabelled"] = name
    found = rankmill.evaluate(rankmill.Labels(labels), run, [metric, "auc"], semantics=semantics)
    told = found.per_query[metric].to_pylist()
    assert told == [0.5] + [None] * (found.queries - 1)
    assert found[metric] == 0.5
    assert found.per_query["auc"].null_count == 0
    alone = rankmill.evaluate(rankmill.Labels(labels), run, metric, semantics=semantics)
    assert alone.per_query[metric].equals(found.per_query[metric])


def test_a_query_without_a_divisor_is_null_under_a_micro_average() -> None:
    labels = rankmill.Labels({1: {"a": 1}, 2: {"b": 0}, 3: {"c": 1}})
    run = {1: ["x", "a"], 2: ["b"], 3: ["y"]}
    names = ["recall@2:micro", "precision@2:micro"]
    found = rankmill.evaluate(labels, run, names, semantics={"no_relevant": "scored"})
    recall, precision = (found.per_query[name].to_pylist() for name in names)
    assert (recall, precision) == ([1.0, None, 0.0], [0.5, 0.0, 0.0])
    assert (found[names[0]], found[names[1]]) == (1 / 2, 1 / 6)


def test_gauc_by_hand() -> None:
    """The first list has auc 0 and 2 predictions, the second 1 / 2 and 3."""
    labels, run = {1: ["a"], 2: ["b", "c"]}, {1: ["x", "a"], 2: ["b", "x", "c"]}
    found = rankmill.evaluate(labels, run, "gauc,gauc(by=hits)")
    assert (found["gauc"], found["gauc(by=hits)"]) == (0.3, pytest.approx(1 / 3, rel=1e-15))


def test_fallout_by_hand() -> None:
    """Of three wrong predictions the first two ranks have one; alone or beside other metrics."""
    labels, run = {1: ["a", "b"], 2: ["b"], 3: ["z"]}, {1: ["a", "x", "b", "y", "z"], 2: ["b"]}
    alone = rankmill.evaluate(labels, run, "fallout@2")
    assert alone.per_query["fallout@2"].to_pylist() == [1 / 3, 0.0, 1.0]
    assert rankmill.evaluate(labels, run, "fallout@2,map")["fallout@2"] == alone["fallout@2"]
    assert rankmill.explain(labels, run, "fallout@2", 1).value == 1 / 3


def test_mcc_needs_the_number_of_items() -> None:
    with pytest.raises(UsageError, match="mcc needs items, the number N of all items, such as"):
        parse("mcc@10")
    labels, run = {1: ["a", "b"]}, {1: ["a", "x"]}
    # One of two shown is one of two labels, among ten: (10 - 4) / (2 x 8).
    assert rankmill.evaluate(labels, run, "mcc(items=10)@2")["mcc(items=10)@2"] == 6 / 16
    assert rankmill.evaluate(labels, run, "mcc(items=2)@2")["mcc(items=2)@2"] == 0.0


def test_yaap_by_hand() -> None:
    labels, run = {1: ["a", "b"]}, {1: ["a", "x", "b"]}
    total = 1 + 2 / 3
    wanted = math.log((1 + total) / (1 + 2 - total))
    assert rankmill.evaluate(labels, run, "yaap")["yaap"] == pytest.approx(wanted, rel=1e-15)


def test_rbo_of_two_runs() -> None:
    """The other run stands as labels, its scores as gains."""
    one, other = ["a", "b", "c"], {"b": 3.0, "a": 2.0, "d": 1.0}
    labels = {1: other}
    weights, overlap = [1, 0.9, 0.81], [0, 2, 2]
    wanted = sum(w * n / d for d, (w, n) in enumerate(zip(weights, overlap, strict=True), 1))
    found = rankmill.evaluate(labels, {1: one}, "rbo(p=0.9)")["rbo(p=0.9)"]
    assert found == pytest.approx(wanted / sum(weights), rel=1e-14)
    assert rankmill.evaluate(labels, {1: list(other)}, "rbo")["rbo"] == 1.0


def test_kendall_tau_of_two_runs_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for seed in range(20):
        draw = random.Random(seed)
        items = [f"i{n}" for n in range(draw.randint(2, 60))]
        one, other = draw.sample(items, len(items)), draw.sample(items, len(items))
        gains = {item: float(len(items) - place) for place, item in enumerate(other)}
        ranks = [one.index(item) for item in items], [other.index(item) for item in items]
        found = rankmill.evaluate({1: gains}, {1: one}, "tau")["tau"]
        assert found == pytest.approx(stats.kendalltau(*ranks).statistic, abs=1e-12)
