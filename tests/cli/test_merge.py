"""`rankmill evaluate --part --state --second` and `rankmill merge`: a loop without Python."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from rankmill.columns.seal import seal_of

ASKED = ("-m", "map@3", "-m", "gap", "-m", "gap@2", "-m", "recall@5")
# Parts keep no notes of what was read.
UNLIKE = ("inputs", "notes", "seconds", "checksum", "rankmill")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with labels and predictions in two files each, in orders of their own."""
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(3)
    for side, longest in (("labels", 4), ("run", 8)):
        ids = draw.permutation(300)[20:]
        lengths = draw.integers(0, longest, len(ids))
        offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
        items = pa.ListArray.from_arrays(offsets, pa.array(draw.integers(0, 25, lengths.sum())))
        numbers = pa.array(draw.integers(0, 9, lengths.sum()).astype(float))
        table = pa.table({"user_id": ids, "items": items})
        if side == "run":
            table = table.append_column("score", pa.ListArray.from_arrays(offsets, numbers))
        (tmp_path / side).mkdir()
        for number in range(2):
            part = table.slice(140 * number, 140)
            pq.write_table(part, tmp_path / side / f"{number}.parquet")
    return tmp_path


def values(path: str) -> dict[str, Any]:
    told = json.loads(Path(path).read_text())
    return {name: one for name, one in told.items() if name not in UNLIKE}


def done(run: Any, *arguments: str) -> str:
    code, shown, error = run(*arguments)
    assert (code, error) == (0, "")
    return str(shown)


def refused(run: Any, *arguments: str) -> str:
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    code, shown, error = run(*arguments)
    assert (code, shown) == (2, "")
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before
    return str(error)


def states(run: Any, of: int, *more: str, suffix: str = "arrow") -> list[str]:
    names = [f"state-{i}.{suffix}" for i in range(1, of + 1)]
    for i, name in enumerate(names, 1):
        done(run, "evaluate", "labels", "run", *more, "--part", f"{i}/{of}", "--state", name)
    return names


@pytest.mark.parametrize(("of", "suffix"), [(1, "arrow"), (3, "parquet"), (5, "feather")])
def test_a_loop_has_the_bits_of_one_process(of: int, suffix: str, run: Any, folder: Path) -> None:
    names = states(run, of, *ASKED, suffix=suffix)
    random.Random(1).shuffle(names)
    shown = done(run, "merge", *names, "--state", "merged.arrow")
    assert shown.startswith(f"all {of} parts: 2")
    counts = [f"second-{i}.{suffix}" for i in range(1, of + 1)]
    for i, name in enumerate(counts, 1):
        second = ("--part", f"{i}/{of}", "--second", "merged.arrow", "--state", name)
        assert "second pass: " in done(run, "evaluate", "labels", "run", *ASKED, *second)
    done(run, "merge", *counts, "merged.arrow", "-o", "parts.json")
    done(run, "evaluate", "labels", "run", *ASKED, "-o", "whole.json")
    assert values("parts.json") == values("whole.json")


def test_files_that_are_parts_already_need_no_number(run: Any, folder: Path) -> None:
    for side in ("labels", "run"):
        table = pa.concat_tables([pq.read_table(f"{side}/{n}.parquet") for n in range(2)])
        for number in range(2):
            inside = np.asarray(table["user_id"]) % 2 == number
            pq.write_table(table.filter(pa.array(inside)), f"{side}-{number}.parquet")
    for n in range(2):
        files = f"labels-{n}.parquet", f"run-{n}.parquet"
        done(run, "evaluate", *files, "-m", "map@3", "--state", f"{n}.arrow")
    done(run, "merge", "0.arrow", "1.arrow", "-o", "parts.json")
    done(run, "evaluate", "labels", "run", "-m", "map@3", "-o", "whole.json")
    assert values("parts.json") == values("whole.json")
    done(run, "evaluate", "labels", "run-0.parquet", "-m", "map@3", "--state", "all.arrow")
    error = refused(run, "merge", "1.arrow", "all.arrow")
    assert "1.arrow and all.arrow: their labels share queries" in error


def test_a_merged_run_is_recorded_as_that_of_one_process(run: Any, folder: Path) -> None:
    """Its values, semantics and counts; a state does not know from which files it was made."""
    names = states(run, 2, "-m", "map@3", "-m", "ndcg@2")
    recorded = ("--history", "runs", "--tag", "model=a7")
    done(run, "evaluate", "labels", "run", "-m", "map@3", "-m", "ndcg@2", *recorded)
    done(run, "merge", *names, *recorded)
    whole, parts = (pq.read_table(path) for path in sorted(Path("runs").iterdir()))
    unlike = "run", "time", "checksum", "labels_", "predictions_"
    same = [name for name in whole.column_names if not name.startswith(unlike)]
    assert len(same) > 12
    assert parts.select(same).equals(whole.select(same))
    assert parts["labels_paths"].null_count == len(parts)
    assert done(run, "history", "runs", "--format", "csv").count("map@3") >= 1
    gate = ("gate", "labels", "run", "--rule", "map@3 drop <= 1%", "--history", "runs")
    assert run(*gate, "--baseline", "last")[0] == 0
    Path("gone").write_text("")
    assert "the history gone is a file" in refused(run, "merge", *names, "--history", "gone")


def test_what_does_not_fit_together_is_named(run: Any, folder: Path) -> None:
    one, two, three = states(run, 3, "-m", "map@3")
    assert "part 2 of 3 is missing" in refused(run, "merge", one, three)
    assert f"{one} and {one}: both hold part 1 of 3" in refused(run, "merge", two, one, three, one)
    done(run, "evaluate", "labels", "run", "-m", "map@4", "--part", "3/3", "--state", "o.arrow")
    error = refused(run, "merge", two, "o.arrow", one)
    assert f"{two} and o.arrow: states of other metrics do not merge" in error
    other = ("-m", "map@3", "--part", "3/3", "--state", "o.arrow")
    done(run, "evaluate", "labels", "run/0.parquet", *other)
    error = refused(run, "merge", one, "o.arrow")
    assert f"{one} and o.arrow: they are parts of other predictions" in error
    assert "holds no state" in run("merge", "labels/0.parquet")[2]
    Path("x.arrow").write_bytes(Path(one).read_bytes()[:500])
    code, _, error = run("merge", "x.arrow")
    assert (code, "x.arrow" in error) == (3, True)


def turned(path: str, name: str) -> None:
    """Write a file again with the lists of a column in another order, beside the same queries."""
    table = pq.read_table(path)
    place = table.column_names.index(name)
    backwards = pa.array(np.arange(len(table))[::-1])
    pq.write_table(table.set_column(place, name, table[name].take(backwards)), path)


@pytest.mark.parametrize(
    ("more", "path", "column", "named"),
    [
        ((), "run/1.parquet", "items", "parts of other predictions: part 1 of 2 read 280 rows"),
        ((), "labels/0.parquet", "items", "parts of other labels"),
        (("--by", "of.parquet"), "of.parquet", "day", "parts of other slices"),
        (("--train", "train.parquet", "--drop-seen"), "train.parquet", "items", "other catalogue"),
    ],
)
def test_a_file_that_is_written_between_two_parts_is_named(
    more: tuple[str, ...], path: str, column: str, named: str, run: Any, folder: Path
) -> None:
    labels = pq.read_table("labels")
    pq.write_table(labels, "train.parquet")
    days = labels.select(["user_id"]).append_column("day", pa.array(np.arange(280) // 50))
    pq.write_table(days, "of.parquet")
    asked = ("evaluate", "labels", "run", "-m", "map@3", *more)
    for name, part in (("1.arrow", "1/2"), ("2.arrow", "2/2")):
        done(run, *asked, "--part", part, "--state", name)
    done(run, "merge", "1.arrow", "2.arrow")
    turned(path, column)
    done(run, *asked, "--part", "2/2", "--state", "2.arrow")
    error = refused(run, "merge", "1.arrow", "2.arrow")
    assert error.startswith("error: 1.arrow and 2.arrow: ")
    assert named in error
    done(run, *asked, "--part", "1/2", "--state", "1.arrow")
    done(run, "merge", "1.arrow", "2.arrow")


def test_damaged_states_are_refused(run: Any, folder: Path) -> None:
    (name,) = states(run, 1, "-m", "map@3", suffix="parquet")
    table = pq.read_table(name)
    for column in ("queries", "map@3.total", "part.numbers", "part.labels"):
        place = table.column_names.index(column)
        value = table.column(column)[0].as_py()
        other = {int: 7, str: "9"}.get(type(value), [2])
        changed = table.set_column(
            place, column, pa.array([other], table.schema.field(column).type)
        )
        pq.write_table(changed, name)
        error = refused(run, "merge", name)
        assert f"{name}: the row of a state is damaged: its checksum" in error


def test_the_second_pass_is_checked(run: Any, folder: Path) -> None:
    asked = ("-m", "gap", "-m", "map@3")
    names = states(run, 2, *asked)
    assert "gap needs a second pass: write the merged state" in refused(run, "merge", *names)
    again = ("evaluate", "labels", "run", *asked, "--part", "1/2", "--second")
    assert "part 2 of 2 is missing" in refused(run, *again, names[0], "--state", "s.arrow")
    done(run, "merge", *names, "--state", "m.arrow")
    wrong = ("evaluate", "labels", "run", "-m", "gap", "--second", "m.arrow", "--state", "s.arrow")
    assert "of other metrics than this command: gap, map@3 and gap;" in refused(run, *wrong)
    done(run, *again, "m.arrow", "--state", "s-1.arrow")
    assert "second pass of part 2/2 is missing" in refused(run, "merge", "m.arrow", "s-1.arrow")
    error = refused(run, "merge", "m.arrow", "s-1.arrow", "s-1.arrow")
    assert "s-1.arrow and s-1.arrow: both hold the second pass of part 1/2" in error
    assert "none of these files holds a state" in refused(run, "merge", "s-1.arrow")
    done(run, *(one.replace("1/2", "2/2") for one in again), "m.arrow", "--state", "s-2.arrow")
    table = pa.ipc.open_file("s-2.arrow").read_all()
    part = table.column_names.index("part")
    with pa.OSFile("s-3.arrow", "wb") as file:
        changed = table.set_column(part, "part", pa.array(["1/2"]))
        with pa.ipc.new_file(file, changed.schema) as writer:
            writer.write_table(changed)
    assert "s-3.arrow: the row of a state is damaged" in refused(
        run, "merge", "m.arrow", "s-1.arrow", "s-3.arrow"
    )
    done(run, "merge", "m.arrow", "s-1.arrow", "s-2.arrow")
    (name,) = states(run, 1, "-m", "map@3")
    error = refused(run, "merge", name, "s-1.arrow", "s-2.arrow")
    assert "s-1.arrow: it holds a second pass of gap, which the state does not have" in error


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        (("--per-query", "q.parquet"), "leave out --per-query"),
        (("-o", "r.json"), "leave out -o"),
        (("--format", "json"), "leave out --format"),
        (("--report", "r.html"), "leave out --report"),
        (("--plan",), "leave out --plan"),
        (("--history", "h"), "leave out --history"),
    ],
)
def test_a_state_is_the_only_output(
    more: tuple[str, ...], wanted: str, run: Any, folder: Path
) -> None:
    Path("h").mkdir()
    error = refused(run, "evaluate", "labels", "run", "-m", "map", "--state", "s.arrow", *more)
    assert wanted in error


def test_wrong_usage(run: Any, folder: Path) -> None:
    evaluate = ("evaluate", "labels", "run", "-m", "map")
    assert "--part needs --state FILE" in refused(run, *evaluate, "--part", "1/2")
    assert "--second needs --state FILE" in refused(run, *evaluate, "--second", "labels/0.parquet")
    assert "'3/2' is not a part" in refused(run, *evaluate, "--part", "3/2", "--state", "s.arrow")
    assert "s.csv: its suffix has to be one of" in refused(run, *evaluate, "--state", "s.csv")
    two = ("evaluate", "labels", "run", "run/0.parquet", "-m", "map", "--state", "s.arrow")
    assert "the PREDICTIONS of one system" in refused(run, *two)
    states(run, 1, "-m", "map")
    again = ("--second", "state-1.arrow", "--state", "s.arrow")
    assert "no metric of state-1.arrow needs a second pass" in refused(run, *evaluate, *again)
    merge = ("merge", "state-1.arrow", "--state", "m.arrow")
    assert "leave out -o" in refused(run, *merge, "-o", "m.json")
    assert "leave out --format" in refused(run, *merge, "--format", "json")
    Path("h").mkdir()
    assert "leave out --history" in refused(run, *merge, "--history", "h")
    assert "is one of the inputs" in refused(
        run, "merge", "state-1.arrow", "--state", "state-1.arrow"
    )
    assert "no such file" in run("merge", "nothing.arrow")[2].lower()


def test_python_and_the_command_line_write_the_same_state(run: Any, folder: Path) -> None:
    names = states(run, 2, "-m", "map@3")
    rows = [pa.ipc.open_file(name).read_all().to_pylist()[0] for name in names]
    found = [rankmill.parts.State.from_row(row) for row in rows]
    made = [rankmill.parts.evaluate_part("labels", "run", ["map@3"], part=f"{i}/2") for i in (1, 2)]
    for one, other in zip(found, made, strict=True):
        assert seal_of(one.to_row()) == seal_of(other.to_row())


def test_a_file_of_options_gives_parts_too(run: Any, folder: Path) -> None:
    Path("rankmill.toml").write_text(
        'version = 1\nlabels = "labels"\npredictions = "run"\nmetrics = ["map@3"]\n'
    )
    for i in (1, 2):
        done(run, "evaluate", "rankmill.toml", "--part", f"{i}/2", "--state", f"{i}.arrow")
    done(run, "merge", "1.arrow", "2.arrow", "-o", "parts.json")
    done(run, "evaluate", "rankmill.toml", "-o", "whole.json")
    assert values("parts.json") == values("whole.json")
