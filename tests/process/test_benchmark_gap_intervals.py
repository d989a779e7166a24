"""The benchmark of the intervals of gap runs at a tiny size."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1].parent / "benchmarks" / "gap_intervals.py"


@pytest.mark.long
def test_every_promise_has_its_row():
    few = ("--datasets=3", "--queries", "30", "--populations", "one label", "--truth=2000")
    finished = subprocess.run(
        [sys.executable, str(SCRIPT), *few], capture_output=True, text=True, check=False
    )
    # Three data sets cannot keep what thousands promise, so that the exit code may be 1.
    assert finished.stderr == ""
    assert finished.returncode in (0, 1)
    rows = [line.split(" | ") for line in finished.stdout.splitlines()[2:]]
    assert [row[:2] for row in rows] == [
        ["| one label, 30 queries", "intervals of the gap that cover"],
        ["| one label, 30 queries", "intervals of the difference that cover"],
        ["| one label, 30 queries", "rejected at 5 %"],
    ]
