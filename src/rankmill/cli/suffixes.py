"""What outputs may be called: no file holds another format than its suffix says."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rankmill.errors import UsageError
from rankmill.io.stores.urls import shown
from rankmill.io.table_files import check_table_name, suffix_of

STANDARD_OUTPUT = "-"
FORMAT_OF_SUFFIX = {
    **{".json": "json", ".csv": "csv", ".md": "markdown", ".markdown": "markdown", ".tex": "latex"},
    ".txt": "table",
}
# What an option writes, and the suffixes that say so. Names without a suffix are taken as well.
_TEXTS = {
    "json": ("JSON", (".json",)),
    "junit": ("JUnit XML", (".xml",)),
    "markdown": ("Markdown", (".md", ".markdown", ".txt")),
    "leaderboard": ("HTML", (".html", ".htm")),
    "report": ("HTML", (".html", ".htm")),
    "summary": ("a line of text", (".txt", ".md", ".markdown")),
}
# The options that write a table, in the format of the suffix; and what these may be besides.
_TABLES = {"per_query": (), "curve": (".json",)}


def check_names(output: str | None, others: Mapping[str, str | None]) -> None:
    """Raise UsageError if a file of an option would not hold what its suffix says.

    Parameters
    ----------
    output
        The file of -o; None is standard output.
    others
        Name of an option -> its file; those that are not known here are checked elsewhere.
    """
    for name, path in others.items():
        # GitHub and those like it choose the name of the file of a step.
        if path in (None, os.devnull, os.environ.get("GITHUB_STEP_SUMMARY")):
            continue
        if name in _TABLES:
            check_table_name(path, _TABLES[name])
        if name not in _TEXTS:
            continue
        what, suffixes = _TEXTS[name]
        if path == STANDARD_OUTPUT and name not in ("json", "summary"):
            raise UsageError(
                f"--{name} takes the name of a file, such as {name}{suffixes[0]}, and not - for "
                "standard output"
            )
        if path == STANDARD_OUTPUT and name == "json" and output is None:
            raise UsageError(
                "the result and --json are both for standard output: give one of them the name of "
                "a file (-o FILE or --json FILE)"
            )
        check_suffix(path, what, suffixes)


def check_suffix(path: str, what: str, suffixes: tuple[str, ...]) -> None:
    """Raise UsageError if a name has a suffix that does not stand for what is written."""
    if suffix_of(path) not in ("", *suffixes):
        named = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise UsageError(
            f"cannot write {what} to {shown(path)}: the suffix sets the format; expected a name "
            f"that ends in {named}"
        )
