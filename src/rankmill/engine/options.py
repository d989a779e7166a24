"""The options that public functions share. The signature of `evaluate` is their only definition."""

import inspect
import math
import sys
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from rankmill.errors import UsageError

Returned = TypeVar("Returned")

COLUMNS = (
    *("query", "item", "score", "rank", "gain", "label_query", "label_item"),
    *("labels_as", "predictions_as", "columns", "label_columns"),
    *("encoding", "label_encoding"),
    *("in_order", "binary", "subtopic", "padding"),
)
RESOURCES = ("threads", "progress")


def untrained(options: dict[str, Any]) -> dict[str, Any]:
    """Return options without a training set and a catalogue, which a query alone does not need.

    Raises
    ------
    UsageError
        If predictions would have to be dropped.
    """
    if options.get("drop_seen"):
        raise UsageError(
            "drop_seen is for evaluate, and not for a walk down one list: leave it out, or drop "
            "the predictions that were seen in training before"
        )
    return {**options, "train": None, "items": None, "item_group": None, "features": None}


def split_options(
    options: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Split options into the columns, the resources, and all others, which `make_job` takes."""
    columns = {name: options[name] for name in COLUMNS}
    resources = {name: options[name] for name in RESOURCES}
    resources["progress"] = progress_of(options["progress"])
    left = options.keys() - columns.keys() - resources.keys()
    return columns, resources, {name: options[name] for name in left}


def progress_of(asked: Any) -> Callable[[int, int | None], None] | None:
    """Return the function that is told of progress; True stands for one that prints it."""
    if asked is None or asked is False:
        return None
    if asked is not True and not callable(asked):
        raise UsageError(
            f"progress is {asked!r}; expected True, or a function that takes the number of rows "
            "done and that of all rows, or None if it is not known"
        )
    return _printed() if asked is True else cast(Callable[[int, int | None], None], asked)


def _printed() -> Callable[[int, int | None], None]:
    """Return a function that prints rows on a line of standard error, a few times a second."""
    last = -math.inf

    def show(done: int, total: int | None) -> None:
        nonlocal last
        over, now = done == total, time.monotonic()
        if over or now - last > 0.25:
            last = now
            of_all = "" if total is None else f" of {total:,}"
            print(f"\r{done:,}{of_all} rows", end="\n" * over, file=sys.stderr, flush=True)

    return show


def options_of(
    shared: Callable[..., Any], *, without: tuple[str, ...] = ()
) -> Callable[[Callable[..., Returned]], Callable[..., Returned]]:
    """Give a function that ends in ``**options`` the keyword-only options of another function.

    The function receives all of them, with the default of each option that the caller leaves out.
    A misspelt option raises a TypeError that names the called function.

    Parameters
    ----------
    shared
        The function that defines the options.
    without
        The options that the decorated function does not take.
    """
    taken = inspect.signature(shared).parameters.values()

    def decorate(function: Callable[..., Returned]) -> Callable[..., Returned]:
        own = list(inspect.signature(function).parameters.values())[:-1]
        left = {*without, *(one.name for one in own)}
        more = [one for one in taken if one.kind is one.KEYWORD_ONLY and one.name not in left]
        returns = inspect.signature(function).return_annotation
        whole = inspect.Signature([*own, *more], return_annotation=returns)

        @wraps(function)
        def called(*arguments: Any, **keywords: Any) -> Returned:
            try:
                bound = whole.bind(*arguments, **keywords)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            bound.apply_defaults()
            return function(*bound.args, **bound.kwargs)

        called.__signature__ = whole  # type: ignore[attr-defined]
        return called

    return decorate
