"""Find the files that paths, globs and directories stand for, and open them."""

import glob
import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rankmill.errors import InputError, UsageError, is_shortage
from rankmill.sources.formats import FORMATS, format_of_name


@dataclass(frozen=True)
class File:
    """A file to read.

    Attributes
    ----------
    name : str
        The name in messages and results.
    path : str
        The path on the disk.
    folders : dict of str to str
        The columns that the names of its folders give (key=value), as text.
    """

    name: str
    path: str
    folders: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Open the file for reading bytes."""
        with open(self.path, "rb") as file:
            yield file

    def identity(self) -> tuple[int, int, int, int]:
        """Numbers that change if the file is replaced by another file or is written to.

        The third is its size in bytes.
        """
        found = os.stat(self.path)  # os.stat is twice as fast as Path.stat
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def check_unchanged(file: File, identity: tuple[int, int, int, int]) -> None:
    """Raise InputError if a file has no longer the identity that it had when it was opened.

    Callers call it after they read rows, which proves that these rows come from that file.
    """
    try:
        changed = file.identity() != identity
    except OSError:
        changed = True
    if changed:
        raise InputError(
            f"{file.name} changed while it was read: it was replaced, written to or removed. "
            "Evaluate again once it is complete"
        )


def find_files(paths: Sequence[str], told: str | None = None) -> list[File]:
    """The files that paths, globs and directories stand for; directories are sorted by name.

    A folder named key=value is a column if it is below the given directory, or below the part of a
    glob before the first wildcard. Other folder names are ignored.

    Parameters
    ----------
    paths
        At least one.
    told : str, optional
        The format of the files in directories; otherwise their names have to tell it.

    Raises
    ------
    InputError
        If a path does not exist or cannot be accessed.
    UsageError
        If a path is empty.
    """
    found: list[File] = []
    for path in paths:
        if not path:
            raise UsageError("a path is empty; expected a file, a glob or a directory")
        try:
            found += _find(path, told)
        except OSError as error:
            if is_shortage(error, f"looking for {path}"):
                raise
            raise InputError(f"{path} cannot be opened: {error.strerror or error}") from None
    return found


def _find(path: str, told: str | None) -> Iterator[File]:
    exists = Path(path).exists()
    matches = [path] if exists else sorted(glob.glob(path, recursive=True))
    if not matches:
        kind = "no file matches" if glob.has_magic(path) else "no such file or directory:"
        raise InputError(f"{kind} {path}; expected a file, a glob or a directory")
    for match in matches:
        base = Path(match) if exists else _fixed(path)
        if Path(match).is_dir():
            for file in _files_of_directory(match, told):
                yield _file(file, base)
        else:
            yield _file(match, base.parent if exists else base)


def _file(path: str, base: Path) -> File:
    folders = Path(path).parent.relative_to(base).parts
    keys = [folder.partition("=") for folder in folders if "=" in folder]
    return File(path, path, {unquote(key): unquote(value) for key, _, value in keys})


def _fixed(pattern: str) -> Path:
    """The folders of a glob before its first wildcard."""
    return Path(*itertools.takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts))


def _files_of_directory(directory: str, told: str | None) -> list[str]:
    """The files of a directory that have the format `told`, or else the one format that they have.

    Raises
    ------
    InputError
        If there is none, or if there are several formats and none is told.
    """
    root = Path(directory)
    by_format: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*")):
        kind = format_of_name(path.name)
        hidden = any(part[0] in "._" for part in path.relative_to(root).parts)
        if kind is not None and not hidden and path.is_file():
            by_format.setdefault(kind, []).append(str(path))
    if told is not None:
        by_format = {told: by_format.get(FORMATS[told].files or told, [])}
    if len(by_format) > 1:
        counts = ", ".join(f"{len(files)} of {kind}" for kind, files in by_format.items())
        raise InputError(
            f"the directory {directory} holds files of several formats: {counts}; say which to "
            "read: --labels-as or --predictions-as NAME on the command line, labels_as= or "
            "predictions_as= in Python"
        )
    files = [file for of_format in by_format.values() for file in of_format]
    if not files:
        expected = FORMATS[told] if told is not None else FORMATS["parquet"]
        more = "" if told is not None else ", or those of another format"
        raise InputError(
            f"the directory {directory} holds no file of {told or 'a known format'}; expected "
            f"names that end in {', '.join(expected.suffixes)}{more} (those that start with . or "
            "_ are passed over)"
        )
    return files
