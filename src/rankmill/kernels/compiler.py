"""Compiling kernels with numba, which is imported only for this."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple

from llvmlite.binding import Linkage, parse_bitcode
from numba import njit, typeof
from numba.core import config, types

from rankmill.kernels import plain
from rankmill.kernels.cache import check_files
from rankmill.kernels.instructions import COMPILED

# What Python calls needs no function for C to call, and what only kernels call needs neither. To
# leave them out saves a sixth of the time to compile.
KERNEL: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
HELPER: dict[str, Any] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}


class Version(NamedTuple):
    """A compiled function for some types."""

    call: Callable[..., Any]
    parts: tuple[bytes, str, str, list[str]] | None  # what `cache` keeps; None if it cannot be


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
    dispatcher: Any = njit(cache=True, **KERNEL)(_calling_compiled(function))
    check_files(dispatcher.stats.cache_path)
    return dispatcher


def not_kept(function: Any) -> Any:
    """Return a kernel that numba compiles and does not save."""
    return njit(**KERNEL)(_calling_compiled(function))


def version_of(dispatcher: Any, arguments: Sequence[Any], *, whose: str = "") -> Version:
    """Compile a function of numba for the types of arguments.

    `whose` is not empty if it is somebody's own function, as in
    `rankmill.kernels.jit.compile_beside`.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return Version(getattr(dispatcher, "py_func", dispatcher), None)
    kinds = tuple(map(typeof, arguments))
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
        dispatcher = njit(**HELPER)(_calling_compiled(function))
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


def needs_of(library: Any) -> list[str]:
    """Return the names of what a kernel calls or reads that is not a part of it."""
    module = library._final_module
    named = [*module.functions, *module.global_variables]
    return sorted(
        one.name for one in named if one.is_declaration and not one.name.startswith("llvm.")
    )


def needs_python(library: Any, description: Any) -> bool:
    """Return whether what a kernel calls uses objects of its module, as print does.

    Each function has a variable with the address of these, which is set where it is compiled, and
    not where it is loaded as a part of another.
    """
    module = library._final_module
    names = {one.name for one in module.global_variables if one.name.startswith("_ZN08NumbaEnv")}
    text = str(module)
    return any(text.count(one) > 1 for one in names - {description.env_name})


def alone(library: Any) -> bytes:
    """Return somebody's kernel, and hide the functions that are compiled into it.

    Those of another process may have the same names, and only numbers tell versions apart: a linker
    would take the first of a name for all.
    """
    module = parse_bitcode(library._final_module.as_bitcode())
    for function in module.functions:
        if not function.is_declaration and function.linkage != Linkage.external:
            function.linkage = Linkage.internal
    code: bytes = library.codegen._tm.emit_object(module)
    return code
