"""The compile policy: every kernel is serial, releases the GIL, and is cached on disk.

A pool of threads (see ``rankmill.threads``) runs a kernel on many blocks of queries at once. This
is as fast as ``prange``, and it also works after a fork and when several threads call a kernel.

A kernel that is not on disk yet runs as plain Python on small arrays, with the same bits: to
compile it would take longer. Numba is imported only to compile, which takes 0.2 s.
"""

import functools
import operator
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from rankmill.kernels import cache, plain

# A message appears when compiling takes longer than this: a user would think that it hangs.
SILENT_SECONDS = 1.0
# What kernels take as read-only views.
ARRAYS = np.ndarray, tuple
# The types of Python's numbers in compiled code.
NUMBERS = {bool: np.dtype(bool), int: np.dtype(np.int64), float: np.dtype(np.float64)}
# What tells types of arrays apart: C order, otherwise Fortran's; aligned; writable.
WRITABLE = 0x400
FLAGS = 0x1 | 0x2 | 0x100 | WRITABLE
UNSIGNED = np.dtype(np.uint64)
COMPILES = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")

# Kernels are loaded and compiled one at a time.
lock = threading.RLock()
_warned: list[str] = []


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """Name a function that only kernels call, and that is compiled with them."""
    plain.helpers[function] = None
    return function


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that Python calls.

    Kernels write to arguments named ``out*``. All others are passed as read-only views, so Arrow's
    read-only buffers and NumPy's own arrays share one compiled version.
    """
    plain.seconds[function] = 0.0
    return _kernel(function)


def heavy_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that Python calls, and that small arrays keep busy for long."""
    return _kernel(function)


def _kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    read = [place for place, name in enumerate(names) if not name.startswith("out")]
    versions: dict[Any, Callable[..., Any]] = {}
    missing: set[Any] = set()  # what the disk need not be asked for again
    slow: set[Any] = set()  # the kernel, once it was noted that it takes long as plain Python

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        given = tuple(map(_kind_of, arguments)) if COMPILES else ()
        version = versions.get(given)
        if version is not None:
            return version(*arguments)
        prepared = list(arguments)
        for place in read:
            if isinstance(argument := prepared[place], ARRAYS):
                prepared[place] = read_only(argument)
        if not COMPILES:
            with np.errstate(over="ignore"):  # hashes wrap around on purpose
                return function(*prepared)
        kinds = tuple(map(_kind_of, prepared))
        version = versions.get(kinds)
        if version is None:
            began = time.thread_time()
            small = plain.may_run(function, [prepared[place] for place in read])
            if not (small and kinds in missing):
                version = _version(function, versions, kinds, prepared, small)
            if version is None:
                missing.add(kinds)
                found = plain.run(function, prepared, began)
                if plain.is_slow(function) and not slow and cache.numba_is_known():
                    slow.add(function)  # so that a process after some others compiles it
                    with suppress(RuntimeError, OSError):
                        cache.add_slow(cache.place_of(function, text_of(kinds)))
                return found
        if cache.numba_is_known() and _unwritable(given) == _unwritable(kinds):
            versions[given] = version  # it finds the same memory without the views, and is quick
        return version(*prepared)

    return call


def _unwritable(kind: Any) -> Any:
    """Return what `_kind_of` told, for arrays that nobody may write to."""
    if isinstance(kind, tuple):
        return tuple(map(_unwritable, kind))
    return kind & ~WRITABLE if isinstance(kind, int) else kind


def _kind_of(argument: Any) -> Any:
    """Return what tells the versions of a kernel apart: the type of an argument in compiled code.

    That of a tuple is its class and the types of its members.
    """
    if isinstance(argument, np.ndarray):
        flags = argument.flags.num & FLAGS
        return argument.dtype, argument.ndim, flags & ~2 if flags & 1 else flags
    if isinstance(argument, tuple):
        return (type(argument), *map(_kind_of, argument))
    if isinstance(argument, np.generic):
        return argument.dtype
    if type(argument) is int and argument.bit_length() > 63:
        return UNSIGNED
    return NUMBERS.get(type(argument), type(argument))


def text_of(kind: Any) -> str:
    """Return a type of an argument as text, which the file of a kernel is named by."""
    if isinstance(kind, tuple):
        return f"({' '.join(map(text_of, kind))})"
    if isinstance(kind, type):
        return f"{kind.__module__}.{kind.__qualname__}{getattr(kind, '_fields', '')}"
    return kind.str if isinstance(kind, np.dtype) and kind.names is None else str(kind)


class Compiled(NamedTuple):
    """How many versions of kernels this process compiled and loaded, and the cache's folders."""

    compiled: int
    loaded: int
    folders: list[str]


class _Record:
    """What this process compiled and loaded."""

    def __init__(self) -> None:
        self.compiled = self.loaded = 0
        self.folders: set[str] = set()
        self.of_numba: list[Any] = []  # what it keeps in its own way
        self.seconds = 0.0
        self.said = False

    def say(self) -> None:
        """Print a message, once, if compiling takes long."""
        if self.seconds < SILENT_SECONDS or self.said:
            return
        self.said = True
        with suppress(OSError, ValueError):
            if sys.stderr is not None and sys.stderr.isatty():
                print("compiling kernels (first run only) ...", file=sys.stderr, flush=True)


_record = _Record()


def compiled_so_far() -> Compiled:
    """Count the versions of kernels, one for each combination of argument types."""
    more = [dispatcher.stats for dispatcher in _record.of_numba]
    return Compiled(
        _record.compiled + sum(sum(one.cache_misses.values()) for one in more),
        _record.loaded + sum(sum(one.cache_hits.values()) for one in more),
        sorted(_record.folders | {one.cache_path for one in more if one.cache_path}),
    )


def _version(
    function: Any, versions: dict[Any, Any], kinds: Any, arguments: list[Any], may_wait: bool
) -> Callable[..., Any] | None:
    """Return a version of a kernel from disk, or compiled for arguments; None if it may wait."""
    with lock:
        found: Callable[..., Any] | None = versions.get(kinds)
        if found is None and not cache.numba_is_known():
            found = _by_numba(function)
        elif found is None:
            find = functools.partial(cache.place_of, function, text_of(kinds))
            compile = functools.partial(_compile, function, arguments)
            found = _from_disk_or(find, compile, may_wait)
        if found is not None:
            versions[kinds] = found
        return found


def _from_disk_or(
    find: Callable[[], cache.KernelFile], compile: Callable[[], Any], may_wait: bool = False
) -> Callable[..., Any] | None:
    """Return what is saved at a place, otherwise what is then compiled, and saved there.

    None if compiling may wait, and only few processes before were slow without it.
    """
    place = None
    try:
        place = find()
        _record.folders.add(os.path.dirname(place.path))
        if (found := cache.load(place)) is not None:
            _record.loaded += 1
            return found
    except RuntimeError as error:
        _warn_uncached(str(error))
    except cache.UnsafeFileError as error:
        _warn(f"{error}: this kernel is compiled anew, and the file replaced")
    if may_wait and not (place is not None and cache.is_slow(place)):
        return None
    _record.say()
    began = time.perf_counter()
    call, parts = compile()
    _record.seconds += time.perf_counter() - began
    _record.compiled += 1
    if place is not None and parts is not None:
        try:
            cache.save(place, *parts)
        except OSError as error:
            _warn_uncached(str(error))
    made: Callable[..., Any] = call
    return made


def _by_numba(function: Any) -> Callable[..., Any]:
    """Return a kernel as a numba compiles and saves it that we do not know yet."""
    try:
        dispatcher = _compiler().kept_by_numba(function)
    except RuntimeError as error:
        _warn_uncached(str(error))
        dispatcher = _compiler().not_kept(function)
    _record.of_numba.append(dispatcher)

    def call(*arguments: Any) -> Any:
        try:
            return dispatcher(*arguments)
        except OSError as error:  # compiling succeeded, and only saving failed
            _warn_uncached(str(error))
            return dispatcher(*arguments)

    return call


def _compile(function: Any, arguments: list[Any] | None) -> Any:
    return _compiler().compiled(function, arguments)


def _compiler() -> Any:
    from rankmill.kernels import compiler

    return compiler


def compile_beside(
    kernel: Any, compiled: Any, arguments: Sequence[Any], whose: str, content: str
) -> Callable[..., Any]:
    """Compile somebody's function for arguments, and save it beside the kernels of a file.

    That is the file of `kernel`. What is saved of `whose` is replaced if its `content` is another:
    all that the code depends on, beside types, processor and numba; "" does not save it. `compiled`
    is numba's dispatcher, which also compiles for arguments of other types, and does not save that.
    """
    compile = functools.partial(_compiler().version_of, compiled, arguments, whose=whose)
    kinds = [*map(_kind_of, arguments)]
    text = text_of(tuple(kinds))
    with lock:
        if content and cache.numba_is_known():
            find = functools.partial(cache.place_of, kernel, text, whose, content)
            found = _from_disk_or(find, compile)
        else:
            found = compile().call
    version: Callable[..., Any] = found or compiled

    def call(*given: Any) -> Any:
        return (version if [*map(_kind_of, given)] == kinds else compiled)(*given)

    return call


def _warn_uncached(reason: str) -> None:
    _warn(
        f"compiled kernels cannot be saved ({reason}): each start compiles them anew; set "
        "NUMBA_CACHE_DIR to a folder that you, and nobody else, can write to"
    )


def _warn(message: str) -> None:
    if not _warned:  # one warning is enough, as the next kernel fails for the same reason
        _warned.append(message)
        warnings.warn(message, RuntimeWarning, stacklevel=6)


def read_only(argument: Any) -> Any:
    """Return an array, or a named tuple of arrays, as kernels take it; one that is so is quick."""
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        if flags.c_contiguous:
            if not flags.writeable:
                return argument
            view = argument.view(np.ndarray)
        else:
            view = np.ascontiguousarray(argument)
        view.setflags(write=False)
        return view
    if isinstance(argument, tuple):
        taken = [read_only(one) if isinstance(one, ARRAYS) else one for one in argument]
        if all(map(operator.is_, taken, argument)):
            return argument
        return type(argument)(*taken)
    return argument
