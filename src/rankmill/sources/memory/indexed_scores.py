"""Scores and targets in flat arrays beside the number of their query, as torchmetrics has them."""

from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of
from rankmill.columns.tensors import check_dense, is_tensor, numpy_of
from rankmill.errors import InputError
from rankmill.sources.nouns import Labels, Predictions

EXPECTED = {
    "preds": ("iuf", "numbers"),
    "target": ("biuf", "numbers"),
    "indexes": ("iu", "integers"),
}


def from_indexes(preds: Any, target: Any, indexes: Any) -> tuple[Labels, Predictions]:
    """Make labels and predictions from flat arrays, as in the retrieval metrics of torchmetrics.

    Every place is an item of its own. All of them are judged: a query whose targets are all 0 is
    among the labels without a relevant item, so that the semantics `no_relevant` decide on it.

    Parameters
    ----------
    preds : array_like or torch.Tensor of numbers, any shape
        The score of each item.
    target : array_like or torch.Tensor of bool or numbers, of the same shape
        Its gain: 1 or more if it is relevant, 0 if not.
    indexes : array_like or torch.Tensor of integers, of the same shape
        The query that it belongs to, in any order.

    Returns
    -------
    labels, predictions : Labels, Predictions
        As `evaluate` takes them.

    Raises
    ------
    InputError
        If shapes differ, or an array holds something else.

    Examples
    --------
    >>> import rankmill
    >>> sides = from_indexes([0.2, 0.7, 0.4], [False, False, True], [0, 0, 1])
    >>> rankmill.evaluate(*sides, "first_hit", semantics={"no_relevant": "zero"})["first_hit"]
    0.5
    """
    check_flat(preds, target, indexes)
    flat = [np.asarray(numpy_of(one)).ravel() for one in (preds, target, indexes)]
    scores, gains, queries = (
        arrow_of(one.astype(np.uint8) if one.dtype.kind == "b" else one) for one in flat
    )
    both = {"query": queries, "item": arrow_of(np.arange(len(queries)))}
    return Labels(pa.table({**both, "gain": gains})), Predictions(
        pa.table({**both, "score": scores})
    )


def check_flat(preds: Any, target: Any, indexes: Any) -> None:
    """Raise InputError for shapes or dtypes that do not fit; tensors are not copied for it."""
    for name, value in {"preds": preds, "target": target, "indexes": indexes}.items():
        if is_tensor(value):
            check_dense(value)
        some = numpy_of(value.flatten()[:0]) if is_tensor(value) else np.asarray(value)
        kinds, expected = EXPECTED[name]
        if some.dtype.kind not in kinds or some.dtype.itemsize > 8:
            raise InputError(f"{name} holds {some.dtype}; expected {expected}")
        if np.shape(value) != np.shape(preds):
            raise InputError(
                f"{name} has the shape {tuple(np.shape(value))}, and preds "
                f"{tuple(np.shape(preds))}; expected the same of preds, target and indexes"
            )
