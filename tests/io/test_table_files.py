"""Every output holds what its suffix says, and "-" is standard output or is refused."""

import csv
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankmill import evaluate
from rankmill.io.whole_files import write_by_suffix
from rankmill.nightly.history import History
from strategies import some

pytestmark = pytest.mark.small

TABLE = ".parquet .parq .pq .csv .jsonl .ndjson .arrow .feather"
CURVE = f"{TABLE} .json"
RESULT = ".json .csv .md .markdown .tex .txt"
PAGE = ".html .htm"
RULE = ["--rule", "map@2 > 0"]
METRICS = ["-m", "map@1..2", "-m", "auprc"]
# A command, one of its options that name outputs, and the suffixes that this takes.
OPTIONS = [
    (["evaluate", "l.csv", "p.csv", *METRICS], "-o", RESULT),
    (["evaluate", "l.csv", "p.csv", *METRICS], "--per-query", TABLE),
    (["evaluate", "l.csv", "p.csv", *METRICS], "--curve", CURVE),
    (["evaluate", "l.csv", "p.csv", *METRICS], "--plot", ".svg"),
    (["evaluate", "l.csv", "p.csv", "o.csv", *METRICS], "--leaderboard", PAGE),
    (["evaluate", "l.csv", "p.csv", "-m", "map@2"], "--report", PAGE),
    (["compare", "l.csv", "p.csv", "o.csv", "-m", "map@2"], "-o", RESULT),
    (["compare", "l.csv", "p.csv", "o.csv", "-m", "map@2"], "--per-query", TABLE),
    (["compare", "l.csv", "p.csv", "o.csv", "-m", "map@2"], "--plot", ".svg"),
    (["compare", "l.csv", "p.csv", "o.csv", "-m", "map@2"], "--report", PAGE),
    (["gate", "l.csv", "p.csv", *RULE], "-o", RESULT),
    (["gate", "l.csv", "p.csv", *RULE], "--per-query", TABLE),
    (["gate", "l.csv", "p.csv", *RULE], "--json", ".json"),
    (["gate", "l.csv", "p.csv", *RULE], "--junit", ".xml"),
    (["gate", "l.csv", "p.csv", *RULE], "--markdown", ".md .markdown .txt"),
    (["gate", "l.csv", "p.csv", *RULE], "--summary", ".md .markdown .txt"),
    (["gate", "l.csv", "p.csv", *RULE], "--report", PAGE),
    (["report", "l.csv", "p.csv", "-m", "map@2"], "-o", PAGE),
    (["explain", "l.csv", "p.csv", "--query-id", "q1", "-m", "map@2"], "-o", f"{RESULT} {TABLE}"),
    (["explain-evaluators", "l.csv", "p.csv", "-m", "map@2"], "-o", RESULT),
    (["history", "runs"], "-o", RESULT),
    (["history", "runs"], "--plot", ".svg"),
    (["convert", "p.csv"], "", ".parquet"),
]
SUFFIXES = (
    f"{CURVE} {RESULT} {PAGE} .xml .svg .png .pdf .run .trec .tsv .orc .csv.gz .toml .xyz .jsn .1"
).split()
# What the first bytes of a file tell of it.
FIRST = {".parquet": b"PAR1", ".parq": b"PAR1", ".pq": b"PAR1", ".arrow": b"ARROW1"}
FIRST |= {".feather": b"ARROW1", ".svg": b"<svg "}
FIRST |= {".xml": b"<testsuites", ".html": b"<!doctype html", ".htm": b"<!doctype html"}


@pytest.fixture
def folder(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("l.csv").write_text("query_id,item_id\nq1,a\n=q2,b\n")
    Path("p.csv").write_text("query_id,item_id,score\nq1,a,0.9\nq1,b,0.8\n=q2,c,0.7\n=q2,b,0.6\n")
    Path("o.csv").write_text("query_id,item_id,score\nq1,a,0.5\n=q2,c,0.4\n")
    for day in (1, 2, 3):
        History("runs").record(
            evaluate("l.csv", "p.csv", "map@2"), time=datetime(2026, 1, day, tzinfo=UTC)
        )
    return tmp_path


def check_content(path: Path) -> None:
    content, suffix = path.read_bytes(), path.suffix
    if suffix == ".json":
        json.loads(content)
    elif suffix in (".jsonl", ".ndjson"):
        assert all(isinstance(json.loads(line), dict) for line in content.splitlines())
    elif suffix == ".csv":
        title, *rows = csv.reader(content.decode().splitlines())
        assert rows
        assert all(len(row) == len(title) > 1 for row in rows)
    else:
        assert content[:20].lower().startswith(FIRST.get(suffix, b"").lower())
        if suffix not in FIRST:
            content.decode()


@pytest.mark.rows(4)
@pytest.mark.lengthy
@pytest.mark.parametrize(("command", "option", "taken"), some(OPTIONS, 2))
def test_an_output_holds_what_its_suffix_says(run, folder, command, option, taken):
    before = sorted(os.listdir())
    for suffix in dict.fromkeys(SUFFIXES):
        words = [*command, *filter(None, [option]), f"out{suffix}"]
        code, _, err = run(*words)
        if suffix in taken.split():
            assert (suffix, code, err.count("error")) == (suffix, 0, 0)
            check_content(Path(f"out{suffix}"))
            os.unlink(f"out{suffix}")
        else:
            assert (suffix, code) == (suffix, 2)
            usual = {one for one in taken.split() if one not in (".parq", ".pq", ".ndjson")}
            assert [one for one in sorted(usual) if one not in err] == []
        assert sorted(os.listdir()) == before


@pytest.mark.parametrize(("command", "option", "taken"), OPTIONS)
def test_a_hyphen_is_standard_output_or_refused(run, folder, command, option, taken):
    before = sorted(os.listdir())
    code, out, err = run(*command, *filter(None, [option]), "-")
    if option in ("-o", "--summary"):
        assert (code, err.count("error")) == (0, 0)
        assert out
    else:
        assert (code, out) == (2, "")
        assert err.startswith("error: ")
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize(
    ("option", "path", "wanted"),
    [
        ("--per-query", "v.csv", "expected a name that ends in .parquet"),
        ("--per-query", "v.xyz", "expected a name that ends in .parquet"),
        ("--per-query", "-", "and not -"),
        ("-o", "v.xyz", "expected a name that ends in .json, .csv"),
    ],
)
def test_spark_says_which_names_it_takes(run, folder, option, path, wanted):
    """It says so before Spark is looked for."""
    before = sorted(os.listdir())
    code, out, err = run("spark", "evaluate", "l.csv", "p.csv", "-m", "map@2", option, path)
    assert (code, out) == (2, "")
    assert wanted in err
    assert sorted(os.listdir()) == before


def test_a_history_is_not_standard_output(run, folder):
    before = sorted(os.listdir())
    code, out, err = run("evaluate", "l.csv", "p.csv", "-m", "map@2", "--history", "-")
    assert (code, out) == (2, "")
    assert "a history is a folder" in err
    assert sorted(os.listdir()) == before


def test_the_json_of_a_gate_is_printed_where_the_result_is_not(run, folder):
    gate = ["gate", "l.csv", "p.csv", *RULE]
    code, out, _ = run(*gate, "--json", "-", "-o", "result.md")
    assert code == 0
    assert json.loads(out)["word"] == "held"
    code, out, err = run(*gate, "--json", "-")
    assert (code, out) == (2, "")
    assert "both for standard output" in err


def test_a_suffix_that_says_nothing_is_refused_before_anything_is_read(run, tmp_path):
    for option, name in (("-o", "result.xyz"), ("--report", "page.xyz"), ("-o", "run.2026-05-01")):
        code, _, err = run("evaluate", "none", "none", "-m", "map@2", option, str(tmp_path / name))
        assert (name, code) == (name, 2)
        assert "the suffix sets the format; expected a name that ends in ." in err


def test_a_format_that_is_asked_for_may_have_any_suffix(run, folder):
    evaluate = ["evaluate", "l.csv", "p.csv", "-m", "map@2"]
    assert run(*evaluate, "--format", "json", "-o", "result.xyz")[0] == 0
    assert json.loads(Path("result.xyz").read_text())["metrics"] == {"map@2": 0.75}


def test_the_file_of_a_step_is_called_as_its_server_likes(run, folder, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "step.tmp")
    assert run("gate", "l.csv", "p.csv", *RULE, "--markdown", "-")[0] == 0
    assert "map@2" in Path("step.tmp").read_text()


def test_a_name_without_a_suffix_is_text_but_no_table(run, folder):
    assert run("gate", "l.csv", "p.csv", *RULE, "--json", "verdict", "--markdown", "step")[0] == 0
    assert json.loads(Path("verdict").read_text())["word"] == "held"
    code, _, err = run("evaluate", "l.csv", "p.csv", "-m", "map@2", "--per-query", "values")
    assert code == 2
    assert "expected a name that ends in .parquet, .csv, .jsonl, .arrow or .feather" in err
    assert not Path("values").exists()


def test_a_table_is_the_same_in_every_format(tmp_path):
    ids = ["q1", "=q2", "-3", None]
    table = pa.table({"query": ids, "map": [0.1 + 0.2, 1 / 3, None, 5e-324]})
    found = {}
    for name in ("a.parquet", "a.csv", "a.jsonl", "a.arrow", "a.feather"):
        with open(tmp_path / name, "wb") as file:
            write_by_suffix(file, table, name)
        found[name] = tmp_path / name
    assert pq.read_table(found["a.parquet"]) == table
    for name in ("a.arrow", "a.feather"):
        assert pa.ipc.open_file(found[name]).read_all() == table
    rows = [json.loads(line) for line in found["a.jsonl"].read_text().splitlines()]
    assert rows == table.to_pylist()
    with open(found["a.csv"], newline="") as file:
        cells = list(csv.reader(file))
    assert cells[0] == ["query", "map"]
    assert [one for one, _ in cells[1:]] == ["q1", "=q2", "-3", ""]
    assert [float(one) if one else None for _, one in cells[1:]] == table["map"].to_pylist()


def test_ids_of_bytes_are_text_in_text(tmp_path):
    table = pa.table({"query": pa.array([b"q1", b"\xff"]), "map": [0.5, 1.0]})
    for name in ("a.csv", "a.jsonl"):
        with open(tmp_path / name, "wb") as file:
            write_by_suffix(file, table, name)
    assert (tmp_path / "a.csv").read_text() == "query,map\nq1,0.5\n\\xff,1.0\n"
    assert json.loads((tmp_path / "a.jsonl").read_text().splitlines()[0]) == {
        "query": "q1",
        "map": 0.5,
    }
