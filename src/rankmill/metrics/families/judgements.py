"""Metrics that ask which predictions are judged, at any gain: judged, bpref, infap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmill.metrics.base import REL, Divisor, Metric, MetricSpec
from rankmill.metrics.no_value import one_order
from rankmill.semantics.choices import Choices

if TYPE_CHECKING:
    from rankmill.matching.hits import Hits


def _cutoff(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    return np.full(len(hits.label_counts), metric.limit)


METRICS = (
    MetricSpec(
        name="judged",
        kernel="count_hits",
        expected="count_hits",
        definition="share of the first k (of all, if there are fewer) that are judged, at any "
        "gain; no_relevant sets how a query without a relevant item counts",
        range="0 to 1",
        source="MacAvaney, Macdonald and Ounis, Streamlining Evaluation with ir-measures, ECIR "
        "2022: Judged@k",
        divisor=Divisor("count_predictions", "min(k, n)"),
        cutoff="required",
        needs_judged=True,
        sees_labels=False,
    ),
    MetricSpec(
        name="bpref",
        kernel="bpref",
        expected="bpref",
        definition="sum over the relevant predictions of 1 - min(judged nonrelevant above, R) / "
        "min(R, N), divided by R; N labels have a gain of 0 or more and are not "
        "relevant",
        range="0 to 1",
        source="Buckley and Voorhees, Retrieval Evaluation with Incomplete Information, SIGIR "
        "2004, as trec_eval 9 computes it",
        divisor=Divisor("count_relevant", "R, the number of relevant items"),
        cutoff="none",
        parameters=(REL,),
        needs_judged=True,
    ),
    MetricSpec(
        name="unjudged",
        kernel="count_misses",
        expected="count_misses",
        definition="share of the first k (of all, if there are fewer) that are not judged: 1 - "
        "judged@k",
        range="0 to 1",
        better="lower",
        source="MacAvaney, Macdonald and Ounis, Streamlining Evaluation with ir-measures, ECIR "
        "2022",
        divisor=Divisor("count_predictions", "min(k, n)"),
        cutoff="required",
        needs_judged=True,
        without_labels="list",
        counts_empty=True,
    ),
    MetricSpec(
        name="unj",
        kernel="count_unjudged",
        definition="unjudged predictions within k / k; a gain below 0 counts as unjudged, an "
        "empty rank of a short list does not",
        range="0 to 1",
        better="lower",
        source="Soboroff, trec_eval 10",
        divisor=Divisor(_cutoff, "k"),
        cutoff="required",
        cut_names=("unj",),
        needs_judged=True,
        gains="levels",
        without_labels="list",
        counts_empty=True,
        undefined=one_order,
    ),
    MetricSpec(
        name="num_nonrel_judged_ret",
        kernel="count_without_gain",
        expected="count_without_gain",
        definition="the number of predictions that are judged, at a gain of 0 or more, and not "
        "relevant",
        range="0 and up",
        better="lower",
        source="trec_eval 9",
        cutoff="none",
        parameters=(REL,),
        needs_judged=True,
        gains="levels",
        counts_empty=True,
    ),
    MetricSpec(
        name="infap",
        kernel="inferred_precisions",
        definition="sum over the relevant predictions of (1 + pooled above x (relevant above + "
        "e) / (judged above + 2 e)) / rank, divided by R; e is 0.00001, and items "
        "with a gain below 0 are pooled and not judged",
        range="0 to 1",
        source="Yilmaz and Aslam, Estimating Average Precision with Incomplete and Imperfect "
        "Judgments, CIKM 2006, as trec_eval 9 computes it",
        divisor=Divisor("count_relevant", "R, the number of relevant items"),
        cutoff="none",
        parameters=(REL,),
        needs_judged=True,
        gains="levels",
        undefined=one_order,
    ),
    MetricSpec(
        name="pair_accuracy",
        kernel="judged_in_order",
        definition="share of the pairs of judged predictions within k, with different gains of 0 "
        "or more, in which the larger gain is ranked first; 0 without such a pair",
        range="0 to 1",
        source="Carterette, Bennett, Chickering and Dumais, Here or There: Preference Judgments "
        "for Relevance, ECIR 2008",
        needs_judged=True,
        sees_labels=False,
    ),
)
