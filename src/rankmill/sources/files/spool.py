"""Files for what can be read only once: standard input, pipes, and streams."""

import os
import shutil
import stat
import sys
from typing import IO, Any

from rankmill.errors import UsageError
from rankmill.io.overflow import on_disk, temporary_file
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


def _path_of(file: Any) -> str:
    """A path that opens the file anew, with a position of its own."""
    name = file.name
    return f"/proc/self/fd/{name}" if isinstance(name, int) else str(name)
