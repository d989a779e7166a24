"""What the tests of the command line share: input files, a made-up result, processes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

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
    """Run Python code on a pseudo-terminal; return the lines it shows, without the colours."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {key: text for key, text in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    command = [sys.executable, "-c", f"from cli_runs import *\nimport time\n{code}"]
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
            except OSError:  # on Linux this means that the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode()).splitlines()
