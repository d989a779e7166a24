"""Metrics of labels with subtopics: α-nDCG, ERR-IA, NRBP, P-IA, MAP-IA, subtopic recall."""

from functools import partial

from rankmill.metrics.base import Divisor, Metric, MetricSpec, Parameter
from rankmill.metrics.no_value import one_order

CHAPELLE = "Chapelle et al., Intent-Based Diversification of Web Search Results, Information "
CHAPELLE += "Retrieval 14, 2011; ndeval"
CLARKE_2009 = "Clarke, Kolla and Vechtomova, An Effectiveness Measure for Ambiguous and "
CLARKE_2009 += "Underspecified Queries, ICTIR 2009; ndeval"
AGRAWAL = "Agrawal et al., Diversifying Search Results, WSDM 2009; ndeval"
ALPHA = Parameter(
    "alpha",
    "how much of its worth a subtopic loses with each item about it",
    0.5,
    0,
    1,
    closed=True,
)
BETA = Parameter("beta", "the probability of going on to the next prediction", 0.5, low=0, high=1)
BEST = "the list that always takes the label that is worth most"
LARGEST = "the same sum for items of all subtopics at every rank"
row = partial(MetricSpec, range="0 to 1", gains="subtopics", undefined=one_order)

METRICS = (
    row(
        name="alpha_ndcg",
        kernel="novelty_discounted",
        definition="sum over hits of Σ (1 − alpha)^(earlier hits of the subtopic) over the "
        "item's subtopics / log2(rank + 1), divided by the same sum for the list that "
        "always takes the best label next",
        range="0 to 1, and above if that list is not the best",
        source="Clarke et al., Novelty and Diversity in Information Retrieval Evaluation, SIGIR "
        "2008; ndeval",
        divisor=Divisor("ideal_novelty_discounted", BEST),
        parameters=(ALPHA,),
        aliases=("alpha-nDCG", "α_nDCG"),
    ),
    row(
        name="err_ia",
        kernel="novelty_cascade",
        definition="sum over hits of Σ (1 − alpha)^(earlier hits of the subtopic) over the item's "
        "subtopics / rank, divided by the same sum for k items that each cover all subtopics",
        source=CHAPELLE,
        divisor=Divisor("largest_novelty_cascade", LARGEST),
        cutoff="required",
        parameters=(ALPHA,),
        aliases=("err-ia",),
    ),
    row(
        name="alpha_dcg",
        kernel="novelty_discounted",
        definition="the sum of alpha_ndcg, divided by the same sum for k items that each cover "
        "all subtopics",
        source="Clarke et al., SIGIR 2008; ndeval",
        divisor=Divisor("largest_novelty_discounted", LARGEST),
        cutoff="required",
        parameters=(ALPHA,),
        aliases=("alpha-DCG", "α_DCG"),
    ),
    row(
        name="nerr_ia",
        kernel="novelty_cascade",
        definition="the sum of err_ia, divided by the same sum for the list that always takes "
        "the best label next",
        range="0 to 1, and above if that list is not the best",
        source=CHAPELLE,
        divisor=Divisor("ideal_novelty_cascade", BEST),
        parameters=(ALPHA,),
        aliases=("nerr-ia",),
    ),
    row(
        name="nrbp",
        kernel="novelty_biased",
        definition="sum over hits of beta^(rank - 1) Σ (1 − alpha)^(earlier hits of the subtopic) "
        "over the item's subtopics, times (1 - (1 - alpha) beta) / subtopics",
        source=CLARKE_2009,
        divisor=Divisor("endless_novelty_biased", f"{LARGEST}, to infinity"),
        cutoff="none",
        parameters=(ALPHA, BETA),
    ),
    row(
        name="nnrbp",
        kernel="novelty_biased",
        definition="the sum of nrbp, divided by the same sum for the list that always takes the "
        "best label next",
        range="0 to 1, and above if that list is not the best",
        source=CLARKE_2009,
        divisor=Divisor("ideal_novelty_biased", BEST),
        cutoff="none",
        parameters=(ALPHA, BETA),
    ),
    row(
        name="p_ia",
        kernel="count_hits_of_subtopics",
        definition="the mean over subtopics of the precision among the first k",
        source=AGRAWAL,
        divisor=Divisor("places_of_subtopics", "k times the subtopics with a label"),
        cutoff="required",
        aliases=("p-ia",),
    ),
    row(
        name="map_ia",
        kernel="sum_precisions_of_subtopics",
        definition="the mean over subtopics of the average precision, over all labels of each",
        source=AGRAWAL,
        divisor=Divisor("count_all_subtopics", "the subtopics with a label"),
        cutoff="none",
        aliases=("map-ia", "AP_IA"),
    ),
    row(
        name="subtopic_recall",
        kernel="count_subtopics",
        definition="subtopics with a hit among the first k / subtopics with a label",
        source="Zhai, Cohen and Lafferty, Beyond Independent Relevance, SIGIR 2003; ndeval's strec",
        divisor=Divisor("count_all_subtopics", "the subtopics with a label"),
        aliases=("strec", "StRecall"),
    ),
)


def is_of_subtopics(metric: Metric) -> bool:
    """Whether a metric needs labels with subtopics."""
    return metric.spec.gains == "subtopics"


def heeds_gains(metric: Metric) -> bool:
    """Whether a metric looks at how large gains are, which labels with subtopics do not tell."""
    spec = metric.spec
    relevant = "rel" in {one.name for one in spec.parameters} and spec.gains == "given"
    return bool(spec.kernel) and (not relevant or spec.needs_judged or metric.rel is not None)
