"""Metrics of a whole list, as a set: counts, set_p, set_f, set_map, set_relative_p, utility."""

from functools import partial

from rankmill.metrics.base import REL, Divisor, MetricSpec, Parameter
from rankmill.metrics.families.precision import BETA

TREC_EVAL = "trec_eval 9"
RIJSBERGEN = "van Rijsbergen, Information Retrieval, 1979, chapter 7"
row = partial(MetricSpec, range="0 to 1", cutoff="none", parameters=(REL,))

METRICS = (
    row(
        name="num_ret",
        parameters=(),
        kernel="count_predictions",
        definition="the number of predictions",
        range="0 and up",
        better="neither",
        source=TREC_EVAL,
        cutoff="none",
        counts_empty=True,
    ),
    row(
        name="num_rel",
        kernel="count_labels",
        definition="R, the number of labels",
        range="0 and up",
        better="neither",
        source=TREC_EVAL,
        counts_empty=True,
    ),
    row(
        name="num_rel_ret",
        kernel="count_hits",
        definition="the number of hits",
        range="0 and up",
        source=TREC_EVAL,
    ),
    row(
        name="set_p",
        kernel="count_hits",
        definition="hits / n, the precision of the whole list",
        source=RIJSBERGEN,
        divisor=Divisor("count_predictions", "n, the number of predictions"),
        aliases=("SetP",),
    ),
    row(
        name="set_f",
        kernel="count_hits_for",
        definition="(1 + beta^2) P r / (beta^2 P + r), of the precision P and the recall r of the "
        "whole list",
        source=RIJSBERGEN,
        divisor=Divisor("labels_and_predictions", "(beta^2 R + n) / (1 + beta^2)"),
        parameters=(BETA, REL),
        aliases=("SetF",),
    ),
    row(
        name="set_map",
        kernel="square_hits",
        definition="precision times recall of the whole list: hits^2 / (R n)",
        source=TREC_EVAL,
        divisor=Divisor("labels_times_predictions", "R n"),
        aliases=("SetAP",),
    ),
    row(
        name="set_relative_p",
        kernel="count_hits",
        definition="hits / min(R, n), the precision of the whole list over the best possible",
        source=TREC_EVAL,
        divisor=Divisor("labels_or_predictions", "min(R, n)"),
        aliases=("SetRelP",),
    ),
    row(
        name="utility",
        kernel="utility",
        definition="a hits + b misses + c labels that are not found",
        range="any number",
        source="Lewis, The TREC-4 Filtering Track, 1995, as trec_eval 9 computes it",
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
