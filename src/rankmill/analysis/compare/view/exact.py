"""The table of a comparison for programs: every digit, in rows of metrics and systems."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from rankmill.analysis.compare.differences.differences import (
    Difference,
    Estimate,
    Moved,
    Settings,
    Slice,
    SystemPair,
)
from rankmill.analysis.statistics.outcome import Tested
from rankmill.metrics.registry import parse
from rankmill.results.slices import UNKNOWN
from rankmill.show.tables import Cell, Column, Table

_OF_MARGIN = ("equivalence", "noninferiority")
_OF_TESTS = ("tests", *_OF_MARGIN)


def exact_table(
    baseline: str,
    settings: Settings,
    pooled: Collection[str],
    whole: Slice,
    slices: Sequence[Slice],
    pairs: Sequence[SystemPair],
    moved: Mapping[str, Mapping[str, Sequence[Moved]]],
) -> Table:
    """A row for each slice, metric and system, with every digit; of all queries first.

    What is not compared with the baseline follows the rows of all queries. The queries
    that moved are last, with columns of their own.
    """
    names = ["by", "slice", "metric", "system", "baseline", "queries", *Estimate._fields]
    fields = [one.name for one in dataclasses.fields(Difference) if one.name not in _OF_TESTS]
    renamed = {"value": "difference", "low": "difference_low", "high": "difference_high"}
    names += [renamed.get(name, name) for name in fields]
    every_test = (
        name for of in whole.differences.values() for one in of.values() for name in one.tests
    )
    tests = dict.fromkeys([*settings.tests, *every_test])
    names += [f"{test}_{field}" for test in tests for field in Tested._fields]
    names += [f"{one}_{field}" for one in _OF_MARGIN for field in ("p", "corrected_p")]
    more = ["query", "baseline_value"] * bool(moved)

    def row(
        of: Slice, metric: str, name: str, pair: SystemPair | None = None, **own: Cell
    ) -> list[Cell]:
        one = of.differences[metric].get(name, Difference(None, better=parse(metric).better))
        one, base = (one, baseline) if pair is None else (pair.difference, pair.baseline)
        cells: list[Cell] = [None, None]
        if of.by:
            cells = [", ".join(of.by), ", ".join(UNKNOWN if v is None else v for v in of.value)]
        cells += [metric, name, base, None if metric in pooled else of.queries]
        cells += [*of.values[metric][name], *(getattr(one, field) for field in fields)]
        nothing = Tested(None)
        cells += [cell for test in tests for cell in one.tests.get(test, nothing)]
        cells += [cell for each in _OF_MARGIN for cell in (getattr(one, each) or nothing)[:2]]
        return [*cells, *map(own.get, more)]

    rows: list[list[Cell]] = []
    for of in (whole, *slices):
        rows += [row(of, metric, name) for metric in of.values for name in of.values[metric]]
        others = (p for p in pairs if of is whole and p.baseline != baseline)
        rows += [row(of, p.metric, p.system, p) for p in others]
    for metric, of_system in moved.items():
        for name, queries in of_system.items():
            for one in queries:
                of = _alone(metric, name, one)
                rows.append(row(of, metric, name, query=one.query, baseline_value=one.baseline))
    return Table([Column(name) for name in (*names, *more)], rows)


def _alone(metric: str, system: str, one: Moved) -> Slice:
    """Return a query that moved as a slice of one query, metric and system."""
    difference = Difference(one.difference, better=parse(metric).better)
    return Slice((), (), 1, {metric: {system: Estimate(one.value)}}, {metric: {system: difference}})
