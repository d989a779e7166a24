"""A column for each rank holds items: numbers that seem to be values of items are refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import rankmill
from rankmill import InputError, Labels, Predictions
from rankmill.arrays import Matrix

pytestmark = pytest.mark.small

RUN = {1: [2, 0], 2: [2]}
METRIC = "first_hit@3"


def columns(stem: str, *rows: list[Any], first: int = 0) -> Any:
    names = [f"{stem}{first + i}" for i in range(len(rows[0]))]
    each = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return pd.DataFrame({"user_id": [*range(1, len(rows) + 1)], **each})


def forms(frame: Any, path: Path) -> list[Any]:
    frame.to_csv(path / "file.csv", index=False)
    frame.to_parquet(path / "file.parquet")
    return [frame, pa.table(frame), path / "file.csv", path / "file.parquet"]


@pytest.mark.parametrize(
    ("stem", "rows", "seen"),
    [
        ("label_", ([1, 0, 0], [0, 0, 1]), "nothing but 0 and 1"),
        ("item_", ([1.0, 0.0], [0.0, 1.0]), "nothing but 0 and 1"),
        ("pred_", ([1, 0], [0, 1]), "nothing but 0 and 1"),
        ("target_", ([True, False], [False, True]), "booleans"),
        ("label_", ([30, 45, 2], [1, 3, 90]), "numbers, such as 30, 45, 2"),
        ("item_", ([3, 2, 0, 1], [0, 1, 2, 4]), "nothing but small numbers, such as 3, 2, 0"),
        ("item_", ([9, 0, 0, 7], [0, 0, 8, 7], [1, 2, 3, 9]), "repeat a number in most rows"),
        ("rec_", ([0, 0, 12], [0, 0, 13]), "repeat a number in most rows, such as 0, 0, 12"),
    ],
)
def test_values_of_items_are_no_ranks(stem: str, rows: Any, seen: str, tmp_path: Path) -> None:
    for given in forms(columns(stem, *rows), tmp_path):
        for sides in ((given, RUN), (RUN, given)):
            with pytest.raises(InputError, match=f"'{stem}1'") as error:
                rankmill.evaluate(*sides, METRIC)
            assert seen in str(error.value)
            assert "rankmill.arrays.Matrix" in str(error.value)


@pytest.mark.parametrize(
    ("stem", "rows"),
    [
        ("rec_", ([11, 10, 12], [12, 13, 14])),
        ("item_", ([11, 10, 12], [12, 13, 14])),
        ("", ([11, 10, 12], [12, 13, 14])),
        ("rec_", ([1, 2, 3], [2, 1, 3])),
        ("rec_", ([11, 10, -1], [-1, -1, 12])),
        ("item_", ([11, 0, 0], [12, 0, 0])),
        ("label_", (["a", "b"], ["b", "a"])),
        ("item_", (["007", "7"], ["7", "007"])),
        ("item_", ([11, None, None], [12, 13, None])),
    ],
)
def test_items_are_ranked_without_a_note(stem: str, rows: Any, tmp_path: Path) -> None:
    lists = [[one for one in row if one is not None] for row in rows]
    labels = {1: lists[0][:1], 2: lists[1][:1]}
    for given in forms(columns(stem, *rows).astype(object).convert_dtypes(), tmp_path):
        found = rankmill.evaluate(labels, given, METRIC)
        assert found[METRIC] == 1
        assert [one for one in found.notes if "padding" not in one] == []


@pytest.mark.parametrize(
    ("stem", "read"), [("item_", False), ("", False), ("rec_", True), ("top", True)]
)
def test_columns_with_the_ids_of_the_other_side(stem: str, read: bool, tmp_path: Path) -> None:
    """Of scores, nothing in one side tells; a name of ranks counts, if any value is an item."""
    for given in forms(columns(stem, [30, 45, 2], [1, 3, 90], first=1), tmp_path):
        labels = {1: [1], 2: [3]}
        if read:
            assert rankmill.evaluate(labels, given, METRIC)[METRIC] == 0.25
        else:
            with pytest.raises(InputError, match="the items 1, 3, after which they are"):
                rankmill.evaluate(labels, given, METRIC)
        with pytest.raises(InputError, match="the items 1, after which they are"):
            rankmill.evaluate({1: [1], 2: [1]}, columns(stem, [30, 45], [9, 3], first=1), METRIC)


def test_each_way_on_works(tmp_path: Path) -> None:
    frame = columns("label_", [1, 0, 0], [0, 0, 1])
    for given in forms(frame, tmp_path):
        with pytest.raises(InputError) as error:
            rankmill.evaluate(given, RUN, METRIC)
        (item,) = re.findall(r'Labels\(item="(.*)"\)', str(error.value))
        assert rankmill.evaluate(Labels(given, item=item), RUN, METRIC)[METRIC] == 0.25
    rows = frame.melt("user_id", var_name="item_id", value_name="gain")
    rows["item_id"] = rows["item_id"].str.removeprefix("label_").astype(int)
    assert rankmill.evaluate(rows, RUN, METRIC)[METRIC] == 0.75
    matrix = Matrix(frame.drop(columns="user_id").to_numpy())
    assert rankmill.evaluate(matrix, Matrix([[0.2, 0.1, 0.3], [0, 0, 1]]), METRIC)[METRIC] == 0.75
    counts = columns("item_", [30, 45, 2], [1, 3, 90], first=1)
    told = Predictions(counts, item="item_1 to item_3")
    assert rankmill.evaluate({1: [1], 2: [3]}, told, METRIC)[METRIC] == 0.25


def test_the_way_on_of_the_command_line(run: Any, tmp_path: Path) -> None:
    labels, counts = tmp_path / "labels.csv", tmp_path / "counts.csv"
    labels.write_text("user_id,item_id\n1,1\n2,3\n")
    columns("item_", [30, 45, 2], [1, 3, 90], first=1).to_csv(counts, index=False)
    asked = ("evaluate", labels, counts, "-m", METRIC, "--format", "json")
    code, _, err = run(*asked)
    assert (code, "use --item 'item_1 to item_3' and --label-item NAME" in err) == (3, True)
    code, out, _ = run(*asked, "--item", "item_1 to item_3", "--label-item", "item_id")
    assert (code, json.loads(out)["metrics"][METRIC]) == (0, 0.25)
