"""Telling how far a job is."""

import math
import sys
import time
from collections.abc import Callable
from typing import Any, cast

from rankmill.errors import UsageError

Progress = Callable[[int, int | None], None]


def progress_of(asked: Any) -> Progress | None:
    """Return the function that is told of progress; True stands for one that prints it."""
    if asked is None or asked is False:
        return None
    if asked is not True and not callable(asked):
        raise UsageError(
            f"progress is {asked!r}; expected True, or a function that takes the number of rows "
            "done and that of all rows, or None if it is not known"
        )
    return _printed() if asked is True else cast(Progress, asked)


def _printed() -> Progress:
    """Return a function that prints rows on a line of standard error, a few times a second."""
    last = -math.inf

    def show(done: int, total: int | None) -> None:
        nonlocal last
        over, now = done == total, time.monotonic()
        if over or now - last > 0.25:
            last = now
            of_all = "" if total is None else f" of {total:,}"
            print(f"\r{done:,}{of_all} rows", end="\n" * over, file=sys.stderr, flush=True)

    return show
