"""More metrics of graded gains: err, nerr, q_measure and its kin, g, ndcg_rel, rndcg."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rankmill.metrics.base import (
    REL,
    Divisor,
    MetricSpec,
    Parameter,
)
from rankmill.metrics.no_value import one_order

if TYPE_CHECKING:
    pass

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


METRICS = (
    MetricSpec(
        name="err",
        kernel="cascade",
        definition="sum over the hits within k of the chance that a reader stops there / rank; a "
        "reader who sees a gain of g stops with probability (2^g - 1) / 2^max",
        range="0 to 1",
        source=CHAPELLE,
        parameters=(MOST,),
        gains="powers",
        sees_labels=False,
    ),
    MetricSpec(
        name="nerr",
        kernel="cascade",
        definition="err@k / the err@k of the labels in descending order of gain",
        range="0 to 1",
        source=f"{CHAPELLE}; Sakai, Metrics, Statistics, Tests, 2014",
        divisor=Divisor("ideal_cascade", "the err of the best list"),
        parameters=(MOST,),
        gains="powers",
    ),
    MetricSpec(
        name="q_measure",
        kernel="blended_ratios",
        definition="sum over the hits within k of (hits so far + beta gains so far) / (rank + "
        "beta gains of the ideal list so far), divided by min(k, R), or by R without "
        "a cutoff",
        range="0 to 1",
        source=SAKAI,
        divisor=Divisor("count_labels_within", "min(k, R)"),
        parameters=(Parameter("beta", "the weight of gains", 1.0, low=0, high=1e9),),
        aliases=("Q",),
    ),
    MetricSpec(
        name="g",
        kernel="discounted_by_lost_gain",
        definition="sum of gain / log2(2 + cost of all ranks so far - gains so far), divided by "
        "gains of all labels; the cost of a rank is the gain of the ideal list there, "
        "at least 1",
        range="0 to 1",
        source="Buckley, trec_eval 9: G",
        divisor=Divisor("sum_label_gains", "the sum of the gains of all labels"),
        cutoff="none",
        undefined=one_order,
    ),
    MetricSpec(
        name="ndcg_rel",
        kernel="ndcg_at_hits",
        definition="the mean over all labels of ndcg at the rank of the label; of ndcg at the last "
        "rank, over all labels, if it is not found",
        range="0 to 1",
        source="Buckley, trec_eval 9",
        divisor=Divisor("count_labels", "R"),
        cutoff="none",
        undefined=one_order,
    ),
    MetricSpec(
        name="rndcg",
        kernel="ndcg_at_levels",
        definition="the mean of ndcg at the ranks where the gain of the ideal list falls, and at "
        "the last rank if n > R + 1, over all labels; 0 if none is relevant",
        range="0 to 1",
        source="Buckley, trec_eval 9: Rndcg",
        cutoff="none",
        parameters=(REL,),
        gains="whole",
    ),
    *(
        MetricSpec(
            name=name,
            aliases=aliases,
            kernel=kernel,
            definition=f"{where} of (hits so far + beta gains so far) / (rank + beta gains of the "
            "ideal list so far)",
            range="0 to 1",
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
    MetricSpec(
        name="ncu_rb",
        kernel="ratios_by_gamma",
        definition="normalized cumulative utility, rank-biased: sum over the hits of gamma^(hits "
        "before) times the ratio of q_measure, divided by the sum of gamma^i over R "
        "labels; with beta 0 the ratio is precision",
        range="0 to 1",
        source=NCU,
        divisor=Divisor("sum_of_powers", "the sum of gamma^i over the labels"),
        parameters=(
            Parameter("gamma", "how much each hit counts relative to the one before", 0.95, 0, 1),
            EITHER,
        ),
        undefined=one_order,
    ),
    MetricSpec(
        name="ncu_gu",
        kernel="ratios_by_gain",
        definition="normalized cumulative utility, graded-uniform: sum over the hits of gain "
        "times the ratio of q_measure, divided by gains of all labels; with beta 0 "
        "the ratio is precision",
        range="0 to 1",
        source=NCU,
        divisor=Divisor("sum_label_gains", "the gains of all labels"),
        parameters=(EITHER,),
        undefined=one_order,
    ),
)
