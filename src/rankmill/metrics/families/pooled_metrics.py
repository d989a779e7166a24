"""Metrics over all predictions in one list: gap, which `rankmill.metrics.gap.gap` computes."""

from rankmill.metrics.base import Metric, MetricSpec
from rankmill.semantics.choices import Choices


def cut_ties(metric: Metric, semantics: Choices) -> str:
    """Say why a cutoff has no value under some semantics; "" if it has."""
    if semantics.order == "expected" and metric.k is not None:
        return (
            f"depends on which of equal confidences are among the first {metric.k}: choose another "
            "order than 'expected'"
        )
    return ""


METRICS = (
    MetricSpec(
        name="gap",
        kernel=None,
        definition="sum of P(i) rel(i) over all predictions (each query's first k) by descending "
        "confidence, divided by the number of queries with labels; the expected "
        "value over the orders of ties",
        range="0 to 1 for one label per query",
        source="Perronnin, Liu and Renders, A Family of Contextual Measures of Similarity between "
        "Distributions with Application to Image Retrieval, CVPR 2009",
        fields=("gap_ties", "gap_total"),
        undefined=cut_ties,
        aggregate="gap.gap.Gap",
        jackknife="gap.gap_groups.GapGroups",
    ),
)
