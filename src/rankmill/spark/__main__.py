"""The entry point of `python -m rankmill.spark`, and of a script for spark-submit."""

from __future__ import annotations

import sys


def run() -> None:
    """Run `rankmill spark` with this process's arguments; the exit code is that of the command."""
    from rankmill.cli import main

    main(["spark", *sys.argv[1:]], prog_name="rankmill")


if __name__ == "__main__":
    run()
