"""Metrics of labels with subtopics: α-nDCG, ERR-IA, subtopic recall."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmill.metrics.base import Columns, Divisor, Metric, MetricSpec, Parameter, Ranked, counted
from rankmill.metrics.undefined import one_order
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


def _walk_discounted(ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    return _walk(ranked, metric, ranked.discount)


def _walk_cascade(ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    return _walk(ranked, metric, ranked.rank)


def _walk(ranked: Ranked, metric: Metric, divided_by: np.ndarray) -> Columns:
    """What each hit is worth by the subtopics it adds, as the kernels have it, to the same bits."""
    from rankmill.kernels.diversity import SUBTOPICS

    (alpha,) = metric.arguments
    about, weights = _subtopics_at(ranked), np.ones(SUBTOPICS)
    worth = np.zeros(len(about))
    for place, its in enumerate(about):
        for subtopic in np.flatnonzero(its):
            worth[place] += weights[subtopic]
        weights[its] *= 1.0 - alpha
    found = {"hit": ranked.hit, "subtopics": about.sum(axis=1), "worth": worth}
    return found | {"term": worth / divided_by}


def _walk_subtopics(ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    about = _subtopics_at(ranked)
    new = np.diff(np.logical_or.accumulate(about, axis=0).sum(axis=1), prepend=0)
    return {"hit": ranked.hit, "subtopics": about.sum(axis=1), "term": new.astype(np.float64)}


def _subtopics_at(ranked: Ranked) -> np.ndarray:
    """Whether the item at each rank is about each subtopic, a row a rank."""
    from rankmill.kernels.diversity import SUBTOPICS

    masks = np.where(ranked.hit, ranked.gain, 0).astype(np.int64)
    about: np.ndarray = (masks[:, None] >> np.arange(SUBTOPICS) & 1).astype(np.bool_)
    return about


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
        walk=_walk_discounted,
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
        walk=_walk_cascade,
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
        walk=_walk_subtopics,
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
