"""The texts that name inputs: their paths, and what a system is called by the name of its file."""

import glob
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rankmill.errors import UsageError
from rankmill.io.stores.urls import is_url, redacted, shown

__all__ = ["source_of", "system_names"]


def source_of(text: str, name: str) -> str | list[str]:
    """Return the input that an argument names: one path or glob, or a list of paths and globs."""
    if not text:
        raise UsageError(
            f"{name} is empty, as an unset shell variable would be; expected a file, a glob or "
            "a folder"
        )
    if "," not in text or os.path.exists(text):
        return text
    paths = text.split(",")
    if not all(paths):
        raise UsageError(
            f"{name} {redacted(text)!r} has an empty name between its commas: remove a comma"
        )
    return paths


def system_names(texts: Sequence[str]) -> list[str]:
    """Return a short, unique name for each input of predictions; UsageError if one is repeated.

    The name is that of the file. If several files have the same name, enough folders are put in
    front of the names to make them different.
    """
    for text, count in Counter(texts).items():
        if count > 1:
            raise UsageError(
                f"PREDICTIONS {redacted(text)} are given {count} times: leave the others out"
            )
    parts = [_parts(text) for text in texts]
    depths = [1] * len(texts)
    while True:
        names = ["/".join(one[-depth:]) for one, depth in zip(parts, depths, strict=True)]
        counts = Counter(names)
        shared = [i for i, name in enumerate(names) if counts[name] > 1]
        longer = [i for i in shared if depths[i] < len(parts[i])]
        for i in longer:
            depths[i] += 1
        if not longer:
            return [redacted(texts[i]) if i in shared else name for i, name in enumerate(names)]


def _parts(text: str) -> list[str]:
    """Return the folders and the name of an input, without its suffix and its wildcards."""
    from rankmill.sources.files.formats import without_suffix

    paths = [text] if os.path.exists(text) else text.split(",")
    if is_url(paths[0]):
        parts = [part for part in shown(paths[0]).partition("://")[2].split("/") if part]
    else:
        parts = [part for part in Path(os.path.abspath(paths[0])).parts if part != os.sep]
    while len(parts) > 1 and glob.has_magic(parts[-1]) and not os.path.exists(text):
        parts.pop()
    if not parts:
        return [text]
    parts[-1] = without_suffix(parts[-1])
    if len(paths) > 1:
        parts[-1] += f"+{len(paths) - 1}"
    return parts
