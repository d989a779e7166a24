"""Hold the jackknife of gap to what it promises, by simulated data sets.

    python benchmarks/gap_intervals.py [--datasets 2000] [--queries 100 1000 10000]

Two systems give each query ten predictions. How good they are and how sure differs between queries,
in the same way for both: some queries are easy, and some have high confidences whether right or
wrong. A query has 1 to 10 labels. Confidences are rounded, so that many are equal.

- Intervals: 93 to 97 % of the intervals of 95 % must cover the true gap of a system, and the true
  difference of a better and a worse one. The truth is that of a million queries.
- Null: at 5 %, 4 to 6 % of the differences of two equally good systems must be found.

The script ends with 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from rankmill.analysis.statistics.significance import (
    estimate,
    interval,
    interval_within,
    jackknife_test,
)
from rankmill.engine.left_out import LeftOut
from rankmill.threads import Workers
from verdicts_of_pooled import gap_left_out

PREDICTIONS = 10
ERROR = 0.04, 0.06
COVERAGE = 0.93, 0.97
# How good the baseline, one as good, and a better system are.
SYSTEMS = {"baseline": 0.0, "as good": 0.0, "better": 0.15}

Row = tuple[str, str, str, bool]


class Population(NamedTuple):
    """How many labels a query has at most, the decimals of confidences, and how queries differ."""

    labels: int
    decimals: int
    easier: float
    surer: float


POPULATIONS = {
    "one label": Population(1, 2, 1.0, 0.7),
    "1 to 10 labels": Population(10, 2, 1.0, 0.7),
    "queries that differ much": Population(10, 1, 2.0, 2.0),
}


def left_out(
    random: np.random.Generator, queries: int, kind: Population, workers: Workers
) -> list[LeftOut]:
    """Return gap without each group of queries, for systems that predict for the same queries."""
    labels = random.integers(1, kind.labels + 1, queries)
    shape = queries, PREDICTIONS
    easy = random.normal(-1.0, kind.easier, (queries, 1)) + np.log(labels / 5)[:, None] / 2
    sure = random.normal(0.0, kind.surer, (queries, 1))
    item = random.normal(0.0, 0.7, shape)  # what all systems find hard or easy in an item
    found = []
    for better in SYSTEMS.values():
        seen = item + random.normal(0.0, 0.7, shape)
        right = random.random(shape) < 1 / (1 + np.exp(-(easy + seen + better)))
        right &= np.cumsum(right, axis=1) <= labels[:, None]
        confidence = np.round(1 / (1 + np.exp(-(0.5 * easy + seen + sure))), kind.decimals)
        found.append(gap_left_out(confidence, right, labels, workers))
    return [one for one in found if one is not None]


def check(
    random: np.random.Generator,
    asked: argparse.Namespace,
    queries: int,
    name: str,
    workers: Workers,
) -> Iterator[Row]:
    """Count how often the intervals cover the truth, and how often equal systems seem to differ."""
    kind = POPULATIONS[name]
    base, _, better = left_out(random, asked.truth, kind, workers)
    truths = {"gap": base.whole, "difference": better.whole - base.whole}
    covered = dict.fromkeys(truths, 0)
    rejected = 0
    datasets = asked.datasets
    for _ in range(datasets):
        base, as_good, better = left_out(random, queries, kind, workers)
        measured = {
            "gap": (base.whole, base.values),
            "difference": (better.whole - base.whole, better.values - base.values),
        }
        for what, (whole, without) in measured.items():
            spread = estimate(whole, without, base.sizes)
            assert spread is not None
            low, high = interval(whole, spread, 0.95)
            if what == "gap":
                low, high = interval_within(whole, spread, base.bounds, 0.95)
            covered[what] += low <= truths[what] <= high
        none = as_good.whole - base.whole
        spread = estimate(none, as_good.values - base.values, base.sizes)
        p = jackknife_test(none, spread, 0.95).p
        rejected += p is not None and p <= 0.05
    case = f"{name}, {queries:,} queries"
    for what, count in covered.items():
        share = count / datasets
        yield case, f"intervals of the {what} that cover", f"{share:.2%}", within(share, COVERAGE)
    yield case, "rejected at 5 %", f"{rejected / datasets:.2%}", within(rejected / datasets, ERROR)


def within(value: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= value <= bounds[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", type=int, default=2000)
    parser.add_argument("--queries", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--populations", nargs="+", default=list(POPULATIONS), choices=POPULATIONS)
    parser.add_argument("--truth", type=int, default=1_000_000, help="queries that tell the truth")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    random = np.random.default_rng(asked.seed)
    kept = True
    print("| data | what | found | as promised |\n|---|---|---:|---|")
    with Workers() as workers:
        for name, queries in product(asked.populations, asked.queries):
            for *cells, right in check(random, asked, queries, name, workers):
                print("|", " | ".join([*cells, "yes" if right else "NO"]), "|", flush=True)
                kept &= right
    return not kept


if __name__ == "__main__":
    sys.exit(main())
