"""Hold what verdicts conclude to what they promise, by simulated nights and comparisons.

    python benchmarks/verdicts.py [--repetitions 2000] [--seed 0] [--jobs 2] [--only relative ...]

Each row is a setting, what is promised of it, and what was measured. A rate that may be at most so
much is off if its lower 99 % bound is above it; one that is to be at least so much, if its upper
bound is below. Of cases that have one right answer none may be wrong. The script ends with 1 if a
row is off. It takes six minutes of CPU time, half as long on two cores. Values of queries are drawn
as arrays, and go through the functions that compare and gate call; a few go through whole commands.

A further promise is a function that yields rows, and a line in `PROMISES`; those over many nights
are in `verdicts_of_nights.py`, those of the hardest shapes in `verdicts_of_shapes.py`, those of
metrics that are no means in `verdicts_of_pooled.py`, and cases with one right answer in
`verdicts_of_cases.py`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial, reduce
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy.stats import beta

import rankmill
import verdicts_of_cases
import verdicts_of_nights
import verdicts_of_pooled
import verdicts_of_shapes
from rankmill import gate
from rankmill.analysis.compare.conclusion import finish
from rankmill.analysis.compare.differences.comparison_state import (
    ComparisonState,
    Slices,
    Sums,
    column_of,
)
from rankmill.analysis.compare.differences.differences import (
    BETTER,
    EQUAL,
    WORSE,
    Difference,
    Settings,
)
from rankmill.analysis.compare.differences.judgement import differences as differences_of
from rankmill.analysis.compare.differences.judgement import judged
from rankmill.analysis.compare.differences.pooled_differences import pooled_estimates
from rankmill.analysis.statistics.distributions import t_tail
from rankmill.analysis.statistics.paired_differences import ClusteredPaired, fit_of
from rankmill.analysis.statistics.significance import run_test
from rankmill.engine.left_out import LeftOut
from rankmill.nightly.rules.measurements import Measurement, drop_of, word_of
from rankmill.nightly.rules.rules import HELD, REGRESSED, UNDECIDED, Rule, parse_rule
from rankmill.semantics.choices import Choices, Scope
from rankmill.threads import Workers
from verdicts_of_cases import run_of
from verdicts_of_pooled import gap_left_out

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
        most, least = (largest_share(n, self.of) for n in (self.count, self.of - self.count))
        return 1 - least <= self.most and most >= self.least

    def cells(self) -> list[str]:
        promised = f"at least {self.least:.3g}" if self.least else f"at most {self.most:.3g}"
        if self.most < 1 and self.least > 0:
            promised = f"{self.least:.3g} to {self.most:.3g}"
        return [self.what, promised, f"{self.count / self.of:.4g}", "yes" if self.kept else "NO"]


def largest_share(count: int, of: int) -> float:
    """Return the upper bound of Clopper and Pearson of a share."""
    return 1.0 if count == of else float(beta.ppf(1 - BOUND, count + 1, of - count))


class Asked(NamedTuple):
    """How often to repeat, and the random numbers."""

    repetitions: int
    random: np.random.Generator


def night(rule: Rule, old: np.ndarray, new: np.ndarray, confidence: float) -> str:
    """Return the word of a rule about the drop of values of queries."""
    columns = column_of(new, old, None, moments="pairs"), column_of(old, None, None)
    one = Measurement.of(*columns, UNIT)
    found = drop_of(one, confidence, relative=rule.relative, better="higher")
    return UNDECIDED if found is None else word_of(rule, found, confidence)


def stops(rule: Rule, old: np.ndarray, new: np.ndarray, confidence: float) -> bool:
    """Return whether a rule of a relative drop is broken; most are too near to be looked at."""
    short = (1 - rule.limit) * old - new
    if short.mean() < 1.5 * short.std(ddof=1) / len(short) ** 0.5:
        return False
    return night(rule, old, new, confidence) == REGRESSED


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
            alarms += any(stops(rule, *pair, confidence) for pair in pairs)
        what = f"1: alarms, {slices} slices of {queries:,} queries, rate {rate}"
        yield Row(what, alarms, asked.repetitions, most=0.04)
    few = parse_rule("hit@1 drop <= 50% confidence 0.999999")
    old = np.zeros(1000)
    old[0] = 1
    stopped = night(few, old, np.zeros(1000), 0.999999) == REGRESSED
    yield Row("1: alarms, 1 hit of 1,000 that is lost, drop <= 50%", int(stopped), 1, most=0.0)
    seen = sum(
        night(rule, hits(asked, 3000, 0.2), hits(asked, 3000, 0.147), 0.95) == REGRESSED
        for _ in range(asked.repetitions)
    )
    # The delta method sees 99.7 % of them.
    yield Row("1: true drops of 26.5 % seen, 3,000 queries", seen, asked.repetitions, least=0.996)


def ratios(asked: Asked) -> Iterator[Row]:
    """The shown intervals of relative differences cover the true one, and lie in the range."""
    for queries, rate, kept, most in (
        (30, 0.3, 1.0, 0.05),
        (100, 0.1, 1.0, 0.05),
        (300, 0.3, 0.8, 0.05),
        (1000, 0.05, 0.8, 0.07),  # ten queries make all of the difference
    ):
        missed = out = 0
        for _ in range(asked.repetitions):
            old = hits(asked, queries, rate)
            new = old * hits(asked, queries, kept) if kept < 1 else hits(asked, queries, rate)
            one = differences_of(sums_of(old, new), "a", Settings(), 1)["map", "b"]
            low = -np.inf if one.relative_low is None else one.relative_low
            high = np.inf if one.relative_high is None else one.relative_high
            missed += not low <= kept - 1 <= high
            out += low > -np.inf and low < -1
        what = f"{queries:,} queries, rate {rate}, {kept:.0%} kept"
        yield Row(f"1: relative intervals that miss, {what}", missed, asked.repetitions, most)
        yield Row(f"1: relative intervals below -100 %, {what}", out, asked.repetitions, 0.0)


# --------------------------------------------------------------------- few queries in common

QUERIES = 300
MOST_GATES = 200
"""Whole gates are run so often at most."""


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
            held += lost.word == HELD
            alarms += gate(labels, run_of(new), rule, baseline=values).word == REGRESSED
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
    wide = parse_rule("hit@1 drop <= 10% confidence 0.95")
    held = 0
    for _ in range(asked.repetitions):
        old, other = hits(asked, 1000, 0.2), hits(asked, 1000, 0.2)
        held += night(wide, old, np.where(hits(asked, 1000, 0.01), other, old), 0.95) == HELD
    what = "4: held, nothing changed but 1 % of queries, drop <= 10%, 1,000 queries"
    yield Row(what, held, asked.repetitions, least=0.95)
    absolute = parse_rule("hit@1 drop <= 0.01 confidence 0.95")
    for queries in (30, 100, 300, 1000):
        held = 0
        for _ in range(asked.repetitions):
            old = hits(asked, queries, 0.9)
            lost = hits(asked, queries, 0.0101 / 0.9)
            held += night(absolute, old, old * (1 - lost), 0.95) == HELD
        what = f"4: held, drop just beyond <= 0.01, {queries:,} queries"
        yield Row(what, held, asked.repetitions, most=0.025)

    for queries, by, least, most in ((40, 0.2, 1.0, 1.0), (40, 0.01, 0.0, 0.0), (2, 0.0, 0.0, 0.0)):
        found = judged_alone(np.full(queries, by), margin=0.05)
        shown = found.verdict in (BETTER, WORSE, EQUAL)
        yield Row(f"4: decided, {queries} queries that all win by {by}", shown, 1, most, least)
    equal = 0
    for _ in range(asked.repetitions):
        lost = -hits(asked, 100, 0.051)
        equal += judged_alone(lost, margin=0.05).verdict == EQUAL
    yield Row(
        "4: equal within 0.05, true loss of 0.051, 100 queries", equal, asked.repetitions, 0.05
    )


def judged_alone(differences: np.ndarray, margin: float | None = None) -> Difference:
    """Return a difference with its verdict, as compare has it of two systems in one metric."""
    settings = Settings(margin=margin)
    base = np.where(differences < 0, 1.0, 0.0)
    sums = sums_of(base, base + differences)
    return judged(differences_of(sums, "a", settings, 1), settings)["map", "b"]


def sums_of(old: np.ndarray, new: np.ndarray) -> Sums:
    """Return what the values of two systems add up to."""
    columns = {"a": column_of(old, None, None), "b": column_of(new, old, None)}
    return Sums(len(old), {"map": columns})


# --------------------------------------------------------------------- weights


def weighted(asked: Asked) -> Iterator[Row]:
    """Nothing changed: from 10 effective queries on the t test keeps its level."""
    for sigma, queries in ((0.5, 15), (1.0, 50), (1.5, 50), (2.0, 200), (2.5, 500)):
        rejected = tested = few = 0
        for _ in range(asked.repetitions):
            weights = np.exp(asked.random.normal(0, sigma, queries))
            drawn = asked.random.normal(0, 0.2, queries)
            paired = column_of(drawn, np.zeros(queries), weights).paired
            assert paired is not None
            p = run_test("t", paired).p
            few += paired.effective < 10 and p is not None
            tested += p is not None
            rejected += p is not None and p <= 0.05
        what = f"log-normal weights, sigma {sigma}, {queries} queries"
        yield Row(f"5: tested below 10 effective queries, {what}", few, asked.repetitions, most=0.0)
        if tested:
            yield Row(f"5: rejected at 5 %, {what}", rejected, tested, most=0.06)


# --------------------------------------------------------------------- gap


def gap(asked: Asked) -> Iterator[Row]:
    """1 % of predictions are hits: an interval that is shown covers, and stays in the range.

    Ten hits are needed for one. Where data rarely have as many, those that do are no fair sample:
    there, few of all data sets may have one that misses.
    """
    with Workers(1) as workers:
        truth = rare_hits(asked, 300_000, workers)
        assert truth is not None
        for queries in (20, 50, 100, 300, 1000):
            wrong = shown = out = 0
            for _ in range(asked.repetitions):
                one = rare_hits(asked, queries, workers)
                if one is None:
                    continue
                found = pooled_estimates({"a": one.whole}, {"a": one}, 0.95)["a"]
                if found.low is not None and found.high is not None:
                    shown += 1
                    wrong += not found.low <= truth.whole <= found.high
                    out += found.low < 0 or found.high > 1
            share = shown / asked.repetitions
            what = f"{queries:,} queries, {share:.1%} with an interval"
            if share < 0.2:
                yield Row(
                    f"7: data with an interval of gap that misses, {what}",
                    wrong,
                    asked.repetitions,
                    0.07,
                )
            else:
                least = 0.03 if shown == asked.repetitions else 0.0
                yield Row(f"7: intervals of gap that miss, {what}", wrong, shown, 0.07, least)
            yield Row(f"7: intervals of gap beyond 0 to 1, {what}", out, max(1, shown), most=0.0)


def rare_hits(asked: Asked, queries: int, workers: Workers) -> LeftOut | None:
    """Return gap without each group, of queries with ten predictions that are rarely right."""
    shape = queries, 10
    easy = asked.random.normal(0, 1, (queries, 1))
    seen = asked.random.normal(0, 1, shape)
    right = asked.random.random(shape) < 0.01 * np.exp(0.5 * (easy + seen) - 0.25)
    right &= np.cumsum(right, axis=1) <= 1
    sure = 0.5 * easy + seen + asked.random.normal(0, 0.7, (queries, 1))
    confidence = np.round(1 / (1 + np.exp(-sure)), 2)
    return gap_left_out(confidence, right, np.ones(queries, np.int64), workers)


# --------------------------------------------------------------------- slices


def slices(asked: Asked) -> Iterator[Row]:
    """Nothing changed: no interval and no word of 40 slices says otherwise."""
    for queries in (30, 200):
        apart = worded = of_whole = 0
        for _ in range(asked.repetitions):
            parts = []
            for _ in range(40):
                old, new = hits(asked, queries, 0.3), hits(asked, queries, 0.3)
                parts.append(sums_of(old, new))
            whole = reduce(Sums.merge, parts)
            cut = {("group",): {(str(i),): one for i, one in enumerate(parts)}}
            found = finish(state_of(whole, cut), Settings(), 1)
            every = [one.differences["map"]["b"] for one in found.slices]
            apart += any(one.low is not None and one.low > 0 for one in every) or any(
                one.high is not None and one.high < 0 for one in every
            )
            worded += any(one.verdict in (BETTER, WORSE) for one in every)
            of_whole += found.differences["map"]["b"].verdict in (BETTER, WORSE)
        what = f"40 slices of {queries} queries"
        yield Row(f"8: a slice interval without 0, {what}", apart, asked.repetitions, most=0.05)
        yield Row(f"8: better or worse in any, {what}", worded, asked.repetitions, most=0.05)
        told = f"8: better or worse over all, {what}"
        yield Row(told, of_whole, asked.repetitions, most=0.05)


def state_of(whole: Sums, cut: Slices) -> ComparisonState:
    counted = dict.fromkeys("ab", 0)
    job = ("a", "b"), "a", ("map",), Choices(), "linear", Scope()
    return ComparisonState(*job, whole, cut, counted, 0, counted)


# --------------------------------------------------------------------- whole commands


def commands(asked: Asked) -> Iterator[Row]:
    """The gate itself, from tables: 200 quiet nights, and 100 with each drop."""
    queries, nights = 200, max(1, asked.repetitions // 10)
    parts = pa.array([f"c{i % 20}" for i in range(queries)])
    labels = run_of(np.ones(queries)).append_column("country", parts)
    alarms = 0
    for _ in range(nights):
        old, new = (run_of(hits(asked, queries, 0.1)) for _ in range(2))
        found = gate(labels, new, "hit@1[country=*] drop <= 3%", baseline=old)
        alarms += found.word == REGRESSED
    yield Row("1: alarms of the gate itself, 20 slices of 10 queries", alarms, nights, most=0.04)
    queries, labels = 2000, run_of(np.ones(2000))
    limit = "hit@1 drop <= 3% confidence 0.95"
    for drop in (0.0, 0.01, 0.03, 0.1, 0.5):
        nights = max(1, asked.repetitions // (20 if drop else 10))
        words = []
        for _ in range(nights):
            old, other = hits(asked, queries, 0.3), hits(asked, queries, 0.3)
            new = np.where(hits(asked, queries, 0.05), other, old) * hits(asked, queries, 1 - drop)
            rules = rankmill.Rules(limit, undecided="fail")
            found = gate(labels, run_of(new), rules, baseline=run_of(old))
            words.append(found.outcomes[0].word)
        what = f"of the gate itself, a true drop of {drop:.0%}, 2,000 queries"
        if drop <= 0.03:
            stopped = words.count(REGRESSED)
            yield Row(f"1: alarms at a limit of 3 %, {what}", stopped, nights, most=0.025)
        if drop >= 0.03:
            held = words.count(HELD)
            yield Row(f"4: held at a limit of 3 %, {what}", held, nights, most=0.025)
        if drop > 0.03:
            stopped = words.count(REGRESSED)
            yield Row(f"1: stopped at a limit of 3 %, {what}", stopped, nights, least=0.95)


# --------------------------------------------------------------------- many nights


def of_nights(
    simulated: Callable[[np.random.Generator, int], Iterator[verdicts_of_nights.Rate]],
) -> Callable[[Asked], Iterator[Row]]:
    """Return a promise of rates that know no `Row`."""
    return lambda asked: (Row(*one) for one in simulated(asked.random, asked.repetitions))


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
        both = column_of(old * ~lost, old, None, codes, moments="pairs")
        columns = both, column_of(old, None, None, codes)
        drop = drop_of(Measurement.of(*columns, UNIT), 0.95, relative=True, better="higher")
        held += drop is not None and word_of(rule, drop, 0.95) != UNDECIDED
    what = "13: not promised: decided at the true drop, 5 of 50 clusters lose all"
    # Clusters that change as one are what no bound of queries sees; t decides as often.
    yield Row(what, held, asked.repetitions, most=0.08)


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


# --------------------------------------------------------------------- all pairs


def all_pairs(asked: Asked) -> Iterator[Row]:
    """Systems that are alike in each query, and equal in the mean: a table has no letter."""
    queries, repetitions = 100, max(1, asked.repetitions // 4)  # a table has 30 tests
    labels = rankmill.arrays.Ragged.from_lists([[0]] * queries)
    offsets, places = np.arange(queries + 1) * 10, np.arange(10)
    for test, correction in (("t", "holm"), ("randomization", "holm")):
        wrong = 0
        for seed in range(repetitions):
            easy = asked.random.random(queries)
            runs = {}
            for name in "abcdef":
                ranks = np.floor(7 * easy + 3 * asked.random.random(queries))[:, None]
                items = np.where(places == ranks, 0, places + 1).ravel()
                runs[name] = rankmill.arrays.Ragged(offsets, items)
            tests = rankmill.Tests(test, correction=correction, seed=seed)
            metrics = ["mrr@10", "hit@3"]
            found = rankmill.compare(labels, runs, metrics, tests=tests, all_pairs=True)
            wrong += any(one.difference.verdict in (BETTER, WORSE) for one in found.pairs)
        what = f"18: a letter among 6 equal systems, 2 metrics, {test}, {correction}"
        yield Row(what, wrong, repetitions, most=0.05)


PROMISES: dict[str, Callable[[Asked], Iterator[Row]]] = {
    "relative": relative,
    "ratios": ratios,
    "common": common,
    "never": never,
    "unseen": unseen,
    "weighted": weighted,
    "gap": gap,
    "slices": slices,
    "commands": commands,
    "series": of_nights(verdicts_of_nights.series),
    "pinned": of_nights(verdicts_of_nights.pinned),
    "told": of_nights(verdicts_of_nights.told),
    "power": of_nights(verdicts_of_nights.power),
    "drifts": of_nights(verdicts_of_nights.drifts),
    "leaks": of_nights(verdicts_of_nights.leaks),
    "shapes": of_nights(verdicts_of_shapes.paired),
    "shares": of_nights(verdicts_of_shapes.relative),
    "mixed": of_nights(verdicts_of_shapes.mixed),
    "seen": of_nights(verdicts_of_shapes.power),
    "clusters": clusters,
    "adjusted": adjusted,
    "all_pairs": all_pairs,
    "pooled": of_nights(verdicts_of_pooled.intervals),
    "cases": of_nights(verdicts_of_cases.cases),
}


def rows_of(name: str, repetitions: int, seed: int) -> list[Row]:
    """Return the rows of a promise; each has random numbers of its own."""
    return list(PROMISES[name](Asked(repetitions, np.random.default_rng(seed))))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=list(PROMISES), choices=PROMISES)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    given = parser.parse_args()
    kept = True
    print("| what | promised | measured | kept |\n|---|---|---:|---|")
    find = partial(rows_of, repetitions=given.repetitions, seed=given.seed)
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        for rows in pool.map(find, given.only):
            for row in rows:
                print("|", " | ".join(row.cells()), "|", flush=True)
                kept &= row.kept
    return not kept


if __name__ == "__main__":
    sys.exit(main())
