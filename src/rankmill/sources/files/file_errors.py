"""Open files for pyarrow's readers, and turn their errors into one that names the file."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from rankmill.errors import InputError, is_shortage
from rankmill.io.stores.store_objects import failure, is_of_store
from rankmill.sources.files.files import File, check_unchanged

REMEDY = "Write or fetch the file again"

# A failed request for more bytes than this, and more than so many times the size of the file, comes
# from a broken length in the file.
LARGE = 1 << 30
# No compression makes one byte of more than so many.
MOST_TIMES = 1_000_000
# A part of a file may take so many bytes whatever the limit of memory.
SMALL = 1 << 26
TIMES = 1000

Identity = tuple[int, int, int, int]


@contextmanager
def native(file: File) -> Iterator[Any]:
    """Open a file so that threads can read it without Python's lock.

    It is not mapped into memory: if another process cut the file, a read of the map would end this
    process.
    """
    with file.opened() as opened:
        if isinstance(opened, pa.NativeFile):
            yield opened
        else:
            with pa.OSFile(os.fsencode(file.path)) as same:  # a name need not be UTF-8
                yield same


@contextmanager
def blamed(file: File, identity: Identity, what: str) -> Iterator[None]:
    """Raise InputError for an error of pyarrow in a file; `what` is the part that is read."""
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, IndexError, OverflowError) as error:
        if not _asks_too_much(error, identity) and is_shortage(
            error, f"reading {file.name}, {what}"
        ):
            raise
        if file.filesystem is not None and is_of_store(error):
            raise InputError(f"{file.name} cannot be read: {failure(file.name, error)}") from None
        check_unchanged(file, identity)
        if isinstance(error, OSError) and error.errno:  # a system error, such as a broken disk
            raise InputError(f"{file.name} cannot be read: {os.strerror(error.errno)}") from None
        raise broken(file, f"{what} cannot be read: {first_line(error)}") from None


def broken(file: File, what: str, identity: Identity | None = None) -> InputError:
    """Return the error for a file that breaks the rules of its format; raise if it has changed."""
    if identity is not None:
        check_unchanged(file, identity)
    return InputError(f"{file.name} is broken: {what}. {REMEDY}")


def check_room(file: File, what: str, size: int, memory: int) -> None:
    """Raise InputError if a part of a file, which is held whole, takes more than `memory` bytes.

    Compressed, it may take a thousandth of that, so it is asked for before it is decompressed.
    """
    if size > MOST_TIMES * file.identity()[2]:
        raise broken(file, f"{what} cannot be read: its lengths add up to {size:,} bytes")
    if size > max(memory, SMALL):
        raise InputError(
            f"{file.name}: {what} takes {size:,} bytes without its compression, which are held "
            f"whole, but --memory allows {memory:,}: allow more, or write smaller parts"
        )


def _asks_too_much(error: BaseException, identity: Identity) -> bool:
    """Whether so much memory was asked for that a length in the file must be wrong."""
    if not isinstance(error, MemoryError):
        return False
    found = re.search(r"size (\d+)", str(error))
    size = int(found[1]) if found else 0
    return size > max(LARGE, TIMES * identity[2]) or "capacity too large" in str(error)


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or the name of its type if the message is empty."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
