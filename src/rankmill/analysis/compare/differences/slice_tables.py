"""Tables of a comparison beside that of each metric: pairs, slices, losses, moved queries."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from rankmill.analysis.compare.differences.differences import (
    Difference,
    Loss,
    Moved,
    Settings,
    Slice,
    SystemPair,
)
from rankmill.results.slices import UNKNOWN
from rankmill.show.tables import Cell, Column, Part, Table

# The most characters of a value in a table.
LONGEST = 60

Explain: TypeAlias = Callable[[str, str, int | str], str]
"""The command that explains a metric, a system and a query."""


def slice_text(one: Slice | Loss) -> str:
    """Return what the queries of a slice have in common.

    Examples
    --------
    >>> slice_text(Slice(("country",), ("de",), 5, {}, {}))
    'country = de'
    """
    pairs = zip(one.by, one.value, strict=True)
    return ", ".join(f"{name} = {_short(value)}" for name, value in pairs)


def _short(value: str | None) -> str:
    """Return a value as a table has room for it; JSON and CSV have it whole."""
    if value is None:
        return UNKNOWN
    return value if len(value) <= LONGEST else f"{value[:LONGEST]}..."


def slice_tables(
    baseline: str, others: list[str], slices: list[Slice], settings: Settings
) -> Iterator[list[Part]]:
    """Yield a table for each metric and way to cut: a row for each slice and system."""
    together = next((one.confidence for one in slices if one.confidence), settings.confidence)
    level = f"{100 * together:.6g}%"
    for by in dict.fromkeys(one.by for one in slices):
        of_way = [one for one in slices if one.by == by]
        for metric in of_way[0].values:
            columns = [Column(", ".join(by)), Column("queries", "count")]
            columns += [] if len(others) == 1 else [Column("system")]
            columns += [Column(baseline, "value")]
            columns += [Column(others[0] if len(others) == 1 else "value", "value")]
            columns += [Column(f"from {baseline}", "difference")]
            columns += [Column(f"{level} interval", "interval"), Column(_p_title(settings), "p")]
            rows = []
            for one in of_way:
                for name in others:
                    base, value = (one.values[metric][each].value for each in (baseline, name))
                    row: list[Cell] = [slice_text(one).removeprefix(f"{by[0]} = "), one.queries]
                    row += [] if len(others) == 1 else [name]
                    rows.append([*row, base, value, *_tested_cells(one.differences[metric][name])])
            title = f"{metric} by {', '.join(by)}"
            if together > settings.confidence:
                title += f"; all intervals hold together at {100 * settings.confidence:.6g}%"
            yield [title, Table([*columns, Column("result")], rows)]


def pair_tables(pairs: list[SystemPair], settings: Settings) -> Iterator[list[Part]]:
    """Yield a table for each metric: a row for every two systems."""
    columns = [Column("system"), Column("against"), Column("difference", "difference")]
    columns += [Column(f"{100 * settings.confidence:.6g}% interval", "interval")]
    columns += [Column(_p_title(settings), "p"), Column("result")]
    for metric in dict.fromkeys(one.metric for one in pairs):
        of_metric = [one for one in pairs if one.metric == metric]
        rows = [[one.system, one.baseline, *_tested_cells(one.difference)] for one in of_metric]
        yield [f"{metric}: every two systems", Table(columns, rows)]


def loss_tables(baseline: str, losses: list[Loss], settings: Settings) -> Iterator[list[Part]]:
    """Yield a table for each metric and system: the slices that lost most."""
    together = settings.confidence
    if losses and settings.correction != "none":
        together = 1 - (1 - together) / losses[0].looked_at
    columns = [Column("slice"), Column("queries", "count")]
    columns += [
        Column(f"from {baseline}", "difference"),
        Column("shrunk", "difference"),
        Column(f"{100 * together:.6g}% interval", "interval"),
    ]
    columns += [Column(_p_title(settings), "p"), Column("result")]
    for metric, name in dict.fromkeys((one.metric, one.system) for one in losses):
        lost = [one for one in losses if (one.metric, one.system) == (metric, name)]
        rows: list[list[Cell]] = []
        for one in lost:
            difference, *more = _tested_cells(one.difference)
            rows.append([slice_text(one), one.queries, difference, one.shrunk, *more])
        yield [
            f"{metric}: the slices in which {name} lost most against {baseline}, by the difference "
            "shrunk towards that of all queries; p and intervals corrected over all "
            f"{lost[0].looked_at:,} that were looked at",
            Table(columns, rows),
        ]


def _p_title(settings: Settings) -> str:
    return "p" if settings.correction == "none" else f"p ({settings.correction})"


def _tested_cells(one: Difference) -> list[Cell]:
    """The difference, its interval, the corrected p of its first test, and the word."""
    interval = None if one.low is None or one.high is None else (one.low, one.high)
    p = next((test.corrected_p for test in one.tests.values()), None)
    return [one.value, interval, p, one.verdict or "not tested"]


def moved_tables(
    baseline: str, moved: dict[str, dict[str, list[Moved]]], explain: Explain | None
) -> Iterator[list[Part]]:
    """Yield a title and a table of queries for each metric and system."""
    for metric, of_system in moved.items():
        for name, rows in of_system.items():
            columns = [Column("query"), Column(baseline, "value"), Column(name, "value")]
            columns += [Column("difference", "difference")]
            columns += [Column("explain")] if explain else []
            shown: list[list[Cell]] = [[str(one.query), *one[1:]] for one in rows]
            for row, one in zip(shown, rows, strict=True):
                row += [explain(metric, name, one.query)] if explain else []
            title = f"{metric}: the queries where {name} differs most from {baseline}"
            if rows:
                yield [title, Table(columns, shown)]
