"""The command as a process: streams that are closed or full, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from cli_runs import process, write_dump


@pytest.fixture
def dump(tmp_path):
    return write_dump(tmp_path)


def in_shell(arguments, redirections) -> subprocess.CompletedProcess:
    """Run `rankmill ARGUMENTS` with redirections of a shell, such as `2>&-`."""
    words = [sys.executable, "-m", "rankmill", *map(str, arguments)]
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirections}', "sh", *words], capture_output=True, text=True
    )


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_closed_input_and_errors_do_no_harm(dump, closed):
    answer = in_shell(["evaluate", *dump, "-m", "map@3", "--format", "json"], closed)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert json.loads(answer.stdout)["queries"] == 3
    assert in_shell(["evaluate", *dump, "-m", "nonsense"], closed).returncode == 2


@pytest.mark.parametrize("arguments", [["evaluate"], ["metrics"], ["--help"], ["--version"]])
def test_a_closed_output_is_an_error(dump, arguments):
    if arguments == ["evaluate"]:
        arguments = ["evaluate", *dump, "-m", "map@3"]
    answer = in_shell(arguments, ">&-")
    assert answer.returncode == 2
    assert answer.stderr.startswith("error: cannot write to standard output: it is closed")
    assert answer.stderr.count("\n") == 1


def test_a_closed_output_does_not_matter_where_a_file_is_written(dump, tmp_path):
    written = tmp_path / "o.json"
    answer = in_shell(["evaluate", *dump, "-m", "map@3", "-o", written], "<&- >&- 2>&-")
    assert answer.returncode == 0
    assert json.loads(written.read_text())["queries"] == 3


def test_a_closed_pipe_ends_it_quietly():
    with process("metrics") as metrics:
        metrics.stdout.close()
        assert metrics.stderr.read() == ""
    assert metrics.returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["metrics"], ["--help"], ["metrics", "-h"], ["--version"]])
def test_a_full_disk_behind_standard_output_is_an_error(arguments):
    with open("/dev/full", "w") as full:
        answer = subprocess.run(
            [sys.executable, "-m", "rankmill", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert answer.stderr.startswith("error: cannot write to standard output: No space left")
    assert answer.stderr.count("\n") == 1
    assert answer.returncode == 2


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
