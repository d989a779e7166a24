"""The benchmark of the significance tests runs at a tiny size."""

import subprocess
import sys
from pathlib import Path

import pytest

from rankmill.analysis.statistics.significance import TESTS

SCRIPT = Path(__file__).resolve().parents[1].parent / "benchmarks" / "significance.py"


@pytest.mark.long
def test_every_test_has_its_rows():
    few = ("--comparisons=3", "--queries=40", "--pairs=2000", "--rival-replicates=2")
    finished = subprocess.run(
        [sys.executable, str(SCRIPT), *few], capture_output=True, text=True, check=False
    )
    # Three comparisons cannot keep what thousands promise, so that the exit code may be 1.
    assert finished.stderr == ""
    assert finished.returncode in (0, 1)
    rows = [line.split(" | ") for line in finished.stdout.splitlines()]
    for name in TESTS:
        assert [f"| {name}", "rejected at 5 %"] in [row[:2] for row in rows]
        assert [f"| {name}, ties", "seconds"] in [row[:2] for row in rows]
