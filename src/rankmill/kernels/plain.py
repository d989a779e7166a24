"""Kernels as plain Python, for small arrays: to compile them would take longer."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import numpy as np

from rankmill.kernels import intrinsics

# Up to so many elements of arrays, and so many CPU seconds in all, a kernel may be plain Python.
# To compile it takes about as long.
SMALL = 1 << 16
SECONDS = 0.25

seconds: dict[Callable[..., Any], float] = {}  # what kernels that may be plain took as such
given = threading.local()  # the arguments of the running call of a kernel, and which it writes to
_globals: dict[str, dict[str, Any]] = {}  # of each module
_compiles_all: list[bool] = []


class NotOnDiskError(Exception):
    """Is raised in place of compiling a kernel for small arrays, which `began` at a time."""

    def __init__(self, began: float) -> None:
        self.began = began


def may_run(function: Callable[..., Any]) -> bool:
    """Whether the call of a kernel that is not on disk takes less time than to compile it."""
    if _compiles_all or seconds.get(function, SECONDS) >= SECONDS:
        return False
    arguments = zip(*given.arguments, strict=True)
    return sum(_elements(argument) for argument, written in arguments if not written) <= SMALL


def _elements(argument: Any) -> int:
    """How many elements an array has, or a named tuple of arrays."""
    if isinstance(argument, np.ndarray):
        return argument.size
    return sum(map(_elements, argument)) if isinstance(argument, tuple) else 0


def run(function: Callable[..., Any], arguments: list[Any], began: float) -> Any:
    """Run a kernel whose call began at a time of this thread, which counts against compiling it."""
    with np.errstate(over="ignore"):  # hashes wrap around on purpose
        found = _as_plain(function)(*arguments)
    seconds[function] += time.thread_time() - began
    return _as_python(found)


def _as_python(found: Any) -> Any:
    """Return numbers as Python's own, as compiled kernels do."""
    if isinstance(found, tuple):
        return tuple(map(_as_python, found))
    return found.item() if isinstance(found, np.generic) else found


def _as_plain(function: Any) -> Callable[..., Any]:
    """Return a function that calls helpers and intrinsics as plain Python too."""
    names = function.__globals__
    plain = _globals.get(names["__name__"])
    if plain is None:
        plain = _globals[names["__name__"]] = dict(names)
        for name, value in names.items():
            if hasattr(value, "py_func"):
                plain[name] = _as_plain(value.py_func)
            elif isinstance(value, Hashable) and value in intrinsics.PLAIN:
                plain[name] = intrinsics.PLAIN[value]
    return FunctionType(function.__code__, plain)


@contextmanager
def compile_all() -> Iterator[None]:
    """Compile kernels for small arrays as well, as a warm-up does."""
    _compiles_all.append(True)
    try:
        yield
    finally:
        _compiles_all.pop()
