"""Metrics of somebody's own: a function of one query, or of a block, becomes a row."""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import inspect
import math
import os
import re
import sys
import sysconfig
import textwrap
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from rankmill.errors import InputError, UsageError
from rankmill.metrics.aggregate import Need
from rankmill.metrics.base import REL, Better, Metric, MetricSpec, Parameter
from rankmill.metrics.needs import COLUMNS, side_of
from rankmill.metrics.registry import own_metrics, register
from rankmill.records import record
from rankmill.semantics.choices import Choices
from rankmill.semantics.metric_names import number_text

__all__ = ["OwnKernel", "OwnMetricError", "metric"]


# ------------------------------------------------------------------ what a function is made of

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


Function = TypeVar("Function", bound=Callable[..., Any])
# What a function of one query may take, but for parameters.
TAKEN = ("ranks", "gains", "labels", "predictions", "label_gains", "discounts", "k")
# And columns, by their names: of the labels at the hits, or of the items of the list.
COLUMN = re.compile(r"(hit|item)_.+")
LARGEST = 1e100  # of a value, as of a gain: its square is added up
# Functions that return no number, but what makes it later.
_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_compiling = threading.Lock()


class OwnMetricError(InputError):
    """A function did not give the value of the query at `row` of what it was given."""

    def __init__(self, what: str, row: int) -> None:
        super().__init__(what)
        self.what, self.row = what, row


def metric(
    name: str,
    *,
    range: tuple[float, float] | None = None,
    better: Better = "neither",
    definition: str = "",
    compile: bool = True,
) -> Callable[[Function], Function]:
    """Make a function a metric, which then works by name like any other.

    Parameters
    ----------
    name : str
        Such as "wins@k", which needs a cutoff; "wins[@k]", whose cutoff may be left out; or "wins",
        which takes none.
    range : (low, high), optional
        The range of values; any other value is an error. ``math.inf`` means no bound.
    better : {"higher", "lower", "neither"}
        Without a better side, the metric has no drop, and a gate cannot limit it.
    definition : str, optional
        What ``rankmill metrics`` says; by default the first line of the docstring.
    compile : bool
        Whether to compile the function; what does not compile runs as plain Python, with a warning.

    Returns
    -------
    callable
        A decorator, which returns the function as it is. The function is called for each query
        with labels and predictions, and returns a number. Columns are float64: dates and times are
        seconds since 1970 (UTC), and what is missing is NaN. It takes, by name, any of

        - ``ranks``: the ranks of the hits, ascending, from 1, none beyond the cutoff;
        - ``gains``: their gains;
        - ``labels``, ``predictions``: how many there are, R and n;
        - ``label_gains``: the gains of the labels, descending;
        - ``discounts``: log2(rank + 1) at index rank;
        - ``k``: the cutoff, without one a number beyond all ranks;
        - ``hit_`` and a column of the labels, such as ``hit_timestamp``: its values at the hits;
        - ``item_`` and a column of the items of `Catalogue`, such as ``item_price``: its values
          for the predictions within the cutoff, by rank;
        - parameters, whose defaults are numbers: ``p=0.8`` is ``wins(p=0.5)@10`` to change it.

        A function whose first argument is ``hits`` is of a block of queries instead: it takes
        ``hits``, ``k``, its parameters and ``out``, to which it writes one value per query.

    Raises
    ------
    UsageError
        If the name exists, or the function takes something else.

    Examples
    --------
    >>> import math, rankmill
    >>> @rankmill.metric("last_hit@k", range=(0, math.inf), better="lower")
    ... def last_hit(ranks, k):
    ...     '''the rank of the last hit within k, k + 1 without one'''
    ...     return ranks[-1] if len(ranks) else k + 1
    >>> rankmill.evaluate([[1, 2]], [[2, 9, 1]], "last_hit@5")["last_hit@5"]
    3.0
    """
    found = re.fullmatch(r"([A-Za-z][A-Za-z0-9_-]*)(@k|\[@k\])?", str(name).strip())
    if found is None:
        raise UsageError(f"{name!r} is not a name for a metric; expected one such as 'wins@k'")
    low, high = (-math.inf, math.inf) if range is None else map(float, range)
    if not low < high:
        raise UsageError(f"the range of {name} is {range!r}; expected (low, high), such as (0, 1)")
    if better not in ("higher", "lower", "neither"):
        raise UsageError(f"better of {name} is {better!r}; expected higher, lower or neither")

    def decorate(function: Function) -> Function:
        plain = getattr(function, "py_func", function)
        if not inspect.isfunction(plain) or plain.__code__.co_flags & _LATER:
            made = "a generator or coroutine"
            made = made if inspect.isfunction(plain) else f"a {type(plain).__name__}"
            raise UsageError(f"{name} is {made}; expected a function that returns a number")
        taken, parameters = _arguments(found[1], plain)
        if "k" in taken and not found[2] and taken[0] != "hits":
            raise UsageError(f"{name} takes k, and no cutoff: call it '{name}@k' or '{name}[@k]'")
        code = plain.__code__
        place = f"{os.path.relpath(code.co_filename)}, line {code.co_firstlineno}"
        told = definition or (inspect.getdoc(function) or "").strip().partition("\n")[0]
        # Lists without predictions and hits come to 0 by themselves where that is the worst.
        empty = better == "neither" or (low if better == "higher" else high) != 0
        kernel = OwnKernel(found[1], function, taken, parameters, (low, high), better, compile)
        cutoff = {"@k": "required", "[@k]": "optional"}.get(found[2], "none")
        spec = MetricSpec(
            name=found[1],
            kernel=kernel,
            definition=told or f"the function {plain.__name__}",
            range=_range_text(low, high),
            source=place,
            cutoff=cutoff,  # type: ignore[arg-type]
            parameters=(*parameters, REL),
            counts_empty=empty,
            without_labels="refused" if empty else "scored",
            undefined=_moved_hits if kernel.columns else None,
            better=better,
            aggregate=f"aggregates.mean.{'Mean' if low >= 0 else 'SignedMean'}",
        )
        register(spec)
        return function

    return decorate


def _moved_hits(metric: Metric, semantics: Choices) -> str:
    """Why a metric that sees columns has no value under some semantics, or ""."""
    if not semantics.ties_open:
        return ""
    return f"sees columns, and some items have no order under {semantics.order!r}: choose another"


def _range_text(low: float, high: float) -> str:
    if math.isinf(low):
        return "any number" if math.isinf(high) else f"any number up to {number_text(high)}"
    end = "and above" if math.isinf(high) else f"to {number_text(high)}"
    return f"{number_text(low)} {end}"


def _arguments(name: str, plain: Any) -> tuple[tuple[str, ...], tuple[Parameter, ...]]:
    """What a function takes by name, and the parameters among it."""
    arguments = list(inspect.signature(plain).parameters.values())
    if not arguments:
        raise UsageError(
            f"the function of {name} takes nothing; expected any of {', '.join(TAKEN)}"
        )
    block = bool(arguments) and arguments[0].name == "hits"
    known = ("hits", "k", "out") if block else TAKEN
    parameters = []
    for one in arguments:
        column = not block and one.default is one.empty and COLUMN.fullmatch(one.name)
        if (one.name in known or column) and one.kind is one.POSITIONAL_OR_KEYWORD:
            continue
        number = type(one.default) in (int, float) and math.isfinite(one.default)
        if not number or one.kind is not one.POSITIONAL_OR_KEYWORD or one.name != one.name.lower():
            raise UsageError(
                f"the function of {name} takes {one}; expected any of {', '.join(known)}, "
                f"{'' if block else 'hit_COLUMN, item_COLUMN, '}or a parameter in small letters "
                "with a number as its default"
            )
        meaning = f"as {plain.__name__} takes it"
        parameters.append(Parameter(one.name, meaning, one.default, kind=type(one.default)))
    names = tuple(one.name for one in arguments)
    wanted = ("hits", "k", *(one.name for one in parameters), "out")
    if block and names != wanted:
        raise UsageError(f"the function of {name} takes {names}; expected {wanted}")
    if REL.name in names:
        raise UsageError(f"the function of {name} takes rel, which every metric has: leave it out")
    return names, tuple(parameters)


@record(eq=False, repr=False)
class OwnKernel:
    """The kernel that calls somebody's function."""

    name: str  # of the metric
    function: Callable[..., Any]
    taken: tuple[str, ...]  # what it takes
    parameters: tuple[Parameter, ...]
    bounds: tuple[float, float]  # of its values
    better: Better
    compile: bool

    def __post_init__(self) -> None:
        self.empty = self.better == "neither"  # then it is called without predictions, too
        self.plain_seconds: list[float] = []
        self._loop: Callable[..., None] | None = None
        plain = getattr(self.function, "py_func", self.function)
        self.home = plain.__module__, plain.__qualname__
        # Read at once: the file may be another one later.
        self._source = source_of(plain)

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of `taken` that are columns."""
        known = {*TAKEN, "hits", "out", *(one.name for one in self.parameters)}
        return tuple(one for one in self.taken if one not in known)

    @property
    def needs(self) -> list[type[Need]]:
        """What finds these columns for a block of queries."""
        return [COLUMNS[side] for side in dict.fromkeys(map(side_of, self.columns))]

    def __getstate__(self) -> dict[str, Any]:
        """What travels to other processes, which compile anew."""
        return {**self.__dict__, "fingerprint": self.fingerprint, "_loop": None}

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of the function, of what it calls, and of all that a value depends on.

        It is taken at first use, when the helpers that stand below the function are there.
        """
        how = self.name, self.taken, self.parameters, self.bounds, self.better
        parts = [repr(how), *parts_of(self.function, self._source, set())]
        return hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()

    def refresh(self) -> None:
        """Forget what was compiled if what the function names has another value by now."""
        before = vars(self).pop("fingerprint", None)
        if self._loop is not None and self.fingerprint != before:
            self._loop = None

    def __call__(self, hits: Any, k: int, *more: Any) -> None:
        """Write the value of each query to the last argument.

        OwnMetricError if the function fails, or a value is not as promised.
        """
        *given, out = more
        at, count = np.zeros(1, np.int64), len(self.parameters)
        columns = given[count:] or [hits.offsets]  # first the offsets of the lists
        given = [one.kind(value) for one, value in zip(self.parameters, given, strict=False)]
        arguments = self._arguments(hits, k, given, at, out, columns)
        if block := self.taken[0] == "hits":
            out.fill(np.nan)  # what it writes no value to has none
        with _compiling:  # threads begin at once
            self._loop = self._loop or self._made(arguments)
        began = time.thread_time()
        try:
            self._loop(*arguments)
        except OwnMetricError as failed:
            raise OwnMetricError(failed.what, int(at[0])) from None
        except Exception as error:
            what = f"its function fails with {type(error).__name__}: {error}"
            row = self._failing(hits, k, given) if block else int(at[0])
            raise OwnMetricError(what, row) from error
        if self.plain_seconds:
            self.plain_seconds.append(time.thread_time() - began)  # of any thread
        if block:
            out[hits.label_counts == 0] = 0
            if not self.empty:
                out[hits.prediction_counts == 0] = 0
        self._check(hits, out)

    def _failing(self, hits: Any, k: int, given: list[Any]) -> int:
        """The first query for which the function of a block fails alone; -1 if it does for none."""
        assert self._loop is not None
        for row in range(len(hits.label_counts)):
            alone = hits.take(np.array([row]))
            try:
                self._loop(*self._arguments(alone, k, given, np.zeros(1, np.int64), np.empty(1)))
            except Exception:
                return row
        return -1

    def _check(self, hits: Any, out: np.ndarray) -> None:
        low, high = max(self.bounds[0], -LARGEST), min(self.bounds[1], LARGEST)
        if len(out) and low <= out.min() and out.max() <= high:
            return
        asked = (hits.label_counts > 0) & ((hits.prediction_counts > 0) | self.empty)
        wrong = asked & ~((out >= low) & (out <= high))
        if wrong.any():
            row = int(wrong.argmax())
            expected = _range_text(*self.bounds).replace("any number", "a number")
            if LARGEST < abs(out[row]) < math.inf:
                expected = f"a number up to {LARGEST:g} of either sign"
            raise OwnMetricError(f"its value is {float(out[row])!r}; expected {expected}", row)

    def _arguments(
        self, hits: Any, k: int, given: Any, at: np.ndarray, out: np.ndarray, columns: Any = ()
    ) -> list[Any]:
        from rankmill.kernels.jit import read_only

        if self.taken[0] == "hits":
            return [read_only(_within(hits, k)), k, *given, out]
        arrays = (hits.with_label_gains() if "label_gains" in self.taken else hits)[:-1]
        lists, *seen = map(read_only, columns)
        return [*map(read_only, arrays), k, self.empty, lists, *given, *seen, at, out]

    def _made(self, arguments: list[Any]) -> Callable[..., None]:
        """The loop, compiled if it compiles."""
        from rankmill.kernels import own

        _ = self.fingerprint  # of the values that are compiled
        names = [one.name for one in self.parameters]
        self.plain_seconds = self.plain_seconds or [0.0]
        if self.compile:
            whose = repr((self.name, *self.home))
            content = content_of(self.function, f"{self.taken} {names}")
            how = self.function, self.taken, names, arguments, whose, content
            try:
                found, why = own.compiled(*how)
            except ArithmeticError as error:
                raise UsageError(f"the function of {self.name}, {error}") from None
            if found is not None:
                self.plain_seconds = []
                return found
            if hasattr(self.function, "py_func"):  # somebody asked numba for it
                raise UsageError(f"the function of {self.name} does not compile: {why}")
            if why:
                warnings.warn(
                    f"{self.name} runs as plain Python, which is slow, as it does not compile: "
                    f"{why}. Change that, or say compile=False where it is defined",
                    RuntimeWarning,
                    stacklevel=2,
                )
        plain = getattr(self.function, "py_func", self.function)
        if self.taken[0] != "hits":
            return own.loop_over(lambda **named: _number(plain(**named)), self.taken, names)
        return own.loop_over(plain, self.taken, names)


def plain_share() -> str:
    """A line for each metric that took a tenth of the processor's time as plain Python."""
    whole = time.process_time()
    took = {one.name: sum(one.kernel.plain_seconds) for one in own_metrics()}  # type: ignore[union-attr]
    return "".join(
        f"{name} took {seconds:.1f} s of {whole:.1f} s of processor time as plain Python\n"
        for name, seconds in took.items()
        if seconds >= max(whole / 10, 0.1)
    )


def _number(value: Any) -> float:
    if isinstance(value, int | float | np.number | np.bool_) and np.isrealobj(value):
        return float(value)
    shape = f" of shape {value.shape}" if isinstance(value, np.ndarray) else ""
    raise OwnMetricError(
        f"its function returns a {type(value).__name__}{shape}; expected a number", -1
    )


def _within(hits: Any, k: int) -> Any:
    """The hits within the cutoff: what other metrics ask for does not matter to a function."""
    from rankmill.columns.lists import drop_values

    kept = hits.ranks <= k
    if kept.all():
        return hits
    offsets = drop_values(hits.offsets, kept)
    return hits._replace(offsets=offsets, ranks=hits.ranks[kept], gains=hits.gains[kept])
