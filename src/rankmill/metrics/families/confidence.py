"""Metrics of all predictions by confidence, besides gap: curves, and how far confidences tell."""

from rankmill.metrics.base import MetricSpec, Parameter
from rankmill.metrics.families.pooled_metrics import cut_ties

# Recall divides by what gap divides by.
_TOTAL = ("gap_total",)
_DAVIS = "Davis and Goadrich, The Relationship Between Precision-Recall and ROC Curves, ICML 2006"
_DISC = "Douze et al., The 2021 Image Similarity Dataset and Challenge, 2021"

MOST_BINS = 1000

METRICS = (
    MetricSpec(
        name="auprc",
        kernel=None,
        definition="the area under the curve of precision over recall, one point per distinct "
        "confidence, joined by straight lines from recall 0 and precision 1",
        range="0 to 1",
        source=f"{_DAVIS}; scikit-learn's auc of precision_recall_curve",
        fields=_TOTAL,
        undefined=cut_ties,
        aliases=("pr_auc",),
        aggregate="gap.curve.Area",
    ),
    MetricSpec(
        name="auprc_step",
        kernel=None,
        definition="the sum over distinct confidences of precision × the recall gained; equal to "
        "gap with gap_ties 'threshold'",
        range="0 to 1",
        source="scikit-learn's average_precision_score",
        fields=_TOTAL,
        undefined=cut_ties,
        aggregate="gap.curve.AreaByStep",
    ),
    MetricSpec(
        name="roc_auc",
        kernel=None,
        definition="share of the pairs of a correct and a wrong prediction, from any queries, in "
        "which the correct one has more confidence; a tied pair counts half",
        range="0 to 1",
        source="Fawcett, An Introduction to ROC Analysis, Pattern Recognition Letters, 2006; "
        "scikit-learn's roc_auc_score",
        undefined=cut_ties,
        aliases=("pooled_auc",),
        aggregate="gap.curve.RocArea",
    ),
    MetricSpec(
        name="recall_at_precision",
        kernel=None,
        definition="the largest recall at any confidence threshold with at least that precision; "
        "0 if there is none",
        range="0 to 1",
        source=_DISC,
        fields=_TOTAL,
        cutoff="none",
        parameters=(
            precision := Parameter("precision", "the least precision", low=0, high=1, closed=True),
        ),
        at=precision,
        aggregate="gap.curve.RecallAtPrecision",
    ),
    MetricSpec(
        name="precision_at_recall",
        kernel=None,
        definition="the largest precision at any confidence threshold with at least that recall; "
        "0 if there is none",
        range="0 to 1",
        source=_DISC,
        fields=_TOTAL,
        cutoff="none",
        parameters=(recall := Parameter("recall", "the least recall", low=0, high=1, closed=True),),
        at=recall,
        aggregate="gap.curve.PrecisionAtRecall",
    ),
    MetricSpec(
        name="best_f1",
        kernel=None,
        definition="the largest 2 P R / (P + R) at any confidence threshold",
        range="0 to 1",
        source="van Rijsbergen, Information Retrieval, 1979",
        fields=_TOTAL,
        undefined=cut_ties,
        aggregate="gap.curve.BestF1",
    ),
    MetricSpec(
        name="best_f1_threshold",
        kernel=None,
        definition="the highest confidence threshold with the largest F1",
        range="that of the confidences",
        better="neither",
        source="van Rijsbergen, Information Retrieval, 1979",
        fields=_TOTAL,
        undefined=cut_ties,
        aggregate="gap.curve.BestThreshold",
    ),
    MetricSpec(
        name="ece",
        kernel=None,
        definition="the mean gap between accuracy and mean confidence over bins of equal width, "
        "weighted by their predictions; a bin includes its upper end",
        range="0 to 1",
        better="lower",
        source="Guo, Pleiss, Sun and Weinberger, On Calibration of Modern Neural Networks, ICML "
        "2017",
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
        undefined=cut_ties,
        aggregate="gap.calibration.Reliability",
    ),
    MetricSpec(
        name="brier",
        kernel=None,
        definition="the mean of (confidence − 1 if correct, else 0)² over predictions",
        range="0 to 1",
        better="lower",
        source="Brier, Verification of Forecasts Expressed in Terms of Probability, Monthly "
        "Weather Review 78, 1950",
        undefined=cut_ties,
        aggregate="gap.calibration.Brier",
    ),
    MetricSpec(
        name="log_loss",
        kernel=None,
        definition="the mean of -ln(confidence) over correct predictions and of -ln(1 - "
        "confidence) over others; 0 and 1 count as 2^-52 and 1 - 2^-52",
        range="0 and up",
        better="lower",
        source="Good, Rational Decisions, JRSS B 14, 1952; scikit-learn's log_loss",
        undefined=cut_ties,
        aliases=("cross_entropy",),
        aggregate="gap.calibration.LogLoss",
    ),
    MetricSpec(
        name="dprime",
        kernel=None,
        definition="the mean confidence of correct predictions − that of wrong ones, divided by "
        "the root of the mean of both variances",
        range="any; 0 if confidences carry no information",
        source="Green and Swets, Signal Detection Theory and Psychophysics, 1966",
        undefined=cut_ties,
        aliases=("d_prime",),
        aggregate="gap.calibration.Separation",
    ),
)
