"""Metrics of graded gains: ndcg, dcg, their forms with the first discount, err, q_measure..."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rankmill.metrics.base import NO_CUTOFF, REL, Divisor, Metric, MetricSpec, Parameter
from rankmill.metrics.families.browsing_models import FULL
from rankmill.metrics.no_value import one_order
from rankmill.metrics.quantities import counted
from rankmill.semantics.choices import Choices

if TYPE_CHECKING:
    from rankmill.matching.hits import Hits

# The largest cutoff whose ideal list may be longer than the labels.
LARGEST_IDEAL = 1_000_000

JARVELIN = "Järvelin and Kekäläinen, Cumulated Gain-Based Evaluation of IR Techniques, TOIS 2002"
MOST = Parameter(
    "max",
    "the largest possible gain, before any gain function; larger gains count as this one",
    4,
    0,
    300,
    int,
)
CHAPELLE = (
    "Chapelle, Metlzer, Zhang and Grinspan, Expected Reciprocal Rank for Graded Relevance, CIKM "
    "2009"
)
SAKAI = (
    "Sakai, On Penalising Late Arrival of Relevant Documents in Information Retrieval Evaluation "
    "with Graded Relevance, EVIA 2007"
)

NCU = "Sakai and Robertson, Modelling a User Population for Designing Information Retrieval "
NCU += "Metrics, EVIA 2008; NTCIREVAL"
BETA = Parameter("beta", "the weight of gains", 1.0, low=0, high=1e9)
EITHER = replace(BETA, closed=True)
row = partial(MetricSpec, range="0 to 1")


def _of_ndcg(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    of_k = semantics.ideal_dcg == "k" and metric.limit < NO_CUTOFF
    return counted("dcg_of_all_hits" if of_k else "ideal_dcg", hits, metric.limit)


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
    return hits.with_label_gains().label_gains[: metric.limit]


METRICS = (
    row(
        name="ndcg",
        kernel="dcg",
        definition="dcg@k / the dcg@k of the labels in descending order of gain",
        source=JARVELIN,
        divisor=Divisor(_of_ndcg, "the dcg of {}"),
        fields=("ideal_dcg",),
        cut_names=("ndcg_cut",),
        undefined=_undefined,
        ideal=_ideal,
    ),
    row(
        name="dcg",
        kernel="dcg",
        definition="sum of gain / log2(rank + 1) over the hits within k",
        range="0 and up",
        source=f"{JARVELIN}; discount and exponential gains: Burges et al., ICML 2005",
        sees_labels=False,
    ),
    row(
        name="dcg_jk",
        kernel="late_dcg",
        definition="sum of gain / log2(max(2, rank)) over the hits within k: the first two ranks "
        "have the same discount",
        range="0 and up",
        source=f"{JARVELIN}, with their base 2; LensKit: DCG",
        sees_labels=False,
    ),
    row(
        name="ndcg_jk",
        kernel="late_dcg",
        definition="dcg_jk@k / the dcg_jk@k of the labels in descending order of gain",
        source=f"{JARVELIN}, with their base 2; LensKit: NDCG; the source of trec_eval: ndcg_p",
        divisor=Divisor("ideal_late_dcg", "the dcg_jk of the labels"),
        aliases=("ndcg_p",),
    ),
    row(
        name="sdcg",
        kernel="capped_dcg",
        definition="sum of gain / max / log2(rank + 1) over the hits within k, divided by the "
        "same sum for k hits of gain max",
        source=f"{JARVELIN}, as the NDCG-k of cwl_eval",
        divisor=Divisor("dcg_of_all_hits", "the dcg of k hits of gain 1"),
        cutoff="required",
        parameters=(FULL,),
        undefined=_too_long,
        sees_labels=False,
    ),
    row(
        name="err",
        kernel="cascade",
        definition="sum over the hits within k of the chance that a reader stops there / rank; a "
        "reader who sees a gain of g stops with probability (2^g - 1) / 2^max",
        source=CHAPELLE,
        parameters=(MOST,),
        gains="powers",
        sees_labels=False,
    ),
    row(
        name="nerr",
        kernel="cascade",
        definition="err@k / the err@k of the labels in descending order of gain",
        source=f"{CHAPELLE}; Sakai, Metrics, Statistics, Tests, 2014",
        divisor=Divisor("ideal_cascade", "the err of the best list"),
        parameters=(MOST,),
        gains="powers",
    ),
    row(
        name="q_measure",
        kernel="blended_ratios",
        definition="sum over the hits within k of (hits so far + beta gains so far) / (rank + beta "
        "gains of the ideal list so far), divided by min(k, R), or by R without a cutoff",
        source=SAKAI,
        divisor=Divisor("count_labels_within", "min(k, R)"),
        parameters=(BETA,),
        aliases=("Q",),
    ),
    row(
        name="g",
        kernel="discounted_by_lost_gain",
        definition="sum of gain / log2(2 + cost of all ranks so far - gains so far), divided by "
        "gains of all labels; the cost of a rank is the gain of the ideal list there, at least 1",
        source="Buckley, trec_eval 9: G",
        divisor=Divisor("sum_label_gains", "the sum of the gains of all labels"),
        cutoff="none",
        undefined=one_order,
    ),
    row(
        name="ndcg_rel",
        kernel="ndcg_at_hits",
        definition="the mean over all labels of ndcg at the rank of the label; of ndcg at the last "
        "rank, over all labels, if it is not found",
        source="Buckley, trec_eval 9",
        divisor=Divisor("count_labels", "R"),
        cutoff="none",
        undefined=one_order,
    ),
    row(
        name="rndcg",
        kernel="ndcg_at_levels",
        definition="the mean of ndcg at the ranks where the gain of the ideal list falls, and at "
        "the last rank if n > R + 1, over all labels; 0 if none is relevant",
        source="Buckley, trec_eval 9: Rndcg",
        cutoff="none",
        parameters=(REL,),
        gains="whole",
    ),
    *(
        row(
            name=name,
            aliases=aliases,
            kernel=kernel,
            definition=f"{where} of (hits so far + beta gains so far) / (rank + beta gains of the "
            "ideal list so far)",
            source="Sakai, On the Properties of Evaluation Metrics for Finding One Highly Relevant "
            "Document, IPSJ TOD 2007; NTCIREVAL",
            parameters=(BETA,),
            undefined=one_order,
        )
        for name, kernel, where, aliases in (
            ("o_measure", "ratio_at_first", "the blended ratio at the first hit,", ()),
            (
                "p_measure",
                "ratio_at_best",
                "at the first hit within k of the largest gain there,",
                (),
            ),
            (
                "p_plus",
                "ratios_up_to_best",
                "the mean over the hits up to that of p_measure",
                ("p+", "p+_measure"),
            ),
        )
    ),
    row(
        name="ncu_rb",
        kernel="ratios_by_gamma",
        definition="normalized cumulative utility, rank-biased: sum over the hits of gamma^(hits "
        "before) times the ratio of q_measure, divided by the sum of gamma^i over R "
        "labels; with beta 0 the ratio is precision",
        source=NCU,
        divisor=Divisor("sum_of_powers", "the sum of gamma^i over the labels"),
        parameters=(
            Parameter("gamma", "how much each hit counts relative to the one before", 0.95, 0, 1),
            EITHER,
        ),
        undefined=one_order,
    ),
    row(
        name="ncu_gu",
        kernel="ratios_by_gain",
        definition="normalized cumulative utility, graded-uniform: sum over the hits of gain "
        "times the ratio of q_measure, divided by gains of all labels; with beta 0 "
        "the ratio is precision",
        source=NCU,
        divisor=Divisor("sum_label_gains", "the gains of all labels"),
        parameters=(EITHER,),
        undefined=one_order,
    ),
)
