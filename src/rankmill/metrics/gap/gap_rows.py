"""All predictions in one list by falling confidence, with the terms that gap adds up."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.columns.ids import ids_to_arrow, join_ids, take_ids
from rankmill.columns.ranked_lists import Lists
from rankmill.kernels.identity import Ids
from rankmill.matching.hits import Hits


class PooledPredictions(NamedTuple):
    """Predictions in the given order: query, item, confidence, and whether each is correct."""

    queries: Ids
    items: Ids
    confidences: np.ndarray
    correct: np.ndarray

    @property
    def nbytes(self) -> int:
        """The bytes that the predictions take in memory."""
        arrays = (*self.queries[:-1], *self.items[:-1], self.confidences, self.correct)
        return sum(array.nbytes for array in arrays)


class Terms(NamedTuple):
    """Ranked predictions: their places before ranking, P(i), and the term of each in gap's sum."""

    order: np.ndarray
    precision: np.ndarray
    terms: np.ndarray


def pool(lists: Lists, hits: Hits, limit: int, order: str = "given") -> PooledPredictions:
    """Pool the first `limit` predictions of each list; `order` may move hits ("worst", "best")."""
    lengths = np.diff(lists.offsets)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    ranks = np.arange(len(rows)) - lists.offsets[rows]
    gains = np.zeros(len(rows))
    gains[hits.places(lists.offsets)] = hits.gains
    places = np.arange(len(rows))
    if order in ("worst", "best"):
        places = np.lexsort((gains if order == "worst" else -gains, -lists.confidences, rows))
    kept = places[ranks < limit]
    return PooledPredictions(
        take_ids(lists.queries, rows[kept]),
        take_ids(lists.items, kept),
        lists.confidences[kept],
        gains[kept] > 0,
    )


def join(parts: list[PooledPredictions]) -> PooledPredictions:
    """Return all predictions in the order of the parts."""
    return PooledPredictions(
        join_ids([part.queries for part in parts]),
        join_ids([part.items for part in parts]),
        np.concatenate([part.confidences for part in parts]),
        np.concatenate([part.correct for part in parts]),
    )


def rank_pooled(pooled: PooledPredictions, ties: str) -> Terms:
    """Rank predictions by falling confidence, and equal ones as `Choices.gap_ties` says.

    P(i) is the share of correct ones among the first i. The term of i is P(i) if i is correct, else
    0. With "threshold", P(i) is the value at the end of a tie. With "expected", both are expected
    values over all orders of the tie.
    """
    order = _order(pooled, ties)
    confidences = pooled.confidences[order]
    correct = pooled.correct[order].astype(np.int64)
    found = correct.cumsum()
    ranks = np.arange(1, len(order) + 1)
    if ties not in ("expected", "threshold"):
        precision = found / ranks
        return Terms(order, precision, precision * correct)
    starts = np.flatnonzero(np.append(True, confidences[1:] != confidences[:-1])[: len(order)])
    sizes = np.diff(np.append(starts, len(order)))
    hits = np.add.reduceat(correct, starts) if len(starts) else correct
    of_run = np.repeat(np.arange(len(starts)), sizes)
    before = np.append(0, hits.cumsum())[:-1][of_run] if len(starts) else correct
    sizes, hits, starts = sizes[of_run], hits[of_run], starts[of_run]
    if ties == "threshold":
        precision = (before + hits) / (starts + sizes)
        return Terms(order, precision, precision * correct)
    place = ranks - starts
    growth = (hits - 1) / np.maximum(1, sizes - 1)
    terms = hits / sizes * (before + 1 + (place - 1) * growth) / ranks
    return Terms(order, (before + place * hits / sizes) / ranks, terms)


def _order(pooled: PooledPredictions, ties: str) -> np.ndarray:
    if ties == "ids":
        columns = {
            "confidence": arrow_of(pooled.confidences),
            "query": ids_to_arrow(pooled.queries, set()),
            "item": ids_to_arrow(pooled.items, set()),
        }
        directions = [("confidence", "descending"), ("query", "ascending"), ("item", "ascending")]
        import pyarrow.compute as pc

        return numbers_of(pc.sort_indices(pa.table(columns), sort_keys=directions))
    if ties in ("worst", "best"):
        last = pooled.correct if ties == "worst" else ~pooled.correct
        return np.lexsort((last, -pooled.confidences))
    return np.argsort(-pooled.confidences, kind="stable")
