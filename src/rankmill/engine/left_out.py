"""What metrics that are no means over queries come to without some of the queries.

Their aggregates are exact and merge, and a job with groups keeps one for each group of queries. So
without a group they are those of all other groups, merged.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from rankmill.engine.slices import GROUP
from rankmill.engine.state import State
from rankmill.metrics.base import Metric
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.needs import ORDERED_TIES
from rankmill.threads import Workers

NO_VALUE = "it has no value without some of the queries"


class LeftOut(NamedTuple):
    """The value of a metric of all queries, and without each group of them."""

    whole: float
    values: np.ndarray
    sizes: np.ndarray  # int64: the number of queries that count in each group
    bounds: tuple[float, float]  # the range of the metric, as far as the labels tell
    hits: int | None = None  # the number of correct predictions, where few of them decide


def leave_out(
    state: State,
    among: Mapping[str, Any],
    values: Mapping[str, float | None],
    workers: Workers,
    known: Mapping[str, Sequence[float | None]] = MappingProxyType({}),
) -> dict[str, LeftOut | str]:
    """Return for each metric of the groups of a state its values without each group, or why not.

    `among` are the counts of the second pass, and `values` those of all queries. What is `known`
    without each group is not computed again.
    """
    groups = list(groups_in(state).values())
    found: dict[str, LeftOut | str] = {}
    without: dict[str, list[float | None]] = {}
    for metric in groups[0].metrics if groups else ():
        found[metric.text] = _unknown(metric, state) or NO_VALUE
        if found[metric.text] == NO_VALUE:
            without[metric.text] = [*known.get(metric.text, ())]
    for group, rest in others(groups):
        totals = rest.totals._replace(workers=workers)
        for name in without.keys() - known.keys():
            one, counts = rest.aggregates[name], None
            if one.passes > 1:
                whole: Any = state.aggregates[name]
                left = whole.without(group.aggregates[name], among.get(name), workers)
                if left is None:
                    found[name] = "the predictions with their queries need more memory: allow more"
                    continue
                one, counts = left
            without[name].append(one.finish(totals._replace(among=counts)).value)
    sizes = np.array([one.queries for one in groups])
    for name, left_out in without.items():
        value, metric = values[name], next(one for one in state.metrics if one.text == name)
        if len(left_out) == len(sizes) and value is not None and None not in left_out:
            at = _scaled(metric, np.array(left_out, np.float64), sizes)
            found[name] = LeftOut(value, at, sizes, *_range(metric, state))
    return found


def _unknown(metric: Metric, state: State) -> str:
    """Return why nothing is known of a metric without a group, or ""."""
    ties = state.semantics.gap_ties
    if ties in ORDERED_TIES and "gap_ties" in metric.spec.fields:
        return f"the jackknife does not know the order of gap_ties {ties!r}"
    return ""


def groups_in(state: State) -> dict[tuple[int, ...], State]:
    """Return what the groups of queries come to, by their numbers.

    Groups without a query that counts are left out together with the next one that has some; after
    the last comes the first.
    """
    of = {int(number or 0): one for (by, number), one in state.slices.items() if by == GROUP}
    some = [number for number in sorted(of) if of[number].queries]
    together: dict[int, list[int]] = {number: [] for number in some}
    for number in sorted(of) if some else ():
        together[next((one for one in some if one >= number), some[0])].append(number)
    return {
        tuple(numbers): reduce(State.merge, (of[one] for one in numbers))
        for numbers in together.values()
    }


def others(groups: Sequence[State]) -> Iterator[tuple[State, State]]:
    """Yield each of two or more groups, and all others merged; a few are held at a time."""
    if len(groups) > 1:
        yield from _others(groups, None)


def _others(groups: Sequence[State], rest: State | None) -> Iterator[tuple[State, State]]:
    if len(groups) == 1:
        assert rest is not None
        yield groups[0], rest
        return
    first, second = groups[: len(groups) // 2], groups[len(groups) // 2 :]
    for inside, outside in ((first, second), (second, first)):
        every = outside if rest is None else [rest, *outside]
        yield from _others(inside, reduce(State.merge, every))


def _scaled(metric: Metric, values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return values without each group; those of a sum as if as many queries were left."""
    return values * (sizes.sum() / (sizes.sum() - sizes)) if metric.summary == "sum" else values


def _range(metric: Metric, state: State) -> tuple[tuple[float, float], int | None]:
    """Return the range of a metric, and how many predictions are correct if it is one of these."""
    one, (low, high) = state.aggregates[metric.text], metric.bounds
    if not isinstance(one, Gap):
        return (low, high), None
    hits = int(one.correct.counts.sum())
    if one.of_total:  # of queries with several labels, gap may be more
        high = max(high, state.audit["labels"] / max(1, one.total(state.totals)))
    return (low, high), hits
