"""What other tests share with those of package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1].parent


SOURCE = ROOT / "src" / "rankmill"


# The rooms of the house: what each folder may import besides itself and BASE, and what those may.
HOUSE: dict[str, set[str]] = {
    "kernels": set(),
    "threads": set(),
    "columns": {"kernels"},
    "semantics": {"kernels"},
    "io": {"threads"},
    "show": {"columns", "semantics", "io"},
    "sources": {"columns", "semantics", "io", "threads"},
    "matching": {"columns", "semantics", "threads"},
    "metrics": {"matching", "io"},
    "results": {"show"},
    # The table of options names formats and the default metrics.
    "config": {"metrics", "results", "sources"},
    "engine": {"metrics", "results", "sources"},
    "adapters": {"engine"},
    "analysis": {"engine"},
    "nightly": {"analysis", "config"},
    "spark": {"nightly"},  # rankmill.spark.compare and gate merge states, and judge them
    "cli": {"adapters", "spark"},
}


def run_python(code: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout
