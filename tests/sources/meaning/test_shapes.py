"""Structs of an item and more: no field that may be a number is passed over in silence."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import rankmill
from rankmill import InputError

pytestmark = pytest.mark.small

RUN = {1: [11, 10], 2: [12]}
LABELS = {1: [10], 2: [12]}


def labels(**fields: Any) -> Any:
    """Lists of structs for two queries: the first item of the first is relevant, and the second."""
    each = [dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True)]
    (first, second, third) = ({"item_id": 10 + i} | more for i, more in enumerate(each))
    return pa.table({"user_id": [1, 2], "items": [[first, second], [third]]})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"relevance": ["1", "0", "1"]}, 0.75),
        ({"relevance": [True, False, True], "votes": [3, 4, 5]}, 0.75),
        ({"clicked": [True, False, True]}, 0.75),
        ({"clicked": [True, False, True], "title": ["a", "b", "c"]}, 0.75),
        ({"relevance": [1, 0, 1], "seen": [True, True, True]}, 0.75),
        ({"title": ["a", "b", "c"]}, 1.0),
        ({"flag": [True, False, True]}, "'items.flag' may say which rows are relevant"),
        ({"relevance": ["yes", "no", "yes"]}, "'items.relevance'.: found 'yes'"),
    ],
)
def test_fields_beside_an_item(fields: Any, expected: float | str) -> None:
    table = labels(**fields)
    for given in (table, table.to_pylist()):
        if isinstance(expected, float):
            assert rankmill.evaluate(given, RUN, "first_hit")["first_hit"] == expected
        else:
            wanted = expected if given is table else expected.replace("items.", "")
            with pytest.raises(InputError, match=wanted):
                rankmill.evaluate(given, RUN, "first_hit")


def test_booleans_of_predictions_are_no_scores() -> None:
    hits = [[{"item_id": 11, "clicked": False}, {"item_id": 10, "clicked": True}]]
    table = pa.table({"user_id": [1], "items": hits})
    assert rankmill.evaluate({1: [10]}, table, "first_hit")["first_hit"] == 0.5
    with pytest.raises(InputError, match="no column looks like the score"):
        rankmill.evaluate({1: [10]}, table, "gap")


@pytest.mark.parametrize("score", [{}, {"score": [0.9, 0.8, 0.7]}])
def test_ranks_order_lists_whatever_their_order(score: Any) -> None:
    truth = pa.table({"user_id": [1, 2], "item_id": [10, 12]})
    table = labels(rank=[2, 1, 1], **score)
    beside = pa.table({"user_id": [1, 2], "items": [[10, 11], [12]], "rank": [["2", "1"], ["1"]]})
    for given in (table, table.to_pylist(), beside):
        predictions = rankmill.Predictions(given)
        assert rankmill.evaluate(truth, predictions, "first_hit@3")["first_hit@3"] == 0.75
        in_order = rankmill.Predictions(given, in_order=True)
        assert rankmill.evaluate(truth, in_order, "first_hit@3")["first_hit@3"] == 1
    assert not rankmill.evaluate(table, truth.append_column("rank", truth["user_id"]), "map").notes
    with pytest.raises(InputError, match="a rank is missing"):
        rankmill.evaluate(truth, labels(rank=[2, None, 1]), "first_hit@3")


def test_extension_types_of_numbers_and_lists() -> None:
    clicks = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, 1], pa.int8()))
    rows = pa.table({"user_id": [1, 1, 2], "item_id": [10, 11, 12], "clicked": clicks})
    lists = pa.FixedSizeListArray.from_arrays(pa.array([11, 10, 12, 5]), 2)
    tensor = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int64(), [2]), lists)
    predictions = pa.table({"user_id": [1, 2], "items": tensor})
    assert rankmill.evaluate(rows, predictions, "first_hit@3")["first_hit@3"] == 0.75


ENCODED: dict[str, Any] = {
    "categories": lambda values: pd.Categorical(values),
    "categories of booleans": lambda values: pd.Categorical([one == 1 for one in values]),
    "sparse": lambda values: pd.arrays.SparseArray(values),
    "dictionary": lambda values: pa.array(values).dictionary_encode(),
    "run ends": lambda values: pa.RunEndEncodedArray.from_arrays([1, 2, 3], values),
    "bool8": lambda values: pa.ExtensionArray.from_storage(pa.bool8(), pa.array(values, pa.int8())),
}


@pytest.mark.parametrize("name", ["relevance", "label", "clicked"])
@pytest.mark.parametrize("form", ENCODED)
def test_encoded_numbers_count(form: str, name: str) -> None:
    columns = {"user_id": [1, 1, 2], "item_id": [10, 11, 12], name: ENCODED[form]([1, 0, 1])}
    arrow = isinstance(columns[name], pa.Array)
    given = pa.table(columns) if arrow else pd.DataFrame(columns)
    assert rankmill.evaluate(given, RUN, "first_hit")["first_hit"] == 0.75


def test_encoded_numbers_order_or_are_asked_about() -> None:
    rows = {"user_id": pa.RunEndEncodedArray.from_arrays([2, 3], [1, 2]), "item_id": [10, 11, 12]}
    scores = pa.array([2, 3, 1]).dictionary_encode()
    assert (
        rankmill.evaluate(LABELS, pa.table(rows | {"yhat": scores}), "first_hit")["first_hit"]
        == 0.75
    )
    with pytest.raises(InputError, match="numeric column 'column' is left over"):
        rankmill.evaluate(LABELS, pa.table(rows | {"column": scores}), "first_hit")


def test_encoded_numbers_in_lists_count() -> None:
    flags = pa.ListArray.from_arrays([0, 2, 3], pa.array([1, 0, 1]).dictionary_encode())
    items = pa.ListArray.from_arrays(
        [0, 2, 3], pa.RunEndEncodedArray.from_arrays([1, 2, 3], [10, 11, 12])
    )
    given = pa.table({"user_id": [1, 2], "items": items, "clicked": flags})
    assert rankmill.evaluate(given, RUN, "first_hit")["first_hit"] == 0.75


def test_two_columns_of_one_name_are_named_in_the_error() -> None:
    twice = pa.array([1, 2]).dictionary_encode()
    given = pa.table([[1, 2], twice, twice], names=["user_id", "item_id", "item_id"])
    with pytest.raises(InputError, match="several columns could be the item"):
        rankmill.evaluate(given, RUN, "first_hit")


def test_structs_of_a_row() -> None:
    users = [{"id": 1, "country": "x"}, {"id": 1, "country": "x"}, {"id": 2, "country": "y"}]
    items = [{"id": 10, "score": 0.8}, {"id": 11, "score": 0.9}, {"id": 12, "score": 0.7}]
    for given in (pa.table({"user": users, "item": items}), {"user": users, "item": items}):
        assert rankmill.evaluate(LABELS, given, "first_hit")["first_hit"] == 0.75
