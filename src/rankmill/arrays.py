"""Metrics of arrays and lists in memory, query by query, and the arrays of lists that they take."""

from rankmill.columns.matrix import Matrix
from rankmill.columns.ragged_lists import Ragged
from rankmill.metrics.arrays import (
    average_precision,
    dcg,
    f1,
    first_hit_precision,
    hit,
    kendall_tau,
    ndcg,
    precision,
    r_precision,
    rank_biased_overlap,
    recall,
)
from rankmill.metrics.gap.gap_array import global_average_precision
from rankmill.sources.memory.matrices import from_indexes, top_k

__all__ = [
    "Matrix",
    "Ragged",
    "average_precision",
    "dcg",
    "f1",
    "first_hit_precision",
    "from_indexes",
    "global_average_precision",
    "hit",
    "kendall_tau",
    "ndcg",
    "precision",
    "r_precision",
    "rank_biased_overlap",
    "recall",
    "top_k",
]
