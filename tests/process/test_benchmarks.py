"""The benchmarks of rivals and of scaling run at a tiny size, and the rivals agree."""

import ast
import functools
import importlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1].parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import broken  # noqa: E402
import broken_inputs  # noqa: E402
import hostile  # noqa: E402
import judge  # noqa: E402
import mutated  # noqa: E402
import peers  # noqa: E402


def run_script(name: str, cache: Path, *arguments: object) -> tuple[str, dict]:
    """Run a benchmark in its own process; return what it printed, and its JSON."""
    found = cache / "found.json"
    drawing = cache / "drawing.svg"
    outputs = ("--json", found, "--svg", drawing)
    finished = subprocess.run(
        [sys.executable, str(BENCHMARKS / name), *map(str, (*arguments, *outputs))],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert ElementTree.parse(drawing).getroot().tag.endswith("svg")
    return finished.stdout, json.loads(found.read_text())


def installed(package: str) -> bool:
    try:
        return bool(metadata.version(package))
    except metadata.PackageNotFoundError:
        return False


@pytest.fixture(scope="module", params=[False, True], ids=["ints", "strings"])
def comparison(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, dict]]:
    """One comparison of all programs: what it printed, and the rows by program."""
    arguments = ["--users=500", "--rounds=1", "--orders=shuffled", *["--strings"] * request.param]
    printed, found = run_script("peers.py", tmp_path_factory.mktemp("cache"), *arguments)
    return printed, {row["rival"]["name"]: row for row in found["rows"]}


@pytest.mark.long
@pytest.mark.parametrize("rival", peers.RIVALS, ids=lambda rival: rival.name)
def test_a_rival_agrees(rival: peers.Rival, comparison: tuple[str, dict[str, dict]]) -> None:
    printed, rows = comparison
    row = rows[rival.name]
    if not installed(rival.package):
        assert row["problem"] == f"{rival.package} is not installed"
        pytest.skip(f"{rival.package} (extra bench) is not installed")
    assert row["problem"] == ""
    assert row["users"] == 500
    assert row["seconds"] > 0
    # The peak is the program's own: Python and pyarrow or duckdb, not this process.
    assert 20e6 < row["peak_bytes"] < 2e9
    assert f"| {rival.label} (" in printed
    if rival is peers.FLOOR:
        assert row["value"] is None
    else:
        assert 0 < row["value"] < 1
        assert row["value"] == pytest.approx(rows["rankmill"]["value"], rel=1e-9)


@pytest.mark.long
def test_a_smaller_sample_is_named_and_compared_with_rankmill_at_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    small = peers.Rival("plain_python", "plain Python", "pyarrow", most=300)
    absent = peers.Rival("absent", "absent", "no-such-package-of-rankmill")
    monkeypatch.setattr(peers, "RIVALS", (peers.OURS, peers.FLOOR, small, absent))
    found = tmp_path / "found.json"
    assert peers.main(["--users=600", "--rounds=1", "--json", str(found)]) == 0
    rows = json.loads(found.read_text())["rows"]
    names = ["rankmill", "read_only", "absent", "rankmill", "plain_python"]
    orders = ["shuffled", "aligned"]
    assert [(row["rival"]["name"], row["users"], row["order"]) for row in rows] == [
        *((name, 600, order) for order in orders for name in names[:3]),
        *((name, 300, order) for order in orders for name in names[3:]),
    ]
    assert rows[2]["problem"] == "no-such-package-of-rankmill is not installed"
    for ours, theirs in ((6, 7), (8, 9)):
        assert rows[theirs]["value"] == pytest.approx(rows[ours]["value"], rel=1e-9)
    assert rows[6]["value"] != rows[8]["value"]
    assert "| plain Python (" in capsys.readouterr().out


def test_scripts_import_what_there_is() -> None:
    """Many scripts are run by hand only, and would not notice a name that moved."""
    scripts = [*BENCHMARKS.rglob("*.py"), *(BENCHMARKS.parent / "scripts").glob("*.py")]
    asked = {
        (node.module, name.name)
        for script in scripts
        for node in ast.walk(ast.parse(script.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rankmill")
        for name in node.names
    }
    assert len(asked) > 30
    for module, name in sorted(asked):
        if not hasattr(importlib.import_module(module), name):
            importlib.import_module(f"{module}.{name}")


@pytest.mark.long
def test_a_history_is_timed(tmp_path: Path) -> None:
    history = [sys.executable, str(BENCHMARKS / "history.py"), "--runs", "3", "--repeat", "1"]
    told = subprocess.run(history, capture_output=True, text=True, check=True).stdout
    assert told.count("3 runs") == 2


@pytest.mark.long
def test_dumps_of_both_orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for order in peers.ORDERS:
        users = pq.read_table(peers.made_dump(400, order) / "predictions.parquet")["user_id"]
        in_order = users.to_pylist() == sorted(users.to_pylist())
        assert in_order == (order == "aligned")


def test_targets_of_shuffled_files() -> None:
    def row(name: str, order: str, seconds: float, peak: int) -> peers.Row:
        rival = next(one for one in peers.RIVALS if one.name == name)
        return peers.Row(rival, 10_000_000, order, "1", [peers.Run(seconds, peak, "")])

    rows = [
        row("rankmill", "shuffled", 1.0, 500),
        row("duckdb_join", "shuffled", 4.0, 1000),
        row("read_only", "shuffled", 0.9, 2000),
        row("rankmill", "aligned", 9.0, 9000),
        row("duckdb_join", "aligned", 1.0, 1000),
    ]
    assert peers.target_table(rows, strings=False)[2:] == [
        ["wall", "10,000,000", "DuckDB, join", "≤ 0.22 ×", "0.25 ×", "no"],
        ["peak RSS", "10,000,000", "DuckDB, join", "≤ 0.38 ×", "0.50 ×", "no"],
        ["wall", "10,000,000", "read only (pyarrow)", "≤ 1 ×", "1.11 ×", "no"],
        ["peak RSS", "10,000,000", "read only (pyarrow)", "≤ 0.4 ×", "0.25 ×", "yes"],
    ]
    assert peers.target_table(rows, strings=True) == []


@pytest.mark.long
def test_scaling_of_shifted_copies(tmp_path: Path) -> None:
    arguments = ["--users=500,1000,3000", "--base=1000", "--rounds=1"]
    printed, found = run_script("scaling.py", tmp_path, *arguments)
    points = found["points"]
    assert [(point["order"], point["users"]) for point in points] == [
        (order, users) for order in peers.ORDERS for users in (500, 1000, 3000)
    ]
    for copies, base in ((2, 1), (5, 4)):
        assert points[copies]["value"] == pytest.approx(points[base]["value"], rel=1e-12)
    assert points[1]["value"] != points[4]["value"]
    assert all(point["seconds"] > 0 and point["peak_bytes"] > 20e6 for point in points)
    assert "| 3,000 (3 copies) |" in printed
    copies = tmp_path / "rankmill" / "bench" / "3-copies-of-1000-shuffled"
    assert copies.with_name("3-copies-of-1000").exists()
    parts = sorted(copies.rglob("*.parquet"))
    assert [part.relative_to(copies).parts[0] for part in parts] == (
        ["labels"] * 3 + ["predictions"] * 3
    )
    users = pq.read_table(copies / "labels", columns=["user_id"])["user_id"]
    assert len(users.unique()) == len(users)
    run_script("scaling.py", tmp_path, "--users=3000", "--base=1000", "--rounds=1", "--clean")
    assert not copies.exists()
    assert not copies.with_name("3-copies-of-1000").exists()


# ------------------------------------------------------------------ broken files, and kills


@pytest.mark.long
def test_broken_files(tmp_path: Path) -> None:
    cases = 200
    script = [
        sys.executable,
        str(BENCHMARKS / "hostile.py"),
        f"--cases={cases}",
        "--keep",
        tmp_path,
    ]
    finished = subprocess.run(script, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    head, _, *rows, told = finished.stdout.splitlines()
    assert told == f"{cases} cases, 0 faults"
    names, *table = [[cell.strip() for cell in row.strip("|").split("|")] for row in (head, *rows)]
    cells = [dict(zip(names, row, strict=True)) for row in table]
    assert {*broken_inputs.FORMATS, hostile.PARQUET} <= {row["kind"] for row in cells}
    assert sum(int(row["cases"]) for row in cells) == cases
    for row in cells:
        assert int(row["read"]) + int(row["refused"]) == int(row["cases"])
        assert int(row["held"]) <= int(row["read"])
        assert row["faults"] == "0"
    for name in ("held", "refused"):
        assert sum(int(row[name]) for row in cells) > cases / 10


ENDS = {
    "signal": (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL: "),
    "hang": (lambda: time.sleep(60), "no end within 0.5 s"),
    "exception": (lambda: 1 // 0, "exit 1: ZeroDivisionError: "),
    "usage": (lambda: ends(2, "error: no such option"), "exit 2: error: no such option"),
    "bug": (lambda: ends(3, "error: x\nThis is a bug"), "exit 3: error: x"),
    "silence": (lambda: ends(3, ""), "refused, but it is not damaged: exit 3: "),
    "refusal": (lambda: ends(3, "error: y"), "refused, but it is not damaged: exit 3: error: y"),
    "value": (lambda: print('{"value": 0.123}'), "WRONG: value 0.123, not "),
}


def ends(code: int, message: str) -> NoReturn:
    os.write(2, message.encode())
    os._exit(code)


@functools.cache
def undamaged() -> broken.Case:
    cases = (broken.made(0, number) for number in itertools.count())
    return next(one for one in cases if (one.damage, one.command) == ("none", "explain"))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
@pytest.mark.parametrize("name", ENDS)
def test_a_bad_end_is_a_failure(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, told = ENDS[name]
    monkeypatch.setattr(hostile, "run_command", lambda arguments: work())
    monkeypatch.setattr(hostile, "SECONDS", 0.5 if name == "hang" else 20)
    end, _ = hostile.outcome(undamaged(), tmp_path)
    assert end.startswith(told)


def test_a_case_is_the_same_each_time() -> None:
    assert broken.made(3, 14) == broken.made(3, 14)
    assert broken.made(3, 14).files != broken.made(3, 15).files


def test_mutated_bytes_are_the_same_each_time() -> None:
    assert mutated.made("TREC", 3, 14) == mutated.made("TREC", 3, 14)
    assert mutated.made("TREC", 3, 14).files != mutated.made("TREC", 3, 15).files


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
def test_mutated_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert mutated.main(["--cases=12"]) == 0
    _, _, *rows = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert [row[0] for row in cells] == [*mutated.FORMS, "state"]
    assert all(row[1] == "12" and row[5] == "0" for row in cells)
    assert all(sum(int(row[place]) for row in cells) for place in (2, 4))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
def test_a_process_that_ends_is_one_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = {1: lambda: os.kill(os.getpid(), signal.SIGKILL), 3: lambda: time.sleep(60)}

    def outcome(number: int, folder: Path, reads: object) -> str:
        ended.get(number, lambda: None)()
        return "held"

    monkeypatch.setattr(mutated, "made", lambda form, seed, number: number)
    monkeypatch.setattr(mutated, "outcome", outcome)
    monkeypatch.setattr(mutated, "SECONDS", 1)
    killed, hung = (f"the process ended: {name}" for name in ("SIGKILL", "SIGALRM"))
    assert list(mutated.ends("CSV", 0, range(5)).values()) == ["held", killed, "held", hung, "held"]


FOOTERS = {
    # The bytes around a number (in Thrift's zigzag 3 is 6), and the same with another number.
    "values": (b"\x15\x00\x16\x06\x16", b"\x15\x00\x16\x04\x16", "3 values, in the footer 2"),
    "rows": (b"\x16\x06\x19", b"\x16\x04\x19", "do not add up to 2"),
}


@pytest.mark.parametrize("name", FOOTERS)
def test_a_file_that_contradicts_itself(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, instead, told = FOOTERS[name]
    path = tmp_path / "file.parquet"
    table = pa.table({"user_id": [1, 2, 3], "item_id": [4, 5, 6]})
    pq.write_table(table, path, compression="none", write_statistics=False)
    judge.print_contradictions(path, {"query": "user_id", "item": "item_id"})
    assert capsys.readouterr().out == ""
    whole = path.read_bytes()
    start = broken.footer_start(whole)
    assert found in whole[start:]
    path.write_bytes(whole[:start] + whole[start:].replace(found, instead, 1))
    judge.print_contradictions(path, {"query": "user_id", "item": "item_id"})
    assert told in capsys.readouterr().out


@pytest.mark.long
def test_kills_leave_nothing_torn_and_nothing_behind() -> None:
    script = [sys.executable, str(BENCHMARKS / "kills.py"), "--rounds=2", "--rows=100_000"]
    finished = subprocess.run(script, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert finished.stdout.count("| SIG") == 3


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc (Linux)")
def test_interrupts_leave_no_thread_and_no_file() -> None:
    script = [sys.executable, str(BENCHMARKS / "interrupts.py"), "--rounds=36"]
    finished = subprocess.run(script, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert len(finished.stdout.splitlines()) == 8


@pytest.mark.long
def test_a_row_of_the_targets_is_measured_alone(tmp_path: Path) -> None:
    command = [sys.executable, BENCHMARKS / "targets.py", "--only", "average_precision, 1 query"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    (row,) = [line for line in ran.stdout.splitlines() if line.startswith("| average_precision")]
    assert re.search(r" ≤ 0.5 ms \| [\d.]+ ms \| (yes|no) \|$", row), ran.stdout + ran.stderr
