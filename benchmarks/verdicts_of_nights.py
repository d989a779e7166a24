"""Simulated nights for `verdicts.py`: what rules and drift say of a series of runs.

Each function yields what a row of that table has: what was counted, how often, of how many, and the
most and the least that this rate may be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from rankmill.analysis.compare.differences.comparison_state import column_of
from rankmill.nightly.gate.gate import _chance
from rankmill.nightly.gate.gate_request import levelled
from rankmill.nightly.gate.series import Night, PairedNight, against_pin, running_mean
from rankmill.nightly.rules.measurements import (
    MeasuredSide,
    Measurement,
    interval_of,
    test_of,
    word_of,
)
from rankmill.nightly.rules.rules import REGRESSED, Rule, parse_rule
from rankmill.nightly.runs.folder import HELD, choose
from rankmill.nightly.runs.history_view import drift
from rankmill.nightly.runs.runs import RecordedMetric as Recorded
from rankmill.nightly.runs.runs import Run, new_name, rules_text
from rankmill.semantics.choices import DEFAULT

Rate = tuple[str, int, int, float, float]
Number = tuple[float, float]
Draw = Callable[[], Number]

UNIT = (0.0, 1.0)
DEVIATION = 0.003
"""Of nights of the same queries, beside the season."""
BEGIN = datetime(2026, 1, 1, 3, tzinfo=UTC)
PLAIN = "hit@1 drop <= 0 confidence 0.95"


def rate_of(count: float, queries: int) -> Number:
    """Return a share of queries with a hit, and its standard error."""
    share = count / queries
    return share, float(np.sqrt(share * (1 - share) / (queries - 1)))


def fresh(random: np.random.Generator, queries: int, rate: float) -> Number:
    """Return a night of other queries."""
    return rate_of(random.binomial(queries, rate), queries)


def alarm(rule: Rule, night: Number, base: Number, queries: int) -> str:
    """Return the word of a rule about two runs that are not paired."""
    one = Measurement(MeasuredSide(*night, queries), MeasuredSide(*base, queries), bounds=UNIT)
    found = interval_of(rule, one, rule.confidence)
    return "" if found is None else word_of(rule, found, rule.confidence)


def stops(rule: Rule, night: Number, base: Number, queries: int) -> bool:
    """Return whether a rule about two runs is broken; most are too near to be looked at."""
    kept = 1 - rule.limit * rule.relative
    far = kept * base[0] - night[0] - rule.limit * (not rule.relative)
    error = np.hypot(night[1], kept * base[1])
    return far > 1.5 * error and alarm(rule, night, base, queries) == REGRESSED


# --------------------------------------------------------------------- many nights


def shocks(random: np.random.Generator, nights: int, size: float, kept: float) -> np.ndarray:
    """Return by how much nights are off: an autoregressive series of this standard deviation."""
    found, last = [], size * random.normal()
    for _ in range(nights):
        found.append(last)
        last = kept * last + math.sqrt(1 - kept**2) * size * random.normal()
    return np.array(found)


def paired_night(differences: np.ndarray) -> PairedNight:
    mean, n = float(differences.mean()), len(differences)
    return PairedNight(mean, float(((differences - mean) ** 2).sum()) / n**2, 1 / n, 1 / n)


def series(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """Sixty nights, quiet or exactly at the limit: few series are stopped; losses are found."""
    total = max(20, repetitions // 4)
    for n, share in ((300, 0.03), (300, 0.01), (1000, 0.003), (1000, 0.01), (5000, 0.001)):
        stopped = held = 0
        for _ in range(total):
            nights: list[PairedNight] = []
            words = set()
            for _ in range(60):
                luck = random.random(n)
                lost = np.where(luck > 0.6, -share / 0.4, 0.0)
                nights.append(paired_night(np.where(luck < share, 1.0, lost)))
                found = running_mean(nights, 0.95)
                words.add("stopped" if found.high < 0 else "held" if found.low > 0 else "")
            stopped += "stopped" in words
            held += "held" in words
        what = f"60 paired nights at the limit, {share:.1%} of {n:,} queries gain"
        yield f"21: stopped: {what}", stopped, total, 0.025, 0.0
        yield f"21: held: {what}", held, total, 0.025, 0.0
    for far, least in ((1.2, 0.76), (1.8, 0.985)):
        seen = 0
        for _ in range(repetitions):
            drawn = 0.01 * (random.normal(size=10) - far)
            nights = [PairedNight(one, 1e-4, 5e-4, 5e-4) for one in drawn.tolist()]
            seen += any(running_mean(nights[: t + 1], 0.95).high < 0 for t in range(10))
        what = f"21: paired: {far} standard errors beyond the limit, found by night 10"
        yield what, seen, repetitions, 1.0, least


def pinned(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """Nights of a history against 28 pinned ones: few of 60 quiet nights are stopped."""
    total = max(20, repetitions // 8)
    for kind, size, kept in (
        ("fresh queries", 0.0, 0.0),
        ("shocks of 2 errors", 2.0, 0.0),
        *((f"AR(.7) shocks of {size:g} errors", size, 0.7) for size in (1.0, 2.0, 5.0)),
        ("weekends", 0.0, -1.0),
    ):
        for n, rate, limit in ((20_000, 0.3, 0.05), (100_000, 0.7, 0.01)):
            stopped = seen = 0
            for _ in range(total):
                nights = hits_of(random, n, rate, 88, size, kept, 0.0)
                stopped += any(_pinned(nights[:t], 0.0) for t in range(29, 89))
                leaking = hits_of(random, n, rate, 58, size, kept, 0.007)
                seen += any(_pinned(leaking[:t], limit) for t in range(29, 59))
            what = f"{n:,} queries, rate {rate}, {kind}"
            yield (
                f"21: 60 quiet nights against a pin are stopped, {what}",
                stopped,
                total,
                0.025,
                0.0,
            )
            if size <= 2:
                what = f"21: a leak of 0.7 % is found by night 30, limit {limit:.0%}, {what}"
                yield what, seen, total, 1.0, 0.96
    for n, rate in ((5, 0.3), (100, 0.01)):  # weeks without a hit
        stopped = 0
        for _ in range(total):
            nights = hits_of(random, n, rate, 88, 0.0, 0.0, 0.0)
            stopped += any(_pinned(nights[:t], 0.0) for t in range(29, 89))
        what = f"21: 60 quiet nights of {n} queries against a pin are stopped, rate {rate}"
        yield what, stopped, total, 0.025, 0.0


def hits_of(
    random: np.random.Generator,
    n: int,
    rate: float,
    nights: int,
    size: float,
    kept: float,
    leak: float,
) -> list[Night]:
    """Return nights of other queries each; `kept` below 0 is for weekends that are 3 % lower."""
    days = np.arange(nights)
    off = -0.03 * rate * (days % 7 >= 5) if kept < 0 else np.zeros(nights)
    if size:
        off = shocks(random, nights, size * math.sqrt(rate * (1 - rate) / n), kept)
    level = rate * (1 - leak) ** np.maximum(0, days - 27) + off
    shares = random.binomial(n, np.clip(level, 0, 1)) / n
    return [Night(day, one, one * (1 - one) / n, n) for day, one in enumerate(shares.tolist())]


def _pinned(nights: list[Night], limit: float) -> bool:
    found = against_pin(nights, 1 - limit, 0.0, 0.95)
    return found is not None and found.high < 0


def told(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """The rates that the pages tell of rules that are not sequential."""
    rule, n = parse_rule(PLAIN), 1000
    month = family = alone = 0
    shared = levelled([rule] * 10, 0.95)[0]
    for _ in range(repetitions):
        nights = [fresh(random, n, 0.3) for _ in range(31)]
        pairs = zip(nights[1:], nights[:-1], strict=True)
        month += any(stops(rule, one, before, n) for one, before in pairs)
        pairs = [(fresh(random, n, 0.3), fresh(random, n, 0.3)) for _ in range(10)]
        alone += any(stops(rule, *pair, n) for pair in pairs)
        family += any(stops(shared, *pair, n) for pair in pairs)
    yield "10: told: a rule at 0.95 alarms in a month", month, repetitions, 0.57, 0.50
    yield "10: told: ten rules alarm in a night", alone, repetitions, 0.25, 0.19
    yield "10: ten rules with a family confidence of 0.95", family, repetitions, 0.05, 0.0


def power(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """A drop of the size that --power tells is seen in 80 % of nights; alarms are as told."""
    for text, n, rate, paired in (
        ("hit@1 drop <= 0.01 confidence 0.95", 3000, 0.3, True),
        ("hit@1 drop <= 3% confidence 0.95", 3000, 0.3, True),
        ("hit@1 drop <= 3% confidence 0.95", 3000, 0.3, False),
        ("hit@1 drop <= 1% confidence none", 300, 0.5, False),
        ("hit@1 drop <= 10% confidence 0.9", 100, 0.5, False),
    ):
        rule = parse_rule(text)

        def night(
            drop: float, n: int = n, rate: float = rate, paired: bool = paired
        ) -> Measurement:
            old = (random.random(n) < rate).astype(float)
            new = (random.random(n) < rate - drop).astype(float)
            if paired:  # 5 % of queries change, and `drop` more of them lose
                luck = random.random(n)
                gained = (luck < 0.025 / (1 - rate)).astype(float)
                new = np.where(old > 0, luck >= (0.025 + drop) / rate, gained).astype(float)
            base = column_of(old, None, None, moments="pairs")
            if paired:
                return Measurement.of(column_of(new, old, None, moments="pairs"), base, UNIT)
            one = Measurement.of(column_of(new, None, None, moments="pairs"), None, UNIT)
            return one._replace(theirs=MeasuredSide.of(base))

        asked = [_of_one(rule, night(0.0)) for _ in range(50)]
        drop = float(np.median([seen for seen, _ in asked]))
        chance = float(np.median([often for _, often in asked]))
        absolute = drop * rate if rule.relative else drop
        words = [[], []]  # type: list[list[bool]]
        for of_drop, size in zip(words, (0.0, absolute), strict=True):
            for _ in range(2 * repetitions):
                one = night(size)
                found = interval_of(rule, one, rule.confidence)
                broken = found is not None and word_of(rule, found, rule.confidence) == REGRESSED
                of_drop.append(broken)
        what = f"{text}, {n:,} queries{', paired' if paired else ''}"
        yield f"10: power told as 80 %: {what}", sum(words[1]), 2 * repetitions, 0.85, 0.75
        most, least = 1.25 * chance + 0.003, 0.75 * chance - 0.003
        what = f"10: alarms told as {chance:.2g} a night: {what}"
        yield what, sum(words[0]), 2 * repetitions, most, max(0.0, least)


def _of_one(rule: Rule, one: Measurement) -> tuple[float, float]:
    test = test_of(rule, one)
    assert test is not None
    return test.smallest(rule.confidence), _chance(rule, [test], 1)


# --------------------------------------------------------------------- slow leaks


def quiet_series(kind: str, random: np.random.Generator, nights: int) -> tuple[Any, Any]:
    """Return the values of quiet nights, and their standard errors."""
    day = (np.arange(nights) + random.integers(7)) % 7
    error = np.full(nights, 0.01)
    if kind == "other queries":
        errors = 0.3 / np.sqrt(random.integers(500, 2000, nights))
        return 0.3 + errors * random.normal(size=nights), errors
    season = 0.03 * (day >= 5) if kind == "a weekly season" else 0.0
    return 0.3 + DEVIATION * random.normal(size=nights) - season, error


def flagged(values: Sequence[float], errors: Sequence[float], start: int) -> Iterator[bool]:
    """Yield of each night from `start` on whether drift names it."""
    pairs = [(float(value), float(error)) for value, error in zip(values, errors, strict=True)]
    for night in range(start, len(pairs)):
        found = drift(pairs[max(0, night - 30) : night + 1])
        yield found is not None and found.flagged


def drifts(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """Half a standard deviation a night is named within 12 nights, and few quiet nights are.

    The standard deviation is that of nights beside the season: that of all nights is larger.
    """
    for kind in ("the same queries", "other queries", "a weekly season"):
        deviation = DEVIATION
        if kind == "other queries":
            deviation = float(np.std(quiet_series(kind, random, 700)[0]))
        for quiet, sign in ((14, 1), (48, -1)):
            named = 0
            for _ in range(repetitions):
                values, errors = quiet_series(kind, random, quiet + 12)
                values[quiet:] += 0.5 * sign * deviation * np.arange(1, 13)
                named += any(flagged(values, errors, quiet))
            what = f"11: drift names a slope after {quiet} quiet nights, {kind}"
            yield what, named, repetitions, 1.0, 0.95
        nights = max(1000, 50 * repetitions)
        flags = sum(flagged(*quiet_series(kind, random, nights), 0))
        yield f"11: drift flags a quiet night, {kind}", flags, nights, 1 / 3000, 0.0
        young = max(100, repetitions)
        flags = sum(sum(flagged(*quiet_series(kind, random, 30), 0)) for _ in range(young))
        yield (
            f"11: drift flags one of the first 30 nights, {kind}",
            flags,
            30 * young,
            1 / 3000,
            0.0,
        )


def leaks(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """0.7 % a night for 44 nights after 16 quiet ones is seen, and 60 quiet nights are not stopped.

    `last` and `median:7` see it as nights that were not held are no baseline.
    """
    limit, n, total = "hit@1 drop <= 5% confidence 0.95", 20_000, max(20, repetitions // 40)
    rules = rules_text(DEFAULT)
    for slope, what in ((0.0, "60 quiet nights"), (0.007, "a leak of 0.7 % a night")):
        stopped = dict.fromkeys(("last", "median:7", "ago:28d", "drift"), 0)
        for _ in range(total):
            lost = np.maximum(0, np.arange(60) - 15)
            values = [fresh(random, n, 0.3 * (1 - slope) ** int(one)) for one in lost]
            stopped["drift"] += any(flagged(*zip(*values, strict=True), 16))
            for how in ("last", "median:7", "ago:28d"):
                runs: list[tuple[Run, Recorded]] = []
                for night, number in enumerate(values):
                    when = BEGIN + timedelta(days=night)
                    word = HELD
                    if night >= (28 if how == "ago:28d" else 1):
                        base = Recorded(*choose(how, "hit@1", runs, when, "")[:3], None)
                        rule = parse_rule(limit)
                        before = base.value or 0.0, base.standard_error or 0.0
                        word = alarm(rule, number, before, n)
                    if word == REGRESSED:
                        stopped[how] += 1
                        break
                    run = Run(new_name(when), when, "", rules, {}, word)
                    runs.append((run, Recorded(*number, n, None)))
        for how, count in stopped.items():
            row = f"11: {what} is seen by {how}", count, total
            yield (*row, 1.0, 0.95) if slope else (*row, 0.05, 0.0)
