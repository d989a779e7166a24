"""The page of a run, with the lists of the queries that moved."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from rankmill.compare.details import Details
from rankmill.errors import InputError, UsageError
from rankmill.explain.side_by_side import Listed, side_by_side
from rankmill.report.looking import RANKS
from rankmill.sources.spool import is_pipe


def lists_of(
    details: Details | None, labels: Any, runs: Mapping[str, Any], options: Mapping[str, Any]
) -> list[Listed]:
    """Return the lists of the queries that moved most, for `page`; all inputs are read once more.

    Parameters
    ----------
    details
        Of a comparison or a verdict; without any, nothing moved.
    labels, runs
        As for `compare`.
    options
        Those of `evaluate` that were given: columns, semantics and so on.

    Returns
    -------
    list of Listed
        Empty if an input can be read only once.
    """
    moved = {} if details is None else details.moved
    first = next((of for of in moved.values() if any(of.values())), {})
    queries = list(dict.fromkeys(one.query for rows in first.values() for one in rows))
    if not queries or any(_read_once(one) for one in (labels, *runs.values())):
        return []
    taken = inspect.signature(side_by_side).parameters
    left = {key: value for key, value in options.items() if key in taken and key != "progress"}
    try:
        return side_by_side(labels, runs, queries, RANKS, **left)
    except (InputError, UsageError):  # a stream from Python that is used up
        return []


def _read_once(one: Any) -> bool:
    paths: Sequence[Any] = one if isinstance(one, list) else [one]
    return any(isinstance(path, str) and is_pipe(path) for path in paths)
