"""Labels that many calls read, such as those of each epoch of a training."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rankmill.errors import UsageError
from rankmill.sources.roles.source import Source


class Prepared:
    """Data that are opened once, and what was made of them; threads may share it.

    What has to be closed is opened for each call, which closes it.
    """

    def __init__(self, data: Any) -> None:
        self.data = data
        self._made: dict[Any, Any] = {}
        self._source: Source | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type, tuple[Any]]:
        return Prepared, (self.data,)  # another process opens them itself

    def opened(self, begin: Callable[[Any], Source]) -> Source:
        """Return the source; UsageError if it can be read only once."""
        with self._lock:
            if self._source is not None:
                return self._source
            source = replace(begin(self.data), made=self._made)
            if source.kept is not None:
                source.close()
                raise UsageError(
                    f"{source.name} can be read only once, and prepare() keeps labels for many "
                    "calls: read it into a table first"
                )
            if source.end is None:
                self._source = source
            return source
