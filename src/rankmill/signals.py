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
    from typing import NoReturn

__all__ = ["ENDING", "begun", "end_on_signals", "leftovers", "message", "printing", "written"]

ENDING = {
    number: word
    for name, word in (("SIGINT", "interrupted"), ("SIGTERM", "terminated"), ("SIGHUP", "hung up"))
    for number in [getattr(signal, name, None)]  # not every system has all
    if number is not None
}
"""The signals that end a command, and how its last line says so."""

leftovers: set[str] = set()
"""The paths of files that are there for now, and must not outlive the process."""

_done = _NOTHING = "; nothing written"


def end_on_signals() -> None:
    """Let each signal of `ENDING` end this process, but one that its parent made it ignore.

    A shell has its background jobs ignore SIGINT, nohup those it starts SIGHUP.
    """
    for number in ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)


def message(number: int) -> str:
    """The line that tells which signal came, and what had been done by then."""
    return f"error: {ENDING[signal.Signals(number)]}{_done}"


def begun() -> None:
    """Note that a command begins, of which nothing is done yet."""
    global _done
    _done = _NOTHING


def written() -> None:
    """Note that output files are in place: from now on, a signal comes too late for them."""
    global _done
    _done = "; by then all files were written"


def printing() -> None:
    """Note that output leaves the process, so that no signal can make it undone."""
    global _done
    if _done == _NOTHING:
        _done = ""


def _end(number: int, frame: FrameType | None) -> NoReturn:
    for path in list(leftovers):
        try:  # noqa: SIM105 - contextlib takes time to load
            os.unlink(path)
        except OSError:
            pass
    for other in ENDING:
        signal.signal(other, signal.SIG_DFL)  # should nobody read the line, the next one ends it
    try:
        show_cursor = "\r\x1b[2K\x1b[?25h" if os.isatty(2) else ""
        os.write(2, f"{show_cursor}{message(number)}\n".encode())
    except OSError:
        pass
    os._exit(128 + number)
