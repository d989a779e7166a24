"""Means over many queries, compiled and on several threads."""

import functools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankmill.columns.buffers import numbers_of, validity_of
from rankmill.columns.ids import drop_nulls, is_text_type, slice_ids, to_ids
from rankmill.columns.lists import drop_values
from rankmill.errors import positive
from rankmill.kaggle.items import PER_IMAGE, comparable, to_column, to_lists
from rankmill.matching.hits import match
from rankmill.matching.labels import clean_labels
from rankmill.metrics.arrays import check_lists
from rankmill.metrics.base import Metric
from rankmill.metrics.mean import Mean
from rankmill.metrics.registry import REGISTRY
from rankmill.metrics.values import Matched
from rankmill.threads import available_cpus, map_blocks


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
        If the numbers of lists differ (the original stops at the end of the shorter one), the
        arguments are no lists of hashable items, or one holds integers and the other strings.
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


def _mean(
    name: str,
    k: int,
    labels: tuple[np.ndarray, Any],
    predictions: tuple[np.ndarray, Any],
    names: tuple[str, str],
) -> float:
    """Return the mean of a metric over queries, from offsets and columns of items."""
    (label_offsets, wanted), (offsets, found) = labels, predictions
    count = len(offsets) - 1
    check_lists(label_offsets, offsets, names)
    if not count:
        return math.nan
    wanted, found = comparable(wanted, found)
    if wanted.null_count:
        label_offsets = drop_values(label_offsets, validity_of(wanted))
        wanted = drop_nulls(wanted)
    if found.null_count:
        found = found.fill_null(_not_among(wanted, found.type))
    label_ids, ids = to_ids(wanted, names[0]), to_ids(found, names[1])

    metric = Metric(REGISTRY[name], k, f"{name}@{k}")

    def score(start: int, end: int) -> Mean:
        inner = label_offsets[start : end + 1] - label_offsets[start]
        block = slice_ids(label_ids, label_offsets[start], label_offsets[end])
        cleaned, _ = clean_labels(inner, block, None)
        items = slice_ids(ids, offsets[start], offsets[end])
        hits = match(cleaned, offsets[start : end + 1] - offsets[start], items, k)
        given = hits._replace(label_counts=np.diff(inner))  # repeated labels count in the divisor
        return Mean.of(Matched(given).values(metric))

    states = map_blocks(score, count, available_cpus())
    mean = functools.reduce(Mean.merge, states).mean
    assert mean is not None  # as there is at least one query
    return mean


def _not_among(labels: Any, kind: Any) -> Any:
    """Return an item that equals no label. It replaces missing predictions, to keep their rank."""
    text = is_text_type(kind)
    numbers = numbers_of(pc.binary_length(labels) if text else labels)
    free = int(np.setdiff1d(np.arange(len(numbers) + 1), numbers)[0])
    return pa.scalar("-" * free if text else free, kind)  # no label has this length or value
