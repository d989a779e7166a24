"""Files of fsspec's file systems, read by ranges, with retries and a limit."""

import io
import time
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from pyarrow import PythonFile
from pyarrow.fs import FileInfo, FileType, FSSpecHandler, PyFileSystem

from rankmill.errors import InputError, RankmillError, UsageError, install
from rankmill.io.stores.store_objects import failure, is_missing, is_refused, reading

Value = TypeVar("Value")

ATTEMPTS = 4
FIRST_PAUSE = 0.1
CONNECT_SECONDS = 5
READ_SECONDS = 30
# A web server may send a byte now and then without an end: one request may take so long in all,
# and asks for so many bytes at most.
WHOLE_SECONDS = 300
LARGEST_RANGE = 1 << 26
# The fields by which file systems tell that a file was replaced.
_VERSIONS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")


def open_fsspec(url: str, name: str, scheme: str) -> tuple[Any, str]:
    """The file system of fsspec for a URL, as one of pyarrow, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise UsageError(
            f"{name} cannot be opened: {scheme}:// needs the package fsspec: {install('remote')}"
        ) from None
    try:
        options = _web_options(url) if scheme in ("http", "https") else {}
        filesystem, path = url_to_fs(url, **options)
    except ImportError as error:
        raise UsageError(
            f"{name} cannot be opened: {failure(name, error)}. For {scheme}:// a package is "
            f"missing. Those for https and hf: {install('remote')}"
        ) from None
    except Exception as error:
        raise UsageError(f"{name} cannot be opened: {failure(name, error)}") from None
    return PyFileSystem(_Handler(filesystem, name)), path


def _web_options(url: str) -> dict[str, Any]:
    """Options for web servers: proxies and ~/.netrc of the environment, and limits of time."""
    import aiohttp

    limits = aiohttp.ClientTimeout(
        total=WHOLE_SECONDS, sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS
    )
    return {
        "client_kwargs": {"trust_env": True, "timeout": limits},
        "encoded": "%" in url,  # a signed URL is sent as it is
    }


def _asked(work: Callable[[], Value]) -> Value:
    """The value of work(), asked again a few times if it fails for a reason that may pass."""
    begin = time.monotonic()
    for attempt in range(ATTEMPTS):
        try:
            return work()
        except (RankmillError, MemoryError, NotImplementedError):
            raise
        except Exception as error:
            lasting = is_missing(error) or is_refused(error) or isinstance(error, _LASTING)
            if lasting or attempt == ATTEMPTS - 1:
                raise
            if time.monotonic() - begin >= WHOLE_SECONDS:
                raise TimeoutError(f"it took longer than {WHOLE_SECONDS} seconds") from error
        time.sleep(FIRST_PAUSE * 2**attempt)
    raise AssertionError("unreachable")


_LASTING = (IsADirectoryError, NotADirectoryError, TypeError, ValueError)


class _Handler(FSSpecHandler):  # type: ignore[misc]
    """pyarrow's view of a file system of fsspec, with retries and reads of exact ranges."""

    def __init__(self, filesystem: Any, name: str) -> None:
        super().__init__(filesystem)
        self.name = name
        self.sizes: dict[str, int] = {}  # of the files that were found: saves asking again

    @staticmethod
    def _create_file_info(path: str, info: dict[str, Any]) -> FileInfo:
        if info["type"] == "directory":
            return FileInfo(path, FileType.Directory)
        if info["type"] != "file":
            return FileInfo(path, FileType.Unknown)
        # Without a time, as listings know less of a file than a question for it.
        return FileInfo(path, FileType.File, size=info["size"])

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        found: list[FileInfo] = []
        for path in paths:
            self.fs.invalidate_cache()  # a listing from before says nothing of now
            try:
                info = _asked(partial(self._info, path))
            except FileNotFoundError:
                found.append(FileInfo(path, FileType.NotFound))
                continue
            found.append(self._create_file_info(path, info))
            if found[-1].is_file and info["size"] is not None:
                self.sizes[path] = info["size"]
                version = next((info[key] for key in _VERSIONS if info.get(key) is not None), "")
                # A number that changes with the file is enough: files are compared with themselves.
                time_ns = zlib.crc32(str(version).encode())
                found[-1] = FileInfo(path, FileType.File, size=info["size"], mtime_ns=time_ns)
        return found

    def _info(self, path: str) -> dict[str, Any]:
        """What the file system tells of a path; fsspec hides other errors behind a missing file."""
        try:
            info: dict[str, Any] = self.fs.info(path)
            return info
        except FileNotFoundError as error:
            cause = error.__cause__
            if cause is None or is_missing(cause):
                raise
        raise cause  # outside of the handler: else each would be the cause of the other

    def get_file_info_selector(self, selector: Any) -> list[FileInfo]:
        found: list[FileInfo] = _asked(partial(super().get_file_info_selector, selector))
        return found

    def open_input_file(self, path: str) -> Any:
        size = self.sizes.get(path)
        if size is None:
            with reading(self.name):
                size = _asked(lambda: self._info(path)["size"])
        if size is None:
            raise InputError(
                f"{self.name} cannot be read: the server does not send its size; download it first"
            )
        return PythonFile(_Ranges(self.fs, path, self.name, size), mode="r")


class _Ranges(io.RawIOBase):
    """A file of which each read asks for one range of bytes."""

    def __init__(self, filesystem: Any, path: str, name: str, size: int) -> None:
        self._filesystem, self._path, self._name, self._size = filesystem, path, name, size
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = start + offset
        return self._place

    def read(self, size: int = -1) -> bytes:
        start = min(self._place, self._size)
        end = self._size if size is None or size < 0 else min(start + size, self._size)
        if start == end:
            return b""
        parts = []
        for first in range(start, end, LARGEST_RANGE):
            last = min(first + LARGEST_RANGE, end)
            with reading(self._name):
                parts.append(_asked(partial(self._range, first, last)))
        self._place = end
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _range(self, start: int, end: int) -> bytes:
        data: bytes = self._filesystem.cat_file(self._path, start=start, end=end)
        if len(data) > end - start:
            raise InputError(
                f"{self._name} cannot be read: the server ignores which range of bytes is asked "
                "for; download the file first"
            )
        if len(data) < end - start:
            raise OSError(f"received {len(data)} of {end - start} bytes")
        return data
