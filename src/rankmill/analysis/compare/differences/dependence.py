"""What is known of queries beside their slices: clusters of them, and a covariate."""

import os
from typing import Any

from rankmill.analysis.compare.differences.differences import Settings
from rankmill.analysis.statistics.significance import check_clustered
from rankmill.engine.cuts import Cuts, checked
from rankmill.engine.segments import DERIVED
from rankmill.errors import UsageError
from rankmill.io.stores.urls import redacted


def covariate_name(adjust: Any) -> str | None:
    """Return what settings call the covariate."""
    if adjust is None:
        return None
    return redacted(os.fspath(adjust)) if isinstance(adjust, str | os.PathLike) else "a table"


def with_dependence(cuts: Cuts, settings: Settings, adjust: Any, weight: str | None) -> Cuts:
    """Return how queries are cut, with the column of their clusters and the covariate.

    Raises
    ------
    UsageError
        If these do not go with other settings.
    """
    name = settings.cluster
    if adjust is not None:
        for what, given in (("weight", weight), ("cluster", name)):
            if given is not None:
                raise UsageError(f"adjust cannot be combined with {what}: give one of them")
        wrong = next((one for one in settings.tests if one != "t"), None)
        if wrong is not None:
            raise UsageError(f"test {wrong!r} cannot be combined with adjust; expected t")
        if adjust == "":
            raise UsageError("adjust is empty; expected a column of the labels or a table")
        cuts = cuts._replace(adjust=checked(adjust, "adjust"))
    if name is None:
        return cuts
    if not isinstance(name, str) or not name or name in DERIVED:
        raise UsageError(
            f"cluster is {name!r}; expected a column of the labels or of a table of by"
        )
    if weight is not None:
        raise UsageError("cluster cannot be combined with weight: give one of them")
    for test in settings.tests:
        check_clustered(test)
    return cuts._replace(cluster=name)
