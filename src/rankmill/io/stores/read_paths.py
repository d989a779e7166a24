"""What a command has opened to read, so that none of its outputs takes the place of an input."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rankmill.io.stores.urls import is_url, local_path, shown

STANDARD_INPUT = "-"

# None: nobody asks. Not a context variable, as threads open files for the command too.
_opened: set[str] | None = None
_times = 0


@contextmanager
def gathered() -> Iterator[None]:
    """Gather what is opened within.

    A command does so. A program that calls rankmill may write later to what it has read.
    """
    global _opened
    before, _opened = _opened, set()
    try:
        yield
    finally:
        _opened = before


def opened(path: str) -> None:
    """Take note of a path, a URL, or "-" for standard input, which is opened to read."""
    global _times
    _times += 1
    if _opened is not None:
        _opened.add(shown(path) if is_url(path) else path)


def times_opened() -> int:
    """Return how often something was opened so far: more than before if something was read."""
    return _times


def is_opened(target: str) -> bool:
    """Return whether to write a target would replace a file, or an object, that was opened."""
    if not _opened:
        return False
    if is_url(target):
        return shown(target) in _opened
    try:
        # Where it will be written: "missing/../a.csv" is a.csv, but has no status.
        found = os.stat(os.path.realpath(local_path(target)))
    except (OSError, ValueError):
        return False
    if stat.S_ISREG(found.st_mode):  # devices and pipes are not replaced
        for path in _opened:
            with suppress(OSError, ValueError):  # that of a URL, or of a file that is gone
                if os.path.samestat(found, os.stat(0 if path == STANDARD_INPUT else path)):
                    return True
    return False
