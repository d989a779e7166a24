"""Files written whole or not at all: a temporary file beside the target, fsync, rename."""

from __future__ import annotations

import os
import secrets
import signal
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from rankmill.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_target", "write_atomically", "write_files", "write_table", "write_text"]

# What these resolve to may be a regular file (a shell's `> file`), which its owner holds open:
# replacing that file by another would lose what is written to it.
_OPEN_ELSEWHERE = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")


def check_target(path: str | Path) -> None:
    """Raise UsageError if a file could not be written at `path`; nothing is changed.

    Meant for the start of a long run, whose result should not be lost to a mistyped folder.
    """
    if not str(path):
        raise UsageError("cannot write to '': the name of the output file is empty")
    if _is_written_directly(path):
        return
    target = Path(os.path.realpath(path))
    folder = target.parent
    if not os.path.exists(folder):
        raise UsageError(
            f"cannot write to {path}: there is no folder {folder}; "
            "make it first, or choose another place"
        )
    if not os.path.isdir(folder):
        raise UsageError(f"cannot write to {path}: {folder} is a file, not a folder")
    if os.path.isdir(target):
        raise UsageError(f"cannot write to {path}: it is a folder; give the name of a file in it")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            f"cannot write to {path}: no permission to make files in the folder {folder}; "
            "choose another place"
        )
    try:
        target.stat()
    except FileNotFoundError:
        return
    except OSError as error:  # a name that is too long, for one
        raise UsageError(_failure(path, error)) from error
    if not os.access(target, os.W_OK):
        raise UsageError(
            f"cannot write to {path}: it is write-protected; choose another name or remove it first"
        )


@contextmanager
def write_atomically(path: str | Path) -> Iterator[Path]:
    """Yield an empty temporary file that becomes `path` when the block ends without an exception.

    Readers of `path` see the old content or the new one, never a part of it. On an exception, be it
    KeyboardInterrupt, the temporary is removed and `path` is as it was. A symbolic link is followed
    and stays. A target that is no regular file (a pipe, /dev/null) is yielded itself.

    Raises
    ------
    UsageError
        If the file cannot be made or put into place.
    """
    with _write_together([path]) as (temporary,):
        yield temporary


def write_text(path: str | Path, text: str) -> None:
    """Write a text in UTF-8, whole or not at all; UsageError if that cannot be done."""
    write_files([(path, text)])


def write_table(path: str | Path, table: pa.Table) -> None:
    """Write a table as Parquet, whole or not at all; UsageError if that cannot be done."""
    write_files([(path, table)])


def write_files(contents: Sequence[tuple[str | Path, str | pa.Table]]) -> None:
    """Write several texts and tables, and put them into place only once all are complete."""
    with _write_together([path for path, _ in contents]) as temporaries:
        for (path, content), temporary in zip(contents, temporaries, strict=True):
            try:
                _fill(temporary, content)
            except BrokenPipeError:
                raise
            except OSError as error:
                raise UsageError(_failure(path, error)) from error


def _fill(temporary: Path, content: str | pa.Table) -> None:
    # Appending, because /dev/stdout may be a log that already holds something.
    with open(temporary, "ab") as file:
        if isinstance(content, str):
            # Names of files need not be valid UTF-8; Python carries the rest as lone surrogates.
            file.write(content.encode("utf-8", "backslashreplace"))
        else:
            import pyarrow.parquet as pq

            pq.write_table(content, file)


@contextmanager
def _write_together(paths: Sequence[str | Path]) -> Iterator[list[Path]]:
    """Yield a temporary for each path; rename all of them at the end, or remove all of them."""
    for path in paths:
        check_target(path)
    targets: list[Path] = []
    temporaries: list[Path] = []
    for path in paths:
        if _is_written_directly(path):
            targets.append(Path(path))
            temporaries.append(Path(path))
        else:
            target = Path(os.path.realpath(path))
            targets.append(target)
            temporaries.append(target.parent / f".rankmill-{secrets.token_hex(8)}.tmp")
    renames = [
        (path, temporary, target)
        for path, temporary, target in zip(paths, temporaries, targets, strict=True)
        if temporary != target
    ]
    try:
        _each(renames, _create)
        yield temporaries
        _each(renames, lambda temporary, _: _flush_to_disk(temporary))
        with _interrupts_held():
            _each(renames, os.replace)
        for folder in {target.parent for _, _, target in renames}:
            _flush_folder_to_disk(folder)
    finally:
        for _, temporary, _ in renames:
            temporary.unlink(missing_ok=True)


def _each(
    renames: list[tuple[str | Path, Path, Path]], action: Callable[[Path, Path], object]
) -> None:
    for path, temporary, target in renames:
        try:
            action(temporary, target)
        except OSError as error:
            raise UsageError(_failure(path, error)) from error


def _create(temporary: Path, target: Path) -> None:
    """Make the temporary with the permissions that open(target, "w") would leave."""
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    os.close(descriptor)
    if target.exists():
        os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))


def _flush_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush_folder_to_disk(folder: Path) -> None:
    # Some systems cannot open or flush a folder. The file is in place by now: no failure.
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let no Ctrl-C come between two renames; one that comes is dropped, as all is written then."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python delivers signals to the main thread only.
        return

    def ignore(number: int, frame: FrameType | None) -> None:
        pass

    before = signal.signal(signal.SIGINT, ignore)
    try:
        yield
    finally:
        if before is not None:  # None: set by something other than Python, out of our reach
            signal.signal(signal.SIGINT, before)


def _is_written_directly(path: str | Path) -> bool:
    """Tell whether a target is a device, pipe or open stream, which a file must not replace."""
    if str(path).startswith(_OPEN_ELSEWHERE):
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _failure(path: str | Path, error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"cannot write to {path}: {reason}; choose another place"
