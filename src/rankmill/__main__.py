"""The entry point of `python -m rankmill` and of the `rankmill` command."""

import gc
import os

from rankmill.io.signals import end_on_signals

__all__ = ["run"]


def run() -> None:
    """Run the command line with this process's arguments, and exit with the command's code."""
    end_on_signals()  # this comes first: loading the rest takes most of the time of a short run
    # Loading modules creates no garbage, and rankmill does not need the threads of NumPy's linear
    # algebra. Without both, a command starts in 10 % less time. `Progress` freezes the loaded
    # objects and enables garbage collection again when the first rows are done.
    gc.disable()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # By default Arrow's allocator returns memory to the system after 10 ms, and requests it again
    # for the next batch. That takes 10 % of the time of a large run.
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "1000")
    from rankmill.cli import main

    main(prog_name="rankmill")


if __name__ == "__main__":
    run()
