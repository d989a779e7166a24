"""What the function of a metric of somebody's own is made of, as texts that a hash is taken of."""

import ast
import contextlib
import hashlib
import inspect
import math
import sys
import sysconfig
import textwrap
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

# What shows by `repr` all that it is.
_SHOWN = (int, float, complex, str, bytes, tuple, list, dict, np.generic)


def source_of(plain: Any) -> str:
    """What a function does, as text, whatever its comments and layout; its code if none is left."""
    with contextlib.suppress(OSError, TypeError, SyntaxError, ValueError):
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(plain))).body
        # From Python 3.13 on, what `exec` defined may be looked for in the text of `python -c`.
        if isinstance(tree, ast.FunctionDef) and tree.name == plain.__code__.co_name:
            tree.decorator_list = []
            return ast.unparse(tree)
    return _code_text(plain.__code__)


def _code_text(code: types.CodeType) -> str:
    """All that makes a function do what it does; not where it stands."""
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    how = code.co_flags, code.co_argcount, code.co_kwonlyargcount, code.co_exceptiontable
    inner = [_code_text(one) if isinstance(one, types.CodeType) else one for one in code.co_consts]
    return repr((code.co_code, names, how, inner))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function, and of those within it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _codes(one)


def _named_in(plain: Any) -> list[tuple[str, Any]]:
    """What a function names, but for what is built into Python, by name."""
    names = {name for code in _codes(plain.__code__) for name in code.co_names}
    found = {name: plain.__globals__[name] for name in names if name in plain.__globals__}
    for name, cell in zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # it has no value yet
            found[name] = cell.cell_contents
    for name, value in [*found.items()]:
        if isinstance(value, types.ModuleType) and not _is_installed(value):
            of_module = {one: getattr(value, one) for one in names if hasattr(value, one)}
            found |= {f"{name}.{one}": what for one, what in of_module.items()}
    return sorted(found.items())


def _is_installed(module: types.ModuleType) -> bool:
    """Whether a module is Python's or of a package, whose version is no part of a definition."""
    file = getattr(module, "__file__", None)
    return file is None or file.startswith(
        tuple(map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))
    )


def parts_of(function: Any, source: str, seen: set[int]) -> Iterator[str]:
    """The text of a function, and all that it names: other functions, and constants."""
    plain = getattr(function, "py_func", function)
    seen.add(id(plain))
    yield f"{source or source_of(plain)} {plain.__defaults__ or ''}{_types_of(function)}"
    for name, value in _named_in(plain):
        inner = getattr(value, "py_func", value)
        yield name
        if isinstance(inner, types.FunctionType):
            if id(inner) not in seen:
                yield from parts_of(value, "", seen)
        elif isinstance(value, np.ndarray):
            yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
        elif isinstance(value, set | frozenset):
            yield repr(sorted(map(repr, value)))
        elif isinstance(value, _SHOWN):
            with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
                yield repr(value)
        else:
            yield getattr(value, "__qualname__", type(value).__qualname__)


def _types_of(function: Any) -> str:
    """The types that somebody gave numba for a function, to which arguments and values go."""
    given = not getattr(function, "_can_compile", True)
    return str([one.signature for one in function.overloads.values()]) if given else ""


def content_of(function: Any, how: str) -> str:
    """A hash of all that the compiled code of a function depends on; "" if that cannot be told.

    It is of what Python runs, not of a file that may have changed since, and of `how` it is called.
    Nothing is told of a function that names anything but numbers, texts, small arrays, other
    compiled functions, and what ``numpy`` and ``math`` have.
    """
    try:
        parts = [np.__version__, how, *_contents(function, {})]
    except _UntoldError:
        return ""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


class _UntoldError(Exception):
    """A function names what no text tells."""


def _contents(function: Any, seen: dict[int, int]) -> Iterator[str]:
    plain = getattr(function, "py_func", function)
    if id(plain) in seen:
        yield f"function {seen[id(plain)]}"
        return
    seen[id(plain)] = len(seen)
    options = sorted({**getattr(function, "targetoptions", {})}.items())
    options += sorted(getattr(function, "locals", {}).items())
    yield f"{_code_text(plain.__code__)} {plain.__defaults__} {options}{_types_of(function)}"
    for name, value in _named_in(plain):
        yield name
        public = getattr(value, "__name__", "")
        if hasattr(value, "targetoptions") and hasattr(value, "py_func"):
            yield from _contents(value, seen)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biufc" and value.nbytes <= 1e6:
            yield f"{value.dtype.str} {value.shape} {value.strides} {value.tobytes().hex()}"
        elif _is_constant(value) or value is np or value is math:
            yield f"{type(value).__name__} {value!r}"
        elif any(value is getattr(module, public, None) for module in (np, math)):
            yield f"{type(value).__name__} {public}"
        else:
            raise _UntoldError


def _is_constant(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_constant, value))
    return value is None or type(value) in (bool, int, float, complex, str, bytes)
