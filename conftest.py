"""What a test or an example defines ends with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def own_metrics_end() -> Iterator[None]:
    """Take metrics that were defined out of the registry, which other tests go through."""
    before = sys.modules.get("rankmill.metrics.registry")
    there = set() if before is None else {*before.REGISTRY}
    yield
    registry = sys.modules.get("rankmill.metrics.registry")
    for table in () if registry is None else (registry.REGISTRY, registry.NAMES, registry._BY_NAME):
        for name in [one for one, spec in table.items() if spec.home and spec.name not in there]:
            del table[name]
