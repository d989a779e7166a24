"""The compile policy: every kernel is serial, releases the GIL, and is cached on disk.

A pool of threads (see ``rankmill.threads``) runs a kernel on many blocks of queries at once. This
is as fast as ``prange``, and it also works after a fork and when several threads call a kernel.

A kernel that is not on disk yet runs as plain Python on small arrays, with the same bits: to
compile it would take longer.
"""

import functools
import hashlib
import inspect
import operator
import os
import pickle
import sys
import time
import uuid
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

# At the first call of a kernel, numba imports arrayobj and numpy.ma, here on several threads at
# once. NumPy's __getattr__ imports numpy.ma, and recurses without end if another thread has
# imported only a part of it. Therefore both modules are imported here, before any thread starts.
import numba.np.arrayobj
import numpy as np
import numpy.ma
from llvmlite.binding import add_symbol, parse_assembly
from numba import njit
from numba.core import config, event
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps

from rankmill.kernels import plain
from rankmill.kernels.linkage import alone, needs_python
from rankmill.kernels.trust import check_folder, why_unsafe

# A message appears when compiling takes longer than this: a user would think that it hangs.
SILENT_SECONDS = 1.0
# The number of bytes of the checksum at the start of a saved kernel's file.
CHECKSUM = 16
# What kernels take as read-only views.
ARRAYS = np.ndarray, tuple
# Up to this version we know what a saved kernel contains and which functions it is linked with.
NEWEST_NUMBA = (0, 68)

_dispatchers: dict[int, Any] = {}  # numba's object of each kernel, by its id()
_warned: list[str] = []
_linked: list[bool] = []


def helper(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call."""
    return njit(nogil=True)(function)


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
    writable = [name.startswith("out") for name in code.co_varnames[: code.co_argcount]]
    read = [place for place, written in enumerate(writable) if not written]
    compiled: Any = None

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        nonlocal compiled
        if compiled is None:  # compiled at the first call, as a run needs only some kernels
            with global_compiler_lock:
                compiled = compiled or _compile(function)
        prepared = list(arguments)
        for place in read:
            if isinstance(argument := prepared[place], ARRAYS):
                prepared[place] = read_only(argument)
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            with np.errstate(over="ignore"):  # hashes wrap around on purpose
                return compiled(*prepared)
        plain.given.arguments = prepared, writable
        try:
            return compiled(*prepared)
        except plain.NotOnDiskError as error:
            began = error.began
        except OSError as error:  # compiling succeeded, and only saving failed
            _warn_uncached(str(error))
            return compiled(*prepared)
        finally:
            plain.given.arguments = None
        return plain.run(function, prepared, began)

    return call


def _checksum(*parts: bytes) -> bytes:
    checksum = hashlib.blake2b(digest_size=CHECKSUM)
    for part in parts:
        checksum.update(len(part).to_bytes(8))
        checksum.update(part)
    return checksum.digest()


def _digest_of_sources() -> bytes:
    """Return a digest of all files of kernels, which share helpers; b"" if no file is there."""
    folder = os.path.dirname(__file__)
    contents = []
    with suppress(OSError):
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), "rb") as file:
                    contents += [name.encode(), file.read()]
    return _checksum(*contents) if contents else b""


# Taken at import, because this process compiles these sources even if a file is replaced later.
SOURCES = _digest_of_sources()


class Compiled(NamedTuple):
    """How many versions of kernels this process compiled and loaded, and the cache's folders."""

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


def compile_beside(
    kernel: Callable[..., Any], compiled: Any, types: tuple[Any, ...], whose: str, content: str
) -> None:
    """Compile somebody's function for these types, and save it beside the kernels of a file.

    Parameters
    ----------
    kernel : callable
        A function of that file.
    compiled : Dispatcher
    types : tuple
    whose : str
        What is saved of the same one is replaced if its content is another.
    content : str
        All that the code depends on, beside types, processor and numba; "" does not save it.
    """
    try:
        if content and _numba_is_as_known() and numba.version_info.short <= NEWEST_NUMBA:
            cache = _Cache(kernel, whose, content)
            _check(cache.cache_path, True)
            compiled._cache = cache
            _dispatchers[id(compiled)] = compiled
        compiled.compile(types)
    except (RuntimeError, OSError) as error:
        _warn_uncached(str(error))
        compiled.compile(types)


class _Watch(event.Listener):
    """Counts compilations (but no loads from the cache), and prints a message if they take long."""

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
    ours = _numba_is_as_known() and not config.DISABLE_JIT  # type: ignore[attr-defined]
    try:
        compiled = njit(nogil=True, cache=not ours)(function)
        if ours:
            compiled._cache = _Cache(function)  # type: ignore[attr-defined]
        if not config.DISABLE_JIT:  # type: ignore[attr-defined]
            _check(compiled._cache.cache_path, ours)  # type: ignore[attr-defined]
    except RuntimeError as error:  # numba raises this if it can write to no cache folder
        _warn_uncached(str(error))
        compiled = njit(nogil=True)(function)
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        _dispatchers[id(compiled)] = compiled
    return compiled


@functools.cache
def _check(folder: str, ours: bool) -> None:
    """Raise RuntimeError if what is in a cache folder may be by other users."""
    check_folder(os.path.realpath(folder), config.CACHE_DIR)  # type: ignore[attr-defined]
    if not ours:  # numba's own cache opens its files unseen
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            reason = why_unsafe(path)
            if reason is not None:
                raise RuntimeError(f"{path} {reason}, whose code would run as yours")


class _Cache:
    """Compiled versions of a kernel on disk, one file each. It replaces numba's own cache.

    - A damaged file counts as missing. A file starts with a checksum of its content and of the
      request; if this is wrong, the kernel is compiled again and the file is replaced.
    - So does a file that another user owns or may write, as unpickling runs what it says.
    - There is no index file, because processes that save at the same time would overwrite it.
    - Loading a kernel does not start numba's compiler, which saves time.
    """

    def __init__(self, function: Callable[..., Any], whose: str = "", content: str = "") -> None:
        self._function = function
        self._missing: set[Any] = set()  # what the disk need not be asked for again
        self._numba: Any = CompileResultCacheImpl(function)  # type: ignore[no-untyped-call]
        self.cache_path = os.path.realpath(self._numba.locator.get_cache_path())
        source = self._numba.locator.get_source_stamp(), function.__code__.co_code, SOURCES
        self._whose = whose
        self._made_for = repr((numba.__version__, source, content)).encode()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a compiled version, or None if no usable one is saved.

        Raises NotOnDiskError if it need not be compiled now.
        """
        began = time.thread_time()
        may_wait = plain.may_run(self._function)
        if may_wait and sig in self._missing:
            raise plain.NotOnDiskError(began)
        _prepare_to_link(target_context)
        path, asked = self._place(sig, target_context.codegen())
        try:
            with open(path, "rb") as file:
                reason = why_unsafe(file.fileno())
                found = b"" if reason else file.read()
            if reason:
                _warn(f"{path} {reason}: this kernel is compiled anew, and the file replaced")
            elif found[:CHECKSUM] == _checksum(asked, found[CHECKSUM:]):
                return self._numba.rebuild(target_context, pickle.loads(found[CHECKSUM:]))
        except Exception:  # any error: the kernel is then compiled, which reports real problems
            pass
        if may_wait:
            self._missing.add(sig)
            raise plain.NotOnDiskError(began)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled version. Raises OSError if this fails."""
        if not self._numba.check_cachable(data) or _digest_of_sources() != SOURCES:
            return  # the source files changed since this process compiled them
        if self._whose and needs_python(data.library, data.fndesc):
            return
        self._numba.locator.ensure_cache_path()
        path, asked = self._place(sig, data.codegen)
        reduced = _to_run_only(self._numba.reduce(data), data.fndesc)
        if self._whose:
            reduced = alone(reduced, data.library, data.codegen)
        content = dumps(reduced)  # type: ignore[no-untyped-call]
        unfinished = f"{path}.tmp.{uuid.uuid4().hex[:16]}"
        try:
            with open(unfinished, "xb", opener=_opened_for_one) as file:
                file.write(_checksum(asked, content) + content)
            os.replace(unfinished, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(unfinished)
            raise

    def _place(self, sig: Any, codegen: Any) -> tuple[str, bytes]:
        """Return the path of a version's file, and the bytes of all that its content depends on."""
        version = repr((self._whose, sig, *map(_fields, sig), codegen.magic_tuple())).encode()
        name = f"{self._numba.filename_base}.{_checksum(version).hex()}.nbc"
        return os.path.join(self.cache_path, name), self._made_for + version


def _opened_for_one(path: str, flags: int) -> int:
    """Open a file that nobody else can write, whatever the umask: others are not loaded again."""
    return os.open(path, flags, 0o644)


def _fields(kind: Any) -> Any:
    """Return the field names of a named tuple's type, nested ones too: its name lacks them."""
    names = getattr(kind, "fields", None)
    return names and (names, [_fields(one) for one in kind.types])


def _prepare_to_link(target_context: Any) -> None:
    """Register the C functions of numba's allocator, which saved kernels call, with the linker.

    Setting up numba's compiler would do this too, but takes 0.2 s: it imports the compiler's
    library and SciPy, and compiles allocator functions that saved kernels contain already.
    """
    if numba.version_info.short > NEWEST_NUMBA:
        target_context.refresh()
    elif not _linked:
        from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]

        for name, address in _nrt_python.c_helpers.items():
            add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
        _linked.append(True)


def _to_run_only(reduced: Any, description: Any) -> Any:
    """Remove the bitcode of a kernel before it is saved, and keep only its name.

    Reading the bitcode takes half of the time to load a kernel. It serves only for inlining into
    other compiled functions, and no kernel calls another.
    """
    if numba.version_info.short > NEWEST_NUMBA:
        return reduced
    (name, kind, (code, _)), *more = reduced
    stub = parse_assembly(
        f'define void @"{description.llvm_cpython_wrapper_name}"() {{ ret void }}'
    )
    return ((name, kind, (code, stub.as_bitcode())), *more)


@functools.cache
def _numba_is_as_known() -> bool:
    """Return whether numba has the methods that `_Cache` replaces and calls."""
    known = (
        (FunctionCache, "load_overload", "self, sig, target_context"),
        (FunctionCache, "save_overload", "self, sig, data"),
        (CompileResultCacheImpl, "check_cachable", "self, cres"),
        (CompileResultCacheImpl, "reduce", "self, cres"),
        (CompileResultCacheImpl, "rebuild", "self, target_context, payload"),
    )
    return all(
        hasattr(owner, name)
        and ", ".join(inspect.signature(getattr(owner, name)).parameters) == parameters
        for owner, name, parameters in known
    )


def _warn_uncached(reason: str) -> None:
    _warn(
        f"compiled kernels cannot be saved ({reason}): each start compiles them anew; set "
        "NUMBA_CACHE_DIR to a folder that you, and nobody else, can write to"
    )


def _warn(message: str) -> None:
    if not _warned:  # one warning is enough, as the next kernel fails for the same reason
        _warned.append(message)
        warnings.warn(message, RuntimeWarning, stacklevel=5)


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
