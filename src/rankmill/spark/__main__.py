"""The entry point of `python -m rankmill.spark`, and of a script for spark-submit."""

from __future__ import annotations

import sys
from runpy import run_module


def run() -> None:
    """Run `rankmill spark` with this process's arguments; the exit code is that of the command."""
    sys.argv.insert(1, "spark")
    run_module("rankmill", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run()
