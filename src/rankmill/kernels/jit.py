"""The one compile policy: every kernel is serial, free of the GIL, and cached on disk.

Cores are used by running a kernel on many blocks of queries from a pool of threads (see
``rankmill.workers``), which measures the same as ``prange`` and, unlike it, survives a fork and may
be entered from several threads at once.
"""

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.core import config


def helper(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels of its own file call (the cache watches one file)."""
    return njit(nogil=True)(function)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function called from Python.

    Arguments named ``out*`` are written to; all others are passed as read-only views, so that
    Arrow's read-only buffers and NumPy's own arrays share one compiled version.
    """
    compiled = _compile(function)
    writable = [name.startswith("out") for name in inspect.signature(function).parameters]

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        prepared = [
            argument if keep else _read_only(argument)
            for argument, keep in zip(arguments, writable, strict=True)
        ]
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            with np.errstate(over="ignore"):  # hashes wrap around on purpose
                return compiled(*prepared)
        try:
            return compiled(*prepared)
        except OSError as error:  # the compiled version is in place, only saving it failed
            warnings.warn(f"numba could not save a compiled kernel: {error}", stacklevel=2)
            return compiled(*prepared)

    return call


def _compile(function: Callable[..., Any]) -> Any:
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # numba refuses at once where no cache folder can be written
        _warn_uncached()
        return njit(nogil=True)(function)


@functools.cache
def _warn_uncached() -> None:
    warnings.warn(
        "no folder to cache compiled kernels in can be written: each start compiles them anew; "
        "set NUMBA_CACHE_DIR to a writable folder",
        RuntimeWarning,
        stacklevel=4,
    )


def _read_only(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        view = np.ascontiguousarray(argument).view()
        view.flags.writeable = False
        return view
    if isinstance(argument, tuple):
        return type(argument)(*map(_read_only, argument))
    return argument
