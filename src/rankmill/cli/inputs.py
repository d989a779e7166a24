"""What the arguments of a command line name: inputs, systems, outputs, sizes."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from rankmill.cli.process import why_output_fails
from rankmill.errors import UsageError
from rankmill.results import files as writing

__all__ = [
    "PARQUET_SUFFIXES",
    "check_outputs",
    "parse_size",
    "source_of",
    "system_names",
]

PARQUET_SUFFIXES = (".parquet", ".parq", ".pq")
MOST_DIGITS = 30  # of a size: far beyond any memory
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_UNITS |= {f"{unit}IB": size for unit, size in _UNITS.items() if unit}
_UNITS |= {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def parse_size(context: click.Context, parameter: click.Parameter, text: str) -> int:
    """Return the number of bytes that a text says: 500MB (500 000 000), 2GiB or 2G (2 * 2**30)."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([A-Za-z]*)", text.strip())
    unit = _UNITS.get(found[2].upper()) if found else None
    size = 0
    if found and unit and len(found[1]) <= MOST_DIGITS:
        size = int(found[1]) * unit if found[1].isdecimal() else int(float(found[1]) * unit)
    if size < 1:
        shown = text if len(text) <= MOST_DIGITS else f"{text[:MOST_DIGITS]}..."
        raise click.BadParameter(
            f"{shown!r} is no size in bytes; expected one such as 500MB, 2GB or 1GiB"
        )
    return size


def source_of(text: str, name: str) -> str | list[str]:
    """Return the input that an argument names: one path or glob, or a list of them.

    Raises
    ------
    UsageError
        If it is empty, or a name between two of its commas is.
    """
    if not text:
        raise UsageError(
            f"{name} is empty, as an unset shell variable would be; expected a Parquet file, a "
            "glob or a folder"
        )
    if "," not in text or os.path.exists(text):
        return text
    paths = text.split(",")
    if not all(paths):
        raise UsageError(f"{name} {text!r} has an empty name between its commas: remove a comma")
    return paths


def system_names(texts: Sequence[str]) -> list[str]:
    """Return a short name for each input of predictions, no two the same.

    It is that of the file, with as many folders before it as tell those of one name apart.

    Raises
    ------
    UsageError
        If one input is given twice.
    """
    for text, count in Counter(texts).items():
        if count > 1:
            raise UsageError(f"PREDICTIONS {text} are given {count} times: leave the others out")
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
            return [texts[i] if i in shared else name for i, name in enumerate(names)]


def _parts(text: str) -> list[str]:
    """Return the folders and the name that an input goes by, without its suffix and wildcards."""
    paths = [text] if os.path.exists(text) else text.split(",")
    parts = [part for part in Path(os.path.abspath(paths[0])).parts if part != os.sep]
    while len(parts) > 1 and glob.has_magic(parts[-1]) and not os.path.exists(text):
        parts.pop()
    if not parts:
        return [text]
    stem, suffix = os.path.splitext(parts[-1])
    parts[-1] = stem if suffix.lower() in PARQUET_SUFFIXES else parts[-1]
    if len(paths) > 1:
        parts[-1] += f"+{len(paths) - 1}"
    return parts


def check_outputs(
    output: str | None, per_query: str | None, inputs: Sequence[str | list[str]]
) -> None:
    """Find out before a long run what would make its result impossible to write, or do harm.

    Raises
    ------
    UsageError
        If a file cannot be written, is one of the inputs, or would be read for one by the next run.
    """
    reason = why_output_fails() if output is None else None
    if reason is not None:
        raise UsageError(f"cannot write to standard output: {reason}; give a file with -o")
    for path in (output, per_query):
        if path is None:
            continue
        writing.check_target(path)
        if os.path.isfile(path) and any(os.path.samefile(path, one) for one in _files(inputs)):
            raise UsageError(
                f"cannot write to {path}: it is one of the inputs; choose another name"
            )
        for text in _flat(inputs):
            if _would_be_read(path, text):
                raise UsageError(
                    f"cannot write to {path}: the next run over {text} would read it as an input; "
                    "choose another folder"
                )
    if None in (output, per_query) or os.devnull in (output, per_query):
        return
    if os.path.realpath(str(output)) == os.path.realpath(str(per_query)):
        raise UsageError(f"-o and --per-query are the same file, {output}: give two names")


def _files(inputs: Sequence[str | list[str]]) -> list[str]:
    """Return all files that the inputs stand for."""
    from rankmill.sources.parquet import find_files

    return [path for path in find_files(_flat(inputs)) if os.path.exists(path)]


def _flat(inputs: Sequence[str | list[str]]) -> list[str]:
    return [path for one in inputs for path in ([one] if isinstance(one, str) else one)]


def _would_be_read(path: str, text: str) -> bool:
    """Tell whether a new file at `path` would be found in an input that is a folder or a glob."""
    target = Path(os.path.realpath(path))
    if os.path.exists(target) and not os.path.isfile(target):
        return False  # a device or a pipe stays what it is
    matches = [text] if os.path.exists(text) else glob.glob(text, recursive=True)
    for folder in filter(os.path.isdir, matches):
        root = Path(os.path.realpath(folder))
        if target.suffix.lower() in PARQUET_SUFFIXES and target.is_relative_to(root):
            below = target.relative_to(root).parts
            if not any(part[0] in "._" for part in below):
                return True
    if os.path.exists(text):
        return False
    beside, pattern = os.path.split(text)
    if pattern == "**":  # stands for files at any depth
        return any(target.is_relative_to(os.path.realpath(one)) for one in matches)
    hidden = target.name.startswith(".") and not pattern.startswith(".")
    return (
        not hidden
        and fnmatch.fnmatchcase(target.name, pattern)
        and any(
            os.path.realpath(one) == str(target.parent)
            for one in (glob.glob(beside, recursive=True) if beside else [os.curdir])
        )
    )
