"""The process around a command: its standard streams, its warnings, and its end."""

from __future__ import annotations

import errno
import os
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, TextIO

import click

from rankmill import signals
from rankmill.errors import shortage
from rankmill.results.escaping import visible_message

__all__ = [
    "EXIT_CODES",
    "end",
    "is_folder_gone",
    "is_terminal",
    "prepare",
    "shortage_message",
    "why_output_fails",
]

EXIT_CODES = """
\b
Exit codes:
  0    done
  2    wrong usage, as an unknown metric
  3    wrong input data, or a metric without a value
  4    too little memory, threads, open files or room on disk
  130  interrupted by Ctrl-C
  143  terminated (SIGTERM); 129 if the terminal was closed (SIGHUP)
"""
"""Part of each command's help; 1 would be a bug."""


def prepare() -> None:
    """Make streams and warnings behave as those of a command, not of a Python script."""
    _open_missing_streams()
    _spare_address_space()
    warnings.showwarning = _show_warning
    # A thread that ends because it finds no memory for its first step is waited for without end.
    sys.unraisablehook = _ending_if_out_of_memory(sys.__unraisablehook__)
    threading.excepthook = _ending_if_out_of_memory(threading.__excepthook__)


def _spare_address_space() -> None:
    """Let Arrow not take a gigabyte of address space in advance where that is limited.

    What finds none in C++ code, of Arrow or of numba's compiler, ends the process at once.
    """
    with suppress(ImportError, OSError):  # not every system has such limits
        import resource

        if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
            os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a standard stream, which may be missing, is a terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def why_output_fails() -> str | None:
    """Return why standard output cannot be written to, None if it can or if that is not known."""
    if sys.stdout is None:
        return "it is closed"
    try:
        sys.stdout.flush()  # fails again if it failed before
        os.write(sys.stdout.fileno(), b"")
    except BrokenPipeError:
        return None  # its reader has seen enough, which is no error
    except OSError as error:
        if error.errno is None:  # a stream without a file, as in a test or a notebook
            return None
        return "it is closed" if error.errno == errno.EBADF else (error.strerror or str(error))
    except ValueError:
        return "it is closed"
    return None


def is_folder_gone() -> bool:
    """Tell whether the working folder was removed, so that no relative path leads anywhere."""
    try:
        os.getcwd()
    except OSError:
        return True
    return False


def end(code: int) -> NoReturn:
    """End the process at once.

    An orderly end would wait for every worker thread, here and in Arrow, complain about a standard
    output that is closed or full, and take a tenth of a second to tear down what was imported.
    """
    signals.remove_leftovers()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    os._exit(code)


# What the machine may have too little of -> how that is put, and what to do.
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
        "Make room, or set TMPDIR to a folder that has some.",
    ),
    "a temporary folder": (
        "no folder for temporary files",
        "Set TMPDIR to a folder that can be written to.",
    ),
}


def shortage_message(error: BaseException) -> str | None:
    """What to say where an error tells that the machine has too little of something, else None."""
    found = shortage(error)
    if found is None:
        return None
    what, cause = found
    title, advice = _SHORTAGES[what]
    details = [*str(cause).strip().splitlines()[:1], *getattr(cause, "__notes__", [])]
    detail = f" ({visible_message('; '.join(details))})" if details else ""
    return f"error: {title}{detail}{signals.so_far()}\n{advice}"


def _ending_if_out_of_memory(usual: Callable[[Any], object]) -> Callable[[Any], None]:
    """Make a hook for exceptions that no code could take, of Python's usual one."""

    def hook(failed: Any) -> None:
        found = shortage(failed.exc_value)
        if found is not None and found[0] == "memory":
            with suppress(OSError):
                click.echo(shortage_message(failed.exc_value), err=True)
            end(4)
        usual(failed)

    return hook


def _open_missing_streams() -> None:
    """Open the standard streams that the caller closed (`>&-`), so that no other file takes them.

    What is written to standard output then fails, as it would have; the others are empty.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            flags = os.O_WRONLY if name == "stderr" else os.O_RDONLY
            os.open(os.devnull, flags)  # takes the lowest free number: this descriptor
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
    with suppress(OSError):  # nobody reads it: the run goes on
        click.echo(f"warning: {visible_message(str(message))}", err=True)
