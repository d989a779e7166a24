"""The process of a command: its standard streams, its warnings, and how it ends."""

import errno
import os
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, TextIO

import click

from rankmill.errors import RankmillError, ResourceError, UsageError, shortage
from rankmill.io import signals
from rankmill.io.inert_text import visible_message
from rankmill.io.stores.urls import redacted

EXIT_CODES = {
    0: "done",
    2: "wrong usage, such as an unknown metric",
    3: "wrong input data, or a metric without a value",
    4: "too little memory, threads, open files or disk space; or MLflow does not answer",
    70: "a bug in rankmill; please report it",
    130: "interrupted by Ctrl-C",
    143: "terminated (SIGTERM); 129 if the terminal was closed (SIGHUP)",
}
"""What the whole help of each command says of exit codes, unless the command has others."""

BUG = 70
"""The exit code of a mistake of rankmill. It is not 1, which 'rankmill gate' gives a bad system."""


TIME = "rankmill.time"
"""Where a context keeps the time of the run between the parsing of the command line and the run."""
FAILED = "rankmill.failed"
"""Where a context keeps what is to be done with its exit code and message if the command fails."""

quiet = False
"""Whether nothing but errors goes to standard error."""


def prepare() -> None:
    """Set up standard streams, warnings and error hooks for a command."""
    _open_missing_streams()
    _spare_address_space()
    warnings.showwarning = _show_warning
    # Spark says so once for each part of it that loads pandas, with which rankmill does nothing.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    # If a new thread fails at once for lack of memory, Python waits for that thread forever.
    # Therefore these hooks end the process.
    sys.unraisablehook = _ending_if_out_of_memory(sys.__unraisablehook__)
    threading.excepthook = _ending_if_out_of_memory(threading.__excepthook__)


def _spare_address_space() -> None:
    """Keep Arrow from reserving a gigabyte of address space if the address space is limited.

    If C++ code of Arrow or of numba's compiler finds no address space, the process ends at once.
    """
    with suppress(ImportError, OSError):  # some systems have no such limit
        import resource

        if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
            os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a standard stream, which may be missing, is a terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def output_failure() -> RankmillError | None:
    """Return the error of a standard output that cannot be written; None if it can, or unknown."""
    cannot = "cannot write to standard output"
    closed = UsageError(f"{cannot}: it is closed")
    if sys.stdout is None:
        return closed
    try:
        sys.stdout.flush()  # a flush that failed before fails again
        os.write(sys.stdout.fileno(), b"")
    except BrokenPipeError:
        return None  # the reader closed the pipe early, which is no error
    except OSError as error:
        if error.errno is None:  # the stream has no file, for example in a test or a notebook
            return None
        if error.errno == errno.EBADF:
            return closed
        kind = UsageError if shortage(error) is None else ResourceError  # a full disk
        return kind(f"{cannot}: {error.strerror or error}")
    except ValueError:
        return closed
    return None


def is_folder_gone() -> bool:
    """Tell whether the working folder was removed, which makes all relative paths invalid."""
    try:
        os.getcwd()
    except OSError:
        return True
    return False


def end(code: int) -> NoReturn:
    """Remove temporary files, flush the standard streams and end the process at once.

    A normal exit of Python would wait for every worker thread of rankmill and Arrow, print an error
    if standard output is closed or full, and need 0.1 seconds to unload the modules.
    """
    signals.remove_leftovers()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    os._exit(code)


# The resource that the machine may lack -> the title of the message, and the advice.
_SHORTAGES = {
    "memory": (
        "not enough memory",
        "A smaller --memory bounds what is held of confidences for gap, of long rows whose queries "
        "are\nscattered, and of labels of files sorted by query. Else use a machine with more, or "
        "evaluate\nthe queries in several parts.",
    ),
    "open files": (
        "too many open files",
        "Raise the limit (see 'ulimit -n'), or use fewer --threads.",
    ),
    "threads": (
        "no more threads can be started",
        "Use fewer --threads, or raise the limit (see 'ulimit -u' and -v, or that of a container).",
    ),
    "room": (
        "no room left on disk",
        "Make room, or write to another place; TMPDIR names the folder of temporary files.",
    ),
    "a temporary folder": (
        "no folder for temporary files",
        "Set TMPDIR to a folder that can be written to.",
    ),
}


def shortage_message(error: BaseException) -> str | None:
    """The message for an error whose cause is a shortage, else None."""
    found = shortage(error)
    if found is None:
        return None
    what, cause = found
    title, advice = _SHORTAGES[what]
    details = [*str(cause).strip().splitlines()[:1], *getattr(cause, "__notes__", [])]
    detail = f" ({visible_message(redacted('; '.join(details)))})" if details else ""
    return f"error: {title}{detail}{signals.so_far()}\n{advice}"


def _ending_if_out_of_memory(usual: Callable[[Any], object]) -> Callable[[Any], None]:
    """Wrap Python's usual hook for uncaught exceptions: a lack of memory ends the process."""

    def hook(failed: Any) -> None:
        found = shortage(failed.exc_value)
        if found is not None and found[0] == "memory":
            with suppress(OSError):
                click.echo(shortage_message(failed.exc_value), err=True)
            end(4)
        usual(failed)

    return hook


def _open_missing_streams() -> None:
    """Open the standard streams that the caller closed (`>&-`), to keep their numbers occupied.

    Otherwise the next opened file would become the standard stream. Writing to this standard output
    still fails; standard input is empty, and standard error discards its text.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            flags = os.O_WRONLY if name == "stderr" else os.O_RDONLY
            os.open(os.devnull, flags)  # the system uses the lowest free number: this descriptor
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, mode, closefd=False))  # noqa: SIM115


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if quiet:
        return
    with suppress(OSError):  # a warning that cannot be written does not end the run
        click.echo(f"warning: {visible_message(redacted(str(message)))}", err=True)
