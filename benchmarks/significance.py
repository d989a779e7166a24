"""Hold the significance tests to what they promise, and time them beside SciPy.

    python benchmarks/significance.py [--comparisons 4000] [--queries 1000] [--pairs 1_000_000]

- Null: comparisons of a system with one that is no better. p must be uniform (Kolmogorov-Smirnov
  over the first 2,000), and at 5 % each test must reject 4 to 6 % of them.
- Margins: comparisons whose true difference is the margin; equivalence and non-inferiority must be
  found in 4 to 6 % of them.
- Intervals: comparisons of systems that differ, drawn from a population whose mean is known; 93 to
  97 % of the intervals of 95 % must cover it.
- Times: 10,000 replicates over a million pairs. SciPy takes fewer, and its time is scaled.

Differences are those of average precision at 12, so they have ties, zeros and a long tail. The
script ends with 1 if a promise is broken. It needs SciPy.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import stats

from rankmill.analysis.statistics.paired_differences import paired_of
from rankmill.analysis.statistics.significance import (
    TESTS,
    equivalence,
    noninferiority,
    run_test,
    t_test,
)

CUTOFF = 12
ERROR = 0.04, 0.06
COVERAGE = 0.93, 0.97
UNIFORM = 2000
LEAST_KS = 0.001
REPLICATES = 10_000
FEWER = 1999  # of each comparison in a campaign
MOST_SECONDS = {"randomization": 5.0}
MOST_SECONDS_DISTINCT = 30.0

Row = tuple[str, str, str, bool]


def average_precisions(
    random: np.random.Generator, queries: int, quality: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """Return values of average precision at 12, by how likely a query's predictions are right."""
    chance = quality[:, None] / np.sqrt(np.arange(1, CUTOFF + 1))
    hits = random.random((queries, CUTOFF)) < chance
    hits &= np.cumsum(hits, axis=1) <= labels[:, None]
    precisions = np.cumsum(hits, axis=1) / np.arange(1, CUTOFF + 1) * hits
    return precisions.sum(axis=1) / np.minimum(labels, CUTOFF)


def systems(random: np.random.Generator, queries: int, better: list[float]) -> np.ndarray:
    """Return the values of systems for the same queries, one a column."""
    quality = random.beta(1, 4, queries)
    labels = 1 + random.geometric(0.25, queries)
    columns = [average_precisions(random, queries, quality * by, labels) for by in better]
    return np.stack(columns, axis=1)


def within(value: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= value <= bounds[1]


def null_ps(random: np.random.Generator, comparisons: int, queries: int) -> dict[str, list[float]]:
    """Return the p of each test for comparisons without a true difference."""
    ps: dict[str, list[float]] = {name: [] for name in TESTS}
    for seed in range(comparisons):
        values = systems(random, queries, [1.0, 1.0])
        paired = paired_of(values[:, 1] - values[:, 0])
        for name in TESTS:
            ps[name].append(run_test(name, paired, seed=seed, replicates=FEWER).p)
    return ps


def check_null(random: np.random.Generator, comparisons: int, queries: int) -> Iterator[Row]:
    for name, ps in null_ps(random, comparisons, queries).items():
        ks = stats.kstest(ps[:UNIFORM], "uniform").pvalue
        yield name, "p is uniform: p of KS", f"{ks:.3f}", ks >= LEAST_KS
        share = float(np.mean(np.array(ps) <= 0.05))
        yield name, "rejected at 5 %", f"{share:.2%}", within(share, ERROR)


def check_against_a_known_mean(
    random: np.random.Generator, comparisons: int, queries: int
) -> Iterator[Row]:
    """Draw queries from a population whose true mean difference is known."""
    values = systems(random, 300_000, [1.0, 1.15])
    population = values[:, 1] - values[:, 0]
    truth = float(population.mean())
    covered = 0
    found = dict.fromkeys(("equivalence", "noninferiority"), 0)
    for _ in range(comparisons):
        drawn = random.choice(population, queries)
        paired = paired_of(drawn)
        outcome = t_test(paired)
        covered += outcome.low <= truth <= outcome.high
        found["equivalence"] += equivalence(paired, truth).p <= 0.05
        found["noninferiority"] += noninferiority(paired_of(-drawn), truth).p <= 0.05
    rows = [("t", "intervals of 95 % that cover", covered, COVERAGE)]
    rows += [(name, "found at the margin at 5 %", n, ERROR) for name, n in found.items()]
    for name, what, n, bounds in rows:
        yield name, what, f"{n / comparisons:.2%}", within(n / comparisons, bounds)


def seconds_of(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def check_times(random: np.random.Generator, pairs: int, rival_replicates: int) -> Iterator[Row]:
    values = systems(random, pairs, [1.0, 1.05])
    given = values[:, 1] - values[:, 0]
    for kind, one in (("ties", given), ("no ties", random.normal(0.001, 1, pairs))):
        paired = paired_of(one)
        distinct = len(paired.magnitudes.values)
        yield kind, "pairs, distinct sizes", f"{pairs:,}, {distinct:,}", True
        taken = seconds_of(lambda one=one: paired_of(one))
        yield kind, "seconds for the histogram", f"{taken:.2f}", True
        for name in TESTS:
            run_test(name, paired, replicates=1)  # compiles
            taken = seconds_of(lambda name=name, paired=paired: run_test(name, paired))
            most = MOST_SECONDS.get(name, 1.0) if kind == "ties" else MOST_SECONDS_DISTINCT
            yield f"{name}, {kind}", "seconds", f"{taken:.2f}", taken <= most
    for name, rival in scipys(given, rival_replicates).items():
        scaled = seconds_of(rival) * REPLICATES / rival_replicates
        yield name, f"seconds, scaled from {rival_replicates}", f"{scaled:,.0f}", True


def scipys(given: np.ndarray, replicates: int) -> dict[str, Callable[[], Any]]:
    return {
        "scipy.stats.permutation_test": lambda: stats.permutation_test(
            (given,), np.mean, permutation_type="samples", n_resamples=replicates, batch=1
        ),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--comparisons", type=int, default=4000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--rival-replicates", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    random = np.random.default_rng(asked.seed)
    kept = True
    print("| test | what | found | as promised |\n|---|---|---:|---|")
    for rows in (
        check_null(random, asked.comparisons, asked.queries),
        check_against_a_known_mean(random, asked.comparisons, asked.queries),
        check_times(random, asked.pairs, asked.rival_replicates),
    ):
        for *cells, right in rows:
            print("|", " | ".join([*cells, "yes" if right else "NO"]), "|", flush=True)
            kept &= right
    return not kept


if __name__ == "__main__":
    sys.exit(main())
