"""Metrics over arrays: labels and predictions as lists of lists, one value a query."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from rankmill.columns.ids import slice_ids, to_ids
from rankmill.columns.ragged import Ragged
from rankmill.errors import InputError, UsageError, plural, positive
from rankmill.kernels.identity import STRING, Ids
from rankmill.matching.gains import canonical_gain_function
from rankmill.matching.hits import match
from rankmill.matching.labels import clean_labels, with_worths
from rankmill.metrics.base import Metric
from rankmill.metrics.registry import REGISTRY
from rankmill.metrics.values import Matched
from rankmill.threads import available_cpus, map_blocks

# Ragged, an Arrow array of lists, or lists of lists of integers or strings.
Lists: TypeAlias = Ragged | Iterable[Iterable[Any]]


def average_precision(labels: Lists, predictions: Lists, k: int | None = None) -> np.ndarray:
    """Average precision of each query's predictions; its mean is MAP@k.

    ``AP@k = sum of P(i) rel(i) for i = 1 .. min(n, k), / min(k, R)``, without a cutoff ``/ R``,
    with P(i) the share of hits among the first i predictions, rel(i) 1 where the i-th is a hit, n
    predictions and R labels. Labels are a set; a repeated prediction counts where it stands first.

    Parameters
    ----------
    labels, predictions : Ragged or list of lists, n lists each
        Item ids, integers or strings on both sides. Predictions stand in rank order. Large lists
        are best held as `Ragged`, which need not be gone through item by item.
    k : int, optional
        The cutoff, 1 or more; all predictions count without one.

    Returns
    -------
    ndarray of float64, shape (n,)
        0 for a query without labels or predictions.

    Raises
    ------
    InputError
        If the numbers of lists differ, or integers meet strings.
    UsageError
        If `k` is not a positive integer, or these are no lists of lists.

    References
    ----------
    E. M. Voorhees and D. K. Harman, "TREC: Experiment and Evaluation in Information Retrieval",
    MIT Press, 2005.

    Examples
    --------
    >>> average_precision([[1, 2], [3]], [[1, 9, 2], [8, 9]], k=3)
    array([0.83333333, 0.        ])
    """
    return _per_query("map", labels, predictions, k)


def first_hit_precision(labels: Lists, predictions: Lists, k: int | None = None) -> np.ndarray:
    """One over the rank of each query's first hit, 0 without one; its mean is MRR@k.

    Parameters, returns and errors are those of `average_precision`.

    References
    ----------
    E. M. Voorhees, "The TREC-8 Question Answering Track Report", 1999.

    Examples
    --------
    >>> labels = Ragged.from_lists([["x"], ["x"]])
    >>> first_hit_precision(labels, Ragged.from_lists([["y", "x"], ["y"]]), k=5)
    array([0.5, 0. ])
    """
    return _per_query("first_hit", labels, predictions, k)


def precision(labels: Lists, predictions: Lists, k: int) -> np.ndarray:
    """Hits among the first k predictions, over k.

    Parameters, returns and errors are those of `average_precision`; k is required.

    Examples
    --------
    >>> precision(Ragged.from_lists([[1, 2]]), Ragged.from_lists([[1, 9, 2]]), k=4)
    array([0.5])
    """
    return _per_query("precision", labels, predictions, k)


def recall(labels: Lists, predictions: Lists, k: int | None = None) -> np.ndarray:
    """Hits among the first k predictions, over the number of labels.

    Parameters, returns and errors are those of `average_precision`.

    Examples
    --------
    >>> recall(Ragged.from_lists([[1, 2]]), Ragged.from_lists([[1, 9, 2]]), k=2)
    array([0.5])
    """
    return _per_query("recall", labels, predictions, k)


def hit(labels: Lists, predictions: Lists, k: int | None = None) -> np.ndarray:
    """1.0 where any of the first k predictions is a label, else 0.0; its mean is the hit rate.

    Parameters, returns and errors are those of `average_precision`.

    Examples
    --------
    >>> hit(Ragged.from_lists([[1], [2]]), Ragged.from_lists([[9, 1], [9]]), k=2)
    array([1., 0.])
    """
    return _per_query("hit", labels, predictions, k)


def f1(labels: Lists, predictions: Lists, k: int) -> np.ndarray:
    """The harmonic mean of precision@k and recall@k: ``2 hits / (k + R)``.

    Parameters, returns and errors are those of `average_precision`; k is required.

    Examples
    --------
    >>> f1(Ragged.from_lists([[1, 2]]), Ragged.from_lists([[1, 9]]), k=2)
    array([0.5])
    """
    return _per_query("f1", labels, predictions, k)


def r_precision(labels: Lists, predictions: Lists) -> np.ndarray:
    """Hits among the first R predictions, over R, the number of the query's labels.

    Parameters, returns and errors are those of `average_precision`; there is no cutoff.

    Examples
    --------
    >>> r_precision(Ragged.from_lists([[1, 2]]), Ragged.from_lists([[1, 9, 2]]))
    array([0.5])
    """
    return _per_query("rprec", labels, predictions, None)


def dcg(
    labels: Lists,
    predictions: Lists,
    k: int | None = None,
    *,
    gain: Lists | None = None,
    gain_function: str = "linear",
) -> np.ndarray:
    """Discounted cumulative gain: the sum of ``gain / log2(rank + 1)`` over the hits within k.

    Parameters
    ----------
    labels, predictions, k
        As for `average_precision`.
    gain : Ragged or list of lists of float, optional
        The gain of each label, lists like those of `labels`; all gains are 1 without it. A label
        whose gain is 0 or less is none; of a repeated label the largest gain counts.
    gain_function : {"linear", "exp"} or a map such as "1=3,2=7"
        What a label of gain g is worth: g, 2**g - 1, or what a map says for every gain.

    Returns
    -------
    ndarray of float64, shape (n,)
        0 for a query without labels or predictions.

    Raises
    ------
    InputError
        Also if the lists of `gain` are not like those of `labels`, or a gain is not finite.
    UsageError
        If `k` is not a positive integer, or `gain_function` is unknown.

    References
    ----------
    K. Järvelin and J. Kekäläinen, "Cumulated Gain-Based Evaluation of IR Techniques", ACM TOIS
    20(4), 2002; C. Burges et al., "Learning to Rank using Gradient Descent", ICML 2005.

    Examples
    --------
    >>> dcg(Ragged.from_lists([[1, 2]]), Ragged.from_lists([[1, 9, 2]]))
    array([1.5])
    """
    return _per_query("dcg", labels, predictions, k, gain, gain_function)


def ndcg(
    labels: Lists,
    predictions: Lists,
    k: int | None = None,
    *,
    gain: Lists | None = None,
    gain_function: str = "linear",
) -> np.ndarray:
    """Normalised discounted cumulative gain: dcg@k over the dcg@k of the best possible list.

    Parameters, returns, errors and sources are those of `dcg`. The ideal list holds the query's
    labels in descending order of gain.

    Examples
    --------
    >>> ndcg(Ragged.from_lists([[1, 2]]), Ragged.from_lists([[1, 9, 2]]), k=2)
    array([0.61314719])
    """
    return _per_query("ndcg", labels, predictions, k, gain, gain_function)


def _per_query(
    name: str,
    labels: Lists,
    predictions: Lists,
    k: int | None,
    gain: Lists | None = None,
    gain_function: str = "linear",
) -> np.ndarray:
    metric = _metric(name, k)
    gain_function = canonical_gain_function(gain_function)
    labels, predictions = _ragged(labels, "labels"), _ragged(predictions, "predictions")
    if len(labels) != len(predictions):
        raise InputError(
            f"{plural(len(labels), 'list')} of labels and {len(predictions)} of predictions; "
            "expected as many, list q of both for query q"
        )
    gain = None if gain is None else _ragged(gain, "gain")
    if gain is not None and not np.array_equal(gain.offsets, labels.offsets):
        raise InputError(
            "the lists of gain are not as long as those of labels; expected one gain a label"
        )
    label_items = _ids(labels, "labels")
    items = _ids(predictions, "predictions")
    if (
        len(label_items.keys)
        and len(items.keys)
        and (label_items.kind == STRING) != (items.kind == STRING)
    ):
        raise InputError(
            f"labels and predictions cannot be compared: {labels!r} against {predictions!r}; "
            "make both integers or both strings"
        )
    label_gains = None if gain is None else _numbers(gain)

    def score(start: int, end: int) -> np.ndarray:
        first, last = labels.offsets[start], labels.offsets[end]
        cleaned, _ = clean_labels(
            labels.offsets[start : end + 1] - first,
            slice_ids(label_items, first, last),
            None if label_gains is None else label_gains[first:last],
        )
        offsets = predictions.offsets[start : end + 1]
        block = slice_ids(items, offsets[0], offsets[-1])
        hits = match(with_worths(cleaned, gain_function), offsets - offsets[0], block, metric.limit)
        return Matched(hits).values(metric)

    blocks = map_blocks(score, len(labels), available_cpus())
    return np.concatenate([np.empty(0, np.float64), *blocks])


def _metric(name: str, k: Any) -> Metric:
    spec = REGISTRY[name]
    if k is None and spec.cutoff != "required":
        return Metric(spec, None, name)
    return Metric(spec, positive(k, "k"), f"{name}@{k}")


def _ragged(lists: Any, what: str) -> Ragged:
    """The lists as Ragged, whatever holds them."""
    if isinstance(lists, Ragged):
        return lists
    expected = f"{what}: expected a Ragged, or a list of lists such as [[1, 2], [3]]"
    if isinstance(lists, pa.Array | pa.ChunkedArray):
        return Ragged.from_arrow(lists)
    if isinstance(lists, str | bytes | Mapping) or not isinstance(lists, Iterable):
        raise UsageError(f"{expected}; found a {type(lists).__name__}")
    taken = list(lists)
    for q, one in enumerate(taken):
        if isinstance(one, str | bytes | Mapping) or not isinstance(one, Iterable):
            raise UsageError(f"{expected}; list {q} is a {type(one).__name__}")
    try:
        return Ragged.from_lists(taken)
    except InputError as error:
        raise InputError(f"{what}: {error}") from None


def _numbers(gain: Ragged) -> np.ndarray:
    if not isinstance(gain.values, np.ndarray):
        raise InputError(f"gain holds {gain.values.type}; expected a number for each label")
    numbers = np.asarray(gain.values, np.float64)
    if not np.isfinite(numbers).all():
        raise InputError("a gain is not finite; expected a number for each label")
    return numbers


def _ids(lists: Ragged, what: str) -> Ids:
    return to_ids(lists.values, f"the Ragged of {what}")
