"""Metrics over arrays: labels and predictions as lists of lists, one value a query."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import floats_of, validity_of
from rankmill.columns.ids import drop_nulls, is_text_type, plain, slice_ids, take_ids, to_ids
from rankmill.columns.lists import drop_values, split_lists
from rankmill.columns.objects import arrow_lists, as_integers
from rankmill.columns.ragged_lists import Ragged, checked_arrow, one_chunk
from rankmill.errors import InputError, UsageError, plural, positive
from rankmill.kernels.hits import mark_repeats
from rankmill.kernels.identity import SEED
from rankmill.matching.hits import match
from rankmill.matching.label_lists import canonical_gain_function, clean_labels, with_worths
from rankmill.metrics.base import Metric
from rankmill.metrics.registry import REGISTRY, parse
from rankmill.metrics.values import Matched
from rankmill.threads import available_cpus, map_blocks

# Ragged, an Arrow array of lists, or lists of lists of integers or strings.
Lists: TypeAlias = Ragged | Iterable[Iterable[Any]]
Items: TypeAlias = tuple[np.ndarray, Any]  # the offsets of lists, and their items in Arrow

# Fewer predictions are scored sooner than threads begin.
WORTH_THREADS = 1 << 16


def average_precision(labels: Lists, predictions: Lists, k: int | None = None) -> np.ndarray:
    """Average precision of each query's predictions; its mean is MAP@k.

    ``AP@k = sum of P(i) rel(i) for i = 1 .. min(n, k), / min(k, R)``, without a cutoff ``/ R``,
    with P(i) the share of hits among the first i predictions, rel(i) 1 where the i-th is a hit, n
    predictions and R labels. Labels are a set; a repeated prediction counts where it stands first.

    Parameters
    ----------
    labels, predictions : Ragged or list of lists, n lists each
        Item ids, integers or strings on both sides, as `evaluate` takes them: a missing item is
        left out, and a missing list is empty. Predictions are in rank order. Use `Ragged` for large
        lists, which is faster because its items are not Python objects.
    k : int, optional
        The cutoff, 1 or more; all predictions count without one.

    Returns
    -------
    ndarray of float64, shape (n,)
        0 for a query without labels or predictions.

    Raises
    ------
    InputError
        If the numbers of lists differ, integers meet strings, or a list holds no ids.
    UsageError
        If `k` is not a positive integer, or these are not lists.

    References
    ----------
    E. M. Voorhees and D. K. Harman, "TREC: Experiment and Evaluation in Information Retrieval",
    MIT Press, 2005.

    Examples
    --------
    >>> from rankmill.arrays import average_precision
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
    >>> from rankmill.arrays import Ragged, first_hit_precision
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
    >>> from rankmill.arrays import Ragged, precision
    >>> precision(Ragged.from_lists([[1, 2]]), Ragged.from_lists([[1, 9, 2]]), k=4)
    array([0.5])
    """
    return _per_query("precision", labels, predictions, k)


def recall(labels: Lists, predictions: Lists, k: int | None = None) -> np.ndarray:
    """Hits among the first k predictions, over the number of labels.

    Parameters, returns and errors are those of `average_precision`.

    Examples
    --------
    >>> from rankmill.arrays import Ragged, recall
    >>> recall(Ragged.from_lists([[1, 2]]), Ragged.from_lists([[1, 9, 2]]), k=2)
    array([0.5])
    """
    return _per_query("recall", labels, predictions, k)


def hit(labels: Lists, predictions: Lists, k: int | None = None) -> np.ndarray:
    """1.0 where any of the first k predictions is a label, else 0.0; its mean is the hit rate.

    Parameters, returns and errors are those of `average_precision`.

    Examples
    --------
    >>> from rankmill.arrays import Ragged, hit
    >>> hit(Ragged.from_lists([[1], [2]]), Ragged.from_lists([[9, 1], [9]]), k=2)
    array([1., 0.])
    """
    return _per_query("hit", labels, predictions, k)


def f1(labels: Lists, predictions: Lists, k: int) -> np.ndarray:
    """The harmonic mean of precision@k and recall@k: ``2 hits / (k + R)``.

    Parameters, returns and errors are those of `average_precision`; k is required.

    Examples
    --------
    >>> from rankmill.arrays import Ragged, f1
    >>> f1(Ragged.from_lists([[1, 2]]), Ragged.from_lists([[1, 9]]), k=2)
    array([0.5])
    """
    return _per_query("f1", labels, predictions, k)


def r_precision(labels: Lists, predictions: Lists) -> np.ndarray:
    """Hits among the first R predictions, over R, the number of the query's labels.

    Parameters, returns and errors are those of `average_precision`; there is no cutoff.

    Examples
    --------
    >>> from rankmill.arrays import Ragged, r_precision
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
    >>> from rankmill.arrays import Ragged, dcg
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
    """Normalized discounted cumulative gain: dcg@k over the dcg@k of the best possible list.

    Parameters, returns, errors and sources are those of `dcg`. The ideal list holds the query's
    labels in descending order of gain.

    Examples
    --------
    >>> from rankmill.arrays import Ragged, ndcg
    >>> ndcg(Ragged.from_lists([[1, 2]]), Ragged.from_lists([[1, 9, 2]]), k=2)
    array([0.61314719])
    """
    return _per_query("ndcg", labels, predictions, k, gain, gain_function)


def rank_biased_overlap(
    lists: Lists, others: Lists, k: int | None = None, p: float = 0.95
) -> np.ndarray:
    """How much two ranked lists of each query agree, the first ranks most.

    The sum over depths d, up to the longer list or `k`, of ``p^(d - 1)`` times the share of d that
    the first d items of both have in common, over the sum of ``p^(d - 1)``: 1 for equal lists, 0
    for lists without a common item. The metric "rbo" is the same, with one side as labels.

    Parameters
    ----------
    lists, others : lists
        Two ranked lists for each query, as the predictions of `average_precision`; which is which
        makes no difference. A repeat of an item is left out.
    k : int, optional
        The last depth.
    p : float
        How much less each depth counts than that before, above 0 and below 1.

    Returns
    -------
    float64[number of queries]

    Raises
    ------
    InputError, UsageError
        As for `average_precision`.

    References
    ----------
    Webber, Moffat and Zobel, A Similarity Measure for Indefinite Rankings, TOIS 2010, for finite
    lists.

    Examples
    --------
    >>> from rankmill.arrays import rank_biased_overlap
    >>> rank_biased_overlap([[1, 2, 3]], [[2, 1, 3]], p=0.5).round(4)
    array([0.4286])
    """
    return _similarity(f"rbo(p={p})", lists, others, k)


def kendall_tau(lists: Lists, others: Lists, k: int | None = None) -> np.ndarray:
    """Kendall's rank correlation of two ranked lists of each query, over the items of both.

    The pairs of common items in the same order in both, minus the other pairs, over all pairs; 0
    without a pair, and -1 if the list of `others` is empty, as in `evaluate`. `k` cuts `others`
    alone. The metric "kendall_tau" is the same, with `lists` as labels. Parameters, returns and
    errors are otherwise those of `rank_biased_overlap`.

    Examples
    --------
    >>> from rankmill.arrays import kendall_tau
    >>> kendall_tau([[1, 2, 3, 9]], [[2, 1, 3]]).round(4)
    array([0.3333])
    """
    return _similarity("kendall_tau", lists, others, k)


def _similarity(name: str, lists: Lists, others: Lists, k: int | None) -> np.ndarray:
    """A metric of two lists: one side are labels, whose gains fall from rank to rank."""
    metric = parse(name if k is None else f"{name}@{positive(k, 'k')}")
    wanted, found = (_split(one, name, sets=False) for one in (lists, others))
    ends = np.repeat(wanted[0][1:], np.diff(wanted[0]))
    gains = (ends - np.arange(len(ends))).astype(np.float64)
    return values_of(metric, wanted, found, ("one side", "the other"), gains, distinct=True)


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
    wanted = _split(labels, "labels", sets=gain is None)
    found = _split(predictions, "predictions", sets=False)
    gains = None if gain is None else _gains(gain, wanted[0])
    return values_of(metric, wanted, found, ("labels", "predictions"), gains, gain_function)


def values_of(
    metric: Metric,
    labels: Items,
    predictions: Items,
    names: tuple[str, str],
    gains: np.ndarray | None = None,
    gain_function: str = "linear",
    *,
    repeats: bool = False,
    distinct: bool = False,
) -> np.ndarray:
    """The value of each query: with `repeats` of labels, with only `distinct` predictions."""
    (label_offsets, wanted), (offsets, found) = labels, predictions
    if len(label_offsets) != len(offsets):
        raise InputError(
            f"{plural(len(label_offsets) - 1, 'list')} of {names[0]} and {len(offsets) - 1} of "
            f"{names[1]}; expected the same number, list q of both for query q"
        )
    if wanted.null_count:  # a missing item is not a label
        keep = validity_of(wanted)
        label_offsets, wanted = drop_values(label_offsets, keep), drop_nulls(wanted)
        gains = None if gains is None else gains[keep]
    if found.null_count:
        offsets, found = drop_values(offsets, validity_of(found)), drop_nulls(found)
    if gains is not None and not np.isfinite(gains).all():
        raise InputError(
            f"a gain is {gains[~np.isfinite(gains)][0]}; expected a finite number for each label"
        )
    if len(wanted) and len(found) and is_text_type(wanted.type) != is_text_type(found.type):
        raise InputError(
            f"labels are {wanted.type} and predictions {found.type}, so none could match; make "
            "both integers or both strings"
        )
    label_ids, ids = to_ids(wanted, names[0]), to_ids(found, names[1])
    repeat = np.empty(len(ids.keys), np.bool_)
    if distinct and mark_repeats(offsets, ids, SEED, repeat):
        offsets, ids = drop_values(offsets, ~repeat), take_ids(ids, np.flatnonzero(~repeat))

    def score(start: int, end: int) -> np.ndarray:
        first, last = label_offsets[start], label_offsets[end]
        given = label_offsets[start : end + 1] - first
        some_gains = None if gains is None else gains[first:last]
        cleaned, _ = clean_labels(given, slice_ids(label_ids, first, last), some_gains)
        inner = offsets[start : end + 1]
        block = slice_ids(ids, inner[0], inner[-1])
        worths = with_worths(cleaned, gain_function)
        hits = match(worths, inner - inner[0], block, metric.limit, needs_repeats=False)
        if repeats:
            hits = hits._replace(label_counts=np.diff(given))
        return Matched(hits).values(metric)

    threads = available_cpus() if len(found) >= WORTH_THREADS else 1
    return np.concatenate([np.empty(0, np.float64), *map_blocks(score, len(offsets) - 1, threads)])


def _metric(name: str, k: Any) -> Metric:
    spec = REGISTRY[name]
    if k is None and spec.cutoff != "required":
        return Metric(spec, None, name)
    return Metric(spec, positive(k, "k"), f"{name}@{k}")


def _split(lists: Any, what: str, *, sets: bool = True, ids: bool = True) -> Items:
    """The offsets and the Arrow values of lists, whatever holds them."""
    if isinstance(lists, Ragged):
        return split_lists(lists.to_arrow())
    if isinstance(lists, pa.Array | pa.ChunkedArray):
        offsets, values = split_lists(checked_arrow(one_chunk(lists)))
        return offsets, plain(values, what)
    if isinstance(lists, str | bytes | Mapping) or not isinstance(lists, Iterable):
        raise UsageError(
            f"{what}: expected a Ragged, or a list of lists such as [[1, 2], [3]]; found a "
            f"{type(lists).__name__}"
        )
    offsets, values = arrow_lists(lists, what, sets=sets, from_pandas=ids)
    return offsets, as_integers(values) if ids else values


def _gains(gain: Any, label_offsets: np.ndarray) -> np.ndarray:
    """The gains of the labels; a missing one is NaN."""
    offsets, values = _split(gain, "gain", sets=False, ids=False)
    if not np.array_equal(offsets, label_offsets):
        raise InputError(
            "the lists of gain do not have the same length as those of labels; expected one gain "
            "per label"
        )
    return floats_of(values, "gain").astype(np.float64, copy=False)
