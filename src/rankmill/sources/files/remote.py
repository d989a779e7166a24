"""Find the objects that URLs, globs and folders of stores stand for."""

import fnmatch
import glob
from collections.abc import Sequence
from typing import Any, NamedTuple

from rankmill.errors import InputError
from rankmill.io.stores.failures import reading
from rankmill.io.stores.filesystems import Stored, bucket_of, stored
from rankmill.io.stores.store_objects import Identity, identity_of
from rankmill.sources.files.formats import files_of_one_format


class Object(NamedTuple):
    """An object of a store: what a `File` holds, with the folders that may be columns."""

    name: str
    path: str
    folders: Sequence[str]
    filesystem: Any
    identity: Identity | None


def find_remote(url: str, told: str | None) -> list[Object]:
    """The objects that a URL, a glob or a folder of a store stands for; sorted by name.

    Folders named key=value are columns, and hidden names are passed over, as on the disk.
    """
    place = stored(url)
    if glob.has_magic(place.path) and not place.url.is_web:
        return _find_by_glob(place, told)
    with reading(place.name):
        info = place.filesystem.get_file_info(place.path)
    if info.is_file:
        return [_object(place, info, ())]
    if info.type.name == "Directory":
        return _files_below(place, place.path, _listed(place, place.path, True), told)
    raise _missing(place, "there is no object")


def _missing(place: Stored, kind: str) -> InputError:
    bucket = bucket_of(place)
    if bucket and bucket != place.path and not place.url.is_web:
        with reading(place.name):
            info = place.filesystem.get_file_info(bucket)
        if info.type.name == "NotFound":
            return InputError(f"{place.name} cannot be read: there is no bucket {bucket!r}")
    return InputError(f"{kind} {place.name}; expected an object, a glob or a folder")


def _find_by_glob(place: Stored, told: str | None) -> list[Object]:
    parts = place.path.split("/")
    fixed = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    base, pattern = "/".join(parts[:fixed]), parts[fixed:]
    found: dict[str, Object] = {}
    infos = _listed(place, base, len(pattern) > 1 or pattern[0] == "**")
    for info in infos:
        below = _below(info.path, base)
        if not matches(below, pattern):
            continue
        if info.is_file:
            found[info.path] = _object(place, info, below[:-1])
        elif info.type.name == "Directory":
            inner = _listed(place, info.path, True)
            found |= {one.path: one for one in _files_below(place, info.path, inner, told, base)}
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


def _files_below(
    place: Stored, folder: str, infos: list[Any], told: str | None, base: str | None = None
) -> list[Object]:
    """The files of a folder; folders below `base`, or else below the folder, give columns."""
    files = {info.path: info for info in infos if info.is_file and _below(info.path, folder)[-1]}
    name = _name(place, folder)
    found = [(path, _below(path, folder)) for path in sorted(files)]
    chosen = files_of_one_format(name, found, told)
    start = folder if base is None else base
    return [_object(place, files[path], _below(path, start)[:-1]) for path in chosen]


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


def _object(place: Stored, info: Any, folders: Sequence[str]) -> Object:
    name = place.name if info.path == place.path else _name(place, info.path)
    listed = None if info.size is None or info.mtime_ns is None else identity_of(info)
    return Object(name, info.path, folders, place.filesystem, listed)
