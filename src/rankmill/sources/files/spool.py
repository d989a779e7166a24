"""Files for what can be read only once: standard input, pipes, and streams."""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from rankmill.errors import ResourceError, UsageError
from rankmill.io.stores.read_paths import STANDARD_INPUT, opened
from rankmill.sources.files.files import File

COPIED_AT_ONCE = 1 << 20


def is_pipe(path: str) -> bool:
    """Whether a path stands for standard input or for a pipe, which can be read only once."""
    return path == STANDARD_INPUT or (os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode))


def spool(path: str) -> tuple[File, IO[bytes]]:
    """Copy standard input or a pipe to a temporary file; the caller closes it.

    A file can be read in any order, several times, and by several threads. The temporary file has
    no name if the system allows it, so it disappears however the process ends.

    Raises
    ------
    ResourceError
        If the temporary file cannot be written.
    UsageError
        If standard input is a terminal.
    """
    name = "standard input" if path == STANDARD_INPUT else path
    if path == STANDARD_INPUT and sys.stdin.isatty():
        raise UsageError("standard input is a terminal; expected a file or a pipe: ... | rankmill")
    opened(path)
    file = temporary_file(name)
    try:
        with on_disk(name):
            if path == STANDARD_INPUT:
                shutil.copyfileobj(sys.stdin.buffer, file, COPIED_AT_ONCE)
            else:
                with open(path, "rb") as pipe:
                    shutil.copyfileobj(pipe, file, COPIED_AT_ONCE)
            file.flush()
    except BaseException:
        file.close()
        raise
    return File(name, _path_of(file)), file


def temporary_file(name: str) -> IO[bytes]:
    """A new temporary file for the data of the source `name`; raises ResourceError if it fails."""
    with on_disk(name):
        if Path("/proc/self/fd").exists():
            return tempfile.TemporaryFile(prefix="rankmill-")
        return cast(IO[bytes], tempfile.NamedTemporaryFile(prefix="rankmill-"))


def _path_of(file: Any) -> str:
    """A path that opens the file anew, with a position of its own."""
    name = file.name
    return f"/proc/self/fd/{name}" if isinstance(name, int) else str(name)


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
