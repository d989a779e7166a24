"""Metrics of graded gains: ndcg, dcg, their forms with the first discount, sdcg."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from rankmill.columns.elementary import discounts
from rankmill.metrics.base import (
    NO_CUTOFF,
    Divisor,
    Metric,
    MetricSpec,
)
from rankmill.metrics.families.browsing_models import FULL
from rankmill.metrics.quantities import counted
from rankmill.semantics.choices import Choices

if TYPE_CHECKING:
    from rankmill.matching.hits import Hits

# The largest cutoff whose ideal list may be longer than the labels.
LARGEST_IDEAL = 1_000_000

JARVELIN = "Järvelin and Kekäläinen, Cumulated Gain-Based Evaluation of IR Techniques, TOIS 2002"


def _of_ndcg(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    if semantics.ideal_dcg == "k" and metric.limit < NO_CUTOFF:
        return np.full(len(hits.label_counts), _dcg_of_hits(metric.limit))
    return counted("ideal_dcg", hits, metric.limit)


@cache
def _dcg_of_hits(k: int) -> float:
    """The DCG of k hits of gain 1."""
    return math.fsum(1 / discounts(k)[1:])


def _of_full_hits(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    return np.full(len(hits.label_counts), _dcg_of_hits(metric.limit))


def _too_long(metric: Metric, semantics: Choices) -> str:
    if (metric.k or 0) > LARGEST_IDEAL:
        return f"divides by the dcg of k labels: choose a cutoff of at most {LARGEST_IDEAL:,}"
    return ""


def _undefined(metric: Metric, semantics: Choices) -> str:
    if semantics.ideal_dcg == "k" and (metric.k or 0) > LARGEST_IDEAL:
        return (
            f"would divide by the dcg of {metric.k:,} labels: choose a cutoff of at most "
            f"{LARGEST_IDEAL:,}, or ideal_dcg 'labels'"
        )
    return ""


def _ideal(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    """The gains of the best list there could be, up to the cutoff."""
    if semantics.ideal_dcg == "k" and metric.k is not None:
        return np.ones(metric.k)
    gains = hits.label_gains if len(hits.label_gains) else np.ones(int(hits.label_counts[0]))
    return gains[: metric.limit]


METRICS = (
    MetricSpec(
        name="ndcg",
        kernel="dcg",
        expected="dcg",
        definition="dcg@k / the dcg@k of the labels in descending order of gain",
        range="0 to 1",
        source=JARVELIN,
        divisor=Divisor(_of_ndcg, "the dcg of {}"),
        fields=("ideal_dcg",),
        cut_names=("ndcg_cut",),
        undefined=_undefined,
        ideal=_ideal,
    ),
    MetricSpec(
        name="dcg",
        kernel="dcg",
        expected="dcg",
        definition="sum of gain / log2(rank + 1) over the hits within k",
        range="0 and up",
        source=f"{JARVELIN}; discount and exponential gains: Burges et al., ICML 2005",
        sees_labels=False,
    ),
    MetricSpec(
        name="dcg_jk",
        kernel="late_dcg",
        definition="sum of gain / log2(max(2, rank)) over the hits within k: the first two ranks "
        "have the same discount",
        range="0 and up",
        source=f"{JARVELIN}, with their base 2; LensKit: DCG",
        sees_labels=False,
    ),
    MetricSpec(
        name="ndcg_jk",
        kernel="late_dcg",
        definition="dcg_jk@k / the dcg_jk@k of the labels in descending order of gain",
        range="0 to 1",
        source=f"{JARVELIN}, with their base 2; LensKit: NDCG; the source of trec_eval: ndcg_p",
        divisor=Divisor("ideal_late_dcg", "the dcg_jk of the labels"),
        aliases=("ndcg_p",),
    ),
    MetricSpec(
        name="sdcg",
        kernel="capped_dcg",
        definition="sum of gain / max / log2(rank + 1) over the hits within k, divided by the "
        "same sum for k hits of gain max",
        range="0 to 1",
        source=f"{JARVELIN}, as the NDCG-k of cwl_eval",
        divisor=Divisor(_of_full_hits, "the dcg of k hits of gain 1"),
        cutoff="required",
        parameters=(FULL,),
        undefined=_too_long,
        sees_labels=False,
    ),
)
