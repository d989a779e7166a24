"""Reading again where later rows contradict what the first ones told: a first block is no proof."""

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from rankmill.errors import Otherwise

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_KNOWN: ContextVar[frozenset[tuple[str, ...]]] = ContextVar("_KNOWN", default=frozenset())


class LaterRows(Otherwise):
    """Later rows tell something that the first ones did not."""

    def __init__(self, *facts: tuple[str, ...]) -> None:
        super().__init__(*facts)
        self.facts = facts


def known() -> frozenset[tuple[str, ...]]:
    """The facts that later rows told when the inputs were read before."""
    return _KNOWN.get()


def reading_again(work: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Call a function, which opens inputs, again with each fact that later rows tell."""

    @functools.wraps(work)
    def run(*args: Parameters.args, **more: Parameters.kwargs) -> Result:
        before = _KNOWN.set(known())
        try:
            while True:
                try:
                    return work(*args, **more)
                except LaterRows as error:
                    if known() >= {*error.facts}:
                        raise
                    _KNOWN.set(known() | {*error.facts})
        finally:
            _KNOWN.reset(before)

    return run
