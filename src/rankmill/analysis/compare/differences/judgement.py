"""Differences: their intervals and tests, the correction, and the word that they come to."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rankmill.analysis.compare.differences.comparison_state import (
    AnyMean,
    ComparisonState,
    Sums,
    SystemColumn,
)
from rankmill.analysis.compare.differences.differences import (
    BETTER,
    EQUAL,
    HIGHER,
    LOWER,
    NON_INFERIOR,
    NOT_SHOWN,
    WORSE,
    Difference,
    Estimate,
    Settings,
    Slice,
)
from rankmill.analysis.statistics.distributions import t_quantile
from rankmill.analysis.statistics.paired_differences import (
    Adjusted,
    AnyPaired,
    Fit,
    Paired,
    WeightedPaired,
)
from rankmill.analysis.statistics.significance import (
    LEAST_EFFECTIVE,
    Tested,
    correct,
    equivalence,
    noninferiority,
    run_test,
    too_few,
)
from rankmill.analysis.statistics.unseen import (
    Part,
    Spread,
    are_at_ends,
    chance_above,
    chance_below,
    largest,
    mean_ends,
    ratio_ends,
    smallest,
    spread_of,
    with_unseen,
)
from rankmill.engine.segments import natural
from rankmill.metrics.aggregates.mean import freedom_of
from rankmill.metrics.base import Better, MetricSpec
from rankmill.metrics.registry import parse

# ------------------------------------------------------------------ intervals


def interval_of(
    metric: str,
    value: float | None,
    error: float | None,
    queries: int,
    confidence: float = 0.95,
    effective: float | None = None,
    freedom: float | None = None,
) -> Estimate:
    """Return a mean over queries with its interval, given its standard error.

    `effective` is the effective number of queries of their weights, or of clusters, if they have
    some. `freedom` are the degrees of freedom, if they are not what weights leave.
    """
    if value is None or error is None or queries < 2:
        return Estimate(value)
    n = queries if effective is None else effective
    if effective is not None and n < LEAST_EFFECTIVE:
        return Estimate(value, error)
    bounds = parse(metric).spec.bounds
    if not error or are_at_ends(value, error, n, bounds):
        ends = bound_of(spread_of(value, error, n, bounds), bounds, confidence)
        return Estimate(value, error, *ends)
    freedom = freedom_of(queries, n) if freedom is None else freedom
    half = t_quantile((1 + confidence) / 2, freedom) * error
    return Estimate(value, error, max(bounds[0], value - half), min(bounds[1], value + half))


def bound_of(
    one: Spread, bounds: tuple[float, float], confidence: float
) -> tuple[float, float] | tuple[None, None]:
    """Return the bound of a mean from its range; None for both without a range."""
    if any(map(math.isinf, bounds)):
        return None, None
    return mean_ends([Part(1.0, one, *bounds)], (1 - confidence) / 2)


def estimates(sums: Sums, confidence: float) -> dict[str, dict[str, Estimate]]:
    """Return the value of each metric and system."""

    def estimate(metric: str, column: SystemColumn) -> Estimate:
        mean, (queries, effective) = column.mean, column.counted
        told = mean.mean, mean.standard_error, queries, confidence, effective, mean.freedom
        return interval_of(metric, *told)

    return {
        metric: {name: estimate(metric, one) for name, one in of.items()}
        for metric, of in sums.columns.items()
    }


def relative(difference: float | None, base: float | None) -> float | None:
    """Return a difference over the value of the baseline; None where that is 0 or unknown."""
    return None if difference is None or not base else difference / base


def relative_ends(
    value: float | None,
    base: float | None,
    errors: tuple[float | None, float | None, float | None],
    t: float,
    positive: bool,
    alike: Callable[[float, float, float], tuple[float, float]] | None = None,
) -> tuple[float | None, float | None]:
    """Return the ends of the interval of (value - base) / base, by Fieller's theorem.

    `errors` are those of the value, of the base and of their difference, and `t` is the quantile of
    Student's t. If no value is below 0 (`positive`), at most all of the base is lost. An end is
    None where there is none, and both where the base is not above 0. Of values that are all the
    same, `alike` gives the interval that their range leaves open: of a mean of values less a ratio
    times those of the baseline, its error, and that ratio.
    """
    mine, theirs, both = errors
    if value is None or not base or base < 0 or mine is None or theirs is None or both is None:
        return None, None
    of_value, of_base = (mine / base) ** 2, (theirs / base) ** 2
    covariance = (of_value + of_base - (both / base) ** 2) / 2
    start = value / base

    def ends(ratio: float) -> tuple[float, float]:
        square = of_value + ratio**2 * of_base - 2 * ratio * covariance
        error = math.sqrt(max(square, 0.0))
        low, high = start - ratio - t * error, start - ratio + t * error
        if alike is None:
            return low, high
        least, most = alike((start - ratio) * base, error * base, ratio)
        return min(low, least), max(high, most)

    low, high = ratio_ends(ends, start)
    if not low and not positive:
        return None, None if math.isinf(high) else high - 1
    return low - 1, None if math.isinf(high) else high - 1


def relative_ends_of(
    column: SystemColumn, base: AnyMean, spec: MetricSpec, confidence: float
) -> tuple[float | None, float | None]:
    """Return the ends of the interval of a relative difference; None where it has none."""
    paired = column.paired
    mine: AnyMean | Fit = column.mean
    theirs: AnyMean | Fit = base
    if isinstance(paired, Adjusted):
        mine, theirs = paired.mine, paired.theirs
    if paired is None or too_few(paired) or paired.standard_error is None:
        return None, None
    t = t_quantile((1 + confidence) / 2, paired.freedom)
    errors = mine.standard_error, theirs.standard_error, paired.standard_error
    (low, high), n = spec.bounds, paired.effective

    def alike(mean: float, error: float, ratio: float) -> tuple[float, float]:
        ends = low - ratio * high, high - ratio * low
        one = Part(1.0, Spread(mean, error**2 * (n - 1) / n, 0.0, 1 / n), *ends)
        return mean_ends([one], (1 - confidence) / 2)

    flat = (not mine.standard_error or paired.alike) and not math.isinf(high - low)
    return relative_ends(mine.mean, theirs.mean, errors, t, low >= 0, alike if flat else None)


def spread_of_pairs(column: SystemColumn) -> Spread:
    """Return how differences spread; those that a covariate adjusts, as if symmetric."""
    paired = column.paired
    assert paired is not None  # as it is no column of the baseline
    mean, n, moments = paired.mean or 0.0, max(paired.effective, 1.0), column.moments
    adjusted = isinstance(paired, Adjusted)
    if isinstance(paired, Paired) and not adjusted:
        z = (paired.values - mean) / n
        square, cube = (math.fsum((paired.counts * z**power).tolist()) for power in (2, 3))
        return Spread(mean, square, cube, 1 / n)
    if moments is not None and moments.paired and not adjusted:
        return moments.spread(1.0)
    square = (paired.standard_error or 0.0) ** 2 * (n - 1) / n
    return Spread(mean, square, 0.0, 1 / n)


def of_alike(column: SystemColumn, spec: MetricSpec, confidence: float) -> Tested:
    """Return what the range of the metric says of differences that are all the same.

    p is twice the chance of so many with a mean that is 0 or on the other side. It is None without
    such a range, or for one query, unless there is no difference at all.
    """
    width = spec.bounds[1] - spec.bounds[0]
    one, paired = spread_of_pairs(column)._replace(square=0.0, cube=0.0), column.paired
    assert paired is not None
    low, high = bound_of(one, (-width, width), confidence)
    p = 1.0 if paired.all_zero else None
    if p is None and low is not None and paired.n > 1:
        p = min(1.0, 2 * chance_of(one, width, 0.0))
    return Tested(p, None, low, high) if p is not None else Tested(None)


def chance_of(one: Spread, width: float, limit: float) -> float:
    """Return the p of the claim that a mean of differences is beyond the limit, where it seems so.

    Of a mean above the limit it is the claim that the true one is, and of one below the same.
    """
    if one.mean > limit:
        return chance_below(with_unseen(one, -width), limit)
    return chance_above(with_unseen(one, width), limit)


# ------------------------------------------------------------------ judgement

POWER = 0.8
"""How often a difference is to be seen."""

Judged: TypeAlias = dict[tuple[Any, ...], Difference]
"""A metric and a system, perhaps behind a slice -> their difference from the baseline.

In the place of the system may be a pair of two that are not the baseline.
"""


def differences(
    sums: Sums,
    baseline: str,
    settings: Settings,
    threads: int,
    confidence: float | None = None,
) -> Judged:
    """Return the tested differences of each metric and system; p is not corrected yet.

    `confidence` is that of the intervals of a slice. There nothing is shown that the bound of what
    was not seen does not show too: of many slices, one has none of the rare gains of all.
    """
    found: Judged = {}
    asked = replace(settings, confidence=confidence or settings.confidence)
    for metric, of in sums.columns.items():
        for name, one in of.items():
            if one.paired is not None:
                base, spec = of[baseline].mean, parse(metric).spec
                told = tested(one, base, asked, threads, spec)
                if confidence is not None:
                    told = _as_of_a_slice(told, one, base, asked, spec)
                found[metric, name] = _with_margins(told, one, settings, spec)
    return found


def _cut(found: Tested, width: float) -> Tested:
    """Return an interval of a difference within the width of the range of its metric."""
    if found.low is None or found.high is None:
        return found
    return found._replace(low=max(found.low, -width), high=min(found.high, width))


def tested(
    column: SystemColumn,
    base: AnyMean,
    settings: Settings,
    threads: int,
    spec: MetricSpec,
) -> Difference:
    """Return a difference with its tests, which are not corrected yet, and not yet of a margin."""
    paired, better = column.paired, spec.better
    assert paired is not None  # as it is no column of the baseline
    won, lost = _won_and_lost(paired, better)
    theirs = paired.theirs if isinstance(paired, Adjusted) else base
    if paired.n == 0:
        return Difference(None, won=won, tied=0, lost=lost, better=better)
    run = partial(
        run_test,
        paired=paired,
        confidence=settings.confidence,
        seed=settings.seed,
        threads=threads,
    )
    alike = None
    if paired.alike and not too_few(paired):
        alike = of_alike(column, spec, settings.confidence)
    tests = {}
    width, error = spec.bounds[1] - spec.bounds[0], paired.standard_error
    for name in settings.tests:
        # The t test says nothing where all differences are the same.
        found = alike if alike is not None and name == "t" else run(name)
        tests[name] = _cut(found, width)._replace(direction=_direction(name, paired))
    # No other test has an interval.
    interval = alike or tests.get("t") or _cut(run("t"), width)
    low, high = relative_ends_of(column, base, spec, settings.confidence)
    detects = bound_p = None
    if error and not too_few(paired):
        level = t_quantile((1 + settings.confidence) / 2, paired.freedom)
        least = (level + t_quantile(POWER, paired.freedom)) * error
        detects = least if least <= width else None
    if not math.isinf(width) and not paired.all_zero:
        bound_p = min(1.0, 2 * chance_of(spread_of_pairs(column), width, 0.0))
    return Difference(
        value=paired.mean,
        relative=relative(paired.mean, theirs.mean),
        relative_low=low,
        relative_high=high,
        low=interval.low,
        high=interval.high,
        won=won,
        tied=paired.tied,
        lost=lost,
        tests=tests,
        better=better,
        variance_reduction=paired.reduction if isinstance(paired, Adjusted) else None,
        detects=detects,
        bound_p=bound_p,
    )


def _as_of_a_slice(
    one: Difference, column: SystemColumn, base: AnyMean, settings: Settings, spec: MetricSpec
) -> Difference:
    """Return a difference whose p and intervals are no narrower than those of the bound."""
    width, first = spec.bounds[1] - spec.bounds[0], next(iter(one.tests))
    if one.bound_p is None or one.low is None or one.high is None:
        return one
    low, high = bound_of(spread_of_pairs(column), (-width, width), settings.confidence)
    ends = min(one.low, low or 0.0), max(one.high, high or 0.0)
    tested = one.tests[first]
    if tested.p is not None:
        tested = tested._replace(corrected_p=max(tested.p, one.bound_p))
    of, relatives = base.mean or 0.0, (one.relative_low, one.relative_high)
    if of > 0 and one.relative is not None:
        least, most = relatives
        all_lost = -1.0 if spec.bounds[0] >= 0 else -math.inf
        relatives = (
            None if least is None else max(all_lost, min(least, ends[0] / of)),
            None if most is None else max(most, ends[1] / of),
        )
    return replace(
        one,
        tests=one.tests | {first: tested},
        low=ends[0],
        high=ends[1],
        relative_low=relatives[0],
        relative_high=relatives[1],
    )


def _with_margins(
    one: Difference, column: SystemColumn, settings: Settings, spec: MetricSpec
) -> Difference:
    """Return a difference with its tests of the margin, if there is one."""
    if settings.margin is None or one.value is None:
        return one
    equal, no_worse = _within_margin(equivalence, column, settings, spec), None
    if one.better != "neither":
        test = partial(noninferiority, better=one.better)
        no_worse = _within_margin(test, column, settings, spec)
    return replace(one, equivalence=equal, noninferiority=no_worse)


def _won_and_lost(paired: AnyPaired, better: Better) -> tuple[int | None, int | None]:
    """Return how many queries the system won and lost; None where neither side is better."""
    if better == "neither":
        return None, None
    return (paired.lost, paired.won) if better == "lower" else (paired.won, paired.lost)


def _within_margin(
    test: Callable[..., Tested], column: SystemColumn, settings: Settings, spec: MetricSpec
) -> Tested:
    """Return a test of the margin; what is to be corrected heeds what was not seen too.

    Without a spread p and the interval are those that the range of the metric leaves.
    """
    margin, tail = settings.margin or 0.0, 1 - settings.confidence
    paired = column.paired
    assert paired is not None
    found = test(paired, margin, settings.confidence)
    width = spec.bounds[1] - spec.bounds[0]
    if math.isinf(width) or too_few(paired):
        return found
    one = spread_of_pairs(column)
    below, above = with_unseen(one, -width), with_unseen(one, width)
    # One side alone counts where the system is to be no worse.
    up, down = (test is equivalence or spec.better == side for side in ("higher", "lower"))
    chances = [chance_below(below, -margin)] if up else []
    chances += [chance_above(above, margin)] if down else []
    unseen = max(chances)
    if found.p is not None:
        return found._replace(corrected_p=max(found.p, unseen))
    low = max(-width, smallest(below, tail)) if up else None
    high = min(width, largest(above, tail)) if down else None
    return Tested(unseen, None, low, high)


def _direction(test: str, paired: AnyPaired) -> int:
    """Return the sign of what a test looks at: of the mean, or of the ranks."""
    looked_at: float = paired.mean or 0.0
    if test == "wilcoxon" and not isinstance(paired, WeightedPaired):
        _, positive, negative = paired.magnitudes
        counts = positive + negative
        ranks = paired.tied + np.cumsum(counts) - (counts - 1) / 2
        looked_at = float(((positive - negative) * ranks).sum())
    return (looked_at > 0) - (looked_at < 0)


def judged(found: Mapping[tuple[Any, ...], Difference], settings: Settings) -> Judged:
    """Return differences with p corrected over all of them, and a verdict where there is a test."""
    every = dict(found)
    places = [place for place, one in every.items() if one.tests]
    # The one test of a metric such as gap decides there, and is corrected with those that decide.
    first = settings.tests[0]
    for test in settings.tests:
        names = {place: _standing_for(every[place], test, first) for place in places}
        corrected = _corrected(
            {place: every[place].tests[name] for place, name in names.items() if name},
            settings.correction,
        )
        for place, one in corrected.items():
            tests = every[place].tests | {names[place] or test: one}
            every[place] = replace(every[place], tests=tests)
    for margin in ("equivalence", "noninferiority") if settings.margin is not None else ():
        asked = {p: getattr(every[p], margin) for p in places if getattr(every[p], margin)}
        for place, one in _corrected(asked, settings.correction).items():
            every[place] = replace(every[place], **{margin: one})
    for place in places:
        verdict = _verdict(every[place], settings)
        every[place] = _beside(replace(every[place], verdict=verdict), first)
    return every


def _beside(one: Difference, first: str) -> Difference:
    """Return a difference of which no interval is on both sides of 0 where one side is shown.

    Holm shows more than intervals that hold together without it, which then end at 0: they hold
    together all the same (Guilbaud, Biometrical Journal 2008).
    """
    if first != "t" or one.verdict not in (BETTER, WORSE, HIGHER, LOWER) or not one.value:
        return one
    ends = ("low", "relative_low") if one.value > 0 else ("high", "relative_high")
    farther = max if one.value > 0 else min
    known = {end: getattr(one, end) for end in ends}
    cut = {end: farther(number, 0.0) for end, number in known.items() if number is not None}
    return replace(one, **cut)


def _standing_for(one: Difference, test: str, first: str) -> str | None:
    """Return the name of the test of a difference that is corrected with all that are `test`."""
    if one.tied is None:  # no mean over queries
        return "t" if test == first else None
    return test if test in one.tests else None


def _corrected(
    tests: Mapping[tuple[Any, ...], Tested], correction: str
) -> dict[tuple[Any, ...], Tested]:
    """Return the tests with corrected p."""
    ps = [one.p if one.corrected_p is None else one.corrected_p for one in tests.values()]
    pairs = zip(tests.items(), correct(ps, correction), strict=True)
    return {place: one._replace(corrected_p=p) for (place, one), p in pairs}


def _verdict(one: Difference, settings: Settings) -> str | None:
    """Return the word for a difference; one that does not matter is equal, even if it is shown.

    It is None where the first test is not defined, such as for one query. Where the test and the
    mean point in different directions, the one does not speak for the other.
    """
    least = 1 - settings.confidence

    def shown(tested: Tested | None) -> bool:
        return tested is not None and tested.corrected_p is not None and tested.corrected_p <= least

    if shown(one.equivalence):
        return EQUAL
    first = next(iter(one.tests.values()))
    if one.value and shown(first) and first.direction * one.value > 0:
        if one.gain is None:
            return HIGHER if one.value > 0 else LOWER
        return BETTER if one.gain > 0 else WORSE
    if shown(one.noninferiority):
        return NON_INFERIOR
    return None if first.p is None else NOT_SHOWN


def first_test(settings: Settings) -> Settings:
    """Return the settings with the first test alone."""
    return replace(settings, tests=settings.tests[:1])


# ------------------------------------------------------------------ the slices, tested as a family

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
