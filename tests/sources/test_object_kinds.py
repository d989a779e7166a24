"""What cells of Python objects are to all that takes them: one table, the same for every door."""

from __future__ import annotations

import datetime
import math
import re
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import rankmill
from rankmill import InputError, RankmillError, UsageError, kaggle
from rankmill.arrays import Ragged

pytestmark = pytest.mark.small

DAY = datetime.datetime(2020, 1, 1)
ONE = uuid.UUID(int=1)


def objects(*cells: Any) -> np.ndarray:
    found = np.empty(len(cells), object)
    found[:] = cells
    return found


class Items:
    """A list of another library, of which nothing but the items is known."""

    def __iter__(self) -> Iterator[int]:
        return iter((1, 2))


# Labels and predictions, and the mean of average precision or what the error says.
Row = tuple[Any, Any, float | str]
SAME: dict[str, Row] = {
    "integers": ([[1, 2]], [[2, 9]], 0.5),
    "NumPy integers": ([[np.int8(1), 2]], [[np.uint64(2)]], 0.5),
    "texts": ([["a"]], [["b", "a"]], 0.5),
    "NumPy texts": ([[np.str_("a")]], [np.array(["b", "a"])], 0.5),
    "a zero byte": ([["a\0"]], [["a", "a\0"]], 0.5),
    "bytes": ([[b"a"]], [[b"b", b"a"]], 0.5),
    "UUIDs": ([[ONE]], [[uuid.UUID(int=2), ONE]], 0.5),
    "tuples": ([(1, 2)], [(2,)], 0.5),
    "ranges and views": ([{7: 0, 8: 0}.keys()], [range(7, 9)], 1.0),
    "a later iterable": ([[1], [2]], [[1], Items()], 0.75),
    "sets of labels": ([{1, 2}, frozenset({3})], [[2], [3]], 0.75),
    "arrays": ([np.array([1, 2])], [np.array([2])], 0.5),
    "arrays and lists": ([np.array([1]), [2]], [[1], (3, 2)], 0.75),
    "an array of lists": (objects([1], [2, 3]), objects([1], [3]), 0.75),
    "a matrix": (np.array([[1, 2]]), np.array([[2, 3]], np.uint8), 0.5),
    "a Series of lists": (pd.Series([[1], [2]]), pd.Series([[1], (3, 2)]), 0.75),
    "Series as cells": ([pd.Series([1, 2])], [pd.Series([2], dtype="Int64")], 0.5),
    "categories": ([pd.Series(["a"], dtype="category")], [["b", "a"]], 0.5),
    "beyond int64": ([[2**63, 1]], [[1]], 0.5),
    "uint64": ([np.array([2**64 - 1], np.uint64)], [[3, 2**64 - 1]], 0.5),
    "an empty list": ([[1], [2]], [[1], []], 0.5),
    "a missing list": ([[1], [2]], [[1], None], 0.5),
    "a list that is NaN": ([[1], [2]], [math.nan, [2]], 0.5),
    "a list that is NA": ([[1], [2]], [pd.NA, [2]], 0.5),
    "a set of predictions": ([[1]], [{1}], "a set, which has no order"),
    "a later set": ([[1], [2]], [[1], {2}], "holds a set, which has no order"),
    "a later text": ([["a"], "b"], [["a"], ["b"]], r"holds 'b' \(str\); expected a list .* split"),
    "a later number": ([[1], 2], [[1], [2]], r"holds 2 \(int\); expected a list of items: write"),
    "a cell of two dimensions": ([np.ones((1, 1), int)], [[1]], "an array of 2 dimensions"),
    "three dimensions": (np.ones((1, 1, 1), int), [[1]], "3 dimensions"),
    "no dimension": (np.array(1), [[1]], "0 dimensions"),
    "lists of lists": ([[[1]]], [[1]], r"\[1\] \(list\)|cannot be compared .*unhashable"),
    "dicts": ([[{}]], [[1]], r"\{\} \(dict\)|cannot be compared .*unhashable"),
}
# A Ragged holds values beside those of another Ragged, so that it cannot drop a missing one, and
# what it is given as floats stays floats.
NULL, FLOAT = "without nulls: value [013] is null", "double; ids are integers or strings"
UNLIKE_RAGGED: dict[str, tuple[Any, Any, float | str, str]] = {
    "None": ([[None, 1]], [[2, 1]], 0.5, NULL),
    "None beside a text": ([["a", None]], [["b", "a"]], 0.5, NULL),
    "NaN beside a text": ([[math.nan, "a"]], [["b", "a"]], 0.5, NULL),
    "NA": ([[pd.NA, 1]], [[2, 1]], 0.5, NULL),
    "NaT first": ([[pd.NaT, 1]], [[1]], 1.0, NULL),
    "NaT first, of texts": ([[pd.NaT, "a"]], [["a"]], 1.0, NULL),
    "NaT last": ([[1, pd.NaT]], [[1]], 1.0, NULL),
    "NaT of NumPy": ([[np.datetime64("NaT", "s"), 1]], [[1]], 1.0, NULL),
    "a NaN of Decimal": ([[Decimal("NaN"), 1]], [[1]], 1.0, NULL),
    "a masked matrix": (
        np.ma.array([[9, 7], [8, 6]], mask=[[1, 0], [0, 1]]),
        [[7], [8]],
        1.0,
        NULL,
    ),
    "masked arrays": ([np.ma.array([9, 7], mask=[1, 0])], [[7]], 1.0, NULL),
    "a masked array beside others": (
        [np.ma.array([9, 7], mask=[1, 0]), np.array([8])],
        [[7], [8]],
        1.0,
        NULL,
    ),
    "masked items": ([[np.ma.masked, 7]], [[7]], 1.0, NULL),
    "an array of objects": ([objects("a", None)], [["a"]], 1.0, NULL),
    "a matrix of objects": (np.array([[1, None]], object), [[1]], 1.0, NULL),
    "nullable integers": ([pd.Series([1, pd.NA], dtype="Int64")], [[1]], 1.0, NULL),
    "nullable texts": ([pd.Series(["a", None], dtype="string")], [["a"]], 1.0, NULL),
    "NaN": ([[math.nan, 1]], [[2, 1]], 0.5, FLOAT),
    "whole floats": ([[1.0, -0.0]], [[0]], 0.5, FLOAT),
    "an array of whole floats": ([np.array([1.0, np.nan])], [[2, 1]], 0.5, FLOAT),
    "a matrix with NaN": (np.array([[1, np.nan]]), [[2, 1]], 0.5, FLOAT),
}
# The functions of notebooks compare any hashable items by ==, and a missing one keeps its rank.
KIND = (
    "contains|holds|ids are integers or strings|integers that all fit|"
    "they are (bool|decimal|timestamp)"
)
UNLIKE_KAGGLE: dict[str, tuple[Any, Any, float | str, float]] = {
    "bytes for texts": ([[b"a", b"b"]], [["a"]], 0.5, 0.0),
    "a UUID for its text": ([[ONE]], [[str(ONE)]], 1.0, 0.0),
    "booleans": ([[True]], [[1]], KIND, 1.0),
    "booleans of NumPy": ([np.array([True])], [[True]], KIND, 1.0),
    "fractions": ([[1, 2.5]], [[2.5]], KIND, 0.5),
    "Fraction": ([[Fraction(1, 2)]], [[0.5]], KIND, 1.0),
    "infinity": ([[math.inf]], [[math.inf]], KIND, 1.0),
    "a float beyond 2**53": ([[2.0**53]], [[2**53]], KIND, 1.0),
    "2**53 + 1 beside a float": ([[2**53 + 1, 1.0]], [[2**53, 1]], KIND, 0.25),
    "2**64": ([[2**64]], [[2**64]], KIND, 1.0),
    "2**63 beside -1": ([[2**63, -1]], [[-1]], KIND, 0.5),
    "Decimal": ([[Decimal("1.5")]], [[1.5]], KIND, 1.0),
    "complex": ([[1j]], [[1j]], KIND, 1.0),
    "times": ([[DAY]], [[pd.Timestamp(DAY)]], KIND, 1.0),
    "an integer and a text": ([[1, "a"]], [[1]], "'a', a text", 0.5),
    "an integer, then a text": ([[1], ["a"]], [[1], ["a"]], "'a', a text", 1.0),
    "no Unicode": ([["\ud800"]], [["\ud800"]], "valid Unicode", 1.0),
    "triples": ([[(1, 2, 3)]], [[(1, 2, 3)]], KIND, 1.0),
    "classes": ([[object]], [[object]], KIND, 1.0),
}
DOORS: dict[str, Callable[[Any, Any], float]] = {
    "evaluate": lambda *sides: rankmill.evaluate(*sides, ["map"])["map"],
    "arrays": lambda *sides: float(rankmill.arrays.average_precision(*sides).mean()),
    "kaggle": kaggle.mapk,
    "Ragged": lambda *sides: float(
        rankmill.arrays.average_precision(*map(Ragged.from_lists, sides)).mean()
    ),
}


def rows() -> list[Any]:
    """The labels, predictions and expectation of every door and kind."""
    found = [(n, d, *row) for n, row in SAME.items() for d in DOORS]
    for name, (labels, predictions, expected, other) in UNLIKE_RAGGED.items():
        found += [
            (name, d, labels, predictions, other if d == "Ragged" else expected) for d in DOORS
        ]
    for name, (labels, predictions, expected, other) in UNLIKE_KAGGLE.items():
        found += [
            (name, d, labels, predictions, other if d == "kaggle" else expected) for d in DOORS
        ]
    return [pytest.param(*row[1:], id=f"{row[0]}, {row[1]}") for row in found]


@pytest.mark.parametrize(("door", "labels", "predictions", "expected"), rows())
def test_every_door_takes_the_same_cells(
    door: str, labels: Any, predictions: Any, expected: float | str
) -> None:
    if door == "Ragged" and isinstance(expected, str) and "no order" in expected:
        expected = 1.0  # a Ragged does not know whether its lists are predictions
    if isinstance(expected, str):
        with pytest.raises(RankmillError, match=expected) as caught:
            DOORS[door](labels, predictions)
        assert "\n" not in str(caught.value)
    else:
        assert DOORS[door](labels, predictions) == pytest.approx(expected, abs=1e-12)


def test_a_missing_prediction_keeps_its_rank_in_notebooks_alone() -> None:
    sides = [[1]], [[None, 1]]
    assert [DOORS[door](*sides) for door in ("evaluate", "arrays", "kaggle")] == [1.0, 1.0, 0.5]
    assert rankmill.arrays.average_precision([[1]], pa.array([[None, 1]])).tolist() == [1.0]
    assert kaggle.apk([1], [pd.NaT, np.datetime64("NaT", "s"), 1]) == pytest.approx(1 / 3)


def test_a_missing_label_leaves_with_its_gain() -> None:
    predictions, gain = [[2, 1]], [[3, None, 1]]
    expected = rankmill.arrays.ndcg([[1, 2]], predictions, gain=[[3, 1]]).tolist()
    assert rankmill.arrays.ndcg([[1, None, 2]], predictions, gain=gain).tolist() == expected
    with pytest.raises(InputError, match="a gain is nan; expected a finite number"):
        rankmill.arrays.ndcg([[1, 5, 2]], predictions, gain=gain)
    with pytest.raises(InputError, match="labels: list 0 holds a set, which has no order"):
        rankmill.arrays.ndcg([{1, 2}], predictions, gain=[[1, 2]])
    for wrong in ([[DAY]], pa.array([[True]]), pa.array([["a"]])):
        with pytest.raises(InputError, match=r"gain: it holds .*; expected numbers"):
            rankmill.arrays.ndcg([[1]], [[1]], gain=wrong)
    with pytest.raises(InputError, match="9007199254740993 has no float64 of the same value"):
        rankmill.arrays.ndcg([[1]], [[1]], gain=[[2**53 + 1]])


def test_confidences_that_are_no_numbers() -> None:
    for wrong in ([DAY], pa.array([True]), pd.Series(["a"])):
        with pytest.raises(InputError, match=r"^conf.* holds .*expected"):
            kaggle.GAP_vector([1], wrong, [1])
    assert kaggle.GAP_vector([1, 2], [Decimal("0.5"), None], [1, 3]) == 0.5


def test_numbers_of_a_ragged_stay_as_they_are() -> None:
    lists = Ragged.from_lists([[1, math.nan], [0.5]])
    assert lists.offsets.tolist() == [0, 2, 3]
    assert np.array_equal(lists.values, [1, math.nan, 0.5], equal_nan=True)
    assert Ragged.from_lists([np.float32([1, 2])]).values.dtype == np.float32
    assert Ragged.from_lists([[ONE]]).to_lists() == [[str(ONE)]]
    for wrong, told in ((None, "None"), ("ab", "'ab'"), ({1: [2]}, r"\{1: \[2\]\}"), (7, "7")):
        with pytest.raises(InputError, match=rf"^a Ragged holds {told} .*; expected a list"):
            Ragged.from_lists(wrong)
    with pytest.raises(InputError, match=re.escape("list 1, place 0 of its list, holds 'a'")):
        Ragged.from_lists([[1], ["a"]])


ROWS: dict[str, tuple[Any, Any]] = {
    "pairs": ([("u", "a"), ("v", "b")], [("u", "b"), ("v", "b")]),
    "dict items": ({1: 10, 2: 12}.items(), {1: 10, 2: 13}.items()),
    "rows of three": ([(1, 10)], [(1, 10, 1), (1, 11, 2)]),
    "an iterator": (zip([1, 2], [10, 12], strict=True), zip([1, 2], [10, 13], strict=True)),
}


@pytest.mark.parametrize("name", ROWS)
def test_two_tables_of_tuples_are_asked_about(name: str) -> None:
    labels, predictions = map(list, ROWS[name])
    with pytest.raises(UsageError, match=r"are tuples, .*DataFrame .* \[list\(one\) for one in"):
        rankmill.evaluate(labels, predictions, "map")


@pytest.mark.parametrize(
    "predictions",
    [
        [[1, 10], [2, 12]],
        [(1, 10, 11, 12), (2, 12)],
        [(1,), (2,)],
        np.array([[1, 10], [2, 12]]),
        ((1, 10), [2, 12]),
    ],
)
def test_tuples_on_one_side_or_of_other_lengths_are_lists(predictions: Any) -> None:
    assert rankmill.evaluate([(1, 10), (2, 12)], predictions, "hit").metrics["hit"] == 1


def test_the_ways_on_with_tuples_work() -> None:
    rows = [("u", "a"), ("v", "b")], [("u", "b"), ("v", "b")]
    listed = [[list(one) for one in side] for side in rows]
    assert rankmill.evaluate(*listed, "hit").metrics["hit"] == 1
    framed = [pd.DataFrame(side, columns=["query", "item"]) for side in rows]
    assert rankmill.evaluate(*framed, "hit").metrics["hit"] == 0.5


COUNTS = {
    "of integers": {1: pd.Series([5, 3], index=[11, 10]), 2: pd.Series([12, 4], index=[12, 13])},
    "of texts": {1: pd.Series([3, 5], index=["b", "a"]), 2: pd.Series([4], index=["c"])},
    "by pandas": {
        q: pd.Series(items).value_counts() for q, items in {1: [7, 7, 8], 2: [9]}.items()
    },
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_items_are_no_items(name: str) -> None:
    with pytest.raises(InputError, match=r"Series of counts, .*\{query: series.to_dict"):
        rankmill.evaluate({1: [10], 2: [12]}, COUNTS[name], "hit")
    told = {query: one.to_dict() for query, one in COUNTS[name].items()}
    labels = {query: [one.index[0]] for query, one in COUNTS[name].items()}
    assert rankmill.evaluate(labels, told, "hit")["hit"] == 1


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("index", [None, "user", "at"])
def test_series_cut_from_rows_hold_items(index: str | None, ascending: bool) -> None:
    rows = pd.DataFrame(
        {
            "user": [1, 1, 2, 2, 2],
            "item": [7, 9, 8, 9, 7],
            "at": pd.date_range("2024-01-01", periods=5)[::-1],
            "score": [0.2, 0.4, 0.5, 0.1, 0.3],
        }
    ).sort_values("score", ascending=ascending)
    groups = rows if index is None else rows.set_index(index, drop=False)
    groups.index.name = None
    series = {query: group["item"] for query, group in groups.groupby("user")}
    labels = {query: one.tolist() for query, one in series.items()}
    assert rankmill.evaluate(labels, series, "precision@2")["precision@2"] == 1


def test_a_tuple_of_ids_and_distances_is_no_list_of_pairs() -> None:
    found = {1: ([11, 10], [1, 2]), 2: ([12, 13], [1, 3])}
    with pytest.raises(UsageError, match=r"a tuple of two lists; .* give the ids alone, or pairs"):
        rankmill.evaluate({1: [10], 2: [12]}, found, "hit")
    pairs = {query: list(zip(*both, strict=True)) for query, both in found.items()}
    for told in ({query: ids for query, (ids, _) in found.items()}, pairs):
        assert rankmill.evaluate({1: [10], 2: [12]}, told, "hit")["hit"] == 1
    assert rankmill.evaluate({1: [10]}, {1: ([11, 0.9], [10, 0.8])}, "hit")["hit"] == 1


def test_row_numbers_of_a_series_are_no_ids() -> None:
    """A column of lists taken out of a frame has lost the ids beside it."""
    pandas = pytest.importorskip("pandas")
    labels = pandas.DataFrame({"user_id": [1, 2], "item_id": ["a", "b"]})
    frame = pandas.DataFrame({"user_id": [2, 1], "items": [["b"], ["a"]]})
    with pytest.raises(rankmill.UsageError, match="predictions are lists without query ids"):
        rankmill.evaluate(labels, frame["items"], "map@1")
    by_user = frame.set_index("user_id")["items"]
    unnamed = by_user.rename_axis(None)
    for series in (by_user, unnamed):
        assert rankmill.evaluate(labels, series, "map@1")["map@1"] == 1
    assert rankmill.evaluate(frame["items"], frame["items"].copy(), "map@1")["map@1"] == 1
