"""A full disk ends every command with exit code 4, and leaves nothing behind."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli_runs import write_dump
from rankmill import History, evaluate
from strategies import some

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")

JUDGED = "gate labels.parquet predictions.parquet --rule map@3>=0.1"
SCORED = "evaluate labels.parquet predictions.parquet -m map@3"
COMPARED = "compare labels.parquet predictions.parquet other.parquet -m map@3"
OUTPUTS = [
    f"{SCORED} -o full.json",
    f"{SCORED} --per-query full.parquet",
    f"{SCORED} --report full.html",
    f"{SCORED} --history full",
    f"{JUDGED} --json full.json",
    f"{JUDGED} --junit full.xml",
    f"{JUDGED} --markdown full.md",
    f"{JUDGED} --history full",
    f"{COMPARED} -o full.json",
    f"{COMPARED} --plot full.svg",
    f"{COMPARED} --history full",
    "report labels.parquet predictions.parquet -m map@3 -o full.html",
    "explain labels.parquet predictions.parquet --query-id 1 -m map@3 -o full.parquet",
    "explain-evaluators labels.parquet predictions.parquet -m map@3 -o full.json",
    "convert predictions.parquet full.parquet",
    "init labels.parquet predictions.parquet -o full.toml",
    "history runs --plot full.svg",
    "history runs -o full.json",
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Inputs, and a history of two runs."""
    labels, predictions = write_dump(tmp_path)
    (tmp_path / "other.parquet").write_bytes(predictions.read_bytes())
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        History("runs").record(evaluate(labels, predictions, ["map@3"]))
    return tmp_path


@contextmanager
def no_room():
    """Let files grow to 60 bytes, as on a disk that fills up.

    No fixture: pytest prints before those end, perhaps to a file.
    """
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("arguments", OUTPUTS)
def test_an_output_on_a_full_disk(folder, run_cli, arguments):
    before = sorted(map(str, Path().rglob("*")))
    with no_room():
        found = run_cli(*arguments.split())
    assert found.exit_code == 4, found.stderr
    assert "error: no room left on disk" in found.stderr
    assert sorted(map(str, Path().rglob("*"))) == before


@pytest.mark.parametrize("arguments", [one for one in OUTPUTS if not one.endswith("full")])
def test_an_output_that_is_a_full_device(folder, run_cli, arguments):
    os.symlink("/dev/full", arguments.split()[-1])
    found = run_cli(*arguments.split(), *["--force"] * arguments.startswith("init"))
    assert found.exit_code == 4, found.stderr
    assert "error: no room left on disk ([Errno 28]" in found.stderr


def test_a_step_summary_on_a_full_disk(folder, run_cli, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/dev/full")
    found = run_cli(*JUDGED.split(), "--markdown", "-")
    assert found.exit_code == 4
    assert "No space left on device; writing /dev/full" in found.stderr


PRINTED = [SCORED, JUDGED, "head labels.parquet", "metrics", "--help", "metrics -h", "--version"]
PRINTED += ["init labels.parquet predictions.parquet -o -", "docs files", "history runs"]


@pytest.mark.parametrize("arguments", some(PRINTED, 2))
def test_standard_output_on_a_full_disk(folder, arguments):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "rankmill", *arguments.split()]
        answer = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert answer.returncode == 4
    last = answer.stderr.splitlines()[-1]
    assert last == "error: cannot write to standard output: No space left on device"


def test_a_folder_that_others_write_to_stays(tmp_path, monkeypatch):
    """Another process records a run while this one fails."""
    from rankmill.io import whole_files

    folder, usual = tmp_path / "runs", whole_files._write_files

    def write(contents):
        (folder / "other").touch()
        usual(contents)

    monkeypatch.setattr(whole_files, "_write_files", write)
    with no_room(), pytest.raises(OSError, match="File too large"):
        whole_files.write_files([(folder, None), (folder / "a", "x" * 100)])
    assert os.listdir(folder) == ["other"]
