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

from rankmill.analysis.statistics.jackknife import (
    estimate,
    interval,
    interval_within,
    jackknife_test,
)
from rankmill.columns.ids import to_ids
from rankmill.matching.index import LabelIndex
from rankmill.matching.label_lists import NO_GAINS, LabelLists
from rankmill.metrics.aggregate import Closing
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.gap.gap_counts import GapCounter
from rankmill.metrics.gap.gap_groups import GapGroups, LeftOut, Tagged, groups_of
from rankmill.semantics.choices import DEFAULT, Choices
from rankmill.threads import Workers

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
    semantics: Choices


BY_LABELS = Choices(gap_total="label_pairs")
POPULATIONS = {
    "one label": Population(1, 2, 1.0, 0.7, DEFAULT),
    "1 to 10 labels": Population(10, 2, 1.0, 0.7, BY_LABELS),
    "queries that differ much": Population(10, 1, 2.0, 2.0, BY_LABELS),
}


def drawn(random: np.random.Generator, queries: int, kind: Population) -> list[GapGroups]:
    """Return what each system predicts for the same queries."""
    labels = random.integers(1, kind.labels + 1, queries)
    shape = queries, PREDICTIONS
    easy = random.normal(-1.0, kind.easier, (queries, 1)) + np.log(labels / 5)[:, None] / 2
    sure = random.normal(0.0, kind.surer, (queries, 1))
    item = random.normal(0.0, 0.7, shape)  # what all systems find hard or easy in an item
    ids = to_ids(np.arange(queries), "query")
    of_query = groups_of(ids)
    groups = []
    for better in SYSTEMS.values():
        seen = item + random.normal(0.0, 0.7, shape)
        right = random.random(shape) < 1 / (1 + np.exp(-(easy + seen + better)))
        right &= np.cumsum(right, axis=1) <= labels[:, None]
        confidence = np.round(1 / (1 + np.exp(-(0.5 * easy + seen + sure))), kind.decimals)
        rows = Tagged(confidence.ravel(), np.repeat(of_query, PREDICTIONS), right.ravel())
        one = GapGroups((rows,), rows.nbytes, rows.nbytes)
        index = LabelIndex(ids, LabelLists(np.append(0, labels.cumsum()), ids, NO_GAINS))
        groups.append(one.close(Closing(queries, 0, known=index)))
    return groups


def left_out(groups: list[GapGroups], kind: Population, workers: Workers) -> list[LeftOut]:
    """Return gap without each group of queries, for each system."""
    found = []
    for one in groups:
        [rows] = one.parts or ()
        correct = Gap.of([rows.confidences[rows.correct]]).correct
        counter = GapCounter(correct, workers)
        counter.add(rows.confidences)
        found.append(one.left_out(correct, counter.finish(), kind.semantics, workers))
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
    base, _, better = left_out(drawn(random, asked.truth, kind), kind, workers)
    truths = {"gap": base.whole, "difference": better.whole - base.whole}
    covered = dict.fromkeys(truths, 0)
    rejected = 0
    datasets = asked.datasets
    for _ in range(datasets):
        base, as_good, better = left_out(drawn(random, queries, kind), kind, workers)
        measured = {
            "gap": (base.whole, base.values),
            "difference": (better.whole - base.whole, better.values - base.values),
        }
        for what, (whole, without) in measured.items():
            spread = estimate(whole, without, base.sizes)
            assert spread is not None
            low, high = interval(whole, spread, 0.95)
            if what == "gap":
                low, high = interval_within(whole, spread, base.most, 0.95)
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
