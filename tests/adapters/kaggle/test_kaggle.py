"""The drop-in functions against their formulas on random input, and against the rest of rankmill.

The formulas are written from their definitions. If a notebook's code differs from its own
definition (repeats, ties, empty lists), the test says so next to the right value.
"""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import rankmill
from rankmill import kaggle
from rankmill.arrays import Ragged
from rankmill.kaggle import (
    GAP_vector,
    apk,
    average_precision,
    average_precision_at_k,
    map_per_image,
    map_per_set,
    mapk,
    mean_average_precision,
    precision_at_k,
    recall,
    rel_at_k,
)
from rankmill.metrics.aggregates.mean import Mean
from strategies import examples

pytestmark = pytest.mark.small

BENCHMARK = Path(__file__).resolve().parents[2].parent / "benchmarks" / "kaggle.py"
CLOSE = {"rel": 1e-12, "abs": 1e-12}


# ------------------------------------------------------------------ formulas


def is_missing(item: Any) -> bool:
    return item is None or (isinstance(item, float) and math.isnan(item))


def relevance(labels: Sequence[Any], predictions: Sequence[Any]) -> list[int]:
    """Return 1 at each rank whose prediction is a label and occurs there for the first time."""
    return [
        int(not is_missing(item) and item in labels and item not in predictions[:place])
        for place, item in enumerate(predictions)
    ]


def precision_formula(labels: Sequence[Any], predictions: Sequence[Any], k: int) -> float:
    return sum(relevance(labels, predictions)[:k]) / k


def ap_formula(labels: Sequence[Any], predictions: Sequence[Any], k: int | None = None) -> float:
    known = [label for label in labels if not is_missing(label)]
    if not known:
        return 0.0
    right = relevance(known, predictions)[:k]
    precisions = [sum(right[: i + 1]) / (i + 1) for i in range(len(right)) if right[i]]
    return sum(precisions) / (len(known) if k is None else min(k, len(known)))


def first_hit_formula(label: Any, predictions: Sequence[Any]) -> float:
    places = [i for i, item in enumerate(predictions[:5], start=1) if item == label]
    return 1 / places[0] if places and not is_missing(label) else 0.0


def gap_formula(
    predicted: Sequence[Any], confidence: Sequence[float], true: Sequence[Any]
) -> float:
    """Compute GAP with pandas, for confidences whose ties do not matter."""
    rows = pd.DataFrame({"predicted": predicted, "confidence": confidence, "true": true})
    rows = rows.sort_values("confidence", ascending=False, na_position="last")
    right = (rows["predicted"] == rows["true"]).to_numpy().astype(float)
    precision = np.cumsum(right) / np.arange(1, len(rows) + 1)
    return float((precision * right).sum() / rows["true"].notna().sum())


# ------------------------------------------------------------------ random input


def random_list(source: random.Random, items: Sequence[Any], longest: int) -> list[Any]:
    return source.choices(items, k=source.randint(0, longest))


UNIVERSES: list[Sequence[Any]] = [
    range(9),
    [str(i) for i in range(9)],
    [*range(7), None],
    [*"abcdefg", None, math.nan],
    [2**63 - 1, 2**63 - 2, 2**63 - 3, -(2**63), 0],
    [2**64 - 1, 2**64 - 2, 2**53, 2**53 + 1],
    [1, "1", 1.5, (1, 2), True, b"1", None],
]


@pytest.mark.parametrize("items", UNIVERSES, ids=str)
def test_lists_follow_the_formulas(items: Sequence[Any]) -> None:
    source = random.Random(str(items))
    for _ in range(60):
        k = source.randint(1, 8)
        labels, predictions = (
            [random_list(source, items, longest) for _ in range(4)] for longest in (5, 9)
        )
        expected = [ap_formula(ls, ps, k) for ls, ps in zip(labels, predictions, strict=True)]
        mean = sum(expected) / 4
        assert mapk(labels, predictions, k) == pytest.approx(mean, **CLOSE)
        assert mean_average_precision(labels, predictions, k) == pytest.approx(mean, **CLOSE)
        for wanted, listed, value in zip(labels, predictions, expected, strict=True):
            known = [label for label in wanted if not is_missing(label)]
            right = relevance(known, listed)
            precision = precision_formula(known, listed, k)
            assert apk(wanted, listed, k) == pytest.approx(value, **CLOSE)
            assert average_precision_at_k(wanted, listed, k) == pytest.approx(value, **CLOSE)
            assert precision_at_k(wanted, listed, k) == pytest.approx(precision, **CLOSE)
            assert rel_at_k(wanted, listed, k) == (right[k - 1] if k <= len(right) else 0)
            assert recall(wanted, listed) == pytest.approx(sum(right) / max(1, len(known)), **CLOSE)
            whole = ap_formula(wanted, listed)
            assert average_precision(wanted, listed) == pytest.approx(whole, **CLOSE)
        first = [source.choice(items) for _ in labels]
        scores = [first_hit_formula(*pair) for pair in zip(first, predictions, strict=True)]
        assert map_per_set(first, predictions) == pytest.approx(sum(scores) / 4, **CLOSE)
        for label, listed, score in zip(first, predictions, scores, strict=True):
            assert map_per_image(label, listed) == pytest.approx(score, **CLOSE)


def test_average_precision_is_the_sum_of_precision_times_rel() -> None:
    source = random.Random(7)
    for _ in range(200):
        labels, predictions = random_list(source, range(6), 5), random_list(source, range(6), 9)
        k = source.randint(1, 8)
        total = sum(
            precision_at_k(labels, predictions, i) * rel_at_k(labels, predictions, i)
            for i in range(1, k + 1)
        )
        value = total / min(k, len(labels)) if labels else 0.0
        assert average_precision_at_k(labels, predictions, k) == pytest.approx(value, **CLOSE)


def random_rows(source: random.Random, count: int) -> tuple[list[Any], list[float], list[Any]]:
    """Make predictions, distinct confidences and labels; some of each are missing."""
    confidence = [*source.sample(range(-500, 500), count)]
    if source.random() < 0.5:
        confidence[source.randrange(count)] = source.choice([math.inf, -math.inf])
    pred, true = (source.choices([1, 2, 3, None], k=count) for _ in range(2))
    return pred, [number / 8 for number in confidence], true


@pytest.mark.lengthy
def test_gap_follows_the_pandas_formula_where_no_tie_decides() -> None:
    source = random.Random(3)
    checked = 0
    rounds = examples(400)
    for _ in range(rounds):
        pred, conf, true = random_rows(source, source.randint(1, 12))
        conf = [*conf, *[math.nan] * source.choice([0, 1, 1])]  # a single one makes no tie
        pred, true = ([*column, 2][: len(conf)] for column in (pred, true))
        twins = source.randint(0, 3)  # these have equal confidences, but all are wrong
        pred, conf, true = [*pred, *[8] * twins], [*conf, *[99.0] * twins], [*true, *[9] * twins]
        if not any(label is not None for label in true):
            continue
        checked += 1
        expected = gap_formula(pred, conf, true)
        gap, x = GAP_vector(pred, conf, true, return_x=True)
        assert gap == pytest.approx(expected, **CLOSE)
        assert x["term"].sum() / x["true"].count() == pytest.approx(expected, **CLOSE)
        assert GAP_vector(*map(as_objects, (pred, conf, true))) == gap
        words = [[None if i is None else f"w{i}" for i in column] for column in (pred, true)]
        assert GAP_vector(words[0], conf, words[1]) == gap
    assert checked > rounds / 2


def as_objects(values: list[Any]) -> np.ndarray:
    return np.array(values, object)


@pytest.mark.parametrize("numbers", [[0.5, 0.25], [-math.inf, 0.5, math.nan], [math.nan]])
def test_gap_of_ties_is_the_mean_over_their_orders(numbers: list[float]) -> None:
    source = random.Random(len(numbers))
    for _ in range(12):
        conf = source.choices(numbers, k=5)
        pred, true = (source.choices([1, 2], k=5) for _ in range(2))
        values = [gap_of_order(order, pred, conf, true) for order in orders(conf)]
        assert GAP_vector(pred, conf, true) == pytest.approx(sum(values) / len(values), **CLOSE)


def orders(conf: list[float]) -> list[list[int]]:
    """Yield all orders of rows by falling confidence, with missing ones last."""

    def falls(one: float, other: float) -> bool:
        return not math.isnan(one) and (math.isnan(other) or one > other)

    found: list[list[int]] = [[]]
    for _ in conf:
        found = [
            [*order, row]
            for order in found
            for row in set(range(len(conf))) - set(order)
            if not any(falls(conf[r], conf[row]) for r in set(range(len(conf))) - set(order))
        ]
    return found


def gap_of_order(order: list[int], pred: list[int], conf: list[float], true: list[int]) -> float:
    right = [pred[row] == true[row] for row in order]
    return sum(sum(right[: i + 1]) / (i + 1) for i in range(len(right)) if right[i]) / len(right)


# ------------------------------------------------------------------ where notebooks are wrong


def test_a_repeat_counts_once_and_keeps_its_rank() -> None:
    # With `in` alone, each repeat of a hit counts again: 1.5, 1.5, 1 and (1 + 1/2 + 2/3) / 2.
    assert recall([1, 2], [1, 1, 1]) == 0.5
    assert average_precision([1, 2], [1, 1, 2]) == (1 + 2 / 3) / 2
    assert rel_at_k([1, 2], [1, 1], k=2) == 0
    assert average_precision_at_k([1, 2], [1, 1, 2], k=3) == (1 + 2 / 3) / 2
    assert apk([1, 2], [1, 1, 2], k=3) == (1 + 2 / 3) / 2
    assert mapk([[1, 2]], [[1, 1, 2]], k=3) == (1 + 2 / 3) / 2


def test_labels_count_as_they_are_given() -> None:
    assert apk([1, 1, 2], [1, 2], k=10) == 2 / 3
    assert apk([1, 1, 2], [1, 2], k=2) == 1.0
    assert mapk([[1, 1, 2]], [[1, 2]], k=10) == pytest.approx(2 / 3, **CLOSE)
    assert recall([1, 1, 2], [1, 2]) == 2 / 3
    assert average_precision([1, 1, 2], [1, 2]) == 2 / 3


def test_short_and_empty_lists() -> None:
    assert rel_at_k([1], [1], k=12) == 0
    assert precision_at_k([1], [1]) == 1 / 12
    assert average_precision_at_k([1], [2, 1]) == 0.5
    for function in (apk, recall, average_precision, precision_at_k, average_precision_at_k):
        assert function([], [1]) == function([1], []) == function([], []) == 0.0
    assert mapk([[], [1]], [[1], [1]]) == 0.5
    assert mapk([[], []], [[], []]) == 0.0
    assert average_precision([], [1], verbose=False) == 0.0


def test_the_defaults() -> None:
    ten, twelve = [*range(10, 19), 1], [*range(10, 21), 1]
    assert apk([1], ten) == mapk([[1]], [ten]) == 1 / 10
    assert apk([1], twelve) == mapk([[1]], [twelve]) == 0.0
    for function in (average_precision_at_k, precision_at_k):
        assert function([1], twelve) == 1 / 12
        assert function([1], [0, *twelve]) == 0.0
    assert rel_at_k([1], twelve) == 1
    assert mean_average_precision([[1]], [twelve]) == pytest.approx(1 / 12, **CLOSE)


def test_nothing_to_average_is_nan() -> None:
    assert math.isnan(mapk([], []))
    assert math.isnan(map_per_set([], []))
    assert math.isnan(GAP_vector([], [], []))
    assert math.isnan(GAP_vector([1], [0.5], [None]))


def test_results_are_python_numbers() -> None:
    k = np.int64(2)
    one, lists = np.array([1, 2]), np.array([[1, 2]])
    values = [apk(one, one, k), precision_at_k(one, one, k), average_precision_at_k(one, one, k)]
    values += [mapk(lists, lists, k), mean_average_precision(lists, lists, k), recall(one, one)]
    values += [average_precision(one, one), map_per_image(one[0], one), recall([], [])]
    values += [map_per_set(one[:1], lists), GAP_vector(one, one, one), average_precision([], [])]
    assert {type(value) for value in values} == {float}
    assert type(rel_at_k(one, one, k)) is int


# ------------------------------------------------------------------ against the rest of rankmill


def test_mapk_is_the_mean_of_the_array_function() -> None:
    generator = np.random.default_rng(11)
    labels = Ragged.from_lists(
        [generator.permutation(20)[: generator.integers(6)].tolist() for _ in range(2_000)]
    )
    predictions = generator.integers(0, 20, (2_000, 12))
    lists = Ragged.from_lists(predictions.tolist())
    for k in (1, 5, 12):
        values = rankmill.arrays.average_precision(labels, lists, k)
        assert mapk(labels, predictions, k) == Mean.of(values).mean
        assert mapk(labels.to_lists(), predictions.tolist(), k) == mapk(labels, lists, k)
        first = rankmill.arrays.first_hit_precision(labels, lists, 5)
        once = Ragged.from_lists([one[:1].tolist() for one in labels])
        assert map_per_set(
            [one[0] if len(one) else None for one in labels.to_lists()], predictions
        ) == pytest.approx(np.mean(rankmill.arrays.first_hit_precision(once, lists, 5)), **CLOSE)
        assert first.mean() >= map_per_set(
            [one[0] if len(one) else None for one in labels.to_lists()], predictions
        )


def test_gap_is_that_of_evaluate() -> None:
    generator = np.random.default_rng(5)
    pred, true = (generator.integers(0, 3, 3_000) for _ in range(2))
    conf = generator.integers(0, 500, 3_000) / 8
    rows = np.arange(3_000)
    labels = pa.table({"query_id": rows, "item_id": true})
    predictions = pa.table({"query_id": rows, "item_id": pred, "score": conf})
    assert GAP_vector(pred, conf, true) == rankmill.evaluate(labels, predictions, "gap")["gap"]


WITHOUT_PANDAS = """
import sys
class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import numpy as np, rankmill.kaggle as kaggle
print(kaggle.mapk(np.ones((3, 2)), np.ones((3, 2))))
print(kaggle.mapk([[1, None]], [["a", 1]]))
print(kaggle.map_per_set(["a"], [["b", "a", None]]))
print(kaggle.apk([1], [1]))
print(kaggle.GAP_vector([1, None], [0.5, None], [1.0, 2.0]))
kaggle.GAP_vector([1], [0.5], [1], return_x=True)
"""


@pytest.mark.lengthy
def test_pandas_is_needed_only_for_the_table() -> None:
    command = [sys.executable, "-c", WITHOUT_PANDAS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0.5", "0.5", "0.5", "1.0", "0.5"]
    assert "UsageError: return_x makes a pandas DataFrame; install pandas" in done.stderr


@pytest.mark.long
@pytest.mark.lengthy
def test_the_benchmark_agrees_with_its_rivals() -> None:
    command = [sys.executable, str(BENCHMARK), "--users=600", "--rounds=1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 2 + 10


def test_all_names_are_public_and_documented() -> None:
    assert set(kaggle.__all__) <= set(dir(kaggle))
    assert all(getattr(kaggle, name).__doc__ for name in kaggle.__all__)
