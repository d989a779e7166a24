"""What outputs may be called: no file holds another format than its suffix says."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rankmill.errors import UsageError
from rankmill.results.table_files import check_table_name, suffix_of
from rankmill.stores.urls import shown

__all__ = ["FORMAT_OF_SUFFIX", "STANDARD_OUTPUT", "check_names", "check_suffix"]

STANDARD_OUTPUT = "-"
FORMAT_OF_SUFFIX = {
    **{".json": "json", ".csv": "csv", ".md": "markdown", ".markdown": "markdown", ".tex": "latex"},
}
# What an option writes, and the suffixes that say so. Names without a suffix, or with one that says
# nothing, are taken as well: GitHub's file of a step's summary has none.
_TEXTS = {
    "json": ("JSON", (".json",)),
    "junit": ("JUnit XML", (".xml",)),
    "markdown": ("Markdown", (".md", ".markdown")),
    "report": ("HTML", (".html", ".htm")),
    "summary": ("a line of text", (".md", ".markdown")),
}
# The options that write a table, in the format of the suffix; and what these may be besides.
_TABLES = {"per_query": (), "curve": (".json",)}
_OTHER = {".svg", ".png", ".pdf", ".toml", ".zip", ".xlsx", ".xls"}


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
        if path in (None, os.devnull):
            continue
        if name in _TABLES and suffix_of(path) not in _TABLES[name]:
            check_table_name(path)
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
    """Raise UsageError if the suffix of a name stands for something else than is written."""
    suffix = suffix_of(path)
    if suffix not in suffixes and suffix in _known():
        named = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise UsageError(
            f"cannot write {what} to {shown(path)}: {suffix} stands for another format; expected "
            f"a name in {named}"
        )


def _known() -> set[str]:
    """Return the suffixes that stand for a format."""
    from rankmill.sources.formats import COMPRESSIONS, FORMATS

    read = {suffix for one in FORMATS.values() for suffix in one.suffixes}
    written = {suffix for _, suffixes in _TEXTS.values() for suffix in suffixes}
    return read | written | {*COMPRESSIONS, *FORMAT_OF_SUFFIX} | _OTHER
