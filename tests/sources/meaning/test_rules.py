"""Every rule by which columns are read: an example that it reads, and its line of a page."""

from __future__ import annotations

import datetime
import decimal
import re
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import rankmill
from rankmill import Labels, Predictions
from rankmill.engine.head import head
from rankmill.sources.inputs.inputs import Input, open_inputs
from rankmill.sources.meaning import rules
from rankmill.sources.meaning.rules import RULES
from rankmill.sources.roles.source import batch_of

IDS = ("user_id", "item_id")


def table(**columns: Any) -> pa.Table:
    return pa.table(columns)


LABELS = table(user_id=[1, 2], item_id=[10, 12])
RUN = table(user_id=[1, 1, 2], item_id=[11, 10, 12], score=[0.9, 0.8, 0.7])
TEXTS = table(user_id=[1, 2], items=[["a"], ["b"]])
WIDE = table(user_id=[1, 2], items=[["x", "a"], ["b"]])


def wide(cells: Any, kind: pa.DataType | None = None, **more: Any) -> pa.Table:
    return table(user_id=[1, 2], items=pa.array(cells, kind), **more)


def keyed(noun: Any, *columns: Any) -> Any:
    return noun(table(user_id=[1, 2], day=columns[0], items=columns[1]), query="user_id,day")


def struct(**kinds: pa.DataType) -> pa.DataType:
    return pa.struct(list(kinds.items()))


DAYS = [datetime.date(2024, 5, 1), datetime.date(2024, 5, 2)]
GRADED = LABELS.append_column("purchased", pa.array([True, True]))
UUIDS = [bytes(range(16)), bytes(range(1, 17))]
UPPER = ["00010203-0405-0607-0809-0A0B0C0D0E0F", "01020304-0506-0708-090A-0B0C0D0E0F10"]
NUMBERED = struct(item=pa.string(), score=pa.float64())


class Example(NamedTuple):
    labels: Any
    predictions: Any
    column: str  # that the rule reads
    value: float | None = 0.75


EXAMPLES = {
    "found by its name": Example(LABELS, RUN, "score"),
    "you named it": Example(Labels(LABELS, item="item_id"), RUN, "item_id"),
    "part of the query": Example(
        keyed(Labels, ["a", "b"], [["x"], ["y"]]),
        keyed(Predictions, ["a", "b"], [["z", "x"], ["y"]]),
        "day",
    ),
    "named after an event": Example(GRADED, RUN, "purchased"),
    "struct of one field": Example(
        wide([{"list": [{"element": "a"}]}, {"list": [{"element": "b"}]}]), WIDE, "items"
    ),
    "structs of item and number": Example(
        TEXTS, wide([[("x", 0.9), ("a", 0.8)], [("b", 0.7)]], pa.list_(NUMBERED)), "items"
    ),
    "pairs in lists": Example(
        {1: [10], 2: [12]}, wide([[[11, 0.9], [10, 0.8]], [[12, 0.7]]]), "items"
    ),
    "map of items": Example(
        TEXTS,
        wide([[("a", 0.8), ("x", 0.9)], [("b", 0.7)]], pa.map_(pa.string(), pa.float64())),
        "items",
    ),
    "field per item": Example(TEXTS, wide([{"a": 0.8, "x": 0.9}, {"b": 0.7}]), "items"),
    "column per rank": Example(
        LABELS, table(user_id=[1, 2], rec_1=[11, 12], rec_2=[10, 13]), "rec_2"
    ),
    "separated list": Example(TEXTS, wide(["x a", "b x"]), "items"),
    "one item of several words": Example(
        table(user_id=[1, 2], item_id=["Toy Story", "Heat"]),
        table(user_id=[1, 1, 2], item_id=["Big Fish", "Toy Story", "Heat"], rank=[1, 2, 1]),
        "item_id",
    ),
    "printed list": Example(TEXTS, wide(["['x', 'a']", "['b' 'c']"]), "items"),
    "items and numbers in turn": Example(TEXTS, wide(["x 0.9 a 0.8", "b 0.7"]), "items"),
    "list beside the items": Example(
        TEXTS, wide(["['x', 'a']", "['b']"], scores=["[0.9, 0.8]", "[0.7]"]), "scores"
    ),
    "numbers of the items": Example(
        wide([[("a", 1.0), ("x", 0.0)], [("b", 1.0)]], pa.map_(pa.string(), pa.float64())),
        WIDE,
        "items.value",
    ),
    "missing lists": Example(
        TEXTS, [WIDE, table(user_id=[3], items=pa.array([None], pa.float64()))], "items"
    ),
    "whole doubles": Example(table(user_id=[1.0, 2.0], item_id=[10.0, 12.0]), RUN, "item_id"),
    "decimals": Example(
        table(user_id=[1, 2], item_id=[decimal.Decimal(10), decimal.Decimal(12)]), RUN, "item_id"
    ),
    "UUIDs": Example(
        wide([UUIDS[:1], UUIDS[1:]], pa.list_(pa.binary(16))),
        wide([UUIDS[::-1], UUIDS[1:]], pa.list_(pa.binary(16))),
        "items",
    ),
    "dates and times": Example(
        keyed(Labels, DAYS, [["x"], ["y"]]),
        keyed(Predictions, list(map(str, DAYS)), [["z", "x"], ["y"]]),
        "day",
    ),
    "booleans as ids": Example(
        keyed(Labels, [True, False], [["x"], ["y"]]),
        keyed(Predictions, ["true", "false"], [["z", "x"], ["y"]]),
        "day",
    ),
    "text as integers": Example(
        LABELS.cast(pa.schema(dict.fromkeys(IDS, pa.string()))), RUN, "item_id"
    ),
    "integers as text": Example(
        LABELS, RUN.set_column(1, "item_id", pa.array(["x", "10", "12"])), "item_id"
    ),
    "integers with a point": Example(
        table(user_id=["1.0", "2.0"], item_id=["10", "12.0"]), RUN, "item_id"
    ),
    "UUIDs in lower case": Example(
        wide([UUIDS[:1], UUIDS[1:]], pa.list_(pa.binary(16))),
        wide([UPPER[::-1], UPPER[1:]]),
        "items",
    ),
    "times in text": Example(
        LABELS.set_column(0, "user_id", pa.array([0, 1500], pa.timestamp("ms", "Asia/Tokyo"))),
        {"1970-01-01T00:00:00.000Z": [11, 10], "1970-01-01 09:00:01.50+09:00": [12]},
        "query",
    ),
    "spaces around ids": Example(wide([["a "], ["\tb"]]), WIDE, "items"),
    "other blanks around ids": Example(wide([["a\xa0"], ["b"]]), WIDE, "items", 0.5),
    "words for missing": Example(wide([["a", "None"], ["b", "\\N"]]), WIDE, "items"),
    "padding": Example(
        {1: [10], 2: [12]}, Predictions(wide([[11, 10, -1], [12, -1, -1]]), padding=-1), "items"
    ),
    "numbers in text": Example(
        LABELS, RUN.set_column(2, "score", pa.array(["0.9", "8e-1", ".7"])), "score"
    ),
    "decimal commas": Example(
        LABELS,
        Predictions(RUN.set_column(2, "score", pa.array(["0,9", "0,8", "0,7"])), decimal=","),
        "score",
    ),
    "booleans as numbers": Example(
        table(user_id=[1, 1, 2], item_id=[10, 11, 12], relevance=[True, False, True]),
        RUN,
        "relevance",
    ),
    "whole ranks": Example(
        LABELS, RUN.drop_columns("score").append_column("rank", pa.array([1.0, 2.0, 1.0])), "rank"
    ),
}


def read(one: Input) -> dict[str, list[str]]:
    """The rules that read each column, once all rows are read."""
    for piece in one.source.pieces(one.columns.names()):
        for block in piece:
            batch_of(block)
    found = one.source.findings.rules()
    assert {rule for some in found.values() for rule in some} <= {*RULES}
    return found


def given(value: Any, folder: Path) -> Any:
    """An input; several tables are the files of a folder."""
    if not isinstance(value, list):
        return value
    for number, part in enumerate(value):
        pa.parquet.write_table(part, folder / f"{number}.parquet")
    return folder


@pytest.mark.small
@pytest.mark.parametrize("name", RULES)
def test_a_rule_reads_its_example(name: str, tmp_path: Path) -> None:
    example = EXAMPLES[name]
    labels = Labels.of(example.labels)
    predictions = Predictions.of(given(example.predictions, tmp_path))
    with open_inputs(labels, {"": predictions}) as (one, runs):
        found = [read(each) for each in (one, runs[""]) if each.source.lists is None]
    assert any(name in of.get(example.column, ()) for of in found), found
    assert rankmill.evaluate(labels, predictions, "first_hit@3")["first_hit@3"] == example.value


def test_every_rule_that_the_code_names_is_a_row_and_the_page_has_all() -> None:
    folder = Path(str(files(rules.__package__)))
    code = "".join(path.read_text() for path in folder.glob("*.py") if path.stem != "rules")
    assert all(f'"{name}"' in code for name in RULES)
    assert {*re.findall(r'used\("([^"]+)"', code)} <= {*RULES}
    page = (Path(rankmill.__file__).parent / "docs" / "data.md").read_text()
    rows = [(one.have.replace("\\|", "|"), one.read, one.option) for one in RULES.values()]
    lines = [
        f"- {have}: {read}" + (f" ({option})" if option else "") for have, read, option in rows
    ]
    assert [line for line in page.splitlines() if line in lines] == lines


@pytest.mark.small
def test_head_tells_which_rule_read_what() -> None:
    rows = table(user_id=[1.0, 2.0], items=["['a', 'b ']", "['c']"], note=["x", "y"])
    told = head(Predictions(rows))
    by = {one["name"]: one["rules"] for one in told["columns"]}
    assert by == {
        "user_id": ["found by its name", "whole doubles"],
        "items": ["printed list", "found by its name", "spaces around ids"],
        "note": [],
    }
    shown = repr(told)
    assert re.search(r"\nnote +string +not read *\n", shown)
    assert re.search(r"items .* printed list, found by its name, spaces around ids\n", shown)
    assert re.search(r"\nwhole doubles +integers: 7.0 is 7\n", shown)
    assert re.search(r"\nspaces around ids +left out, with a note +(Labels|Predictions)", shown)
