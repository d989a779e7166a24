"""Find the files that paths, URLs, globs, folders and pipes stand for, and open them."""

import fnmatch
import glob
import itertools
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

import pyarrow as pa

from rankmill.errors import InputError, UsageError, is_shortage
from rankmill.io.overflow import on_disk, temporary_file
from rankmill.io.stores import store_objects
from rankmill.io.stores.filesystems import Stored, bucket_of, stored
from rankmill.io.stores.store_objects import failure, is_of_store, reading
from rankmill.io.stores.urls import STANDARD_INPUT, is_url, local_path, opened
from rankmill.records import record
from rankmill.sources.files.formats import (
    check_no_parts,
    files_of_one_format,
    format_of_name,
    is_below,
    left_out,
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
    note: str = ""  # on others of its folder, which are not read

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
            tables, files, note = _files_of_directory(match, told)
            yield from (File(folder, folder, table=kind) for folder, kind in tables)
            yield from _noted([_file(file, base) for file in files], note)
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


def _noted(files: list[File], note: str) -> list[File]:
    return [replace(files[0], note=note), *files[1:]] if note else files


def _files_of_directory(
    directory: str, told: str | None
) -> tuple[list[tuple[str, str]], list[str], str]:
    """The tables of a directory on the disk, the files of one format, and the note on others."""
    root = Path(directory)
    tables: list[tuple[str, str]] = []
    found: list[tuple[str, tuple[str, ...]]] = []
    others: list[tuple[str, tuple[str, ...]]] = []
    for folder, below, names in os.walk(root):
        if kind := table_kind(folder):
            tables.append((folder, kind))
            below.clear()
            continue
        inner = Path(folder)
        start, parts = str(inner / "_")[:-1], inner.relative_to(root).parts
        for name in names:
            path = start + name
            # A link to nothing is no file, and a part that is missing.
            read = format_of_name(name) and (os.path.isfile(path) or os.path.islink(path))
            (found if read else others).append((path, (*parts, name)))
        links = (one for one in below if os.path.islink(start + one))  # which are not followed
        others += [(start + one, (*parts, one)) for one in links]
    found.sort(key=lambda one: one[1])
    files = files_of_one_format(directory, found, told) if found or not tables else []
    note = left_out(directory, [*found, *sorted(others)], files) if files else ""
    return sorted(tables), files, note


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
    every = [(path, _below(path, folder)) for path in sorted(files) if not is_below(path, tables)]
    found = [one for one in every if format_of_name(one[0])]
    if tables and not found:
        return of_tables
    chosen = files_of_one_format(_name(place, folder), found, told)
    note = left_out(_name(place, folder), every, chosen)
    objects = [_object(place, files[path], _below(path, base)[:-1]) for path in chosen]
    return of_tables + _noted(objects, note)


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


# ------------------------------------------------------------------ opening files, and their errors

REMEDY = "Write or fetch the file again"

# A failed request for more bytes than this, and more than so many times the size of the file, comes
# from a broken length in the file.
LARGE = 1 << 30
# No compression makes one byte of more than so many.
MOST_TIMES = 1_000_000
# A part of a file may take so many bytes whatever the limit of memory.
SMALL = 1 << 26
TIMES = 1000

Identity = tuple[int, int, int, int]


@contextmanager
def native(file: File) -> Iterator[Any]:
    """Open a file so that threads can read it without Python's lock.

    It is not mapped into memory: if another process cut the file, a read of the map would end this
    process.
    """
    with file.opened() as opened:
        if isinstance(opened, pa.NativeFile):
            yield opened
        else:
            with pa.OSFile(os.fsencode(file.path)) as same:  # a name need not be UTF-8
                yield same


@contextmanager
def blamed(file: File, identity: Identity, what: str) -> Iterator[None]:
    """Raise InputError for an error of pyarrow in a file; `what` is the part that is read."""
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, IndexError, OverflowError) as error:
        if not _asks_too_much(error, identity) and is_shortage(
            error, f"reading {file.name}, {what}"
        ):
            raise
        if file.filesystem is not None and is_of_store(error):
            raise InputError(f"{file.name} cannot be read: {failure(file.name, error)}") from None
        check_unchanged(file, identity)
        if isinstance(error, OSError) and error.errno:  # a system error, such as a broken disk
            raise InputError(f"{file.name} cannot be read: {os.strerror(error.errno)}") from None
        raise broken(file, f"{what} cannot be read: {first_line(error)}") from None


def broken(file: File, what: str, identity: Identity | None = None) -> InputError:
    """Return the error for a file that breaks the rules of its format; raise if it has changed."""
    if identity is not None:
        check_unchanged(file, identity)
    return InputError(f"{file.name} is broken: {what}. {REMEDY}")


def check_room(file: File, what: str, size: int, memory: int) -> None:
    """Raise InputError if a part of a file, which is held whole, takes more than `memory` bytes.

    Compressed, it may take a thousandth of that, so it is asked for before it is decompressed.
    """
    if size > MOST_TIMES * file.identity()[2]:
        raise broken(file, f"{what} cannot be read: its lengths add up to {size:,} bytes")
    if size > max(memory, SMALL):
        raise InputError(
            f"{file.name}: {what} takes {size:,} bytes without its compression, which are held "
            f"whole, but --memory allows {memory:,}: allow more, or write smaller parts"
        )


def _asks_too_much(error: BaseException, identity: Identity) -> bool:
    """Whether so much memory was asked for that a length in the file must be wrong."""
    if not isinstance(error, MemoryError):
        return False
    found = re.search(r"size (\d+)", str(error))
    size = int(found[1]) if found else 0
    return size > max(LARGE, TIMES * identity[2]) or "capacity too large" in str(error)


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or the name of its type if the message is empty."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


# ------------------------------------------------------------------ columns of Hive folders

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def folder_columns(files: Sequence[File], schemas: Sequence[Any]) -> list[dict[str, Any]]:
    """The columns that each file's folders give and the file does not hold, as Arrow scalars.

    A column is int64 if all its values are plain integers, else it is a string.
    """
    held = [
        {key: text for key, text in file.folders.items() if key not in schema.names}
        for file, schema in zip(files, schemas, strict=True)
    ]
    values: dict[str, set[str]] = {}
    for file, texts in zip(files, held, strict=True):
        for key, text in texts.items():
            if not f"{key}{text}".isascii():
                _check_text(f"{key}={text}", file)
            values.setdefault(key, set()).add(text)
    whole = {
        key: all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", one) for one in texts - {HIVE_NULL})
        for key, texts in values.items()
    }
    return [
        {
            key: pa.scalar(
                None if text == HIVE_NULL else int(text) if whole[key] else text,
                pa.int64() if whole[key] else pa.string(),
            )
            for key, text in texts.items()
        }
        for texts in held
    ]


def _check_text(folder: str, file: File) -> None:
    """Raise InputError if the name of a folder, which makes a column, is not UTF-8."""
    try:
        folder.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{file.name}: the name of its folder {folder!r} is not UTF-8; rename it"
        ) from None


def whole_schema(schema: Any, folders: Mapping[str, Any]) -> Any:
    """The schema of a file with the columns of its folders."""
    for key, scalar in folders.items():
        schema = schema.append(pa.field(key, scalar.type))
    return schema


def with_folders(data: Any, folders: Mapping[str, Any], columns: list[str]) -> Any:
    """A record batch with all columns, including those of the folders."""
    arrays = [
        pa.repeat(folders[name], data.num_rows) if name in folders else data.column(name)
        for name in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=columns)
