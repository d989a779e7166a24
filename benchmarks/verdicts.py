"""Hold what verdicts conclude to what they promise, by simulated nights and comparisons.

    python benchmarks/verdicts.py [--repetitions 2000] [--seed 0] [--only relative ...]

Each row is a setting, what is promised of it, and what was measured. A rate that may be at most so
much is off if its lower 99 % bound is above it; one that is to be at least so much, if its upper
bound is below. The script ends with 1 if a row is off. Values of queries are drawn as arrays, and
go through the functions that compare and gate call; a few go through the whole commands.

A further promise is a function that yields rows, and a line in `PROMISES`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from rankmill.compare.adjusted import fit_of
from rankmill.compare.clustered import ClusteredPaired
from rankmill.compare.distributions import largest_share, t_tail
from rankmill.compare.significance import run_test
from rankmill.compare.sums import column_of
from rankmill.gate.judge import _word
from rankmill.gate.measured import Measured, drop_of
from rankmill.gate.rules import HELD, REGRESSED, UNDECIDED, Rule, parse_rule

UNIT = (0.0, 1.0)
BOUND = 0.01


class Row(NamedTuple):
    """A rate that was counted, and the least or the most that it may be."""

    what: str
    count: int
    of: int
    most: float = 1.0
    least: float = 0.0

    @property
    def kept(self) -> bool:
        """Whether the rate may be as promised, by its 99 % bounds."""
        low = 1 - largest_share(self.of - self.count, self.of, BOUND)
        return low <= self.most and largest_share(self.count, self.of, BOUND) >= self.least

    def cells(self) -> list[str]:
        promised = f"at most {self.most:.3g}" if self.most < 1 else f"at least {self.least:.3g}"
        return [self.what, promised, f"{self.count / self.of:.4g}", "yes" if self.kept else "NO"]


class Asked(NamedTuple):
    """How often to repeat, and the random numbers."""

    repetitions: int
    random: np.random.Generator


def night(rule: Rule, old: np.ndarray, new: np.ndarray, confidence: float) -> str:
    """Return the word of a rule about the drop of values of queries."""
    one = Measured.of(column_of(new, old, None), column_of(old, None, None), UNIT)
    found = drop_of(one, confidence, relative=rule.relative, better="higher")
    return UNDECIDED if found is None else _word(rule, found, confidence)


def hits(asked: Asked, queries: int, rate: float) -> np.ndarray:
    return (asked.random.random(queries) < rate).astype(float)


# --------------------------------------------------------------------- relative drops

SETTINGS = (
    *((10, 0.1, 20), (30, 0.2, 20), (100, 0.1, 20), (300, 0.03, 20), (30, 0.5, 20)),
    *((1000, 0.05, 20), (100, 0.02, 5), (1000, 0.002, 1), (300, 0.1, 1), (3000, 0.1, 1)),
    (20, 0.9, 20),
)
"""The queries of a slice, their rate of hits, and the number of slices."""


def relative(asked: Asked) -> Iterator[Row]:
    """Nothing changed: no night may be stopped; a true drop of 25 % is seen."""
    rule = parse_rule("hit@1 drop <= 3% confidence 0.95")
    for queries, rate, slices in SETTINGS:
        confidence = 1 - (1 - 0.95) / slices
        alarms = 0
        for _ in range(asked.repetitions):
            drawn = (hits(asked, queries, rate) for _ in range(2 * slices))
            pairs = zip(drawn, drawn, strict=True)
            alarms += any(night(rule, *pair, confidence) == REGRESSED for pair in pairs)
        what = f"1: alarms, {slices} slices of {queries:,} queries, rate {rate}"
        yield Row(what, alarms, asked.repetitions, most=0.04)
    few = parse_rule("hit@1 drop <= 50% confidence 0.999999")
    old = np.zeros(1000)
    old[0] = 1
    stopped = night(few, old, np.zeros(1000), 0.999999) == REGRESSED
    yield Row("1: alarms, 1 hit of 1,000 that is lost, drop <= 50%", int(stopped), 1, most=0.0)
    seen = sum(
        night(rule, hits(asked, 3000, 0.2), hits(asked, 3000, 0.146), 0.95) == REGRESSED
        for _ in range(asked.repetitions)
    )
    yield Row("1: true drops of 27 % seen, 3,000 queries", seen, asked.repetitions, least=0.985)


# --------------------------------------------------------------------- what was not seen


def unseen(asked: Asked) -> Iterator[Row]:
    """A true drop of 50 % is not held, however few queries there are."""
    rule = parse_rule("hit@1 drop <= 3% confidence 0.95")
    for queries in (2, 30, 100, 300, 1000):
        for rate in (0.02, 0.1):
            held = 0
            for _ in range(asked.repetitions):
                old = hits(asked, queries, rate)
                held += night(rule, old, old * hits(asked, queries, 0.5), 0.95) == HELD
                held += night(rule, old, hits(asked, queries, rate / 2), 0.95) == HELD
            what = f"4: held, true drop of 50 %, {queries:,} queries, rate {rate}"
            yield Row(what, held, 2 * asked.repetitions, most=0.025)
    absolute = parse_rule("hit@1 drop <= 0.01 confidence 0.95")
    for queries in (30, 100, 300, 1000):
        held = 0
        for _ in range(asked.repetitions):
            old = hits(asked, queries, 0.9)
            lost = hits(asked, queries, 0.0101 / 0.9)
            held += night(absolute, old, old * (1 - lost), 0.95) == HELD
        what = f"4: held, drop just beyond <= 0.01, {queries:,} queries"
        yield Row(what, held, asked.repetitions, most=0.025)


# --------------------------------------------------------------------- clusters

UNEQUAL = (60, 45, 40, 35, 30, 30, 25, 25, 20, 20, 15, 15)
"""The queries of 12 clusters, which are worth 10.3 of equal size."""


def clusters(asked: Asked) -> Iterator[Row]:
    """Equal systems do not differ where the sessions of a user are alike, with an ICC of 0.3."""
    settings = (
        *(("50 users of 20 sessions", [20] * 50, "t", 0.05),),
        *(("50 users of 1 to 96 sessions", [*range(1, 97, 2)] + [1] * 2, "t", 0.06),),
        ("12 unequal clusters", UNEQUAL, "t", 0.08),
        ("12 unequal clusters", UNEQUAL, "randomization", 0.05),
        ("48 unequal clusters", UNEQUAL * 4, "bootstrap", 0.07),
        ("156 unequal clusters", UNEQUAL * 13, "bca", 0.07),
    )
    for what, sizes, test, most in settings:
        codes, found = np.repeat(np.arange(len(sizes)), sizes), 0
        for _ in range(asked.repetitions):
            of_users = asked.random.normal(0, 0.3**0.5, len(sizes))
            drawn = of_users[codes] + asked.random.normal(0, 0.7**0.5, len(codes))
            p = run_test(test, ClusteredPaired.of(drawn, codes), replicates=999, threads=1).p
            found += p is not None and p <= 0.05
        yield Row(f"13: {test} finds none, {what}", found, asked.repetitions, most=most)
    codes = np.repeat(np.arange(50), 20)
    rule, held = parse_rule("hit@1 drop <= 10% confidence 0.95"), 0
    for _ in range(asked.repetitions):
        rates = asked.random.beta(0.7, 1.633, 50)[codes]  # a mean of 0.3, and an ICC of 0.3
        old = (asked.random.random(1000) < rates).astype(float)
        lost = asked.random.random(50)[codes] < 0.1  # of a tenth of the users all is lost
        columns = column_of(old * ~lost, old, None, codes), column_of(old, None, None, codes)
        drop = drop_of(Measured.of(*columns, UNIT), 0.95, relative=True, better="higher")
        held += drop is not None and _word(rule, drop, 0.95) != UNDECIDED
    what = "13: decided at the true drop, 50 users of 20 sessions"
    yield Row(what, held, asked.repetitions, most=0.05)


# --------------------------------------------------------------------- adjusted


def adjusted(asked: Asked) -> Iterator[Row]:
    """Equal systems do not differ after an adjustment, and fewer queries show a difference."""
    for queries in (20, 200):
        found = seen = 0
        for _ in range(asked.repetitions):
            before = asked.random.exponential(1, queries)  # its mean over all queries is 1
            drawn = before - 1 + asked.random.normal(0, 0.5, queries)
            fits = [fit_of(drawn + shift, before - 1) for shift in (0.0, 0.15)]
            left, right = (
                2 * t_tail(abs(one.mean or 0.0) / (one.standard_error or 1.0), one.freedom) <= 0.05
                for one in fits
            )
            found, seen = found + left, seen + right
        yield Row(f"13: adjusted t finds none, {queries} queries", found, asked.repetitions, 0.05)
    # Four fifths of the variance are those of `before`: without the adjustment it is .47.
    yield Row("13: adjusted t sees 0.15, 200 queries", seen, asked.repetitions, least=0.98)


PROMISES: dict[str, Callable[[Asked], Iterator[Row]]] = {
    "relative": relative,
    "unseen": unseen,
    "clusters": clusters,
    "adjusted": adjusted,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=list(PROMISES), choices=PROMISES)
    given = parser.parse_args()
    kept = True
    print("| what | promised | measured | kept |\n|---|---|---:|---|")
    for name in given.only:
        for row in PROMISES[name](Asked(given.repetitions, np.random.default_rng(given.seed))):
            print("|", " | ".join(row.cells()), "|", flush=True)
            kept &= row.kept
    return not kept


if __name__ == "__main__":
    sys.exit(main())
