"""Packages that offer metrics, by an entry point of the group ``rankmill.metrics``."""

import functools
from importlib.metadata import entry_points

from rankmill.errors import UsageError


@functools.cache
def load_packages() -> None:
    """Import what packages have under the entry points ``rankmill.metrics``, once.

    Raises
    ------
    UsageError
        If one of them fails; the message names it.
    """
    for point in entry_points(group="rankmill.metrics"):
        try:
            point.load()
        except Exception as error:
            raise UsageError(
                f"the entry point {point.name} of rankmill.metrics, {point.value}, fails with "
                f"{type(error).__name__}: {error}"
            ) from error
