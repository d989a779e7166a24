"""The slices of a comparison, tested as a family."""

from typing import NamedTuple

from rankmill.analysis.compare.differences.comparison_state import ComparisonState
from rankmill.analysis.compare.differences.differences import Difference, Settings, Slice
from rankmill.analysis.compare.differences.intervals import estimates
from rankmill.analysis.compare.differences.judgement import Judged, differences, first_test, judged
from rankmill.analysis.compare.differences.sums import Sums
from rankmill.engine.segments import natural

Place = tuple[tuple[str, ...], tuple[str | None, ...]]
"""What cuts, and the value of a slice."""


class OfSlices(NamedTuple):
    """The differences of all slices of one name, which are not corrected yet."""

    alone: Judged  # what cuts, the value of the slice, metric and system -> the difference
    confidence: float  # that of each interval, with which all of them hold together


def differences_of_slices(state: ComparisonState, settings: Settings, threads: int) -> OfSlices:
    """Return the differences in all slices of one name; the first test is run in each."""
    settings = first_test(settings)
    ways = {by: of_way for by, of_way in state.slices.items() if len(by) == 1}
    tests = sum(map(len, ways.values())) * len(state.metrics) * (len(state.systems) - 1)
    together = settings.confidence
    if settings.correction != "none":  # Bonferroni: no interval of all is wrong but by that chance
        together = 1 - (1 - together) / max(tests, 1)
    found = {
        (by, value, *task): difference
        for by, of_way in ways.items()
        for value, one in of_way.items()
        for task, difference in differences(
            one, state.baseline, settings, threads, together
        ).items()
    }
    return OfSlices(found, together)


def tested_slices(state: ComparisonState, settings: Settings, threads: int) -> list[Slice]:
    """Return all slices of one name, tested as a family."""
    asked = first_test(settings)
    cut = differences_of_slices(state, asked, threads)
    return shown_slices(state, asked, cut, judged(cut.alone, asked))


def shown_slices(
    state: ComparisonState, settings: Settings, found: OfSlices, family: Judged
) -> list[Slice]:
    """Return all slices of one name with their differences, which are judged among others."""
    slices = []
    for place, one in _sums(state).items():
        if len(place[0]) == 1:
            tested: dict[str, dict[str, Difference]] = {}
            for metric, of in one.columns.items():
                for name in of:
                    if (*place, metric, name) in found.alone:
                        tested.setdefault(metric, {})[name] = family[*place, metric, name]
            values = estimates(one, settings.confidence)
            slices.append(Slice(*place, one.queries, values, tested, found.confidence))
    return slices


def _sums(state: ComparisonState) -> dict[Place, Sums]:
    return {
        (by, value): of_way[value]
        for by, of_way in state.slices.items()
        for value in sorted(of_way, key=lambda value: tuple(map(natural, value)))
    }
