"""The file system of a URL, pyarrow's where it has one, else that of fsspec; and uploads to it."""

import os
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache, partial
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from rankmill.errors import InputError, RankmillError, UsageError, is_shortage
from rankmill.io.stores.store_objects import failure
from rankmill.io.stores.urls import Url, parse, shown
from rankmill.threads import Task, Workers

# How long requests are repeated: a store that does not answer is an error within seconds.
GCS_SECONDS = 10
_PYARROW = ("s3", "gs", "abfs", "abfss", "hdfs", "viewfs")

# How often a request is sent at most, and how long a connection may take: a store that does not
# answer is an error within seconds.
ATTEMPTS = 4
CONNECT_SECONDS = 3
METADATA_SECONDS = 1
_PARAMETERS = ("region", "scheme", "endpoint_override")


class Stored(NamedTuple):
    """A place in a store."""

    filesystem: Any  # of pyarrow
    path: str  # in this file system
    name: str  # the URL in messages and results, without credentials
    url: Url


def stored(url: str) -> Stored:
    """Find the file system of a URL and the path in it; only S3 may be asked, for a region."""
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


def open_s3(root: Url) -> Any:
    """The file system for a bucket; credentials come from the environment and AWS's own files."""
    from pyarrow import fs

    given = dict(parse_qsl(root.query))
    if given.keys() - set(_PARAMETERS):
        unknown = ", ".join(sorted(given.keys() - set(_PARAMETERS)))
        raise UsageError(
            f"the URL of the bucket {root.host} has the parameters {unknown}; expected "
            f"only {', '.join(_PARAMETERS)}, as in s3://BUCKET/PATH?region=eu-west-1"
        )
    endpoint = given.get("endpoint_override")
    endpoint = endpoint or _first_of("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    region = given.get("region") or _first_of("AWS_REGION", "AWS_DEFAULT_REGION")
    with _metadata_asked_only_where_it_answers():
        # A store that is no AWS has no regions, but signatures hold one.
        region = region or ("us-east-1" if endpoint else fs.resolve_s3_region(root.host))
        return fs.S3FileSystem(
            region=region,
            endpoint_override=endpoint,
            scheme=given.get("scheme"),
            connect_timeout=CONNECT_SECONDS,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
            # An upload that is cut off before its first bytes then leaves nothing behind.
            allow_delayed_open=True,
        )


def _first_of(*names: str) -> str | None:
    """The value of the first environment variable that is set, or None."""
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


@contextmanager
def _metadata_asked_only_where_it_answers() -> Iterator[None]:
    """Let AWS's library ask the machine's metadata service only if it is needed and answers.

    Off AWS, the library waits for it for 20 seconds, even where all is known without it.
    """
    name = "AWS_EC2_METADATA_DISABLED"
    told = name in os.environ
    if told or (not os.environ.get("AWS_ACCESS_KEY_ID") and _metadata_answers()):
        yield
        return
    os.environ[name] = "true"
    try:
        yield
    finally:
        os.environ.pop(name, None)


def _metadata_answers() -> bool:
    import http.client

    told = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or "http://169.254.169.254"
    with suppress(OSError, http.client.HTTPException, ValueError):
        host, port = urlsplit(told).hostname or "", urlsplit(told).port
        with closing(http.client.HTTPConnection(host, port, timeout=METADATA_SECONDS)) as asked:
            asked.request("GET", "/latest/meta-data/")
            asked.getresponse()  # also an answer that refuses
            return True
    return False


# ------------------------------------------------------------------ uploads

# An object of these appears when its upload completes. In others a file could be seen half
# written, so it gets a name of its own first.
_WHOLE = ("s3", "gs", "abfs", "abfss")
_BETTER = "give the name of an object in it"


def check_url(url: str) -> None:
    """Raise UsageError if an object could not be written, as far as that shows without writing."""
    parts, name = parse(url), shown(url)
    if parts.is_web:
        raise UsageError(
            f"cannot write to {name}: a web server only gives files; expected a file, or a store "
            "such as s3://"
        )
    if not parts.path or url.endswith("/"):
        raise UsageError(f"cannot write to {name}: it is a folder; {_BETTER}")
    with _writing(name):
        place = stored(url)
        _check_place(place)


def _check_place(place: Stored) -> None:
    from pyarrow.fs import FileSelector, FileType

    within: list[Any] = []
    bucket = bucket_of(place)
    try:
        # A listing is answered with the reason if it is refused; a question for one object is not.
        with suppress(NotADirectoryError, FileNotFoundError):
            selector = FileSelector(place.path, allow_not_found=True)
            within = place.filesystem.get_file_info(selector)
        has_buckets = place.url.scheme in _WHOLE
        if has_buckets and place.filesystem.get_file_info(bucket).type == FileType.NotFound:
            raise UsageError(
                f"cannot write to {place.name}: there is no bucket {bucket!r}; make it first, or "
                "name another"
            )
    except OSError as error:
        if "ACCESS_DENIED" not in str(error):  # who may only write may not ask
            raise
    if within:
        raise UsageError(f"cannot write to {place.name}: it is a folder; {_BETTER}")


def upload(file: BinaryIO, url: str) -> None:
    """Send a complete file to a URL; raise UsageError if that fails.

    pyarrow completes an upload when its stream is closed or freed, be it by an exception. So all
    bytes are given to the stream at once, and in a thread that no signal interrupts.
    """
    with _writing(shown(url)), Workers(1) as sender:
        sending = Task(partial(_send, file, stored(url)))
        sender.begin(sending)
        sending.result()


def _send(file: BinaryIO, place: Stored) -> None:
    import mmap

    import pyarrow as pa

    folder, _, last = place.path.rpartition("/")
    hidden = f"{folder}/.rankmill-{secrets.token_hex(8)}-{last}"
    path = place.path if place.url.scheme in _WHOLE else hidden
    size = os.fstat(file.fileno()).st_size
    if path is hidden and folder:
        place.filesystem.create_dir(folder, recursive=True)
    content = pa.py_buffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
    try:
        stream = place.filesystem.open_output_stream(path)
        stream.write(content)
        stream.close()
        if path is hidden:
            place.filesystem.move(hidden, place.path)
    except BaseException:
        if path is hidden:
            with suppress(Exception):
                place.filesystem.delete_file(hidden)
        raise


@contextmanager
def _writing(name: str) -> Iterator[None]:
    """Raise UsageError, which names the output and says what failed, for any error of a store."""
    try:
        yield
    except UsageError:
        raise
    except InputError as error:  # tells what failed, in terms of reading
        raise UsageError(f"cannot write to {name}: {error}") from None
    except Exception as error:
        if is_shortage(error, f"writing {name}"):
            raise
        raise UsageError(
            f"cannot write to {name}: {failure(name, error)}; choose another place"
        ) from None
