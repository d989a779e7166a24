"""One night, simulated for `verdicts.py`: the hardest shapes of differences, exactly at the limit.

At the limit neither "regressed" nor "held" may be said, but for 2.5 % of nights each. A shape says
how the differences of queries are drawn, with a mean of 0; mirrored, its gains are losses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats

from rankmill.analysis.compare.differences.comparison_state import column_of
from rankmill.nightly.rules.measurements import (
    MeasuredSide,
    Measurement,
    interval_of,
    word_of,
)
from rankmill.nightly.rules.rules import HELD, REGRESSED, Rule, parse_rule
from rankmill.nightly.rules.sides import at_one_mix

Rate = tuple[str, int, int, float, float]
Shape = Callable[[np.random.Generator, int], np.ndarray]
UNIT = (0.0, 1.0)
LEVEL = 0.025
# Beyond so many standard errors of t from the limit, one looks with the bound.
NEAR = 1.2


def of_two(up: float, gain: tuple[float, float], down: float) -> Shape:
    """Return the shape in which a share gains, and another share loses as much in all."""
    loss = up * sum(gain) / 2 / down

    def draw(random: np.random.Generator, n: int) -> np.ndarray:
        luck, size = random.random(n), random.random(n)
        gained = gain[0] + (gain[1] - gain[0]) * size
        lost = -loss * 2 * size if loss <= 0.5 else np.full(n, -loss)
        return np.where(luck < up, gained, np.where(luck > 1 - down, lost, 0.0))

    return draw


def exchangeable(random: np.random.Generator, n: int) -> np.ndarray:
    """Two lists of one quality: average precision of one or two labels."""
    ranks = random.integers(1, 11, (2, n))
    found = random.random((2, n)) < 0.6
    one, other = found / ranks
    return np.asarray(one - other)


def beta(random: np.random.Generator, n: int) -> np.ndarray:
    """Mostly nothing, and at times nearly all: less its mean."""
    return random.beta(0.02, 0.98, n) - 0.02


def reciprocal(random: np.random.Generator, n: int) -> np.ndarray:
    """A tenth move from rank 1 to 2 and others from far to near, as many in all."""
    luck = random.random(n)
    return np.where(luck < 0.1, -0.5, np.where(luck < 0.2, 0.5, 0.0))


SHAPES: dict[str, Shape] = {
    "3 % gain .5 to 1, 40 % lose a little": of_two(0.03, (0.5, 1.0), 0.4),
    "1 % gain 1, 40 % lose a little": of_two(0.01, (1.0, 1.0), 0.4),
    ".1 % gain 1, all others lose .001": of_two(0.001, (1.0, 1.0), 0.999),
    "1 % gain .9, 9 % lose .1, others tie": of_two(0.01, (0.9, 0.9), 0.09),
    "10 % differ by as much up and down": of_two(0.05, (0.5, 0.5), 0.05),
    "AP, exchangeable": exchangeable,
    "mostly none, at times all (own)": beta,
    "reciprocal ranks (own)": reciprocal,
    "half a percent gain all, 5 % lose .1 (own)": of_two(0.005, (1.0, 1.0), 0.05),
}


def pair_of(random: np.random.Generator, differences: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return values from 0 to 1 that differ so, those of the baseline first."""
    room = 1 - np.abs(differences)
    old = np.maximum(0.0, -differences) + room * random.random(len(differences))
    return old, np.clip(old + differences, 0.0, 1.0)


def words(
    rule: Rule, old: np.ndarray, new: np.ndarray, confidence: float, weights: np.ndarray | None
) -> str:
    """Return the word of a paired rule, "" if it is clear without the bound that there is none."""
    ratio = 1 - rule.limit * rule.relative
    apart = new - ratio * old + rule.limit * (not rule.relative)
    mean = np.average(apart, weights=weights)
    if abs(mean) < NEAR * apart.std() / len(apart) ** 0.5 and apart.std():
        return ""
    columns = column_of(new, old, weights, moments="pairs"), column_of(old, None, weights)
    one = Measurement.of(*columns, UNIT)
    found = interval_of(rule, one, confidence)
    return "" if found is None else word_of(rule, found, confidence)


def paired(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """Of each shape and its mirror image, alone and over 20 slices: exactly at the limit."""
    absolute = parse_rule("ap drop <= 0.0 confidence 0.95")
    for name, shape in SHAPES.items():
        for mirrored in (1, -1):
            for n, slices in ((30, 20), (100, 20), (300, 20), (30, 1), (300, 1), (1000, 1)):
                confidence = 1 - 0.05 / slices
                told = {REGRESSED: 0, HELD: 0}
                nights = repetitions // 4 if slices > 1 else repetitions
                for _ in range(nights):
                    seen = set()
                    for _ in range(slices):
                        old, new = pair_of(random, mirrored * shape(random, n))
                        seen.add(words(absolute, old, new, confidence, None))
                    for word in told:
                        told[word] += word in seen
                what = f"{name}{' (mirrored)' * (mirrored < 0)}, {slices} × {n:,}"
                for word, count in told.items():
                    yield f"20: {word} at the limit: {what}", count, nights, LEVEL, 0.0


def mixed(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """Unpaired nights just at the limit within slices, the shares of which move by sd 0 to 30 %."""
    rule = parse_rule("hit@1 drop <= 2% confidence 0.95")
    common, rare = (0.1, 0.9), (0.0, 0.05)
    for slices, n, reach in (
        *((5, 300, common), (5, 1000, common), (5, 5000, common), (20, 1000, common)),
        *((20, 5000, common), (20, 1000, rare), (20, 5000, rare)),
    ):
        rates = np.linspace(*reach, slices)
        for sd in (0.0, 0.1, 0.3):
            told = {REGRESSED: 0, HELD: 0}
            for _ in range(repetitions):
                moved = np.maximum(0.05, 1 + sd * random.normal(size=slices))
                before = of_slices(random, np.full(slices, 1 / slices), rates, n)
                tonight = of_slices(random, moved / moved.sum(), 0.98 * rates, n)
                whole = Measurement(over(tonight), over(before), bounds=UNIT)
                known = at_one_mix(whole, tonight, before)
                found = interval_of(rule, whole if known is None else known[0], 0.95)
                word = "" if found is None else word_of(rule, found, 0.95)
                if word in told:
                    told[word] += 1
            what = f"{slices} slices, {n:,} queries, rates to {reach[1]:g}"
            what += f", shares move by {100 * sd:g} %"
            for word, count in told.items():
                yield f"22: {word} at the limit: {what}", count, repetitions, LEVEL, 0.0


Hits = dict[tuple[str, str], MeasuredSide]


def of_slices(random: np.random.Generator, shares: np.ndarray, rates: np.ndarray, n: int) -> Hits:
    """Return the hits of a night in each slice, as a history has them."""
    counts = random.multinomial(n, shares)
    hits = random.binomial(counts, rates)
    return {
        ("by", str(i)): of_hits(int(hit), int(count))
        for i, (hit, count) in enumerate(zip(hits, counts, strict=True))
    }


def over(slices: Hits) -> MeasuredSide:
    """Return the hits of a night over all slices."""
    hits = sum(round((one.value or 0.0) * one.queries) for one in slices.values())
    return of_hits(hits, sum(one.queries for one in slices.values()))


def of_hits(hits: int, n: int) -> MeasuredSide:
    """Return the share of hits of n queries."""
    if not n:
        return MeasuredSide()
    rate = hits / n
    third = rate * (1 - rate) * (1 - 2 * rate)
    error = (rate * (1 - rate) / (n - 1)) ** 0.5 if n > 1 else None
    return MeasuredSide(rate, error, n, third=third)


def relative(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """Hits, paired and not, that drop by just the relative limit; and with weights."""
    rule = parse_rule("hit@1 drop <= 5% confidence 0.95")
    for rate in (0.01, 0.1, 0.5, 0.9):
        for n in (30, 300, 3000):
            for how in ("paired", "unpaired", "weights"):
                told = {REGRESSED: 0, HELD: 0}
                for _ in range(repetitions):
                    old = (random.random(n) < rate).astype(float)
                    kept = old if how == "paired" else (random.random(n) < rate)
                    new = kept * (random.random(n) < 0.95)
                    weights = np.exp(random.normal(0, 1, n)) if how == "weights" else None
                    if how == "unpaired":
                        mine, theirs = (
                            Measurement.of(column_of(one, None, None, moments="pairs"), None, UNIT)
                            for one in (new, old)
                        )
                        one = mine._replace(theirs=theirs.mine)
                        found = interval_of(rule, one, 0.95)
                        word = "" if found is None else word_of(rule, found, 0.95)
                    else:
                        word = words(rule, old, new, 0.95, weights)
                    if word in told:
                        told[word] += 1
                for word, count in told.items():
                    what = f"hits {rate}, {n:,} queries, {how}, drop of 5 %"
                    yield f"20: {word} at the limit: {what}", count, repetitions, LEVEL, 0.0


def power(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """What the bound still sees, beside what a paired t test would."""
    rule = parse_rule("ap drop <= 0.0 confidence 0.95")
    for n, t in ((300, 0.71), (1000, 0.76), (3000, 0.77)):
        seen = tested = 0
        shift = 2.7 * 0.33 / n**0.5
        for _ in range(repetitions):
            lost = exchangeable(random, n)
            worse = np.where(random.random(n) < shift / 0.4, np.minimum(lost, -0.4), lost)
            old, new = pair_of(random, worse)
            apart = new - old
            tested += apart.mean() < -1.96 * apart.std(ddof=1) / n**0.5
            seen += words(rule, old, new, 0.95, None) == REGRESSED
        yield f"20: t sees a loss, {n:,} queries", tested, repetitions, 1.0, 0.0
        yield f"20: the bound sees the same loss, {n:,} queries", seen, repetitions, 1.0, t - 0.08
    drop, level = parse_rule("ap drop <= 0% confidence 0.95"), 0.05 / 20
    for right, least in ((1.0, 0.8), (0.5, 0.4)):
        found = tested = 0
        for _ in range(repetitions):
            old = (random.random(100) < right) * random.random(100)
            new = old * (random.random(100) > 0.3)
            tested += stats.ttest_rel(new, old).pvalue <= level
            found += words(drop, old, new, 1 - level, None) == REGRESSED
        what = f"a slice of 20 × 100, {right:.0%} of queries right, that loses 30 %"
        yield f"20: t sees {what}", tested, repetitions, 1.0, 0.0
        yield f"20: the bound sees {what}", found, repetitions, 1.0, least
