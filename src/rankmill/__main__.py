"""`python -m rankmill`, and the `rankmill` command: both are `run`."""

from __future__ import annotations

import os

__all__ = ["run"]


def run() -> None:
    """Run the command line on this process's arguments; end the process with its exit code."""
    try:
        from rankmill.cli import main

        main(prog_name="rankmill")
    except KeyboardInterrupt:
        # Only while the imports above run: from then on, the command group answers for everything.
        os._exit(130)


if __name__ == "__main__":
    run()
