"""Interpret and check command-line arguments: inputs, names of systems, outputs, sizes."""

from __future__ import annotations

import fnmatch
import glob
import itertools
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from rankmill.cli.process import output_failure
from rankmill.cli.suffixes import STANDARD_OUTPUT, check_names
from rankmill.errors import InputError, UsageError
from rankmill.results import files as writing
from rankmill.stores.opened import opened
from rankmill.stores.urls import is_url, local_path, redacted, shown

MOST_DIGITS = 30  # the most digits in a size, which is far more than any memory needs
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_UNITS |= {f"{unit}IB": size for unit, size in _UNITS.items() if unit}
_UNITS |= {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


class ChoiceOrPairs(click.Choice[str]):
    """One of some texts, or pairs such as "1=3,2=7", which are checked later."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text as it is if it holds pairs."""
        return str(value) if "=" in str(value) else super().convert(value, param, ctx)


def parse_size(context: click.Context, parameter: click.Parameter, text: str) -> int:
    """Return a size as a number of bytes: 500MB is 500,000,000; 2GiB and 2G are 2 * 2**30."""
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
    """Return the input that an argument names: one path or glob, or a list of paths and globs.

    Raises
    ------
    UsageError
        If the argument, or a name between its commas, is empty.
    """
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
    """Return a short, unique name for each input of predictions.

    The name is that of the file. If several files have the same name, enough folders are put in
    front of the names to make them different.

    Raises
    ------
    UsageError
        If an input is given more than once.
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
    from rankmill.sources.formats import without_suffix

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


def check_outputs(
    output: str | None, inputs: Sequence[str | list[str]], **others: str | None
) -> None:
    """Check before a long run that its outputs can be written and overwrite no input.

    Parameters
    ----------
    output
        The file of -o; None is standard output.
    inputs
    **others
        The files of other options by their names, such as `per_query`; None where not given.

    Raises
    ------
    UsageError
        If an output file cannot be written, is one of the inputs, is in a place where the next run
        would read it as an input, or has a suffix of no format that it could have.
    """
    printed = output is None or STANDARD_OUTPUT in others.values()
    failed = output_failure() if printed else None
    if failed is not None:
        raise failed
    given = {"o": output, **others}
    if any(path and os.path.isfile(os.path.realpath(local_path(path))) for path in given.values()):
        _open_files(inputs)
    for path in given.values():
        if path in (None, STANDARD_OUTPUT):
            continue
        writing.check_target(path)
        if is_url(path):
            _check_url_is_no_input(path, _flat(inputs))
            continue
        path = local_path(path)
        for text in _flat(inputs):
            if not is_url(text) and _would_be_read(path, text):
                raise UsageError(
                    f"cannot write to {path}: the next run over {text} would read it as an input; "
                    "choose another folder"
                )
    named = [(name, path) for name, path in given.items() if path not in (None, os.devnull)]
    for (one, path), (other, same) in itertools.combinations(named, 2):
        if _same_place(str(path), str(same)):
            both = " and ".join(f"-{'-' * (len(n) > 1)}{n.replace('_', '-')}" for n in (one, other))
            raise UsageError(f"{both} are the same file, {shown(str(path))}: give two names")
    check_names(output, others)


def catalogue_sources(options: Mapping[str, Any]) -> list[str | list[str]]:
    """Return the inputs that these options and --by name, which no output may replace."""
    named = [options[name] for name in ("train", "items", "features") if options[name] is not None]
    if options.get("by"):
        from rankmill.compare.cutting import cuts_of

        named += cuts_of(options["by"]).tables
    return named


def _same_place(one: str, other: str) -> bool:
    if is_url(one) or is_url(other):
        return shown(one) == shown(other)
    one, other = local_path(one), local_path(other)
    linked = os.path.isfile(one) and os.path.isfile(other) and os.path.samefile(one, other)
    return linked or os.path.realpath(one) == os.path.realpath(other)


def _check_url_is_no_input(url: str, inputs: Sequence[str]) -> None:
    """Raise UsageError if an output in a store is an input, or if the next run would read it."""
    from rankmill.sources.formats import format_of_name
    from rankmill.sources.remote import matches

    name = shown(url)
    for text in filter(is_url, inputs):
        read = shown(text).rstrip("/")
        if name == read:
            raise UsageError(
                f"cannot write to {name}: it is one of the inputs; choose another name"
            )
        below = name.removeprefix(f"{read}/").split("/")
        hidden = any(part[:1] in ("", ".", "_") for part in below)
        within = name.startswith(f"{read}/") and not hidden and format_of_name(name) is not None
        if within or matches(name.split("/"), read.split("/")):
            raise UsageError(
                f"cannot write to {name}: the next run over {read} would read it as an input; "
                "choose another folder"
            )


def _open_files(inputs: Sequence[str | list[str]]) -> None:
    """Take note of all files of the inputs, before they are opened, for `check_target`.

    What is not among the inputs here is known once it is opened: before anything is written. An
    input that is not there is an error then.
    """
    from rankmill.sources.files import find_files
    from rankmill.sources.spool import is_pipe

    local = [path for path in _flat(inputs) if not is_url(path)]
    for path in filter(is_pipe, local):
        opened(path)
    for path in local:
        with suppress(InputError):
            find_files([] if is_pipe(path) else [path])


def _flat(inputs: Sequence[str | list[str]]) -> list[str]:
    return [path for one in inputs for path in ([one] if isinstance(one, str) else one)]


def _would_be_read(path: str, text: str) -> bool:
    """Tell whether the input `text`, if it is a folder or a glob, would include a file `path`."""
    from rankmill.sources.formats import format_of_name

    target = Path(os.path.realpath(path))
    if os.path.exists(target) and not os.path.isfile(target):
        return False  # a device or a pipe is not replaced by a file
    matches = [text] if os.path.exists(text) else glob.glob(text, recursive=True)
    for folder in filter(os.path.isdir, matches):
        root = Path(os.path.realpath(folder))
        if format_of_name(target.name) is not None and target.is_relative_to(root):
            below = target.relative_to(root).parts
            if not any(part[0] in "._" for part in below):
                return True
    if os.path.exists(text):
        return False
    beside, pattern = os.path.split(text)
    if pattern == "**":  # this pattern matches files at any depth
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
