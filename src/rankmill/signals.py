"""What Ctrl-C, SIGTERM and SIGHUP do to a command: one line, nothing left behind, its exit code.

A command ends where the signal finds it, without an exception that climbs up: one may come while
modules load, or be lost in a callback, and would wait for every thread on its way. So nothing that
has a name may depend on a `finally`; what must have one stands in `leftovers` while it is there.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # as typing has it; what is loaded here delays the answer to a Ctrl-C
if TYPE_CHECKING:
    from types import FrameType

__all__ = [
    "ENDING",
    "begun",
    "end_on_signals",
    "leftovers",
    "message",
    "printing",
    "remove_leftovers",
    "so_far",
    "written",
]

ENDING = {
    number: word
    for name, word in (("SIGINT", "interrupted"), ("SIGTERM", "terminated"), ("SIGHUP", "hung up"))
    for number in [getattr(signal, name, None)]  # not every system has all
    if number is not None
}
"""The signals that end a command, and how its last line says so."""

leftovers: set[str] = set()
"""The paths of files that are there for now, and must not outlive the process."""

_written = False
_printing = False


def end_on_signals() -> None:
    """Let each signal of `ENDING` end this process, but one that its parent made it ignore.

    A shell has its background jobs ignore SIGINT, nohup those it starts SIGHUP.
    """
    for number in ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)


def message(number: int) -> str:
    """The line that tells which signal came, and what had been done by then."""
    return f"error: {ENDING[signal.Signals(number)]}{so_far()}"


def so_far() -> str:
    """What is done so far, as the end of a line that tells of an untimely end."""
    if _written:
        return "; by then all files were written"
    return "" if _printing else "; nothing written"


def begun() -> None:
    """Note that a command begins, of which nothing is done yet."""
    global _written, _printing
    _written = _printing = False


def written() -> None:
    """Note that all output files are in place: but for what is printed yet, the command is done."""
    global _written
    _written = True


def printing() -> None:
    """Note that output leaves the process, so that no signal can make it undone."""
    global _printing
    _printing = True


def remove_leftovers() -> None:
    """Remove the files that must not outlive the process."""
    for path in list(leftovers):
        try:  # noqa: SIM105 - contextlib takes time to load
            os.unlink(path)
        except OSError:
            pass


def _end(number: int, frame: FrameType | None) -> None:
    if _written and not _printing:
        return  # too late to undo anything, and the command ends by itself now
    remove_leftovers()
    for other in ENDING:
        signal.signal(other, signal.SIG_DFL)  # should nobody read the line, the next one ends it
    try:
        show_cursor = "\r\x1b[2K\x1b[?25h" if os.isatty(2) else ""
        os.write(2, f"{show_cursor}{message(number)}\n".encode())
    except OSError:
        pass
    os._exit(128 + number)
