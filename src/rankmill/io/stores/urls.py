"""URLs of objects in stores, what of them may be shown, and what a command opened to read.

A URL may hold credentials before an `@` and in its query (a signed URL), so every name, message and
result has what `shown` leaves of it.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import unquote

# fsspec chains protocols by "::", as in zip://run.parquet::https://host/run.zip.
_SCHEME = re.compile(r"(?:\w+::)*([A-Za-z][A-Za-z0-9+.\-]+)://")
_CHAIN = re.compile(r"::(?=[A-Za-z][A-Za-z0-9+.\-]+://)")
_PORT = re.compile(r":\d*$")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+://[^\s'\"<>]+")
# In other URLs a question mark may be a wildcard: s3://bucket/run-?.parquet.
_QUERY = re.compile(r"\?[\w.\-]+=|\?$")
# A host of these may have a port; in other URLs a colon parts a user from a password.
_WITH_PORT = {"http", "https", "hdfs", "viewfs", "webhdfs", "ftp", "sftp", "ssh", "smb"}
# What stands before the @ of these is the name of a container, or says that there is no user.
_CONTAINER = {"abfs", "abfss"}


class Url(NamedTuple):
    """The parts of a URL; `user` holds a password too, if there is one."""

    scheme: str
    user: str
    host: str
    path: str
    query: str

    @property
    def is_web(self) -> bool:
        """Whether a web server answers, which knows neither folders nor wildcards."""
        return self.scheme in ("http", "https")


def is_url(text: str) -> bool:
    """Whether a text is a URL of a store: a scheme and ://, but no local file and no file://.

    Examples
    --------
    >>> is_url("s3://bucket/run.parquet"), is_url("run.parquet"), is_url("file:///tmp/run.parquet")
    (True, False, False)
    """
    found = _SCHEME.match(text)
    return found is not None and found[1].lower() != "file" and not os.path.exists(text)


def local_path(text: str) -> str:
    """The path of a file:// URL; any other text as it is.

    An existing path with a scheme in it becomes one that pyarrow does not take for a URL.

    Examples
    --------
    >>> local_path("file:///tmp/a%20b.parquet"), local_path("a%20b.parquet")
    ('/tmp/a b.parquet', 'a%20b.parquet')
    """
    if not _SCHEME.match(text):
        return text
    if os.path.exists(text):
        return os.path.join(os.curdir, text)
    if not text.lower().startswith("file://"):
        return text
    return unquote(text[len("file://") :].removeprefix("localhost"))


def join(folder: str, name: str) -> str:
    """The path or URL of a file in a folder; what a URL asks for stays at its end.

    Examples
    --------
    >>> join("runs", "a.parquet"), join("s3://bucket/runs/?region=eu-west-1", "a.parquet")
    ('runs/a.parquet', 's3://bucket/runs/a.parquet?region=eu-west-1')
    """
    if not is_url(folder):
        return os.path.join(folder, name)
    path, mark, query = folder.partition("?")
    return f"{path.rstrip('/')}/{name}{mark}{query}"


def parse(url: str) -> Url:
    """The parts of a URL.

    Examples
    --------
    >>> parse("s3://bucket/run/a.parquet?region=eu-west-1")
    Url(scheme='s3', user='', host='bucket', path='run/a.parquet', query='region=eu-west-1')
    """
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    user, head = "", re.split(r"[/?]", rest, maxsplit=1)[0]
    if "@" in head:
        user = head.rpartition("@")[0]
        rest = rest[len(user) + 1 :]
    elif ":" in head and not (scheme in _WITH_PORT and _PORT.search(head)):
        # A password that holds a slash, which should be escaped; or the host is missing.
        user, _, rest = rest.rpartition("@") if "@" in rest else (head, "", rest[len(head) :])
    found = re.search(r"[?#]", rest) if scheme in ("http", "https") else _QUERY.search(rest)
    query = rest[found.start() + 1 :] if found else ""
    rest = rest[: found.start()] if found else rest
    host, _, path = rest.partition("/")
    return Url(scheme, user, host, path, query)


def shown(text: str) -> str:
    """A URL without credentials: no user, no password, no query; any other text as it is.

    Examples
    --------
    >>> shown("s3://key:secret@bucket/run.parquet"), shown("https://host/a.csv?X-Amz-Signature=1")
    ('s3://bucket/run.parquet', 'https://host/a.csv')
    """
    if not is_url(text):
        return text
    return "::".join(map(_shown, _CHAIN.split(text)))


def _shown(text: str) -> str:
    if not _SCHEME.match(text):
        return text
    url = parse(text)
    container = url.user.partition(":")[0] + "@" if url.scheme in _CONTAINER and url.user else ""
    slash = "/" if url.path or text.endswith("/") else ""
    return f"{url.scheme}://{container}{url.host}{slash}{url.path}"


def redacted(text: str) -> str:
    """A text in which every URL is as `shown` leaves it.

    Examples
    --------
    >>> redacted("cannot open https://me:secret@host/a.csv?key=1: 403")
    'cannot open https://host/a.csv: 403'
    """
    return _URL.sub(_without_credentials, text)


def _without_credentials(found: re.Match[str]) -> str:
    url = found[0].rstrip(".,:;)]}")
    return "::".join(map(_shown, _CHAIN.split(url))) + found[0][len(url) :]


# ------------------------------------------------------------------ what is opened to read

STANDARD_INPUT = "-"

# None: nobody asks. Not a context variable, as threads open files for the command too.
_opened: set[str] | None = None
_times = 0


@contextmanager
def gathered() -> Iterator[None]:
    """Gather what is opened within.

    A command does so. A program that calls rankmill may write later to what it has read.
    """
    global _opened
    before, _opened = _opened, set()
    try:
        yield
    finally:
        _opened = before


def opened(path: str) -> None:
    """Take note of a path, a URL, or "-" for standard input, which is opened to read."""
    global _times
    _times += 1
    if _opened is not None:
        _opened.add(path)


def times_opened() -> int:
    """Return how often something was opened so far: more than before if something was read."""
    return _times


def is_opened(target: str) -> bool:
    """Return whether to write a target would replace a file, or an object, that was opened."""
    if not _opened:
        return False
    place = place_of(target)
    # Devices and pipes are not replaced.
    there = is_url(target) or os.path.isfile(place)
    return there and place in map(place_of, _opened)


def place_of(path: str) -> str:
    """Return what two names of one file, or of one object of a store, have in common.

    A file is where it will be written: "missing/../a.csv" is a.csv. Hard links are two files, since
    a new file takes the place of a name.
    """
    if is_url(path):
        return shown(path)
    return os.path.realpath("/dev/fd/0" if path == STANDARD_INPUT else local_path(path))
