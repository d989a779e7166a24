"""What the tests of the command line share: input files, a made-up result, processes."""

import os
import re
import resource
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankmill.results import audit
from rankmill.results.result import Result

MAP, FIRST_HIT, GAP = 4 / 9, 0.5, 0.5
"""What the files of `write_dump` score at map@3, first_hit and gap; worked out by hand."""


def write_dump(tmp_path: Path) -> tuple[Path, Path]:
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


def seconds_of(*arguments: str) -> tuple[float, float]:
    """Return the wall time of Python with these arguments, and its CPU seconds."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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


def on_a_terminal(code: str, columns: int) -> list[str]:
    """Run Python code on a pseudo-terminal; return the lines it shows, without the colours.

    The code runs in this process, whose streams are the terminal meanwhile: a process of its own
    takes half a second to import what it needs.
    """
    ours, theirs = _opened_terminal(columns)
    shown: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(ours, shown))
    reader.start()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    kept = [os.dup(number) for number in range(3)]
    for number in range(3):
        os.dup2(theirs, number)
    os.close(theirs)
    try:
        with (
            pytest.MonkeyPatch.context() as patch,
            open(0, closefd=False) as stdin,
            open(1, "w", buffering=1, closefd=False) as stdout,
            open(2, "w", buffering=1, closefd=False) as stderr,
        ):
            for name in ("COLUMNS", "NO_COLOR"):
                patch.delenv(name, raising=False)
            patch.setenv("TERM", "xterm")
            for name, stream in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
                patch.setattr(sys, name, stream)
            try:
                exec(code, {"time": time, "made": made})
            except SystemExit:
                pass
            except BaseException:
                traceback.print_exc()
    finally:
        for number, one in enumerate(kept):
            os.dup2(one, number)
            os.close(one)
        reader.join()
        os.close(ours)
    return _lines(shown)


def process_on_a_terminal(code: str, columns: int) -> list[str]:
    """Do the same in a process of its own."""
    ours, theirs = _opened_terminal(columns)
    env = {key: text for key, text in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    shown: list[bytes] = []
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=theirs,
        stderr=theirs,
        stdin=theirs,
        env=env | {"TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)},
    ):
        os.close(theirs)
        _read_all(ours, shown)
    os.close(ours)
    return _lines(shown)


def _opened_terminal(columns: int) -> tuple[int, int]:
    """Return our end and the end of a program."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    return ours, theirs


def _read_all(ours: int, shown: list[bytes]) -> None:
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # on Linux this means that the other end is closed
            break
        if not piece:
            break
        shown.append(piece)


def _lines(shown: list[bytes]) -> list[str]:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", b"".join(shown).decode()).splitlines()
