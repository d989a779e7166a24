"""What the values of queries come to other than a mean: exact, mergeable, not tested as means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import pytrec_eval
from conftest import tells
from hypothesis import given
from hypothesis import strategies as st

import rankmill
from random_runs import long_table, random_run
from rankmill import UsageError
from rankmill.metrics.aggregates.distribution import Distribution
from rankmill.metrics.registry import parse

NAMES = ["gm", "median", "p0", "p10", "p62.5", "p100", "sum", "above=0.5"]
VALUES = st.lists(st.sampled_from([-1.0, 0.0, 1e-9, 0.1, 0.25, 0.5, 1.0, 7.0]), max_size=30)


def wanted(name: str, values: list[float]) -> float:
    if name == "gm":
        return math.exp(math.fsum(math.log(max(one, 1e-5)) for one in values) / len(values))
    if name == "sum":
        return math.fsum(values)
    if name == "above=0.5":
        return sum(one > 0.5 for one in values) / len(values)
    return float(np.percentile(values, 50 if name == "median" else float(name[1:])))


def of(name: str, values: list[float], count: int) -> Distribution:
    empty = Distribution(name, np.empty(0), np.empty(0, np.int64), count)
    return empty.with_values(np.array(values), np.ones(len(values), np.int64))


@pytest.mark.small
@given(VALUES, VALUES)
def test_summaries_of_merged_parts(first: list[float], second: list[float]) -> None:
    for name in NAMES:
        one, other = of(name, first, len(first)), of(name, second, len(second))
        merged = [one.merge(other), other.merge(one)]
        merged.append(Distribution.from_row(merged[0].to_row()))
        assert len({each.value for each in merged}) == 1
        if first + second:
            close = {"rel": 1e-12, "abs": 1e-15}
            assert merged[0].value == pytest.approx(wanted(name, first + second), **close)
        else:
            assert merged[0].value is None


def test_geometric_means_equal_trec_eval() -> None:
    qrels, run = random_run(3)
    tables = long_table(qrels, "gain"), long_table(run, "score")
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"gm_map", "gm_bpref"})
    found = evaluator.evaluate(run)
    asked = ["gm_map", "map:gm", "gm_bpref", "map", "map@5:p90", "map(rel=2):above=0.1"]
    result = rankmill.evaluate(*tables, asked, semantics="trec_eval")
    for name in ("gm_map", "gm_bpref"):
        logs = [values[name] for values in found.values()]
        there = pytrec_eval.compute_aggregated_measure(name, logs)
        assert result[name] == pytest.approx(there, rel=1e-12)
    assert result["gm_map"] == result["ap:GM"] == result["map:gm"]
    assert result.standard_errors["gm_map"] is None
    assert result.per_query["gm_map"].equals(result.per_query["map"])
    values = result.per_query["map(rel=2):above=0.1"].to_pylist()
    assert result["map(rel=2):above=0.1"] == sum(one > 0.1 for one in values) / len(values)


@pytest.mark.small
def test_parts_and_queries_that_score_without_a_list() -> None:
    """Of five queries one has no predictions, and one no label but scores 1."""
    labels = pa.table({"query": [1, 2, 3, 4], "items": [["a"], ["a"], ["a"], ["a"]]})
    lists = [["a"], ["b", "a"], ["b"], ["a"]]
    predictions = pa.table({"query": [1, 2, 3, 5], "items": lists})
    semantics = {"unlabelled": "one"}
    asked = ["map:median", "map:sum", "map:above=0.4", "map:p25", "map"]
    whole = rankmill.evaluate(labels, predictions, asked, semantics=semantics)
    assert [*whole.metrics.values()] == [0.5, 2.5, 0.6, 0.0, 0.5]
    parts = [
        rankmill.parts.evaluate_part(
            labels.slice(some, 2), predictions.slice(some, 2), asked, semantics=semantics
        )
        for some in (0, 2)
    ]
    rows: list[Any] = [pa.Table.from_pylist([one.to_row()]).to_pylist()[0] for one in parts]
    merged = rankmill.parts.State.from_row(rows[1]).merge(rankmill.parts.State.from_row(rows[0]))
    assert merged.result().metrics == whole.metrics


@pytest.mark.small
def test_a_comparison_tests_a_summary_by_the_jackknife() -> None:
    qrels, run = random_run(1)
    tables = long_table(qrels, "gain"), long_table(run, "score")
    found = rankmill.compare(tables[0], {"a": tables[1], "b": tables[1]}, ["map", "map:gm"])
    assert found.pooled == ["map:gm"]
    assert found.differences["map:gm"]["b"].tests["t"].p == 1.0
    assert "map:gm is not a mean over queries: its interval is a jackknife over" in str(found)


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("map:gmean", ["map:gmean", "gm", "p10", "above=0.5"]),
        ("map:p101", ["p101"]),
        ("map:", ["no summary ''"]),
        ("gap:gm", ["gap", "no value for each query"]),
    ],
)
def test_refused(text: str, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    tells(caught.value, words)


@pytest.mark.small
def test_refused_by_explain_and_weights() -> None:
    labels = pa.table({"query": [1], "items": [["a"]], "weight": [2.0]})
    with pytest.raises(UsageError, match="map:gm has a summary over all queries"):
        rankmill.explain(labels, labels, "map:gm", 1)
    with pytest.raises(UsageError, match="map:gm is not a mean over queries"):
        rankmill.evaluate(rankmill.Labels(labels, weight="weight"), labels, "map:gm")


def test_a_geometric_mean_takes_no_summary() -> None:
    with pytest.raises(UsageError, match="gm_map is a geometric mean already: leave out :p10"):
        parse("gm_map:p10")
