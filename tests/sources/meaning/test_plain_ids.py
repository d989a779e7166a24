"""Ids of every type as integers or texts."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from conftest import tells

import rankmill
from rankmill import InputError
from rankmill.sources.meaning.plain_ids import times_of

NO_BREAK = "\N{NO-BREAK SPACE}"
LABELS = pa.table({"query_id": ["a"], "item_id": ["x"]})


@pytest.mark.small
@pytest.mark.parametrize("beside", ["y", " y", "nan"])
def test_what_is_trimmed_does_not_depend_on_the_rows_beside(beside: str) -> None:
    rows = pa.table({"query_id": ["a", "a"], "item_id": [beside, f"x{NO_BREAK}"], "rank": [1, 2]})
    result = rankmill.evaluate(LABELS, rows, "map")
    assert result["map"] == 0
    told = r"in 'item_id', 1 id has other blanks around, such as 'x\xa0': they are compared as they"
    assert [told in one for one in result.notes].count(True) == 1


@pytest.mark.small
@pytest.mark.parametrize("blank", ["\u3000", "\ufeff", "\u200b"])
@pytest.mark.parametrize("column", ["query_id", "item_id"])
def test_blanks_beyond_ascii_are_told(blank: str, column: str) -> None:
    rows = {"query_id": ["a", "b"], "item_id": ["x", "y"]}
    rows[column] = [rows[column][0] + blank, rows[column][1]]
    found = rankmill.evaluate({"a": ["x"], "b": ["y"]}, pa.table(rows), "map")
    assert found["map"] == 0.5
    assert f"1 id has other blanks around, such as {rows[column][0]!r}" in found.notes[0]
    exact = rankmill.Predictions(pa.table(rows), exact_ids=True)
    assert rankmill.evaluate({"a": ["x"], "b": ["y"]}, exact, "map").notes == []


@pytest.mark.small
def test_nothing_is_told_of_what_was_not_found() -> None:
    rows = pa.table({"query_id": ["a"], "item_id": [" x"], "rank": [1]})
    result = rankmill.evaluate(LABELS, rows, "map")
    assert result["map"] == 1
    assert len(result.notes) == 1
    assert "in 'item_id', 1 id has spaces around, such as ' x'" in result.notes[0]


@pytest.mark.small
@pytest.mark.parametrize("exact", [False, True])
def test_a_query_is_named_as_its_id_is_read(exact: bool) -> None:
    padded = pa.table({"query_id": [" a\n"], "items": [["x"]]})
    labels = rankmill.Labels(padded, exact_ids=exact)
    predictions = rankmill.Predictions(padded, exact_ids=exact)
    found = rankmill.explain(labels, predictions, "map", " a\n")
    assert (found.query, found.value) == (" a\n" if exact else "a", 1)


@pytest.mark.small
def test_a_name_may_hold_braces() -> None:
    rows = pa.table({"query_id": ["a"], "{item}": [" x"], "rank": [1]})
    result = rankmill.evaluate(LABELS, rankmill.Predictions(rows, item="{item}"), "map")
    assert "in '{item}', 1 id has spaces around, such as ' x'" in result.notes[0]


@pytest.mark.parametrize("name", ["query_id", "item_id"])
def test_intervals_are_no_ids(name: str) -> None:
    rows = {"query_id": [1], "item_id": [1]}
    intervals = pa.array([pa.MonthDayNano([1, 2, 3])])
    with pytest.raises(InputError, match=f"{name}.* holds month_day_nano_interval; ids are int"):
        rankmill.evaluate(pa.table(rows), pa.table(rows | {name: intervals}), "map")


def rows_of(items: list[str], **more: list[object]) -> pa.Table:
    queries = [f"q{i}" for i in range(len(items))]
    return pa.table({"query_id": queries, "item_id": items, **more})


# What the labels and the predictions hold behind many other rows -> the first value of the metric.
WORDS = {
    ("None", "None"): None,
    ("nan", "nan"): None,
    (" None", "None"): None,
    ("None", "nan"): 3000,
    ("None", "x"): 3000,
    ("x", "None"): 3000,
    ("", ""): 3000,
}


@pytest.mark.small
@pytest.mark.parametrize("batch", [None, 700])
@pytest.mark.parametrize("words", WORDS)
def test_a_word_for_missing_that_both_sides_have_is_asked_about(
    words: tuple[str, str], batch: int | None
) -> None:
    labels, run = (rows_of(["x"] * 3000 + [word]) for word in words)
    run = run.append_column("rank", pa.array([1] * run.num_rows))
    if batch:  # read once, and its words are beyond the first block
        run = pa.RecordBatchReader.from_batches(run.schema, run.to_batches(batch))
    if (right := WORDS[words]) is not None:
        found = rankmill.evaluate(labels, run, "hit@1")
        assert found["hit@1"] * found.audit["queries_labelled"] == pytest.approx(right)
        assert [note.split("'")[3] for note in found.notes] == [w for w in words if len(w) > 1]
        return
    with pytest.raises(InputError) as caught:
        rankmill.evaluate(labels, run, "hit@1")
    tells(caught.value, ["row 3000", "'item_id'", words[1], "the other input", "--exact-ids"])


@pytest.mark.small
def test_such_a_word_is_an_id_if_that_is_told() -> None:
    labels, run = rows_of(["None", "x"]), rows_of(["None", "y"], rank=[1, 1])
    sides = rankmill.Labels(labels, exact_ids=True), rankmill.Predictions(run, exact_ids=True)
    catalogue = rankmill.Catalogue(train=rows_of(["z", "None"]))
    found = rankmill.evaluate(*sides, ["hit@1", "novelty@1"], catalogue=catalogue)
    assert found["hit@1"] == 0.5
    with pytest.raises(InputError, match=r"train: .*'None'; .* the other input has it, too"):
        rankmill.evaluate(labels, rows_of(["x", "y"], rank=[1, 1]), "hit@1", catalogue=catalogue)


@pytest.mark.small
@pytest.mark.parametrize(("other", "told"), [("None", "the other input"), ("nan", "such as")])
def test_a_cell_of_a_list_may_hold_such_a_word_alone(other: str, told: str) -> None:
    """As a cart of nothing new is called None where carts are predicted."""
    labels = pa.table({"query_id": ["a", "b"], "items": ["None", "1 2"]})
    run = pa.table({"query_id": ["a", "b"], "items": [other, "2 3"]})
    try:
        said = " ".join(rankmill.evaluate(labels, run, "map").notes)
    except InputError as error:
        said = str(error)
    tells(said, ["'items'", "'None'", told])
    sides = rankmill.Labels(labels, exact_ids=True), rankmill.Predictions(run, exact_ids=True)
    right = 0.75 if other == "None" else 0.25
    assert rankmill.evaluate(*sides, "map")["map"] == right
    frames = labels.to_pandas(), run.to_pandas()
    assert rankmill.kaggle.score(*frames, "query_id", metric="map@2") == right


@pytest.mark.small
def test_a_word_for_a_missing_query_is_asked_about() -> None:
    run = pa.table({"query_id": ["a", "nan"], "item_id": ["x", "x"], "rank": [1, 1]})
    with pytest.raises(InputError) as caught:
        rankmill.evaluate(LABELS, run, "map")
    tells(caught.value, ["row 1", "'query_id'", "'nan'", "every row needs a query", "--exact-ids"])


@pytest.mark.small
def test_times_are_the_same_in_every_zone_and_never_rounded() -> None:
    zurich = pa.array([3_600_000_000_000, 3_600_000_000_001], pa.timestamp("ns", "Europe/Zurich"))
    labels = pa.table({"query_id": zurich, "item_id": [1, 2]})
    run = pa.table({"query_id": zurich.cast(pa.timestamp("ns", "UTC")), "item_id": [1, 2]})
    assert rankmill.evaluate(labels, run, "map")["map"] == 1


@pytest.mark.small
def test_floats_that_may_stand_for_another_integer_are_no_ids() -> None:
    labels = pa.table({"query_id": ["a"], "item_id": pa.array([20_000_001.0], pa.float32())})
    for given in (labels, labels.to_pandas()):
        with pytest.raises(InputError, match=r"beyond 2\*\*24, where floats skip integers"):
            rankmill.evaluate(given, {"a": [20_000_000]}, "map")


def test_an_instant_is_one_id_in_every_zone() -> None:
    zones = ("UTC", "+09:00", "Europe/Berlin")
    instants = [pa.array([0, 3_600_000_001], pa.timestamp("us", zone)) for zone in zones]
    sides = [pa.table({"session_id": one, "items": [["x"], ["y"]]}) for one in instants]
    for one in sides:
        assert rankmill.evaluate(sides[0], one, "map")["map"] == 1


@pytest.mark.small
@pytest.mark.parametrize("query", ["session_id", ["user", "session_id"]])
def test_times_are_those_that_pandas_writes(query: str | list[str], tmp_path: Path) -> None:
    for zone in (None, "Europe/Berlin"):
        times = pd.DatetimeIndex(["2024-01-01 00:00", "2024-07-02 06:00:00.5"], tz=zone)
        frame = pd.DataFrame({"user": ["a", "b"], "session_id": times, "items": [["x"], ["y"]]})
        labels = rankmill.Labels(frame, query=query)
        frame.assign(items=["x", "y"]).to_csv(tmp_path / "run.csv", index=False)
        frame.to_json(tmp_path / "run.jsonl", orient="records", lines=True, date_format="iso")
        for name in ("run.csv", "run.jsonl"):
            run = rankmill.Predictions(tmp_path / name, query=query, item="items")
            assert rankmill.evaluate(labels, run, "map")["map"] == 1


@pytest.mark.small
def test_times_do_not_depend_on_the_texts_beside() -> None:
    times = pa.array([0, 1], pa.timestamp("ns"))
    labels = pa.table({"session_id": times, "items": [["x"], ["y"]]}).slice(0, 1)
    run = {"1970-01-01 00:00:00.000000000": ["x"], "1970-13-01": ["x"], "later": ["x"]}
    assert rankmill.evaluate(labels, run, "map")["map"] == 1


@pytest.mark.small
def test_what_is_no_day_leaves_the_others_as_they_are() -> None:
    times = pa.array(["2024-01-01 00:00:00", "2024-02-30", "2024-01-02T00:00:00Z", None, "x"])
    told = ["2024-01-01", "2024-02-30", "2024-01-02Z", None, "x"]
    assert times_of(times.cast(pa.large_string())).to_pylist() == told
