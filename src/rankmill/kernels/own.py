"""The loop over queries that calls somebody's function for one query, compiled where it compiles.

What is compiled checks the bounds of arrays: a function may read the rank of a hit that is none.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from typing import Any

import numba
from numba.core import config
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError
from numba.core.ir import Assign, Const, Expr
from numba.core.types import Integer

from rankmill.kernels.jit import compile_beside, lock

# Argument of a function -> what it receives for query q.
VALUES = {
    "ranks": "ranks[start:end]",
    "gains": "gains[start:end]",
    "labels": "int(label_counts[q])",
    "predictions": "int(prediction_counts[q])",
    "label_gains": "label_gains[label_offsets[q] : label_offsets[q + 1]]",
    "discounts": "discounts",
    "k": "k",
}
# What it receives of a column: of labels at the hits, or of items within the cutoff.
_COLUMNS = {
    "hit": "given_{0}[start:end]",
    "item": "given_{0}[lists[q] : lists[q] + min(k, prediction_counts[q])]",
}
_LOOP = """
def loop({given}, out_at, out):
    for q in range(len(out)):
        out_at[0] = q
        out[q] = 0.0
        if label_counts[q] == 0 or (prediction_counts[q] == 0 and not empty):
            continue
        start, end = offsets[q], offsets[q + 1]
        while end > start and ranks[end - 1] > k:
            end -= 1
        out[q] = function({taken})
"""
_BLOCK = """
def loop({taken}):
    function({taken})
"""
# What the loop is given before the parameters and columns of the metric; last the offsets of lists.
_GIVEN = (
    *("offsets", "ranks", "gains", "label_counts", "prediction_counts"),
    *("label_offsets", "label_gains", "discounts", "k", "empty", "lists"),
)


def loop_over(
    function: Callable[..., Any], taken: Sequence[str], parameters: Sequence[str], content: str = ""
) -> Callable[..., None]:
    """The loop in plain Python that calls a function with what it takes; a block needs no loop."""
    if taken[0] == "hits":
        text = _BLOCK.format(taken=", ".join(taken))
    else:
        # Somebody's names of parameters are none of the loop's.
        columns = [one for one in taken if one not in VALUES and one not in parameters]
        of_columns = {one: _COLUMNS[one.partition("_")[0]].format(one) for one in columns}
        values = VALUES | {one: f"given_{one}" for one in parameters} | of_columns
        passed = [f"{one}={values[one]}" for one in taken]
        given = [*_GIVEN, *(f"given_{one}" for one in (*parameters, *columns))]
        text = _LOOP.format(given=", ".join(given), taken=", ".join(passed))
    names: dict[str, Any] = {"function": function, "__name__": __name__}
    exec(text, names)
    found: Callable[..., None] = names["loop"]
    found.__qualname__ += content  # the name in compiled code, which is of this content alone
    return found


def compiled(
    function: Callable[..., Any],
    taken: Sequence[str],
    parameters: Sequence[str],
    arguments: Sequence[Any],
    whose: str,
    content: str,
) -> tuple[Callable[..., None] | None, str]:
    """The loop over a function, compiled for arguments; or None, and why not.

    Where numba is told to compile nothing, there is no reason to give. The loop is saved on disk as
    that of the metric `whose`; `content` tells all that it depends on, or is empty: then it is not.

    Raises
    ------
    ArithmeticError
        If it raises integers to powers, shifts them, or multiplies them up with ``*=``: compiled
        integers lose what is beyond 64 bits without a word. Numba's own functions are left alone.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return None, ""
    wide: list[str] = []
    with lock:
        try:
            plain: Any = function
            options: dict[str, Any] = {"nogil": True, "boundscheck": True}
            if isinstance(function, Dispatcher):
                plain = function.py_func
                options = {**function.targetoptions, "locals": function.locals}
            jit: Any = numba.jit
            inner = jit(**options | {"_nrt": True})(plain)
            wide = wide if isinstance(function, Dispatcher) else _watch_integers(inner)
            # The loop allocates nothing, and to count references would take most of its time.
            whole = jit(nogil=True, _nrt=False)(loop_over(inner, taken, parameters, content))
            return compile_beside(loop_over, whole, arguments, whose, content), ""
        except Exception as error:  # numba fails in many ways
            if wide:
                raise ArithmeticError(wide[0]) from None
            return None, _in_short(error)


# What takes integers beyond 64 bits, where compiled code is silent and wrong.
_GROWING = {
    **dict.fromkeys((operator.pow, operator.ipow), "**"),
    **dict.fromkeys((operator.lshift, operator.ilshift), "<<"),
    operator.imul: "*=",
}


def _watch_integers(inner: Any) -> list[str]:
    """What is wrong with the integers of a function; it is found when the function is compiled."""
    compile, found = inner.compile, list[str]()

    def watched(types: Any) -> Any:
        made = compile(types)
        for version in inner.overloads.values():
            for one, signature in version.type_annotation.calltypes.items():
                if not isinstance(one, Expr) or one.op not in ("binop", "inplace_binop"):
                    continue
                sign, integers = _GROWING.get(one.fn), isinstance(signature.return_type, Integer)
                if sign and integers and not _is_square(one, version.type_annotation.blocks):
                    found.append(
                        f"{os.path.relpath(one.loc.filename)}, line {one.loc.line}: {sign} of "
                        "integers is wrong beyond 64 bits: use a float, such as 2.0**rank"
                    )
        if found:
            raise TypingError(found[0])
        return made

    inner.compile = watched
    return found


def _is_square(one: Any, blocks: Any) -> bool:
    """Whether a number is raised to a constant of at most 2."""
    if _GROWING[one.fn] != "**":
        return False
    values = (
        line.value.value
        for block in blocks.values()
        for line in block.find_insts(Assign)
        if line.target.name == one.rhs.name and isinstance(line.value, Const)
    )
    return next(values, 3) in (0, 1, 2)


def _in_short(error: Exception) -> str:
    """What a message of numba says is wrong: it has a page around that."""
    lines = [line.strip(" ^") for line in str(error).split("File ")[0].splitlines()]
    told = [line for line in lines if line and not line.startswith(("Failed in", "During:"))]
    return " ".join(told)[:200]
