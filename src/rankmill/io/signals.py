"""End a command on Ctrl-C, SIGTERM or SIGHUP: print one line, remove temporary files, exit.

The process ends inside the signal handler; no exception is raised. An exception could come while
modules load, could be lost in a callback, and would wait for every thread. Therefore `finally` does
not run, and no file with a name may rely on it: such a file is listed in `leftovers` as long as it
exists.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # importing typing would delay the moment when Ctrl-C is handled
if TYPE_CHECKING:
    from types import FrameType

ENDING = {
    number: word
    for name, word in (("SIGINT", "interrupted"), ("SIGTERM", "terminated"), ("SIGHUP", "hung up"))
    for number in [getattr(signal, name, None)]  # some systems lack some of these signals
    if number is not None
}
"""The signals that end a command, and the word for each in the last line of the command."""

leftovers: set[str] = set()
"""The paths of temporary files, which must be removed before the process ends."""

NOTHING = "; nothing written"

_written = False
_printing = False
_begun = NOTHING


def end_on_signals() -> None:
    """Let each signal of `ENDING` end this process, unless its parent made it ignore the signal.

    For example, the background jobs of a shell ignore SIGINT, and nohup makes a command ignore
    SIGHUP.
    """
    for number in ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)


def message(number: int) -> str:
    """Return the line that says which signal came and whether output was written."""
    return f"error: {ENDING[signal.Signals(number)]}{so_far()}"


def so_far() -> str:
    """Return the end of an error message, which says whether output was written."""
    if _written:
        return "; by then all files were written"
    return "" if _printing else _begun


def begun(told: str = NOTHING) -> None:
    """Record that a command begins and has written no output, or what else is to be told of it."""
    global _written, _printing, _begun
    _written = _printing = False
    _begun = told


def written() -> None:
    """Record that all output files are in place; the command may still have to print."""
    global _written
    _written = True


def has_written() -> bool:
    """Return whether all output files are in place."""
    return _written


def printing() -> None:
    """Record that the command begins to print; printed output cannot be taken back."""
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
        return  # the files are written, and the command is about to end by itself
    remove_leftovers()
    for other in ENDING:
        signal.signal(other, signal.SIG_DFL)  # writing the line may block: the next signal kills
    try:
        show_cursor = "\r\x1b[2K\x1b[?25h" if os.isatty(2) else ""
        os.write(2, f"{show_cursor}{message(number)}\n".encode())
    except OSError:
        pass
    os._exit(128 + number)
