"""Compiling kernels with numba, which is imported only for this."""

import gc
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple

from numba import njit, typeof
from numba.core import config, types

from rankmill.kernels import plain, saved
from rankmill.kernels.instructions import COMPILED
from rankmill.kernels.linkage import alone, needs_of, needs_python
from rankmill.kernels.pipeline import OLDEST_NUMBA, HelperCompiler, KernelCompiler
from rankmill.kernels.trust import check_files

# What Python calls needs no function for C to call, and what only kernels call needs neither. To
# leave them out saves a sixth of the time to compile.
KERNEL: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
HELPER: dict[str, Any] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}


class Version(NamedTuple):
    """A compiled function for some types.

    Attributes
    ----------
    call : callable
    parts : tuple or None
        What `rankmill.kernels.saved.save` keeps of it; None if it cannot be kept.
    """

    call: Callable[..., Any]
    parts: tuple[bytes, str, str, list[str]] | None


# The globals of a module, and those as compiled functions see them, by the id of the former.
_globals: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}


def compiled(function: Any, arguments: Sequence[Any]) -> Version:
    """Compile a kernel for the types of arguments."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return Version(function, None)  # a program may set it without the environment
    return version_of(not_kept(function), arguments)


def kept_by_numba(function: Any) -> Any:
    """Return a kernel that numba compiles and saves in its own way.

    Raises RuntimeError if it has no folder for that, or others can write to what it keeps.
    """
    dispatcher: Any = njit(cache=True, **_options(KERNEL))(_calling_compiled(function))
    check_files(dispatcher.stats.cache_path)
    return dispatcher


def not_kept(function: Any) -> Any:
    """Return a kernel that numba compiles and does not save."""
    return njit(**_options(KERNEL))(_calling_compiled(function))


def version_of(dispatcher: Any, arguments: Sequence[Any], *, whose: str = "") -> Version:
    """Compile a function of numba for the types of arguments.

    `whose` is not empty if it is somebody's own function, as in
    `rankmill.kernels.jit.compile_beside`.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return Version(getattr(dispatcher, "py_func", dispatcher), None)
    kinds = tuple(map(typeof, arguments))
    with _without_garbage_collection():
        dispatcher.compile(kinds)
    made = dispatcher.overloads[kinds]
    library, names = made.library, made.fndesc
    # What Python calls reads such constants from its environment, to return an array for example.
    changing = library.has_dynamic_globals or made.reload_init or made.environment.consts
    if changing or (whose and needs_python(library, names)):
        return Version(made.entry_point, None)
    code = alone(library) if whose else library._get_compiled_object()
    parts = code, names.llvm_cpython_wrapper_name, names.env_name, needs_of(library)
    return Version(made.entry_point, parts)


def _options(options: dict[str, Any]) -> dict[str, Any]:
    """Return options of a kernel or of a helper, with our passes if we know this numba."""
    if not saved.numba_is_known(OLDEST_NUMBA):
        return options
    return options | {"pipeline_class": KernelCompiler if options is KERNEL else HelperCompiler}


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Leave out garbage collection, which takes a tenth of the time to compile and finds little."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _calling_compiled(function: Any) -> FunctionType:
    """Return a copy of a function that calls compiled helpers and instructions."""
    names = function.__globals__
    if id(names) not in _globals:
        seen = dict(names)
        _globals[id(names)] = names, seen
        for name, value in names.items():
            if callable(value) and isinstance(value, Hashable):
                seen[name] = COMPILED.get(value) or _helper(value) or value
    copy = FunctionType(
        function.__code__, _globals[id(names)][1], function.__name__, None, function.__closure__
    )
    copy.__qualname__ = function.__qualname__
    return copy


def _helper(function: Any) -> Any:
    """Return a helper as numba compiles it; None for another function."""
    if function in plain.helpers and plain.helpers[function] is None:
        dispatcher = njit(**_options(HELPER))(_calling_compiled(function))
        dispatcher.get_call_template = partial(_typed, dispatcher.get_call_template)
        plain.helpers[function] = dispatcher
    return plain.helpers.get(function)


def _typed(find: Any, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
    """Type a call of a helper by numbers: each constant would compile it once more.

    What is inlined has the constants anyway.
    """
    plain_type: Any = types.unliteral
    named = {name: plain_type(one) for name, one in named.items()}
    return find(tuple(map(plain_type, arguments)), named)
