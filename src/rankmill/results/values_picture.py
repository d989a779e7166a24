"""A picture of the values of results, each with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankmill.results.slices import REACH
from rankmill.show.charts import ROW, Dot, forest
from rankmill.show.pictures import Panel, Picture, compose

_LONGEST = 36  # characters of a name


def picture_of_values(results: Mapping[str, Any]) -> Picture:
    """Return a picture with a row for each metric of a `Result`, or system in a panel a metric."""
    metrics = [*next(iter(results.values())).metrics]
    cells = {(text, name): _dot(one, text) for text in metrics for name, one in results.items()}
    if len(results) == 1:
        panels = [_panel("", {text: dot for (text, _), dot in cells.items()})]
    else:
        panels = [_panel(text, {name: cells[text, name] for name in results}) for text in metrics]
    known = any(dot.low is not None for dot in cells.values())
    return compose([panels], "Values" + ", with 95% intervals" * known)


def _dot(one: Any, text: str) -> Dot:
    value, error = one.metrics[text], one.standard_errors.get(text)
    if value is None or not error:
        return Dot(value)
    return Dot(value, value - REACH * error, value + REACH * error)


def _panel(title: str, dots: Mapping[str, Dot]) -> Panel:
    names = [(ROW * (place + 0.5), name[:_LONGEST]) for place, name in enumerate(dots)]
    return Panel(title[:_LONGEST], forest([*dots.values()], None, signed=False), names)
