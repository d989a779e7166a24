"""What a shell completes: the names of metrics and presets, also behind a comma."""

from __future__ import annotations

from collections.abc import Iterable

import click


def complete_metrics(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Return what may be typed for a text that is the beginning of metrics."""
    from rankmill.metrics.registry import NAMES
    from rankmill.metrics.texts import SETS

    return _completed(begun, [*NAMES, *SETS])


def complete_presets(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Return what may be typed for a text that is the beginning of presets."""
    from rankmill.semantics.presets import PRESETS

    return _completed(begun, PRESETS)


def _completed(begun: str, names: Iterable[str]) -> list[str]:
    before, comma, last = begun.rpartition(",")
    return [before + comma + name for name in names if name.lower().startswith(last.lower())]
