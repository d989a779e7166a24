"""`python -m rankmill`, and the `rankmill` command: both are `run`."""

from __future__ import annotations

import gc
import os

from rankmill.signals import end_on_signals

__all__ = ["run"]


def run() -> None:
    """Run the command line on this process's arguments; end the process with its exit code."""
    end_on_signals()  # first of all: loading the rest takes most of the time of a short run
    # There is no garbage to look for while modules load, nor use for the threads that NumPy's
    # linear algebra starts: without both a command starts a tenth sooner. The progress of the first
    # rows freezes what is loaded by then, and lets Python look for garbage again.
    gc.disable()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Arrow's allocator gives memory back after 10 ms, to take it again for the next batch: a tenth
    # of the time of a large run.
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "1000")
    from rankmill.cli import main

    main(prog_name="rankmill")


if __name__ == "__main__":
    run()
