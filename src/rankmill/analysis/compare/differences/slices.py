"""The slices of a comparison, tested, and those in which a system lost most."""

from typing import NamedTuple

import numpy as np

from rankmill.analysis.compare.differences.comparison_state import ComparisonState
from rankmill.analysis.compare.differences.differences import Difference, Loss, Settings, Slice
from rankmill.analysis.compare.differences.intervals import estimates
from rankmill.analysis.compare.differences.judgement import Judged, differences, first_test, judged
from rankmill.analysis.compare.differences.sums import Sums
from rankmill.engine.segments import natural
from rankmill.metrics.aggregates.mean import UNIT, WeightedMean

Place = tuple[tuple[str, ...], tuple[str | None, ...]]
"""What cuts, and the value of a slice."""


class OfSlices(NamedTuple):
    """The differences of all slices, which are not corrected yet."""

    found: Judged  # what cuts, the value of the slice, metric and system -> the difference
    alone: Judged  # those of slices of one name
    confidence: float  # that of each interval, with which all of them hold together


def differences_of_slices(
    state: ComparisonState, settings: Settings, threads: int, others: int
) -> OfSlices:
    """Return the differences in all slices that are looked at.

    The first test is run in every slice. `others` is the number of
    differences of all queries, which are of the same family.
    """
    settings = first_test(settings)
    tests = others + sum(
        len(of_way) * len(state.metrics) * (len(state.systems) - 1)
        for of_way in state.slices.values()
    )
    together = settings.confidence
    if settings.correction != "none":  # Bonferroni: no interval of all is wrong but by that chance
        together = 1 - (1 - together) / max(tests, 1)
    found = {
        (by, value, *task): difference
        for by, of_way in state.slices.items()
        for value, one in of_way.items()
        for task, difference in differences(
            one, state.baseline, settings, threads, together
        ).items()
    }
    alone = {place: one for place, one in found.items() if len(place[0]) == 1}
    return OfSlices(found, alone, together)


def tested_slices(state: ComparisonState, settings: Settings, threads: int) -> list[Slice]:
    """Return all slices of one name, tested as a family with all queries."""
    asked = first_test(settings)
    whole = differences(state.whole, state.baseline, asked, threads)
    cut = differences_of_slices(state, asked, threads, len(whole))
    family = judged(whole | cut.alone, asked)
    return shown_slices(state, asked, cut, family)


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


def losses_of(state: ComparisonState, settings: Settings, looked_at: Judged) -> list[Loss]:
    """Return the slices of one or two names that lost most, given all that were looked at."""
    sums = _sums(state)
    return [
        loss
        for metric in state.metrics
        for name in state.systems
        if name != state.baseline
        for loss in _worst(looked_at, state.whole, sums, metric, name, settings.worst_slices)
    ]


def _sums(state: ComparisonState) -> dict[Place, Sums]:
    return {
        (by, value): of_way[value]
        for by, of_way in state.slices.items()
        for value in sorted(of_way, key=lambda value: tuple(map(natural, value)))
    }


def _worst(
    found: Judged, whole: Sums, sums: dict[Place, Sums], metric: str, name: str, count: int
) -> list[Loss]:
    """Return the slices with the largest loss: the shrunk difference times the queries' weight.

    Where neither side of the metric is better, there are none.
    """
    looked_at = sum(bool(one.tests) for one in found.values())
    shrunk = _shrunk(whole, sums, metric, name)
    lost = []
    for place, one in sums.items():
        difference = found[*place, metric, name]
        if difference.gain is not None and difference.gain < 0 and not _is_whole(place, sums):
            mean = one.columns[metric][name].mean
            size = mean.w / 2**UNIT if isinstance(mean, WeightedMean) else one.queries
            drawn = shrunk[place]
            loss = Loss(metric, name, *place, one.queries, difference, looked_at, drawn)
            lost.append(((-drawn if difference.better == "lower" else drawn) * size, loss))
    lost.sort(key=lambda pair: pair[0])
    return [loss for _, loss in lost[:count]]


def _shrunk(whole: Sums, sums: dict[Place, Sums], metric: str, name: str) -> dict[Place, float]:
    """Return the mean difference of each slice, drawn towards that of all queries.

    It keeps the share t / (t + e) of what it differs from that by: e is the variance of the
    differences of all queries over the number of queries of the slice, and t what the slices of one
    way to cut vary beyond it, by the method of moments (DerSimonian & Laird, Controlled Clinical
    Trials 1986; the estimate is that of James & Stein for slices of one size).
    """
    every = whole.columns[metric][name].paired
    centre = 0.0 if every is None else every.mean or 0.0
    error = 0.0 if every is None else every.standard_error or 0.0
    variance = error**2 * (0.0 if every is None else every.effective)
    found: dict[Place, float] = {}
    for by in dict.fromkeys(place[0] for place in sums):
        places = [place for place in sums if place[0] == by]
        pairs = [sums[place].columns[metric][name].paired for place in places]
        sizes = np.array([0.0 if one is None else one.effective for one in pairs])
        apart = np.array([0.0 if one is None else (one.mean or 0.0) for one in pairs]) - centre
        room = sizes.sum() - (sizes**2).sum() / max(sizes.sum(), 1.0)
        beyond = (sizes * apart**2).sum() - (len(places) - 1) * variance
        between = max(0.0, beyond / room) if room > 0 else 0.0
        kept = sizes * between / np.maximum(sizes * between + variance, 1e-300)
        found.update(zip(places, (centre + kept * apart).tolist(), strict=True))
    return found


def _is_whole(place: Place, sums: dict[Place, Sums]) -> bool:
    """Return whether a slice of two names holds all queries of one of the two."""
    by, value = place
    if len(by) == 1:
        return False
    parts = (sums[by[i : i + 1], value[i : i + 1]].queries for i in range(2))
    return sums[place].queries in parts
