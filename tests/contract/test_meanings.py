"""Each meaning in each form gives one number, to the bit, or is refused in one wording.

A meaning is a pair of tables: a shape, with values and ids of some kind. A form is how people hold
it: frames, Arrow, files, and what Python has. Labels and predictions also come in different forms.
"""

from __future__ import annotations

import datetime
import decimal
import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import rankmill

METRICS = ["first_hit@3", "recall@2"]
USERS, MORE_USERS = ["u", "v"], ["u", "u", "v"]


class Meaning(NamedTuple):
    """Two tables, and the values of `METRICS`, or the words of the refusal."""

    labels: Any
    predictions: Any
    found: tuple[float, float] | str = (0.75, 1.0)


def table(**columns: Any) -> Any:
    return pa.table(columns)


def long(a: Any, b: Any, c: Any, queries: Any = (1, 2), kind: Any = None) -> Meaning:
    """The second item of the first query is right, and the only one of the second."""
    q, r = queries
    return Meaning(
        table(user_id=pa.array([q, r]), item_id=pa.array([a, c], kind)),
        table(
            user_id=pa.array([q, q, r]), item_id=pa.array([b, a, c], kind), score=[0.9, 0.8, 0.7]
        ),
    )


def wide(a: Any, b: Any, c: Any, kind: Any = None) -> Meaning:
    lists = None if kind is None else pa.list_(kind)
    return Meaning(
        table(user_id=[1, 2], items=pa.array([[a], [c]], lists)),
        table(user_id=[1, 2], items=pa.array([[b, a], [c]], lists)),
    )


def cells(labels: list[str], predictions: list[str], found: Any = (0.75, 1.0)) -> Meaning:
    each = {"user_id": [1, 2]}
    return Meaning(table(**each, items=labels), table(**each, items=predictions), found)


def graded(name: str, gains: Any, found: Any = (0.75, 1.0)) -> Meaning:
    """Of two labels of the first query, the second one is not relevant."""
    labels = {"user_id": [1, 1, 2], "item_id": [10, 11, 12], name: gains}
    return Meaning(
        table(**labels),
        table(user_id=[1, 1, 2], item_id=[11, 10, 12], score=[0.9, 0.8, 0.7]),
        found,
    )


def ordered(name: str, numbers: Any, found: Any = (0.75, 1.0)) -> Meaning:
    """The second row of the first query comes first by its number, and the first one is right."""
    return Meaning(
        table(user_id=[1, 2], item_id=[10, 12]),
        table(user_id=[1, 1, 2], item_id=[10, 11, 12], **{name: numbers}),
        found,
    )


def beside(labels: Any, predictions: Any, found: Any = (0.75, 1.0)) -> Meaning:
    """Ids of different kinds: item 10 of query 1, the second one; item 12 of query 2."""
    return Meaning(
        table(user_id=[1, 2], item_id=labels),
        table(user_id=[1, 1, 2], item_id=predictions, score=[0.9, 0.8, 0.7]),
        found,
    )


UUIDS = [uuid.UUID(int=10**20 + i) for i in range(3)]
DAYS = datetime.date(2026, 5, 1), datetime.date(2026, 5, 2)
STRUCTS = [[{"item_id": 11, "rating": 0.9}, {"item_id": 10, "rating": 0.8}]]
STRUCTS += [[{"item_id": 12, "rating": 0.7}]]
WRAPPED = [{"list": [{"element": 11}, {"element": 10}]}, {"list": [{"element": 12}]}]
LISTED = table(user_id=[1, 2], items=[[10], [12]])
MEANINGS = {
    "integers": long(10, 11, 12),
    "negative integers": long(-1, 1, -2),
    "narrow integers": long(10, 11, 12, kind=pa.int16()),
    "integers beyond 63 bits": long(2**63 + 5, 2**63 + 6, 2**63 + 7, kind=pa.uint64()),
    "text": long("a", "b", "c", USERS),
    "categories": long("a", "b", "c", USERS, pa.dictionary(pa.int32(), pa.string())),
    "leading zeros": long("007", "7", "08"),
    "UUIDs in text": long(*map(str, UUIDS)),
    "UUIDs of 16 bytes": long(*(one.bytes for one in UUIDS), kind=pa.binary(16)),
    "titles": long("Toy Story", "Heat", "The Rock", USERS),
    "titles with commas": long("Good, Bad", "x", "Story, A", USERS),
    "whole doubles": long(10.0, 11.0, 12.0),
    "decimals": long(*map(decimal.Decimal, (10, 11, 12)), kind=pa.decimal128(10, 0)),
    "dates as queries": long("a", "b", "c", DAYS),
    "booleans as queries": long("a", "b", "c", (True, False)),
    "a boolean after an event": graded("clicked", [True, False, True]),
    "a boolean of no known name": graded("flag", [True, False, True], "may say which rows are rel"),
    "booleans in text": graded("relevance", ["true", "false", "true"]),
    "whole grades": graded("relevance", [2, 0, 1]),
    "whole grades in text": graded("relevance", ["2", "0", "1"]),
    "grades in words": graded("relevance", ["yes", "no", "yes"], "found 'yes'; expected a number"),
    "a label beside an item": graded("label", [1, 0, 1]),
    "a log with clicks and scores": Meaning(
        table(user_id=[1, 1, 2], item_id=[10, 11, 12], clicked=[1, 0, 1], score=[0.8, 0.9, 0.7]),
        table(user_id=[1, 1, 2], item_id=[11, 10, 12], score=[0.9, 0.8, 0.7]),
    ),
    "ranks": ordered("rank", [2, 1, 1]),
    "ranks as doubles": ordered("rank", [2.0, 1.0, 1.0]),
    "ranks in text": ordered("rank", ["2", "1", "1"]),
    "a rank that is a fraction": ordered("rank", [1.5, 1.0, 1.0], "expected a whole number"),
    "scores in text": ordered("score", ["0.8", "0.9", "0.7"]),
    "scores with percent signs": ordered("score", ["8%", "9%", "7%"], "leave out the percent"),
    "scores with decimal commas": ordered("score", ["0,8", "0,9", "0,7"], "decimal point"),
    "scores of no known name": ordered("thing", [0.8, 0.9, 0.7], "if it is the score"),
    "scores in text that no double holds": ordered(
        "score", [f"{2**53 + 1}", f"{2**53}", "5"], "has no float64 of the same value"
    ),
    "distances": ordered("distance", [0.2, 0.1, 0.3], "is smaller for better items"),
    "a missing item": Meaning(
        table(user_id=[1, 2, 3], item_id=[10, 12, None]),
        table(user_id=[1, 1, 2, 3], item_id=[11, 10, 12, 12], score=[0.9, 0.8, 0.7, 0.5]),
    ),
    "a word for a missing item": Meaning(
        table(user_id=[1, 2, 3], item_id=["a", "b", "nan"]),
        table(user_id=[1, 1, 2, 3], item_id=["b", "a", "b", "c"], score=[0.9, 0.8, 0.7, 0.5]),
    ),
    "lists in cells beside a label a row": Meaning(
        table(user_id=[1, 1, 2], item_id=["0101", "0102", "0103"]),
        table(user_id=[1, 2, 3], items=["0105 0101", "0103 0109", "0101 0102"]),
        (0.75, 0.75),
    ),
    "spaces around ids": Meaning(
        table(user_id=[1, 2], item_id=["a  ", "b  "]),
        table(user_id=[1, 1, 2], item_id=["b", "a", "b"], score=[0.9, 0.8, 0.7]),
    ),
    "text beside integers": beside([10, 12], ["11", "10", "12"]),
    "zeros beside integers": beside([7, 12], ["11", "007", "12"], (0.5, 0.5)),
    "words beside integers": beside([10, 12], ["a", "10", "12"]),
    "points beside integers": beside([10, 12], ["11.0", "10.0", "12.0"]),
    "only words beside integers": beside([10, 12], ["a", "b", "c"], "ids cannot be compared"),
    "doubles beside text": beside(["10", "12"], [11.0, 10.0, 12.0]),
    "upper case beside UUIDs": beside(
        pa.array([UUIDS[0].bytes, UUIDS[2].bytes], pa.binary(16)),
        [str(UUIDS[i]).upper() for i in (1, 0, 2)],
    ),
    "two items": Meaning(
        table(user_id=[1, 2], item_id=[10, 12], product_id=[1, 2]),
        table(user_id=[1, 2], item_id=[10, 12], score=[0.9, 0.8]),
        "several columns could be the item",
    ),
    "a column per rank": Meaning(
        table(user_id=[1, 2], item_id=[10, 12]),
        table(user_id=[1, 2], rec_1=[11, 12], rec_2=[10, 13]),
    ),
    "a column per item": Meaning(
        table(user_id=[1, 2], label_0=[1, 0], label_1=[0, 0], label_2=[0, 1]),
        table(user_id=[1, 1, 2], item_id=[1, 0, 2], score=[0.9, 0.8, 0.7]),
        "they hold nothing but 0 and 1",
    ),
    "a column per item with its score": Meaning(
        table(user_id=[1, 2], item_id=[1, 3]),
        table(user_id=[1, 2], item_1=[30, 1], item_2=[45, 3], item_3=[2, 90]),
        "the items 1, 3, after which they are named",
    ),
    "lists": wide(10, 11, 12),
    "lists of text": wide("a", "b", "c"),
    "lists of titles": wide("Toy Story", "Heat", "The Rock"),
    "lists of leading zeros": wide("007", "7", "08"),
    "lists of UUIDs": wide(*map(str, UUIDS)),
    "lists with scores": Meaning(
        LISTED, table(user_id=[1, 2], items=[[11, 10], [12]], scores=[[0.9, 0.8], [0.7]])
    ),
    "lists of structs": Meaning(LISTED, table(user_id=[1, 2], items=STRUCTS)),
    "structs with a label and a score": Meaning(
        table(
            user_id=[1, 2],
            items=[
                [
                    {"item_id": 10, "label": 1, "score": 0.1},
                    {"item_id": 11, "label": 0, "score": 0.9},
                ],
                [{"item_id": 12, "label": 1, "score": 0.7}],
            ],
        ),
        table(user_id=[1, 2], items=[[11, 10], [12]]),
    ),
    "structs with a price": Meaning(
        table(
            user_id=[1, 2],
            items=[[{"item_id": 10, "price": 0.0}], [{"item_id": 12, "price": 9.5}]],
        ),
        table(user_id=[1, 2], items=[[11, 10], [12]]),
    ),
    "lists in structs of one field": Meaning(LISTED, table(user_id=[1, 2], items=WRAPPED)),
    "lists that Python printed": cells(["['a']", "['c']"], ["['b', 'a']", "['c', 'd']"]),
    "lists that NumPy printed": cells(["[10]", "[12]"], ["[11 10]", "[12.  3.]"]),
    "lists of JSON": cells(['["a"]', '["c"]'], ['["b", "a"]', '["c"]']),
    "lists by blanks": cells(["w_1", "w_3 w_4"], ["w_2 w_1", "w_3 w_4 w_5"]),
    "lists by bars": cells(["10", "12"], ["11|10", "12|13"]),
    "lists by tabs": cells(["10", "12"], ["11\t10", "12\t13"]),
    "lists by commas": cells(["w_1", "w_3"], ["w_2,w_1", "w_3,w_4"]),
    "lists or one item": cells(["New York", "Rome"], ["York New", "Big Rome"], "may be one item"),
}


# ------------------------------------------------------------------ forms


def plainly(value: Any) -> Any:
    """A value as JSON has it; TypeError for what has no plain form there."""
    if isinstance(value, bytes | decimal.Decimal):
        raise TypeError
    if isinstance(value, list | dict):
        parts = value.values() if isinstance(value, dict) else value
        [plainly(one) for one in parts]
        return value
    return str(value) if isinstance(value, datetime.date) else value


def rows(of: Any) -> list[dict[str, Any]]:
    return [{name: plainly(one) for name, one in row.items()} for row in of.to_pylist()]


def by_column(of: Any) -> dict[str, list[Any]]:
    return {name: [plainly(one) for one in cells] for name, cells in of.to_pydict().items()}


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def separated(path: Path, of: Any, separator: str) -> Path:
    """Text has lists as JSON, and no structs."""
    kinds = [one.value_type if pa.types.is_list(one) else one for one in of.schema.types]
    if any(map(pa.types.is_struct, kinds)):
        raise TypeError
    each = {
        name: [json.dumps(one) if isinstance(one, list) else one for one in column]
        for name, column in by_column(of).items()
    }
    pd.DataFrame(each, dtype=object).to_csv(path, sep=separator, index=False)
    return path


def stored(path: Path, writer: Callable[..., Any], of: Any) -> Path:
    with writer(path, of.schema) as file:
        file.write_table(of)
    return path


def parquet(path: Path, of: Any) -> Path:
    pq.write_table(of, path)
    return path


def pandas_parquet(path: Path, of: Any) -> Path:
    of.to_pandas().to_parquet(path)
    return path


def feather(path: Path, of: Any) -> Path:
    pyarrow.feather.write_feather(of, path, "lz4")
    return path


def polars_of(of: Any) -> Any:
    return pytest.importorskip("polars").from_arrow(of)


def polars_ipc(path: Path, of: Any) -> Path:
    polars_of(of).write_ipc(path)
    return path


def relation_of(of: Any) -> Any:
    return pytest.importorskip("duckdb").from_arrow(of)


FORMS: dict[str, Callable[[Any, Path], Any]] = {
    "Arrow": lambda of, path: of,
    "Arrow in chunks": lambda of, path: pa.concat_tables([of.slice(0, 1), of.slice(1)]),
    "stream of Arrow": lambda of, path: of.to_reader(),
    "pandas": lambda of, path: of.to_pandas(),
    "pandas with Arrow": lambda of, path: of.to_pandas(types_mapper=pd.ArrowDtype),
    "Polars": lambda of, path: polars_of(of),
    "LazyFrame": lambda of, path: polars_of(of).lazy(),
    "DuckDB": lambda of, path: relation_of(of),
    "Parquet": lambda of, path: parquet(path.with_suffix(".parquet"), of),
    "Parquet of pandas": lambda of, path: pandas_parquet(path.with_suffix(".parquet"), of),
    "IPC file": lambda of, path: stored(path.with_suffix(".arrow"), pa.ipc.new_file, of),
    "IPC stream": lambda of, path: stored(path.with_suffix(".arrows"), pa.ipc.new_stream, of),
    "Feather": lambda of, path: feather(path.with_suffix(".feather"), of),
    "IPC of Polars": lambda of, path: polars_ipc(path.with_suffix(".arrow"), of),
    "CSV": lambda of, path: separated(path.with_suffix(".csv"), of, ","),
    "CSV with semicolons": lambda of, path: separated(path.with_suffix(".csv"), of, ";"),
    "TSV": lambda of, path: separated(path.with_suffix(".tsv"), of, "\t"),
    "JSON Lines": lambda of, path: write(
        path.with_suffix(".jsonl"), "".join(json.dumps(row) + "\n" for row in rows(of))
    ),
    "JSON records": lambda of, path: write(path.with_suffix(".json"), json.dumps(rows(of))),
    "JSON by column": lambda of, path: write(path.with_suffix(".json"), json.dumps(by_column(of))),
    "list of dicts": lambda of, path: of.to_pylist(),
    "dict of columns": lambda of, path: of.to_pydict(),
    "dict of arrays": lambda of, path: {
        name: of[name].to_numpy(zero_copy_only=False) for name in of.column_names
    },
}


def outcome(labels: Any, predictions: Any) -> tuple[tuple[float, ...] | str, str]:
    """The values, or what is the same of a refusal in every form; and the whole refusal."""
    try:
        found = rankmill.evaluate(labels, predictions, METRICS)
    except rankmill.InputError as error:
        words = re.sub(r"^.*?\): ", "", str(error))
        return re.sub(r"the \w+ of (labels|predictions)|/\S+", "it", words), str(error)
    return tuple(found[metric] for metric in METRICS), ""


@pytest.mark.rows(9)
@pytest.mark.parametrize("name", MEANINGS)
def test_a_meaning_is_the_same_in_every_form(name: str, tmp_path: Path) -> None:
    meaning, whole = MEANINGS[name], ""
    outcomes: dict[tuple[float, ...] | str, list[str]] = {}
    forms = list(FORMS)
    for step in (0, 5):  # each form with itself, and with another one
        for one, other in zip(forms, forms[step:] + forms[:step], strict=True):
            try:
                labels = FORMS[one](meaning.labels, tmp_path / "labels")
                predictions = FORMS[other](meaning.predictions, tmp_path / "predictions")
            except TypeError:  # what the form cannot hold
                continue
            found, whole = outcome(labels, predictions)
            outcomes.setdefault(found, []).append(f"{one} + {other}")
    assert len(outcomes) == 1, outcomes
    ((found, held),) = outcomes.items()
    assert len(held) > 10, "hardly any form can hold this meaning"
    if isinstance(meaning.found, str):
        assert meaning.found in whole
    else:
        assert found == meaning.found
        # Another system beside it does not change what it means.
        runs = {"one": meaning.predictions, "other": meaning.predictions}
        both = rankmill.evaluate_runs(meaning.labels, runs, METRICS)
        assert [tuple(each.metrics.values()) for each in both.values()] == [found, found]
