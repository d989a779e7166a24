"""Metrics of where hits stand: relative_p, iprec, first_rank, mean_rank, auc, gauc, yaap..."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rankmill.metrics.base import (
    MANNING,
    REL,
    Divisor,
    Metric,
    MetricSpec,
    Parameter,
)
from rankmill.metrics.quantities import counted
from rankmill.semantics.choices import Choices

if TYPE_CHECKING:
    from rankmill.matching.hits import Hits

RECALL = Parameter("recall", "the least recall", low=0, high=1, closed=True)
BY = Parameter(
    "by",
    "what a list is weighted by",
    0,
    words=(("predictions", 0), ("hits", 1)),
    low=-1,
    high=2,
)
TIMES = Parameter("times", "the cutoff as a multiple of R", low=0, high=1e6)


def _eleven(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    return np.full(len(hits.label_counts), 11)


def _added(semantics: Choices) -> tuple[float, ...]:
    """What is added to recall R before it is cut: just below 0.5 rounds half up in all cases."""
    return (0.9 if semantics.recall_rounding == "up" else math.nextafter(0.5, 0),)


def _pairs(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    found = counted("count_hits", hits, metric.limit)
    return np.asarray(found * (np.minimum(metric.limit, hits.prediction_counts) - found))


def _list_weights(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    """The weight of a list; 0 without a pair."""
    found = counted("count_hits", hits, metric.limit)
    every = np.minimum(metric.limit, hits.prediction_counts)
    weights = found if metric.arguments[0] else every
    return np.where((found > 0) & (found < every), weights, 0)


def _without_cutoff(metric: Metric, semantics: Choices) -> str:
    if semantics.order == "expected" and metric.k is not None:
        return (
            f"has no closed form of its expected value within {metric.k} over ties here: leave out "
            "the cutoff, or choose another order than 'expected'"
        )
    return ""


def _shares_ranks(metric: Metric, semantics: Choices) -> str:
    if semantics.order != "expected":
        return (
            "has no order of equal confidences, which share the last of their ranks: choose "
            "--semantics order=expected"
        )
    return ""


METRICS = (
    MetricSpec(
        name="relative_p",
        kernel="count_hits",
        expected="count_hits",
        definition="hits within k / min(k, R): precision over the best possible",
        range="0 to 1",
        source="trec_eval 9",
        divisor=Divisor("count_labels_within", "min(k, R)"),
        cutoff="required",
        parameters=(REL,),
        cut_names=("relative_P",),
    ),
    MetricSpec(
        name="rprec_mult",
        kernel="precision_at_multiple",
        expected="precision_at_multiple",
        definition="precision at a multiple of R, rounded as in trec_eval: at times * R + 0.9, "
        "rounded down",
        range="0 to 1",
        source="trec_eval 9",
        cutoff="none",
        parameters=(TIMES, REL),
        at=TIMES,
        cut_names=("Rprec_mult",),
    ),
    MetricSpec(
        name="iprec",
        kernel="precision_at_recall",
        definition="the largest precision at any rank with at least that recall, 0 if there is "
        "none; recall_rounding sets how many of R labels a recall is",
        range="0 to 1",
        source=MANNING,
        fields=("recall_rounding",),
        chosen=_added,
        cutoff="none",
        parameters=(RECALL, REL),
        at=RECALL,
        cut_names=("iprec_at_recall",),
    ),
    MetricSpec(
        name="iprec_avg",
        kernel="eleven_precisions",
        definition="the mean of iprec at recall 0, 0.1, ... 1",
        range="0 to 1",
        source=MANNING,
        divisor=Divisor(_eleven, "11"),
        fields=("recall_rounding",),
        chosen=_added,
        cutoff="none",
        parameters=(REL,),
        aliases=("11pt_avg",),
    ),
    MetricSpec(
        name="first_rank",
        kernel="first_rank",
        expected="first_rank",
        definition="the rank of the first hit within k; one more than the last rank if there is "
        "none",
        range="1 and up",
        better="lower",
        source="Cooper, Expected Search Length, American Documentation, 1968",
        parameters=(REL,),
        without_labels="refused",
        counts_empty=True,
    ),
    MetricSpec(
        name="mean_rank",
        kernel="sum_ranks",
        definition="the mean rank of the labels; a label not found within k counts as one rank "
        "after the last",
        range="1 and up",
        better="lower",
        source="Bordes et al., Translating Embeddings for Modeling Multi-relational Data, NIPS "
        "2013",
        divisor=Divisor("count_labels", "R"),
        parameters=(REL,),
        without_labels="refused",
        counts_empty=True,
    ),
    MetricSpec(
        name="auc",
        kernel="pairs_in_order",
        expected="pairs_in_order",
        definition="share of the pairs of a hit and a miss within k in which the hit is ranked "
        "first; 1 if all are hits, 0 without a hit",
        range="0 to 1",
        source="Fawcett, An Introduction to ROC Analysis, Pattern Recognition Letters, 2006",
        divisor=Divisor(_pairs, "hits (n - hits)"),
        parameters=(REL,),
        undefined=_without_cutoff,
    ),
    MetricSpec(
        name="gauc",
        kernel="weighted_pairs",
        expected="weighted_pairs",
        definition="the mean of auc over the lists with a hit and a miss, weighted by their "
        "predictions or hits",
        range="0 to 1",
        source="Zhu et al., Optimized Cost per Click in Taobao Display Advertising, KDD 2017; by "
        "hits as RecBole computes it",
        divisor=Divisor(_list_weights, "the weight of the list"),
        parameters=(BY, REL),
        undefined=_without_cutoff,
    ),
    MetricSpec(
        name="lrap",
        kernel="sum_precisions",
        expected="shared_precisions",
        definition="mean over the labels of the precision at the rank of the label, 0 if it is "
        "not found; tied predictions all take the last of their ranks",
        range="0 to 1",
        source="Tsoumakas, Katakis and Vlahavas, Mining Multi-label Data, 2010, as scikit-learn "
        "computes it",
        divisor=Divisor("count_labels", "R"),
        cutoff="none",
        parameters=(REL,),
        aliases=("label_ranking_average_precision_score",),
        undefined=_shares_ranks,
    ),
    MetricSpec(
        name="bing",
        kernel="discounted_by_misses",
        definition="sum over the hits of 1 / log2(2 + misses above), divided by R",
        range="0 to 1",
        source="Buckley, trec_eval 9: binG",
        divisor=Divisor("count_labels", "R"),
        cutoff="none",
        parameters=(REL,),
    ),
    MetricSpec(
        name="yaap",
        kernel="log_odds_of_precisions",
        definition="ln((1 + S) / (1 + R - S)), of the sum S of P(i) rel(i) over all predictions",
        range="any number",
        source="Robertson, On Smoothing Average Precision, ECIR 2012, as trec_eval 9 computes it",
        cutoff="none",
        parameters=(REL,),
        counts_empty=True,
        aggregate="aggregates.mean.SignedMean",
    ),
)
