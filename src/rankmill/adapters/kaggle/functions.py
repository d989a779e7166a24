"""The functions of notebooks: for one query in plain Python, for many compiled and on threads."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankmill.adapters.kaggle.items import PER_IMAGE, comparable, to_column, to_lists
from rankmill.columns.buffers import numbers_of
from rankmill.columns.ids import drop_nulls, is_text_type
from rankmill.columns.objects import is_missing, list_of
from rankmill.errors import InputError, positive
from rankmill.metrics.aggregates.mean import Mean
from rankmill.metrics.arrays import Items, values_of
from rankmill.metrics.base import Metric
from rankmill.metrics.registry import REGISTRY


def apk(actual: Any, predicted: Any, k: int = 10) -> float:
    """Average precision at k of one list of predictions.

    The value is the sum of ``P(i) rel(i)`` for i = 1 .. min(n, k), over ``min(k, R)``. P(i) is the
    share of hits among the first i predictions, and rel(i) is 1 if the i-th is a hit, else 0. n is
    the number of predictions and R is the number of labels. As in the original, R counts a label
    twice if `actual` has it twice, although it can be hit only once. Give a set to avoid this.

    Parameters
    ----------
    actual : list of items
        The labels, in any order.
    predicted : list of items
        The predictions, in rank order.
    k : int
        The cutoff, 1 or more.

    Returns
    -------
    float
        AP at k; 0.0 without labels or predictions.

    Raises
    ------
    InputError
        If one of the two is not a list of hashable items.
    UsageError
        If `k` is not a positive integer.

    References
    ----------
    B. Hamner, "Metrics", https://github.com/benhamner/Metrics.

    Examples
    --------
    >>> apk(["a", "b"], ["a", "x", "b"], k=3)
    0.8333333333333333
    """
    return _average_precision(actual, predicted, k, ("actual", "predicted"))


def map_per_image(label: Any, predictions: Any) -> float:
    """One over the rank of an image's label among its first 5 predictions, or 0 if it is not there.

    Parameters
    ----------
    label : item
        The only right answer; a missing label is never found.
    predictions : list of items
        The predictions, in rank order.

    Raises
    ------
    InputError
        If `predictions` is not a list of items, or `label` is a list.

    Examples
    --------
    >>> map_per_image("x", ["y", "x", "x"])
    0.5
    """
    _, ranks = _hits([label], predictions, PER_IMAGE, ("label", "predictions"))
    return 1 / ranks[0] if ranks else 0.0


def precision_at_k(y_true: Any, y_pred: Any, k: int = 12) -> float:
    """Distinct hits among the first k predictions of one list, over k.

    The divisor is k even if the list is shorter. Parameters, returned value and errors are those of
    `average_precision_at_k`.

    Examples
    --------
    >>> precision_at_k(["a", "b"], ["a", "x", "b"], k=2)
    0.5
    """
    k = positive(k, "k")
    _, ranks = _hits(y_true, y_pred, k, ("y_true", "y_pred"))
    return len(ranks) / k


def rel_at_k(y_true: Any, y_pred: Any, k: int = 12) -> int:
    """Return 1 if the prediction at rank k is right, else 0.

    The notebook's function returns 1 for a repeat too, although its precision does not count the
    repeat, and it fails after the end of the list. Here both cases give 0.

    Parameters and errors are those of `average_precision_at_k`.

    Examples
    --------
    >>> rel_at_k(["a", "b"], ["a", "x", "b"], k=2)
    0
    """
    k = positive(k, "k")
    _, ranks = _hits(y_true, y_pred, k, ("y_true", "y_pred"))
    return int(k in ranks[-1:])


def average_precision_at_k(y_true: Any, y_pred: Any, k: int = 12) -> float:
    """Average precision at k of one list: the sum of ``P(i) rel(i)`` up to k, over ``min(k, R)``.

    P is `precision_at_k`, rel is `rel_at_k`, and R is the number of labels. The value is that of
    `apk` with another default for k. In the notebook's function a repeat adds to the sum, which can
    exceed 1; it also fails if fewer than k items are predicted or there are no labels.

    Parameters
    ----------
    y_true : list of items
        The labels, in any order.
    y_pred : list of items
        The predictions, in rank order.
    k : int
        The cutoff, 1 or more.

    Returns
    -------
    float
        AP at k; 0.0 without labels or predictions.

    Raises
    ------
    InputError
        If one of the two is not a list of hashable items.
    UsageError
        If `k` is not a positive integer.

    Examples
    --------
    >>> average_precision_at_k(["a", "b"], ["a", "x", "b"])
    0.8333333333333333
    """
    return _average_precision(y_true, y_pred, k, ("y_true", "y_pred"))


def recall(gold: Any, retrieved: Any) -> float:
    """Distinct hits of one list, over the number of labels.

    The notebook's function counts each repeat of a hit again, so its value can exceed 1, and it
    fails without labels.

    Parameters
    ----------
    gold, retrieved : list of items
        The labels, and the predictions.

    Returns
    -------
    float
        Recall; 0.0 without labels.

    Raises
    ------
    InputError
        If one of the two is not a list of hashable items.

    Examples
    --------
    >>> recall([1, 2], [0, 0, 0, 2])
    0.5
    """
    if isinstance(retrieved, set | frozenset):
        retrieved = list(retrieved)  # a set is allowed, because ranks do not matter here
    labels, ranks = _hits(gold, retrieved, None, ("gold", "retrieved"))
    return _share(len(ranks), len(labels))


def average_precision(gold: Any, retrieved: Any, verbose: bool = False) -> float:
    """Average precision of one list without a cutoff: the sum of ``P(i) rel(i)``, over R.

    The notebook's function counts each repeat of a hit again, so its value can exceed 1, and it
    fails without labels.

    Parameters
    ----------
    gold : list of items
        The labels, in any order.
    retrieved : list of items
        The predictions, in rank order.
    verbose : bool
        Whether to print the precision at each hit and the final division.

    Returns
    -------
    float
        AP; 0.0 without labels.

    Raises
    ------
    InputError
        If one of the two is not a list of hashable items.

    Examples
    --------
    >>> average_precision([1, 2], [0, 1, 0, 2], verbose=True)
    Precision at rank 2 = 0.5 | Sum so far = 0.5
    Precision at rank 4 = 0.5 | Sum so far = 1.0
    1.0 / 2
    0.5
    """
    labels, ranks = _hits(gold, retrieved, None, ("gold", "retrieved"))
    total: float = 0  # an int, because notebooks print 0 if no prediction is right
    for count, rank in enumerate(ranks, start=1):
        total += count / rank
        if verbose:
            print(f"Precision at rank {rank} = {count / rank} | Sum so far = {total}")
    if verbose:
        print(total, "/", len(labels))
    return _share(total, len(labels))


def _hits(
    labels: Any, predictions: Any, k: int | None, names: tuple[str, str]
) -> tuple[list[Any], list[int]]:
    """Return the labels that are not missing, and the ranks of the first k predictions' hits."""
    items = list_of(predictions, names[1])[:k]
    wanted, ranks = list_of(labels, names[0], sets=True), []
    try:
        if not set(map(type, wanted)) <= {int, str}:
            wanted = [item for item in wanted if not is_missing(item)]
        missed = set(wanted)
        for rank, item in enumerate(items, start=1):
            if item in missed:
                missed.remove(item)
                ranks.append(rank)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"an item of {names[0]} or {names[1]} cannot be compared: {error}; expected integers, "
            "strings or other hashable items"
        ) from None
    return wanted, ranks


def _average_precision(labels: Any, predictions: Any, k: Any, names: tuple[str, str]) -> float:
    k = positive(k, "k")
    wanted, ranks = _hits(labels, predictions, k, names)
    total = 0.0
    for count, rank in enumerate(ranks, start=1):
        total += count / rank  # `sum` rounds otherwise from Python 3.12 on, and kernels do not
    return _share(total, min(len(wanted), k))


def _share(part: float, of: int) -> float:
    return part / of if of else 0.0


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
