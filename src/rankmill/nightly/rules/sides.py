"""What a rule compares: queries in pairs, each side over all its queries, or both at one mix."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rankmill.analysis.compare.differences.comparison_state import ComparisonState, Sums
from rankmill.analysis.compare.differences.differences import named
from rankmill.analysis.statistics.moments import MINE, THEIRS
from rankmill.analysis.statistics.unseen import Spread
from rankmill.engine.segments import natural
from rankmill.metrics.registry import parse
from rankmill.nightly.rules.baseline import BASELINE, CANDIDATE
from rankmill.nightly.rules.measurements import NO_BOUNDS, MeasuredSide, Measurement
from rankmill.results.result import Result

# ------------------------------------------------------------------ the mix

Slices = Mapping[tuple[str, str], MeasuredSide]
"""What cuts, and the slice, as the columns of a history name them -> a system in that slice."""

# Slices of fewer queries, in either run, are one.
LEAST_QUERIES = 10
# If slices that one run alone has hold more of its queries, the runs are compared as they are.
MOST_ALONE = 0.05
# The part of the mix is told from so many standard errors on, and from this share of the limit on.
TOLD_ERRORS, TOLD_SHARE = 3.0, 0.5


class Mix(NamedTuple):
    """What it does to a metric that slices have other shares of the queries than before."""

    by: str
    part: float  # of the difference of the values
    error: float  # its standard error
    alone: tuple[str, ...]  # slices that one run alone has, which are left out

    def matters(self, least: float) -> bool:
        """Return whether readers are to know the part; `least` is the limit of a difference."""
        return abs(self.part) > max(TOLD_ERRORS * self.error, TOLD_SHARE * least)


class _Slice(NamedTuple):
    """A system in a slice: its mean, and the cumulants of that, as `Spread` has them."""

    queries: int
    mean: float
    square: float
    cube: float


def at_one_mix(one: Measurement, mine: Slices, theirs: Slices) -> tuple[Measurement, Mix] | None:
    """Return what is measured of runs with other queries, at the mix of the baseline.

    Each value is the mean of those of the slices, weighted by their share of the queries of the
    baseline (direct standardization), and errors are those within slices. None if the slices do not
    make up nearly all of both runs.
    """
    shared = [key for key, side in theirs.items() if side.queries and key in mine]
    shared = [key for key in shared if mine[key].queries]
    alone = {*mine, *theirs} - {*shared}
    for side in (mine, theirs):
        queries = sum(one.queries for one in side.values())
        if sum(side[key].queries for key in alone if key in side) > MOST_ALONE * queries:
            return None
    pairs = [tuple(_slice(side[key], one.bounds) for side in (mine, theirs)) for key in shared]
    small = [pair for pair in pairs if min(each.queries for each in pair) < LEAST_QUERIES]
    pairs = [pair for pair in pairs if pair not in small]
    if small:
        pairs.append(tuple(_together(of) for of in zip(*small, strict=True)))
    if len(pairs) < 2:
        return None
    ours, before = zip(*pairs, strict=True)
    tonight, shares = _shares(ours), _shares(before)
    value, base = _mean(shares, ours), _mean(shares, before)
    # The shares are drawn, too.
    far = [(a.mean - b.mean - value + base) ** 2 for a, b in pairs]
    drawn = _sum(shares, far) / sum(one.queries for one in before)
    sides = _side(shares, ours, drawn), _side(shares, before, 0.0)
    square = _sum(shares, [(one.mean - value) ** 2 for one in ours])
    error = math.sqrt(square * sum(1 / sum(one.queries for one in of) for of in (ours, before)))
    told = tuple(sorted(value for _, value in alone))
    found = one._replace(mine=sides[0], theirs=sides[1], pairs=None, difference_error=None)
    return found, Mix(shared[0][0], _mean(tonight, ours) - value, error, told)


def _slice(side: MeasuredSide, bounds: tuple[float, float]) -> _Slice:
    known = side.spread(bounds)
    square, cube = (0.0, 0.0) if known is None else (known.square, known.cube)
    return _Slice(side.queries, side.value or 0.0, square, cube)


def _together(slices: Sequence[_Slice]) -> _Slice:
    """Return slices as one: what is between them is part of its spread."""
    shares, queries = _shares(slices), sum(one.queries for one in slices)
    mean = _mean(shares, slices)
    square = _sum(shares, [(one.mean - mean) ** 2 for one in slices]) / queries
    cube = _sum(shares, [(one.mean - mean) ** 3 for one in slices]) / queries**2
    square += _sum(shares, [p * one.square for p, one in zip(shares, slices, strict=True)])
    cube += _sum(shares, [p * p * one.cube for p, one in zip(shares, slices, strict=True)])
    return _Slice(queries, mean, square, cube)


def _side(shares: Sequence[float], slices: Sequence[_Slice], more: float) -> MeasuredSide:
    """Return the mean of slices; its squared error is larger by `more`."""
    mean = _mean(shares, slices)
    square = _sum(shares, [p * one.square for p, one in zip(shares, slices, strict=True)]) + more
    cube = _sum(shares, [p * p * one.cube for p, one in zip(shares, slices, strict=True)])
    unit = _sum(shares, [p / one.queries for p, one in zip(shares, slices, strict=True)])
    known = Spread(mean, square, cube, unit)
    queries = sum(one.queries for one in slices)
    return MeasuredSide(mean, math.sqrt(square), queries, 1 / unit, known=known)


def _shares(slices: Sequence[_Slice]) -> list[float]:
    queries = sum(one.queries for one in slices)
    return [one.queries / queries for one in slices]


def _mean(shares: Iterable[float], slices: Iterable[_Slice]) -> float:
    return _sum(shares, (one.mean for one in slices))


def _sum(shares: Iterable[float], values: Iterable[float]) -> float:
    return math.fsum(p * one for p, one in zip(shares, values, strict=True))


# ------------------------------------------------------------------ sides

# The share of the queries that count on either side from which on the two are paired.
MIN_OVERLAP = 0.9
# With fewer queries on both sides, those of the baseline among them do not stand for it.
LEAST_IN_COMMON = 10


class Shared(NamedTuple):
    """How many of the queries that count on either side count on both."""

    both: int
    either: int

    def suffice(self) -> bool:
        """Return whether they are enough to compare the two query by query."""
        return self.both >= MIN_OVERLAP * self.either


class Sides(NamedTuple):
    """What a rule is held against, over all queries or in a slice."""

    measured: Measurement  # the two values that are compared
    own: float | None  # the value of the system over all its queries
    shared: Shared | None = None  # None without values of queries, or if the rule needs none
    paired: bool = False  # whether `measured` is over the queries of both sides
    # Of pairs, each side over all its queries, where one has some that the other lacks.
    whole: Measurement | None = None
    mix: Mix | None = None  # where `measured` is at the mix of the baseline
    shown: str = ""  # what the slice is called; "" for all queries


def bounds_of(metric: str) -> tuple[float, float]:
    """Return the range of what a metric is a mean of; infinite if it is not a mean over queries."""
    one = parse(metric)
    return one.bounds if one.is_mean else NO_BOUNDS


def shared_of(state: ComparisonState) -> Shared:
    """Return how many of the queries of two systems both have."""
    both = state.whole.queries
    return Shared(both, both + sum(state.left_out.values()))


def notes_of_pairs(state: ComparisonState, adjust: str | None) -> list[str]:
    """Return a note if drops over all queries are adjusted, or are not of pairs as asked for."""
    if BASELINE not in state.systems:
        return []
    shared = shared_of(state)
    if shared.suffice():
        told = f"drops over all queries, and the values given with them, are adjusted by {adjust}"
        return [] if adjust is None else [told]
    instead = "" if adjust is None else f", and adjust nothing by {adjust}"
    return [
        f"the comparison is over the {shared.both:,} of {shared.either:,} queries that both runs "
        "have, fewer than 90%: rules over all queries compare the values as a "
        f"whole{instead}"
    ]


class Lack(NamedTuple):
    """How many of the queries with labels a system and a baseline have predictions for."""

    labelled: int
    mine: int
    theirs: int
    # Whether the baseline predicts as large a share of what the system does as both must have.
    enough: bool

    def __str__(self) -> str:
        """Say how many the baseline lacks."""
        of = f"{self.labelled - self.theirs:,} of {self.labelled:,} queries with labels"
        return f"the baseline has no predictions for {of}"

    @property
    def note(self) -> str:
        """What to say of the whole comparison."""
        told = f"{self}, and this run for {self.labelled - self.mine:,}"
        if self.enough:
            return told
        return (
            f"{told}: these queries score 0, so no rule with drop is held; if the baseline is from "
            'another night, compare with a run of the history instead, such as "last"'
        )


def lack_of(result: Result, baseline: Result) -> Lack | None:
    """Return what predictions of a baseline lack; None if no query scores 0 for the lack of it."""
    labelled, mine = (result.audit[name] for name in ("queries_labelled", "queries_in_both"))
    theirs = baseline.audit["queries_in_both"]
    if result.semantics.unpredicted != "zero" or theirs >= mine:
        return None
    return Lack(labelled, mine, theirs, theirs >= MIN_OVERLAP * mine)


def measured_of(sums: Sums, metric: str, *, paired: bool) -> Measurement:
    """Return what some queries of the system come to, paired with those of the baseline or not."""
    of = sums.columns[metric]
    return Measurement.of(of[CANDIDATE], of.get(BASELINE) if paired else None, bounds_of(metric))


def against(mine: Measurement, sums: Sums | None, metric: str) -> Measurement:
    """Return what is measured of a system against other queries of the baseline, if these are."""
    column = None if sums is None else sums.columns.get(metric, {}).get(BASELINE)
    if column is None:
        return mine
    return mine._replace(theirs=MeasuredSide.of(column))


def with_unpaired(
    pairs: Measurement, own: Sums, other: Sums | None, both: int, metric: str
) -> Measurement:
    """Return each side over all its queries, of which so many as `both` are paired.

    Those of pairs and those that one side alone has are independent. An error is that of the pairs
    and, for the share of its queries that a side alone has, its own.
    """
    found = against(measured_of(own, metric, paired=False), other, metric)
    if found.base is None:  # the slices of an earlier run are known of the pairs alone
        found, other = found._replace(theirs=pairs.theirs), None
    mine, theirs = (1 - both / max(1, one.queries) if one else 0.0 for one in (own, other))
    errors = pairs.difference_error, found.mine.error, found.theirs.error
    squares = [(one or 0.0) ** 2 for one in errors]
    both_error = math.sqrt(squares[0] + mine * squares[1] + theirs * squares[2])
    if pairs.pairs is None or pairs.clusters or pairs.adjusted:
        return found._replace(difference_error=both_error)
    alone = tuple(
        None if side.moments is None else side.moments.without(pairs.pairs.of_side(which))
        for which, side in ((MINE, found.mine), (THEIRS, found.theirs))
    )
    return found._replace(difference_error=both_error, pairs=pairs.pairs, alone=alone)


def slices_of(
    by: tuple[str, ...],
    metric: str,
    state: ComparisonState,
    alone: Mapping[str, ComparisonState],
    *,
    paired: bool,
) -> Iterator[tuple[tuple[str | None, ...], Sides]]:
    """Yield the slices of one way to cut in natural order, with what is measured in each.

    `alone` has what the two systems add up to over all their queries, if these are not the same.
    `paired` is whether the rule needs a baseline.
    """
    pairs: Mapping[Any, Sums] = state.slices[by]
    mine = alone[CANDIDATE].slices[by] if alone else pairs
    theirs = alone[BASELINE].slices.get(by) if alone and paired else None
    for value in sorted({**mine, **(theirs or {})}, key=lambda value: tuple(map(natural, value))):
        own = mine.get(value)
        both, other = pairs.get(value), None if theirs is None else theirs.get(value)
        if own is None:  # a slice that the system has lost as a whole
            yield value, Sides(against(Measurement(MeasuredSide()), other, metric), None)
            continue
        one = measured_of(own, metric, paired=False)
        if not paired or BASELINE not in state.systems:
            if BASELINE in state.systems:  # a rule about the value tells that of the baseline too
                one = against(one, both, metric)
            yield value, Sides(one, one.value)
            continue
        n = 0 if both is None else both.queries
        shared = Shared(n, own.queries + (0 if other is None else other.queries - n))
        if both is not None and shared.suffice():
            pairs_of = measured_of(both, metric, paired=True)
            whole = with_unpaired(pairs_of, own, other, n, metric) if n < shared.either else None
            yield value, Sides(pairs_of, one.value, shared, True, whole)
            continue
        if theirs is None and n >= LEAST_IN_COMMON:
            other = both  # the slices of an earlier run are known of these queries alone
        if own.clusters is not None and other is not None and other.clusters is None:
            other = None  # errors of queries are not those of clusters
        yield value, Sides(against(one, other, metric), one.value, shared)


def slices_of_side(
    state: ComparisonState | None, by: tuple[str, ...], metric: str, system: str
) -> dict[tuple[str, str], MeasuredSide]:
    """Return a system in each slice of one way to cut, by what the history calls the slice."""
    slices = {} if state is None else state.slices.get(by, {})
    return {
        named(by, value): MeasuredSide.of(sums.columns[metric][system])
        for value, sums in slices.items()
        if metric in sums.columns
    }
