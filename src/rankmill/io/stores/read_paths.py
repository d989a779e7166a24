"""What a command has opened to read, so that none of its outputs takes the place of an input."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

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
        _opened.add(path)


def times_opened() -> int:
    """Return how often something was opened so far: more than before if something was read."""
    return _times


def is_opened(target: str) -> bool:
    """Return whether to write a target would replace a file, or an object, that was opened."""
    if not _opened:
        return False
    place = place_of(target)
    # Devices and pipes are not replaced.
    there = is_url(target) or os.path.isfile(place)
    return there and place in map(place_of, _opened)


def place_of(path: str) -> str:
    """Return what two names of one file, or of one object of a store, have in common.

    A file is where it will be written: "missing/../a.csv" is a.csv. Hard links are two files, since
    a new file takes the place of a name.
    """
    if is_url(path):
        return shown(path)
    return os.path.realpath("/dev/fd/0" if path == STANDARD_INPUT else local_path(path))
