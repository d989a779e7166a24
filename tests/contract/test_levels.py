"""rel, depth and judged_only: as trec_eval's -l, -M and -J, and as the oracle under any rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import pytrec_eval
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import catalogue_oracle
import oracle_confidence
import oracle_diversity
import oracle_lists
import rankmill
import semantics_oracle
import strategies
from agreement import CLOSE
from flat import flat
from level_tables import Run, random_run, tables
from lines import expect_lines
from rankmill import UsageError
from rankmill.metrics.registry import REGISTRY
from rankmill.results import audit
from semantic_cases import (
    defined,
    joinable,
    semantic_cases,
    some_semantics,
)
from strategies import Case, examples

# name here -> name there
TREC = {"map": "map", "first_hit": "recip_rank", "rprec": "Rprec", "ndcg": "ndcg", "bpref": "bpref"}
for cutoff in (1, 3, 10):
    TREC |= {
        f"precision@{cutoff}": f"P_{cutoff}",
        f"recall@{cutoff}": f"recall_{cutoff}",
        f"hit@{cutoff}": f"success_{cutoff}",
        f"map@{cutoff}": f"map_cut_{cutoff}",
        f"ndcg@{cutoff}": f"ndcg_cut_{cutoff}",
    }


def cut(run: Run, depth: int | None) -> Run:
    """The first documents of each query in the order of trec_eval, as its -M has them."""
    out = {}
    for query, scores in run.items():
        ranked = sorted(scores, key=lambda one: (scores[one], one), reverse=True)
        out[query] = {document: scores[document] for document in ranked[:depth]}
    return out


@pytest.mark.rows(12)
@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("depth", [None, 1, 5, 12, 1000])
@pytest.mark.parametrize("rel", [None, 1, 2, 3, 4])
def test_trec_eval(rel: int | None, depth: int | None, judged_only: bool) -> None:
    for seed in range(2):
        qrels, run = random_run(seed)
        expected = pytrec_eval.RelevanceEvaluator(
            qrels, set(TREC.values()), relevance_level=rel or 1, judged_docs_only_flag=judged_only
        ).evaluate(cut(run, depth))
        options = {"rel": rel, "depth": depth, "judged_only": judged_only}
        result = flat(
            rankmill.evaluate,
            *tables(qrels, run),
            list(TREC),
            gain="relevance",
            semantics="trec_eval",
            **options,
        )
        assert result.queries == len(qrels)
        for name, there in TREC.items():
            column = result.per_query[result.aliases[name]].to_pylist()
            values = [expected[query][there] for query in result.per_query["qid"].to_pylist()]
            assert column == pytest.approx(values, **CLOSE), name
            assert result[name] == pytest.approx(np.mean(values), **CLOSE), name


@pytest.mark.small
@settings(max_examples=examples(30))
@given(
    semantic_cases(),
    some_semantics(unlabelled="skip"),
    st.sampled_from([None, 1, 3]),
    st.booleans(),
    st.sampled_from([None, 1, 2]),
)
def test_the_walk_ends_at_the_value(
    case: Case, chosen: dict[str, str], depth: int | None, judged_only: bool, rel: int | None
) -> None:
    assume(joinable(case))
    if chosen["order"] in semantics_oracle.OPEN_ORDERS:
        depth = None
    labels, predictions = strategies.wide_labels(case), strategies.wide_predictions(case)
    options: dict[str, Any] = {"gain": "gain"} if case.graded else {}
    options |= {"semantics": chosen, "depth": depth, "judged_only": judged_only, "rel": rel}
    for metric in defined(["map@3", "ndcg", "judged@3", "gap", "rprec"], chosen, confidences=True):
        try:
            result = flat(rankmill.evaluate, labels, predictions, [metric], **options)
        except rankmill.InputError:
            return
        queries = result.per_query[0].to_pylist()
        for place, query in enumerate(queries if metric != "gap" else [None]):
            found = flat(rankmill.explain, labels, predictions, metric, query, **options)
            assert found.scope == result.scope
            if query is None:
                assert found.value == result.metrics[metric]
                continue
            assert found.value == result.per_query[result.aliases[metric]][place].as_py()
            if found.divisor is not None:
                assert found.total / found.divisor == pytest.approx(found.value, **CLOSE)


# ------------------------------------------------------------------ names, words and refusals

LABELS = pa.table(
    {"query": [1, 2], "items": [["a", "b", "c"], ["a"]], "gain": [[2.0, 1.0, 0.0], [2.0]]}
)
PREDICTIONS = pa.table(
    {
        "query": [1, 2, 3],
        "items": [["x", "b", "c", "a", "y"], ["x"], ["a", "b"]],
        "score": [[0.9, 0.8, 0.7, 0.6, 0.5], [0.4], [0.3, 0.2]],
    }
)


@pytest.mark.small
def test_a_result_has_metrics_by_the_name_asked_for_too() -> None:
    asked = ["map", "P_10", "rbp(p=0.5)@5", "map(rel=1)", "ndcg"]
    result = rankmill.evaluate(
        rankmill.Labels(LABELS, gain="gain"),
        PREDICTIONS,
        asked,
        semantics=rankmill.Semantics(rel=2.0),
    )
    assert list(result) == ["map(rel=2)", "P_10(rel=2)", "rbp(p=0.5,rel=2)@5", "map(rel=1)", "ndcg"]
    for name, other in zip(asked, result, strict=True):
        assert result[name] == result[other]
    assert result["ap"] == result["MAP(rel=2.0)"] == result.metrics["map(rel=2)"] == 0.125
    assert result["map(rel=1)"] == (1 / 2 + 2 / 4) / 2 / 2
    twice = rankmill.evaluate(
        rankmill.Labels(LABELS, gain="gain"),
        PREDICTIONS,
        ["map", "map(rel=2)"],
        semantics=rankmill.Semantics(rel=2),
    )
    assert list(twice) == ["map(rel=2)"]
    other = rankmill.evaluate(rankmill.Labels(LABELS, gain="gain"), PREDICTIONS, ["map(rel=2)"])
    assert "map" not in other


@pytest.mark.small
def test_some_metrics_do_not_heed_rel() -> None:
    without = ["ndcg", "ndcg@2", "dcg", "judged@3", "gap"]
    of_two = rankmill.evaluate(
        rankmill.Labels(LABELS, gain="gain"),
        PREDICTIONS,
        without,
        semantics=rankmill.Semantics(rel=2),
    )
    assert (
        of_two.metrics
        == rankmill.evaluate(rankmill.Labels(LABELS, gain="gain"), PREDICTIONS, without).metrics
    )
    taking = {
        name for name, one in REGISTRY.items() if any(each.name == "rel" for each in one.parameters)
    }
    graded = oracle_lists.GRADED - {"rndcg"} | oracle_lists.POWERS | {"ndcg", "dcg"}
    judged = oracle_lists.JUDGED_GAINS | {"judged", "rbp_resid", "unj"}
    others = {
        "gap",
        "num_ret",
        "user_coverage",
        *catalogue_oracle.VALUES,
        *oracle_confidence.VALUES,
        *oracle_diversity.VALUES,
    }
    line = """GRADED: "{name}", if its kernel reads gains;
    otherwise give its row parameters=(REL,): labels and hits may then be those of a least gain"""
    without = graded | judged | others
    expect_lines("tests/support/oracle_lists.py", line, REGISTRY.keys() - taking, without)


@pytest.mark.small
def test_what_was_dropped_is_counted() -> None:
    """The first three of query 1, of which one is unjudged; query 3 is not among the labels."""
    result = rankmill.evaluate(
        rankmill.Labels(LABELS, gain="gain"),
        PREDICTIONS,
        ["first_hit", "judged@3"],
        semantics=rankmill.Semantics(depth=3, judged_only=True),
    )
    assert result["first_hit"] == 0.5
    assert result.per_query["judged@3"].to_pylist() == [1, 0]
    counts = {"items_beyond_depth": 2, "unjudged_items": 4, "queries_predicted": 3}
    assert {name: result.audit[name] for name in counts} == counts
    meaning = audit.meanings(result.semantics, result.scope)["queries_only_predicted"]
    assert meaning.endswith(
        "without a label: left out of means; what is judged of them is wrong in gap"
    )
    assert meaning in result._repr_html_()


@pytest.mark.small
@pytest.mark.parametrize("order", semantics_oracle.OPEN_ORDERS)
def test_depth_is_refused_where_equal_confidences_have_no_order(order: str) -> None:
    for function in (rankmill.evaluate, rankmill.plan):
        with pytest.raises(UsageError, match=f"order {order!r} does not put in order: choose anot"):
            function(LABELS, PREDICTIONS, "map", semantics={"order": order, "depth": 2})
    result = flat(
        rankmill.evaluate, LABELS, PREDICTIONS, "map", semantics={"order": order}, judged_only=True
    )
    assert result["map"] == pytest.approx((1 + 2 / 3) / 2 / 2)


# ------------------------------------------------------------------ parts, gap, evaluators


@pytest.mark.small
def test_parts_of_another_scope_do_not_merge() -> None:
    metrics = ["map", "gap@3"]

    def part(query: int, **scope: Any) -> rankmill.parts.State:
        of_query = [side.filter(pc.field("query") == query) for side in (LABELS, PREDICTIONS)]
        return flat(rankmill.parts.evaluate_part, *of_query, metrics, gain="gain", **scope)

    states = [part(query, depth=2, rel=2) for query in (1, 2, 3)]
    for other in ({}, {"depth": 2}, {"depth": 3, "rel": 2}):
        with pytest.raises(UsageError, match=r"states of other (metrics|scope) do not merge"):
            states[0].merge(part(2, **other))
    whole = states[0].merge(states[1]).merge(rankmill.parts.State.from_row(states[2].to_row()))
    among = rankmill.parts.second_pass(whole, PREDICTIONS)
    result = whole.result(among)
    once = rankmill.evaluate(
        rankmill.Labels(LABELS, gain="gain"),
        PREDICTIONS,
        metrics,
        semantics=rankmill.Semantics(rel=2, depth=2),
    )
    assert result.metrics == once.metrics
    assert result["map"] == once["map"]
    assert (result.scope, result.audit) == (once.scope, once.audit)


@pytest.mark.small
def test_gap_of_judged_predictions_is_held() -> None:
    options = {"gain": "gain", "judged_only": True}
    result = flat(rankmill.evaluate, LABELS, PREDICTIONS, "gap", **options)
    assert result["gap"] == (1 + 2 / 3) / 2
    with pytest.raises(rankmill.InputError, match=r"gap with judged_only holds all .*: allow more"):
        flat(rankmill.evaluate, LABELS, PREDICTIONS, "gap", memory=1, **options)
    with pytest.raises(UsageError, match="gap with judged_only needs all predictions at once"):
        flat(rankmill.parts.evaluate_part, LABELS, PREDICTIONS, "gap", **options)


@pytest.mark.small
def test_scattered_rows_are_grouped_on_disk_for_gap_too() -> None:
    """They take more than the memory allowed, but the judged ones do not."""
    draw = np.random.default_rng(3)
    rows = [(number % 50, str(number // 50), draw.random()) for number in range(5000)]
    names = "query", "item", "score"
    predictions = pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))
    labels = pa.table({"query": range(50), "items": [[str(number)] for number in range(50)]})
    values = [
        rankmill.evaluate(
            labels,
            predictions,
            "gap",
            memory=memory,
            semantics=rankmill.Semantics(judged_only=True),
        ).metrics
        for memory in (1 << 14, 1 << 30)
    ]
    assert values[0] == values[1] == {"gap": 1.0}


@pytest.mark.small
def test_evaluators_are_compared_within_the_scope() -> None:
    options = {"gain": "gain", "rel": 2, "depth": 4}
    found = flat(
        rankmill.explain_evaluators,
        LABELS,
        PREDICTIONS,
        "map",
        ["trec_eval", "default", "sklearn"],
        **options,
    )
    assert (found.metric, found.scope.depth) == ("map(rel=2)", 4)
    assert found.wholes["default"].value == 0.125
    assert found.wholes["sklearn"].kept == ("order",)
    assert "depth 4 may cut through equal confidences" in found.wholes["sklearn"].reason
    assert "scope: relevant from gain 2, the first 4 predictions of each query" in repr(found)
    assert found.to_dict()["scope"] == {"rel": 2, "depth": 4, "judged_only": False}
