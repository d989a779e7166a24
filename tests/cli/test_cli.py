"""The command line: start, help, usage and errors, and the list of metrics."""

import csv
import inspect
import json
import os
import re
import shlex
import subprocess
import sys

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.shell_completion import ShellComplete

import rankmill
from cli_runs import process, seconds_of
from rankmill.cli import COMMANDS, main
from rankmill.cli.run_outputs import check_outputs
from rankmill.config.config import parse_size
from rankmill.config.face import system_names
from rankmill.errors import UsageError
from rankmill.metrics.registry import REGISTRY
from rankmill.package import GONE
from rankmill.show.tables import size_text

# Start, help and the shape of errors


def test_help_is_quick_and_light():
    code = (
        "import sys\n"
        "from rankmill.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numba', 'numpy', 'pyarrow', 'rich'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.splitlines()[-1] == "[]"
    assert all(name in answer.stdout for name in COMMANDS)

    # 34 ms beside 9 on a fast machine, where numpy takes 63. A limit in seconds would be one on the
    # machine, and wall time depends on what else runs.
    bare, whole = [], []
    for _ in range(7):
        bare.append(seconds_of("-c", "pass")[1])
        whole.append(seconds_of("-m", "rankmill", "--help")[1])
    assert min(whole) < 7 * min(bare)


@pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="kernels as plain Python import more"
)
def test_a_small_run_imports_little(tmp_path):
    """A module takes a third of a millisecond, and some take as long as all of the run."""
    for name, items in (("labels", [[1, 2], [3]]), ("predictions", [[2, 4], [5, 3]])):
        scores = [[0.5, 0.25], [0.5, 0.25]]
        table = pa.table({"user": [7, 8], "items": items, "scores": scores, "rating": [0.5, 1.0]})
        columns = ["user", "items"] if name == "labels" else table.column_names
        pq.write_table(table.select(columns), tmp_path / f"{name}.parquet")
    command = ("rankmill", "evaluate", "labels.parquet", "predictions.parquet", "-m", "map@12")
    answer = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", *command],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    imported = {
        line.rpartition("|")[2].strip()
        for line in answer.stderr.splitlines()
        if line.startswith("import time:")
    }
    heavy = {"pyarrow.compute", "pyarrow.dataset", "pandas", "numba", "scipy", "jinja2"}
    assert imported & heavy == set()
    assert len([name for name in imported if name.partition(".")[0] == "rankmill"]) <= 155


def test_every_command_has_help_and_a_module(run):
    for name in COMMANDS:
        code, out, err = run(name, "--help")
        assert (code, err) == (0, "")
        assert f"Usage: rankmill {name}" in out


def test_the_page_of_files_names_only_aliases_that_are_known(run):
    from rankmill.sources.meaning.roles import ALIASES, ITEM_ALIASES

    known = {name for names in (*ALIASES.values(), *ITEM_ALIASES.values()) for name in names}
    _, out, _ = run("docs", "data")
    named = re.findall(r"`(\w+)`", out[out.index("Columns are found by") : out.index("and others")])
    assert len(named) > 15
    assert {*named} <= known


def test_version(run):
    assert run("--version") == (0, f"rankmill {rankmill.__version__}\n", "")


def test_the_help_and_the_page_list_every_exit_code(run):
    for words in (["--help"], ["gate", "--help-all"], ["docs", "data"]):
        found = {int(one) for one in re.findall(r"(?:^|[|,:]) *(\d+)[\s,]", run(*words)[1], re.M)}
        assert {0, 1, 2, 3, 4, 70, 130} <= found


def test_nothing_asked_for_is_help_and_a_usage_error(run):
    code, out, err = run()
    assert (code, out) == (2, "")
    assert "evaluate" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evalute"], "no command 'evalute', only: evaluate, "),
        (["fuse", "a.run", "b.run", "-o", "c.run"], f"error: {GONE['fuse']}\n"),
        (["stability", "a", "b", "c"], f"error: {GONE['stability']}\n"),
        (["compare", "a", "b", "c", "--test", "bca"], f"error: {GONE['bca']}\n"),
        (["compare", "a", "b", "c", "--worst-slices", "3"], f"error: {GONE['--worst-slices']}\n"),
        (["compare", "a", "b", "c", "--replicates", "99"], f"error: {GONE['--replicates']}\n"),
        (["gate", "a", "b", "--undecided", "pass"], GONE["undecided pass"]),
        (["--nonsense"], "--nonsense"),
        (["evaluate", "a"], "PREDICTIONS"),
        (["evaluate", "a", "b", "-m", ""], "metric"),
        (["evaluate", "a", "b", "-m", "mapp@12"], "map"),
        (["evaluate", "a", "b", "-m", "map@0"], "map@0"),
        (["evaluate", "a", "b", "-m", "precision"], "precision"),
        (["evaluate", "a", "b", "-m", "map", "--threads", "0"], "--threads"),
        (["evaluate", "a", "b", "-m", "map", "--gain-function", "cubic"], "cubic"),
        (["evaluate", "a", "b", "-m", "map", "--format", "xml"], "xml"),
        (["evaluate", "a,,b", "c", "-m", "map"], "LABELS 'a,,b' has an empty name"),
        (["evaluate", "a", "b,", "-m", "map"], "PREDICTIONS 'b,' has an empty name"),
        (["evaluate", "", "b", "-m", "map"], "LABELS is empty, as an unset shell variable"),
        (["evaluate", "a", "b", "", "-m", "map"], "PREDICTIONS is empty"),
        (["evaluate", "a", "b", "c", "b", "-m", "map"], "PREDICTIONS b are given 2 times"),
        (["evaluate", "a", "b", "--memory", "0"], "'0' is not a size in bytes"),
        (["evaluate", "a", "b", "--memory", "3XB"], "expected one such as 500MB"),
        (["evaluate", "a", "b", "--memory", "9" * 5000], "...' is not a size in bytes"),
        (["evaluate", "a", "b", "--memory", "9" * 400 + ".5TB"], "...' is not a size in bytes"),
        (["evaluate", "a", "b", "--threads", "9" * 5000], "--threads"),
        (["evaluate", "a", "b", "-m", "map", "-o", "no/where"], "there is no folder"),
        (["evaluate", "a", "b", "-m", "map", "--per-query", "no/where"], "there is no folder"),
        (["evaluate", "a", "b", "-m", "map", "-o", "x", "--per-query", "./x"], "two names"),
        (
            ["evaluate", "a", "b", "-m", "map", "-o", "x.parquet"],
            "to x.parquet: the suffix sets the format",
        ),
        (["explain-evaluators", "a", "b", "-m", "map", "-o", "x.pq"], "to x.pq: the suffix"),
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


# What each command needs, in the order in which it is given.
NEEDED = {
    "evaluate": ["LABELS", "PREDICTIONS"],
    "merge": ["STATE"],
    "spark evaluate": ["LABELS", "PREDICTIONS"],
    "spark compare": ["LABELS", "PREDICTIONS"],
    "spark gate": ["LABELS", "PREDICTIONS"],
    "compare": ["LABELS", "PREDICTIONS"],
    "gate": ["LABELS", "PREDICTIONS"],
    "history": ["HISTORY"],
    "history prune": ["HISTORY"],
    "report": ["LABELS", "PREDICTIONS"],
    "head": ["INPUT"],
    "check": ["SOLUTION", "SUBMISSION", "-m METRIC"],
    "explain": ["LABELS", "PREDICTIONS", "-m METRIC"],
    "explain-evaluators": ["LABELS", "PREDICTIONS", "-m METRIC"],
    "init": ["LABELS", "PREDICTIONS"],
    "convert": ["INPUT", "OUTPUT"],
}


@pytest.mark.parametrize("command", NEEDED)
def test_what_is_missing_is_named_and_said_with_a_command_to_type(
    command, run, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    words, needed = command.split(), NEEDED[command]
    for given in range(len(needed)):
        typed = [*words, *(f"my {number}.csv" for number in range(given))]
        code, out, err = run(*typed)
        assert (code, out) == (2, ""), typed
        message = err.splitlines()[0]
        # Those after the first one are named with it, but for options.
        missing = [one for one in needed[given:] if one[0] != "-"] or needed[given:]
        assert re.findall(r"([A-Z]+|-\w [A-Z]+) \(", message) == missing
        example = message.partition(": type, for example, ")[2]
        assert example.startswith(f"rankmill {command} ")
        if needed[given].startswith("-"):  # then what was typed is part of it
            assert shlex.split(example)[1 : len(typed) + 1] == typed
        if words[0] != "spark":
            assert "missing" not in run(*shlex.split(example)[1:])[2]
    assert os.listdir(tmp_path) == []


def test_every_command_that_needs_something_says_so(run):
    quiet = {"metrics", "presets", "docs", "warmup", "trec_eval"}
    assert {one.split()[0] for one in NEEDED} | quiet == {*COMMANDS}


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (
            "compare l.csv p.csv",
            "add those of another system, or score one system with 'rankmill evaluate'",
        ),
        ("evaluate l.csv p.csv --leaderboard b.html", "or leave out --leaderboard"),
        ("gate l.csv p.csv", "give one with --rule, such as 'map@12 >= 0.1'"),
        ("gate l.csv p.csv --rule 'map drop <= 1%'", "give one with --baseline, such as the pred"),
        ("explain l.csv p.csv -m map", "'rankmill head' shows the first ids"),
        ("trec_eval q.txt", "found 1: type, for example, rankmill trec_eval qrels.txt run.txt"),
        ("trec_eval -x q.txt r.txt", "'rankmill trec_eval --help' explains -D, -J, -M"),
        ("trec_eval -m ndcg_cut_10 q.txt r.txt", "did you mean ndcg_cut.10? it has official"),
        ("spark", "type rankmill spark evaluate LABELS PREDICTIONS"),
    ],
)
def test_what_else_is_missing_is_said_with_what_to_type(typed, message, run):
    code, out, err = run(*shlex.split(typed))
    assert (code, out) == (2, "")
    assert message in err


@pytest.fixture
def failing(tmp_path, monkeypatch):
    """Add a command that raises what it is told to: `rankmill fail 'ValueError(1)'`."""
    (tmp_path / "failing_command.py").write_text(
        "import click\n"
        "from rankmill.errors import InputError, RankmillError, ResourceError, UsageError\n"
        "import pyarrow as pa\n"
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
        ("InputError('a.parquet: no\\n  column x')", 3, "error: a.parquet: no\\n  column x\n"),
        ("UsageError('k is 0')", 2, "error: k is 0\n"),
        ("RankmillError('other')", 2, "error: other\n"),
        ("ResourceError('no room')", 4, "error: no room\n"),
        ("KeyboardInterrupt()", 130, "error: interrupted; nothing written\n"),
        ("BrokenPipeError()", 0, ""),
    ],
)
def test_exit_codes(run, error, code, message):
    assert run("fail", error) == (code, "", message)


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("MemoryError()", "not enough memory; nothing written"),
        (
            "MemoryError('Unable to allocate 3 GiB')",
            "not enough memory (Unable to allocate 3 GiB);",
        ),
        ("pa.ArrowMemoryError('malloc of 8')", "not enough memory (malloc of 8);"),
        ("OSError(12, 'Cannot allocate memory')", "not enough memory ([Errno 12] Cannot"),
        ("ImportError('libarrow.so: failed to map segment')", "not enough memory (libarrow.so:"),
        ("OSError(24, 'Too many', 'x.parquet')", "too many open files ([Errno 24] Too many: 'x.p"),
        ('RuntimeError("can\'t start new thread")', "no more threads can be started (can't"),
        (
            "pa.ArrowException('Failed to launch worker thread: x')",
            "no more threads can be started",
        ),
        (
            "BlockingIOError(11, 'Resource temporarily unavailable')",
            "no more threads can be started",
        ),
        ("OSError(28, 'No space left on device')", "no room left on disk ("),
        ("OSError(2, 'No usable temporary directory found')", "no folder for temporary files ("),
    ],
)
def test_too_little_of_something_has_its_own_line_and_exit_code(run, error, message):
    code, out, err = run("fail", error)
    assert (code, out) == (4, "")
    assert err.startswith(f"error: {message}")
    assert "nothing written\n" in err
    assert "--memory" in err or "--threads" in err or "TMPDIR" in err
    assert "bug" not in err


@pytest.mark.usefixtures("failing")
def test_a_bug_shows_a_traceback_only_when_asked_for(run, monkeypatch):
    code, _, err = run("fail", "ZeroDivisionError('oh')")
    assert code == 70
    assert err.startswith("error: ")
    assert "ZeroDivisionError: oh" in err
    assert "report" in err
    assert "Traceback" not in err
    monkeypatch.setenv("RANKMILL_DEBUG", "1")
    code, _, err = run("fail", "ZeroDivisionError('oh')")
    assert code == 70
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

    reference = run("metrics", "--format", "markdown")[1].partition("\n\n")[0].splitlines()
    assert len(reference) == len(REGISTRY) + 2
    assert "| rbp(p=0.8,rel)\\[@k] | sum of (1 - p) p^(rank - 1)" in "\n".join(reference)

    _, table, _ = run("metrics")
    assert max(map(len, table.splitlines())) <= 80
    words = " ".join(table.split())
    for spec in REGISTRY.values():
        for text in (spec.definition, str(spec.range), spec.source, *spec.aliases):
            assert " ".join(text.split()) in words


@pytest.mark.parametrize(
    ("command", "near"),
    [
        (("metrics", "recal"), "did you mean recall"),
        (("metrics", "nothing-like-it"), "unknown metric 'nothing-like-it': 'rankmill metrics'"),
        (("evaluate", "a", "b", "-m", "pre"), "unknown metric 'pre'"),
        (("metrics", "accuracy"), "accuracy is not a metric here"),
    ],
)
def test_an_unknown_metric_has_five_nearest_at_most(run, command, near):
    code, out, err = run(*command)
    assert (code, out) == (2, "")
    assert near in err
    assert err.count(" or ") < 5
    assert len(err) < 400


@pytest.mark.parametrize(
    ("words", "begun", "wanted"),
    [
        (["metrics"], "nd", ["ndcg", "ndcg_rel"]),
        (["evaluate", "a", "b", "-m"], "map,ND", ["map,ndcg", "map,ndcg_rel"]),
        (["explain", "a", "b", "--metric"], "gin", ["gini"]),
        (["explain-evaluators", "a", "b", "-m"], "gin", ["gini"]),
        (["explain-evaluators", "a", "b", "--presets"], "spark,rec", ["spark,recommenders"]),
        (["gate", "a", "b", "--preset"], "rec", ["rectools", "recommenders"]),
        (["docs"], "n", ["nightly", "notebooks", "numbers"]),
    ],
)
def test_what_a_shell_completes(words, begun, wanted):
    complete = ShellComplete(main, {}, "rankmill", "_RANKMILL_COMPLETE")
    found = {one.value for one in complete.get_completions(words, begun)}
    assert {*wanted} <= found
    assert all(one.lower().startswith(begun.lower()) for one in found)
    assert len(found) < 10


def test_the_shell_asks_the_command_itself():
    asked = {"_RANKMILL_COMPLETE": "bash_complete", "COMP_WORDS": "rankmill docs sp"}
    with process(env=os.environ | asked | {"COMP_CWORD": "2"}) as completing:
        out, _ = completing.communicate()
    assert out.split() == ["plain,spark", "plain,speed"]


def test_metrics_prints_where_the_encoding_lacks_the_signs():
    with process("metrics", env=os.environ | {"PYTHONIOENCODING": "ascii"}) as metrics:
        out, err = metrics.communicate()
    assert (metrics.returncode, err) == (0, "")
    assert out.isascii()
    assert "\\xfctze" in out  # Schütze, of two sources


# Sizes and names


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("4096", 4096),
        ("500MB", 500_000_000),
        ("2GB", 2 * 10**9),
        ("2 gb", 2 * 10**9),
        ("1GiB", 1 << 30),
        ("1g", 1 << 30),
        ("1.5KiB", 1536),
        ("1e3", None),
        ("-1", None),
        ("0.1B", None),
        ("", None),
        ("MB", None),
    ],
)
def test_sizes(text, size):
    context, parameter = click.Context(click.Command("x")), click.Option(["--memory"])
    if size is None:
        with pytest.raises(click.BadParameter, match="is not a size in bytes"):
            parse_size(context, parameter, text)
    else:
        assert parse_size(context, parameter, text) == size


def test_sizes_are_shown_as_they_are_given():
    sizes = [12, 1500, 999_999, 383_197, 12_600_000, 10**9, 25 * 10**12]
    shown = ["12B", "1.5KB", "1000KB", "383KB", "13MB", "1.0GB", "25TB"]
    assert list(map(size_text, sizes)) == shown


def test_the_default_of_memory_is_that_of_evaluate(run):
    default = inspect.signature(rankmill.evaluate).parameters["memory"].default
    _, out, _ = run("evaluate", "--help-all")
    said = re.search(r"--memory SIZE.*?\[default: (\w+)\]", out, re.DOTALL)
    context, parameter = click.Context(click.Command("x")), click.Option(["--memory"])
    assert parse_size(context, parameter, said[1]) == default


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["a.parquet"], ["a"]),
        (["runs/a.parquet", "b.PQ", "c.v1.2"], ["a", "b", "c.v1.2"]),
        (["x/a.parquet", "y/a.parquet", "b.parquet"], ["x/a", "y/a", "b"]),
        (["1/x/a", "2/x/a", "2/y/a"], ["1/x/a", "2/x/a", "y/a"]),
        (["old/*.parquet", "new/part-*"], ["old", "new"]),
        (["a1.parquet,a2.parquet", "b"], ["a1+1", "b"]),
        (["a.parquet", "./a.parquet"], ["a.parquet", "./a.parquet"]),
        (["a", "a.parquet"], ["a", "a.parquet"]),
        (["/", "a"], ["/", "a"]),
        (["r/bm25.run", "r/x.csv.GZ", "y.trec", "z.json"], ["bm25", "x", "y", "z"]),
        (["r/a.csv", "r/a.run"], ["r/a.csv", "r/a.run"]),
    ],
)
def test_names_of_systems_are_short_and_differ(texts, names):
    assert system_names(texts) == names


@pytest.mark.parametrize("name", ["result.csv", "values.parquet", "result.tsv.gz"])
def test_no_output_goes_where_the_next_run_would_read_it(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    with pytest.raises(UsageError, match="the next run over run would read it as an input"):
        check_outputs(f"run/{name}", ["run"])
    check_outputs("run/result.md", ["run"])
    check_outputs("run/_result.csv", ["run"])


def test_a_mistyped_command_is_guessed(run):
    code, _, err = run("evalaute", "a", "b")
    assert code == 2
    assert "(Did you mean 'evaluate'?)" in err
    assert "Did you mean" not in run("zzz")[2]
