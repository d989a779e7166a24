"""The functions of notebooks: for one query in plain Python, for many compiled and on threads.

Objects become Arrow by the one way of `columns/objects.py`. What a notebook's ``==`` compares and
ids are not (floats, booleans, tuples, integers beside strings, ...) stays a list of Python objects
until ``comparable`` numbers them.
"""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from rankmill.columns.buffers import floats_of, numbers_of, validity_of
from rankmill.columns.ids import drop_nulls, is_text_type, plain
from rankmill.columns.lists import offsets_of, split_lists
from rankmill.columns.objects import (
    array_of,
    as_integers,
    cells_of,
    is_missing,
    join_cells,
    known_array,
    list_of,
)
from rankmill.columns.ragged_lists import Ragged, checked_arrow, one_chunk
from rankmill.errors import InputError, UsageError, positive
from rankmill.metrics.aggregates.mean import Mean
from rankmill.metrics.arrays import Items, values_of
from rankmill.metrics.base import Metric
from rankmill.metrics.gap.gap_array import global_average_precision
from rankmill.metrics.registry import REGISTRY

# ------------------------------------------------------------------ items and lists of items

PER_IMAGE = 5  # the number of predictions that count for an image


def to_column(items: Any, what: str) -> Any:
    """Return items as an Arrow array of integers or strings, with null for a missing one.

    Other items are returned as a list of Python objects; a string or no sequence is an InputError.
    """
    if isinstance(items, pa.Array | pa.ChunkedArray):
        items = checked_arrow(one_chunk(items))
    elif not isinstance(items, np.ndarray) and not hasattr(items, "dtype"):
        items = list_of(items, what)
    found = _as_ids(items, what)
    return list_of(items, what) if found is None else found


def _as_ids(items: Any, what: str) -> Any:
    array = known_array(items)
    if array is None:
        return None
    array = as_integers(plain(array, what))
    kind = array.type
    if kind in (pa.int64(), pa.uint64(), pa.string(), pa.large_string()):
        return array
    if kinds.is_string_view(kind):
        return array.cast(pa.large_string())
    # Integers are widened, because ids are compared as 64 bits.
    return array.cast(pa.int64()) if kinds.is_integer(kind) or kinds.is_null(kind) else None


def to_lists(lists: Any, what: str, limit: int | None = None) -> tuple[np.ndarray, Any]:
    """Return the offsets, int64[n + 1], and the column of all items of n lists.

    A missing list becomes an empty one. With a `limit` the lists must be in rank order, and items
    after the first `limit` may be dropped.
    """
    if isinstance(lists, Ragged):
        return lists.offsets, to_column(lists.values, what)
    if isinstance(lists, pa.Array | pa.ChunkedArray):
        offsets, values = split_lists(checked_arrow(one_chunk(lists)))
        return offsets, to_column(values, what)
    cells = cells_of(lists, what)
    lengths, items = join_cells(cells, lambda i: f"{what}[{i}]", limit, sets=limit is None)
    return offsets_of(lengths), to_column(items, what)


def comparable(labels: Any, predictions: Any) -> tuple[Any, Any]:
    """Return two columns as Arrow arrays, both of integers or both of strings.

    If a column holds other items, all items are numbered: equal items get the same number. If one
    holds integers and the other strings, no prediction is a label, so that all are missing ones.
    """
    if isinstance(labels, list) or isinstance(predictions, list):
        numbers: dict[Any, int] = {}
        return _numbered(labels, numbers, "labels"), _numbered(predictions, numbers, "predictions")
    unlike = is_text_type(labels.type) != is_text_type(predictions.type)
    if unlike or predictions.null_count == len(predictions):
        return labels, pa.nulls(len(predictions), labels.type)
    return labels, predictions


def _numbered(column: Any, numbers: dict[Any, int], what: str) -> Any:
    items = column if isinstance(column, list) else column.to_pylist()
    try:
        found = [
            None if is_missing(item) else numbers.setdefault(item, len(numbers)) for item in items
        ]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"an item of {what} cannot be compared ({error}); expected integers, strings or other "
            "hashable items"
        ) from None
    return pa.array(found, pa.int64())


# ------------------------------------------------------------------ the functions


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
    >>> from rankmill.kaggle import apk
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
    >>> from rankmill.kaggle import map_per_image
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
    >>> from rankmill.kaggle import precision_at_k
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
    >>> from rankmill.kaggle import rel_at_k
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
    >>> from rankmill.kaggle import average_precision_at_k
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
    >>> from rankmill.kaggle import recall
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
    >>> from rankmill.kaggle import average_precision
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
    >>> from rankmill.kaggle import mapk
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
    >>> from rankmill.kaggle import map_per_set
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
    >>> from rankmill.kaggle import mean_average_precision
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


# ------------------------------------------------------------------ GAP of one list


def GAP_vector(pred: Any, conf: Any, true: Any, return_x: bool = False) -> Any:  # noqa: N802
    r"""Global average precision (micro-AP) with one prediction for each query.

    .. math:: \mathrm{GAP} = \frac{1}{M} \sum_{i=1}^{N} P(i)\, \mathrm{rel}(i)

    The sum is over all rows by descending confidence. P(i) is the share of correct ones among the
    first i, rel(i) is 1 if the i-th is correct, else 0, and M is the number of rows with a label.
    Equal confidences count with the expected value over all their orders. The notebook's function
    uses the order in which an unstable sort leaves them.

    Parameters
    ----------
    pred, true : N items
        The prediction and the label of each query; None or NaN if one is missing. Two missing
        items are not equal.
    conf : array_like of float, shape (N,)
        Higher is more certain. A missing one (NaN) is sorted after all numbers, also after -inf.
    return_x : bool
        Whether to return the ranked table as well.

    Returns
    -------
    float, or (float, pandas.DataFrame)
        NaN if no row has a label. The table holds pred, conf and true, ranked (equal confidences in
        the order of the input), and correct, prec_k and term. The sum of term over M is the value
        if no ties change it.

    Raises
    ------
    InputError
        If the lengths differ, two Series do not have the same index, or a confidence is not a
        number.
    UsageError
        If a table is requested and pandas is not installed.

    References
    ----------
    F. Perronnin, Y. Liu and J.-M. Renders, "A Family of Contextual Measures of Similarity between
    Distributions with Application to Image Retrieval", CVPR 2009.

    Examples
    --------
    >>> from rankmill.kaggle import GAP_vector
    >>> GAP_vector([1, 2, None], [0.9, 0.8, 0.7], [1, 3, 2])
    0.3333333333333333
    >>> GAP_vector([1, 2], [0.5, 0.5], [1, 3])
    0.375
    """
    columns = {"pred": pred, "conf": conf, "true": true}
    _check_indexes(columns)
    found, wanted = to_column(pred, "pred"), to_column(true, "true")
    confidence = _confidences(conf)
    lengths = [len(found), len(confidence), len(wanted)]
    if len(set(lengths)) > 1:
        raise InputError(
            "pred, conf and true have {}, {} and {} rows; expected the same number".format(*lengths)
        )
    wanted, found = comparable(wanted, found)
    correct = _equal(wanted, found)
    total = len(wanted) - wanted.null_count
    gap = global_average_precision(confidence, correct, total) if total else math.nan
    return (gap, _ranked(columns, correct)) if return_x else gap


def _check_indexes(columns: dict[str, Any]) -> None:
    indexes = {name: one.index for name, one in columns.items() if hasattr(one, "iloc")}
    first = next(iter(indexes), "")
    for name, index in indexes.items():
        if not index.equals(indexes[first]):
            raise InputError(
                f"{first} and {name} are Series of different indexes; expected the same, as rows "
                "belong together by position: align them first, or pass arrays"
            )


def _confidences(conf: Any) -> np.ndarray:
    """Return floats in the order of the confidences; missing ones are below all numbers."""
    if isinstance(conf, pa.Array | pa.ChunkedArray):
        conf = checked_arrow(one_chunk(conf))
    array = array_of(conf, lambda i: f"conf: row {i}")
    try:
        numbers = floats_of(array)
    except InputError as error:
        raise InputError(f"conf: {error}") from None
    if not (len(numbers) and np.isnan(numbers.max())):
        return numbers
    missing = np.isnan(numbers)
    if not np.isneginf(numbers).any():
        return np.where(missing, -np.inf, numbers)
    places = np.searchsorted(np.unique(numbers), numbers)  # ranks, as no float is below -inf
    return np.where(missing, -1.0, places)


def _equal(labels: Any, predictions: Any) -> np.ndarray:
    """Return where two comparable columns hold the same item."""
    if is_text_type(labels.type):
        same = pc.equal(labels.cast(pa.large_string()), predictions.cast(pa.large_string()))
        return validity_of(pc.if_else(same, True, None))
    equal: np.ndarray = numbers_of(labels, null=0) == numbers_of(predictions, null=0)
    for column in (labels, predictions):
        if column.null_count:
            equal &= validity_of(column)
    return equal


def _ranked(columns: dict[str, Any], correct: np.ndarray) -> Any:
    """Return the table that the notebook works with, as a pandas DataFrame."""
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("return_x makes a pandas DataFrame; install pandas first") from None
    arrow = pa.Array | pa.ChunkedArray
    x = pd.DataFrame(
        {name: one.to_pandas() if isinstance(one, arrow) else one for name, one in columns.items()}
    )
    x["correct"] = correct.astype(np.int64)
    x = x.sort_values("conf", ascending=False, na_position="last", kind="stable")
    x["prec_k"] = x["correct"].cumsum() / np.arange(1, len(x) + 1)
    x["term"] = x["prec_k"] * x["correct"]
    return x
