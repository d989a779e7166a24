"""The file system of a URL: pyarrow's where it has one, else that of fsspec."""

from __future__ import annotations

import os
from functools import cache
from typing import Any, NamedTuple

from rankmill.errors import RankmillError, UsageError, is_shortage
from rankmill.io.stores.failures import failure
from rankmill.io.stores.urls import Url, parse, shown

# How long requests are repeated: a store that does not answer is an error within seconds.
GCS_SECONDS = 10
_PYARROW = ("s3", "gs", "abfs", "abfss", "hdfs", "viewfs")


class Stored(NamedTuple):
    """A place in a store.

    Attributes
    ----------
    filesystem : pyarrow.fs.FileSystem
    path : str
        The path in this file system.
    name : str
        The URL in messages and results, without credentials.
    url : Url
        Its parts.
    """

    filesystem: Any
    path: str
    name: str
    url: Url


def stored(url: str) -> Stored:
    """Find the file system of a URL and the path in it; only S3 may be asked, for a region.

    Raises
    ------
    UsageError
        If the URL makes no sense, or a package is missing that its scheme needs.
    InputError
        If the store cannot be reached.
    """
    parts, name = parse(url), shown(url)
    if "::" in url or parts.scheme not in _PYARROW:
        from rankmill.io.stores.fsspec_files import open_fsspec

        filesystem, path = open_fsspec(url, name, parts.scheme)
        return Stored(filesystem, path, name, parse(name))
    if not parts.host and parts.scheme not in ("hdfs", "viewfs"):
        raise UsageError(f"{name} names no bucket; expected {parts.scheme}://BUCKET/PATH")
    if ":" in parts.user or (parts.scheme == "s3" and parts.user):
        raise UsageError(
            f"{name} was given with credentials in the URL; expected none: programs and logs would "
            "see them. Set them in the environment or in the files of the store's own tools"
        )
    # A process may run for long: new credentials in the environment count.
    environment = hash(tuple(sorted(one for one in os.environ.items() if "AWS_" in one[0])))
    filesystem, base = _filesystem(parts._replace(path=""), environment)
    path = "/".join(part for part in (base.strip("/"), parts.path.strip("/")) if part)
    return Stored(filesystem, f"/{path}" if base.startswith("/") else path, name, parse(name))


def bucket_of(place: Stored) -> str:
    """The bucket, or the first folder, of a path in a store."""
    return place.path.partition("/")[0]


@cache
def _filesystem(root: Url, environment: int) -> tuple[Any, str]:
    """The file system of pyarrow for a bucket, and the path that stands for the bucket."""
    name = f"{root.scheme}://{root.host}"
    from pyarrow.fs import FileSystem

    try:
        if root.scheme == "s3":
            from rankmill.io.stores.s3 import open_s3

            return open_s3(root), root.host
        user = f"{root.user}@" if root.user else ""
        query = root.query
        if root.scheme == "gs" and "retry_limit_seconds" not in query:
            query += f"{'&' * bool(query)}retry_limit_seconds={GCS_SECONDS}"
        found: tuple[Any, str] = FileSystem.from_uri(
            f"{root.scheme}://{user}{root.host}{'/' * (not root.host)}{'?' * bool(query)}{query}"
        )
        return found
    except RankmillError:
        raise
    except Exception as error:
        if is_shortage(error, f"opening {name}"):
            raise
        missing = "libjvm" in str(error) or "libhdfs" in str(error)
        reason = (
            "a Hadoop client is needed, with its JAVA_HOME, HADOOP_HOME and CLASSPATH"
            if missing
            else failure(name, error)
        )
        raise UsageError(f"{name} cannot be opened: {reason}") from None
