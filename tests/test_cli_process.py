"""The command as a process: streams that are closed or full, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
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


ENDS = {
    signal.SIGINT: (130, "error: interrupted; nothing written\n"),
    signal.SIGTERM: (143, "error: terminated; nothing written\n"),
    signal.SIGHUP: (129, "error: hung up; nothing written\n"),
}


def by_default() -> None:
    """Undo what a shell may have told its background jobs, us included: to ignore signals."""
    for number in ENDS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("number", ENDS)
@pytest.mark.parametrize("delay", [0.3, 1.0, 2.5])
def test_a_signal_ends_it_at_once_and_leaves_nothing(dump, tmp_path, number, delay):
    outputs = [tmp_path / "out.json", tmp_path.parent / f"{tmp_path.name}-users.parquet"]
    before = sorted(os.listdir(tmp_path))
    cache = tmp_path.parent / f"{tmp_path.name}-cache"
    # Without a cache of compiled code even this small input takes seconds, so that there is a run
    # to interrupt.
    metrics = [word for name in ("map@3", "ndcg@3", "f1@2", "gap") for word in ("-m", name)]
    with process(
        *("evaluate", *dump, *metrics, "-o", outputs[0], "--per-query", outputs[1]),
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0"},
        preexec_fn=by_default,
    ) as evaluation:
        time.sleep(delay)
        assert evaluation.poll() is None, "the run is too short to be interrupted"
        evaluation.send_signal(number)
        start = time.perf_counter()
        out, err = evaluation.communicate(timeout=30)
        seconds = time.perf_counter() - start
    assert (evaluation.returncode, err) == ENDS[number]
    assert out == ""
    assert seconds < 3
    assert sorted(os.listdir(tmp_path)) == before
    assert not outputs[1].exists()


@pytest.mark.parametrize("number", ENDS)
@pytest.mark.parametrize("module", ["click", "numpy", "numba", "pyarrow"])
def test_a_signal_while_modules_load_ends_it_the_same_way(dump, tmp_path, number, module):
    stub = tmp_path / "stubs" / f"{module}.py"
    stub.parent.mkdir()
    # As modules do that need not be there; the run would go on without an exception, too.
    stub.write_text(
        "import os, contextlib\n"
        "with contextlib.suppress(BaseException):\n"
        f"    os.kill(os.getpid(), {number})\n"
        "    for _ in range(1000): pass\n"
    )
    path = os.pathsep.join([str(stub.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    with process(
        *("evaluate", *dump), env=os.environ | {"PYTHONPATH": path}, preexec_fn=by_default
    ) as evaluation:
        out, err = evaluation.communicate(timeout=30)
    assert (evaluation.returncode, err) == ENDS[number]
    assert out == ""


@pytest.mark.parametrize("number", ENDS)
def test_a_signal_that_the_parent_has_it_ignore_is_ignored(dump, number):
    # As `nohup` does, and a shell with what it starts in the background.
    with process(
        *("evaluate", *dump, "-m", "map@3", "--format", "json"),
        preexec_fn=lambda: signal.signal(number, signal.SIG_IGN),
    ) as evaluation:
        time.sleep(0.1)
        evaluation.send_signal(number)
        out, err = evaluation.communicate(timeout=60)
    assert (evaluation.returncode, err) == (0, "")
    assert json.loads(out)["queries"] == 3


@pytest.mark.parametrize("number", ENDS)
@pytest.mark.parametrize("place", ["stdout", "pipe"])
def test_a_signal_while_it_prints_does_not_say_that_nothing_is_written(tmp_path, number, place):
    count = 5000  # more rows than a pipe holds
    table = pa.table({"user_id": range(count), "item_id": range(count), "score": [0.5] * count})
    run = tmp_path / "run.parquet"
    pq.write_table(table, run)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    written = ["-o", pipe] if place == "pipe" else []
    with process(
        *("explain", run, run, "-m", "gap", "--format", "csv", *written), preexec_fn=by_default
    ) as evaluation:
        reader = os.open(pipe, os.O_RDONLY) if written else evaluation.stdout.fileno()
        assert os.read(reader, 5)  # it prints by now, and waits for the rest to be read
        evaluation.send_signal(number)
        err = evaluation.stderr.read()
    code, line = ENDS[number]
    assert (evaluation.returncode, err) == (code, line.replace("; nothing written", ""))
