"""Structs of an item and more: no field that may be a number is passed over in silence."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import rankmill
from rankmill import InputError

pytestmark = pytest.mark.small

RUN = {1: [11, 10], 2: [12]}


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
