"""Check the outputs of a command: their names say what they hold, and none replaces an input."""

import fnmatch
import glob
import itertools
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rankmill.cli.process import output_failure
from rankmill.errors import InputError, UsageError
from rankmill.io import whole_files as writing
from rankmill.io.stores.read_paths import opened
from rankmill.io.stores.urls import is_url, local_path, shown
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

    `others` is name of an option -> its file; those that are not known here are checked elsewhere.
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


def format_for(chosen: str | None, output: str | None, tables: tuple[str, ...] = ()) -> str:
    """Return the format asked for, else the one that the output file's suffix tells, else table.

    It raises UsageError if the suffix stands for no format of a result. `tables` are more suffixes
    that the command takes, for the message.
    """
    if chosen is not None:
        return chosen
    check_suffix(output or "", "a result", (*dict.fromkeys((*FORMAT_OF_SUFFIX, *tables)),))
    return FORMAT_OF_SUFFIX.get(suffix_of(output or ""), "table")


def check_outputs(
    output: str | None, inputs: Sequence[str | list[str]], **others: str | None
) -> None:
    """Check before a long run that its outputs can be written and overwrite no input.

    UsageError is raised if an output cannot be written, is one of the inputs, is in a place where
    the next run would read it as an input, or has a suffix of no format that it could have.

    The outputs are that of -o, where None is standard output, and of `others` by their names.
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
        from rankmill.engine.cuts import chosen, cuts_of

        named += [chosen(table)[0] for table in cuts_of(options["by"]).tables]
    return named


def _same_place(one: str, other: str) -> bool:
    if is_url(one) or is_url(other):
        return shown(one) == shown(other)
    one, other = local_path(one), local_path(other)
    linked = os.path.isfile(one) and os.path.isfile(other) and os.path.samefile(one, other)
    return linked or os.path.realpath(one) == os.path.realpath(other)


def _check_url_is_no_input(url: str, inputs: Sequence[str]) -> None:
    """Raise UsageError if an output in a store is an input, or if the next run would read it."""
    from rankmill.sources.files.files import matches
    from rankmill.sources.files.formats import format_of_name

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
    from rankmill.sources.files.files import find_files, is_pipe

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
    from rankmill.sources.files.formats import format_of_name

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
