"""The drop-in functions: every kind of input that they take, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from rankmill import InputError, UsageError
from rankmill.arrays import Ragged
from rankmill.kaggle import (
    GAP_vector,
    apk,
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


def ap_formula(labels: list[Any], predictions: list[Any], k: int = 10) -> float:
    """Average precision of lists without missing items, from its definition."""
    right = [p in labels and p not in predictions[:i] for i, p in enumerate(predictions[:k])]
    precisions = [sum(right[: i + 1]) / (i + 1) for i in range(len(right)) if right[i]]
    return sum(precisions) / min(k, len(labels)) if labels else 0.0


# ------------------------------------------------------------------ kinds of input

INT_LISTS = [[1, 2], [], [3, 4], [5]]
INT_PREDICTIONS = [[9, 1, 2], [1, 2, 3], [4, 4, 3], [6, 7, 8]]
EXPECTED = sum(map(ap_formula, INT_LISTS, INT_PREDICTIONS)) / 4


def objects_of(lists: list[Any]) -> np.ndarray:
    found = np.empty(len(lists), object)
    found[:] = lists
    return found


def named(lists: list[list[int]]) -> list[list[str]]:
    return [[f"i{item}" for item in one] for one in lists]


RAGGED_KINDS: list[Callable[[Any], Any]] = [
    list,
    tuple,
    iter,
    lambda lists: [tuple(one) for one in lists],
    lambda lists: [iter(one) for one in lists],
    lambda lists: [np.array(one) for one in lists],  # an empty array has dtype float64
    lambda lists: [pd.Series(one, dtype=object) for one in lists],
    lambda lists: [np.array(one) if i else one for i, one in enumerate(lists)],
    objects_of,
    lambda lists: objects_of([np.array(one, object) for one in lists]),
    pd.Series,
    lambda lists: pd.Series([np.array(one) for one in lists], index=[7, 7, 5, 3]),
    lambda lists: pd.Series(pa.array(lists), dtype=pd.ArrowDtype(pa.array(lists).type)),
    Ragged.from_lists,
    pa.array,
    lambda lists: pa.array([lists[2], *lists]).slice(1),
    lambda lists: pa.chunked_array([pa.array(lists[:1]), pa.array(lists[1:])]),
    lambda lists: pa.array(lists, pa.large_list(pa.array(lists).type.value_type)),
]
KINDS_OF_TWO = pytest.mark.parametrize("make", RAGGED_KINDS)


@KINDS_OF_TWO
@pytest.mark.parametrize("rename", [list, named], ids=["integers", "strings"])
def test_lists_of_every_kind(make: Callable[[Any], Any], rename: Callable[[Any], Any]) -> None:
    labels, predictions = rename(INT_LISTS), rename(INT_PREDICTIONS)
    assert mapk(make(labels), make(predictions)) == pytest.approx(EXPECTED, **CLOSE)
    assert mapk(labels, make(predictions), 2) == mapk(make(labels), predictions, 2)
    assert mapk(labels, make(predictions), 2) == pytest.approx(
        sum(ap_formula(ls, ps, 2) for ls, ps in zip(labels, predictions, strict=True)) / 4, **CLOSE
    )


@pytest.mark.parametrize("rename", [list, named], ids=["integers", "strings"])
@pytest.mark.parametrize(
    "make",
    [
        np.array,
        lambda lists: np.array(lists, object),
        lambda lists: np.asfortranarray(lists),
        lambda lists: np.repeat(lists, 2, axis=1)[:, ::2],
        pd.DataFrame,
        lambda lists: pa.array(lists, pa.list_(pa.array(lists[0]).type, 3)),
    ],
)
def test_tables_of_every_kind(make: Callable[[Any], Any], rename: Callable[[Any], Any]) -> None:
    labels, predictions = rename(INT_LISTS), rename(INT_PREDICTIONS)
    assert mapk(labels, make(predictions)) == pytest.approx(EXPECTED, **CLOSE)
    assert map_per_set([row[1] for row in predictions], make(predictions)) == pytest.approx(
        (1 / 2 + 1 / 2 + 1 + 1 / 2) / 4, **CLOSE
    )


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int32", "uint64", "float16", "float32", "float64", ">i4", "object"]
)
def test_numbers_of_every_width(dtype: str) -> None:
    predictions = np.array(INT_PREDICTIONS).astype(dtype)
    assert mapk(INT_LISTS, predictions) == pytest.approx(EXPECTED, **CLOSE)
    labels = [np.array(one).astype(dtype) for one in INT_LISTS]
    assert mapk(labels, INT_PREDICTIONS) == pytest.approx(EXPECTED, **CLOSE)
    scalars = [[*map(np.dtype(dtype).type, one)] for one in INT_PREDICTIONS]
    assert mapk(INT_LISTS, scalars) == pytest.approx(EXPECTED, **CLOSE)
    assert apk(labels[0], predictions[0]) == ap_formula([1, 2], [9, 1, 2])


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        iter,
        np.array,
        lambda labels: np.array(labels, object),
        pd.Series,
        pd.Index,
        lambda labels: pd.Series(labels, dtype="category"),
        lambda labels: pd.Series(labels, index=[5, 5, 5]),
        pa.array,
        lambda labels: pa.array(labels).dictionary_encode(),
        lambda labels: pa.chunked_array([labels[:1], labels[1:]]),
    ],
)
@pytest.mark.parametrize("rename", [int, str])
def test_labels_of_every_kind(make: Callable[[Any], Any], rename: Callable[[int], Any]) -> None:
    labels = [rename(i) for i in (1, 2, 3)]
    predictions = [[rename(i) for i in one] for one in ([1], [1, 2], [1, 2])]
    assert map_per_set(make(labels), predictions) == 0.5


@pytest.mark.parametrize("missing", [None, math.nan, np.float64("nan"), pd.NA, pd.NaT])
@pytest.mark.parametrize("words", [False, True])
def test_missing_items(missing: Any, words: bool) -> None:
    one, two = ("1", "2") if words else (1, 2)
    labels, predictions = [one, missing], [missing, one, missing, two]
    assert apk(labels, predictions) == 1 / 2
    assert mapk([labels, [one]], [predictions, [missing]]) == 1 / 4
    assert mapk([labels, [missing]], [predictions, [missing]]) == 1 / 4
    assert mapk([labels, missing], [predictions, [one]]) == 1 / 4
    assert mapk([labels, [one]], [predictions, missing]) == 1 / 4
    assert map_per_image(missing, [missing, one]) == 0.0
    assert map_per_set([one, missing], [[missing, one], [missing]]) == 1 / 4
    assert precision_at_k(labels, predictions, k=2) == 1 / 2
    assert recall([one, two, missing], [missing, one]) == 1 / 2
    assert apk(missing, [one]) == apk([one], missing) == 0.0
    gap = GAP_vector([one, missing, missing], [3, 2, 1], [one, missing, two])
    assert gap == 1 / 2


@pytest.mark.parametrize("padded", [np.array([[1, 2], [3, np.nan]]), np.array([[1, 2], [3, None]])])
def test_padded_tables(padded: np.ndarray) -> None:
    assert mapk(padded, [[2, 1], [3, 4]]) == 1.0
    assert mapk([[2, 1], [3, 4]], padded) == (1.0 + 0.5) / 2


def test_a_missing_prediction_never_equals_a_label() -> None:
    # The item that replaces a missing prediction must not be one of the labels.
    labels = [[0, 1], [2], [3]]
    assert mapk(labels, [[None, 0], [None], [None, 4]]) == pytest.approx(1 / 12, **CLOSE)
    words = [["", "-"], ["--"], ["----"]]
    assert mapk(words, [[None, ""], [None], [None, "x"]]) == pytest.approx(1 / 12, **CLOSE)
    eight = np.arange(-128, 128, dtype=np.int8)
    table = pa.array([[None, *range(-128, 128)]], pa.list_(pa.int8()))
    assert mapk([eight], table, 300) == apk(eight, [None, *eight], 300)


def test_items_match_exactly() -> None:
    big = 2**53
    assert mapk([[big]], [[big + 1]]) == 0.0
    assert mapk([[big]], [np.array([float(big)])]) == 1.0
    assert mapk([[big + 1]], [np.array([float(big)])]) == 0.0
    assert mapk([[2**63 - 1]], [np.array([2.0**63])]) == 0.0
    assert mapk([[big + 1], [0.5]], [[big], [0.5]]) == 0.5
    assert mapk([np.array([big + 1])], [[big + 1, 1.5]]) == 1.0
    assert mapk([np.array([big + 1]), np.array([0.5])], [[big, float(big)], [0.5]]) == 0.5
    assert mapk([np.uint64([2**64 - 1])], [np.int64([-1])]) == 0.0
    assert mapk([np.uint64([2**64 - 1])], [[2**64 - 1]]) == 1.0
    assert mapk([["1", 2]], [[1, "2", 2]], 3) == pytest.approx(1 / 3 / 2, **CLOSE)
    assert mapk([["a"]], [["a\0", "ab", "a"]]) == pytest.approx(1 / 3, **CLOSE)
    assert mapk([["a", b"b"]], [[b"a", "b", "a"]]) == pytest.approx(1 / 3 / 2, **CLOSE)
    assert mapk([[True, 7]], [[1]]) == 0.5
    assert mapk([[Decimal("1.5")]], [[1.5]]) == 1.0
    assert mapk([[(1, 2)]], [[(1, 2)]]) == 1.0
    assert mapk([["\ud800"]], [["\ud800"]]) == 1.0
    assert GAP_vector([big, big + 1], [2, 1], [big + 1, big + 1]) == pytest.approx(1 / 4)
    assert GAP_vector([big + 1, None], [2, 1], [float(big), None]) == 0.0
    assert GAP_vector([1.5, "a", 3], [3, 2, 1], ["1.5", "a", 3]) == pytest.approx(
        (1 / 2 + 2 / 3) / 3
    )


def test_integers_against_strings() -> None:
    """As Python compares them, and so the functions of notebooks: none is equal."""
    for labels, predictions in (([["a"], [1]], [[1], [1]]), ([[1, 2]], [["1"]]), ([["1"]], [[1]])):
        expected = sum(map(apk, labels, predictions)) / len(labels)
        assert mapk(labels, predictions) == mean_average_precision(labels, predictions) == expected
    assert mapk([["1"], ["2", "3"]], np.array([[1], [2]])) == 0.0
    assert map_per_set(["1"], [[1]]) == map_per_set(np.array([1]), [["1"]]) == 0.0
    assert GAP_vector(["1", "2"], [0.5, 0.25], [1, 2]) == GAP_vector([1], [0.5], ["1"]) == 0.0
    assert apk([1], ["1"]) == 0.0
    assert mapk([[1]], [[]]) == mapk([[]], [["1"]]) == mapk([[None]], [["1"]]) == 0.0
    assert mapk([["1"]], [[None]]) == 0.0


@pytest.mark.parametrize("scale", [1, 1e-300, 1e300])
@pytest.mark.parametrize("lowest", [-1.7976931348623157e308, -math.inf])
def test_a_missing_confidence_is_last(scale: float, lowest: float) -> None:
    conf = [math.nan, scale, lowest, -scale]
    pred, true = [1, 1, 1, 1], [1, 2, 1, 1]
    assert GAP_vector(pred, conf, true) == pytest.approx((1 / 2 + 2 / 3 + 3 / 4) / 4, **CLOSE)
    _, x = GAP_vector(pred, conf, true, return_x=True)
    assert x.index.tolist() == [1, 3, 2, 0]


@pytest.mark.parametrize(
    "make",
    [
        np.array,
        np.float32,
        np.float16,
        list,
        pd.Series,
        lambda numbers: pd.Series(numbers, dtype="Float64"),
        pa.array,
        lambda numbers: [Decimal(number).__float__() for number in numbers],
    ],
)
def test_confidences_of_every_kind(make: Callable[[Any], Any]) -> None:
    conf = make([0.5, 0.75, 0.25])
    gap, x = GAP_vector([1, 2, 3], conf, [1, 9, 3], return_x=True)
    assert gap == pytest.approx((1 / 2 + 2 / 3) / 3, **CLOSE)
    assert x["term"].tolist() == pytest.approx([0, 1 / 2, 2 / 3])
    assert GAP_vector(pa.array([1, 2, 3]), conf, pd.Series([1, 9, 3])) == gap


def test_the_table_leaves_its_input_alone_and_keeps_ties_in_order() -> None:
    pred, true = pd.Series([1, 2, 3], index=[4, 5, 6]), pd.Series([1, 0, 3], index=[4, 5, 6])
    conf = pd.Series([0.5, 0.5, 0.5], index=[4, 5, 6])
    gap, x = GAP_vector(pred, conf, true, return_x=True)
    assert x.index.tolist() == [4, 5, 6]
    assert x["prec_k"].tolist() == [1, 1 / 2, 2 / 3]
    # 2 of 3 tied rows are right: the mean of the orders RRW, RWR and WRR.
    assert gap == pytest.approx((2 + 5 / 3 + 7 / 6) / 3 / 3, **CLOSE)
    many = np.tile([0.25, 0.75], 100)
    _, x = GAP_vector(many, many, many, return_x=True)
    assert x.index.tolist() == [*range(1, 200, 2), *range(0, 200, 2)]
    _, x = GAP_vector(pa.array([1, None]), pa.array([0.5, 0.75]), pa.array([1, 1]), return_x=True)
    assert x["correct"].tolist() == [0, 1]


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize("k", [0, -1, 1.0, True, None, "3"])
def test_a_bad_cutoff(k: Any) -> None:
    for function in (apk, precision_at_k, rel_at_k, average_precision_at_k):
        with pytest.raises(UsageError, match="expected a positive integer"):
            function([1], [1], k)
    for function in (mapk, mean_average_precision):
        with pytest.raises(UsageError, match="expected a positive integer"):
            function([[1]], [[1]], k)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: mapk([[1], [2]], [[1]]), "2 lists of actual and 1 of predicted"),
        (lambda: mean_average_precision([[1]], []), "1 list of y_true and 0 of y_pred"),
        (lambda: map_per_set(["x"], [["x"], ["y"]]), "1 list of labels and 2 of predictions"),
        (lambda: GAP_vector([1], [0.5, 0.5], [1]), "have 1, 2 and 1 rows"),
        (lambda: mapk([[1]], ["1 2"]), r"predicted\[0\] holds '1 2' .*split it first"),
        (lambda: mapk(pd.Series(["a b"]), [["a"]]), r"actual\[0\] holds 'a b' .*split it first"),
        (lambda: mapk([1], [[1]]), r"actual\[0\] holds 1 .*; expected a list"),
        (lambda: mapk(np.array([1, 2]), [[1], [2]]), r"actual\[0\] holds .*1.*; expected a list"),
        (lambda: mapk(np.ones((1, 1, 1)), [[1]]), "actual holds an array of 3 dimensions"),
        (lambda: mapk([np.ones((1, 1))], [[1]]), "holds an array of 2 dimensions"),
        (lambda: mapk(pa.array([1]), [[1]]), "expected lists, found int64"),
        (lambda: mapk({"u": [1]}, [[1]]), "actual holds {'u': .*expected a list"),
        (lambda: mapk(7, [[1]]), "actual holds 7 .*; expected a list"),
        (lambda: mapk([[[1]]], [[1]]), "cannot be compared .*unhashable"),
        (lambda: apk("abc", ["a"]), "actual holds 'abc' .*split it first"),
        (lambda: apk(["a"], "a" * 100), r"predicted holds 'aaa.* … \(str\).*split it first"),
        (lambda: apk([[1]], [1]), "cannot be compared: .*unhashable"),
        (lambda: apk([1], np.ones((2, 2))), "predicted holds an array of 2 dimensions"),
        (lambda: apk(np.array(1), [1]), "actual holds an array of 0 dimensions"),
        (lambda: recall([1], 7), "retrieved holds 7 .*; expected a list"),
        (lambda: map_per_image(np.array([1, 2]), [1]), "label or predictions cannot be compared"),
        (lambda: map_per_image("x", "x"), "predictions holds 'x'"),
        (lambda: map_per_set("xyz", [["x"]] * 3), "labels holds 'xyz'"),
        (lambda: mapk([[1]], [{1, 2}]), r"predicted\[0\] holds a set, which has no order"),
        (lambda: mapk([[1]], {(1,), (2,)}), "predicted holds a set, which has no order"),
        (lambda: map_per_set({"x"}, [["x"]]), "labels holds a set, which has no order"),
        (lambda: apk([1], frozenset([1])), "predicted holds a set, which has no order"),
        (lambda: GAP_vector([1], ["0.5"], [1]), "conf: it holds string; expected numbers"),
        (lambda: GAP_vector([1], [True], [1]), "conf: it holds bool; expected numbers"),
        (lambda: GAP_vector([1], [2**53 + 1], [1]), "has no float64 of the same value"),
        (lambda: GAP_vector([1], np.ones((1, 1)), [1]), r"conf: row 0 holds \[1.0\]"),
        (
            lambda: GAP_vector(pd.Series([1, 2]), [0.5, 0.5], pd.Series([1, 2], index=[1, 0])),
            "pred and true are Series of different indexes",
        ),
    ],
)
def test_bad_input_is_named(wrong: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong()


def test_broken_arrow_never_reaches_a_kernel() -> None:
    offsets = pa.array([0, 9, 2], pa.int32()).buffers()[1]
    items = pa.array([1, 2])
    broken = pa.Array.from_buffers(pa.list_(items.type), 2, [None, offsets], children=[items])
    with pytest.raises(InputError, match="breaks the rules of the Arrow format"):
        mapk([[1], [2]], broken)


def test_sets_of_labels_have_no_order_to_keep() -> None:
    assert apk({1, 2}, [1, 2]) == mapk([{1, 2}], [[1, 2]]) == 1.0
    assert mapk(pd.Series([{1, 2}]), pd.Series([[3, 2]])) == 0.25
    assert recall({1, 2}, {2, 3}) == recall([1, 2], frozenset([2, 3])) == 0.5
