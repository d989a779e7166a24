"""Labels that many calls read, such as those of each epoch of a training."""

import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rankmill.sources.roles.source import Source


class Prepared:
    """Data that are opened once, and what was made of them; threads may share it.

    It is as long as the labels that hold it.
    """

    def __init__(self, data: Any) -> None:
        self.data = data
        self._source: Source | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type, tuple[Any]]:
        return Prepared, (self.data,)  # another process opens them itself

    def opened(self, begin: Callable[[Any], Source]) -> Source:
        """Return the source, which ends with this and not with its readers."""
        with self._lock:
            if self._source is None:
                source = begin(self.data)
                weakref.finalize(self, source.close)
                self._source = replace(source, end=None, made={})
        return self._source
