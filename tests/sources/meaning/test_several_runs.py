"""Predictions of several systems in one input are noted, with the column that parts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from rankmill import Labels, Predictions

pytestmark = pytest.mark.small

METRIC = "first_hit@3"
LABELS = {1: [10], 2: [12]}
RUNS = {"user_id": [1, 2, 1, 2], "item_id": [11, 12, 10, 13], "rank": [1, 1, 1, 1]}


def notes(predictions: Any, labels: Any = LABELS) -> list[str]:
    return rankmill.evaluate(labels, predictions, METRIC).notes


@pytest.mark.parametrize("name", ["model", "source", "date"])
@pytest.mark.parametrize("scattered", [False, True])
def test_two_systems_by_rank(name: str, scattered: bool, tmp_path: Path) -> None:
    frame = pd.DataFrame({**RUNS, "title": [*"abcd"], name: ["x", "x", "y", "y"]})
    frame = frame.sort_values("user_id") if scattered else frame
    frame.to_csv(tmp_path / "run.csv", index=False)
    for given in (frame, pa.table(frame), tmp_path / "run.csv"):
        (note,) = notes(given)
        assert "have the same 'rank' as another of their query" in note
        assert f"several runs, which {name!r} tells apart: keep one of these" in note
    assert notes(frame[frame[name] == "x"]) == []
    (note,) = notes(pa.table(frame).to_reader())  # of which no other column is held
    assert note.endswith("so they may be of several runs: keep one of these")


def test_two_systems_by_folder(tmp_path: Path) -> None:
    for model, items in (("a", [11, 12]), ("b", [10, 13])):
        (tmp_path / f"model={model}").mkdir()
        table = pa.table({"user_id": [1, 2], "item_id": items, "rank": [1, 1]})
        pq.write_table(table, tmp_path / f"model={model}" / "part.parquet")
    (note,) = notes(tmp_path)
    assert "which 'model' tells apart" in note


def test_days_of_both_sides_are_part_of_the_query(run: Any, tmp_path: Path) -> None:
    labels = pd.DataFrame({"date": ["d1", "d2"], "user_id": [1, 1], "item_id": [10, 12]})
    ranked = pd.DataFrame({"date": ["d1", "d1", "d2"], "user_id": 1, "item_id": [11, 10, 12]})
    ranked["rank"] = [1, 2, 1]
    (note,) = notes(ranked, labels)
    assert note.endswith("if the labels have them too, use query=['user_id', 'date'] of both")
    key = ["user_id", "date"]
    found = rankmill.evaluate(Labels(labels, query=key), Predictions(ranked, query=key), METRIC)
    assert (found[METRIC], found.notes) == (0.75, [])
    labels.to_csv(tmp_path / "labels.csv", index=False)
    ranked.to_csv(tmp_path / "run.csv", index=False)
    _, out, err = run("evaluate", tmp_path / "labels.csv", tmp_path / "run.csv", "-m", METRIC)
    assert "--query user_id,date" in " ".join((out + err).split())


def test_few_equal_ranks_are_no_runs() -> None:
    ranks = {"user_id": 1, "item_id": [10, 11, 12, 13, 14], "rank": [1, 2, 3, 4, 4]}
    assert notes(pd.DataFrame(ranks), {1: [10]}) == []


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["1 Q0 b 1 .9 A", "2 Q0 b 1 .7 A", "1 Q0 a 1 .95 B", "2 Q0 c 1 .5 B"], True),
        (["1 Q0 b 1 .9 A", "1 Q0 a 2 .8 A", "2 Q0 c 1 .5 B"], False),
        (["1 Q0 b 1 .9 my run", "1 Q0 a 2 .8 my run", "2 Q0 c 1 .5 my run 2"], False),
    ],
)
def test_tags_of_a_run(lines: list[str], told: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.run"
    path.write_text("".join(f"{line}\n" for line in lines))
    what = (
        "several tags, so they may be of several runs, which 'tag' tells apart: keep one of these"
    )
    found = notes(path, {"1": ["a"], "2": ["c"]})
    assert [one.partition("of ")[2] for one in found] == [what] * told


def scored(repeats: int, **columns: Any) -> pd.DataFrame:
    """Lists of two systems for twenty users, which share some items, one after the other."""
    users = [*range(20)] * 4
    items = [*[11] * 20, *[10] * 20, *[10] * repeats, *[13] * (40 - repeats)]
    score = [*[0.9] * 20, *[0.8] * 20, *[0.7] * 40]
    return pd.DataFrame({"user_id": users, "item_id": items, "score": score, **columns})


@pytest.mark.parametrize(
    ("repeats", "name", "told"),
    [
        (2, "model", "most queries have predictions of several models"),
        (2, "run_id", "most queries have predictions of several run_ids"),
        (20, "day", "20 predictions repeat an item of their query"),
        (2, "day", None),  # which are few, and may be an accident
    ],
)
def test_two_systems_by_score(repeats: int, name: str, told: str | None, tmp_path: Path) -> None:
    frame = scored(repeats, **{name: [*"a" * 40, *"b" * 40], "at": [*range(80)]})
    labels = {user: [10] for user in range(20)}
    frame.to_csv(tmp_path / "run.csv", index=False)
    pq.write_table(pa.table(frame), tmp_path / "run.parquet", row_group_size=30)
    for given in (frame, tmp_path / "run.csv", tmp_path / "run.parquet"):
        found = notes(given, labels)
        assert [one.partition(": ")[2].partition(", so")[0] for one in found] == (
            [told] if told else []
        )
        assert all(f"which {name!r} tells apart" in one for one in found)
    assert notes(frame[frame[name] == "a"], labels) == []


def test_what_items_have_is_no_run() -> None:
    labels = {user: [10] for user in range(20)}
    frame = scored(2)
    assert notes(frame.assign(model=["x" if one > 10 else "y" for one in frame["item_id"]])) == []
    frame = scored(20, at=[*range(80)])
    assert notes(frame, labels) == []
