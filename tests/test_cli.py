"""The command line, in this process where that suffices and in its own where it does not."""

import csv
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankmill import audit
from rankmill.cli import COMMANDS
from rankmill.cli.render import Progress, format_for, markdown, render
from rankmill.metrics import DEFAULT_METRICS, REGISTRY
from rankmill.result import Result

MAP, FIRST_HIT, GAP = 4 / 9, 0.5, 0.5
"""What the files of `dump` score at map@3, first_hit and gap; worked out by hand."""


@pytest.fixture
def run(run_cli):
    """Run a command line in this process; return exit code, standard output, standard error."""

    def call(*arguments) -> tuple[int, str, str]:
        outcome = run_cli(*arguments)
        return outcome.exit_code, outcome.stdout, outcome.stderr

    return call


@pytest.fixture
def dump(tmp_path) -> tuple[Path, Path]:
    """Write four users: hits at ranks 1 and 3, a hit at rank 2, no prediction, no label."""
    labels, predictions = tmp_path / "labels.parquet", tmp_path / "predictions.parquet"
    ids = pa.array([3, 1, 2], pa.uint16())
    pq.write_table(pa.table({"user_id": ids, "item_id": [[30], [10, 11], [20]]}), labels)
    pq.write_table(
        pa.table(
            {
                "user_id": pa.array([1, 2, 4], pa.uint16()),
                "item_id": [[10, 99, 11], [99, 20], [1]],
                "score": [[0.9, 0.8, 0.7], [0.6, 0.5], [0.95]],
            }
        ),
        predictions,
    )
    return labels, predictions


def process(*arguments, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "rankmill", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def made() -> Result:
    """Return a result with every feature that a rendering has to show."""
    return Result(
        metrics={"map@12": 0.1 + 0.2, "gap": 0.0212},
        standard_errors={"map@12": 0.00123456789, "gap": None},
        bounds={"gap": (0.0211, 0.0213)},
        queries=1_200_000,
        audit=audit.empty() | {"queries_labelled": 1_200_000, "tied_confidences": 4321},
        inputs={
            "labels": {
                "source": "[red]labels.parquet",
                "shape": "wide",
                "rows": 1_200_000,
                "columns": {"query": "user_id", "item": "items"},
            },
            "predictions": {"source": "p" * 100, "shape": "long", "rows": 7, "columns": {}},
        },
        seconds=0.934,
    )


# Start, help and the shape of errors


def test_help_is_quick_and_light():
    code = (
        "import sys, time; start = time.perf_counter()\n"
        "from rankmill.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numba', 'numpy', 'pyarrow', 'rich'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.splitlines()[-1] == "[]"
    assert all(name in answer.stdout for name in COMMANDS)

    def seconds() -> float:
        start = time.perf_counter()
        with process("--help") as help:
            help.communicate()
        assert help.returncode == 0
        return time.perf_counter() - start

    assert min(seconds() for _ in range(7)) < 0.2


def test_every_command_has_help_and_a_module(run):
    for name in COMMANDS:
        code, out, err = run(name, "--help")
        assert (code, err) == (0, "")
        assert f"Usage: rankmill {name}" in out


def test_help_of_evaluate_tells_shapes_examples_and_exit_codes(run):
    _, out, _ = run("evaluate", "-h")
    for text in ("wide", "long", "user_id", "rankmill evaluate labels.parquet", "130", "--gains"):
        assert text in out
    assert max(map(len, out.splitlines())) <= 80


def test_help_of_evaluate_names_only_aliases_that_are_known(run):
    from rankmill.sources.columns import ALIASES, ITEM_ALIASES

    known = {name for names in (*ALIASES.values(), *ITEM_ALIASES.values()) for name in names}
    _, out, _ = run("evaluate", "--help")
    table = out[out.index("  query ids ") : out.index("  Examples:")]
    titles = {"query", "ids", "items", "confidences", "ranks", "gains", "or", "and"}
    named = set(re.findall(r"\w+", table)) - titles
    assert len(named) > 15
    assert named <= known


def test_version(run):
    import rankmill

    assert run("--version") == (0, f"rankmill {rankmill.__version__}\n", "")


def test_nothing_asked_for_is_help_and_a_usage_error(run):
    code, out, err = run()
    assert (code, out) == (2, "")
    assert "evaluate" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evalute"], "no command 'evalute', only: evaluate, metrics"),
        (["--nonsense"], "--nonsense"),
        (["evaluate", "a"], "PREDICTIONS"),
        (["evaluate", "a", "b", "-m", ""], "metric"),
        (["evaluate", "a", "b", "-m", "mapp@12"], "map"),
        (["evaluate", "a", "b", "-m", "map@0"], "map@0"),
        (["evaluate", "a", "b", "-m", "precision"], "precision"),
        (["evaluate", "a", "b", "-m", "map", "--threads", "0"], "--threads"),
        (["evaluate", "a", "b", "-m", "map", "--gains", "cubic"], "cubic"),
        (["evaluate", "a", "b", "-m", "map", "--format", "xml"], "xml"),
        (["evaluate", "a,,b", "c", "-m", "map"], "LABELS 'a,,b' has an empty name"),
        (["evaluate", "a", "b,", "-m", "map"], "PREDICTIONS 'b,' has an empty name"),
        (["evaluate", "a", "b", "-m", "map", "-o", "no/where"], "there is no folder"),
        (["evaluate", "a", "b", "-m", "map", "--per-query", "no/where"], "there is no folder"),
        (["evaluate", "a", "b", "-m", "map", "-o", "x", "--per-query", "./x"], "two names"),
        (["metrics", "--format", "xml"], "xml"),
    ],
)
def test_wrong_usage_exits_2_before_reading_anything(
    run, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)  # the inputs do not exist: reading them would exit with 3
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert os.listdir(tmp_path) == []


@pytest.fixture
def failing(tmp_path, monkeypatch):
    """Add a command that raises what it is told to: `rankmill fail 'ValueError(1)'`."""
    (tmp_path / "failing_command.py").write_text(
        "import click\n"
        "from rankmill.errors import InputError, RankmillError, UsageError\n"
        "@click.command()\n"
        "@click.argument('error')\n"
        "def command(error):\n"
        "    raise eval(error)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(COMMANDS, "fail", ("failing_command", "Fail."))
    monkeypatch.delenv("RANKMILL_DEBUG", raising=False)


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ("InputError('a.parquet: no\\n  column x')", 3, "error: a.parquet: no\n  column x\n"),
        ("UsageError('k is 0')", 2, "error: k is 0\n"),
        ("RankmillError('other')", 2, "error: other\n"),
        ("KeyboardInterrupt()", 130, "error: interrupted; nothing written\n"),
        ("BrokenPipeError()", 0, ""),
    ],
)
def test_exit_codes(run, error, code, message):
    assert run("fail", error) == (code, "", message)


@pytest.mark.usefixtures("failing")
def test_no_memory(run):
    code, _, err = run("fail", "MemoryError('Unable to allocate 3 GiB')")
    assert code == 1
    assert err.startswith("error: not enough memory for this input (Unable to allocate 3 GiB)")


@pytest.mark.usefixtures("failing")
def test_a_bug_shows_a_traceback_only_when_asked_for(run, monkeypatch):
    code, _, err = run("fail", "ZeroDivisionError('oh')")
    assert code == 1
    assert err.startswith("error: ")
    assert "ZeroDivisionError: oh" in err
    assert "report" in err
    assert "Traceback" not in err
    monkeypatch.setenv("RANKMILL_DEBUG", "1")
    code, _, err = run("fail", "ZeroDivisionError('oh')")
    assert code == 1
    assert "Traceback" in err
    assert "failing_command.py" in err


# rankmill metrics


def test_metrics_lists_the_registry_in_every_format(run):
    code, out, err = run("metrics", "--format", "json")
    assert (code, err) == (0, "")
    listed = json.loads(out)
    assert [entry["name"] for entry in listed] == list(REGISTRY)
    for entry, spec in zip(listed, REGISTRY.values(), strict=True):
        assert entry["aliases"] == list(spec.aliases)
        assert entry["definition"] == spec.definition
        assert all(entry[key] for key in ("cutoff", "range", "source"))

    rows = list(csv.DictReader(run("metrics", "--format", "csv")[1].splitlines()))
    assert [row["definition"] for row in rows] == [entry["definition"] for entry in listed]
    assert [row["aliases"].split() for row in rows] == [entry["aliases"] for entry in listed]

    assert len(run("metrics", "--format", "markdown")[1].splitlines()) == len(REGISTRY) + 2

    _, table, _ = run("metrics")
    assert max(map(len, table.splitlines())) <= 80
    words = " ".join(table.split())
    for spec in REGISTRY.values():
        for text in (spec.definition, str(spec.range), spec.source, *spec.aliases):
            assert " ".join(text.split()) in words


def test_metrics_prints_where_the_encoding_lacks_the_signs():
    with process("metrics", env=os.environ | {"PYTHONIOENCODING": "ascii"}) as metrics:
        out, err = metrics.communicate()
    assert (metrics.returncode, err) == (0, "")
    assert out.isascii()
    assert "\\xfctze" in out  # Schütze, of two sources


def test_a_closed_pipe_ends_it_quietly():
    with process("metrics") as metrics:
        metrics.stdout.close()
        assert metrics.stderr.read() == ""
    assert metrics.returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_an_error():
    with open("/dev/full", "w") as full:
        answer = subprocess.run(
            [sys.executable, "-m", "rankmill", "metrics"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert answer.stderr.startswith("error: cannot write to standard output: No space left")
    assert answer.stderr.count("\n") == 1
    assert answer.returncode == 2


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


def test_csv_keeps_every_digit():
    assert render(made(), "csv").splitlines() == [
        "metric,value,standard_error,queries,worst,best",
        "map@12,0.30000000000000004,0.00123456789,1200000,,",
        "gap,0.0212,,1200000,0.0211,0.0213",
    ]


def test_markdown():
    assert render(made(), "markdown").splitlines() == [
        "| metric | value | standard error | queries | worst..best |",
        "| --- | ---: | ---: | ---: | --- |",
        "| map@12 | 0.3000000 | 0.00123 | 1,200,000 |  |",
        "| gap | 0.0212000 |  | 1,200,000 | 0.0211000..0.0213000 |",
    ]
    assert markdown(["a"], [["x|y"]]) == "| a |\n| --- |\n| x\\|y |\n"


def test_json_is_one_object():
    text = render(made(), "json")
    assert json.loads(text)["metrics"]["map@12"] == 0.1 + 0.2
    assert text.endswith("}\n")


def test_the_table_for_pipes_is_plain_and_whole():
    assert render(made(), "table").splitlines() == [
        "metric      value  standard error    queries  worst..best",
        "------  ---------  --------------  ---------  --------------------",
        "map@12  0.3000000         0.00123  1,200,000",
        "gap     0.0212000                  1,200,000  0.0211000..0.0213000",
        "",
        "queries_labelled   1,200,000  queries with at least one label",
        "queries_predicted          0  queries with at least one prediction",
        "queries_in_both            0  queries with labels and predictions",
        f"tied_confidences       4,321  {audit.FIELDS['tied_confidences']}",
        "",
        "labels       [red]labels.parquet (wide; 1,200,000 rows; query = user_id, item = items)",
        f"predictions  {'p' * 100} (long; 7 rows)",
        "seconds      0.93",
    ]


def on_a_terminal(code: str, columns: int) -> list[str]:
    """Run Python code on a pseudo-terminal; return the lines it shows, without the colours."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {key: text for key, text in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    command = [sys.executable, "-c", f"from test_cli import *\n{code}"]
    with subprocess.Popen(
        command,
        stdout=theirs,
        stderr=theirs,
        stdin=theirs,
        env=env | {"TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)},
    ):
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # how Linux tells that the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode()).splitlines()


@pytest.mark.parametrize("columns", [80, 120])
def test_the_drawn_table_fits_and_says_everything(columns):
    lines = on_a_terminal("from rankmill.cli.render import draw; draw(made())", columns)
    assert max(map(len, lines)) <= columns
    text = "\n".join(lines)
    for word in ("0.3000000", "0.00123", "0.0211000..0.0213000", "4,321", "[red]labels.parquet"):
        assert word in text
    assert text.count("p") >= 100
    assert "…" not in text


def test_progress_shows_on_a_terminal_after_a_while():
    slow = "with Progress(0.05) as step:\n    step(1, 9)\n    time.sleep(1)\n    step(2345, 9000)"
    assert "2,345 rows" in "".join(on_a_terminal(f"{slow}\n    time.sleep(0.3)", 80))
    assert on_a_terminal("with Progress() as step:\n    step(1, 2)", 80) == []


def test_progress_is_silent_without_a_terminal(capfd):
    with Progress(delay=0.01) as step:
        time.sleep(0.2)
        step(1, 2)
    assert capfd.readouterr() == ("", "")


# rankmill evaluate, the whole way


@pytest.mark.small
def test_json_output(run, dump):
    code, out, err = run(
        "evaluate", *dump, "-m", "map@3", "-m", "mrr", "-m", "gap", "--format", "json"
    )
    assert (code, err) == (0, "")
    content = json.loads(out)
    assert list(content) == [
        "rankmill",
        "queries",
        "metrics",
        "standard_errors",
        "bounds",
        "audit",
        "inputs",
        "seconds",
    ]
    assert content["queries"] == 3
    assert list(content["metrics"]) == ["map@3", "mrr", "gap"]
    assert content["metrics"] == pytest.approx({"map@3": MAP, "mrr": FIRST_HIT, "gap": GAP})
    error = statistics.stdev([5 / 6, 1 / 2, 0]) / 3**0.5
    assert content["standard_errors"]["map@3"] == pytest.approx(error, rel=1e-12)
    assert content["standard_errors"]["gap"] is None
    assert content["bounds"]["gap"] == pytest.approx({"worst": GAP, "best": GAP})
    assert list(content["audit"]) == list(audit.FIELDS)
    expected = {
        "queries_labelled": 3,
        "queries_predicted": 3,
        "queries_in_both": 2,
        "queries_only_labelled": 1,
        "queries_only_predicted": 1,
        "short_lists": 1,
    }
    assert content["audit"] == audit.empty() | expected
    for side, rows in (("labels", 3), ("predictions", 3)):
        assert content["inputs"][side]["rows"] == rows
        assert content["inputs"][side]["shape"] == "wide"
        assert content["inputs"][side]["columns"]["query"] == "user_id"
    assert content["seconds"] > 0


@pytest.mark.small
def test_the_default_is_a_table(run, dump):
    code, out, err = run("evaluate", *dump, "-m", "map@3", "-m", "gap")
    assert (code, err) == (0, "")
    assert out.startswith("metric     value  standard error  queries  worst..best\n")
    assert "\nmap@3   0.444444" in out
    assert audit.FIELDS["queries_only_predicted"] in out
    assert "\x1b" not in out


@pytest.mark.small
def test_without_metrics_it_computes_the_usual_ones(run, dump):
    code, out, err = run("evaluate", *dump, "--format", "json")
    assert (code, err) == (0, "")
    assert list(json.loads(out)["metrics"]) == list(DEFAULT_METRICS)


@pytest.mark.small
def test_output_file_takes_its_format_from_the_suffix(run, dump, tmp_path):
    written = tmp_path / "out.csv"
    assert run("evaluate", *dump, "-m", "map@3", "-o", written) == (0, "", "")
    (row,) = csv.DictReader(written.read_text().splitlines())
    assert float(row["value"]) == pytest.approx(MAP, rel=1e-12)
    assert (row["metric"], row["queries"]) == ("map@3", "3")
    code, out, _ = run("evaluate", *dump, "-m", "map@3", "--format", "csv", "-o", "-")
    assert (code, out) == (0, written.read_text())


@pytest.mark.small
def test_per_query_file_keeps_the_type_and_the_order_of_the_ids(run, dump, tmp_path):
    written = tmp_path / "users.parquet"
    code, out, _ = run(
        "evaluate", *dump, "-m", "map@3", "-m", "gap", "-m", "mrr", "--per-query", written
    )
    assert code == 0
    assert "map@3" in out
    table = pq.read_table(written)
    assert table.schema.names == ["user_id", "map@3", "mrr"]
    assert table.schema.types == [pa.uint16(), pa.float64(), pa.float64()]
    assert table["user_id"].to_pylist() == [3, 1, 2]
    assert table["map@3"].to_pylist() == pytest.approx([0, 5 / 6, 1 / 2], rel=1e-15)
    assert table["mrr"].to_pylist() == [0, 1, 0.5]


@pytest.mark.small
def test_bad_input_exits_3_and_writes_nothing(run, dump, tmp_path):
    labels, predictions = dump
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(predictions.read_bytes()[:-20])
    before = sorted(os.listdir(tmp_path))
    outputs = ["-o", tmp_path / "o.json", "--per-query", tmp_path / "q.parquet"]
    for wrong in (broken, tmp_path / "missing.parquet", f"{predictions},{tmp_path}/missing"):
        code, out, err = run("evaluate", labels, wrong, "-m", "map", *outputs)
        assert (code, out) == (3, "")
        assert err.startswith("error: ")
        assert "broken" in err or "missing" in err
        assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.small
def test_an_input_is_not_overwritten(run, dump):
    labels, predictions = dump
    before = predictions.read_bytes()
    for option in ("-o", "--per-query"):
        code, _, err = run("evaluate", labels, predictions, "-m", "map", option, predictions)
        assert code == 2
        assert "is one of the inputs" in err
    assert predictions.read_bytes() == before


@pytest.mark.small
def test_several_files_and_a_comma_in_a_name(run, dump, tmp_path):
    labels, predictions = dump
    table = pq.read_table(predictions)
    pq.write_table(table[:1], tmp_path / "one.parquet")
    pq.write_table(table[1:], tmp_path / "two.parquet")
    pq.write_table(table, tmp_path / "one.parquet,two.parquet")
    for source in (
        f"{tmp_path}/one.parquet,{tmp_path}/two.parquet",
        tmp_path / "one.parquet,two.parquet",
        f"{tmp_path}/[ot][nw][eo].parquet",
    ):
        code, out, err = run("evaluate", labels, source, "-m", "map@3", "--format", "json")
        assert (code, err) == (0, "")
        assert json.loads(out)["metrics"]["map@3"] == pytest.approx(MAP, rel=1e-12)


@pytest.mark.small
def test_columns_of_any_name(run, dump, tmp_path):
    labels, predictions = tmp_path / "l.parquet", tmp_path / "p.parquet"
    pq.write_table(pq.read_table(dump[0]).rename_columns(["who", "what"]), labels)
    pq.write_table(pq.read_table(dump[1]).rename_columns(["u", "i", "s"]), predictions)
    names = ["--query", "u", "--item", "i", "--score", "s"]
    names += ["--label-query", "who", "--label-item", "what"]
    code, out, err = run("evaluate", labels, predictions, "-m", "gap", *names, "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["metrics"]["gap"] == pytest.approx(GAP, rel=1e-12)


@pytest.mark.small
def test_gains_reach_the_evaluation(run, tmp_path):
    labels, predictions = tmp_path / "l.parquet", tmp_path / "p.parquet"
    pq.write_table(pa.table({"user_id": [1, 1], "item_id": [1, 2], "stars": [1.0, 3.0]}), labels)
    pq.write_table(pa.table({"user_id": [1], "item_id": [[2]]}), predictions)
    for gains, value in (("linear", 3), ("exp", 7)):
        asked = ["-m", "dcg@1", "--gain", "stars", "--gains", gains, "--threads", "1"]
        code, out, err = run("evaluate", labels, predictions, *asked, "--format", "json")
        assert (code, err) == (0, "")
        assert json.loads(out)["metrics"]["dcg@1"] == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("delay", [1.0, 2.5])
def test_ctrl_c_ends_it_at_once_and_leaves_nothing(dump, tmp_path, delay):
    outputs = [tmp_path / "out.json", tmp_path / "users.parquet"]
    before = sorted(os.listdir(tmp_path))
    cache = tmp_path.parent / f"{tmp_path.name}-cache"
    # Without a cache of compiled code even this small input takes seconds, so that there is a run
    # to interrupt; a shell may have told its background jobs, us included, to ignore SIGINT.
    metrics = [word for name in ("map@3", "ndcg@3", "f1@2", "gap") for word in ("-m", name)]
    with process(
        *("evaluate", *dump, *metrics, "-o", outputs[0], "--per-query", outputs[1]),
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as evaluation:
        time.sleep(delay)
        assert evaluation.poll() is None, "the run is too short to be interrupted"
        evaluation.send_signal(signal.SIGINT)
        start = time.perf_counter()
        out, err = evaluation.communicate(timeout=30)
        seconds = time.perf_counter() - start
    assert (evaluation.returncode, out) == (130, "")
    assert err == "error: interrupted; nothing written\n"
    assert seconds < 3
    assert sorted(os.listdir(tmp_path)) == before
