"""The version of the package, which pyproject.toml reads from here, and of what it writes."""

from collections.abc import Mapping
from typing import Any

from rankmill.errors import InputError

__version__ = "0.9.0"

#: The version of the JSON of all outcomes, of tables of queries, and of the runs of a history.
#: Raise it when a key changes its meaning; what an earlier version wrote is still read.
FORMAT = 1


def stamp() -> dict[str, Any]:
    """Return the keys with which all that is written for later begins."""
    return {"rankmill": __version__, "format": FORMAT}


def check_stamp(told: Mapping[str, Any], source: str) -> None:
    """Raise InputError if a later version of rankmill wrote what this one reads.

    Examples
    --------
    >>> check_stamp({"rankmill": "7.0", "format": 9}, "old.json")
    Traceback (most recent call last):
        ...
    rankmill.errors.InputError: old.json is of format 9, which rankmill 7.0 wrote; ...
    """
    found = told.get("format", 1)
    if not isinstance(found, int) or found > FORMAT:
        wrote = told.get("rankmill") or "another version"
        raise InputError(
            f"{source} is of format {found!r}, which rankmill {wrote} wrote; this is rankmill "
            f"{__version__}, which reads formats up to {FORMAT}: read it with rankmill {wrote} or "
            "newer"
        )


def install(extra: str | None = None) -> str:
    """Return how to install rankmill, with an extra, as help and errors say it.

    No package index has it yet; the pages say the same, which a test holds.
    """
    what = "." if extra is None else f"'.[{extra}]'"
    return f"pip install {what} in a checkout of rankmill"
