"""Errors whose cause the caller can mend. Anything else that rankmill raises is a bug of it."""

from __future__ import annotations

from numbers import Integral
from typing import Any

__all__ = ["InputError", "RankmillError", "UsageError", "positive"]


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


def positive(number: Any, name: str) -> int:
    """The number as an int, NumPy's too; raises UsageError if it is not a positive integer."""
    if isinstance(number, bool) or not isinstance(number, (int, Integral)) or number < 1:
        raise UsageError(f"{name} is {number!r}; expected a positive integer")
    return int(number)
