"""Runs with other queries at one mix: each slice weighs as much as it does in the baseline."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rankmill.analysis.statistics.unseen import Spread
from rankmill.nightly.rules.measurements import MeasuredSide, Measurement

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
