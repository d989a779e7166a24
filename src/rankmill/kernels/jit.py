"""The one compile policy: every kernel is serial, free of the GIL, and cached on disk.

Cores are used by running a kernel on many blocks of queries from a pool of threads (see
``rankmill.threads``), which measures the same as ``prange`` and, unlike it, survives a fork and may
be entered from several threads at once.
"""

import functools
import hashlib
import inspect
import os
import pickle
import sys
import time
import uuid
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

# numba loads arrayobj and numpy.ma when kernels are first called, here on several threads at once.
# But numpy.ma comes by way of a __getattr__ of NumPy, which calls itself without end where it finds
# the module half loaded by another thread.
import numba.np.arrayobj
import numpy as np
import numpy.ma
from llvmlite.binding import add_symbol, parse_assembly
from numba import njit
from numba.core import config, event
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps

# Compiling in silence for longer than this would look like hanging.
SILENT_SECONDS = 1.0
# The bytes of a saved kernel's checksum, which stands before it.
CHECKSUM = 16
# Of this version and those before it is known what saved kernels hold, and are linked with.
NEWEST_NUMBA = (0, 68)

_dispatchers: dict[int, Any] = {}  # numba's object of each kernel, by its id()
_warned: list[str] = []
_linked: list[bool] = []


def helper(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call."""
    return njit(nogil=True)(function)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function called from Python.

    Arguments named ``out*`` are written to; all others are passed as read-only views, so that
    Arrow's read-only buffers and NumPy's own arrays share one compiled version.
    """
    code = function.__code__
    writable = [name.startswith("out") for name in code.co_varnames[: code.co_argcount]]
    compiled: Any = None

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        nonlocal compiled
        if compiled is None:  # the first call: a run needs some of the kernels only
            with global_compiler_lock:
                compiled = compiled or _compile(function)
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


def _checksum(*parts: bytes) -> bytes:
    checksum = hashlib.blake2b(digest_size=CHECKSUM)
    for part in parts:
        checksum.update(len(part).to_bytes(8))
        checksum.update(part)
    return checksum.digest()


def _digest_of_sources() -> bytes:
    """A digest of all files of kernels, which call helpers of each other; b"" if there are none."""
    folder = os.path.dirname(__file__)
    contents = []
    with suppress(OSError):
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), "rb") as file:
                    contents += [name.encode(), file.read()]
    return _checksum(*contents) if contents else b""


# Taken when this is imported: files that are replaced later are not what is compiled.
SOURCES = _digest_of_sources()


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
    ours = _numba_is_as_known() and not config.DISABLE_JIT  # type: ignore[attr-defined]
    try:
        compiled = njit(nogil=True, cache=not ours)(function)
        if ours:
            compiled._cache = _Cache(function)  # type: ignore[attr-defined]
    except RuntimeError as error:  # numba refuses at once where no cache folder can be written
        _warn_uncached(str(error))
        compiled = njit(nogil=True)(function)
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        _dispatchers[id(compiled)] = compiled
    return compiled


class _Cache:
    """Compiled versions of a kernel on disk, a file each; it stands in for numba's own cache.

    - Damage is a miss: a file is used only if the checksum that it begins with is that of the rest
      and of what was asked for. The kernel is then compiled anew, and its file replaced.
    - There is no index, which processes that save at the same time would overwrite in turn.
    - A kernel is loaded without setting up numba's compiler; on a miss, compiling does that.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._numba: Any = CompileResultCacheImpl(function)  # type: ignore[no-untyped-call]
        self.cache_path = str(self._numba.locator.get_cache_path())
        source = self._numba.locator.get_source_stamp(), function.__code__.co_code, SOURCES
        self._made_for = repr((numba.__version__, source)).encode()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a compiled version, None if there is none that can be used."""
        _prepare_to_link(target_context)
        path, asked = self._place(sig, target_context.codegen())
        try:
            with open(path, "rb") as file:
                found = file.read()
            if found[:CHECKSUM] == _checksum(asked, found[CHECKSUM:]):
                return self._numba.rebuild(target_context, pickle.loads(found[CHECKSUM:]))
        except Exception:  # whatever it is: compiling will do, or tell
            pass
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled version; raises OSError if that fails."""
        if not self._numba.check_cachable(data) or _digest_of_sources() != SOURCES:
            return  # what was compiled is not what the files hold by now
        self._numba.locator.ensure_cache_path()
        path, asked = self._place(sig, data.codegen)
        content = dumps(_to_run_only(self._numba.reduce(data), data.fndesc))  # type: ignore[no-untyped-call]
        unfinished = f"{path}.tmp.{uuid.uuid4().hex[:16]}"
        try:
            with open(unfinished, "xb") as file:
                file.write(_checksum(asked, content) + content)
            os.replace(unfinished, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(unfinished)
            raise

    def _place(self, sig: Any, codegen: Any) -> tuple[str, bytes]:
        """The path of a version's file, and all that its content depends on."""
        version = repr((sig, *map(_fields, sig), codegen.magic_tuple())).encode()
        name = f"{self._numba.filename_base}.{_checksum(version).hex()}.nbc"
        return os.path.join(self.cache_path, name), self._made_for + version


def _fields(kind: Any) -> Any:
    """The names of a named tuple's fields, in their order, and of those within: types lack them."""
    names = getattr(kind, "fields", None)
    return names and (names, [_fields(one) for one in kind.types])


def _prepare_to_link(target_context: Any) -> None:
    """Make known to the linker what saved kernels call: the allocator's functions in C.

    Setting up numba's compiler would do that too. But it takes 0.2 s to import its library, and
    SciPy with it, and compiles those of the allocator's functions that saved kernels contain.
    """
    if numba.version_info.short > NEWEST_NUMBA:
        target_context.refresh()
    elif not _linked:
        from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]

        for name, address in _nrt_python.c_helpers.items():
            add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
        _linked.append(True)


def _to_run_only(reduced: Any, description: Any) -> Any:
    """Drop the bitcode of a kernel that is to be saved, but for the name by which it is called.

    Of what is loaded, half the time goes into reading it, and it serves only to be inlined into
    other compiled functions. No kernel calls another.
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
    """Tell whether numba has the methods that `_Cache` stands in for and uses."""
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
