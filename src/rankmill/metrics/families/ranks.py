"""Metrics of where hits stand: relative_p, iprec, first_rank, mean_rank, auc, gauc, yaap..."""

from __future__ import annotations

import math
from functools import partial

from rankmill.metrics.base import MANNING, REL, Divisor, Metric, MetricSpec, Parameter
from rankmill.semantics.choices import Choices

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


def _added(semantics: Choices) -> tuple[float, ...]:
    """What is added to recall R before it is cut: just below 0.5 rounds half up in all cases."""
    return (0.9 if semantics.recall_rounding == "up" else math.nextafter(0.5, 0),)


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


row = partial(MetricSpec, range="0 to 1", parameters=(REL,))

METRICS = (
    row(
        name="relative_p",
        kernel="count_hits",
        definition="hits within k / min(k, R): precision over the best possible",
        source="trec_eval 9",
        divisor=Divisor("count_labels_within", "min(k, R)"),
        cutoff="required",
        cut_names=("relative_P",),
    ),
    row(
        name="rprec_mult",
        kernel="precision_at_multiple",
        definition="precision at a multiple of R, rounded as in trec_eval: at times * R + 0.9, "
        "rounded down",
        source="trec_eval 9",
        cutoff="none",
        parameters=(TIMES, REL),
        at=TIMES,
        cut_names=("Rprec_mult",),
    ),
    row(
        name="iprec",
        kernel="precision_at_recall",
        definition="the largest precision at any rank with at least that recall, 0 if there is "
        "none; recall_rounding sets how many of R labels a recall is",
        source=MANNING,
        fields=("recall_rounding",),
        chosen=_added,
        cutoff="none",
        parameters=(RECALL, REL),
        at=RECALL,
        cut_names=("iprec_at_recall",),
    ),
    row(
        name="iprec_avg",
        kernel="eleven_precisions",
        definition="the mean of iprec at recall 0, 0.1, ... 1",
        source=MANNING,
        divisor=Divisor("eleven", "11"),
        fields=("recall_rounding",),
        chosen=_added,
        cutoff="none",
        aliases=("11pt_avg",),
    ),
    row(
        name="first_rank",
        kernel="first_rank",
        definition="the rank of the first hit within k; one more than the last rank if there is "
        "none",
        range="1 and up",
        better="lower",
        source="Cooper, Expected Search Length, American Documentation, 1968",
        without_labels="refused",
        counts_empty=True,
    ),
    row(
        name="mean_rank",
        kernel="sum_ranks",
        definition="the mean rank of the labels; a label not found within k counts as one rank "
        "after the last",
        range="1 and up",
        better="lower",
        source="Bordes et al., Translating Embeddings for Modeling Multi-relational Data, NIPS "
        "2013",
        divisor=Divisor("count_labels", "R"),
        without_labels="refused",
        counts_empty=True,
    ),
    row(
        name="auc",
        kernel="pairs_in_order",
        definition="share of the pairs of a hit and a miss within k in which the hit is ranked "
        "first; 1 if all are hits, 0 without a hit",
        source="Fawcett, An Introduction to ROC Analysis, Pattern Recognition Letters, 2006",
        divisor=Divisor("count_pairs", "hits (n - hits)"),
        undefined=_without_cutoff,
    ),
    row(
        name="gauc",
        kernel="weighted_pairs",
        definition="the mean of auc over the lists with a hit and a miss, weighted by their "
        "predictions or hits",
        source="Zhu et al., Optimized Cost per Click in Taobao Display Advertising, KDD 2017; by "
        "hits as RecBole computes it",
        divisor=Divisor("list_weights", "the weight of the list"),
        parameters=(BY, REL),
        undefined=_without_cutoff,
    ),
    row(
        name="lrap",
        kernel="sum_precisions",
        expected="shared_precisions",
        definition="mean over the labels of the precision at the rank of the label, 0 if it is "
        "not found; tied predictions all take the last of their ranks",
        source="Tsoumakas, Katakis and Vlahavas, Mining Multi-label Data, 2010, as scikit-learn "
        "computes it",
        divisor=Divisor("count_labels", "R"),
        cutoff="none",
        aliases=("label_ranking_average_precision_score",),
        undefined=_shares_ranks,
    ),
    row(
        name="bing",
        kernel="discounted_by_misses",
        definition="sum over the hits of 1 / log2(2 + misses above), divided by R",
        source="Buckley, trec_eval 9: binG",
        divisor=Divisor("count_labels", "R"),
        cutoff="none",
    ),
    row(
        name="yaap",
        kernel="log_odds_of_precisions",
        definition="ln((1 + S) / (1 + R - S)), of the sum S of P(i) rel(i) over all predictions",
        range="any number",
        source="Robertson, On Smoothing Average Precision, ECIR 2012, as trec_eval 9 computes it",
        cutoff="none",
        counts_empty=True,
        aggregate="aggregates.mean.SignedMean",
    ),
)
