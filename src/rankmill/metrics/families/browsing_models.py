"""Metrics that model how far down a list somebody reads: rbp, bpm, insq, inst, nerr8 to nerr11."""

from dataclasses import replace
from functools import partial

from rankmill.metrics.base import REL, MetricSpec, Parameter
from rankmill.metrics.no_value import one_order

MOFFAT = (
    "Moffat and Zobel, Rank-Biased Precision for Measurement of Retrieval Effectiveness, TOIS 2008"
)
PATIENCE = Parameter("p", "the probability of going on to the next prediction", 0.8, low=0, high=1)
EAGER = replace(PATIENCE, default=0.9)
WANTED = Parameter("t", "the gain that a reader wants, in units of max", 1.0, low=0, high=1e9)
FULL = Parameter(
    "max", "the gain that counts as 1, as does any larger gain", 1.0, low=0, high=1e100
)
row = partial(MetricSpec, range="0 to 1")

METRICS = (
    row(
        name="rbp",
        kernel="rank_biased",
        definition="sum of (1 - p) p^(rank - 1) over the hits within k",
        source=MOFFAT,
        parameters=(PATIENCE, REL),
    ),
    row(
        name="rbp_residual",
        kernel="rank_biased_residual",
        definition="the weight (1 - p) p^(rank - 1) of all ranks, to infinity, without a judged "
        "item within k: the most by which rbp could rise",
        better="lower",
        source=MOFFAT,
        parameters=(PATIENCE,),
        needs_judged=True,
        without_labels="list",
        counts_empty=True,
    ),
    row(
        name="graded_rbp",
        kernel="rank_biased_gains",
        definition="sum of (1 - p) p^(rank - 1) gain / max(1, largest gain of a label) over the "
        "hits within k",
        source="Soboroff, trec_eval 10: rbp",
        parameters=(EAGER,),
    ),
    row(
        name="rbp_resid",
        kernel="unjudged_residual",
        definition="the weight (1 - p) p^(rank - 1) of all predictions that are unjudged or have a "
        "gain below 0, and of all ranks after the list; 0 if all predictions are judged",
        better="lower",
        source="Soboroff, trec_eval 10",
        cutoff="none",
        parameters=(EAGER,),
        needs_judged=True,
        gains="levels",
        without_labels="list",
        counts_empty=True,
        undefined=one_order,
    ),
    row(
        name="bpm",
        kernel="until_sated",
        definition="the mean of gain / max over the ranks that are read: up to k, or to the rank "
        "at which they sum to t",
        source="Zhang et al., Evaluating Web Search with a Bejeweled Player Model, SIGIR 2017, as "
        "cwl_eval computes the static model",
        cutoff="required",
        parameters=(WANTED, FULL),
        sees_labels=False,
    ),
    row(
        name="insq",
        kernel="inverse_squares",
        definition="mean of gain / max over the first 1,000 ranks, with the weights 1 / (rank - 1 "
        "+ 2 t)^2",
        source="Moffat, Scholer and Thomas, Models and Metrics: IR Evaluation as a User Process, "
        "ADCS 2012, as cwl_eval computes it",
        cutoff="none",
        parameters=(WANTED, FULL),
        sees_labels=False,
    ),
    row(
        name="inst",
        kernel="adaptive_inverse_squares",
        definition="mean of gain / max over the first 1,000 ranks; after rank i the weight is "
        "multiplied by ((i + t + s - 1) / (i + t + s))^2, where s is t without the gains so far",
        source="Moffat, Bailey, Scholer and Thomas, INST: An Adaptive Metric for Information "
        "Retrieval Evaluation, ADCS 2015, as cwl_eval computes it",
        cutoff="none",
        parameters=(WANTED, FULL),
        undefined=one_order,
        sees_labels=False,
    ),
    *(
        row(
            name=name,
            kernel=kernel,
            definition="mean of gain / max over the first 1,000 ranks, with weights "
            f"multiplied after each rank by (1 - gain / max){falls}",
            source="Azzopardi, Mackenzie and Moffat, ERR is not C/W/L, ICTIR 2021, as cwl_eval "
            "computes it",
            cutoff="required" if parameters == (FULL,) else "none",
            parameters=parameters,
            undefined=one_order,
            sees_labels=False,
        )
        for name, kernel, falls, parameters in (
            ("nerr8", "stopped_by_gain", "; up to k", (FULL,)),
            ("nerr9", "stopped_by_rank", " rank / (rank + 1); up to k", (FULL,)),
            ("nerr10", "stopped_by_patience", " p", (EAGER, FULL)),
            (
                "nerr11",
                "stopped_by_want",
                " ((rank + 2 t - 1) / (rank + 2 t))^2",
                (WANTED, FULL),
            ),
        )
    ),
)
