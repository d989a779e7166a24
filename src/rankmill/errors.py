"""The errors that a caller can correct. Any other error that rankmill raises is a bug in rankmill.

One exception: if the machine lacks a resource, Python's own error reaches the caller unchanged. It
is a MemoryError (also from NumPy or Arrow), an OSError with a matching errno, or a RuntimeError if
no thread can be started. The function `shortage` recognises these errors.
"""

import errno
import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

__all__ = [
    "InputError",
    "RankmillError",
    "RegressionError",
    "ResourceError",
    "UsageError",
    "install",
    "is_shortage",
    "outside",
    "plural",
    "positive",
    "shortage",
]


Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")

# Options that become parameters of another name. A test holds these, and the next, to the table.
_PARAMETERS = {
    **{"rule": "rules", "metric": "metrics", "test": "tests", "preset": "semantics"},
    **{"date": "time", "sum": "sums"},
}
# Noun of the face -> the options that become its fields; "option:field" if the names differ.
_FIELDS = {
    "Labels": "query item padding exact-ids decimal columns encoding gain weight subtopic binary "
    "labels-as:format label-query:query label-item:item label-columns:columns "
    "label-encoding:encoding",
    "Predictions": "query item padding exact-ids decimal columns encoding score rank in-order "
    "predictions-as:format",
    "Catalogue": "train items item-group:group features drop-seen",
    "Semantics": "rel depth judged-only gain-function",
    "Rules": "undecided family-confidence",
    "Tests": "correction seed",
}
_FLAGS = ("binary", "exact-ids", "in-order", "judged-only", "drop-seen")
# What stands for a value goes with its option; examples of commands stay what they are.
_OPTION = r"(?<![\w-])--([a-z][a-z-]*)(?:[= ][A-Z]+(?:,[A-Z.]+)*(?!\w)|=|(?![\w-]))"
_COMMAND = r"(rankmill [a-z-]+ --\S+)"
# A name in quotes may hold anything.
_BOTH = r"(--[a-z](?:'[^']*'|(?!, |[;:]\s).)*?) on the command line, (.+?) in Python"
_on_command_line = False


class RankmillError(Exception):
    """The base class of all errors that rankmill raises deliberately.

    In a Python program, options of the command line in its message become Python parameters.
    """

    def __str__(self) -> str:
        return spoken(super().__str__())


def speak_to_command_line(wanted: bool) -> None:
    """Say whether the reader of messages typed a command line."""
    global _on_command_line
    _on_command_line = wanted


def spoken(message: str) -> str:
    """Return a message that names options of the command line in the words of its reader.

    Examples
    --------
    >>> spoken("rule x needs a baseline: give one with --baseline")
    'rule x needs a baseline: give one with baseline='
    >>> spoken("leave out --in-order, or choose --semantics order=given")
    'leave out Predictions(in_order=True), or choose Semantics(order="given")'
    >>> spoken('use --gain "x y" on the command line, Labels(gain="x y") in Python')
    'use Labels(gain="x y")'
    """
    if "--" not in message:
        return message
    message = re.sub(_BOTH, r"\1" if _on_command_line else r"\2", message)
    if _on_command_line:
        return message
    message = re.sub(r"--semantics (\w+)=(\w+)", r'Semantics(\1="\2")', message)
    parts = re.split(_COMMAND, message)
    parts[::2] = [re.sub(_OPTION, lambda one: in_python(one[1]), one) for one in parts[::2]]
    return "".join(parts)


def in_python(option: str) -> str:
    """Return how a Python program gives an option, as a field of a noun or as a parameter.

    Examples
    --------
    >>> in_python("labels-as"), in_python("memory"), in_python("padding")
    ('Labels(format=...)', 'memory=', 'Labels(padding=...) or Predictions(padding=...)')
    """
    found = []
    for noun, options in _FIELDS.items():
        parts = (one.partition(":") for one in options.split())
        fields = {name: field or name for name, _, field in parts}
        if option in fields:
            value = "True" if option in _FLAGS else "..."
            found.append(f"{noun}({fields[option].replace('-', '_')}={value})")
    return " or ".join(found) or f"{_PARAMETERS.get(option, option).replace('-', '_')}="


class InputError(RankmillError, ValueError):
    """The data is wrong: a broken file, a missing column, a repeated query, a NaN confidence.

    The message says what was found, in which file and where, what was expected and what to do.
    The command line ends with exit code 3.
    """


class UsageError(RankmillError, ValueError):
    """The request is wrong, whatever the data: an unknown metric, a cutoff of 0, a missing folder.

    This error is raised before any data is read, if possible. The command line ends with exit
    code 2.
    """


class ResourceError(RankmillError):
    """The machine lacks a resource that the run needs, such as disk space for temporary files.

    Or a service that gets a copy of the outcome, such as MLflow, does not answer. The input and the
    request may be right. The command line ends with exit code 4.
    """


class Otherwise(Exception):  # noqa: N818
    """What is read is read in another way; no user sees it, and it is no error of an input."""


def told_shortly(work: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Let errors that a caller can correct end at the public function, without what it called.

    With RANKMILL_DEBUG in the environment, tracebacks are whole.
    """

    @functools.wraps(work)
    def call(*args: Parameters.args, **more: Parameters.kwargs) -> Returned:
        try:
            return work(*args, **more)
        except TypeError as error:
            _say_whose_field(error, more, work)
            raise
        except RankmillError as error:
            if os.environ.get("RANKMILL_DEBUG"):
                raise
            raise error.with_traceback(None) from error.__cause__

    return call


def _say_whose_field(error: TypeError, given: Iterable[str], work: Callable[..., Any]) -> None:
    """Add to an error about an argument what has it as a field, or which one is meant."""
    name = next((one for one in given if f"unexpected keyword argument {one!r}" in str(error)), "")
    if name:
        from importlib import import_module  # of what stands above this

        told = import_module("rankmill.config.face").field_text(name, work)
        error.args = (f"{error}{told}",)


class RegressionError(RankmillError):
    """A system broke its rules: raised only by `Verdict.raise_for_failure`."""


_ERRNOS = {
    errno.ENOMEM: "memory",
    errno.EMFILE: "open files",
    errno.ENFILE: "open files",
    errno.EAGAIN: "threads",
    errno.ENOSPC: "room",
    errno.EDQUOT: "room",
    errno.EFBIG: "room",
}
# Parts of the messages of errors that have neither a type nor an errno of their own.
_SAYINGS = {
    "can't start new thread": "threads",
    "Failed to launch worker thread": "threads",  # Arrow
    "No usable temporary directory": "a temporary folder",
    "failed to map segment": "memory",  # the dynamic linker, as all below
    "annot allocate memory": "memory",
    "cannot create shared object descriptor": "memory",
    "without setting an exception": "memory",  # a library that finds no room while it is loaded
}


def shortage(error: BaseException | None) -> tuple[str, BaseException] | None:
    """Return the resource that the machine lacked and the error that tells so, else None.

    The resource is "memory", "open files", "threads", "room" (on disk) or "a temporary folder". The
    error returned is the given one, or the one among its causes that tells of the shortage.

    Examples
    --------
    >>> shortage(OSError(24, "Too many open files"))
    ('open files', OSError(24, 'Too many open files'))
    >>> shortage(FileNotFoundError(2, "No such file or directory"))
    """
    seen = set()  # a chain of errors may be a circle
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, MemoryError):
            return "memory", error
        if isinstance(error, OSError) and error.errno in _ERRNOS:
            return _ERRNOS[error.errno], error
        if not isinstance(error, RankmillError):
            text = str(error)
            for saying, what in _SAYINGS.items():
                if saying in text:
                    return what, error
        error = error.__cause__ or error.__context__
    return None


def is_shortage(error: BaseException, doing: str) -> bool:
    """Tell whether the cause of an error is a shortage; if so, add the note `doing` to the error.

    Callers ask this before they blame the input for an error of another library.
    """
    if shortage(error) is None:
        return False
    if not getattr(error, "__notes__", None):  # who asked first was nearest
        error.add_note(doing)
    return True


@contextmanager
def outside(name: str, remedy: str = "write or fetch it again") -> Iterator[None]:
    """Raise InputError, which names an input, for what other errors its reading ends in.

    This is the boundary to data from outside: bytes that are no text, numbers out of range, nesting
    without end and values of another type make Python and its libraries raise errors of many
    kinds. A shortage of the machine stays one.

    Examples
    --------
    >>> with outside("run.json"):
    ...     int("seven")
    Traceback (most recent call last):
        ...
    rankmill.errors.InputError: run.json cannot be read: invalid literal for int() ...
    """
    try:
        yield
    except (RankmillError, Otherwise, BrokenPipeError, AssertionError, ImportError, NameError):
        raise
    except RecursionError:
        raise InputError(f"{name} cannot be read: it is nested too deep; {remedy}") from None
    except Exception as error:
        if is_shortage(error, f"reading {name}"):
            raise
        told = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        told += " is missing" if isinstance(error, KeyError) else ""
        raise InputError(f"{name} cannot be read: {told}; {remedy}") from error


def plural(count: int, noun: str, *verb: str) -> str:
    """Return a number with its noun, and with one of two forms of a verb.

    Examples
    --------
    >>> plural(1, "query"), plural(1200, "query"), plural(1, "row", "counts", "count")
    ('1 query', '1,200 queries', '1 row counts')
    """
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return " ".join([f"{count:,} {noun if count == 1 else several}", *verb[count != 1 :][:1]])


def install(extra: str | None = None) -> str:
    """Return how to install rankmill, with an extra, as help and errors say it.

    No package index has it yet; the pages say the same, which a test holds.
    """
    what = "." if extra is None else f"'.[{extra}]'"
    return f"pip install {what} in a checkout of rankmill"


def positive(number: Any, name: str) -> int:
    """Return a Python or NumPy integer as an int; raise UsageError if it is not positive."""
    if isinstance(number, bool) or not isinstance(number, (int, Integral)) or number < 1:
        raise UsageError(f"{name} is {number!r}; expected a positive integer")
    return int(number)


def share(number: Any, name: str, example: float) -> None:
    """Raise UsageError unless a number is between 0 and 1, where a quantile can be computed."""
    is_real = isinstance(number, Real) and not isinstance(number, bool)
    if not is_real or not 0 < number <= 1 - 1e-15:
        raise UsageError(
            f"{name} is {number!r}; expected a number between 0 and 1, such as {example}"
        )
