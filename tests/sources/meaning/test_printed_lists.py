"""Items with their numbers in cells of text, as JSON and Python print them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import rankmill
from rankmill import InputError

LABELS = {1: [10], 2: [12]}
PRINTED = {
    "pairs": ["[(11, 0.9), (10, 0.8)]", "[]"],
    "lists of two": ['[["11", 0.9], ["10", 0.8]]', "[]"],
    "a dict": ["{10: 0.8, 11: np.float64(0.9)}", "{}"],
    "JSON with rank behind": ['{"10": 0.8, "11": 0.9}', "None"],
    "records": ['[{"item": 11, "rating": 0.9}, {"item": 10, "rating": 1e-3}]', "[]"],
    "records of hits": ["[{'_id': '11', '_score': 3}, {'_id': '10', '_score': 2}]", "[]"],
}


@pytest.mark.small
@pytest.mark.parametrize("name", PRINTED)
@pytest.mark.parametrize("table", [False, True])
def test_items_with_numbers(name: str, table: bool, tmp_path: Any) -> None:
    given: Any = pa.table({"user_id": [1, 2], "items": PRINTED[name]})
    if not table:
        path = tmp_path / "run.csv"
        given.to_pandas().to_csv(path, index=False)
        given = path
    result = rankmill.evaluate(LABELS, given, ["first_hit", "gap"])
    assert (result["first_hit"], result["gap"]) == (0.25, 0.25)


@pytest.mark.rows(1)
@pytest.mark.small
@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("[(11, 0.9)]", "[11, 10]"),
        ("[(11, 0.9)]", "[(11, 0.9, 1)]"),
        ("{11: 0.9}", "[11]"),
        ("{11: 0.9}", "{11: 'high'}"),
        ('[{"item": 11, "score": 1}]', '[{"item": 11, "score": "high"}]'),
        ('[{"item": 11, "score": 1}]', "[11]"),
    ],
)
@pytest.mark.long
def test_other_cells_among_them(first: str, later: str) -> None:
    cells = [first] * 30_000 + [later]
    table = pa.table({"user_id": range(len(cells)), "items": cells})
    with pytest.raises(InputError, match=r"\(row 30000, column 'items'\): found .* as in the"):
        rankmill.evaluate(LABELS, table, ["map"])


@pytest.mark.small
def test_two_ids_are_no_item_and_number() -> None:
    table = pa.table({"user_id": [1, 2], "items": ["[[11, 10]]", "[[12, 7]]"]})
    with pytest.raises(InputError, match="expected a list of items: write items and numbers"):
        rankmill.evaluate(LABELS, table, ["map"])


@pytest.mark.small
def test_what_is_no_number_of_python_is_text() -> None:
    table = pa.table({"user_id": [1, 2], "items": ["[1e999, 10]", "[12, 7.5]"]})
    assert rankmill.evaluate(LABELS, table, ["first_hit"])["first_hit"] == 0.75
