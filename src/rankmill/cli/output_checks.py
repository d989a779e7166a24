"""Check the outputs of a command: their names say what they hold, and none replaces an input."""

import glob
import itertools
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from rankmill.cli.process import output_failure
from rankmill.config.given_inputs import source_of
from rankmill.errors import InputError, UsageError
from rankmill.io import whole_files as writing
from rankmill.io.stores.urls import is_url, local_path, opened, place_of, shown
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


def flag_of(name: str) -> str:
    """Return the name of an option as it is typed."""
    return f"-{'-' * (len(name) > 1)}{name.replace('_', '-')}"


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
    named = {name: one for name, one in {"o": output, **others}.items() if one is not None}
    read = [path for one in inputs for path in ([one] if isinstance(one, str) else one)]
    if any(is_url(one) or os.path.isfile(place_of(one)) for one in named.values()):
        _note(read)
    for path in named.values():
        if path == STANDARD_OUTPUT:
            continue
        writing.check_target(path)
        for text in read:
            if is_url(text) == is_url(path) and _would_be_read(path, text):
                raise UsageError(
                    f"cannot write to {shown(local_path(path))}: the next run over {shown(text)} "
                    "would read it as an input; choose another folder"
                )
    files = [(name, path) for name, path in named.items() if path != os.devnull]
    for (one, path), (other, same) in itertools.combinations(files, 2):
        if place_of(path) == place_of(same):
            both = f"{flag_of(one)} and {flag_of(other)}"
            raise UsageError(f"{both} are the same file, {shown(path)}: give two names")
    check_names(output, others)


def inputs_of(
    labels: str, systems: Mapping[str, str], options: Mapping[str, Any]
) -> tuple[Any, dict[str, Any], list[Any]]:
    """Return the labels, the predictions of each system, and all that is read."""
    source = source_of(labels, "LABELS")
    runs = {name: source_of(text, "PREDICTIONS") for name, text in systems.items()}
    return source, runs, [source, *runs.values(), *catalogue_sources(options)]


def catalogue_sources(options: Mapping[str, Any]) -> list[str | list[str]]:
    """Return the inputs that these options and --by name, which no output may replace."""
    named = [options[name] for name in ("train", "items", "features") if options[name] is not None]
    if options.get("by"):
        from rankmill.engine.cuts import chosen, cuts_of

        named += [chosen(table)[0] for table in cuts_of(options["by"]).tables]
    return named


def _note(inputs: Sequence[str]) -> None:
    """Take note of all files of the inputs, before they are opened, for `check_target`.

    What is not among the inputs here is known once it is opened: before anything is written. An
    input that is not there is an error then.
    """
    from rankmill.sources.files.files import find_files, is_pipe

    for path in inputs:
        if is_url(path) or is_pipe(path):
            opened(path)
            continue
        with suppress(InputError):
            find_files([path])


def _would_be_read(path: str, text: str) -> bool:
    """Tell whether an input, if it is a folder or a glob, would include a file at a path."""
    from rankmill.sources.files.files import matches
    from rankmill.sources.files.formats import format_of_name

    target = place_of(path)
    if not is_url(path) and os.path.exists(target) and not os.path.isfile(target):
        return False  # a device or a pipe is not replaced by a file
    read = place_of(text)
    pattern = (glob.escape(read) if os.path.exists(text) else read).rstrip("/").split("/")
    parts = target.split("/")
    if matches(parts, pattern):
        return True
    return format_of_name(parts[-1]) is not None and any(
        matches(parts[:n], pattern) and not any(one[:1] in ("", ".", "_") for one in parts[n:])
        for n in range(1, len(parts))
    )
