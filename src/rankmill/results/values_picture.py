"""A picture of the values of results, each with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rankmill.io.inert_text import brief
from rankmill.results.slices import REACH, UNKNOWN
from rankmill.show.charts import ROW, Dot, forest
from rankmill.show.pictures import Panel, Picture, compose

_LONGEST, _SHORT = 36, 24  # characters of a name, and of that of a slice
_MOST_ROWS = 40  # of a panel with slices

# The rows of a metric: way to cut -> slice -> system and row.
_Ways: TypeAlias = dict[str, dict[str, list[tuple[str, Any]]]]


def picture_of_values(results: Mapping[str, Any]) -> Picture:
    """Return a picture with a row for each metric of a `Result`, or system in a panel a metric.

    With slices, each metric has a column, with a panel below for each way to cut.
    """
    first = next(iter(results.values()))
    rows = {
        text: [
            (
                brief(name, _LONGEST) or "all queries",
                _dot(one.metrics[text], one.standard_errors.get(text)),
            )
            for name, one in results.items()
        ]
        for text in first.metrics
    }
    if first.by is not None:
        cuts = _cuts(results)
        columns = [
            [_panel(brief(text, _LONGEST), of), *_panels(cuts.get(text, {}), len(results))]
            for text, of in rows.items()
        ]
    elif len(results) == 1:
        columns = [[_panel("", [(brief(text, _LONGEST), of[0][1]) for text, of in rows.items()])]]
    else:
        columns = [[_panel(brief(text, _LONGEST), of) for text, of in rows.items()]]
    known = any(dot.low is not None for of in rows.values() for _, dot in of)
    return compose(columns, "Values" + ", with 95% intervals" * known)


def _cuts(results: Mapping[str, Any]) -> dict[str, _Ways]:
    """Return the rows of each metric: by each way to cut, and slice, with their systems."""
    found: dict[str, _Ways] = {}
    for name, one in results.items():
        for row in one.by.to_pylist():
            slices = found.setdefault(row["metric"], {}).setdefault(row["by"], {})
            value = UNKNOWN if row["slice"] is None else row["slice"]
            slices.setdefault(value, []).append((name, row))
    return found


def _panels(ways: _Ways, systems: int) -> Iterator[Panel]:
    """Yield a panel of a metric for each way to cut, with the slices of most queries."""
    for by, slices in ways.items():
        sizes = {value: max(row["queries"] for _, row in of) for value, of in slices.items()}
        largest = sorted(slices, key=lambda value: -sizes[value])
        kept = {*largest[: _MOST_ROWS // systems or 1]}
        rows = [
            (
                f"{brief(value, _SHORT)}{f' · {brief(name, _SHORT)}' if name else ''}"
                f" ({row['queries']:,})",
                _dot(row["value"], row["standard_error"]),
            )
            for value, of in slices.items()
            if value in kept
            for name, row in of
        ]
        more = len(slices) - len(kept)
        told = f"; {more:,} more not drawn" if more else ""
        yield _panel(f"by {brief(by, _LONGEST)} (queries){told}", rows)


def _dot(value: float | None, error: float | None) -> Dot:
    if value is None or not error:
        return Dot(value)
    return Dot(value, value - REACH * error, value + REACH * error)


def _panel(title: str, rows: Sequence[tuple[str, Dot]]) -> Panel:
    names = [(ROW * (place + 0.5), name) for place, (name, _) in enumerate(rows)]
    return Panel(title, forest([dot for _, dot in rows], None, signed=False), names)
