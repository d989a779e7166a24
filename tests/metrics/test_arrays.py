"""The functions over arrays: what they take besides Ragged, and what they refuse."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from conftest import tells

import rankmill
from rankmill import InputError, UsageError
from rankmill.arrays import Ragged

FUNCTIONS = {
    "average_precision": {"k": 3},
    "first_hit_precision": {"k": 3},
    "precision": {"k": 3},
    "recall": {"k": 3},
    "hit": {"k": 3},
    "f1": {"k": 3},
    "r_precision": {},
    "dcg": {"k": 3},
    "ndcg": {"k": 3},
}
LISTS = {
    "integers": ([[1, 2], [3], []], [[1, 9, 2], [8, 9], [3]]),
    "strings": ([["a", "b"], ["c"], []], [["a", "x", "b"], ["y", "x"], ["c"]]),
    "tuples": (((1, 2), (3,), ()), ((1, 9, 2), (8, 9), (3,))),
    "arrays": (
        [np.array([1, 2]), np.array([3]), np.array([], int)],
        [np.array([1, 9, 2]), np.array([8, 9]), np.array([3])],
    ),
    "large": ([[2**64 - 1, 2], [3], []], [[2**64 - 1, 9, 2], [8, 9], [3]]),
}


@pytest.mark.small
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", LISTS)
def test_plain_lists_are_as_good_as_ragged(name: str, kind: str) -> None:
    function = getattr(rankmill.arrays, name)
    ragged = [Ragged.from_lists(side) for side in LISTS[kind]]
    expected = function(*ragged, **FUNCTIONS[name])
    assert expected[0] > 0
    for given in (LISTS[kind], [one.to_arrow() for one in ragged], (ragged[0], LISTS[kind][1])):
        assert function(*given, **FUNCTIONS[name]).tolist() == expected.tolist()


@pytest.mark.small
def test_plain_gains() -> None:
    lists = [[1, 2], [3]], [[2, 1], [3]]
    ragged = Ragged.from_lists([[1, 3.5], [2]])
    expected = rankmill.arrays.dcg(*lists, gain=ragged)
    assert rankmill.arrays.dcg(*lists, gain=[[1, 3.5], [2]]).tolist() == expected.tolist()
    assert rankmill.arrays.average_precision([], []).tolist() == []
    assert rankmill.arrays.average_precision(np.array([[1, 2]]), [[1, 2]]).tolist() == [1.0]


@pytest.mark.small
@pytest.mark.parametrize(
    ("labels", "predictions", "kind", "wanted"),
    [
        ([1, 2], [[1], [2]], InputError, ["labels: list 0 holds 1 (int)", "write [item]"]),
        ([[1], [2]], ["ab", "c"], InputError, ["predictions: list 0 holds 'ab'", "split it"]),
        ("ab", [[1]], UsageError, ["labels", "a str"]),
        ([[1]], None, UsageError, ["predictions", "a NoneType"]),
        ({1: [1]}, [[1]], UsageError, ["labels", "a dict"]),
        ([[1, "a"]], [[1]], InputError, ["labels: list 0, place 1", "'a', a text"]),
        ([[1]], [["a"]], InputError, ["int64", "string", "both integers or both strings"]),
        ([[0.5]], [[0.5]], InputError, ["labels", "float|double"]),
        ([[1]], [[1], [2]], InputError, ["1 list of labels", "2 of predictions"]),
    ],
)
def test_refused(labels: Any, predictions: Any, kind: type[Exception], wanted: list[str]) -> None:
    with pytest.raises(kind) as caught:
        rankmill.arrays.average_precision(labels, predictions)
    tells(caught.value, wanted)


@pytest.mark.small
def test_refused_gains() -> None:
    for gain, wanted in (
        ([["a"]], ["gain", "string", "number"]),
        ([1.0], ["gain", "list 0 holds 1.0"]),
        ([[1.0, 2.0]], ["gain", "one gain per label"]),
        ([[float("nan")]], ["a gain is nan", "expected a finite number"]),
    ):
        with pytest.raises(rankmill.RankmillError) as caught:
            rankmill.arrays.ndcg([[1]], [[1]], gain=gain)
        tells(caught.value, wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_misspelt_argument_is_reported_under_the_name_of_the_function(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{re.escape(name)}\(\) got an unexpected keyword"):
        getattr(rankmill.arrays, name)([[1]], [[1]], cutoff=3)
