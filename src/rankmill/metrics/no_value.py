"""Where metrics have no value: under some orders of ties, without predictions or labels."""

from rankmill.errors import InputError
from rankmill.metrics.base import Metric
from rankmill.semantics.choices import Choices


def one_order(metric: Metric, semantics: Choices) -> str:
    """Refuse the orders of ties whose lowest and highest value is not that of hits at an end."""
    if semantics.order in ("worst", "best"):
        return (
            f"has no known {semantics.order} order of equal confidences: choose another order, "
            "such as item_descending"
        )
    return ""


def no_value(metric: Metric, source: str, query: str, lacks: str, todo: str) -> InputError:
    """The error of a query that a metric has no value for."""
    return InputError(
        f"{source}: query {query} has {lacks}, and {metric.text} has no value for it: leave out "
        f"{metric.text}, or {todo}"
    )


def skipping(field: str) -> str:
    """What to choose so that the queries that a field of semantics is about are left out."""
    return f"choose --semantics {field}=skip"
