"""Find the files that paths, URLs, globs, folders and pipes stand for, and open them."""

import fnmatch
import glob
import itertools
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

from rankmill.errors import InputError, UsageError, is_shortage
from rankmill.io.overflow import on_disk, temporary_file
from rankmill.io.stores import store_objects
from rankmill.io.stores.filesystems import Stored, bucket_of, stored
from rankmill.io.stores.store_objects import reading
from rankmill.io.stores.urls import STANDARD_INPUT, is_url, local_path, opened
from rankmill.records import record
from rankmill.sources.files.formats import files_of_one_format, format_of_name
from rankmill.sources.files.tables import (
    check_no_parts,
    is_below,
    part_of_table,
    table_kind,
    tables_among,
)

COPIED_AT_ONCE = 1 << 20


@record(frozen=True)
class File:
    """A file to read."""

    name: str  # in messages and results
    path: str  # on the disk, or in the file system
    folders: dict[str, str] = field(default_factory=dict)  # columns by their names, key=value
    filesystem: Any = None  # of pyarrow, for a store; None for the local disk
    listed: tuple[int, int, int, int] | None = None  # its identity when it was found, if known
    encoding: str = ""  # of its text, if the caller named one; otherwise it is UTF-8
    block: int | None = None  # how many bytes of its text are read at a time, if that is told
    table: str = ""  # the format of a table, if this is its folder

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Open the file for reading bytes."""
        if self.filesystem is not None:
            with store_objects.opened(self.filesystem, self.path, self.name) as remote:
                yield remote
            return
        with open(self.path, "rb") as file:
            yield file

    def identity(self) -> tuple[int, int, int, int]:
        """Numbers that change if the file is replaced or written to; the third is its size."""
        if self.filesystem is not None:
            return store_objects.identity(self.filesystem, self.path, self.name)
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
            found += _find_remote(path, told)
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
    check_no_parts(matches)
    for match in matches:
        base = Path(match) if exists else _fixed(path)
        if Path(match).is_dir():
            for file, kind in _files_of_directory(match, told):
                yield File(file, file, table=kind) if kind else _file(file, base)
        else:
            yield _file(match, base.parent if exists else base)


def _file(path: str, base: Path) -> File:
    return File(path, path, _columns_between(base, os.path.dirname(path)))


@lru_cache(1 << 8)  # thousands of files stand in one folder
def _columns_between(base: Path, folder: str) -> dict[str, str]:
    return _columns_of(Path(folder).relative_to(base).parts)


def _columns_of(folders: Sequence[str]) -> dict[str, str]:
    """The columns that folders named key=value give."""
    keys = [folder.partition("=") for folder in folders if "=" in folder]
    return {unquote(key): unquote(value) for key, _, value in keys}


def _fixed(pattern: str) -> Path:
    """The folders of a glob before its first wildcard."""
    return Path(*itertools.takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts))


def _files_of_directory(directory: str, told: str | None) -> list[tuple[str, str]]:
    """The tables of a directory on the disk, and the files that `files_of_one_format` chooses."""
    root = Path(directory)
    tables: list[tuple[str, str]] = []
    found: list[tuple[str, tuple[str, ...]]] = []
    for folder, below, names in os.walk(root):
        if kind := table_kind(folder):
            tables.append((folder, kind))
            below.clear()
            continue
        inner = Path(folder)
        start, parts = str(inner / "_")[:-1], inner.relative_to(root).parts
        found += [
            (start + name, (*parts, name))
            for name in names
            if format_of_name(name) is not None and os.path.isfile(start + name)
        ]
    found.sort(key=lambda one: one[1])
    files = files_of_one_format(directory, found, told) if found or not tables else []
    return [*sorted(tables), *((file, "") for file in files)]


# ------------------------------------------------------------------ stores


def _find_remote(url: str, told: str | None) -> list[File]:
    """The objects that a URL, a glob or a folder of a store stands for; sorted by name.

    Hidden names are passed over, as on the disk.
    """
    place = stored(url)
    if glob.has_magic(place.path) and not place.url.is_web:
        return _find_by_glob(place, told)
    with reading(place.name):
        info = place.filesystem.get_file_info(place.path)
    if info.is_file:
        return [_object(place, info, ())]
    if info.type.name == "Directory":
        return _files_below(place, place.path, told, place.path)
    raise _missing(place, "there is no object")


def _missing(place: Stored, kind: str) -> InputError:
    bucket = bucket_of(place)
    if bucket and bucket != place.path and not place.url.is_web:
        with reading(place.name):
            info = place.filesystem.get_file_info(bucket)
        if info.type.name == "NotFound":
            return InputError(f"{place.name} cannot be read: there is no bucket {bucket!r}")
    return InputError(f"{kind} {place.name}; expected an object, a glob or a folder")


def _find_by_glob(place: Stored, told: str | None) -> list[File]:
    parts = place.path.split("/")
    fixed = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    base, pattern = "/".join(parts[:fixed]), parts[fixed:]
    found: dict[str, File] = {}
    listed = _listed(place, base, len(pattern) > 1 or pattern[0] == "**")
    tables = tables_among(info.path for info in listed)
    for info in listed:
        below = _below(info.path, base)
        if not matches(below, pattern):
            continue
        if info.is_file:
            for folder, kind in tables.items():
                if is_below(info.path, [folder]):
                    raise part_of_table(info.path, folder, kind)
            found[info.path] = _object(place, info, below[:-1])
        elif info.type.name == "Directory":
            found |= {one.path: one for one in _files_below(place, info.path, told, base)}
    if not found:
        raise _missing(place, "no object matches")
    return [found[path] for path in sorted(found)]


def matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the parts of a path match those of a glob, as `glob.glob` has it.

    Examples
    --------
    >>> matches(["day=1", "a.parquet"], ["*", "*.parquet"])
    True
    >>> matches(["x", "y", "a.parquet"], ["**", "*.parquet"]), matches([".a"], ["*"])
    (True, False)
    """
    if not pattern:
        return not parts
    if pattern[0] == "**":
        deeper = bool(parts) and not parts[0].startswith(".") and matches(parts[1:], pattern)
        return deeper or matches(parts, pattern[1:])
    return (
        bool(parts)
        and fnmatch.fnmatchcase(parts[0], pattern[0])
        and (pattern[0].startswith(".") or not parts[0].startswith("."))
        and matches(parts[1:], pattern[1:])
    )


def _listed(place: Stored, folder: str, recursive: bool) -> list[Any]:
    """What a folder of a store holds; nothing if there is no such folder."""
    from pyarrow.fs import FileSelector

    with reading(place.name):
        found: list[Any] = place.filesystem.get_file_info(
            FileSelector(folder, allow_not_found=True, recursive=recursive)
        )
    return found


def _files_below(place: Stored, folder: str, told: str | None, base: str) -> list[File]:
    """The files of a folder; the folders below `base` give columns."""
    infos = _listed(place, folder, True)
    files = {info.path: info for info in infos if info.is_file and _below(info.path, folder)[-1]}
    tables = tables_among(files)
    of_tables = [
        File(_name(place, path), path, filesystem=place.filesystem, table=kind)
        for path, kind in sorted(tables.items())
    ]
    found = [(path, _below(path, folder)) for path in sorted(files) if not is_below(path, tables)]
    if tables and not found:
        return of_tables
    chosen = files_of_one_format(_name(place, folder), found, told)
    return of_tables + [_object(place, files[path], _below(path, base)[:-1]) for path in chosen]


def _below(path: str, folder: str) -> list[str]:
    return path.strip("/")[len(folder.strip("/")) :].strip("/").split("/")


def _name(place: Stored, path: str) -> str:
    """The URL of another path of the same store."""
    root = place.name[: len(place.name) - len(place.url.path)]
    own, other = place.path.strip("/"), path.strip("/")
    # What the file system puts before the path of the URL, such as the name of the bucket.
    before = own[: len(own) - len(place.url.path.strip("/"))]
    below = other.removeprefix(before).lstrip("/")
    return f"{root}{below}" if root.endswith("/") else f"{root}/{below}"


def _object(place: Stored, info: Any, folders: Sequence[str]) -> File:
    name = place.name if info.path == place.path else _name(place, info.path)
    listed = None if info.size is None or info.mtime_ns is None else store_objects.identity_of(info)
    return File(name, info.path, _columns_of(folders), place.filesystem, listed)


# ------------------------------------------------------------------ pipes


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
    # This path opens the file anew, with a position of its own.
    anew = f"/proc/self/fd/{file.name}" if isinstance(file.name, int) else str(file.name)
    return File(name, anew), file
