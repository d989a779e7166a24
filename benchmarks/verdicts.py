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
import pyarrow as pa

import rankmill
from rankmill import gate
from rankmill.compare.distributions import largest_share
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


# --------------------------------------------------------------------- few queries in common

QUERIES = 300
MOST_GATES = 200
"""Whole gates are run so often at most."""


def run_of(right: np.ndarray) -> pa.Table:
    """Return predictions that are right for some queries, which are called by their numbers."""
    items = [[1] if one else [9] for one in right]
    return pa.table({"user_id": np.arange(len(right)), "items": items})


def common(asked: Asked) -> Iterator[Row]:
    """A collapse outside of the queries in common is not held; without a change nothing stops."""
    labels = run_of(np.ones(QUERIES, bool))
    rule = "hit@1 drop <= 5% confidence 0.95"
    gates = min(asked.repetitions, MOST_GATES)
    for share in (0.02, 0.1, 0.5, 0.85):
        held = alarms = 0
        kept = np.arange(QUERIES) < share * QUERIES
        for _ in range(gates):
            old, new = (hits(asked, QUERIES, 0.7) > 0 for _ in range(2))
            values = rankmill.evaluate(labels, run_of(old), ["hit@1"]).per_query.slice(0, sum(kept))
            lost = gate(labels, run_of(old & kept), rule, baseline=values)
            held += lost.worst == HELD
            alarms += gate(labels, run_of(new), rule, baseline=values).worst == REGRESSED
        what = f"the baseline has {share:.0%} of {QUERIES} queries"
        yield Row(f"2: held, all others are lost, {what}", held, gates, most=0.0)
        yield Row(f"2: alarms, nothing changed, {what}", alarms, gates, most=0.04)


# --------------------------------------------------------------------- rules that decide nothing

NEVER = (
    *("map@12 drop <= 1", "map@12 drop <= 100%", "map@12 >= -1", "map@12 >= 0", "map@12 > 1"),
    *("map@12:median >= 0.5 confidence 0.95", "map@12:p10 drop <= 5% confidence 0.95"),
    *("ece <= 0.1 confidence 0.95", "auprc drop <= 5% confidence 0.95", "queries >= 0"),
    *("coverage@12 >= 0.5 confidence 0.95", "map@12[country=a,country=b] drop <= 1%"),
)


def never(asked: Asked) -> Iterator[Row]:
    """A rule that no run breaks, that none keeps, or that is never decided, is refused."""
    taken = 0
    for text in NEVER:
        try:
            parse_rule(text)
        except rankmill.UsageError:
            continue
        taken += 1
    yield Row("3: rules that decide nothing and are taken", taken, len(NEVER), most=0.0)


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


PROMISES: dict[str, Callable[[Asked], Iterator[Row]]] = {
    "relative": relative,
    "common": common,
    "never": never,
    "unseen": unseen,
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
