"""JSON Lines say what a table of the same rows says, be it a value or a refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rankmill
from portions import in_blocks
from rankmill import InputError

pytestmark = pytest.mark.small

LABELS = {"user_id": [1, 1, 2], "item_id": [10, 11, 12]}
RUN = {"user_id": [1, 1, 2], "item_id": [11, 10, 12], "score": [0.9, 0.8, 0.7]}
WIDE = {"user_id": [1, 2], "items": [[11, 10], [12]]}
ONLY = {1: [10], 2: [12]}
HITS = [
    [{"item_id": 11, "score": "0.9"}, {"item_id": 10, "score": "0.8"}],
    [{"item_id": 12, "score": "0.7"}],
]


def rows_of(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def told(labels: Any, predictions: Any) -> Any:
    """The value, or what is wrong, without the place."""
    try:
        return rankmill.evaluate(labels, predictions, "first_hit@3")["first_hit@3"]
    except InputError as error:
        return str(error).rpartition("column '")[2]


# The columns of one side -> those of the other, and the value or a part of the refusal.
SAME: dict[str, tuple[Any, Any, float | str]] = {
    "booleans": (LABELS | {"clicked": [True, False, True]}, RUN, 0.75),
    "a boolean of no known name": (LABELS | {"flag": [True, False, True]}, RUN, "may say which"),
    "a missing boolean": (LABELS | {"clicked": [True, None, True]}, RUN, "is missing"),
    "digits": (LABELS | {"relevance": ["1", "0", "1"]}, RUN | {"score": ["9", "8", "7"]}, 0.75),
    "words": (LABELS | {"relevance": ["yes", "no", "yes"]}, RUN, "found 'yes'"),
    "a decimal comma": (ONLY, RUN | {"score": ["0,9", "0,8", "0,7"]}, "a decimal point"),
    "ranks that are floats": (ONLY, RUN | {"rank": [1.0, 2.0, 1.0]}, 0.75),
    "a rank between": (ONLY, RUN | {"rank": [1.5, 2.0, 1.0]}, "found 1.5; expected a whole"),
    "ids that are floats": (ONLY, RUN | {"item_id": [11.0, 10.0, 12.0]}, 0.75),
    "lists of booleans": (WIDE | {"clicked": [[False, True], [True]]}, RUN, 0.75),
    "texts in objects": (ONLY, {"user_id": [1, 2], "items": HITS}, 0.75),
}


@pytest.mark.parametrize("name", SAME)
def test_rows_are_read_as_those_of_a_table(name: str, tmp_path: Path) -> None:
    *sides, expected = SAME[name]
    tables = [pa.table(one) if one is not ONLY else ONLY for one in sides]
    lines = [
        written(tmp_path / f"{i}.jsonl", rows_of(one)) if one is not ONLY else ONLY
        for i, one in enumerate(sides)
    ]
    found = told(*tables)
    assert told(*lines) == found
    assert found == expected if isinstance(expected, float) else expected in str(found)


# What comes after many rows with whole numbers, and the value or the refusal.
LATER: dict[str, tuple[dict[str, Any], float | str]] = {
    "scores": ({"item_id": 10, "score": 0.5}, 1.0),
    "ids": ({"item_id": 10.0, "score": 2}, 1.0),
    "a fraction as an id": ({"item_id": 1.5, "score": 2}, "line 41, column 'item_id'.: found 1.5"),
    "a text": ({"item_id": 10, "score": "2"}, r"line 41: score is '2' \(str\); expected a number"),
    "lists": ({"items": [10], "scores": [0.5]}, 1.0),
    "objects": ({"items": [{"item_id": 10, "score": 0.5}]}, 1.0),
}


@pytest.mark.parametrize("name", LATER)
def test_fractions_may_come_after_whole_numbers(name: str, tmp_path: Path) -> None:
    last, expected = LATER[name]
    whole = json.loads(json.dumps(last).replace("0.5", "3").replace("1.5", "1").replace(".0", ""))
    whole = whole | {"score": 2} if name == "a text" else whole
    rows = [{"user_id": i} | whole for i in range(40)]
    path = written(tmp_path / "p.jsonl", [*rows, {"user_id": 40} | last])
    labels = {i: [10] for i in range(40, 41)}
    for size in (200, 10_000 if isinstance(expected, float) else 300):
        run = in_blocks(path, size)
        if isinstance(expected, float):
            assert rankmill.evaluate(labels, run, "map")["map"] == expected
        else:
            with pytest.raises(InputError, match=expected):
                rankmill.evaluate(labels, run, "map")


def test_integers_beyond_2_to_53_are_not_read_as_floats(tmp_path: Path) -> None:
    rows = [{"user_id": i, "item_id": 7, "score": 2} for i in range(40)]
    last = [{"user_id": 40, "item_id": 7, "score": score} for score in (2**53 + 1, 0.5)]
    run = in_blocks(written(tmp_path / "p.jsonl", [*rows, *last]), 100)
    with pytest.raises(InputError, match=r"p.jsonl: line 4\d: .* 0.5 is no integer of 64 bits"):
        rankmill.evaluate({40: [7]}, run, "map")
    # Those of a column beside it stay exact.
    big = 2**62 + 1
    last = [{"user_id": big, "item_id": one, "score": 0.5} for one in (big, big + 1)]
    run = in_blocks(written(tmp_path / "p.jsonl", [*rows, *last]), 100)
    assert rankmill.evaluate({big: [big + 1]}, run, "mrr")["mrr"] == 0.5
