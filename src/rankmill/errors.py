"""Errors whose cause the caller can mend. Anything else that rankmill raises is a bug of it.

But where the machine has too little of something, Python's own errors come through to callers as
they are: MemoryError (also NumPy's and Arrow's), OSError with an errno that says so, RuntimeError
where no thread can be started. `shortage` knows them.
"""

from __future__ import annotations

import errno
from numbers import Integral
from typing import Any

__all__ = [
    "InputError",
    "RankmillError",
    "ResourceError",
    "UsageError",
    "is_shortage",
    "positive",
    "shortage",
]


class RankmillError(Exception):
    """The base of the errors that rankmill raises on purpose: catch this one to catch them all."""


class InputError(RankmillError, ValueError):
    """The data is wrong: a broken file, a missing column, a repeated query, a NaN confidence.

    The message says what was found, in which file and where, what was expected and what to do.
    The command line ends with exit code 3.
    """


class UsageError(RankmillError, ValueError):
    """The request is wrong, whatever the data: an unknown metric, a cutoff of 0, a missing folder.

    Raised before anything is read where that is possible. The command line ends with exit code 2.
    """


class ResourceError(RankmillError):
    """The machine has too little of something that this run needs, as room for temporary files.

    Input and request may be right. The command line ends with exit code 4, as it does for any other
    error that `shortage` knows.
    """


_ERRNOS = {
    errno.ENOMEM: "memory",
    errno.EMFILE: "open files",
    errno.ENFILE: "open files",
    errno.EAGAIN: "threads",
    errno.ENOSPC: "room",
    errno.EDQUOT: "room",
    errno.EFBIG: "room",
}
# What errors say that have no type or number of their own.
_SAYINGS = {
    "can't start new thread": "threads",
    "Failed to launch worker thread": "threads",  # Arrow
    "No usable temporary directory": "a temporary folder",
    "failed to map segment": "memory",  # the dynamic linker, as all below
    "annot allocate memory": "memory",
    "cannot create shared object descriptor": "memory",
}


def shortage(error: BaseException | None) -> tuple[str, BaseException] | None:
    """What the machine had too little of, if that is why an error was raised, else None.

    It is one of "memory", "open files", "threads", "room" (on disk) and "a temporary folder"; with
    it comes the error that tells so, which the given one may have been raised from.

    Examples
    --------
    >>> shortage(OSError(24, "Too many open files"))
    ('open files', OSError(24, 'Too many open files'))
    >>> shortage(FileNotFoundError(2, "No such file or directory"))
    """
    while error is not None:
        if isinstance(error, MemoryError):
            return "memory", error
        if isinstance(error, OSError) and error.errno in _ERRNOS:
            return _ERRNOS[error.errno], error
        if not isinstance(error, RankmillError):
            text = str(error)
            for saying, what in _SAYINGS.items():
                if saying in text:
                    return what, error
        error = error.__cause__ or error.__context__
    return None


def is_shortage(error: BaseException, doing: str) -> bool:
    """Whether an error tells of a shortage; if so, it gets a note of what was being done.

    To be asked before an error of another library is taken for a fault of the input.
    """
    if shortage(error) is None:
        return False
    error.add_note(doing)
    return True


def positive(number: Any, name: str) -> int:
    """The number as an int, NumPy's too; raises UsageError if it is not a positive integer."""
    if isinstance(number, bool) or not isinstance(number, (int, Integral)) or number < 1:
        raise UsageError(f"{name} is {number!r}; expected a positive integer")
    return int(number)
