"""Temporary files for what does not fit into memory."""

import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import IO, Any, cast

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

    The file has no name if the system allows it, so it disappears however the process ends.

    Parameters
    ----------
    name
        The source whose data it holds.
    what
        What is held, for messages.
    """

    def __init__(self, name: str, what: str) -> None:
        self._name, self._what = name, f"{name}: {what}"
        self._file: IO[bytes] | None = None
        self._end = 0

    def add(self, data: Any) -> tuple[int, int]:
        """Append a buffer; return what `read` takes. Raises ResourceError if that fails."""
        self._file = file = self._file or temporary_file(self._name)
        with on_disk(self._what, ", or allow more memory"):
            if file.tell() != self._end:  # a seek would flush what was just written
                file.seek(self._end)
            size = file.write(data)
        self._end += size
        return self._end - size, size

    def read(self, place: tuple[int, int]) -> Any:
        """Return a buffer that was added."""
        assert self._file is not None
        with on_disk(self._what, ", or allow more memory"):
            self._file.seek(place[0])
            return pa.py_buffer(self._file.read(place[1]))

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            with suppress(OSError):  # a late write error does no harm: nothing is needed any more
                self._file.close()


class SharedOverflow:
    """An overflow that several threads use. It disappears with what is in it.

    Another process has one of its own: what is in it travels as rows.
    """

    what = ""  # is held, for messages

    def __init__(self) -> None:
        self._file, self._lock = Overflow("predictions", self.what), Lock()
        weakref.finalize(self, self._file.close)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(self), ()

    def read(self, place: tuple[int, int]) -> Any:
        """Return what stands at a place."""
        with self._lock:
            return self._file.read(place)


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
