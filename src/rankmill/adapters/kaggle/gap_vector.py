"""GAP: the average precision of all predictions in one list, sorted by confidence."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankmill.adapters.kaggle.items import comparable, to_column
from rankmill.columns.buffers import floats_of, numbers_of, validity_of
from rankmill.columns.ids import is_text_type
from rankmill.columns.objects import array_of
from rankmill.columns.ragged_lists import checked_arrow, one_chunk
from rankmill.errors import InputError, UsageError
from rankmill.metrics.gap.gap_array import global_average_precision


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
