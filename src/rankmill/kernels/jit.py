"""The one compile policy: every kernel is serial, free of the GIL, and cached on disk.

Cores are used by running a kernel on many blocks of queries from a pool of threads (see
``rankmill.workers``), which measures the same as ``prange`` and, unlike it, survives a fork and may
be entered from several threads at once.
"""

import functools
import inspect
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

# numba loads arrayobj and numpy.ma when kernels are first called, here on several threads at once.
# But numpy.ma comes by way of a __getattr__ of NumPy, which calls itself without end where it finds
# the module half loaded by another thread.
import numba.np.arrayobj  # noqa: F401
import numpy as np
import numpy.ma
from numba import njit
from numba.core import config, event
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

# Compiling in silence for longer than this would look like hanging.
SILENT_SECONDS = 1.0

_dispatchers: dict[int, Any] = {}  # numba's object of each kernel, by its id()
_warned: list[str] = []


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
            _warn_uncached(str(error))
            return compiled(*prepared)

    return call


class Compiled(NamedTuple):
    """How many versions of kernels this process compiled and loaded, and where they are kept."""

    compiled: int
    loaded: int
    folders: list[str]


def compiled_so_far() -> Compiled:
    """Count the versions of kernels, one for each combination of argument types."""
    statistics = [dispatcher.stats for dispatcher in _dispatchers.values()]
    return Compiled(
        compiled=_watch.count,
        loaded=sum(sum(one.cache_hits.values()) for one in statistics),
        folders=sorted({one.cache_path for one in statistics if one.cache_path}),
    )


class _Watch(event.Listener):
    """Counts compilations, those loaded from the cache aside, and says that they take a while."""

    def __init__(self) -> None:
        self.count = 0
        self._seconds = 0.0
        self._began = 0.0
        self._said = False

    def on_start(self, event: Any) -> None:
        if id(event.data["dispatcher"]) not in _dispatchers:
            return
        self._began = time.perf_counter()
        if self._seconds >= SILENT_SECONDS and not self._said:
            self._said = True
            with suppress(OSError, ValueError):
                if sys.stderr is not None and sys.stderr.isatty():
                    print("compiling kernels (first run only) ...", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        if id(event.data["dispatcher"]) in _dispatchers:  # numba compiles one at a time
            self._seconds += time.perf_counter() - self._began
            self.count += 1


_watch = _Watch()
event.register("numba:compile", _watch)  # type: ignore[no-untyped-call]


def _compile(function: Callable[..., Any]) -> Any:
    try:
        compiled = njit(nogil=True, cache=True)(function)
    except RuntimeError as error:  # numba refuses at once where no cache folder can be written
        _warn_uncached(str(error))
        compiled = njit(nogil=True)(function)
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        _dispatchers[id(compiled)] = compiled
        if type(getattr(compiled, "_cache", None)) is FunctionCache:
            cache = _QuickCache(function)  # type: ignore[no-untyped-call]
            compiled._cache = cache  # type: ignore[attr-defined]
    return compiled


class _QuickCache(FunctionCache):
    """numba's cache, which here loads a kernel without setting up numba's compiler first.

    The compiler takes 0.2 s to import its library, and SciPy with it, which a kernel that is
    compiled already does not need; on a miss, compiling sets it up itself.
    """

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)  # the allocator that loaded kernels are linked with
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target_context)  # type: ignore[no-untyped-call]


def _warn_uncached(reason: str) -> None:
    if not _warned:  # once is enough: the next kernel fails for the same reason
        _warned.append(reason)
        warnings.warn(
            f"compiled kernels cannot be saved ({reason}): each start compiles them anew; set "
            "NUMBA_CACHE_DIR to a writable folder",
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
