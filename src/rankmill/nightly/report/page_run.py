"""The page of a run, with the lists of the queries that moved."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from rankmill.analysis.compare.view.details import Details
from rankmill.analysis.explain.side_by_side import Listed, side_by_side
from rankmill.errors import InputError, UsageError
from rankmill.nightly.report.query_sections import RANKS
from rankmill.sources.files.spool import is_pipe
from rankmill.sources.nouns import Given


def lists_of(details: Details | None, given: Mapping[str, Any]) -> list[Listed]:
    """Return the lists of the queries that moved most, for `page`; all inputs are read once more.

    Parameters
    ----------
    details
        Of a comparison or a verdict; without any, nothing moved.
    given
        The arguments of `evaluate_runs`, perhaps among others.

    Returns
    -------
    list of Listed
        Empty if an input can be read only once.
    """
    moved = {} if details is None else details.moved
    first = next((of for of in moved.values() if any(of.values())), {})
    queries = list(dict.fromkeys(one.query for rows in first.values() for one in rows))
    if not queries or any(map(_read_once, (given["labels"], *given["runs"].values()))):
        return []
    taken = inspect.signature(side_by_side).parameters
    left = {name: value for name, value in given.items() if name in taken}
    try:
        return side_by_side(queries=queries, ranks=RANKS, **left)
    except (InputError, UsageError):  # a stream from Python that is used up
        return []


def _read_once(one: Any) -> bool:
    data = one.data if isinstance(one, Given) else one
    paths: Sequence[Any] = data if isinstance(data, list) else [data]
    return any(isinstance(path, str) and is_pipe(path) for path in paths)
