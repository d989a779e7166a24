"""The history of runs: what is written, how it is read, trends, baselines, drift, pruning."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import tells
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import rankmill
from cli_runs import write_dump
from rankmill.columns.buffers import table_of
from rankmill.columns.seal import seal_of
from rankmill.errors import InputError, UsageError
from rankmill.io.whole_files import check_target
from rankmill.nightly.history import History, moment, prune
from rankmill.nightly.record import SCHEMA
from rankmill.nightly.rules.verdict import RuleOutcome, Verdict
from rankmill.nightly.runs.folder import END, one_a_night, open_folder
from rankmill.nightly.runs.history_view import RATE, drift, sparkline
from rankmill.nightly.runs.runs import SUMMARY, read_summary, rules_text, seal_of_row
from rankmill.package import GONE
from rankmill.results.result import Result
from rankmill.semantics.choices import DEFAULT, Choices, Scope
from rankmill.show.marks import Marker, Text

BEGIN = datetime(2026, 1, 1, 3, tzinfo=UTC)


def made(value: float | None = 0.25, metric: str = "map@12", **more: Any) -> Result:
    return Result({metric: value, "gap": 0.5}, {metric: 0.01, "gap": None}, {}, 1000, **more)


def night(folder: Path, number: int, value: float | None, **more: Any) -> str:
    return History(folder).record(made(value, **more), time=BEGIN + timedelta(days=number))


def nights(folder: Path, values: list[float]) -> Path:
    for number, value in enumerate(values):
        night(folder, number, value)
    return folder


def as_parquet_tells(folder: Path) -> list[Any]:
    """The runs of a folder by their rows alone, in the order of their names."""
    opened = open_folder(folder)
    return [run for name in opened.files() for run in opened._rows(name)]


# ------------------------------------------------------------------ what is written


def test_a_run_holds_what_a_reader_needs(tmp_path: Path) -> None:
    labels, predictions = map(str, write_dump(tmp_path))
    result = rankmill.evaluate(labels, predictions, ["map@3", "gap"])
    path = History(tmp_path / "h").record(result, tags={"model": "a7", "é": "="}, time=BEGIN)
    assert Path(path).name.startswith("20260101T030000000000Z-")
    table = pq.read_table(path)
    assert table.schema.equals(SCHEMA)
    first, second = table.to_pylist()
    assert (first["metric"], first["value"]) == ("map@3", result["map@3"])
    assert first["standard_error"] == result.standard_errors["map@3"]
    assert (second["metric"], second["standard_error"]) == ("gap", None)
    assert second["time"] == BEGIN
    assert dict(first["tags"]) == {"model": "a7", "é": "="}
    assert dict(first["audit"]) == result.audit
    assert json.loads(first["semantics"]) == result.semantics.to_dict()
    assert first["labels_paths"] == [labels]
    assert first["predictions_bytes"] == os.path.getsize(predictions)
    assert first["labels_rows"] == 3
    written = os.stat(labels).st_mtime_ns // 1000
    assert first["labels_modified"] == datetime.fromtimestamp(0, UTC) + timedelta(
        microseconds=written
    )


def test_a_checksum_changes_with_the_rows_and_not_with_the_name(tmp_path: Path) -> None:
    found = []
    for name, item in (("a", 1), ("b", 1), ("c", 2)):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"user_id": [1], "items": [[item]]}), path)
        result = rankmill.evaluate(str(path), str(path), ["map"])
        found.append(
            pq.read_table(History(tmp_path / "h").record(result))["labels_checksum"][0].as_py()
        )
    assert found[0] == found[1] != found[2]


def test_inputs_that_are_no_files_have_no_fingerprint(tmp_path: Path) -> None:
    lists = rankmill.arrays.Ragged.from_lists([[1], [2]])
    path = History(tmp_path / "h").record(rankmill.evaluate(lists, lists, ["map"]))
    row = pq.read_table(path).to_pylist()[0]
    assert row["labels_paths"] is row["labels_bytes"] is row["labels_checksum"] is None
    assert row["labels_rows"] == 2
    text = tmp_path / "l.csv"
    text.write_text("user,item\n1,a\n")
    path = History(tmp_path / "h").record(rankmill.evaluate(str(text), str(text), ["map"]))
    row = pq.read_table(path).to_pylist()[0]
    assert row["labels_bytes"] == text.stat().st_size
    assert row["labels_checksum"] is None


def test_a_comparison_has_its_systems_and_slices(tmp_path: Path) -> None:
    labels = pa.table({"user_id": [1, 2, 3, 4], "items": [[1]] * 4, "c": list("aabb")})
    runs = {
        "old": pa.table({"user_id": [1, 2, 3, 4], "items": [[1]] * 4}),
        "new": pa.table({"user_id": [1, 2, 3, 4], "items": [[1], [2], [1], [1]]}),
    }
    compared = rankmill.compare(
        labels, runs, ["map"], by="c", semantics=rankmill.Semantics(gain_function="exp")
    )
    rows = pq.read_table(History(tmp_path / "h").record(compared)).to_pylist()
    cells = [(row["system"], row["by"], row["slice"], row["value"]) for row in rows]
    assert cells == [
        *[("old", None, None, 1.0), ("new", None, None, 0.75)],
        *[("old", "c", "a", 1.0), ("new", "c", "a", 0.5)],
        *[("old", "c", "b", 1.0), ("new", "c", "b", 1.0)],
    ]
    assert [row["queries"] for row in rows] == [4, 4, 2, 2, 2, 2]
    assert rows[0]["gain_function"] == "exp"
    (run,) = History(tmp_path / "h").runs
    assert [*run.metrics] == [("old", "map"), ("new", "map")]
    both = rankmill.evaluate_runs(
        labels, runs, ["map"], semantics=rankmill.Semantics(gain_function="exp")
    )
    History(tmp_path / "h").record(both)
    assert History(tmp_path / "h").trend("map", "new").last.change == 0


def test_a_verdict_is_the_candidates(tmp_path: Path) -> None:
    labels = pa.table({"user_id": [1, 2], "items": [[1]] * 2, "c": ["a", "b"]})
    old = pa.table({"user_id": [1, 2], "items": [[1], [1]]})
    new = pa.table({"user_id": [1, 2], "items": [[1], [2, 1]]})
    rules = ["map drop <= 1% confidence none", "map[c=*] drop <= 90%"]
    verdict = rankmill.gate(labels, new, rules, baseline=old)
    History(tmp_path / "h").record(verdict, time=BEGIN)
    (path,) = (tmp_path / "h").iterdir()
    rows = pq.read_table(path).to_pylist()
    cells = [(row["system"], row["by"], row["slice"], row["value"]) for row in rows]
    assert cells == [(None, None, None, 0.75), (None, "c", "a", 1.0), (None, "c", "b", 0.5)]
    assert {row["verdict"] for row in rows} == {"regressed"}
    outcomes = json.loads(rows[0]["outcomes"])
    assert [one["rule"] for one in outcomes] == [one.rule for one in verdict.outcomes]
    with pytest.raises(
        InputError, match="no run to compare map with: no night has the verdict 'held'"
    ):
        History(tmp_path / "h").baseline("last", "map")


@pytest.mark.parametrize(
    ("found", "tags", "told"),
    [
        (3, {}, "a int cannot be recorded"),
        (made(), {"a": 1}, "expected two strings"),
        (made(), {"": "x"}, "expected two strings"),
    ],
)
def test_what_cannot_be_recorded(found: Any, tags: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=told):
        History(tmp_path / "h").record(found, tags=tags)
    assert not (tmp_path / "h").exists()


def test_a_time_needs_its_zone(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="with its zone"):
        History(tmp_path).record(made(), time=datetime(2026, 1, 1))
    there = datetime(2026, 1, 1, 4, tzinfo=UTC).astimezone()
    assert "20260101T040000000000Z" in History(tmp_path).record(made(), time=there)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for bad, told in (("file", "is a file"), ("no/h", "there is no folder"), ("", "is empty")):
        with pytest.raises(UsageError, match=told):
            History(tmp_path / bad if bad else "").record(made())


# ------------------------------------------------------------------ who else can read it


def test_pandas_and_duckdb_read_a_folder(tmp_path: Path) -> None:
    pandas, duckdb = pytest.importorskip("pandas"), pytest.importorskip("duckdb")
    nights(tmp_path, [0.1, 0.2, 0.3])
    History(tmp_path).record(made(0.4), tags={"model": "b"}, time=BEGIN + timedelta(days=9))
    (tmp_path / ".rankmill-0123.tmp").write_bytes(b"half")
    frame = pandas.read_parquet(tmp_path)
    series = frame[frame.metric == "map@12"].set_index("time").value.sort_index()
    assert series.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert str(series.index.tz) == "UTC"
    asked = f"FROM read_parquet('{tmp_path}/*.parquet', union_by_name = true)"
    rows = duckdb.sql(f"SELECT value, audit['labels'] {asked} WHERE tags['model'] = 'b'").fetchall()
    assert rows == [(0.4, 0), (0.5, 0)]


def test_rows_and_summary_say_the_same(tmp_path: Path) -> None:
    nights(tmp_path, [0.1, 0.2])
    History(tmp_path).record(
        {"a": made(0.3), "b": made(None)}, tags={"x": "\x18 rankmill run\x18{}"}
    )
    result = made(0.4, semantics=Choices(unpredicted="skip"), scope=Scope(depth=3))
    History(tmp_path).record(result, time=BEGIN)
    by_summary = History(tmp_path).runs
    assert len(by_summary) == 4
    assert sorted(as_parquet_tells(tmp_path), key=lambda run: run.id) == sorted(
        by_summary, key=lambda run: run.id
    )


def test_a_tag_cannot_pass_for_a_summary(tmp_path: Path) -> None:
    forged = '{"run":"x","time":0,"version":"","rules":["{}","{}",""],"verdict":null,"tags":{},'
    forged += '"metrics":[],"audits":[]}'
    forged = seal_of(forged) + forged
    value = f"{SUMMARY.decode()}\x18{chr(len(forged))}{forged}"
    assert read_summary(value.encode()) is not None
    path = History(tmp_path).record(made(), tags={"a": value}, time=BEGIN)
    (run,) = History(tmp_path).runs
    assert (run.id, run.tags) == (Path(path).stem, {"a": value})
    assert read_summary(value.encode() + Path(path).read_bytes()) == run


def test_a_run_that_is_removed_meanwhile_is_passed_over(tmp_path: Path) -> None:
    name = Path(night(tmp_path, 0, 0.1)).name
    assert [run.id for run in open_folder(tmp_path).read(["gone.parquet", name])] == [name[:-8]]


def test_files_joined_by_others_are_read_by_their_rows(tmp_path: Path) -> None:
    nights(tmp_path / "h", [0.1, 0.2, 0.3])
    whole = pa.concat_tables(pq.read_table(path) for path in sorted((tmp_path / "h").iterdir()))
    (tmp_path / "joined").mkdir()
    pq.write_table(whole.replace_schema_metadata(), tmp_path / "joined" / "2026.parquet")
    assert History(tmp_path / "joined").runs == History(tmp_path / "h").runs
    # Some were joined, and are not removed yet.
    pq.write_table(whole.replace_schema_metadata(), tmp_path / "h" / "2026.parquet")
    assert History(tmp_path / "joined").runs == History(tmp_path / "h").runs


def test_files_of_other_versions_are_read(tmp_path: Path) -> None:
    nights(tmp_path, [0.1])
    (path,) = tmp_path.iterdir()
    table = pq.read_table(path)
    # A later version has more columns and more choices; an earlier one had fewer.
    later = table.append_column("new", pa.array([{"a": 1}] * 2)).replace_schema_metadata()
    later = later.set_column(0, "run", pa.array(["later"] * 2))
    seals = pa.array([seal_of_row(row) for row in later.to_pylist()])
    later = later.set_column(later.column_names.index("checksum"), "checksum", seals)
    pq.write_table(later, tmp_path / "b.parquet")
    few = table.select(["run", "time", "metric", "value"]).set_column(
        0, "run", pa.array(["few"] * 2)
    )
    pq.write_table(few.replace_schema_metadata(), tmp_path / "c.parquet")
    runs = {run.id: run for run in History(tmp_path).runs}
    assert len(runs) == 3
    assert {run.get("map@12").value for run in runs.values()} == {0.1}  # type: ignore[union-attr]
    assert {run.rules for run in runs.values()} == {rules_text(DEFAULT)}
    known = DEFAULT.to_dict()
    known.pop("ideal_dcg")
    assert rules_text(known, {"rel": None}) == rules_text(DEFAULT)
    assert rules_text(known | {"brand_new": "x"}) != rules_text(DEFAULT)


def test_a_summary_beyond_the_end_is_no_loss(tmp_path: Path) -> None:
    metrics = {f"precision@{k}": 0.5 for k in range(1, 900)}
    History(tmp_path).record(Result(metrics, dict.fromkeys(metrics), {}, 7), time=BEGIN)
    (path,) = tmp_path.iterdir()
    assert read_summary(path.read_bytes()[-END:]) is None
    (run,) = History(tmp_path).runs
    assert len(run.metrics) == 899


@pytest.mark.parametrize("cut", [1, 5, 300, 3000])
def test_a_broken_file_is_named(cut: int, tmp_path: Path) -> None:
    path = Path(night(tmp_path, 0, 0.1))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2 if cut == 3000 else -cut])
    if read_summary(path.read_bytes()) is not None:  # the facts of a trend are still there
        assert len(History(tmp_path)) == 1
        return
    with pytest.raises(InputError) as error:
        len(History(tmp_path))
    tells(error.value, [path.name, "move it elsewhere"])


def test_another_table_is_no_run(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet cannot be read: .* is not a run"):
        len(History(tmp_path))


@given(st.binary(max_size=200), st.integers(0, 400))
def test_damaged_summaries_raise_nothing(noise: bytes, cut: int) -> None:
    read_summary(noise)
    text = b"{" + noise
    read_summary(noise + SUMMARY + b"\x18" + bytes([len(text) % 128]) + text)
    read_summary((SUMMARY + b"\x18\xff\xff\xff\xff\xff\x7f" + noise)[: cut % 40])


# ------------------------------------------------------------------ many writers, and kills

WRITE = """
import sys
from rankmill import History
from rankmill.results.result import Result
result = Result({"map": 0.5}, {"map": None}, {}, 1)
for number in range(int(sys.argv[2])):
    History(sys.argv[1]).record(result, tags={"writer": sys.argv[3], "number": str(number)})
    if number == 0:
        print("begun", flush=True)
"""


def writer(folder: Path, runs: int, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITE, str(folder), str(runs), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.long
@pytest.mark.parametrize("count", [3, pytest.param(8, marks=pytest.mark.long)])
def test_many_writers_lose_no_run(tmp_path: Path, count: int) -> None:
    folder = tmp_path / "h"  # which all of them make
    writers = [writer(folder, 25, str(number)) for number in range(count)]
    assert [one.wait() for one in writers] == [0] * count
    for one in writers:
        one.communicate()
    found = {(run.tags["writer"], run.tags["number"]) for run in History(folder).runs}
    assert len(found) == len(History(folder)) == 25 * count


def test_another_writer_may_make_the_folder_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "h"

    def after_another(path: str | Path) -> None:
        folder.mkdir(exist_ok=True)
        check_target(path)

    monkeypatch.setattr("rankmill.nightly.record.check_target", after_another)
    night(folder, 1, 0.1)
    assert len(History(folder)) == 1


@pytest.mark.long
def test_kills_leave_no_half_file(tmp_path: Path) -> None:
    pause = random.Random(7)
    for number in range(4):
        one = writer(tmp_path / "h", 10_000, str(number))
        assert one.stdout is not None
        one.stdout.readline()
        time.sleep(pause.uniform(0.02, 0.15))
        one.send_signal(signal.SIGKILL)
        one.communicate()
    found = History(tmp_path / "h")
    assert len(found) > 4
    for path in (tmp_path / "h").glob("*.parquet"):
        assert pq.read_table(path).num_rows == 1


# ------------------------------------------------------------------ trends and baselines


def test_a_trend_is_in_the_order_of_time(tmp_path: Path) -> None:
    for number, value in ((2, 0.3), (0, 0.1), (1, 0.2)):
        night(tmp_path, number, value)
    trend = History(tmp_path).trend("MAP@12")
    assert [point.value for point in trend.points] == [0.1, 0.2, 0.3]
    assert [point.change for point in trend.points] == [
        None,
        pytest.approx(0.1),
        pytest.approx(0.1),
    ]
    assert trend.drift is None
    assert trend.note == ""


def test_runs_that_count_otherwise_are_named_and_left_out(tmp_path: Path) -> None:
    night(tmp_path, 0, 0.9, semantics=Choices(unpredicted="skip"))
    night(tmp_path, 1, 0.8, scope=Scope(depth=5))
    night(tmp_path, 2, 0.7, gain_function="exp")
    night(tmp_path, 3, 0.2)
    found = History(tmp_path)
    ids = [run.id for run in found.runs]
    trend = found.trend("map@12")
    assert [point.value for point in trend.points] == [0.2]
    told = ["these 3 runs count otherwise", "gain_function is exp, not linear", *ids[:3]]
    tells(trend.note, told)
    last = found.baseline("last", "map@12")
    assert (last.value, last.run.id) == (0.2, ids[3])
    tells(last.note, told)
    other = found.baseline("last", "map@12", rules=rules_text(Choices(unpredicted="skip")))
    assert other.value == 0.9
    with pytest.raises(InputError) as error:
        found.baseline("last", "map@12", rules=rules_text(Choices(unlabelled="zero")))
    tells(
        error.value, ["these 4 runs count otherwise", "unlabelled is skip, not zero", "and 1 more"]
    )


def test_another_definition_is_another_metric(tmp_path: Path, monkeypatch: Any) -> None:
    night(tmp_path, 0, 0.9)
    monkeypatch.setattr(
        sys.modules["rankmill.nightly.record"],
        "definition_of",
        lambda metric, own=False: "" if own else "?",
    )
    night(tmp_path, 1, 0.1)
    trend = History(tmp_path).trend("map@12")
    assert [point.value for point in trend.points] == [0.1]
    tells(trend.note, ["this run counts otherwise", "map@12 had another definition"])


def test_baselines(tmp_path: Path) -> None:
    values = [0.5, 0.9, 0.1, 0.3, 0.2, 0.4]
    found = History(nights(tmp_path, values))
    ids = [run.id for run in found.runs]

    def served(how: str) -> tuple[float, str]:
        one = found.baseline(how, "map@12")
        assert (one.standard_error, one.queries, one.how) == (0.01, 1000, how)
        return one.value, one.run.id

    assert served("last") == (0.4, ids[5])
    assert served("median:1") == (0.4, ids[5])
    for last in range(1, 9):
        assert served(f"median:{last}")[0] == statistics.median_low(values[-last:])
    with pytest.raises(InputError, match=r"has no ndcg@5; it has map@12, gap"):
        found.baseline("last", "ndcg@5")


WRONG = [
    "",
    "first",
    "median",
    "median:0",
    "median:x",
    "LAST",
    "ago:0d",
    "ago:3",
    "tag:x",
    "tag:=x",
]


@pytest.mark.parametrize("how", WRONG)
def test_no_baseline(how: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected last, the median"):
        History(nights(tmp_path, [0.1])).baseline(how, "map@12")


def test_the_best_night_is_no_baseline_any_more(tmp_path: Path, run: Any) -> None:
    with pytest.raises(UsageError, match=GONE["best"]):
        History(nights(tmp_path, [0.1])).baseline("best", "map@12")
    asked = ["--rule", "map@12 drop <= 1%", "--baseline", "best"]
    labels, predictions = map(str, write_dump(tmp_path))
    for more in ([], ["--history", "none"]):
        told = run("gate", labels, predictions, *asked, *more)[::2]
        assert told == (2, f"error: {GONE['best']}\n")


def test_what_failed_and_what_has_no_value_is_no_baseline(tmp_path: Path) -> None:
    for number, (word, value) in enumerate(
        [(None, 0.3), ("held", 0.2), ("regressed", 0.9), ("not enough data", 0.8), ("held", None)]
    ):
        result = made(value)
        recorded = result if word is None else Verdict(word, [], result)
        History(tmp_path).record(recorded, time=BEGIN + timedelta(days=number))
    found = History(tmp_path)
    assert found.baseline("last", "map@12").value == 0.2
    assert found.baseline("median:9", "map@12").value == 0.2
    assert found.baseline("median:9", "map@12", now=BEGIN + timedelta(hours=1)).value == 0.3
    assert [point.value for point in found.trend("map@12").points] == [0.3, 0.2, 0.9, 0.8, None]


@pytest.mark.parametrize("day", [0, 1, 2])
@pytest.mark.parametrize("how", ["last", "median:2", "ago:1d"])
def test_a_run_without_rules_is_no_baseline_once_a_gate_judges(
    day: int, how: str, tmp_path: Path
) -> None:
    for number, (word, value) in enumerate([("held", 0.2), ("regressed", 0.1)]):
        when = BEGIN + timedelta(days=number)
        History(tmp_path).record(Verdict(word, [], made(value)), time=when)
    when = BEGIN + timedelta(days=day, hours=1)  # of the night that held, that broke, and a third
    path = History(tmp_path).record(made(0.1), time=when)
    found = History(tmp_path).baseline(how, "map@12", now=BEGIN + timedelta(days=3))
    assert found.value == 0.2
    if day:
        assert found.note == (
            f"left out: the run {Path(path).stem}, recorded without rules since gates judge nights"
        )
    # Nor is it a second try of a night in drift.
    runs, _ = History(tmp_path).comparable("map@12", None, None)
    assert len(one_a_night(runs)) == 2 + (day == 2)


def test_runs_without_rules_serve_a_first_gate_and_its_retry(tmp_path: Path) -> None:
    History(tmp_path).record(made(0.3), time=BEGIN)
    assert History(tmp_path).baseline("last", "map@12", now=BEGIN).value == 0.3
    when = BEGIN + timedelta(hours=1)
    History(tmp_path).record(Verdict("regressed", [], made(0.1)), time=when)
    assert History(tmp_path).baseline("last", "map@12", now=BEGIN + timedelta(hours=2)).value == 0.3
    with pytest.raises(InputError, match="no night has the verdict 'held'"):
        History(tmp_path).baseline("last", "map@12", now=BEGIN + timedelta(days=1))


def test_pinned_runs_and_runs_some_days_back(tmp_path: Path) -> None:
    for number, (word, release) in enumerate(
        [("held", "v6"), ("regressed", "v7"), ("held", "v7"), ("regressed", "v7"), ("held", "v8")]
    ):
        one, when = Verdict(word, [], made(number / 10)), BEGIN + timedelta(days=number)
        History(tmp_path).record(one, tags={"release": release}, time=when)
    found, now = History(tmp_path), BEGIN + timedelta(days=5)

    def served(how: str) -> float:
        return found.baseline(how, "map@12", now=now).value

    assert served("tag:release=v7") == 0.3  # whatever its verdict
    # Not an earlier try of this very night, which all nights of the tag have.
    retried = BEGIN + timedelta(days=3, hours=1)
    assert found.baseline("tag:release=v7", "map@12", now=retried).value == 0.2
    alone = BEGIN + timedelta(days=4, hours=1)
    assert found.baseline("tag:release=v8", "map@12", now=alone).value == 0.4
    assert served(found.runs[1].id) == 0.1
    assert (served("last"), served("ago:1d"), served("ago:3d"), served("ago:4d")) == (
        0.4,
        0.4,
        0.2,
        0,
    )
    for how, told in (("ago:9d", "9 or more days back"), ("tag:release=v9", "no run is tag:rel")):
        with pytest.raises(InputError, match=told):
            served(how)


def test_a_run_of_the_future_is_not_the_last(tmp_path: Path) -> None:
    nights(tmp_path, [0.1, 0.2, 0.3])
    one = History(tmp_path).baseline("last", "map@12", now=BEGIN + timedelta(days=1))
    assert one.value == 0.1  # and the run of the same date is another try of this one
    tells(one.note, ["2026-01-03 03:00 UTC", "later than the date of this run, 2026-01-02"])
    with pytest.raises(InputError, match="3 dated later than this run"):
        History(tmp_path).baseline("last", "map@12", now=BEGIN - timedelta(days=1))


def test_a_later_try_of_a_night_replaces_the_earlier_one(tmp_path: Path) -> None:
    tries = [(0, "held", 0.5, "a"), (0, "regressed", 0.1, "a"), (0, "held", 0.3, "a")]
    tries += [(1, "held", 0.9, "a"), (1, "regressed", 0.2, "a"), (1, "held", 0.4, "b")]
    for number, (day, word, value, model) in enumerate(tries):
        when = BEGIN + timedelta(days=day, hours=number)
        History(tmp_path).record(Verdict(word, [], made(value)), tags={"model": model}, time=when)
    found = History(tmp_path)
    assert len(found) == 6
    assert found.baseline("last", "map@12").value == 0.4
    assert found.baseline("median:7", "map@12").value == 0.3
    # Tonight's own first try is what tonight is compared with only if there is no other night.
    now = BEGIN + timedelta(days=1, hours=9)
    assert found.baseline("last", "map@12", now=now).value == 0.3
    assert found.baseline("last", "map@12", now=BEGIN + timedelta(hours=9)).value == 0.3


@pytest.mark.parametrize("how", ["last", "median:7", "ago:1d", "tag:a=b"])
@pytest.mark.parametrize("word", ["held", "regressed"])
def test_a_try_that_decides_nothing_replaces_none_that_did(
    word: str, how: str, tmp_path: Path
) -> None:
    tries = [("not enough data", 0.1), (word, 0.5), ("not enough data", 0.3)]
    for hour, (one, value) in enumerate(tries):
        when = BEGIN + timedelta(hours=hour)
        History(tmp_path).record(Verdict(one, [], made(value)), tags={"a": "b"}, time=when)
    found, now = History(tmp_path), BEGIN + timedelta(days=1)
    if word == "held" or how == "tag:a=b":
        assert found.baseline(how, "map@12", now=now).value == 0.5
    else:
        with pytest.raises(InputError, match=r"to compare map@12 with: no night"):
            found.baseline(how, "map@12", now=now)


def test_the_message_without_a_baseline_names_what_counts(tmp_path: Path) -> None:
    for hour, word in enumerate(["held", "not enough data", "regressed"]):
        when = BEGIN + timedelta(hours=hour)
        History(tmp_path).record(Verdict(word, [], made()), time=when)
    found, now = History(tmp_path), BEGIN + timedelta(days=1)
    with pytest.raises(InputError) as caught:
        found.baseline("last", "map@12", now=now)
    tells(str(caught.value), ["no night has the verdict 'held' (regressed)", "tag:KEY=VALUE"])
    assert "(held" not in str(caught.value)
    nights(tmp_path / "few", [0.1, 0.2])
    with pytest.raises(InputError, match="no run is 28 or more days back"):
        History(tmp_path / "few").baseline("ago:28d", "map@12", now=now)


def test_what_the_data_did_not_decide_is_recorded_as_such(tmp_path: Path) -> None:
    left = RuleOutcome("map@12 drop <= 1%", "not enough data", "", 0.2, 0.2, 0, -1, 1, 0.01, "")
    History(tmp_path).record(Verdict("not enough data", [left], made(0.2)), time=BEGIN)
    found = History(tmp_path)
    assert found.runs[0].verdict == "not enough data"
    with pytest.raises(InputError, match=r"\(not enough data\)"):
        found.baseline("last", "map@12")


@pytest.mark.parametrize("words", [["not enough data"] * 2, ["regressed"] * 3])
def test_a_few_nights_that_are_no_baseline_make_no_note(words: list[str], tmp_path: Path) -> None:
    for number, word in enumerate(["held", *words]):
        History(tmp_path).record(Verdict(word, [], made()), time=BEGIN + timedelta(days=number))
    assert History(tmp_path).baseline("last", "map@12").note == ""


def test_a_baseline_that_does_not_move_is_noted(tmp_path: Path) -> None:
    words = ["held", "not enough data", "regressed", "not enough data", "not enough data"]
    for number, word in enumerate(words):
        History(tmp_path).record(Verdict(word, [], made()), time=BEGIN + timedelta(days=number))
    found, now = History(tmp_path), BEGIN + timedelta(days=9)
    for how in ("last", "last or none", "median:7"):
        note = found.baseline(how, "map@12", now=now).note
        tells(note, ["the 3 nights since 2026-01-01", "without enough data", "pin a baseline"])
    assert found.baseline("ago:1d", "map@12", now=now).note == ""
    assert found.baseline("last", "map@12", now=BEGIN + timedelta(days=4)).note == ""


# ------------------------------------------------------------------ drift


NIGHTS = 14


def by_definition(values: np.ndarray, days: np.ndarray) -> list[tuple[float, float]]:
    """The oracle: SciPy's t and NumPy's least squares, for nights of equal standard errors."""
    found, before = [], values[:-1][-NIGHTS:]
    if len(before) >= 7:
        spread = before.std(ddof=1) * math.sqrt(1 + 1 / len(before))
        t = (values[-1] - before.mean()) / spread
        found.append((t, stats.t.isf(RATE / 2, len(before) - 1)))
    if len(values) >= 21:
        values, days = values[-NIGHTS - 12 :], days[-NIGHTS - 12 :]
        line = np.maximum(0, np.arange(len(values)) - (len(values) - 13))
        causes = np.column_stack([*(days % 7 == day for day in set(days % 7)), line]).astype(float)
        fitted, *_ = np.linalg.lstsq(causes, values)
        freedom = causes.shape[0] - causes.shape[1]
        square = ((values - causes @ fitted) ** 2).sum() / freedom
        error = math.sqrt(square * np.linalg.inv(causes.T @ causes)[-1, -1])
        found.append((fitted[-1] / error, stats.t.isf(RATE / 2, freedom)))
    return found


@given(
    st.lists(st.integers(100, 300), min_size=1, max_size=40, unique=True),
    st.lists(st.integers(1, 3), min_size=40, max_size=40),
)
def test_drift_is_a_test_of_a_prediction_and_of_a_slope(values: list[int], gaps: list[int]) -> None:
    numbers = [(value / 400, 0.001) for value in values]
    days = np.cumsum(gaps)[: len(values)]
    found = drift(numbers, days.tolist())
    wanted = by_definition(np.array(values) / 400, days)
    if not wanted:
        assert found is None
        return
    t, limit = max(wanted, key=lambda one: abs(one[0]) / one[1])
    assert found is not None
    assert (found.t, found.limit) == (pytest.approx(t, rel=1e-9), pytest.approx(limit, rel=1e-9))
    assert found.flagged == (abs(t) > limit)
    assert bool(str(found)) == found.flagged


def test_drift_is_named(tmp_path: Path) -> None:
    values = [0.1, 0.102, 0.098, 0.101, 0.099, 0.1, 0.103, 0.097, 0.1, 0.05]
    trend = History(nights(tmp_path, values)).trend("map@12")
    assert trend.drift is not None
    tells(trend.drift, ["below the weighted mean 0.1 of 9 earlier runs"])
    same = [(0.5, 0.01)] * 7
    assert str(drift([*same, (0.6, 0.01)])) == "above the 7 earlier runs, which all had 0.5"
    assert str(drift([*same, (0.5, 0.01)])) == ""
    # Without a single hit until now, one hit in ten queries is no news.
    assert str(drift([(0.0, 0.0)] * 9 + [(0.1, 0.1)])) == ""


def test_a_night_of_few_queries_may_lie_further_away() -> None:
    usual = [(0.3 + 0.01 * math.sin(3 * night), 0.01) for night in range(14)]
    few, as_many = (drift([*usual, (0.4, error)]) for error in (0.1, 0.01))
    assert few is not None
    assert as_many is not None
    assert (few.flagged, as_many.flagged) == (False, True)


@pytest.mark.parametrize("weekend", [0.0, 0.002, 0.05])
def test_a_slope_is_named_within_twelve_nights(weekend: float) -> None:
    """Half a night-to-night standard deviation a night, after 14 quiet ones, in any season."""
    draw, named = np.random.default_rng(0), 0
    for _ in range(100):
        values = 0.3 + 0.001 * draw.standard_normal(26) - weekend * (np.arange(26) % 7 > 4)
        values[14:] -= 0.0005 * np.arange(1, 13)
        series = [(float(value), 0.004) for value in values]
        tests = [drift(series[: night + 1]) for night in range(14, 26)]
        named += any(one is not None and one.flagged for one in tests)
    assert named >= 95


def test_a_season_alone_is_no_drift(tmp_path: Path) -> None:
    """Also where nights are missing: what counts is the day of the week of a run."""
    for number in range(40):
        if number not in {12, 25, 26, 34}:
            night(tmp_path, number, 0.3 - 0.1 * (number % 7 > 4) + 0.001 * (number * number % 5))
    trend = rankmill.History(tmp_path).trend("map@12")
    assert trend.drift is not None
    assert not trend.drift.flagged
    for number in range(28):
        assert str(drift([(0.3 + 0.01 * (n % 7), 0.01) for n in range(number)]) or "") == ""


def test_what_did_not_hold_is_not_drifted_from(tmp_path: Path) -> None:
    """A night that failed makes those after it no less strange."""
    values = [0.1, 0.102, 0.098, 0.101, 0.099, 0.1, 0.103, 0.097, 0.1]
    nights(tmp_path, values)
    failed = Verdict("regressed", [], made(0.01))
    History(tmp_path).record(failed, time=BEGIN + timedelta(days=9))
    night(tmp_path, 10, 0.05)
    trend = History(tmp_path).trend("map@12")
    assert trend.drift is not None
    assert trend.drift.flagged


@pytest.mark.parametrize("models", ["ab", "aba", "ba", "bab"])
def test_two_candidates_of_a_night_are_the_last_ones_in_turn(tmp_path: Path, models: str) -> None:
    """One that is run again is the newest run: what drifts, and the next baseline, is that one."""
    history = History(nights(tmp_path, [0.1, 0.102, 0.098, 0.101, 0.099, 0.1, 0.103, 0.097, 0.1]))
    values = {"a": 0.1, "b": 0.05}
    for number, model in enumerate(models):
        time = BEGIN + timedelta(days=9, minutes=number)
        history.record(made(values[model]), tags={"model": model}, time=time)
    trend = History(tmp_path).trend("map@12")
    assert trend.drift is not None
    assert trend.drift.flagged == (models[-1] == "b")
    found = History(tmp_path).baseline("last", "map@12", now=BEGIN + timedelta(days=10))
    assert found.run.tags == {"model": models[-1]}


def test_sparklines() -> None:
    assert sparkline([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]) == "▁▂▃▄▅▆▇█"
    assert sparkline([]) == ""


# ------------------------------------------------------------------ since and prune


def test_since(tmp_path: Path) -> None:
    nights(tmp_path, [0.1, 0.2, 0.3, 0.4])
    now = BEGIN + timedelta(days=3, hours=1)

    def values(since: str) -> list[float | None]:
        return [p.value for p in History(tmp_path, since, now=now).trend("map@12").points]

    assert values("2026-01-03") == [0.3, 0.4]
    assert values("2026-01-03T04:00") == [0.4]
    assert values("2026-01-03T05:30+02:00") == [0.4]
    assert values("today") == [0.4]
    assert values("yesterday") == [0.3, 0.4]
    assert values("25h") == [0.3, 0.4]
    assert values("1w") == [0.1, 0.2, 0.3, 0.4]
    for wrong in ("", "tomorrow", "30", "30m", "2026-13-01"):
        with pytest.raises(UsageError, match="is not a time"):
            moment(wrong)


def test_prune(tmp_path: Path) -> None:
    nights(tmp_path, [0.1, 0.2, 0.3, 0.4])
    (tmp_path / "other.parquet").write_bytes(b"")
    now = BEGIN + timedelta(days=3)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert prune(tmp_path, keep="2d", now=now, dry_run=True) == (names[:1], 4)
    assert prune(tmp_path, keep_last=3, dry_run=True) == (names[:1], 4)
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert prune(tmp_path, keep="2d", now=now) == (names[:1], 4)
    assert prune(tmp_path, keep_last=1) == (names[1:3], 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == names[3:]
    for wrong in ({}, {"keep": "1d", "keep_last": 1}):
        with pytest.raises(UsageError, match="give one of"):
            prune(tmp_path, **wrong)  # type: ignore[arg-type]


# ------------------------------------------------------------------ the command line


@pytest.fixture
def recorded(tmp_path: Path, run: Any) -> Path:
    labels, predictions = write_dump(tmp_path)
    for model in ("a", "b"):
        tags = ("--tag", f"model={model}", "--tag", "x=1=2")
        more = ("--history", tmp_path / "h", *tags)
        assert run("evaluate", labels, predictions, "-m", "map@3", "-m", "gap", *more)[0] == 0
    return tmp_path / "h"


def test_commands_record(recorded: Path, tmp_path: Path, run: Any) -> None:
    runs = History(recorded).runs
    assert [one.tags for one in runs] == [{"model": "a", "x": "1=2"}, {"model": "b", "x": "1=2"}]
    labels, predictions = tmp_path / "labels.parquet", tmp_path / "predictions.parquet"
    other = tmp_path / "other.parquet"
    other.write_bytes(predictions.read_bytes())
    for command in ("evaluate", "compare"):
        code, _, error = run(command, labels, predictions, other, "--history", recorded)
        assert (code, error) == (0, "")
        newest = max(recorded.iterdir(), key=lambda path: path.name)
        rows = pq.read_table(newest).to_pylist()
        paths = {row["system"]: row["predictions_paths"] for row in rows}
        assert paths == {"predictions": [str(predictions)], "other": [str(other)]}


def test_the_command_shows_trends(recorded: Path, run: Any) -> None:
    code, shown, error = run("history", recorded)
    assert (code, error) == (0, "")
    tells(shown, ["map@3", "gap", "▄▄", "2 runs"])
    code, shown, _ = run("history", recorded, "-m", "MAP@3")
    tells(shown, ["model=a, x=1=2", "model=b"])
    assert "gap" not in shown
    told = json.loads(run("history", recorded, "--format", "json")[1])
    assert [one["metric"] for one in told["trends"]] == ["map@3", "gap"]
    assert told["trends"][0]["points"][1]["change"] == 0
    lines = run("history", recorded, "--format", "csv")[1].splitlines()
    assert lines[0].startswith("run,time,system,metric,value")
    assert len(lines) == 5
    assert "| map@3 |" in run("history", recorded, "--format", "markdown")[1]
    assert run("history", recorded, "--since", "2999-01-01")[:2] == (
        0,
        f"the history {recorded} has no runs\nHistory({str(recorded)!r}, no runs)\n",
    )


def test_a_night_without_a_verdict_hides_no_value(tmp_path: Path, run: Any) -> None:
    labels, predictions = map(str, write_dump(tmp_path))
    given = ("-m", "map@3", "-m", "gap", "--rule", "queries > 0", "--history", str(tmp_path / "h"))
    for day in ("2026-01-01", "2026-01-02"):
        assert run("gate", labels, predictions, *given, "--date", day)[0] == 0
    value = run("history", tmp_path / "h")[1]
    assert run("gate", labels, tmp_path / "none.csv", *given, "--date", "2026-01-03")[0] == 3
    code, shown, _ = run("history", tmp_path / "h")
    assert code == 0
    for before, now in zip(value.splitlines()[2:4], shown.splitlines()[2:4], strict=True):
        wanted = before.split()  # metric, runs, trend, last, and so on
        assert now.split() == [wanted[0], "3", *wanted[2:]]
    assert len(value.splitlines()) + 2 == len(shown.splitlines())
    tells(
        shown, ["the newest run, of 2026-01-03", "has no value: the table shows that of 2026-01-02"]
    )
    tells(shown, ["no verdict: ", "none.csv"])
    assert "newest" not in run("history", tmp_path / "h", "-m", "gap")[1]


def test_the_command_prunes(recorded: Path, run: Any) -> None:
    code, shown, _ = run("history", "prune", recorded, "--keep-last", "1", "--dry-run")
    assert code == 0
    tells(shown, ["would remove 1 of 2 runs", ".parquet"])
    assert run("history", "prune", recorded, "--keep", "1d")[1] == "removed 0 of 2 runs\n"
    assert run("history", "prune", recorded, "--keep-last=1")[1] == "removed 1 of 2 runs\n"
    assert run("history", "prune", recorded)[0] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("history", "nowhere"), 3, "there is no history nowhere"),
        (("history", "h", "-m", "mpa@3"), 3, "has no mpa@3; it has map@3, gap"),
        (("history", "h", "--since", "then"), 2, "'then' is not a time"),
        (("history", "labels.parquet"), 3, "labels.parquet is a file"),
        (("evaluate", "labels.parquet", "p", "--history", "labels.parquet"), 2, "is a file"),
        (("evaluate", "labels.parquet", "p", "--history", "no/h"), 2, "there is no folder"),
        (("evaluate", "labels.parquet", "p", "--history", "h", "--tag", "a"), 2, "not KEY=VALUE"),
        (("evaluate", "l", "p", "--history", "h", *["--tag", "a=1"] * 2), 2, "given twice"),
        (("evaluate", "labels.parquet", "p", "--tag", "a=1"), 2, "give --history"),
    ],
)
def test_wrong_usage(
    arguments: tuple[str, ...], code: int, told: str, recorded: Path, run: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(recorded.parent)
    before = sorted(recorded.parent.rglob("*"))
    got, shown, error = run(*arguments)
    assert (got, shown) == (code, "")
    tells(error, [told])
    assert sorted(recorded.parent.rglob("*")) == before


def test_a_history_is_no_input(tmp_path: Path, run: Any) -> None:
    labels, predictions = write_dump(tmp_path)
    (tmp_path / "in").mkdir()
    predictions.rename(tmp_path / "in" / "p.parquet")
    code, _, error = run("evaluate", labels, tmp_path / "in", "--history", tmp_path / "in")
    assert code == 2
    tells(error, ["would read it as an input"])


def test_a_run_without_a_value_is_not_recorded(tmp_path: Path, run: Any) -> None:
    labels, predictions = write_dump(tmp_path)
    strangers = tmp_path / "strangers.parquet"
    pq.write_table(pa.table({"user_id": [77], "item_id": [[1]]}), strangers)
    options = ("--semantics", "unpredicted=skip", "--history", tmp_path / "h")
    assert run("evaluate", labels, strangers, "-m", "map@3", *options)[0] == 3
    assert run("compare", labels, strangers, predictions, "-m", "map@3", *options)[0] == 3
    assert not (tmp_path / "h").exists()


def test_an_output_that_fails_leaves_no_run(tmp_path: Path, run: Any, monkeypatch: Any) -> None:
    labels, predictions = write_dump(tmp_path)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rankmill.io.whole_files._link", full)
    more = ("-o", tmp_path / "out.json", "--history", tmp_path / "h")
    assert run("evaluate", labels, predictions, *more)[0] == 4
    assert not (tmp_path / "out.json").exists()
    assert not (tmp_path / "h").exists()


# ------------------------------------------------------------------ stores


def test_a_history_in_a_store(tmp_path: Path, run: Any) -> None:
    pytest.importorskip("fsspec")
    labels, predictions = write_dump(tmp_path)
    url = f"memory://history-{os.getpid()}/runs"
    assert run("history", url)[0] == 3
    for _ in range(3):
        code, _, error = run("evaluate", labels, predictions, "-m", "map@3", "--history", url)
        assert (code, error) == (0, "")
    found = rankmill.History(url)
    assert [point.change for point in found.trend("map@3").points] == [None, 0, 0]
    assert run("history", "prune", url, "--keep-last", "1")[1] == "removed 2 of 3 runs\n"
    assert rankmill.History(url).runs == found.runs[2:]


# ------------------------------------------------------------------ pictures


def test_a_picture_shows_each_metric_over_time(recorded: Path, tmp_path: Path, run: Any) -> None:
    from rankmill.nightly.runs.history_view import plot_trends

    later = datetime.now(UTC) + timedelta(days=1)
    History(recorded).record(Verdict("regressed", [], made(0.1, "map@3")), time=later)
    found = History(recorded)
    figure = plot_trends([found.trend("map@3"), found.trend("gap")])
    shown = [one.text for one in figure.marks if isinstance(one, Text)]
    assert [one for one in shown if one in ("map@3", "gap")] == ["map@3", "gap"]
    assert "another verdict" in shown
    first, second, third, *others = [one for one in figure.marks if isinstance(one, Marker)]
    assert [one.shape for one in (first, second, third)] == ["circle", "circle", "down"]
    assert len(others) == len(found.trend("gap").points) + 2  # and those of the legend
    values = [point.value or 0.0 for point in found.trend("map@3").points]
    share = (second.y - first.y) / (third.y - first.y)
    assert share == pytest.approx((values[1] - values[0]) / (values[2] - values[0]))
    assert first.x < second.x < third.x
    assert run("history", recorded, "--plot", tmp_path / "a.svg")[0] == 0
    assert (tmp_path / "a.svg").stat().st_size > 1000
    assert [one.text for one in plot_trends([]).marks if isinstance(one, Text)] == [shown[0]]
    assert run("history", recorded, "--plot", tmp_path / "a.txt")[0] == 2


# ------------------------------------------------------------------ rows as a table

_MOMENT = st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.just(UTC))
_CELLS: dict[str, st.SearchStrategy[Any]] = {
    "run": st.text(),
    "time": _MOMENT,
    "value": st.floats(),
    "queries": st.integers(-(2**63), 2**63 - 1),
    "tags": st.lists(st.tuples(st.text(), st.none() | st.text())),
    "labels_paths": st.lists(st.none() | st.text()),
    "audit": st.lists(st.tuples(st.text(), st.integers(0, 9))),
}


@pytest.mark.small
@given(st.lists(st.fixed_dictionaries({}, optional={n: st.none() | c for n, c in _CELLS.items()})))
def test_rows_are_the_table_that_arrow_makes_of_them(rows: list[dict[str, Any]]) -> None:
    schema = pa.schema([SCHEMA.field(name) for name in _CELLS])
    found, expected = table_of(rows, schema), pa.Table.from_pylist(rows, schema)
    found.validate(full=True)
    for name in ("run", "time", "queries", "tags", "labels_paths", "audit"):
        assert found[name].equals(expected[name])
    np.testing.assert_array_equal(found["value"].to_numpy(), expected["value"].to_numpy())


def test_recording_a_run_does_not_load_pandas(tmp_path: Path) -> None:
    """Its import takes longer than a small gate."""
    program = (
        "import sys; from rankmill.cli import main; sys.argv[0] = 'rankmill'\n"
        "import os; end = os._exit\n"
        "os._exit = lambda code: (print('pandas' in sys.modules, file=sys.stderr), end(code))\n"
        "try:\n    main()\nfinally:\n    print('pandas' in sys.modules, file=sys.stderr)\n"
    )
    write_dump(tmp_path)
    words = ["gate", "labels.parquet", "predictions.parquet", "--rule", "map >= 0.01"]
    words += ["--history", "history", "--tag", "a=b"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "False" in done.stderr.splitlines()
    assert "True" not in done.stderr.splitlines()
    assert len(History(tmp_path / "history").runs) == 1


# ------------------------------------------------------------------ retries and slices


def test_a_retry_changes_from_the_night_before(tmp_path: Path) -> None:
    times = [BEGIN, BEGIN + timedelta(days=1), BEGIN + timedelta(days=1, hours=1)]
    for when, value in zip(times, (0.25, 0.5, 0.375), strict=True):
        History(tmp_path).record(made(value), time=when)
    points = History(tmp_path).trend("map@12").points
    assert [one.change for one in points] == [None, 0.25, 0.125]


def test_a_trend_of_slices(tmp_path: Path, run: Any) -> None:
    values = {0: {"it": [1, 9], "de": [9, 1]}, 1: {"it": [1, 1], "de": [1, 9]}}
    for number, of in values.items():
        country = [name for name, items in of.items() for _ in items]
        items = [[item] for items in of.values() for item in items]
        users = {"user": range(4), "items": [[1]] * 4, "country": country, "new": ["y", "n"] * 2}
        verdict = rankmill.gate(
            pa.table(users),
            pa.table({"user": range(4), "items": items}),
            ["hit@1[country=*] > 0", "hit@1[new=*, country=*] > 0"],
        )
        History(tmp_path).record(verdict, time=BEGIN + timedelta(days=number))
    found = History(tmp_path)
    assert [one.value for one in found.trend("HIT@1[country=it]").points] == [0.5, 1.0]
    for text in ("hit@1[country=de, new=n]", "hit@1[new=n,country=de]"):
        assert [one.value for one in found.trend(text).points] == [1.0, 0.0]
    assert found.trend("hit@1[country=it]").last.change == 0.5
    each = ["hit@1[country=de]", "hit@1[country=it]"]
    assert [metric for metric, _ in found.named(["hit@1[country=*]", "hit@1"])] == [*each, "hit@1"]
    code, shown, error = run("history", tmp_path, "-m", "hit@1[new=n, country=*],hit@1")
    assert (code, error) == (0, "")
    tells(shown, ["hit@1[country=de, new=n]", "hit@1[country=it, new=n]", "+0.250000", "2 runs"])
    code, _, error = run("history", tmp_path, "-m", "hit@1[country=fr]")
    assert code == 3
    assert "it has hit@1, lately in country = de; country = it" in error
    assert "[country] is not a slice" in run("history", tmp_path, "-m", "hit@1[country]")[2]


def test_a_slice_may_have_commas(tmp_path: Path) -> None:
    place = ["Rome, Italy", "Rome, Italy", "Bonn"]
    labels = pa.table({"user": range(3), "items": [[1]] * 3, "place": place})
    predictions = pa.table({"user": range(3), "items": [[1], [2], [1]]})
    verdict = rankmill.gate(
        labels, predictions, ["hit@1[place=Rome, Italy] >= 0.6 confidence none"], by="place"
    )
    (one,) = verdict.outcomes
    assert (one.word, one.value, one.slice) == ("regressed", 0.5, "place = Rome, Italy")
    History(tmp_path).record(verdict, time=BEGIN)
    found = History(tmp_path)
    assert found.trend("hit@1[place=Rome, Italy]").last.value == 0.5
    assert [one for one, _ in found.named("hit@1[place=*]")] == [
        *("hit@1[place=Bonn]", "hit@1[place=Rome, Italy]")
    ]
