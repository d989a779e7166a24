"""The command as a process: streams that are closed or full, Ctrl-C."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli_runs import process, seconds_of, write_dump
from processes import python
from rankmill.errors import install
from strategies import some


@pytest.fixture
def dump(tmp_path):
    return write_dump(tmp_path)


def in_shell(arguments, redirections) -> subprocess.CompletedProcess:
    """Run `rankmill ARGUMENTS` with redirections of a shell, such as `2>&-`."""
    words = [sys.executable, "-m", "rankmill", *map(str, arguments)]
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirections}', "sh", *words], capture_output=True, text=True
    )


@pytest.mark.parametrize("closed", some(["<&- 2>&-", "<&-", "2>&-"], 3))
def test_closed_input_and_errors_do_no_harm(dump, closed):
    answer = in_shell(["evaluate", *dump, "-m", "map@3", "--format", "json"], closed)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert json.loads(answer.stdout)["queries"] == 3
    assert in_shell(["evaluate", *dump, "-m", "nonsense"], closed).returncode == 2


@pytest.mark.parametrize(
    "arguments", some([["evaluate"], ["metrics"], ["--help"], ["--version"]], 2)
)
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


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("import numpy; numpy.__version__ = '1.26.4'", "pyarrow requires NumPy 2.0 or newer"),
        ("import sys; sys.modules['pyarrow'] = None", "import of pyarrow halted; None in"),
    ],
)
def test_a_package_that_does_not_fit_is_told_in_one_line(dump, before, reason):
    if not python(f"{before}\nimport pyarrow").returncode:
        pytest.skip("this pyarrow takes NumPy 1")
    code = f"{before}\nimport sys\nfrom rankmill.cli import main\nmain(sys.argv[1:])"
    answer = python(code, "evaluate", *map(str, dump))
    assert answer.returncode == 2
    told = f"error: a package that rankmill needs cannot be loaded: {reason}"
    assert answer.stderr.startswith(told)
    assert answer.stderr.count("\n") == 1
    assert install() in answer.stderr


def test_a_closed_pipe_ends_it_quietly():
    with process("metrics") as metrics:
        metrics.stdout.close()
        assert metrics.stderr.read() == ""
    assert metrics.returncode == 0


ENDS = {
    signal.SIGINT: (130, "error: interrupted; nothing written\n"),
    signal.SIGTERM: (143, "error: terminated; nothing written\n"),
    signal.SIGHUP: (129, "error: hung up; nothing written\n"),
}


def by_default() -> None:
    """Stop ignoring signals: a shell may have told its background jobs, like us, to ignore them."""
    for number in ENDS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def dump_to_compile_for(tmp_path_factory):
    """Write 100,000 queries, for which kernels do not run as plain Python."""
    path = tmp_path_factory.mktemp("compiled") / "wide.parquet"
    lists = pa.FixedSizeListArray.from_arrays(pa.array(range(300_000)), 3)
    scores = pa.FixedSizeListArray.from_arrays(pa.array([3.0, 2.0, 1.0] * 100_000), 3)
    columns = {"user_id": range(100_000), "item_id": lists, "score": scores}
    pq.write_table(pa.table(columns), path)
    return path, path


# Each signal, and each delay, once.
@pytest.mark.parametrize(("delay", "number"), some(itertools.product([0.3, 1.0, 2.5], ENDS), 8))
@pytest.mark.long
def test_a_signal_ends_it_at_once_and_leaves_nothing(dump_to_compile_for, tmp_path, number, delay):
    outputs = [tmp_path / "out.json", tmp_path.parent / f"{tmp_path.name}-users.parquet"]
    before = sorted(os.listdir(tmp_path))
    cache = tmp_path.parent / f"{tmp_path.name}-cache"
    # Without a cache of compiled code, this takes seconds and can be interrupted.
    metrics = [word for name in ("map@3", "ndcg@3", "f1@2", "gap") for word in ("-m", name)]
    with process(
        *("evaluate", *dump_to_compile_for, *metrics, "-o", outputs[0], "--per-query", outputs[1]),
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
    # 3 s where Python starts in 9 ms; LLVM, which is not interrupted, takes 1.5 there.
    assert seconds < 330 * min(seconds_of("-c", "pass")[0] for _ in range(3))
    assert sorted(os.listdir(tmp_path)) == before
    assert not outputs[1].exists()


@pytest.mark.parametrize(
    ("number", "module"),
    some(itertools.product(ENDS, ["click", "numpy", "llvmlite", "pyarrow"]), 3),
)
def test_a_signal_while_modules_load_ends_it_the_same_way(dump, tmp_path, number, module):
    stub = tmp_path / "stubs" / f"{module}.py"
    stub.parent.mkdir()
    # Modules suppress errors of optional imports like this, so an exception would not end the run.
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


@pytest.mark.parametrize("number", some(ENDS, 3))
def test_a_signal_that_the_parent_has_it_ignore_is_ignored(dump, number):
    # `nohup` does this, and so does a shell with its background jobs.
    with process(
        *("evaluate", *dump, "-m", "map@3", "--format", "json"),
        preexec_fn=lambda: signal.signal(number, signal.SIG_IGN),
    ) as evaluation:
        time.sleep(0.1)
        evaluation.send_signal(number)
        out, err = evaluation.communicate(timeout=60)
    assert (evaluation.returncode, err) == (0, "")
    assert json.loads(out)["queries"] == 3


@pytest.mark.parametrize(("number", "place"), some(itertools.product(ENDS, ["stdout", "pipe"]), 3))
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
        assert os.read(reader, 5)  # the run prints now, and waits until the rest is read
        evaluation.send_signal(number)
        err = evaluation.stderr.read()
    code, line = ENDS[number]
    assert (evaluation.returncode, err) == (code, line.replace("; nothing written", ""))


@pytest.mark.long
def test_a_working_folder_that_was_removed(dump, tmp_path):
    gone = tmp_path / "gone"
    for arguments in (["x", dump[1]], [dump[0], "x"], [*dump, "-o", "x"], [*dump]):
        gone.mkdir()
        words = [sys.executable, "-m", "rankmill", "evaluate", *map(str, arguments), "-m", "map@3"]
        answer = subprocess.run(
            ["sh", "-c", 'cd "$0" && rmdir "$0" && "$@"', str(gone), *words],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        )
        expected = 0 if arguments == [*dump] else 3 if arguments[0] == "x" else 2
        assert answer.returncode == expected
        assert "bug" not in answer.stderr


# A machine with too little of a resource


@pytest.fixture(scope="module")
def large_dump(tmp_path_factory):
    """Write 20,000 queries, wide and long, whose rows are scattered."""
    folder = tmp_path_factory.mktemp("large")
    count = 20_000
    lists = [[i % 97, i % 89, i % 83] for i in range(count)]
    ids = [i * 7919 % count for i in range(count)]
    wide = pa.table({"user_id": ids, "item_id": lists, "score": [[3.0, 2.0, 1.0]] * count})
    pq.write_table(wide, folder / "wide.parquet", row_group_size=5000)
    long = pa.table({"user_id": ids * 3, "item_id": range(3 * count), "score": [0.5] * 3 * count})
    pq.write_table(long, folder / "long.parquet", row_group_size=5000)
    return folder / "wide.parquet", folder / "long.parquet"


def limited(arguments, limits, **environment) -> tuple[int, str]:
    """Run `rankmill ARGUMENTS` under limits of the system; return exit code and errors."""
    resource = pytest.importorskip("resource")

    def limit() -> None:
        for name, most in limits.items():
            resource.setrlimit(getattr(resource, name), (most, most))

    with process(
        *arguments, env=os.environ | {"NUMBA_DISABLE_JIT": "0"} | environment, preexec_fn=limit
    ) as evaluation:
        _, err = evaluation.communicate(timeout=100)
    return evaluation.returncode, err


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs the limits that Linux keeps")


def asked(source, tmp_path, *options) -> list[object]:
    outputs = ("-o", tmp_path / "out.json", "--per-query", tmp_path / "users.parquet")
    return ["evaluate", source, source, "-m", "map@3", "-m", "gap", *outputs, *options]


@LINUX
@pytest.mark.parametrize("megabytes", [50, 120, 200, 300])
def test_too_little_memory_to_load_libraries(large_dump, tmp_path, megabytes):
    for _ in range(3):
        code, err = limited(asked(large_dump[0], tmp_path), {"RLIMIT_AS": megabytes << 20})
        # Once in some fifty runs, glibc has no room for a library's own data and aborts by itself,
        # or a library fails without saying why.
        if "thread-local data: ABORT" not in err and "SystemError" not in err:
            break
    # Arrow's allocator may say first that it has no thread.
    assert re.match(r"(<jemalloc>.*\n)*error: not enough memory", err)
    assert "; nothing written\n" in err
    assert "a smaller --memory" in err.lower()
    assert code == 4
    assert os.listdir(tmp_path) == []


@pytest.mark.long
@LINUX
def test_few_descriptors_are_enough(large_dump, tmp_path):
    for source, memory in zip(large_dump, ("1GB", "50KB"), strict=True):
        arguments = asked(source, tmp_path, "--memory", memory)
        assert limited(arguments, {"RLIMIT_NOFILE": 64}) == (0, "")


@LINUX
@pytest.mark.long
def test_no_more_descriptors(large_dump, tmp_path):
    code = (
        "import resource, sys, rankmill.cli.evaluate, rankmill.sources.readers.parquet\n"
        "import rankmill.engine.curves, rankmill.engine.evaluate\n"
        "import rankmill.metrics.aggregates.mean, rankmill.metrics.libraries\n"
        "rankmill.metrics.libraries.tables()\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
        "rankmill.cli.main(sys.argv[1:])\n"
    )
    words = map(str, asked(large_dump[0], tmp_path))
    answer = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert answer.stderr.startswith("error: too many open files (")
    assert f"reading {large_dump[0]}" in answer.stderr
    assert "; nothing written\n" in answer.stderr
    assert "ulimit -n" in answer.stderr
    assert answer.returncode == 4
    assert os.listdir(tmp_path) == []


@LINUX
def test_no_room_for_temporary_files(large_dump, tmp_path):
    arguments = asked(large_dump[1], tmp_path, "--memory", "50KB")
    code, err = limited(arguments, {"RLIMIT_FSIZE": 100_000})
    assert "cannot be kept in a temporary file" in err
    assert "TMPDIR" in err
    assert code == 4
    assert os.listdir(tmp_path) == []


@LINUX
@pytest.mark.long
def test_no_more_threads(large_dump, tmp_path):
    # The stack of each thread has the size of the limit, so no thread finds enough memory.
    limits = {"RLIMIT_STACK": 8 << 30, "RLIMIT_AS": 6 << 30}
    code, err = limited(asked(large_dump[0], tmp_path), limits)
    # Arrow's threads may be the first that find none.
    assert re.search(r"^error: no more threads can be started \(.+\); nothing written$", err, re.M)
    assert "--threads" in err
    assert code == 4
    assert os.listdir(tmp_path) == []


@pytest.mark.long
@LINUX
def test_a_file_is_not_called_broken_where_memory_runs_out(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"user_id": ["x" * (1 << 24)] * 8, "item_id": [[1]] * 8}), path)
    code = f"""
import resource, sys
import rankmill.engine.evaluate
from rankmill.sources.roles.source import InputOptions as Asked
from rankmill.sources.inputs.any_source import open_paths
source = open_paths([{str(path)!r}], Asked())
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * {resource.getpagesize()} + (1 << 25)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
try:
    for piece in source.pieces(["user_id"]):
        list(piece)
except MemoryError as error:
    print(error.__notes__)
"""
    answer = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"},  # other pools reserve memory
    )
    assert answer.stdout == f"['reading {path}, row group 0']\n", answer.stderr


def test_a_thread_without_memory_for_its_first_step_ends_the_process():
    # Python would wait for it for ever.
    code = (
        "import threading\n"
        "from rankmill.cli import process\n"
        "process.prepare()\n"
        "def fail(*_): raise MemoryError\n"
        "threading.Thread._bootstrap_inner = fail\n"
        "threading.Thread(target=print).start()\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30
    )
    assert answer.returncode == 4
    assert answer.stderr.startswith("error: not enough memory; nothing written\n")
