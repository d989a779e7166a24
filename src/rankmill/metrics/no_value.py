"""Where metrics have no value: under some orders of ties, without predictions or labels."""

from collections.abc import Iterable, Mapping

from rankmill.errors import InputError, spoken
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


def notes_on_values(
    values: Mapping[str, float | None], metrics: Iterable[Metric], semantics: Choices
) -> list[str]:
    """What has to be said of values over all queries: why there is none, or why it is above 1."""
    there = [(one.text, values[one.text], one.spec) for one in metrics if one.text in values]
    notes = [
        f"{name} has no value: {spec.lacks}"
        for name, value, spec in there
        if value is None and spec.lacks
    ]
    high = [
        name
        for name, value, spec in there
        if "gap_total" in spec.fields and spec.better == "higher" and (value or 0) > 1
    ]
    above = (
        f"above 1: {', '.join(high)}, as the divisor is the number of queries with a label, and a "
        "query may have several hits; to divide by all labels, choose --semantics "
        "gap_total=label_pairs"
    )
    return notes + [spoken(above)] * bool(high and semantics.gap_total == "labelled_queries")
