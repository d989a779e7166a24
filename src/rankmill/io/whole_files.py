"""Files written whole or not at all: a file without a name, fsync, a name for it, rename."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import secrets
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from rankmill.errors import UsageError, is_shortage
from rankmill.io import signals
from rankmill.io.stores.urls import is_opened, is_url, local_path, shown
from rankmill.threads import apart

if TYPE_CHECKING:
    import pyarrow as pa

    Content: TypeAlias = str | bytes | pa.Table | Callable[[BinaryIO], object] | None
    import pyarrow as pa

# What these resolve to may be a regular file (a shell's `> file`), which its owner holds open:
# replacing that file by another would lose what is written to it.
_OPEN_ELSEWHERE = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")


def check_target(path: str | Path) -> None:
    """Raise UsageError if a file could not be written at a path or URL; nothing is changed.

    Meant for the start of a long run, whose result should not be lost to a mistyped folder. Inputs
    that the command has opened are no targets.
    """
    if not str(path):
        raise UsageError("cannot write to '': the name of the output file is empty")
    if is_url(str(path)):
        from rankmill.io.stores.filesystems import check_url

        check_url(str(path))
    if is_opened(str(path)):
        raise UsageError(
            f"cannot write to {shown(str(path))}: it is one of the inputs; choose another name"
        )
    if is_url(str(path)):
        return
    path = local_path(str(path))
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


def write_files(contents: Sequence[tuple[str | Path, Content]]) -> None:
    """Write texts, tables and bytes, or what functions write to a file, once all are complete.

    Readers of a path see the old content or the new one, never a part of it. On an exception, be it
    KeyboardInterrupt, everything is as it was. A symbolic link is followed and stays; a file that
    is replaced leaves its permissions to the new one. A URL gets its object when all contents are
    complete, before the files are put into place. A target that is no regular file (a pipe,
    /dev/null) is written to itself, when all others are complete. A path whose content is None is a
    folder, which is made if it is missing.
    """
    with ExitStack() as made:
        for path in [path for path, content in contents if content is None]:
            made.enter_context(_folder_for_files(path))
        _write_files([one for one in contents if one[1] is not None])


def _write_files(contents: Sequence[tuple[str | Path, Content]]) -> None:
    contents = [(local_path(str(path)), content) for path, content in contents]
    for path, _ in contents:
        check_target(path)
    remote = [(str(path), content) for path, content in contents if is_url(str(path))]
    local = [(path, content) for path, content in contents if not is_url(str(path))]
    direct = [(path, content) for path, content in local if _is_written_directly(path)]
    others = [(path, content) for path, content in local if not _is_written_directly(path)]
    with _complete_files([path for path, _ in others]) as files, ExitStack() as stack:
        sent = [stack.enter_context(tempfile.TemporaryFile()) for _ in remote]
        for (path, content), file in zip([*others, *remote], [*files, *sent], strict=True):
            with _told(path):
                _fill(file, content, path)
                file.flush()
        if remote:
            from rankmill.io.stores.filesystems import upload

            for (path, _), file in zip(remote, sent, strict=True):
                upload(file, path)
        for path, content in direct:
            signals.printing()
            # Appending, because /dev/stdout may be a log that already holds something.
            with _told(path), open(path, "ab") as file:
                _fill(file, content, path)


@contextmanager
def _folder_for_files(folder: str | Path) -> Iterator[None]:
    """Make a folder if it is missing; on an exception it goes again, if it is empty."""
    if os.path.isdir(folder):
        yield
        return
    with _told(folder):
        Path(folder).mkdir(exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # another process wrote a file to it
            os.rmdir(folder)
        raise


def _fill(file: BinaryIO, content: Content, path: str | Path) -> None:
    if callable(content):
        content(file)
    elif isinstance(content, bytes):
        file.write(content)
    elif isinstance(content, str):
        # Names of files need not be valid UTF-8; Python carries the rest as lone surrogates.
        file.write(content.encode("utf-8", "backslashreplace"))
    else:
        write_by_suffix(file, content, path)


@contextmanager
def _complete_files(paths: Sequence[str | Path]) -> Iterator[Sequence[BinaryIO]]:
    """Yield an empty file for each path; put all into place at the end, or none on an exception."""
    targets = [Path(os.path.realpath(path)) for path in paths]
    # A name for the moment between that of no file and that of the target.
    hidden = [str(target.parent / f".rankmill-{secrets.token_hex(8)}.tmp") for target in targets]
    with ExitStack() as stack:
        stack.callback(_remove, hidden)
        for folder in {target.parent for target in targets}:
            _clear(folder)
        files = []
        for path, target, name in zip(paths, targets, hidden, strict=True):
            with _told(path):
                # An interrupt behind os.open would leave its descriptor open.
                files.append(apart(partial(_opened, target, name)))
                stack.callback(_close, files[-1])
        yield files
        for path, file in zip(paths, files, strict=True):
            with _told(path):
                file.flush()
                os.fsync(file.fileno())
        with _signals_held():
            for path, file, name in zip(paths, files, hidden, strict=True):
                with _told(path):
                    _link(file, name)
            for path, name, target in zip(paths, hidden, targets, strict=True):
                with _told(path):
                    os.replace(name, target)
            for folder in {target.parent for target in targets}:
                _flush_folder_to_disk(folder)
            if paths:
                signals.written()


def _opened(target: Path, hidden: str) -> BinaryIO:
    return open(_new_file(target, hidden), "wb")


def _new_file(target: Path, hidden: str) -> int:
    """Open a file in the target's folder, with the permissions that open(target, "w") would leave.

    It has no name where the system can do so, and goes with the process, even by kill -9.
    """
    try:
        file = os.open(target.parent, os.O_TMPFILE | os.O_WRONLY, 0o666)
        if not os.path.exists(_nameless(file)):
            os.close(file)
            raise FileNotFoundError
    except (AttributeError, OSError):  # no such flag, a file system without it, or no /proc
        signals.leftovers.add(hidden)
        file = os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    with suppress(OSError):  # a file system without locks
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if target.exists():
        os.fchmod(file, stat.S_IMODE(target.stat().st_mode))
    return file


def _clear(folder: Path) -> None:
    """Remove the files that dead processes left; those of living ones are locked.

    One without a byte may be of a living one that is about to lock it, unless it is a minute old.
    """
    for path in folder.glob(".rankmill-*.tmp"):
        with suppress(OSError), open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = os.fstat(file.fileno())
            if found.st_size or found.st_mtime < time.time() - 60:
                os.unlink(path)


def _nameless(file: int) -> str:
    """The path that leads to an open file without a name."""
    return f"/proc/self/fd/{file}"


def _link(file: BinaryIO, hidden: str) -> None:
    """Give a file its hidden name, if it has none yet."""
    if hidden not in signals.leftovers:
        # With a descriptor for a folder, Python asks for the link to be followed (linkat).
        number = file.fileno()
        os.link(_nameless(number), hidden, src_dir_fd=number, follow_symlinks=True)


def _close(file: BinaryIO) -> None:
    with suppress(OSError):  # tries to write once more what it could not: that was told
        file.close()


def _remove(hidden: Sequence[str]) -> None:
    for name in hidden:
        with suppress(FileNotFoundError):
            os.unlink(name)
        signals.leftovers.discard(name)


def _flush_folder_to_disk(folder: Path) -> None:
    # Some systems cannot open or flush a folder. The file is in place by now: no failure.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Let no signal come between two renames.

    A Ctrl-C that comes is dropped, as all is written then; the others are to end the process, and
    get to do so afterwards.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python delivers signals to the main thread only.
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in signals.ENDING}
    # None: set by something other than Python, out of our reach.
    held = [number for number, how in before.items() if how not in (None, signal.SIG_IGN)]
    try:
        for number in held:
            signal.signal(number, lambda number, frame: came.append(number))
        yield
    finally:
        for number in held:
            signal.signal(number, before[number])
        for number in came:
            if number != signal.SIGINT:
                signal.raise_signal(number)


@contextmanager
def _told(path: str | Path) -> Iterator[None]:
    """Turn an OSError into an error that names the output, but where another place is no help."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if is_shortage(error, f"writing {shown(str(path))}"):
            raise
        raise UsageError(_failure(path, error)) from error


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
    return f"cannot write to {shown(str(path))}: {reason}; choose another place"


# ------------------------------------------------------------------ tables

# So many rows are text at a time.
ROWS = 1 << 16


def suffix_of(path: str | Path) -> str:
    """Return the suffix of a path or URL in lower case."""
    return Path(shown(str(path))).suffix.lower()


def check_table_name(path: str | Path, more: Sequence[str] = ()) -> None:
    """Raise UsageError unless a suffix tells in which format a table is written to a path.

    `more` are suffixes that are taken, too.
    """
    if suffix_of(path) not in (*more, *_WRITERS):
        place = "standard output" if str(path) == "-" else shown(str(path))
        raise UsageError(
            f"cannot write a table to {place}: the suffix sets the format; expected a name that "
            f"ends in {', '.join([*more, NAMED])}"
        )


def write_by_suffix(file: BinaryIO, table: pa.Table, path: str | Path) -> None:
    """Write a table to an open file in the format of a path's suffix; without one it is Parquet."""
    _WRITERS.get(suffix_of(path), _write_parquet)(file, table)


def _write_parquet(file: BinaryIO, table: pa.Table) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, file)


def _write_arrow(file: BinaryIO, table: pa.Table) -> None:
    import pyarrow as pa

    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _write_csv(file: BinaryIO, table: pa.Table) -> None:
    for rows in _rows(table, [table.column_names]):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows(rows)  # ids as they are, so that they join: no guard against formulas
        file.write(text.getvalue().encode())


def _write_lines(file: BinaryIO, table: pa.Table) -> None:
    for rows in _rows(table, []):
        objects = (dict(zip(table.column_names, row, strict=True)) for row in rows)
        lines = [json.dumps(one, allow_nan=False) + "\n" for one in objects]
        file.write("".join(lines).encode())


def _rows(table: pa.Table, first: list[Any]) -> Iterator[Any]:
    """Yield the rows of a table in parts, with bytes as text; before them `first`."""
    yield first
    for batch in table.to_batches(max_chunksize=ROWS):
        columns = (column.to_pylist() for column in batch.columns)
        yield zip(*([_text(cell) for cell in column] for column in columns), strict=True)


def _text(cell: Any) -> Any:
    return cell.decode("utf-8", "backslashreplace") if isinstance(cell, bytes) else cell


_WRITERS: dict[str, Callable[[BinaryIO, pa.Table], None]] = {
    **dict.fromkeys((".parquet", ".parq", ".pq"), _write_parquet),
    ".csv": _write_csv,
    **dict.fromkeys((".jsonl", ".ndjson"), _write_lines),
    **dict.fromkeys((".arrow", ".feather"), _write_arrow),
}
SUFFIXES = tuple(_WRITERS)
NAMED = ".parquet, .csv, .jsonl, .arrow or .feather"
"""The suffixes that messages and help name."""
