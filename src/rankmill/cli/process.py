"""The process around a command: its standard streams, its warnings, and its end."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from contextlib import suppress
from typing import NoReturn, TextIO

import click

from rankmill.escaping import visible_message

__all__ = ["end", "is_terminal", "prepare", "why_output_fails"]


def prepare() -> None:
    """Make streams and warnings behave as those of a command, not of a Python script."""
    _open_missing_streams()
    warnings.showwarning = _show_warning


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


def end(code: int) -> NoReturn:
    """End the process at once.

    An orderly end would wait for every worker thread, here and in Arrow, complain about a standard
    output that is closed or full, and take a tenth of a second to tear down what was imported.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    os._exit(code)


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
