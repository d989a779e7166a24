"""Find the files that paths, globs, directories and pipes stand for, and open them."""

import glob
import itertools
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

from rankmill.errors import InputError, UsageError, is_shortage
from rankmill.io.overflow import on_disk, temporary_file
from rankmill.io.stores.read_paths import STANDARD_INPUT, opened
from rankmill.io.stores.urls import is_url, local_path
from rankmill.sources.files.formats import files_of_one_format, format_of_name

COPIED_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class File:
    """A file to read."""

    name: str  # in messages and results
    path: str  # on the disk, or in the file system
    folders: dict[str, str] = field(default_factory=dict)  # columns by their names, key=value
    filesystem: Any = None  # of pyarrow, for a store; None for the local disk
    listed: tuple[int, int, int, int] | None = None  # its identity when it was found, if known
    encoding: str = ""  # of its text, if the caller named one; otherwise it is UTF-8
    block: int | None = None  # how many bytes of its text are read at a time, if that is told

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Open the file for reading bytes."""
        if self.filesystem is not None:
            from rankmill.io.stores.store_objects import opened

            with opened(self.filesystem, self.path, self.name) as remote:
                yield remote
            return
        with open(self.path, "rb") as file:
            yield file

    def identity(self) -> tuple[int, int, int, int]:
        """Numbers that change if the file is replaced by another file or is written to.

        The third is its size in bytes.
        """
        if self.filesystem is not None:
            from rankmill.io.stores.store_objects import identity

            return identity(self.filesystem, self.path, self.name)
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
    glob before the first wildcard. Other folder names are ignored. The names of files in
    directories have to tell their format, unless it is `told`.
    """
    found: list[File] = []
    for path in map(local_path, paths):
        if not path:
            raise UsageError("a path is empty; expected a file, a glob or a folder")
        if is_url(path):
            from rankmill.sources.files.remote import find_remote

            found += [
                File(one.name, one.path, columns_of(one.folders), one.filesystem, one.identity)
                for one in find_remote(path, told)
            ]
            continue
        try:
            found += _find(path, told)
        except OSError as error:
            if is_shortage(error, f"looking for {path}"):
                raise
            raise InputError(f"{path} cannot be opened: {error.strerror or error}") from None
    for file in found:
        opened(file.name)
    return found


def _find(path: str, told: str | None) -> Iterator[File]:
    exists = Path(path).exists()
    matches = [path] if exists else sorted(glob.glob(path, recursive=True))
    if not matches:
        kind = "no file matches" if glob.has_magic(path) else "no such file or folder:"
        raise InputError(f"{kind} {path}; expected a file, a glob or a folder")
    for match in matches:
        base = Path(match) if exists else _fixed(path)
        if Path(match).is_dir():
            for file in _files_of_directory(match, told):
                yield _file(file, base)
        else:
            yield _file(match, base.parent if exists else base)


def _file(path: str, base: Path) -> File:
    return File(path, path, _columns_between(base, os.path.dirname(path)))


@lru_cache(1 << 8)  # thousands of files stand in one folder
def _columns_between(base: Path, folder: str) -> dict[str, str]:
    return columns_of(Path(folder).relative_to(base).parts)


def columns_of(folders: Sequence[str]) -> dict[str, str]:
    """The columns that folders named key=value give."""
    keys = [folder.partition("=") for folder in folders if "=" in folder]
    return {unquote(key): unquote(value) for key, _, value in keys}


def _fixed(pattern: str) -> Path:
    """The folders of a glob before its first wildcard."""
    return Path(*itertools.takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts))


def _files_of_directory(directory: str, told: str | None) -> list[str]:
    """The files of a directory on the disk, as `files_of_one_format` chooses them."""
    root = Path(directory)
    found: list[tuple[str, tuple[str, ...]]] = []
    for folder, _, names in os.walk(root):
        inner = Path(folder)
        start, parts = str(inner / "_")[:-1], inner.relative_to(root).parts
        found += [
            (start + name, (*parts, name))
            for name in names
            if format_of_name(name) is not None and os.path.isfile(start + name)
        ]
    found.sort(key=lambda one: one[1])
    return files_of_one_format(directory, found, told)


def is_pipe(path: str) -> bool:
    """Whether a path stands for standard input or for a pipe, which can be read only once."""
    return path == STANDARD_INPUT or (os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode))


def spool(path: str) -> tuple[File, IO[bytes]]:
    """Copy standard input or a pipe to a temporary file; the caller closes it.

    A file can be read in any order, several times, and by several threads. The temporary file has
    no name if the system allows it, so it disappears however the process ends.
    """
    name = "standard input" if path == STANDARD_INPUT else path
    if path == STANDARD_INPUT and sys.stdin.isatty():
        raise UsageError("standard input is a terminal; expected a file or a pipe: ... | rankmill")
    opened(path)
    file = temporary_file(name)
    try:
        with on_disk(name):
            if path == STANDARD_INPUT:
                shutil.copyfileobj(sys.stdin.buffer, file, COPIED_AT_ONCE)
            else:
                with open(path, "rb") as pipe:
                    shutil.copyfileobj(pipe, file, COPIED_AT_ONCE)
            file.flush()
    except BaseException:
        file.close()
        raise
    return File(name, _path_of(file)), file


def _path_of(file: Any) -> str:
    """A path that opens the file anew, with a position of its own."""
    name = file.name
    return f"/proc/self/fd/{name}" if isinstance(name, int) else str(name)
