"""The lists of all runs beside each other, and how often each run is right at each rank of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.columns.ids import ascending, to_ids
from rankmill.kernels.fusion import count_hits
from rankmill.kernels.identity import SEED
from rankmill.metrics.aggregates.mean import Mean

NO_SCORES = np.empty(0)

# The ranks at which the bins of BayesFuse and the segments of SegFuse end.
BINS = (0, 5, 10, 15, 20, 30, 100, 200, 500, 1000)
SEGMENTS = (0, *(10 * 2**k - 5 for k in range(10)))
RARE = 0.001


class Stacked(NamedTuple):
    """The lists of all runs, one after the other; those of query q are row q of both arrays."""

    queries: Any
    starts: np.ndarray
    ends: np.ndarray
    items: Any
    scores: np.ndarray


def stacked(tables: Sequence[Any], with_scores: bool) -> Stacked:
    """Stack tables of a run each; None has no rows."""
    there = [(r, table) for r, table in enumerate(tables) if table is not None]
    queries, rows = _union([table.column(0).combine_chunks() for _, table in there])
    starts, ends = np.zeros((2, len(queries), len(tables)), np.int64)
    items, scores = [], []
    base = 0
    for (r, table), own in zip(there, rows, strict=True):
        lists = table.column(1).combine_chunks()
        offsets = numbers_of(lists.offsets)
        starts[own, r] = offsets[:-1] - offsets[0] + base
        ends[own, r] = offsets[1:] - offsets[0] + base
        items.append(lists.flatten())
        base += len(items[-1])
        if with_scores:
            flat = numbers_of(table.column(2).combine_chunks().flatten())
            scores.append(flat.astype(np.float64, copy=False))
    joined = np.concatenate(scores) if scores else NO_SCORES
    return Stacked(queries, starts, ends, pa.concat_arrays(items), joined)


def _union(columns: Sequence[Any]) -> tuple[Any, list[np.ndarray]]:
    """Return the distinct ids of columns, ascending, and the places of each column's among them.

    The ids of each column ascend.
    """
    if all(column.equals(columns[0]) for column in columns[1:]):
        return columns[0], [np.arange(len(columns[0]))] * len(columns)
    distinct, places = ascending(pa.concat_arrays(columns))
    ends = np.cumsum([len(column) for column in columns])
    return distinct, np.split(places, ends[:-1])


class HitRates(NamedTuple):
    """What the training queries add up to, exactly, so that no order of blocks changes a bit."""

    queries: int  # the training queries: those with a label
    hits: np.ndarray  # int64[runs, ranks]: how many lists of a run are right at a rank
    lists: np.ndarray  # int64[runs, ranks]: how many lists of a run are that long
    # For each run the average precision, and the share of hits in each segment of its lists.
    means: list[list[Mean]]

    def merge(self, other: Self) -> HitRates:
        """Return what the queries of both add up to."""
        depth = max(self.hits.shape[1], other.hits.shape[1])
        hits, lists = (
            np.add(*(np.pad(part, ((0, 0), (0, depth - part.shape[1]))) for part in parts))
            for parts in ((self.hits, other.hits), (self.lists, other.lists))
        )
        pairs = zip(self.means, other.means, strict=True)
        means = [[a.merge(b) for a, b in zip(*one, strict=True)] for one in pairs]
        return HitRates(self.queries + other.queries, hits, lists, means)

    def by_rank(self) -> np.ndarray:
        """The share of hits at each rank among the lists that reach it, as of PosFuse."""
        return np.asarray(self.hits / np.maximum(self.lists, 1))

    def by_segment(self) -> np.ndarray:
        """The mean share of hits in each segment of the lists, over its number: of ProbFuse."""
        return np.array(
            [[(one.mean or 0.0) / k for k, one in enumerate(of[1:], 1)] for of in self.means]
        )

    def odds(self) -> np.ndarray:
        """The logarithm of the odds of a hit in each bin of ranks, as of BayesFuse."""
        rates = self._between(BINS)
        rates[rates == 0.0] = RARE
        others = 1.0 - rates
        others[others == 0.0] = RARE
        return np.repeat(np.log(rates / others), np.diff(BINS), axis=1)

    def by_growing_segment(self) -> np.ndarray:
        """The share of hits in segments of 5, 10, 20 and so on ranks, as of SegFuse."""
        return np.repeat(self._between(SEGMENTS), np.diff(SEGMENTS), axis=1)

    def average_precisions(self) -> np.ndarray:
        """The mean average precision of each run."""
        return np.array([[of[0].mean or 0.0] for of in self.means])

    def _between(self, ends: Sequence[int]) -> np.ndarray:
        """The hits between ranks, over those that there could be."""
        hits = np.pad(self.hits, ((0, 0), (0, ends[-1])))[:, : ends[-1]]
        return np.add.reduceat(hits, ends[:-1], axis=1) / (np.diff(ends) * max(1, self.queries))


def rates_of_block(tables: Sequence[Any], segments: int) -> HitRates:
    """Return the rates of some queries; the first table holds their labels, as lists."""
    lists = stacked([_relevant(tables[0]), *tables[1:]], False)
    runs = len(tables) - 1
    lengths = lists.ends - lists.starts
    hits, counts = np.zeros((2, runs, lengths[:, 1:].max(initial=0)), np.int64)
    values = np.zeros((len(lists.queries), runs, 1 + segments))
    ids = to_ids(lists.items, "items")
    count_hits(lists.starts, lists.ends, ids, SEED, hits, counts, values)
    labelled = values[lengths[:, 0] > 0]
    means = [[Mean.of(labelled[:, r, at]) for at in range(1 + segments)] for r in range(runs)]
    return HitRates(len(labelled), hits, counts, means)


def _relevant(labels: Any) -> Any:
    """The rows of labels without the items whose gain is not positive."""
    if labels is None or labels.num_columns < 3:
        return labels
    lists, gains = (labels.column(at).combine_chunks() for at in (1, 2))
    kept = numbers_of(gains.flatten()) > 0
    offsets = numbers_of(lists.offsets)
    ends = np.concatenate([[0], np.cumsum(kept)])[offsets - offsets[0]]
    items = lists.flatten().filter(pa.array(kept))
    relevant = pa.LargeListArray.from_arrays(arrow_of(ends), items)
    return labels.set_column(1, labels.schema.field(1), relevant)
