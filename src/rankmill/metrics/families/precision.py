"""Metrics of hits and misses: map, first_hit, precision, recall, hit, f1, fallout, rprec..."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rankmill.metrics.base import MANNING, NO_CUTOFF, REL, Divisor, Metric, MetricSpec, Parameter
from rankmill.metrics.quantities import counted
from rankmill.semantics.choices import Choices

if TYPE_CHECKING:
    from rankmill.matching.hits import Hits

BETA = Parameter("beta", "how many times as much recall counts as precision", 1.0, low=0, high=1e9)
VOORHEES = "Voorhees and Harman, TREC: Experiment and Evaluation in Information Retrieval, 2005"


# ------------------------------------------------------------------ divisors


def _of_average_precision(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    labels, k = hits.label_counts, metric.limit
    if semantics.ap_divisor == "min_k_labels":
        return np.asarray(np.minimum(k, labels))
    if semantics.ap_divisor == "min_labels_predictions":
        return np.asarray(np.minimum(np.minimum(k, labels), hits.prediction_counts))
    if semantics.ap_divisor == "hits":
        return counted("count_hits", hits, k)
    return labels


def _of_precision(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    if semantics.precision_divisor == "min_k_predictions":
        return np.asarray(np.minimum(metric.limit, hits.prediction_counts))
    k = metric.k or metric.limit
    divisor: float = k
    if k > NO_CUTOFF:  # beyond int64, to which f1 adds the labels; or even beyond float64
        divisor = float(k) if k.bit_length() < 1024 else math.inf
    return np.full(len(hits.label_counts), divisor)


def _of_recall(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    labels = hits.label_counts
    return labels if semantics.recall_divisor == "labels" else np.minimum(metric.limit, labels)


def _of_fbeta(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    """With beta, a and b count as 1 and beta squared."""
    square = metric.arguments[0] ** 2
    both = _of_precision(hits, metric, semantics) + square * _of_recall(hits, metric, semantics)
    return np.asarray(both / (1 + square))


def _of_f1(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    """The harmonic mean of h / a and h / b is h over the mean of a and b."""
    both = _of_precision(hits, metric, semantics) + _of_recall(hits, metric, semantics)
    return np.asarray(both / 2)


# ------------------------------------------------------------------ rows


def _map_undefined(metric: Metric, semantics: Choices) -> str:
    if semantics.order == "expected" and semantics.ap_divisor == "hits":
        return (
            "over the hits found has no closed form of its expected value: choose another order or "
            "ap_divisor"
        )
    return ""


row = partial(MetricSpec, range="0 to 1", parameters=(REL,))

METRICS = (
    row(
        name="map",
        kernel="sum_precisions",
        definition="sum of P(i) rel(i) over the first k, divided by min(k, R), or by R without a "
        "cutoff",
        source=VOORHEES,
        divisor=Divisor(_of_average_precision),
        fields=("ap_divisor",),
        aliases=("ap",),
        cut_names=("map_cut",),
        undefined=_map_undefined,
    ),
    row(
        name="first_hit",
        kernel="first_hit",
        definition="1 / rank of the first hit within k, else 0",
        source="Voorhees, The TREC-8 Question Answering Track Report, 1999",
        aliases=("mrr", "rr", "recip_rank", "reciprocal_rank"),
    ),
    row(
        name="precision",
        kernel="count_hits",
        definition="hits / k",
        source=MANNING,
        divisor=Divisor(_of_precision),
        fields=("precision_divisor",),
        cutoff="required",
        aliases=("P",),
        cut_names=("P",),
    ),
    row(
        name="recall",
        kernel="count_hits",
        definition="hits within k / R",
        source=MANNING,
        divisor=Divisor(_of_recall),
        fields=("recall_divisor",),
        aliases=("R", "set_recall", "SetR"),
        cut_names=("recall",),
    ),
    row(
        name="hit",
        kernel="any_hit",
        definition="1 if any of the first k is a hit, else 0",
        range="0 or 1",
        source="Deshpande and Karypis, Item-Based Top-N Recommendation Algorithms, TOIS 2004",
        aliases=("hit_rate", "HitRate", "success"),
        cut_names=("success",),
    ),
    row(
        name="fbeta",
        kernel="count_hits_for",
        definition="(1 + beta^2) P r / (beta^2 P + r), of precision@k P and recall@k r",
        source="van Rijsbergen, Information Retrieval, 1979, chapter 7",
        divisor=Divisor(_of_fbeta, "the mean of {} and {}, the latter counted beta^2 times"),
        fields=("precision_divisor", "recall_divisor"),
        cutoff="required",
        parameters=(BETA, REL),
        aliases=("F1Beta", "f_beta"),
    ),
    row(
        name="fallout",
        kernel="count_misses",
        definition="misses within k / misses in the whole list; 0 if all predictions are hits",
        better="lower",
        source="Swets, Information Retrieval Systems, Science 1963; over the list, as "
        "RetrievalFallOut of TorchMetrics",
        divisor=Divisor("count_all_misses", "the predictions that are no hits"),
        sees_all=True,
        counts_empty=True,
    ),
    row(
        name="mcc",
        kernel="hits_beyond_chance",
        definition="Matthews correlation of being within k and being a label, over N items: (N "
        "hits - k R) / sqrt(k (N - k) R (N - R)); 0 unless k and R are below N",
        range="-1 to 1",
        source="Matthews, Comparison of the Predicted and Observed Secondary Structure of T4 Phage "
        "Lysozyme, BBA 1975, as RecTools computes it",
        divisor=Divisor("spread_of_chance", "sqrt(k (N - k) R (N - R))"),
        cutoff="required",
        parameters=(
            Parameter("items", "the number N of all items", None, low=0, high=1e15, kind=int),
            REL,
        ),
        counts_empty=True,
        aggregate="aggregates.mean.SignedMean",
    ),
    row(
        name="f1",
        kernel="count_hits",
        definition="harmonic mean of precision@k and recall@k",
        source="van Rijsbergen, Information Retrieval, 1979, chapter 7",
        divisor=Divisor(_of_f1, "the mean of {} and {}"),
        fields=("precision_divisor", "recall_divisor"),
        cutoff="required",
    ),
    row(
        name="rprec",
        aliases=("r-precision", "r_precision"),
        kernel="count_hits_of_labels",
        definition="hits in the first R / R",
        source=MANNING,
        divisor=Divisor(_of_recall),
        fields=("recall_divisor",),
        cutoff="none",
        within_labels=True,
    ),
)
