"""Temporary files for what does not fit into memory."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import IO, Any, Self, cast

import pyarrow as pa

from rankmill.errors import ResourceError


def temporary_file(name: str) -> IO[bytes]:
    """A new temporary file for the data of the source `name`; raises ResourceError if it fails."""
    with on_disk(name):
        if Path("/proc/self/fd").exists():
            return tempfile.TemporaryFile(prefix="rankmill-")
        return cast(IO[bytes], tempfile.NamedTemporaryFile(prefix="rankmill-"))


class Overflow:
    """Bytes that do not fit into memory, in a temporary file that is made when it is needed.

    Whoever makes it closes it, with a `with` block; any thread may add and read. The file has no
    name if the system allows it, so it disappears however the process ends. Messages say `what` is
    held of the source `name`.
    """

    def __init__(self, name: str, what: str) -> None:
        self._name, self._what = name, f"{name}: {what}"
        self._file: IO[bytes] | None = None
        self._end, self._closed, self._lock = 0, False, Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, data: Any) -> tuple[int, int]:
        """Append a buffer; return what `read` takes. Raises ResourceError if that fails."""
        with self._lock, on_disk(self._what, ", or allow more memory"):
            if self._closed:  # after Ctrl-C, a thread may still be at work
                raise ValueError("the overflow is closed")
            self._file = file = self._file or temporary_file(self._name)
            if file.tell() != self._end:  # a seek would flush what was just written
                file.seek(self._end)
            size = file.write(data)
            self._end += size
            return self._end - size, size

    def read(self, place: tuple[int, int]) -> Any:
        """Return a buffer that was added."""
        assert self._file is not None
        with self._lock, on_disk(self._what, ", or allow more memory"):
            self._file.seek(place[0])
            return pa.py_buffer(self._file.read(place[1]))

    def close(self) -> None:
        """Remove the file."""
        with self._lock:
            self._closed = True
            if self._file is not None:
                with suppress(OSError):  # a late write error does no harm: nothing is needed now
                    self._file.close()


@contextmanager
def on_disk(what: str, remedy: str = "") -> Iterator[None]:
    """Raise ResourceError if a temporary file for `what` cannot be created, written or read."""
    try:
        yield
    except OSError as error:
        raise ResourceError(
            f"{what} cannot be kept in a temporary file in {tempfile.tempdir or 'any folder'}: "
            f"{error.strerror or error}. Make room there, set TMPDIR to another folder{remedy}"
        ) from None
