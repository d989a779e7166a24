"""Structs of an item and more: no field that may be a number is passed over in silence."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
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
        ({"label": [1, 0, 1], "score": [0.1, 0.9, 0.7]}, 0.75),
        ({"score": [0.1, 0.9, 0.7], "label": [True, False, True], "title": ["a", "b", "c"]}, 0.75),
        ({"label": [1, 0, 1], "position": [1, 2, 1], "price": [9.5, 0.0, 2.0]}, 0.75),
        ({"relevance": [1, 0, 1], "score": [0.1, 0.9, 0.7]}, 0.75),
        ({"clicked": [1, 0, 1], "score": [0.1, 0.9, 0.7]}, 0.75),
        ({"relevant": ["true", "false", "true"]}, 0.75),
        ({"relevant": ["yes", "no", "yes"]}, "'items.relevant' may say which rows"),
        ({"clicked": [1, 1, 1], "purchased": [1, 0, 1]}, "'items.clicked', 'items.purchased' may"),
        ({"_2": [1.0, 0.0, 1.0]}, 1.0),
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


@pytest.mark.parametrize("name", ["price", "discount", "days_ago", "dwell", "weight", "rating"])
def test_a_number_of_no_known_name_is_no_gain_of_labels(name: str) -> None:
    table = labels(**{name: [0.5, 0.0, 0.5]})
    hits = {1: table["items"][0].as_py(), 2: table["items"][1].as_py()}
    for given in (table, table.to_pylist(), hits):
        result = rankmill.evaluate(given, RUN, "first_hit")
        assert result["first_hit"] == 1
        (note,) = result.notes
        assert f"{name}' is not read" in note
        told = rankmill.Labels(given, gain=name)
        assert rankmill.evaluate(told, RUN, "first_hit")["first_hit"] == 0.75


def test_each_field_of_labels_is_read_or_listed() -> None:
    table = labels(score=[0.1, 0.9, 0.7], label=[1, 0, 1])
    hits = {1: table["items"][0].as_py(), 2: table["items"][1].as_py()}
    for given in (table, table.to_pylist(), table.to_pydict(), table.to_pandas(), hits):
        for gain, expected in ((None, 0.75), ("label", 0.75), ("items.label", 0.75), ("score", 1)):
            told = rankmill.Labels(given, gain=gain)
            result = rankmill.evaluate(told, RUN, "first_hit")
            assert result["first_hit"] == expected
            (unread,) = result.inputs["labels"]["unread"]
            assert unread.endswith("label" if gain == "score" else "score")


def test_fields_of_other_structs_are_no_gains() -> None:
    seen = [[{"item_id": 5, "rating": 0}], [{"item_id": 6, "label": 0}] * 2]
    rows = {"user_id": [1, 2], "score": [0.1, 0.2], "items": [[10], [12]], "history": seen}
    given = pa.table(rows)
    for one in (given, given.to_pylist()):
        result = rankmill.evaluate(one, RUN, "first_hit")
        assert (result["first_hit"], "gain" in result.inputs["labels"]["columns"]) == (0.75, False)


def test_a_field_may_be_in_later_hits_or_in_some_files_only(tmp_path: Any) -> None:
    hits = {1: [{"item_id": 10}, {"item_id": 11, "label": 0}], 2: [{"item_id": 12, "label": 1}]}
    with pytest.raises(InputError, match="'label' is missing"):
        rankmill.evaluate(hits, RUN, "first_hit")
    both = labels(label=[1, 0, 1], title=["a", "b", "c"]), labels(label=[1, 0, 1])
    for i, table in enumerate(both):
        pq.write_table(table.slice(i, 1), tmp_path / f"{i}.parquet")
    assert rankmill.evaluate(tmp_path, RUN, "first_hit")["first_hit"] == 0.75


def test_an_id_beside_an_item_id_is_no_item() -> None:
    given = pa.table({"user_id": [1], "items": [[{"id": 5, "item_id": 10}, {"id": 10}]]})
    assert rankmill.evaluate(given, {1: [11, 10]}, "first_hit")["first_hit"] == 0.5


def test_what_labels_tell_is_no_score_of_predictions() -> None:
    fields = {"label": [0, 1, 1], "rating": [0.9, 0.8, 0.7]}
    assert rankmill.evaluate(LABELS, labels(**fields, score=[0.8, 0.9, 0.7]), "gap")["gap"]
    for more, suggested in ((fields, "rating"), ({"label": [0, 1, 1]}, "label")):
        with pytest.raises(InputError, match=f'no column looks like .*score="items.{suggested}"'):
            rankmill.evaluate(LABELS, labels(**more), "gap")


def test_several_numbers_of_predictions_are_told() -> None:
    table = labels(ctr=[0.8, 0.2, 0.7], cvr=[0.1, 0.9, 0.7])
    for given in (table, table.to_pylist()):
        (note,) = rankmill.evaluate(LABELS, given, "first_hit").notes
        assert re.search("ctr', .*cvr' are not read: the predictions are in the order given", note)
        in_order = rankmill.Predictions(given, in_order=True)
        assert not rankmill.evaluate(LABELS, in_order, "first_hit").notes


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
