"""Hold intervals of metrics that are no means over queries to what they promise.

What `rankmill.compare` says of them, of data sets that are drawn anew. `verdicts.py` calls this.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

import rankmill
from rankmill.columns.ids import to_ids
from rankmill.engine.left_out import LeftOut
from rankmill.engine.slices import GROUPS, groups_of
from rankmill.metrics.aggregate import Totals
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.gap.gap_counts import GapCounter
from rankmill.semantics.choices import Choices
from rankmill.threads import Workers
from verdicts_of_nights import Rate

METRICS = ("roc_auc", "gini@10", "map@10:median", "map@10:p90")
# Of so many items a list shows some; the better a system, the more it knows of labels.
ITEMS, SHOWN, LABELS = 300, 10, 3
SYSTEMS = {"old": 1.0, "new": 1.4}
TRUTH = 300_000
PROMISED = {"most": 0.08, "least": 0.02}


def intervals(random: np.random.Generator, repetitions: int) -> Iterator[Rate]:
    """Intervals of 95 %, and of differences, miss in 2 to 8 %; those by order and of gini may less.

    The truth is that of very many queries; of gini it is that of as many, over all repetitions.
    """
    truth = numbers_of(random, TRUTH)
    for queries in (200, 1000):
        found: defaultdict[str, list[tuple[float, float, float]]] = defaultdict(list)
        for _ in range(repetitions):
            for name, one in told_of(random, queries).items():
                found[name].append(one)
        for name, several in found.items():
            values = np.array(several, np.float64)
            right = values[:, 0].mean() if "gini" in name else truth[name]
            wrong = Counter(((values[:, 1] <= right) & (right <= values[:, 2])).tolist())[False]
            least = PROMISED["least"] if "roc_auc" in name else 0.0
            what = f"19: intervals of {name} that miss, {queries:,} queries"
            yield what, wrong, repetitions, PROMISED["most"], least


def drawn(random: np.random.Generator, queries: int) -> tuple[pa.Table, dict[str, pa.Table]]:
    """Return labels, and what two systems predict."""
    items = (random.integers(0, ITEMS, (queries, 1)) + np.arange(30) * 7) % ITEMS
    correct = np.arange(30) < LABELS
    easy, noise = random.normal(0, 0.7, (queries, 1)), random.normal(0, 0.7, items.shape)
    runs = {}
    for name, good in SYSTEMS.items():
        scores = (good + easy) * correct - 0.3 * np.log1p(items) + noise
        scores = scores + random.normal(0, 0.7, items.shape)
        order = np.argsort(-scores, axis=1)[:, :SHOWN]
        taken = (np.take_along_axis(one, order, axis=1) for one in (items, scores))
        runs[name] = table(*taken)
    return table(items[:, :LABELS]), runs


def table(items: np.ndarray, scores: np.ndarray | None = None) -> pa.Table:
    offsets = np.arange(len(items) + 1, dtype=np.int32) * items.shape[1]
    columns = {"query": np.arange(len(items))}
    columns["items"] = pa.ListArray.from_arrays(offsets, items.ravel())
    if scores is not None:
        columns["scores"] = pa.ListArray.from_arrays(offsets, scores.ravel())
    return pa.table(columns)


def numbers_of(random: np.random.Generator, queries: int) -> dict[str, float]:
    labels, runs = drawn(random, queries)
    of = {name: rankmill.evaluate(labels, one, METRICS).metrics for name, one in runs.items()}
    less = {f"the difference in {name}": of["new"][name] - of["old"][name] for name in METRICS}
    return of["old"] | less


def told_of(random: np.random.Generator, queries: int) -> dict[str, tuple[float, float, float]]:
    found = rankmill.compare(*drawn(random, queries), METRICS)
    told = {}
    for name in METRICS:
        one, less = found.values[name]["old"], found.differences[name]["new"]
        told[name] = one.value, one.low, one.high
        told[f"the difference in {name}"] = less.value, less.low, less.high
    return told


def gap_left_out(
    confidences: np.ndarray, correct: np.ndarray, total: np.ndarray, workers: Workers
) -> LeftOut | None:
    """Return gap without each group of queries, which have a row each; it is divided by a total."""
    of_query = groups_of(to_ids(np.arange(len(correct)), "query"))

    def gap_of(kept: np.ndarray) -> Gap:
        return replace(
            Gap.of([confidences[kept][correct[kept]]]), kept=(confidences[kept].ravel(),)
        )

    whole = gap_of(of_query >= 0)
    counter = GapCounter(whole.correct, workers)
    counter.add(confidences.ravel())
    among, values, sizes = counter.finish(), [], []
    totals = Totals(len(correct), int(total.sum()), Choices(), among=among, workers=workers)
    for group in range(GROUPS):
        kept = of_query == group
        if kept.any():
            found = whole.without(gap_of(kept), among, workers)
            assert found is not None
            rest = totals._replace(gap_total=int(total[~kept].sum()), among=found[1])
            values.append(found[0].finish(rest).value)
            sizes.append(int(kept.sum()))
    value = whole.finish(totals).value
    if value is None or None in values or len(values) < 2:
        return None
    most = max(1.0, float(total.mean()))
    bounds, hits = (0.0, most), int(correct.sum())
    return LeftOut(value, np.array(values), np.array(sizes), bounds, hits)
