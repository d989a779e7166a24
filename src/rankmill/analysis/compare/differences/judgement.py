"""The tests of differences, their correction, and the word that they come to."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from rankmill.analysis.compare.differences.differences import (
    BETTER,
    EQUAL,
    HIGHER,
    LOWER,
    NON_INFERIOR,
    NOT_SHOWN,
    WORSE,
    Difference,
    Settings,
)
from rankmill.analysis.compare.differences.intervals import (
    bound_of,
    chance_of,
    of_alike,
    relative,
    relative_ends_of,
    spread_of_pairs,
)
from rankmill.analysis.compare.differences.sums import AnyMean, Sums, SystemColumn
from rankmill.analysis.statistics.covariate import Adjusted
from rankmill.analysis.statistics.distributions import t_quantile
from rankmill.analysis.statistics.outcome import Tested, correct
from rankmill.analysis.statistics.paired_differences import AnyPaired, WeightedPaired
from rankmill.analysis.statistics.significance import (
    equivalence,
    noninferiority,
    run_test,
    too_few,
)
from rankmill.analysis.statistics.unseen import (
    chance_above,
    chance_below,
    largest,
    smallest,
    with_unseen,
)
from rankmill.metrics.base import Better, MetricSpec
from rankmill.metrics.registry import parse

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
    for name in settings.tests:
        # The t test says nothing where all differences are the same.
        found = alike if alike is not None and name == "t" else run(name)
        tests[name] = found._replace(direction=_direction(name, paired))
    # No other test has an interval.
    interval = alike or tests.get("t") or run("t")
    low, high = relative_ends_of(column, base, spec, settings.confidence)
    width, error = spec.bounds[1] - spec.bounds[0], paired.standard_error
    detects = bound_p = None
    if error and not too_few(paired):
        level = t_quantile((1 + settings.confidence) / 2, paired.freedom)
        detects = (level + t_quantile(POWER, paired.freedom)) * error
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
        every[place] = replace(every[place], verdict=_verdict(every[place], settings))
    return every


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
