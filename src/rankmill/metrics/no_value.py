"""Where metrics have no value: under some orders of ties, without predictions or labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rankmill.errors import InputError
from rankmill.metrics.base import Metric
from rankmill.semantics.choices import Choices

if TYPE_CHECKING:
    from rankmill.matching.hits import Hits


def one_order(metric: Metric, semantics: Choices) -> str:
    """Refuse the orders of ties whose lowest and highest value is not that of hits at an end."""
    if semantics.order in ("worst", "best"):
        return (
            f"has no known {semantics.order} order of equal confidences: choose another order, "
            "such as item_descending"
        )
    return ""


def settle_empty(values: np.ndarray, hits: Hits, metric: Metric) -> None:
    """Set the values of queries without predictions or labels; NaN where there is none."""
    spec = metric.spec
    if spec.better != "neither":
        values[hits.prediction_counts == 0] = spec.worst
    if spec.without_labels == "refused":
        values[hits.label_counts == 0] = math.nan


def no_value(metric: Metric, source: str, query: str, lacks: str, todo: str) -> InputError:
    """The error of a query that a metric has no value for."""
    return InputError(
        f"{source}: query {query} has {lacks}, and {metric.text} has no value for it: leave out "
        f"{metric.text}, or {todo}"
    )


def skipping(field: str) -> str:
    """What to choose so that the queries that a field of semantics is about are left out."""
    return f"choose --semantics {field}=skip"
