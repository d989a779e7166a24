"""Kernels as plain Python, for small arrays: to compile them would take longer."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

# Up to so many elements of arrays, and so many CPU seconds in all, a kernel may be plain Python.
# To compile it takes about as long.
SMALL = 1 << 16
SECONDS = 0.25
SLOW = 0.05  # of one process: if several take so long, the next compiles

seconds: dict[Callable[..., Any], float] = {}  # what kernels that may be plain took as such
helpers: dict[Callable[..., Any], Any] = {}  # what only kernels call, and as numba compiled it
_compiles_all: list[bool] = []


def may_run(function: Callable[..., Any], read: list[Any]) -> bool:
    """Whether a kernel that is not on disk reads these in less time than to compile it takes."""
    if _compiles_all or seconds.get(function, SECONDS) >= SECONDS:
        return False
    return sum(map(_elements, read)) <= SMALL


def _elements(argument: Any) -> int:
    """How many elements an array has, or a named tuple of arrays."""
    if isinstance(argument, np.ndarray):
        return argument.size
    return sum(map(_elements, argument)) if isinstance(argument, tuple) else 0


def run(function: Callable[..., Any], arguments: list[Any], began: float) -> Any:
    """Run a kernel whose call began at a time of this thread, which counts against compiling it."""
    with np.errstate(over="ignore"):  # hashes wrap around on purpose
        found = function(*arguments)
    seconds[function] += time.thread_time() - began
    return _as_python(found)


def is_slow(function: Callable[..., Any]) -> bool:
    """Whether a kernel took so long in this process that others had better find it compiled."""
    return seconds[function] >= SLOW


def _as_python(found: Any) -> Any:
    """Return numbers as Python's own, as compiled kernels do."""
    if isinstance(found, tuple):
        return tuple(map(_as_python, found))
    return found.item() if isinstance(found, np.generic) else found


@contextmanager
def compile_all() -> Iterator[None]:
    """Compile kernels for small arrays as well, as a warm-up does."""
    _compiles_all.append(True)
    try:
        yield
    finally:
        _compiles_all.pop()
