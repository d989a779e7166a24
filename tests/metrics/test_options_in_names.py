"""Options of one metric alone, which stand in its name: judged_only, and gain=exp."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import rankmill
from rankmill.errors import UsageError
from rankmill.metrics.registry import REGISTRY, parse
from trec_files import random_sides

JUDGED = [one for one in REGISTRY.values() if "judged_only" in [each.name for each in one.options]]


def named(example: str, option: str) -> str:
    """The name of an example, with one more option."""
    name, at, cut = example.partition("@")
    inner = f"{name[:-1]},{option})" if name.endswith(")") else f"{name}({option})"
    return f"{inner}{at}{cut}"


def evaluated(sides: Any, metrics: list[str], **semantics: Any) -> Any:
    rules = rankmill.Semantics(order="item_descending", **semantics)
    return rankmill.evaluate(*sides, metrics, semantics=rules, per_query=True)


@pytest.mark.small
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("no_relevant", ["skip", "scored"])
def test_judged_only_of_one_metric_is_that_of_all(seed: int, no_relevant: str) -> None:
    rng = Random(seed)
    while True:
        sides = random_sides(rng)
        if any(level > 0 for found in sides[0].values() for level in found.values()):
            break
    names = [one.example for one in JUDGED if one.name != "lrap"]  # which takes no order
    both = evaluated(
        sides,
        [*names, *(named(one, "judged_only") for one in names)],
        no_relevant=no_relevant,
        unpredicted="skip",
    )
    alone = evaluated(sides, names, judged_only=True, no_relevant=no_relevant, unpredicted="skip")
    plain = evaluated(sides, names, no_relevant=no_relevant, unpredicted="skip")
    for name in names:
        assert both.metrics[named(name, "judged_only")] == alone.metrics[name], name
        assert both.metrics[name] == plain.metrics[name], name


@pytest.mark.small
@pytest.mark.parametrize("seed", range(4))
def test_gains_of_one_metric_are_those_of_all(seed: int) -> None:
    sides = random_sides(Random(seed))
    names = ["ndcg@10", "ndcg", "dcg@3"]
    more = ["ndcg(gain=exp)@10", "nDCG(dcg='exp-log2')", "dcg(judged_only,gain=exp)@3"]
    both = evaluated(sides, [*names, *more], no_relevant="scored")
    alone = evaluated(sides, names, gain_function="exp", no_relevant="scored")
    assert both["ndcg(gain=exp)@10"] == alone["ndcg@10"]
    assert both["ndcg(gain=exp)"] == alone["ndcg"]
    judged = evaluated(
        sides, ["dcg@3"], gain_function="exp", judged_only=True, no_relevant="scored"
    )
    assert both["dcg(gain=exp,judged_only)@3"] == judged["dcg@3"]


@pytest.mark.small
def test_a_hit_beyond_the_cutoff_moves_up() -> None:
    sides = {"q": {"a": 1, "b": 0}}, {"q": {"x": 0.9, "y": 0.8, "b": 0.5, "a": 0.4}}
    name = "precision(judged_only)@2"
    assert rankmill.evaluate(*sides, name)[name] == 0.5


@pytest.mark.small
def test_names() -> None:
    assert parse("P(judged_only)@10").text == "P(judged_only)@10"
    assert parse("P( judged_only = True, rel=2)@10").text == "P(rel=2,judged_only)@10"
    assert parse("nDCG(dcg='log2')@5").text == "nDCG@5"
    assert parse('nDCG(dcg="exp-log2")@5').text == "nDCG(gain=exp)@5"
    assert parse("iprec(judged_only)@0.1").text == "iprec(judged_only)@0.1"


@pytest.mark.small
@pytest.mark.parametrize(
    ("metric", "semantics", "told"),
    [
        ("bpref(judged_only)", {}, "judged_only, which is not a parameter"),
        ("map(gain=exp)", {}, "gain=exp"),
        ("ndcg(gain=log)", {}, "expected exp"),
        ("P(judged_only=no)@5", {}, "expected true"),
        ("ndcg(gain=exp)", {"gain_function": "exp"}, "gain function of its own"),
        ("map(judged_only)", {"order": "expected"}, "needs one order of equal confidences"),
    ],
)
def test_what_is_refused(metric: str, semantics: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        rankmill.evaluate({"q": ["a"]}, {"q": ["a"]}, metric, semantics=semantics)


@pytest.mark.small
def test_explain_has_the_gains_of_the_metric() -> None:
    sides = {"q": {"a": 3, "b": 1}}, {"q": {"b": 0.9, "a": 0.5}}
    traced = rankmill.explain(*sides, "ndcg(gain=exp)", "q")
    assert traced.value == rankmill.evaluate(*sides, "ndcg(gain=exp)")["ndcg(gain=exp)"]
    with pytest.raises(UsageError, match="leave judged_only out"):
        rankmill.explain(*sides, "map(judged_only)", "q")
