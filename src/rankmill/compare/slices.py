"""The slices of a comparison, tested, and those in which a system lost most."""

from rankmill.compare.differences import Difference, Loss, Settings, Slice
from rankmill.compare.intervals import estimates
from rankmill.compare.judging import Judged, differences, first_test, judged
from rankmill.compare.segments import natural
from rankmill.compare.state import ComparisonState
from rankmill.compare.sums import Sums
from rankmill.metrics.mean import UNIT
from rankmill.metrics.weighted import WeightedMean

Place = tuple[tuple[str, ...], tuple[str | None, ...]]
"""What cuts, and the value of a slice."""


def tested_slices(
    state: ComparisonState, settings: Settings, threads: int
) -> tuple[list[Slice], list[Loss]]:
    """Return all slices of one name, and the slices of one or two names that lost most.

    The first test that takes one system at a time is run in every slice.
    """
    settings = first_test(settings)
    sums: dict[Place, Sums] = {
        (by, value): of_way[value]
        for by, of_way in state.slices.items()
        for value in sorted(of_way, key=lambda value: tuple(map(natural, value)))
    }
    found: Judged = {
        (*place, *task): difference
        for place, one in sums.items()
        for task, difference in differences(one, state.baseline, settings, threads).items()
    }
    alone = judged({place: one for place, one in found.items() if len(place[0]) == 1}, settings)
    tested = _by_place(alone)
    slices = [
        Slice(*place, one.queries, estimates(one, settings.confidence), tested.get(place, {}))
        for place, one in sums.items()
        if len(place[0]) == 1
    ]
    losses: list[Loss] = []
    if settings.worst_slices:
        looked_at = judged(found, settings)
        for metric in state.metrics:
            for name in state.systems:
                if name != state.baseline:
                    losses += _worst(looked_at, sums, metric, name, settings.worst_slices)
    return slices, losses


def _by_place(found: Judged) -> dict[Place, dict[str, dict[str, Difference]]]:
    """Return the differences of each slice, by metric and system."""
    differences: dict[Place, dict[str, dict[str, Difference]]] = {}
    for (by, value, metric, name), one in found.items():
        differences.setdefault((by, value), {}).setdefault(metric, {})[name] = one
    return differences


def _worst(
    found: Judged, sums: dict[Place, Sums], metric: str, name: str, count: int
) -> list[Loss]:
    """Return the slices with the largest loss: the mean difference times the queries' weight.

    Where neither side of the metric is better, there are none.
    """
    looked_at = sum(bool(one.tests) for one in found.values())
    lost = []
    for place, one in sums.items():
        difference = found[*place, metric, name]
        if difference.gain is not None and difference.gain < 0 and not _is_whole(place, sums):
            mean = one.columns[metric][name].mean
            size = mean.w / 2**UNIT if isinstance(mean, WeightedMean) else one.queries
            loss = Loss(metric, name, *place, one.queries, difference, looked_at)
            lost.append((difference.gain * size, loss))
    lost.sort(key=lambda pair: pair[0])
    return [loss for _, loss in lost[:count]]


def _is_whole(place: Place, sums: dict[Place, Sums]) -> bool:
    """Return whether a slice of two names holds all queries of one of the two."""
    by, value = place
    if len(by) == 1:
        return False
    parts = (sums[by[i : i + 1], value[i : i + 1]].queries for i in range(2))
    return sums[place].queries in parts
