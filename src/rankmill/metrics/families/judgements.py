"""Metrics that ask which predictions are judged, at any gain: judged, bpref, infap."""

from functools import partial

from rankmill.metrics.base import REL, Divisor, MetricSpec
from rankmill.metrics.no_value import one_order

row = partial(MetricSpec, range="0 to 1", parameters=(REL,), needs_judged=True)

METRICS = (
    row(
        name="judged",
        parameters=(),
        kernel="count_hits",
        definition="share of the first k (of all, if there are fewer) that are judged, at any "
        "gain; no_relevant sets how a query without a relevant item counts",
        source="MacAvaney, Macdonald and Ounis, Streamlining Evaluation with ir-measures, ECIR "
        "2022: Judged@k",
        divisor=Divisor("count_predictions", "min(k, n)"),
        cutoff="required",
        sees_labels=False,
    ),
    row(
        name="bpref",
        kernel="bpref",
        definition="sum over the relevant predictions of 1 - min(judged nonrelevant above, R) / "
        "min(R, N), divided by R; N labels have a gain of 0 or more and are not relevant",
        source="Buckley and Voorhees, Retrieval Evaluation with Incomplete Information, SIGIR "
        "2004, as trec_eval 9 computes it",
        divisor=Divisor("count_relevant", "R, the number of relevant items"),
        cutoff="none",
    ),
    row(
        name="unjudged",
        parameters=(),
        kernel="count_misses",
        definition="share of the first k (of all, if there are fewer) that are not judged: 1 - "
        "judged@k",
        better="lower",
        source="MacAvaney, Macdonald and Ounis, Streamlining Evaluation with ir-measures, ECIR "
        "2022",
        divisor=Divisor("count_predictions", "min(k, n)"),
        cutoff="required",
        without_labels="list",
        counts_empty=True,
    ),
    row(
        name="unj",
        parameters=(),
        kernel="count_unjudged",
        definition="unjudged predictions within k / k; a gain below 0 counts as unjudged, an "
        "empty rank of a short list does not",
        better="lower",
        source="Soboroff, trec_eval 10",
        divisor=Divisor("cutoff", "k"),
        cutoff="required",
        cut_names=("unj",),
        gains="levels",
        without_labels="list",
        counts_empty=True,
        undefined=one_order,
    ),
    row(
        name="num_nonrel_judged_ret",
        kernel="count_without_gain",
        definition="the number of predictions that are judged, at a gain of 0 or more, and not "
        "relevant",
        range="0 and up",
        better="lower",
        source="trec_eval 9",
        cutoff="none",
        gains="levels",
        counts_empty=True,
    ),
    row(
        name="infap",
        kernel="inferred_precisions",
        definition="sum over the relevant predictions of (1 + pooled above x (relevant above + "
        "e) / (judged above + 2 e)) / rank, divided by R; e is 0.00001, and items "
        "with a gain below 0 are pooled and not judged",
        source="Yilmaz and Aslam, Estimating Average Precision with Incomplete and Imperfect "
        "Judgments, CIKM 2006, as trec_eval 9 computes it",
        divisor=Divisor("count_relevant", "R, the number of relevant items"),
        cutoff="none",
        gains="levels",
        undefined=one_order,
    ),
    row(
        name="pair_accuracy",
        parameters=(),
        kernel="judged_in_order",
        definition="share of the pairs of judged predictions within k, with gains of 0 or more of "
        "different worth, in which the one worth more is ranked first; 0 without such a pair",
        source="Carterette, Bennett, Chickering and Dumais, Here or There: Preference Judgments "
        "for Relevance, ECIR 2008",
        sees_labels=False,
    ),
)
