"""Files that are read in portions smaller than usual: they must change no result."""

from __future__ import annotations

import os
from typing import Any

from rankmill.sources.inputs.any_source import open_paths
from rankmill.sources.roles.source import BATCH_BYTES, BATCH_VALUES, InputOptions, Role, Source


def in_batches(path: str | os.PathLike[str], rows: int, **told: Any) -> Source:
    """A Parquet file, or a folder of them, whose batches have so many rows at most."""
    return open_paths([path], InputOptions(batch=(rows, BATCH_VALUES, BATCH_BYTES), **told))


def in_blocks(
    path: str | os.PathLike[str], size: int, role: Role = "predictions", **told: Any
) -> Source:
    """A file of text that is read in blocks of so many bytes."""
    return open_paths([path], InputOptions(role, block=size, **told))
