"""How results look: as text, drawn on a terminal, and while they are being computed."""

import re
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from cli_runs import on_a_terminal, process
from rankmill.cli import COMMANDS
from rankmill.cli.draw import Progress
from rankmill.cli.run_outputs import format_for

# Rendering


@pytest.mark.parametrize(
    ("chosen", "output", "format"),
    [
        (None, None, "table"),
        (None, "a.json", "json"),
        (None, "a.CSV", "csv"),
        (None, "dir.json/a.md", "markdown"),
        (None, "a.txt", "table"),
        (None, ".json", "table"),
        ("csv", "a.json", "csv"),
        ("table", "a.json", "table"),
    ],
)
def test_the_format_is_as_chosen_or_as_the_suffix_says(chosen, output, format):
    assert format_for(chosen, output) == format


@pytest.mark.parametrize("columns", [80, 120])
def test_the_drawn_table_fits_and_says_everything(columns):
    lines = on_a_terminal("from shown import draw; draw(made())", columns)
    assert max(map(len, lines)) <= columns
    text = "\n".join(lines)
    for word in ("0.3000000", "0.00123", "0.0211000..0.0213000", "4,321", "[red]labels.parquet"):
        assert word in text
    assert text.count("p") >= 100
    assert "…" not in text


@pytest.mark.long
def test_progress_shows_on_a_terminal_after_a_while():
    code = (
        "with Progress(0.05) as step:\n"
        "    time.sleep(0.8)\n"
        "    step(0, 9000)\n"
        "    time.sleep(0.5)\n"
        "    step(2345, 9000)\n"
        "    time.sleep(0.3)"
    )
    imports = "from rankmill.cli.draw import Progress"
    shown = "".join(on_a_terminal(f"{imports}\n{code}", 80))
    assert "reading labels" in shown
    found = re.search(r"2,345 rows, ([\d,]+) rows/s, 0:0(\d) left", shown)
    rate = int(found[1].replace(",", ""))
    assert 1000 < rate < 4700
    assert int(found[2]) == round((9000 - 2345) / rate)
    quick = "with Progress() as step:\n    step(1, 2)"
    assert on_a_terminal(f"{imports}\n{quick}", 80) == []


def test_help_says_what_a_command_does_without_docstrings():
    command = [sys.executable, "-OO", "-m", "rankmill", "convert", "--help"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert COMMANDS["convert"][1] in out


@pytest.mark.long
def test_quiet_shows_no_progress_and_no_warnings_but_errors(tmp_path, run_cli):
    for name in COMMANDS:
        assert "--quiet" in run_cli(name, "--help-all").stdout
    code = (
        "from rankmill.cli import main, process\n"
        "from rankmill.cli.draw import Progress\n"
        "process.quiet = {}\n"
        "with Progress(0.05) as step:\n"
        "    time.sleep(0.4)\n"
    )
    assert on_a_terminal(code.format(True), 80) == []
    assert "reading labels" in "".join(on_a_terminal(code.format(False), 80))
    (tmp_path / "l.csv").write_text("query,item,stars\n1,2,3\n")
    (tmp_path / "p.csv").write_text("query,item\n1,2\n")
    (tmp_path / "by.csv").write_text("query,kind\n9,a\n")
    for words, warned in ((["--quiet"], False), ([], True)):
        by = "--by", tmp_path / "by.csv"
        with process("evaluate", tmp_path / "l.csv", tmp_path / "p.csv", *by, *words) as done:
            out, told = done.communicate()
        assert "'stars' is not read" in out  # a note, which is a part of the result
        assert ("among the labels" in told) == bool(told) == warned
        with process("evaluate", tmp_path / "none.csv", tmp_path / "p.csv", *words) as done:
            assert "none.csv" in done.communicate()[1]
        for rule, fails in (("queries > 0", False), ("queries > 5", True)):
            with process(
                "gate", tmp_path / "l.csv", tmp_path / "p.csv", "--rule", rule, *words
            ) as done:
                assert bool(done.communicate()[1]) == (warned or fails)
    for line, warned in (("quiet = true", False), ("quiet = false", True), ("", True)):
        (tmp_path / "rankmill.toml").write_text(
            f'labels = "l.csv"\npredictions = "p.csv"\nmetrics = ["map"]\nby = "by.csv"\n{line}\n'
        )
        with process("evaluate", tmp_path / "rankmill.toml") as done:
            out, told = done.communicate()
        assert out
        assert ("among the labels" in told) == bool(told) == warned


def test_progress_is_silent_without_a_terminal(capfd, monkeypatch):
    for _ in range(2):
        with Progress(delay=0.01) as step:
            time.sleep(0.2)
            step(1, 2)
        assert capfd.readouterr() == ("", "")
        monkeypatch.setattr("sys.stderr", None)


# Several systems


@pytest.mark.parametrize("columns", [60, 120])
def test_drawn_systems_fit_and_say_everything(columns):
    code = "from shown import draw_all\ndraw_all({f'system-{i}': made() for i in range(6)})"
    lines = on_a_terminal(code, columns)
    assert max(map(len, lines)) <= columns
    text = "\n".join(lines)
    assert text.count("0.3000000") == text.count("4,321") == 6
    assert all(f"system-{i} " in text for i in range(6))
    assert "…" not in text


def test_garbage_is_looked_for_once_the_first_rows_are_done():
    code = (
        "import gc; gc.disable()\n"
        "from rankmill.cli.draw import Progress\n"
        "with Progress() as progress:\n"
        "    assert not gc.isenabled()\n"
        "    progress(1, 2)\n"
        "    assert gc.isenabled() and gc.get_freeze_count() > 1000\n"
        "    frozen = gc.get_freeze_count()\n"
        "    progress(2, 2)\n"
        "    assert gc.get_freeze_count() == frozen\n"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr


def test_a_log_of_a_ci_system_gets_no_commands_on_request(tmp_path, run, monkeypatch):
    """GitHub Actions obeys a line that begins with ::, and Azure Pipelines ##[ and ##vso[."""
    labels = pa.table({"query": [1, 2], "items": [[1], [2]], "kind": ["::error::x", "##[error]y"]})
    pq.write_table(labels, tmp_path / "l.parquet")
    asked = "evaluate", tmp_path / "l.parquet", tmp_path / "l.parquet", "-m", "map", "--by", "kind"
    assert "\n::error::x " in run(*asked)[1]
    monkeypatch.setenv("RANKMILL_CI", "1")
    shown = run(*asked)[1]
    assert "\n\\::error::x " in shown
    assert "\n##\\[error]y " in shown


def test_a_traceback_of_a_wrong_argument_ends_at_the_public_function(monkeypatch):
    labels = {1: [1]}
    for debug, deep in (("", False), ("1", True)):
        monkeypatch.setenv("RANKMILL_DEBUG", debug)
        with pytest.raises(rankmill.UsageError) as caught:
            rankmill.evaluate(labels, labels, "nonsense")
        assert (len(caught.traceback) > 4) == deep


def test_a_submission_with_other_columns_than_the_solution_is_noted(tmp_path, run):
    (tmp_path / "l.csv").write_text("id,prediction\nu,a b\nv,c\n")
    for header, noted in (("id,prediction", False), ("id,predictions", True)):
        (tmp_path / "p.csv").write_text(f"{header}\nu,b a\nv,c d\n")
        shown = run("evaluate", tmp_path / "l.csv", tmp_path / "p.csv", "-m", "map@5")[1]
        assert ("a competition may reject the predictions" in shown) == noted
