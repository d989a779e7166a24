"""No output replaces an input: each option that names an input beside each that names an output."""

import os
from pathlib import Path

import pytest

from rankmill.io.stores.urls import gathered, is_opened, opened
from strategies import some

pytestmark = pytest.mark.small

FILES = {
    "labels.csv": "query_id,item_id\nq1,a\nq2,b\n",
    "new.csv": "query_id,item_id,score\nq1,a,1\nq2,b,1\n",
    "old.csv": "query_id,item_id,score\nq1,z,1\nq2,b,1\n",
    "by.csv": "query_id,seg\nq1,x\nq2,y\n",
    "train.csv": "query_id,item_id\nq1,z\nq2,z\n",
    "items.csv": "item_id,group\na,1\nb,2\nz,1\n",
    "features.csv": "item_id,x,y\na,1.5,0\nb,0,1.5\nz,1,1\n",
    "rankmill.toml": 'labels = "labels.csv"\npredictions = "new.csv"\nmetrics = ["map@2"]\n'
    'rules = ["map@2 > 0"]\ntrain = "train.csv"\n',
    "two.toml": 'labels = "labels.csv"\nmetrics = ["map@2"]\nby = ["by.csv"]\n'
    '[systems]\nold = "old.csv"\nnew = "new.csv"\n',
}
BESIDE = ["--train", "train.csv", "--items", "items.csv", "--features", "features.csv"]
METRICS = ["-m", "map@2", "-m", "novelty@2", "-m", "ild_cosine@2"]
RULE = ["--rule", "map@2 drop <= 0.9"]
COMPARED = ["labels.csv", "old.csv", "new.csv", "-m", "map@2", "--by", "by.csv", *BESIDE]
# A command with its inputs, and the options that name its outputs.
COMMANDS = [
    (
        ["evaluate", "labels.csv", "new.csv", *METRICS, *BESIDE],
        "-o --per-query --curve --plot --report",
    ),
    (["evaluate", "rankmill.toml"], "-o --per-query --curve --report"),
    (["compare", *COMPARED], "-o --per-query --plot --report"),
    (["compare", "two.toml"], "-o --per-query --plot --report"),
    (
        [
            "gate",
            "labels.csv",
            "new.csv",
            "--baseline",
            "old.csv",
            *RULE,
            "--by",
            "by.csv",
            *BESIDE,
        ],
        "-o --per-query --json --junit --markdown --report",
    ),
    (
        ["gate", "labels.csv", "new.csv", "--baseline", "told.json", *RULE],
        "-o --per-query --json --junit --markdown --report",
    ),
    (["gate", "labels.csv", "new.csv", "--baseline", "values.parquet", *RULE], "-o --per-query"),
    (["gate", "rankmill.toml"], "-o --per-query --json --junit --markdown --report"),
    (["report", *COMPARED], "-o"),
    (["report", "rankmill.toml"], "-o"),
    (["explain", "labels.csv", "new.csv", "--query-id", "q1", "-m", "novelty@2", *BESIDE], "-o"),
    (["explain-evaluators", "labels.csv", "new.csv", "-m", "map@2"], "-o"),
]
# The suffix that an option takes.
SUFFIXES = {"-o": ".json", "--per-query": ".parquet", "--curve": ".json", "--json": ".json"}
SUFFIXES |= {"--junit": ".xml", "--markdown": ".md", "--report": ".html", "--plot": ".svg"}
OF_COMMAND = {("report", "-o"): ".html"}
# What stands before its name, or makes another name.
WAYS = {"its name": "", "a missing folder": "missing/../"}
WAYS |= {"a symbolic link": os.symlink}


@pytest.fixture
def folder(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    outputs = ["-o", "told.json", "--per-query", "values.parquet", "--history", "runs"]
    code, _, err = run("evaluate", "labels.csv", "new.csv", "-m", "map@2", *outputs)
    assert (code, err) == (0, "")
    return tmp_path


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("command", "options", "way"), some(((*of, way) for of in COMMANDS for way in WAYS), 3)
)
def test_no_output_replaces_an_input(run, folder, command, options, way):
    before = contents()
    words = {word for word in command if Path(word).is_file()}
    if "rankmill.toml" in words:
        words |= {"labels.csv", "new.csv", "train.csv"}
    if "two.toml" in words:
        words |= {"labels.csv", "old.csv", "new.csv", "by.csv"}
    for option in options.split():
        for name in sorted(words):
            target = f"{WAYS[way]}{name}"
            if callable(WAYS[way]):
                suffix = OF_COMMAND.get((command[0], option), SUFFIXES[option])
                target = f"link{suffix}"
                WAYS[way](name, target)
            code, out, err = run(*command, option, target)
            if callable(WAYS[way]):
                os.unlink(target)
            assert (option, name, code, out) == (option, name, 2, "")
            assert f"cannot write to {target}: it is one of the inputs" in err
            assert contents() == before


@pytest.mark.parametrize(
    "command",
    [
        ["history", "runs"],
        ["gate", "labels.csv", "new.csv", "--baseline", "last", "--history", "runs", *RULE],
    ],
)
def test_what_is_found_only_while_reading_is_no_output_either(run, folder, command):
    before = contents()
    (path,) = Path("runs").iterdir()
    code, out, err = run(*command, "--format", "json", "-o", path)
    assert (code, out) == (2, "")
    assert f"cannot write to {path}: it is one of the inputs" in err
    # A gate that has read something records that there was no verdict.
    assert before.items() <= contents().items()


@pytest.mark.lengthy
def test_standard_input_may_be_an_input(folder):
    from cli_runs import process

    before = contents()
    with open("new.csv") as file:
        started = process("evaluate", "labels.csv", "-", "-m", "map@2", "-o", "new.csv", stdin=file)
        _, err = started.communicate()
    assert started.returncode == 2
    assert "cannot write to new.csv: it is one of the inputs" in err
    assert contents() == before


def test_two_outputs_are_not_links_to_one_file(run, folder):
    Path("a.json").touch()
    os.symlink("a.json", "a.parquet")
    outputs = ["-o", "a.json", "--per-query", "a.parquet"]
    code, _, err = run("evaluate", "labels.csv", "new.csv", "-m", "map@2", *outputs)
    assert code == 2
    assert "-o and --per-query are the same file" in err


def test_a_program_may_write_to_what_it_has_read(tmp_path):
    path = str(tmp_path / "a.csv")
    Path(path).touch()
    opened(path)
    assert not is_opened(path)
    with gathered():
        opened(path)
        opened("s3://key:secret@bucket/a.csv")
        assert is_opened(path)
        assert is_opened(f"file://{path}")
        assert is_opened("s3://bucket/a.csv")
        assert not is_opened("s3://bucket/b.csv")
        assert not is_opened(os.devnull)
    assert not is_opened(path)
