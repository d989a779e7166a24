"""Metrics that model how far down a list somebody reads: rbp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmill.metrics.base import REL, Columns, Metric, MetricSpec, Parameter, Ranked, Tied

if TYPE_CHECKING:
    from rankmill.matching.hits import Hits


def _weights(ranks: np.ndarray, metric: Metric) -> np.ndarray:
    """(1 - p) p**(rank - 1), multiplied up as the kernel does, to the same bits."""
    (p,) = metric.arguments
    powers = np.cumprod(np.where(ranks > 1, p, 1.0))
    return np.asarray((1 - p) * powers)


def _walk(ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    weight = _weights(ranked.rank, metric)
    return {"hit": ranked.hit, "weight": weight, "term": np.where(ranked.hit, weight, 0.0)}


def _expected_walk(tied: Tied, metric: Metric, hits: Hits) -> Columns:
    weight = _weights(tied.rank, metric)
    return {
        "hit": tied.hit,
        "chance": tied.chance,
        "weight": weight,
        "term": tied.chance * weight,
    }


METRICS = (
    MetricSpec(
        name="rbp",
        kernel="rank_biased",
        expected="rank_biased",
        definition="sum of (1 - p) p^(rank - 1) over the hits within k",
        range="0 to 1",
        source="Moffat and Zobel, Rank-Biased Precision for Measurement of Retrieval "
        "Effectiveness, TOIS 2008",
        parameters=(
            Parameter("p", "the chance to go on to the next prediction", 0.8, low=0, high=1),
            REL,
        ),
        walk=_walk,
        expected_walk=_expected_walk,
    ),
)
