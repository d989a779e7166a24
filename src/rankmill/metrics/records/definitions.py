"""What the function of a metric of somebody's own is made of, as texts that a hash is taken of."""

import ast
import contextlib
import inspect
import textwrap
import types
from collections.abc import Iterator
from typing import Any

import numpy as np


def source_of(plain: Any) -> str:
    """What a function does, as text, whatever its comments and layout; its code if none is left."""
    with contextlib.suppress(OSError, TypeError, SyntaxError):
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(plain))).body
        if isinstance(tree, ast.FunctionDef):
            tree.decorator_list = []
            return ast.unparse(tree)
    return repr([(one.co_code, _constants(one)) for one in _codes(plain.__code__)])


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function, and of those within it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _codes(one)


def _constants(code: types.CodeType) -> list[str]:
    return [repr(one) for one in code.co_consts if not isinstance(one, types.CodeType)]


def parts_of(function: Any, source: str, seen: set[int]) -> Iterator[str]:
    """The text of a function, and all that it names: other functions, and constants."""
    plain = getattr(function, "py_func", function)
    seen.add(id(plain))
    yield source or source_of(plain)
    names = {name for code in _codes(plain.__code__) for name in code.co_names}
    found = {name: plain.__globals__[name] for name in names if name in plain.__globals__}
    for name, cell in zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True):
        found[name] = cell.cell_contents
    for name, value in sorted(found.items()):
        inner = getattr(value, "py_func", value)
        yield name
        if isinstance(inner, types.FunctionType):
            if id(inner) not in seen:
                yield from parts_of(inner, "", seen)
        elif isinstance(value, np.ndarray):
            yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
        elif isinstance(value, int | float | complex | str | bytes | tuple | list | dict):
            yield repr(value)
        else:
            yield getattr(value, "__qualname__", type(value).__qualname__)
