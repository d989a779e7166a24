"""Files written to stores: complete on the disk first, then sent, whole or not at all."""

import mmap
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, BinaryIO

from rankmill.errors import InputError, UsageError, is_shortage
from rankmill.io.stores.filesystems import Stored, bucket_of, stored
from rankmill.io.stores.store_objects import failure
from rankmill.io.stores.urls import parse, shown
from rankmill.threads import Task, Workers

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
