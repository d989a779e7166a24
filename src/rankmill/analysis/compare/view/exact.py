"""The table of a comparison for programs: every digit, in rows of metrics and systems."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from rankmill.analysis.compare.differences.differences import (
    Difference,
    Estimate,
    Loss,
    Moved,
    Slice,
    SystemPair,
)
from rankmill.analysis.statistics.outcome import Tested
from rankmill.metrics.registry import parse
from rankmill.results.slices import UNKNOWN
from rankmill.show.tables import Cell, Column, Table

if TYPE_CHECKING:
    from rankmill.analysis.compare.view.comparison import Comparison

_OF_MARGIN = ("equivalence", "noninferiority")
_OF_TESTS = ("tests", *_OF_MARGIN)


def exact_table(found: Comparison) -> Table:
    """A row for each slice, metric and system, with every digit; of all queries first.

    What is not compared with the baseline follows the rows of all queries. The slices that lost
    most and the queries that moved are last, with columns of their own.
    """
    names = ["by", "slice", "metric", "system", "baseline", "queries", *Estimate._fields]
    fields = [one.name for one in dataclasses.fields(Difference) if one.name not in _OF_TESTS]
    renamed = {"value": "difference", "low": "difference_low", "high": "difference_high"}
    names += [renamed.get(name, name) for name in fields]
    every_test = (
        name for of in found.differences.values() for one in of.values() for name in one.tests
    )
    tests = dict.fromkeys([*found.settings.tests, *every_test])
    names += [f"{test}_{field}" for test in tests for field in Tested._fields]
    names += [f"{one}_{field}" for one in _OF_MARGIN for field in ("p", "corrected_p")]

    def row(
        metric: str, name: str, of: Comparison | Slice, pair: SystemPair | None = None
    ) -> list[Cell]:
        one = of.differences[metric].get(name, Difference(None, better=parse(metric).better))
        one, base = (one, found.baseline) if pair is None else (pair.difference, pair.baseline)
        cells: list[Cell] = [metric, name, base]
        cells += [None if metric in found.pooled else of.queries]
        cells += [*of.values[metric][name], *(getattr(one, field) for field in fields)]
        nothing = Tested(None)
        cells += [cell for test in tests for cell in one.tests.get(test, nothing)]
        cells += [cell for each in _OF_MARGIN for cell in (getattr(one, each) or nothing)[:2]]
        return cells

    more = ["shrunk"] * bool(found.losses) + ["query", "baseline_value"] * bool(found.moved)
    rows: list[list[Cell]] = []
    every: list[Comparison | Slice] = [found, *found.slices]
    for of in every:
        cut = _cut(of)
        rows += [[*cut, *row(m, name, of)] for m, values in of.values.items() for name in values]
        others = (p for p in found.pairs if of is found and p.baseline != found.baseline)
        rows += [[*cut, *row(p.metric, p.system, of, p)] for p in others]
    rows = [[*one, *[None] * len(more)] for one in rows]
    for loss, of in ((one, _alone(one.metric, one.system, one)) for one in found.losses):
        cells = [*_cut(of), *row(loss.metric, loss.system, of), loss.shrunk]
        rows.append([*cells, *[None] * (len(more) - 1)])
    for metric, of_system in found.moved.items():
        for name, queries in of_system.items():
            for one in queries:
                cells = [None, None, *row(metric, name, _alone(metric, name, one))]
                cells += [None] * (len(more) - 2)
                rows.append([*cells, one.query, one.baseline])
    return Table([Column(name) for name in (*names, *more)], rows)


def _cut(of: Comparison | Slice) -> list[Cell]:
    """Return what cuts the queries of a slice, and its value."""
    if not isinstance(of, Slice):
        return [None, None]
    return [", ".join(of.by), ", ".join(UNKNOWN if v is None else v for v in of.value)]


def _alone(metric: str, name: str, one: Loss | Moved) -> Slice:
    """Return a slice that lost, or a query that moved, as a slice of one metric and system."""
    if isinstance(one, Loss):
        of = one.by, one.value, one.queries
        return Slice(*of, {metric: {name: Estimate(None)}}, {metric: {name: one.difference}})
    difference = Difference(one.difference, better=parse(metric).better)
    return Slice((), (), 1, {metric: {name: Estimate(one.value)}}, {metric: {name: difference}})
