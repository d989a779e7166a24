"""Where metrics have no value: under some orders of ties, without predictions or labels."""

from rankmill.metrics.base import Metric
from rankmill.semantics.choices import Semantics

# `never_scored` of a metric that is better the lower it is: 0 would be the best of all values.
LOWER_IS_BETTER = ("unpredicted", "unlabelled", "no_relevant")


def one_order(metric: Metric, semantics: Semantics) -> str:
    """Refuse the orders of ties whose lowest and highest value is not that of hits at an end."""
    if semantics.order in ("worst", "best"):
        return (
            f"has no known {semantics.order} order of equal confidences: choose another order, "
            "such as item_descending"
        )
    return ""
