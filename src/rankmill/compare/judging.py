"""The tests of a difference, their correction, and the word that they come to."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from rankmill.compare.corrections import correct
from rankmill.compare.differences import (
    BETTER,
    EQUAL,
    NOT_SHOWN,
    WORSE,
    Difference,
    Settings,
    Tested,
)
from rankmill.compare.outcome import Outcome
from rankmill.compare.paired import Paired
from rankmill.compare.significance import equivalence, noninferiority, run_test


def tested(paired: Paired, base: float | None, settings: Settings, threads: int) -> Difference:
    """Return a difference with its tests, which are not corrected yet."""
    if paired.n == 0:
        return Difference(None, won=0, tied=0, lost=0)
    run = partial(
        run_test,
        paired=paired,
        confidence=settings.confidence,
        replicates=settings.replicates,
        seed=settings.seed,
        threads=threads,
    )
    tests = {
        name: _as_tested(run(name))._replace(direction=_direction(name, paired))
        for name in settings.tests
    }
    intervals = [one for one in tests.values() if one.low is not None]
    # A test without an interval is shown with the one of the t-test.
    interval = intervals[0] if intervals else _as_tested(run("t"))
    within = partial(_within_margin, paired=paired, settings=settings)
    return Difference(
        value=paired.mean,
        relative=relative(paired.mean, base),
        low=interval.low,
        high=interval.high,
        cohen_d=paired.cohen_d,
        won=paired.won,
        tied=paired.tied,
        lost=paired.lost,
        tests=tests,
        equivalence=within(equivalence),
        noninferiority=within(noninferiority),
    )


def _within_margin(
    test: Callable[..., Outcome], paired: Paired, settings: Settings
) -> Tested | None:
    if settings.margin is None:
        return None
    return _as_tested(test(paired, settings.margin, settings.confidence))


def _direction(test: str, paired: Paired) -> int:
    """Return the sign of what a test looks at: of the mean, of the ranks, or of won less lost."""
    looked_at: float = paired.mean or 0.0
    if test == "sign":
        looked_at = paired.won - paired.lost
    elif test == "wilcoxon":
        _, positive, negative = paired.magnitudes
        counts = positive + negative
        ranks = paired.tied + np.cumsum(counts) - (counts - 1) / 2
        looked_at = float(((positive - negative) * ranks).sum())
    return (looked_at > 0) - (looked_at < 0)


def _as_tested(outcome: Outcome) -> Tested:
    return Tested(outcome.p, None, outcome.low, outcome.high)


def relative(difference: float | None, base: float | None) -> float | None:
    """Return a difference over the value of the baseline; None where that is 0 or unknown."""
    return None if difference is None or not base else difference / base


def judged(
    found: dict[str, dict[str, Difference]], settings: Settings
) -> dict[str, dict[str, Difference]]:
    """Return differences with corrected p-values, and a verdict where there is a test."""
    every = {(m, name): one for m, of_system in found.items() for name, one in of_system.items()}
    places = [place for place, one in every.items() if one.tests]
    for test in settings.tests:
        corrected = _corrected([every[place].tests[test] for place in places], settings.correction)
        for place, one in zip(places, corrected, strict=True):
            tests = every[place].tests | {test: one}
            every[place] = replace(every[place], tests=tests)
    for margin in ("equivalence", "noninferiority") if settings.margin is not None else ():
        asked = [getattr(every[place], margin) for place in places]
        for place, one in zip(places, _corrected(asked, settings.correction), strict=True):
            every[place] = replace(every[place], **{margin: one})  # type: ignore[arg-type]
    for place in places:
        every[place] = replace(every[place], verdict=_verdict(every[place], settings))
    return {m: {name: every[m, name] for name in of_system} for m, of_system in found.items()}


def _corrected(tested: list[Tested], correction: str) -> list[Tested]:
    ps = correct([one.p for one in tested], correction)
    return [one._replace(corrected_p=p) for one, p in zip(tested, ps, strict=True)]


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
    first = one.tests[settings.tests[0]]
    if one.value and shown(first) and first.direction * one.value > 0:
        return BETTER if one.value > 0 else WORSE
    return None if first.p is None else NOT_SHOWN
