"""Means over many queries, compiled and on several threads."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankmill.adapters.kaggle.items import PER_IMAGE, comparable, to_column, to_lists
from rankmill.columns.buffers import numbers_of
from rankmill.columns.ids import drop_nulls, is_text_type
from rankmill.errors import positive
from rankmill.metrics.aggregates.mean import Mean
from rankmill.metrics.arrays import Items, values_of
from rankmill.metrics.base import Metric
from rankmill.metrics.registry import REGISTRY


def mapk(actual: Any, predicted: Any, k: int = 10) -> float:
    """Mean of `apk` over queries; a query without labels counts with 0.

    Parameters
    ----------
    actual, predicted : n lists of items
        The labels and the predictions of each query.
    k : int
        The cutoff, 1 or more.

    Returns
    -------
    float
        The exact mean, rounded once; NaN without queries.

    Raises
    ------
    InputError
        If the numbers of lists differ (the original stops at the end of the shorter one), or the
        arguments are not lists of hashable items.
    UsageError
        If `k` is not a positive integer.

    Examples
    --------
    >>> mapk([["a", "b"], ["c"]], [["a", "x", "b"], ["x"]], k=3)
    0.41666666666666663
    """
    return _mean_at("map", positive(k, "k"), actual, predicted, ("actual", "predicted"))


def map_per_set(labels: Any, predictions: Any) -> float:
    """Mean of `map_per_image` over images.

    Parameters
    ----------
    labels : n items
        The label of each image.
    predictions : n lists of items
        The predictions of each image, in rank order.

    Returns
    -------
    float
        The exact mean, rounded once; NaN without images.

    Raises
    ------
    InputError
        As for `mapk`.

    Examples
    --------
    >>> map_per_set(["x", "z"], [["x", "y"], ["x", "y", "z"]])
    0.6666666666666666
    """
    column = to_column(labels, "labels")
    each = np.arange(len(column) + 1), column
    names = ("labels", "predictions")
    return _mean("first_hit", PER_IMAGE, each, to_lists(predictions, names[1], PER_IMAGE), names)


def mean_average_precision(y_true: Any, y_pred: Any, k: int = 12) -> float:
    """Mean of `average_precision_at_k` over queries; a query without labels counts with 0.

    Parameters, returned value and errors are those of `mapk`.

    Examples
    --------
    >>> mean_average_precision([[1, 2], [3]], [[1, 9, 2], [9, 9, 3]])
    0.5833333333333333
    """
    return _mean_at("map", positive(k, "k"), y_true, y_pred, ("y_true", "y_pred"))


def _mean_at(name: str, k: int, labels: Any, predictions: Any, names: tuple[str, str]) -> float:
    return _mean(name, k, to_lists(labels, names[0]), to_lists(predictions, names[1], k), names)


def _mean(name: str, k: int, labels: Items, predictions: Items, names: tuple[str, str]) -> float:
    """Return the mean of a metric over queries, from offsets and columns of items."""
    wanted, found = comparable(labels[1], predictions[1])
    if found.null_count:
        found = found.fill_null(_not_among(drop_nulls(wanted), found.type))
    metric = Metric(REGISTRY[name], k, f"{name}@{k}")
    sides = (labels[0], wanted), (predictions[0], found)
    mean = Mean.of(values_of(metric, *sides, names, repeats=True)).mean
    return math.nan if mean is None else mean


def _not_among(labels: Any, kind: Any) -> Any:
    """Return an item that equals no label. It replaces missing predictions, to keep their rank."""
    text = is_text_type(kind)
    numbers = numbers_of(pc.binary_length(labels) if text else labels)
    free = int(np.setdiff1d(np.arange(len(numbers) + 1), numbers)[0])
    return pa.scalar("-" * free if text else free, kind)  # no label has this length or value
