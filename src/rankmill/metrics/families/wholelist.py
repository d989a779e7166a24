"""Metrics of a whole list, as a set: counts, set_p, set_f, set_map, set_relative_p, utility."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmill.metrics.base import REL, Divisor, Metric, MetricSpec, Parameter
from rankmill.metrics.families.precision import BETA
from rankmill.semantics.choices import Choices

if TYPE_CHECKING:
    from rankmill.matching.hits import Hits

TREC_EVAL = "trec_eval 9"
RIJSBERGEN = "van Rijsbergen, Information Retrieval, 1979, chapter 7"


def _of_f(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    square = metric.arguments[0] ** 2
    return np.asarray((square * hits.label_counts + hits.prediction_counts) / (1 + square))


def _product(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    return np.asarray(hits.label_counts * hits.prediction_counts)


def _smaller(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    return np.asarray(np.minimum(hits.label_counts, hits.prediction_counts))


METRICS = (
    MetricSpec(
        name="num_ret",
        kernel="count_predictions",
        expected="count_predictions",
        definition="the number of predictions",
        range="0 and up",
        better="neither",
        source=TREC_EVAL,
        cutoff="none",
        counts_empty=True,
    ),
    MetricSpec(
        name="num_rel",
        kernel="count_labels",
        expected="count_labels",
        definition="R, the number of labels",
        range="0 and up",
        better="neither",
        source=TREC_EVAL,
        cutoff="none",
        parameters=(REL,),
        counts_empty=True,
    ),
    MetricSpec(
        name="num_rel_ret",
        kernel="count_hits",
        expected="count_hits",
        definition="the number of hits",
        range="0 and up",
        source=TREC_EVAL,
        cutoff="none",
        parameters=(REL,),
    ),
    MetricSpec(
        name="set_p",
        kernel="count_hits",
        expected="count_hits",
        definition="hits / n, the precision of the whole list",
        range="0 to 1",
        source=RIJSBERGEN,
        divisor=Divisor("count_predictions", "n, the number of predictions"),
        cutoff="none",
        parameters=(REL,),
        aliases=("SetP",),
    ),
    MetricSpec(
        name="set_f",
        kernel="count_hits_for",
        expected="count_hits_for",
        definition="(1 + beta^2) P r / (beta^2 P + r), of the precision P and the recall r of the "
        "whole list",
        range="0 to 1",
        source=RIJSBERGEN,
        divisor=Divisor(_of_f, "(beta^2 R + n) / (1 + beta^2)"),
        cutoff="none",
        parameters=(BETA, REL),
        aliases=("SetF",),
    ),
    MetricSpec(
        name="set_map",
        kernel="square_hits",
        expected="square_hits",
        definition="precision times recall of the whole list: hits^2 / (R n)",
        range="0 to 1",
        source=TREC_EVAL,
        divisor=Divisor(_product, "R n"),
        cutoff="none",
        parameters=(REL,),
        aliases=("SetAP",),
    ),
    MetricSpec(
        name="set_relative_p",
        kernel="count_hits",
        expected="count_hits",
        definition="hits / min(R, n), the precision of the whole list over the best possible",
        range="0 to 1",
        source=TREC_EVAL,
        divisor=Divisor(_smaller, "min(R, n)"),
        cutoff="none",
        parameters=(REL,),
        aliases=("SetRelP",),
    ),
    MetricSpec(
        name="utility",
        kernel="utility",
        expected="utility",
        definition="a hits + b misses + c labels that are not found",
        range="any number",
        source="Lewis, The TREC-4 Filtering Track, 1995, as trec_eval 9 computes it",
        cutoff="none",
        parameters=(
            Parameter("a", "what a hit is worth", 1.0, low=-1e9, high=1e9),
            Parameter("b", "what a miss is worth", -1.0, low=-1e9, high=1e9),
            Parameter("c", "what a label that is not found is worth", 0.0, low=-1e9, high=1e9),
            REL,
        ),
        counts_empty=True,
        aggregate="aggregates.mean.SignedMean",
    ),
)
