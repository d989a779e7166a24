"""Weights of queries: means as the oracle has them, and the same bits however labels are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rankmill
import strategies
from flat import flat
from rankmill import InputError, UsageError
from rankmill.columns.ids import slice_ids, take_ids, to_ids
from rankmill.engine import held_labels as labels_of_jobs
from rankmill.matching.index import LabelIndex
from rankmill.matching.label_lists import LabelLists
from rankmill.parts import State
from rankmill.sources.rows.facts import QueryFacts
from sealed_rows import resealed
from semantic_cases import (
    joinable,
    semantic_cases,
)
from strategies import Case, examples

SOME = ["map@3", "ndcg", "first_hit", "recall@2"]
FIELDS = ("metrics", "standard_errors", "queries", "effective_queries", "audit")


def numbers(result: rankmill.Result) -> list[Any]:
    """Return all that must be the same to the bit."""
    return [getattr(result, field) for field in FIELDS]


@pytest.mark.small
@settings(max_examples=examples(30))
@given(semantic_cases(), st.sampled_from([1.0, 0.1, 1e100]))
def test_equal_weights_give_the_bits_of_none(case: Case, weight: float) -> None:
    assume(joinable(case))
    labels, predictions = strategies.wide_labels(case), strategies.wide_predictions(case)
    weighted = labels.append_column("w", pa.array([weight] * len(labels), "f8"))
    try:
        plain = rankmill.evaluate(labels, predictions, SOME)
    except InputError:
        return
    found = rankmill.evaluate(rankmill.Labels(weighted, weight="w"), predictions, SOME)
    assert numbers(found)[:3] == numbers(plain)[:3]
    assert (found.effective_queries, plain.effective_queries) == (plain.queries or None, None)
    assert found.per_query.drop_columns("weight").equals(plain.per_query)


# ------------------------------------------------------------------ every way to read labels


def inputs(queries: int = 300, text: bool = False) -> tuple[pa.Table, pa.Table]:
    """Return wide labels with weights, and predictions of some of the queries and of others."""
    draw = np.random.default_rng(queries)
    ids = np.arange(queries)
    name = (lambda one: [f"q{i:05}" for i in one]) if text else list
    labels = {
        "query": name(ids),
        "items": [draw.choice(20, draw.integers(0, 5), replace=False).tolist() for _ in ids],
        "w": np.where(draw.random(queries) < 0.1, 0, draw.gamma(0.5, 1e3, queries) + 1e-9),
    }
    kept = np.append(ids[draw.random(queries) < 0.9], queries + np.arange(9))
    found = [draw.choice(20, draw.integers(0, 7), replace=False).tolist() for _ in kept]
    return pa.table(labels), pa.table({"query": name(kept), "items": found})


def to_long(table: pa.Table, order: np.random.Generator | None = None) -> pa.Table:
    """Return a row an item, shuffled with `order`; queries without an item are lost."""
    parents = np.repeat(np.arange(len(table)), [len(one) for one in table["items"].to_pylist()])
    rows = table.drop_columns("items").take(parents)
    rows = rows.append_column("item", pa.array(table["items"].combine_chunks().flatten()))
    return rows if order is None else rows.take(order.permutation(len(rows)))


@pytest.mark.small
def test_weights_are_joined_by_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that are read in another order than the labels belong to the same queries."""
    wide, predictions = inputs()
    labels = to_long(wide)
    expected = numbers(rankmill.evaluate(rankmill.Labels(labels, weight="w"), predictions, SOME))
    in_order = labels_of_jobs.read_facts

    def reversed_facts(*arguments: Any, **options: Any) -> QueryFacts:
        found = in_order(*arguments, **options)
        places = np.arange(len(found.queries.keys))[::-1].copy()
        columns = {name: column.take(pa.array(places)) for name, column in found.columns.items()}
        return QueryFacts(take_ids(found.queries, places), columns)

    monkeypatch.setattr(labels_of_jobs, "read_facts", reversed_facts)
    assert (
        numbers(rankmill.evaluate(rankmill.Labels(labels, weight="w"), predictions, SOME))
        == expected
    )


@pytest.mark.small
def test_unknown_queries_have_no_weight() -> None:
    one = to_ids(np.array([7]), "ids")
    empty = LabelIndex(slice_ids(one, 0, 0), LabelLists(np.zeros(1, np.int64), one, np.empty(0)))
    index = LabelIndex(one, LabelLists(np.zeros(2, np.int64), one, np.empty(0)))
    assert index.weights_at(np.array([0])) is None
    index.weights, empty.weights = np.array([3.0]), np.empty(0)
    assert index.weights_at(np.array([-1, 0, -1])).tolist() == [0, 3, 0]
    assert empty.weights_at(np.array([-1])).tolist() == [0]


def test_states_with_other_weights_do_not_merge() -> None:
    labels, predictions = inputs(9)
    labels = labels.append_column("v", labels["w"])
    states = [
        rankmill.parts.evaluate_part(rankmill.Labels(labels, weight=w), predictions, "map")
        for w in ("w", "v", None)
    ]
    for other in states[1:]:
        with pytest.raises(UsageError, match="states of other scope do not merge"):
            states[0].merge(other)
    assert len({state.fingerprint for state in states}) == 3
    assert '"weight"' not in states[2].to_row()["scope"]
    row = states[0].to_row()
    with pytest.raises(UsageError, match="map is a mean over 10 of 9 queries"):
        State.from_row(
            resealed(row | {"map.positive": 10, "queries": 9, "map.wv": "0", "map.wwv": "0"})
        )


def test_several_systems_and_their_joined_table(tmp_path: Path) -> None:
    labels, predictions = inputs()
    runs = {"a": predictions, "b": predictions.slice(0, 100)}
    results = rankmill.evaluate_runs(
        rankmill.Labels(labels, weight="w"), runs, "map", semantics={"unpredicted": "skip"}
    )
    for name, one in results.items():
        alone = rankmill.evaluate(
            rankmill.Labels(labels, weight="w"),
            runs[name],
            "map",
            semantics={"unpredicted": "skip"},
        )
        assert numbers(one) == numbers(alone)
    from rankmill.analysis.compare.queries.alignment import join_per_query

    joined = join_per_query(results)
    assert joined.column_names == ["query", "a:map", "b:map", "weight"]
    weights = dict(zip(labels["query"].to_pylist(), labels["w"].to_pylist(), strict=True))
    found = zip(joined["query"].to_pylist(), joined["weight"].to_pylist(), strict=True)
    assert all(weights[query] == weight for query, weight in found)


# ------------------------------------------------------------------ rules and refusals

LABELS = pa.table({"query": [1, 2, 3], "items": [[1], [2], [3]], "w": [1.0, 3.0, 4.0]})
PREDICTIONS = pa.table({"query": [1, 2], "items": [[1], [9, 2]]})


@pytest.mark.small
def test_a_query_without_predictions_keeps_its_weight() -> None:
    result = rankmill.evaluate(rankmill.Labels(LABELS, weight="w"), PREDICTIONS, "map")
    assert result["map"] == (1 * 1 + 3 * 0.5 + 4 * 0) / 8
    assert result.effective_queries == 8**2 / (1 + 9 + 16)
    skipped = {"unpredicted": "skip"}
    assert rankmill.evaluate(
        rankmill.Labels(LABELS, weight="w"), PREDICTIONS, "map", semantics=skipped
    )["map"] == ((1 * 1 + 3 * 0.5) / 4)


def weighted_by(values: Any) -> pa.Table:
    return LABELS.set_column(2, "w", [values])


def test_weights_that_are_accepted() -> None:
    narrow = pa.array([1, 3, 4], pa.uint8()), pa.array([1, 3, 4], pa.float32())
    for values in ([1, 3, 4], *narrow, ["1", "3.0", "4"]):
        result = rankmill.evaluate(
            rankmill.Labels(weighted_by(values), weight="w"), PREDICTIONS, "map"
        )
        assert result["map"] == 2.5 / 8
    zeros = rankmill.evaluate(
        rankmill.Labels(weighted_by([0.0, -0.0, 0.0]), weight="w"), PREDICTIONS, "map"
    )
    assert numbers(zeros)[:4] == [{"map": None}, {"map": None}, 3, None]
    one = rankmill.evaluate(
        rankmill.Labels(weighted_by([0.0, 1e100, 0.0]), weight="w"), PREDICTIONS, "map"
    )
    assert numbers(one)[:4] == [{"map": 0.5}, {"map": None}, 3, 1.0]


def test_rows_of_a_query_must_agree() -> None:
    labels = pa.table({"query": [1, 1, 2], "item": [1, 2, 2], "w": [1.0, 1.5, 2.0]})
    with pytest.raises(InputError, match=r"query 1 has 1\.0 and 1\.5 in column 'w'"):
        rankmill.evaluate(rankmill.Labels(labels, weight="w", binary=True), PREDICTIONS, "map")


def test_the_column_of_weights_is_no_gain(recwarn: pytest.WarningsRecorder) -> None:
    long = to_long(LABELS)
    found = rankmill.evaluate(rankmill.Labels(long, weight="w"), PREDICTIONS, SOME)
    assert numbers(found) == numbers(
        rankmill.evaluate(rankmill.Labels(LABELS, weight="w"), PREDICTIONS, SOME)
    )
    named = long.rename_columns(["query", "score", "item"])  # a name of gains, too
    assert numbers(
        rankmill.evaluate(rankmill.Labels(named, weight="score"), PREDICTIONS, SOME)
    ) == numbers(found)
    assert not recwarn.list


def test_requests_that_cannot_be_weighted() -> None:
    def refused(told: str, labels: Any = LABELS, metrics: str = "map", **options: Any) -> None:
        with pytest.raises((UsageError, InputError), match=told):
            flat(rankmill.evaluate, labels, PREDICTIONS, metrics, **({"weight": "w"} | options))

    refused(
        "gap is not a mean over queries, .*: leave out this metric, or Labels.weight=",
        metrics="map,gap",
    )
    refused("unlabelled 'zero' counts them: choose", semantics={"unlabelled": "zero"})
    refused("no column 'x' for the weight; the columns are query", weight="x")
    refused("weight is a int; expected the name of a column", weight=3)
    no_columns = "holds lists of items and no columns, so there is no weight 'w'"
    refused(f"the dict of labels {no_columns}", {1: [1], 2: [2]})
    refused(no_columns, [[1], [2]])
    refused(no_columns, rankmill.arrays.Ragged.from_lists([[1], [2]]))


def test_explain_shows_the_query_alone() -> None:
    """The weight of a query changes no value of its own."""
    found = rankmill.explain(rankmill.Labels(LABELS, weight="w"), PREDICTIONS, "map", 2)
    assert (found.value, found.scope.weight) == (0.5, None)
    compared = rankmill.explain_evaluators(
        rankmill.Labels(LABELS, weight="w"),
        PREDICTIONS,
        "map",
        ["default", "trec_eval", "torchmetrics"],
    )
    assert compared.value == 2.5 / 8
    assert compared.wholes["trec_eval"].value == 2.5 / 4
    assert "scope: queries weighted by w" in repr(compared)


# ------------------------------------------------------------------ what is shown


def test_without_weights_nothing_of_them_is_shown(run: Any) -> None:
    result = rankmill.evaluate(LABELS, PREDICTIONS, "map")
    assert "effective" not in repr(result)
    assert "weight" not in result.to_json()
    assert "effective" not in result.to_json()
    assert result.to_arrow().column_names == ["metric", "value", "standard_error", "queries"]
    assert result.inputs["labels"]["unread"] == ["w"]


def test_the_plan_knows_the_column(tmp_path: Path) -> None:
    pq.write_table(LABELS, tmp_path / "l.parquet")
    pq.write_table(PREDICTIONS, tmp_path / "p.parquet")
    files = tmp_path / "l.parquet", tmp_path / "p.parquet"
    plain, weighted = (flat(rankmill.plan, *files, "map", weight=one) for one in (None, "w"))
    assert weighted["labels"]["bytes"] > plain["labels"]["bytes"]
    assert weighted["scope"]["weight"] == "w"
