"""An object of a store as a binary file, and how to tell that it was replaced."""

import errno
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeVar

from rankmill.errors import InputError, RankmillError, is_shortage
from rankmill.io.stores.urls import parse, redacted
from rankmill.threads import Task, Workers

Value = TypeVar("Value")
Identity = tuple[int, int, int, int]

# An object that is read from its start to its end is asked for in ranges of this size.
READ_BYTES = 1 << 22


def identity_of(info: Any) -> Identity:
    """The size of an object and when it was written, in the form of `File.identity`."""
    return 0, 0, info.size, info.mtime_ns or 0


def identity(filesystem: Any, path: str, name: str) -> Identity:
    """Ask the store for the identity of an object; raise FileNotFoundError if it is gone."""
    with reading(name):
        info = filesystem.get_file_info(path)
    if not info.is_file:
        raise FileNotFoundError(errno.ENOENT, "there is no such object")
    return identity_of(info)


def open_ranges(filesystem: Any, path: str, name: str) -> Any:
    """An object as an open file of pyarrow, of which any range can be read."""
    with reading(name):
        return filesystem.open_input_file(path)


def is_read_by_threads(filesystem: Any) -> bool:
    """Whether threads can read one open file side by side; files of fsspec have a lock."""
    return not str(filesystem.type_name).startswith("py::")


def beside(work: Callable[..., Value], *arguments: Any) -> Task[Value]:
    """Let another thread ask a store something; the caller goes on, and awaits the answer later."""
    task = Task(partial(work, *arguments))
    _waiting().begin(task)
    return task


@cache
def _waiting() -> Workers:
    return Workers(16)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_waiting.cache_clear)  # a child has none of the threads


@contextmanager
def opened(filesystem: Any, path: str, name: str) -> Iterator[Any]:
    """Open an object for reading bytes, a large range at a time."""
    with (
        open_ranges(filesystem, path, name) as source,
        io.BufferedReader(_Bytes(source, name), READ_BYTES) as reader,
    ):
        yield reader


class _Bytes(io.RawIOBase):
    """The bytes of an open object; errors name it."""

    def __init__(self, source: Any, name: str) -> None:
        self._source, self._name = source, name

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._source.seek(offset, whence))

    def tell(self) -> int:
        return int(self._source.tell())

    def readall(self) -> bytes:
        """The rest at once: io would ask for a few KB at a time."""
        with reading(self._name):
            return bytes(self._source.read())

    def readinto(self, buffer: Any) -> int:
        with reading(self._name):
            data: bytes = self._source.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


# ------------------------------------------------------------------ what errors mean

# Where the credentials of a store come from.
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or ~/.aws/credentials",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or 'gcloud auth application-default login'",
    "abfs": "AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET, or 'az login'",
    "hdfs": "the Kerberos ticket of kinit",
    "hf": "HF_TOKEN, or 'hf auth login'",
    "https": "a signed URL, or ~/.netrc",
}
_CREDENTIALS |= {"gcs": _CREDENTIALS["gs"], "abfss": _CREDENTIALS["abfs"]}
_CREDENTIALS["http"] = _CREDENTIALS["https"]

# How pyarrow's file systems tell of a store, other than by a system error.
_OF_STORE = re.compile(r"AWS Error|google::cloud::Status|Azure|HDFS|hdfs", re.I)
_NO_BUCKET = re.compile(r"NO_SUCH_BUCKET|bucket does not exist|ContainerNotFound", re.I)
_MISSING = re.compile(r"NO_SUCH_KEY|RESOURCE_NOT_FOUND|NOT_FOUND|BlobNotFound|\b404\b")
_REFUSED = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY|SIGNATURE_DOES_NOT_MATCH|EXPIRED|INVALID_CLIENT_TOKEN|"
    r"MISSING_AUTHENTICATION|UNRECOGNIZED_CLIENT|PERMISSION_DENIED|UNAUTHENTICATED|OAuth2|"
    r"AuthenticationException|AuthenticationFailed|AuthorizationFailure|HTTP status 40[13]|"
    r"HTTP response code 40[13]|\b40[13]\b|Unauthorized|Forbidden|gated",
    re.I,
)
_ELSEWHERE = re.compile(r"HTTP status 301|PermanentRedirect|AuthorizationHeaderMalformed", re.I)
_NO_ANSWER = re.compile(
    r"NETWORK_CONNECTION|resolve host|Could not connect|Cannot connect|timed? ?out|UNAVAILABLE|"
    r"SLOW_DOWN|THROTTL|REQUEST_TIMEOUT|INTERNAL_FAILURE|HTTP status 5\d\d|\b50[0234]\b|"
    r"Disconnected|Connection (?:reset|refused|aborted)|DEADLINE|curlCode",
    re.I,
)


def is_of_store(error: BaseException) -> bool:
    """Whether an error of pyarrow tells of a store, and not of the content of a file."""
    return _OF_STORE.search(str(error)) is not None


def is_missing(error: BaseException) -> bool:
    """Whether an error says that there is no such object."""
    return isinstance(error, FileNotFoundError) or (
        _status(error) == 404 or _MISSING.search(str(error)) is not None
    )


def is_refused(error: BaseException) -> bool:
    """Whether an error says that the credentials do not give access."""
    status = _status(error)
    if status is not None:
        return status in (401, 403)
    return isinstance(error, PermissionError) or _REFUSED.search(str(error)) is not None


def failure(name: str, error: BaseException) -> str:
    """Return why something with an object failed, and what to do; `name` is its URL as shown."""
    text = f"{type(error).__name__}: {error}"
    if _NO_BUCKET.search(text):
        return f"there is no bucket {parse(name).host!r}; check the URL"
    if is_missing(error):
        return "there is no such object; check the URL"
    if is_refused(error):
        code = re.search(r"AWS Error (?!UNKNOWN)([A-Z_]+)", text)
        source = _CREDENTIALS.get(parse(name).scheme, "the environment")
        return (
            f"access was denied{f' ({code[1]})' if code else ''}: the credentials are missing, "
            f"wrong or without permission. They come from {source}"
        )
    if _ELSEWHERE.search(text):
        return "the bucket is in another region; add ?region=NAME to the URL"
    if _NO_ANSWER.search(text) or isinstance(error, (TimeoutError, ConnectionError)):
        if "it took longer" in text:
            return f"the store is too slow: {_line(error)}. Try again later, or download it"
        return (
            f"the store did not answer, also when asked again ({_line(error)}). Check the network "
            "and the URL, and try again later"
        )
    return _line(error)


def _status(error: BaseException) -> int | None:
    """The status of an answer by HTTP, if the error holds one."""
    status: Any = getattr(error, "status", None)
    return status if isinstance(status, int) else None


def _line(error: BaseException) -> str:
    """The first line of an error without credentials, cut where it gets long."""
    found = redacted((str(error).strip() or type(error).__name__).splitlines()[0]).rstrip(".")
    found = re.sub(r" \(Request ID: [^)]*\)| error_info=.*", "", found)
    return found if len(found) <= 300 else f"{found[:300]}..."


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Raise InputError, which says what failed, for any error of the store that holds `name`."""
    try:
        yield
    except RankmillError:
        raise
    except Exception as error:
        if is_shortage(error, f"reading {name}"):
            raise
        raise InputError(f"{name} cannot be read: {failure(name, error)}") from None
