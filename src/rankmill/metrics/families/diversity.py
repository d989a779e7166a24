"""Metrics of labels with subtopics: α-nDCG, ERR-IA, subtopic recall."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmill.metrics.base import Divisor, Metric, MetricSpec, Parameter, counted
from rankmill.metrics.no_value import one_order
from rankmill.semantics.choices import Choices

if TYPE_CHECKING:
    from rankmill.matching.hits import Hits

ALPHA = Parameter(
    "alpha",
    "how much of a subtopic's worth an item takes from those behind it",
    0.5,
    0,
    1,
    closed=True,
)


def _ideal(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    return counted("ideal_novelty_discounted", hits, metric.limit, *metric.arguments)


def _largest(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    return counted("largest_novelty_cascade", hits, metric.limit, *metric.arguments)


def _subtopics(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    return counted("count_all_subtopics", hits, metric.limit)


METRICS = (
    MetricSpec(
        name="alpha_ndcg",
        kernel="novelty_discounted",
        definition="sum over hits of Σ (1 − alpha)^(earlier hits of the subtopic) over the item's "
        "subtopics / log2(rank + 1), / that of the list that always takes the best label",
        range="0 to 1, and above where that list is not the best",
        source="Clarke et al., Novelty and Diversity in Information Retrieval Evaluation, SIGIR "
        "2008; ndeval",
        divisor=Divisor(_ideal, "the list that always takes the label that is worth most"),
        parameters=(ALPHA,),
        aliases=("alpha-nDCG", "α_nDCG"),
        gains="subtopics",
        undefined=one_order,
    ),
    MetricSpec(
        name="err_ia",
        kernel="novelty_cascade",
        definition="sum over hits of Σ (1 − alpha)^(earlier hits of the subtopic) over the item's "
        "subtopics / rank, / that of items of all subtopics at each of k ranks",
        range="0 to 1",
        source="Chapelle et al., Intent-Based Diversification of Web Search Results, Information "
        "Retrieval 14, 2011; ndeval",
        divisor=Divisor(_largest, "what items of all subtopics at every rank come to"),
        cutoff="required",
        parameters=(ALPHA,),
        aliases=("err-ia",),
        gains="subtopics",
        undefined=one_order,
    ),
    MetricSpec(
        name="subtopic_recall",
        kernel="count_subtopics",
        definition="subtopics with a hit among the first k / subtopics with a label",
        range="0 to 1",
        source="Zhai, Cohen and Lafferty, Beyond Independent Relevance, SIGIR 2003; ndeval's strec",
        divisor=Divisor(_subtopics, "the subtopics with a label"),
        aliases=("strec", "StRecall"),
        gains="subtopics",
        undefined=one_order,
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
