"""The drop-in functions give all values that the notebooks assert, print or tabulate."""

from __future__ import annotations

import numpy as np
import pytest

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

pytestmark = pytest.mark.small

CLOSE = {"rel": 1e-12, "abs": 1e-12}

A_TO_E = np.array(["a", "b", "c", "d", "e"])
LISTS = [np.array(list(word)) for word in ("bcade", "abcde", "fbcde", "afegb", "afcgb", "dcbae")]
# (list, k, P@k, rel@k, AP@k)
AT_K = [
    (0, 1, 1.0, 1, 1.0),
    (1, 1, 1.0, 1, 1.0),
    (2, 1, 0.0, 0, 0.0),
    (3, 2, 1 / 2, 0, 0.5),
    (4, 3, 2 / 3, 1, 0.5555555555555555),
    (5, 3, 3 / 3, 1, 1.0),
]
AP_AT_4 = [1.0, 1.0, (1 / 2 + 2 / 3 + 3 / 4) / 4, (1 + 2 / 3) / 4, (1 + 2 / 3) / 4, 1.0]

PER_IMAGE = [
    ([], 0.0),
    (["y"], 0.0),
    (["x"], 1.0),
    (["x", "y", "z"], 1.0),
    (["y", "x"], 0.5),
    (["y", "x", "x"], 0.5),
    (["y", "z"], 0.0),
    (["y", "z", "x"], 1 / 3),
    (["y", "z", "a", "b", "c"], 0.0),
    (["x", "z", "a", "b", "c"], 1.0),
    (["y", "z", "a", "b", "x"], 1 / 5),
    (["y", "z", "a", "b", "c", "x"], 0.0),
]
# Rows of (correct within the first five at these ranks, score), as in the tables on the metric.
HITS_PER_IMAGE = [([1], 1.0), ([2], 1 / 2), ([3], 1 / 3), ([4], 1 / 4), ([5], 1 / 5), ([], 0.0)]
HITS_PER_IMAGE += [([2, 4], 1 / 2)]
PER_SET = [
    (["x"], [["x", "y"]], 1.0),
    (["x", "z"], [["x", "y"], ["x", "y"]], 1 / 2),
    (["x", "z"], [["x", "y"], ["x", "y", "z"]], 2 / 3),
    (["x", "z", "k"], [["x", "y"], ["x", "y", "z"], ["a", "b", "c", "d", "e"]], 4 / 9),
]

GOLD = [1, 2]
ZEROS = [0] * 10
ONE_HIT = [0.5, 0.25, 0.16666666666666666, 0.125, 0.1, 0.08333333333333333, 0.07142857142857142]
ONE_HIT += [0.0625, 0.05555555555555555, 0.05]
# Values of lists with the 1 at rank i and the 2 at rank j > i, by i and then by j, to three digits.
TWO_HITS = [1.0, 0.833, 0.75, 0.7, 0.667, 0.643, 0.625, 0.611, 0.6, 0.583, 0.5, 0.45, 0.417, 0.393]
TWO_HITS += [0.375, 0.361, 0.35, 0.417, 0.367, 0.333, 0.31, 0.292, 0.278, 0.267, 0.325, 0.292]
TWO_HITS += [0.268, 0.25, 0.236, 0.225, 0.267, 0.243, 0.225, 0.211, 0.2, 0.226, 0.208, 0.194]
TWO_HITS += [0.183, 0.196, 0.183, 0.171, 0.174, 0.163, 0.156]
CHANGES = [0.0, -16.7, -10.0, -6.7, -4.8, -3.6, -2.8, -2.2, -1.8, -2.8, -14.3, -10.0, -7.4, -5.7]
CHANGES += [-4.5, -3.7, -3.1, 19.0, -12.0, -9.1, -7.1, -5.8, -4.8, -4.0, 21.9, -10.3, -8.2, -6.7]
CHANGES += [-5.6, -4.7, 18.5, -8.9, -7.4, -6.2, -5.3, 13.1, -7.9, -6.7, -5.7, 7.1, -7.1, -6.1]
CHANGES += [1.3, -6.4, -4.3]


def placed(*items_at: tuple[int, int]) -> list[int]:
    """Return ten zeros with items at these places (from 0)."""
    row = list(ZEROS)
    for place, item in items_at:
        row[place] = item
    return row


@pytest.mark.parametrize(("which", "k", "precision", "rel", "ap"), AT_K)
def test_at_k(which: int, k: int, precision: float, rel: int, ap: float) -> None:
    assert precision_at_k(A_TO_E, LISTS[which], k=k) == precision
    assert rel_at_k(A_TO_E, LISTS[which], k=k) == rel
    assert average_precision_at_k(A_TO_E, LISTS[which], k=k) == ap
    assert apk(A_TO_E, LISTS[which], k=k) == ap


def test_mean_average_precision_of_the_six_lists() -> None:
    values = [average_precision_at_k(A_TO_E, one, k=4) for one in LISTS]
    assert values == pytest.approx(AP_AT_4, **CLOSE)
    y_true, y_pred = np.array([A_TO_E] * 6), np.array(LISTS)
    assert mean_average_precision(y_true, y_pred, k=4) == pytest.approx(0.71875, **CLOSE)
    assert mapk(y_true, y_pred, k=4) == mean_average_precision(y_true, y_pred, k=4)


@pytest.mark.parametrize(("predictions", "value"), PER_IMAGE)
def test_per_image(predictions: list[str], value: float) -> None:
    assert map_per_image("x", predictions) == value
    assert map_per_set(["x"], [predictions]) == value


@pytest.mark.parametrize(("ranks", "value"), HITS_PER_IMAGE)
def test_per_image_by_the_ranks_of_hits(ranks: list[int], value: float) -> None:
    assert map_per_image("x", ["x" if i in ranks else "?" for i in range(1, 6)]) == value


@pytest.mark.parametrize(("labels", "predictions", "value"), PER_SET)
def test_per_set(labels: list[str], predictions: list[list[str]], value: float) -> None:
    assert map_per_set(labels, predictions) == value


def test_recall_of_the_tutorial() -> None:
    assert recall(GOLD, [0, 0, 0, 2, 0, 0, 0, 0, 0, 0]) == 0.5
    assert recall(GOLD, [0, 1, 0, 2, 0, 0, 0, 0, 0, 0]) == 1.0
    assert recall(GOLD, [1, 2, 0, 0, 0, 0, 0, 0, 0, 0]) == 1.0
    assert recall(GOLD, [0, 0, 0, 0, 0, 0, 0, 0, 1, 2]) == 1.0
    assert [recall(GOLD, placed((i, 1))) for i in range(9)] == [0.5] * 9


def test_average_precision_of_the_tutorial() -> None:
    assert [average_precision(GOLD, placed((i, 1))) for i in range(10)] == ONE_HIT
    pairs = [(i, j) for i in range(10) for j in range(i + 1, 10)]
    values = [average_precision(GOLD, placed((i, 1), (j, 2))) for i, j in pairs]
    assert [round(value, 3) for value in values] == TWO_HITS
    before = [1.0, *values]
    changes = [(now - was) / was * 100 for was, now in zip(before, values, strict=False)]
    assert [round(change, 1) for change in changes] == CHANGES


@pytest.mark.parametrize(
    ("retrieved", "value", "lines"),
    [
        (
            placed((1, 1), (3, 2)),
            0.5,
            [
                "Precision at rank 2 = 0.5 | Sum so far = 0.5",
                "Precision at rank 4 = 0.5 | Sum so far = 1.0",
                "1.0 / 2",
            ],
        ),
        (
            placed((0, 1), (1, 2)),
            1.0,
            [
                "Precision at rank 1 = 1.0 | Sum so far = 1.0",
                "Precision at rank 2 = 1.0 | Sum so far = 2.0",
                "2.0 / 2",
            ],
        ),
        (
            placed((8, 1), (9, 2)),
            0.15555555555555556,
            [
                "Precision at rank 9 = 0.1111111111111111 | Sum so far = 0.1111111111111111",
                "Precision at rank 10 = 0.2 | Sum so far = 0.3111111111111111",
                "0.3111111111111111 / 2",
            ],
        ),
    ],
)
def test_verbose_prints_each_precision(
    retrieved: list[int], value: float, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert average_precision(GOLD, retrieved) == value
    assert capsys.readouterr().out == ""
    assert average_precision(GOLD, retrieved, verbose=True) == value
    assert capsys.readouterr().out.splitlines() == lines
    assert type(average_precision(GOLD, ZEROS, verbose=True)) is float
    assert capsys.readouterr().out == "0 / 2\n"


def test_precision_at_200() -> None:
    assert precision_at_k([3, 50, 199], range(200), k=200) == 3 / 200


# The ten rows calculated by hand: (confidence, prediction, label, correct), by row.
TEN_ROWS = [
    (0.159241, 3, 3, 1),
    (0.639684, 2, 3, 0),
    (0.089852, 3, 1, 0),
    (0.304743, 2, 3, 0),
    (0.501004, 3, 1, 0),
    (0.251091, 1, 2, 0),
    (0.506572, 1, 1, 1),
    (0.403362, 2, 2, 1),
    (0.359474, 2, 1, 0),
    (0.862079, 2, 1, 0),
]


def test_gap_of_the_ten_rows() -> None:
    """The notebook's calculation by hand gives 0.3, the share of correct rows, which is wrong.

    It sums `correct` instead of precision times correct. The three correct rows have ranks 3, 5 and
    9 and precisions 1/3, 2/5 and 3/9, so GAP is the sum of these over ten labels. The notebook's
    running count of correct rows is right, and is checked here.
    """
    conf, pred, true, correct = (list(column) for column in zip(*TEN_ROWS, strict=True))
    gap, x = GAP_vector(pred, conf, true, return_x=True)
    assert gap == pytest.approx((1 / 3 + 2 / 5 + 3 / 9) / 10, **CLOSE)
    assert GAP_vector(pred, conf, true) == gap
    assert x.index.tolist() == [9, 1, 6, 4, 7, 8, 3, 5, 0, 2]
    assert list(x.columns) == ["pred", "conf", "true", "correct", "prec_k", "term"]
    assert x.sort_index()["correct"].tolist() == correct
    running = x["correct"].cumsum().sort_index()
    assert running.tolist() == [3, 0, 3, 2, 1, 2, 1, 2, 2, 0]
    assert (running * x["correct"].sort_index()).tolist() == [3, 0, 0, 0, 0, 0, 1, 2, 0, 0]
    assert x["correct"].sum() / len(x) == pytest.approx(0.3)
