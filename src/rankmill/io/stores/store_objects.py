"""An object of a store as a binary file, and how to tell that it was replaced."""

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeVar

from rankmill.io.stores.failures import reading
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
