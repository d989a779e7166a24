"""The known answers in tables, for the array functions, for evaluate() and for the oracle."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import oracle
import rankmill
from flat import flat
from rankmill.arrays import Ragged

pytestmark = pytest.mark.small

A_TO_E = list("abcde")

# (labels, predictions, cutoff, value)
FIRST_HIT = [
    (["x"], [], 5, 0.0),
    (["x"], ["y"], 5, 0.0),
    (["x"], ["x"], 5, 1.0),
    (["x"], ["x", "y", "z"], 5, 1.0),
    (["x"], ["y", "x"], 5, 1 / 2),
    (["x"], ["y", "x", "x"], 5, 1 / 2),
    (["x"], ["y", "z"], 5, 0.0),
    (["x"], ["y", "z", "x"], 5, 1 / 3),
    (["x"], ["y", "z", "a", "b", "x"], 5, 1 / 5),
    (["x"], ["y", "z", "a", "b", "c", "x"], 5, 0.0),
    (["x"], ["y", "z", "a", "b", "c", "x"], None, 1 / 6),
    ([], ["x"], 5, 0.0),
]
AVERAGE_PRECISION = [
    (A_TO_E, ["b", "c", "a", "d", "e"], 1, 1.0),
    (A_TO_E, ["f", "b", "c", "d", "e"], 1, 0.0),
    (A_TO_E, ["a", "f", "e", "g", "b"], 2, 1 / 2),
    (A_TO_E, ["a", "f", "c", "g", "b"], 3, 5 / 9),
    (A_TO_E, ["d", "c", "b", "a", "e"], 3, 1.0),
    ([1, 2], [9, 1, 8, 2], None, 0.5),
    ([1, 2], [*range(10, 18), 2, 1], None, (1 / 9 + 2 / 10) / 2),
    ([1, 2], [9, 8, 1, 7, 6, 5, 2, 4], None, (1 / 3 + 2 / 7) / 2),
    ([1, 2], [1, 1, 2], None, (1 + 2 / 3) / 2),
    ([1, 1], [1, 1], 2, 1.0),
    ([7], [], 3, 0.0),
    ([], [7], 3, 0.0),
    ([1, 2, 3], [1, 2], 1000, 2 / 3),
]
GRADED = {"a": 3.0, "b": 2.0, "c": 1.0}
LOG3, LOG5 = math.log2(3), math.log2(5)
# (metric, labels, predictions, value); the discounts of ranks 1 to 4 are 1, log2(3), 2, log2(5)
OTHERS = [
    ("precision@4", A_TO_E, ["a", "f", "c"], 2 / 4),
    ("precision@1", A_TO_E, ["a", "f", "c"], 1.0),
    ("recall@2", A_TO_E, ["a", "f", "c"], 1 / 5),
    ("recall", A_TO_E, ["a", "f", "c", "c"], 2 / 5),
    ("hit@1", ["x"], ["y", "x"], 0.0),
    ("hit@2", ["x"], ["y", "x"], 1.0),
    ("hit", ["x"], ["y", "z", "x"], 1.0),
    ("f1@2", A_TO_E, ["a", "f"], 2 / 7),
    ("f1@2", A_TO_E, ["g", "f"], 0.0),
    ("rprec", ["a", "b"], ["c", "b", "a"], 1 / 2),
    ("rprec", ["a", "b", "b"], ["a"], 1 / 2),
    ("dcg", ["a"], ["b", "c", "a"], 1 / 2),
    ("ndcg", ["a"], ["b", "c", "a"], 1 / 2),
    ("ndcg@2", ["a"], ["b", "c", "a"], 0.0),
    ("dcg", GRADED, ["c", "x", "a", "b"], 1 + 3 / 2 + 2 / LOG5),
    ("dcg@3", GRADED, ["c", "x", "a", "b"], 1 + 3 / 2),
    ("ndcg@2", GRADED, ["b", "a"], (2 + 3 / LOG3) / (3 + 2 / LOG3)),
    ("ndcg", GRADED, ["a", "b", "c"], 1.0),
    ("ndcg@1", GRADED, ["c"], 1 / 3),
    ("ndcg", {"a": 1.0, "b": 0.0, "c": -4.0}, ["b", "c", "a"], 1 / 2),
]
NAME = {"map": "average_precision", "first_hit": "first_hit_precision", "rprec": "r_precision"}
BINARY = [(f"first_hit@{k}" if k else "first_hit", ls, p, v) for ls, p, k, v in FIRST_HIT]
BINARY += [(f"map@{k}" if k else "map", ls, p, v) for ls, p, k, v in AVERAGE_PRECISION]
CASES = BINARY + OTHERS


def kind_of(*lists: object) -> pa.DataType:
    return pa.int64() if any(isinstance(i, int) for ls in lists for i in ls) else pa.string()  # type: ignore[attr-defined]


def one_query(labels: object, predictions: list[object]) -> tuple[pa.Table, pa.Table]:
    """Return the two wide tables of a case, with a second query: there must be a label."""
    kind = kind_of(labels, predictions)
    other = 99 if kind == pa.int64() else "other"
    gains = oracle.label_gains(labels) if not isinstance(labels, dict) else labels
    items = list(labels) if not isinstance(labels, dict) else list(gains)
    label_table = pa.table(
        {
            "query_id": [0, 1],
            "items": pa.array([items, [other]], pa.list_(kind)),
            "gain": pa.array([[float(gains[i]) for i in items], [1.0]]),
        }
    )
    return label_table, pa.table(
        {"query_id": [0, 1], "items": pa.array([predictions, []], pa.list_(kind))}
    )


def call(text: str, labels: object, predictions: list[object]) -> np.ndarray:
    """Return the array function's value of that metric on one query."""
    name, k = oracle.parse(text)
    kind = pa.list_(kind_of(labels, predictions))
    function = getattr(rankmill.arrays, NAME.get(name, name))
    arguments = {} if name == "rprec" else {"k": k}
    if isinstance(labels, dict):
        arguments["gain"] = Ragged.from_lists([list(labels.values())])
    return function(
        Ragged.from_arrow(pa.array([list(labels)], kind)),  # type: ignore[call-overload]
        Ragged.from_arrow(pa.array([predictions], kind)),
        **arguments,
    )


@pytest.mark.parametrize(("text", "labels", "predictions", "expected"), CASES)
def test_array_function(
    text: str, labels: object, predictions: list[object], expected: float
) -> None:
    found = call(text, labels, predictions)
    assert found.dtype == np.float64
    assert found.shape == (1,)
    assert found[0] == pytest.approx(expected, rel=1e-14, abs=1e-15)


@pytest.mark.parametrize(("text", "labels", "predictions", "expected"), CASES)
def test_oracle_knows_too(
    text: str, labels: object, predictions: list[object], expected: float
) -> None:
    found = oracle.query_value(text, labels, predictions)
    assert found == pytest.approx(expected, rel=1e-14, abs=1e-15)


@pytest.mark.parametrize(("text", "labels", "predictions", "expected"), CASES)
def test_evaluate(text: str, labels: object, predictions: list[object], expected: float) -> None:
    """The second query has a label and no predictions, so the mean is half of the value."""
    has_label = bool(oracle.label_gains(labels))
    graded = "gain" if isinstance(labels, dict) else None
    result = flat(rankmill.evaluate, *one_query(labels, predictions), metrics=[text], gain=graded)
    assert result.queries == 1 + has_label
    assert result[text] == pytest.approx(expected / result.queries, rel=1e-14, abs=1e-15)
    values = result.per_query[text].to_pylist()
    assert values[-1] == 0.0
    assert values == pytest.approx([expected, 0.0][-result.queries :], rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("name", ["first_hit", "mrr", "rr"])
def test_mean_of_three_queries(name: str) -> None:
    labels = pa.table({"query_id": [1, 2, 3], "labels": [["x"], ["z"], ["k"]]})
    predictions = pa.table(
        {
            "query_id": [3, 1, 2],
            "predictions": [["a", "b", "c", "d", "e"], ["x", "y"], ["x", "y", "z"]],
        }
    )
    result = rankmill.evaluate(labels, predictions, metrics=[f"{name}@5"])
    assert result.metrics == {f"{name}@5": pytest.approx(4 / 9, rel=1e-15)}
    for alias in ("first_hit", "mrr", "rr"):
        assert result[f"{alias}@5"] == result.metrics[f"{name}@5"]
    assert result.per_query.column_names == ["query_id", f"{name}@5"]
    assert result.per_query["query_id"].to_pylist() == [1, 2, 3]
    assert result.per_query[f"{name}@5"].to_pylist() == pytest.approx([1, 1 / 3, 0], rel=1e-15)
    spread = np.std([1, 1 / 3, 0], ddof=1) / math.sqrt(3)
    assert result.standard_errors[f"{name}@5"] == pytest.approx(spread, rel=1e-14)


def test_exponential_gains() -> None:
    labels, predictions = one_query({"a": 3.0, "b": 1.0}, ["b", "a"])
    result = rankmill.evaluate(
        rankmill.Labels(labels, query="query_id", gain="gain"),
        rankmill.Predictions(predictions, query="query_id"),
        ["dcg", "ndcg@1"],
        semantics=rankmill.Semantics(gain_function="exp"),
    )
    assert result.per_query["dcg"].to_pylist() == pytest.approx([1 + 7 / LOG3, 0], rel=1e-15)
    assert result.per_query["ndcg@1"].to_pylist() == pytest.approx([1 / 7, 0], rel=1e-15)
    lists = (Ragged.from_lists([["a", "b"]]), Ragged.from_lists([["b", "a"]]))
    gain = Ragged.from_lists([[3.0, 1.0]])
    assert rankmill.arrays.dcg(*lists, gain=gain, gain_function="exp")[0] == pytest.approx(
        1 + 7 / LOG3
    )
    assert rankmill.arrays.ndcg(*lists, 1, gain=gain, gain_function="exp")[0] == pytest.approx(
        1 / 7
    )


# ------------------------------------------------------------------ GAP

# (confidences, right?, total, expected, worst, best)
TIED = [
    ([0.9, 0.8, 0.7], [1, 0, 1], 2, (1 + 2 / 3) / 2, None, None),
    ([0.5, 0.5], [1, 0], 1, 3 / 4, 1 / 2, 1.0),
    ([0.5, 0.5, 0.5], [0, 1, 0], 1, 11 / 18, 1 / 3, 1.0),
    ([0.0, -0.0], [1, 0], 1, 3 / 4, 1 / 2, 1.0),
    ([math.inf, math.inf, -math.inf], [0, 1, 1], 2, (3 / 4 + 2 / 3) / 2, 7 / 12, 5 / 6),
    ([0.5, 0.5], [1, 1], 4, 1 / 2, None, None),
    ([0.5, 0.4], [0, 0], 4, 0.0, None, None),
    ([], [], 3, 0.0, None, None),
]


@pytest.mark.parametrize(("confidence", "correct", "total", "expected", "worst", "best"), TIED)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_global_average_precision(
    confidence: list[float],
    correct: list[int],
    total: int,
    expected: float,
    worst: float | None,
    best: float | None,
    kind: type,
) -> None:
    wanted = {"expected": expected, "worst": worst, "best": best}
    for reorder in (slice(None), slice(None, None, -1)):
        values = np.array(confidence, kind)[reorder]
        right = np.array(correct, bool)[reorder]
        assert rankmill.arrays.global_average_precision(values, right, total) == pytest.approx(
            expected
        )
        for ties, value in wanted.items():
            found = rankmill.arrays.global_average_precision(values, right, total, ties=ties)
            assert found == pytest.approx(expected if value is None else value, rel=1e-14)


def pandas_gap(frame: pd.DataFrame) -> float:
    """The formula as notebooks write it: one prediction a row, without ties."""
    frame = frame.sort_values("confidence", ascending=False)
    frame["correct"] = (frame["label"] == frame["prediction"]).fillna(False).astype(int)
    frame["precision"] = frame["correct"].cumsum() / np.arange(1, len(frame) + 1)
    return float((frame["precision"] * frame["correct"]).sum() / frame["label"].notna().sum())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [1, 7, 400])
def test_gap_is_the_pandas_formula(seed: int, count: int) -> None:
    draw = np.random.default_rng(seed)
    label = pd.array(draw.integers(0, 4, count), dtype="Int64")
    label[draw.random(count) < 0.3] = pd.NA
    label[0] = 1
    frame = pd.DataFrame(
        {
            "label": label,
            "prediction": pd.array(draw.integers(0, 4, count), dtype="Int64"),
            "confidence": draw.permutation(count) / count,
        }
    )
    expected = pandas_gap(frame.copy())
    labels = pa.table({"image_id": np.arange(count), "label": pa.array(label, pa.int64())})
    predictions = pa.table(
        {
            "image_id": np.arange(count),
            "prediction": pa.array(frame["prediction"], pa.int64()),
            "confidence": frame["confidence"].to_numpy(),
        }
    )
    result = rankmill.evaluate(labels, predictions, metrics=["gap"])
    assert result["gap"] == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert result.bounds["gap"] == pytest.approx((expected, expected), rel=1e-12, abs=1e-15)
    assert result.standard_errors == {"gap": None}
    correct = (frame["label"] == frame["prediction"]).fillna(False).to_numpy(bool)
    alone = rankmill.arrays.global_average_precision(
        frame["confidence"].to_numpy(), correct, int(frame["label"].notna().sum())
    )
    assert alone == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("k", [1, 12, 10**15, 2**62, 2**62 + 2**11, 2**63, 2**70, 10**30, 10**99])
def test_a_cutoff_divides_as_it_is_however_large(k: int) -> None:
    labels, lists = Ragged.from_lists([[1, 2]]), Ragged.from_lists([[1, 2, 9]])
    table = pa.table({"query": [1], "items": [[1, 2]]})
    hits = min(k, 2)
    divisors = {"precision": float(k), "f1": (k + 2) / 2, "recall": 2.0}
    for name, divisor in divisors.items():
        metric = f"{name}@{k}"
        assert rankmill.evaluate(table, table, metric)[metric] == hits / divisor
    assert rankmill.arrays.precision(labels, lists, k).tolist() == [hits / divisors["precision"]]
    assert rankmill.arrays.f1(labels, lists, k).tolist() == [hits / divisors["f1"]]
    traced = rankmill.explain(table, table, f"precision@{k}", 1)
    assert (traced.value, traced.divisor) == (hits / float(k), float(k))


def test_a_cutoff_beyond_all_floats_leaves_nothing() -> None:
    lists = Ragged.from_lists([[1, 2]])
    assert rankmill.arrays.precision(lists, lists, 10**400).tolist() == [0]
    assert rankmill.arrays.f1(lists, lists, 10**400).tolist() == [0]
