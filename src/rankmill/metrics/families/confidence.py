"""Metrics of all predictions by confidence: gap, curves, and how far confidences tell."""

from functools import partial

from rankmill.metrics.base import Metric, MetricSpec, Parameter
from rankmill.semantics.choices import Choices

# Recall divides by what gap divides by.
_TOTAL = ("gap_total",)
_DAVIS = "Davis and Goadrich, The Relationship Between Precision-Recall and ROC Curves, ICML 2006"
_DISC = "Douze et al., The 2021 Image Similarity Dataset and Challenge, 2021"

MOST_BINS = 1000


def cut_ties(metric: Metric, semantics: Choices) -> str:
    """Say why a cutoff has no value under some semantics; "" if it has."""
    if semantics.order == "expected" and metric.k is not None:
        return (
            f"depends on which of equal confidences are among the first {metric.k}: choose another "
            "order than 'expected'"
        )
    return ""


row = partial(MetricSpec, kernel=None, range="0 to 1", undefined=cut_ties)

METRICS = (
    row(
        name="gap",
        definition="sum of P(i) rel(i) over all predictions (each query's first k) by descending "
        "confidence, divided by the number of queries with labels; the expected "
        "value over the orders of ties",
        range="0 to 1 for one label per query",
        source="Perronnin, Liu and Renders, A Family of Contextual Measures of Similarity between "
        "Distributions with Application to Image Retrieval, CVPR 2009",
        fields=("gap_ties", "gap_total"),
        aggregate="gap.gap.Gap",
    ),
    row(
        name="auprc",
        definition="the area under the curve of precision over recall, one point per distinct "
        "confidence, joined by straight lines from recall 0 and precision 1",
        source=f"{_DAVIS}; scikit-learn's auc of precision_recall_curve",
        fields=_TOTAL,
        aliases=("pr_auc",),
        aggregate="gap.curve.Area",
    ),
    row(
        name="auprc_step",
        definition="the sum over distinct confidences of precision × the recall gained; equal to "
        "gap with gap_ties 'threshold'",
        source="scikit-learn's average_precision_score",
        fields=_TOTAL,
        aggregate="gap.curve.AreaByStep",
    ),
    row(
        name="roc_auc",
        definition="share of the pairs of a correct and a wrong prediction, from any queries, in "
        "which the correct one has more confidence; a tied pair counts half",
        source="Fawcett, An Introduction to ROC Analysis, Pattern Recognition Letters, 2006; "
        "scikit-learn's roc_auc_score",
        aliases=("pooled_auc",),
        lacks="it takes a correct and a wrong prediction",
        aggregate="gap.curve.RocArea",
    ),
    row(
        name="recall_at_precision",
        undefined=None,
        definition="the largest recall at any confidence threshold with at least that precision; "
        "0 if there is none",
        source=_DISC,
        fields=_TOTAL,
        cutoff="none",
        parameters=(
            precision := Parameter("precision", "the least precision", low=0, high=1, closed=True),
        ),
        at=precision,
        aggregate="gap.curve.RecallAtPrecision",
    ),
    row(
        name="precision_at_recall",
        undefined=None,
        definition="the largest precision at any confidence threshold with at least that recall; "
        "0 if there is none",
        source=_DISC,
        fields=_TOTAL,
        cutoff="none",
        parameters=(recall := Parameter("recall", "the least recall", low=0, high=1, closed=True),),
        at=recall,
        aggregate="gap.curve.PrecisionAtRecall",
    ),
    row(
        name="best_f1",
        definition="the largest 2 P R / (P + R) at any confidence threshold",
        source="van Rijsbergen, Information Retrieval, 1979",
        fields=_TOTAL,
        aggregate="gap.curve.BestF1",
    ),
    row(
        name="best_f1_threshold",
        definition="the highest confidence threshold with the largest F1",
        range="that of the confidences",
        better="neither",
        source="van Rijsbergen, Information Retrieval, 1979",
        fields=_TOTAL,
        lacks="no prediction is correct, or F1 is largest at an infinite confidence",
        aggregate="gap.curve.BestThreshold",
    ),
    row(
        name="ece",
        definition="the mean gap between accuracy and mean confidence over bins of equal width, "
        "weighted by their predictions; a bin includes its upper end",
        better="lower",
        source="Guo, Pleiss, Sun and Weinberger, On Calibration of Modern Neural Networks, ICML "
        "2017; BinaryCalibrationError of TorchMetrics, whose bins include their lower end, with "
        "one more for 1",
        parameters=(
            Parameter(
                "bins",
                "the number of bins of confidence",
                default=15,
                low=0,
                high=MOST_BINS + 1,
                kind=int,
            ),
        ),
        lacks="there are no predictions",
        aggregate="gap.calibration.Reliability",
    ),
    row(
        name="brier",
        definition="the mean of (confidence − 1 if correct, else 0)² over predictions",
        better="lower",
        source="Brier, Verification of Forecasts Expressed in Terms of Probability, Monthly "
        "Weather Review 78, 1950",
        lacks="there are no predictions",
        aggregate="gap.calibration.Brier",
    ),
    row(
        name="log_loss",
        definition="the mean of -ln(confidence) over correct predictions and of -ln(1 - "
        "confidence) over others; 0 and 1 count as 2^-52 and 1 - 2^-52",
        range="0 and up",
        better="lower",
        source="Good, Rational Decisions, JRSS B 14, 1952; scikit-learn's log_loss",
        aliases=("cross_entropy",),
        lacks="there are no predictions",
        aggregate="gap.calibration.LogLoss",
    ),
    row(
        name="dprime",
        definition="the mean confidence of correct predictions − that of wrong ones, divided by "
        "the root of the mean of both variances",
        range="any; 0 if confidences carry no information",
        source="Green and Swets, Signal Detection Theory and Psychophysics, 1966",
        aliases=("d_prime",),
        lacks="it takes correct and wrong predictions, and confidences of one kind that vary",
        aggregate="gap.calibration.Separation",
    ),
)
