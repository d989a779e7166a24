"""The best items of each query, by a matrix of scores."""

from typing import Any

import numpy as np

from rankmill.columns.lists import offsets_of
from rankmill.columns.matrix import Matrix
from rankmill.columns.ragged_lists import Ragged
from rankmill.columns.tensors import is_sparse
from rankmill.errors import InputError, UsageError, plural, positive
from rankmill.package import GONE
from rankmill.sources.memory.matrices import (
    NO_SEEN,
    best_of,
    cells_of,
    floats_of_rows,
    rows_of,
    sparse_cells,
)
from rankmill.sources.nouns import Predictions
from rankmill.threads import Workers


def top_k(
    scores: Any, k: int, *, items: None = None, seen: Any = None, threads: int | None = None
) -> Predictions:
    """Rank the k items with the highest scores for each query, as predictions for `evaluate`.

    Equal scores keep the order of the items, lowest number first.

    Parameters
    ----------
    scores : array_like or torch.Tensor, shape (n, items)
        The score of each item, as `rankmill.arrays.Matrix` takes it.
    k : int
        How many items a list has at most: 1 to the number of items.
    items : None
        Vectors of items are no longer taken: `scores` are their products with those of the queries.
    seen : sparse array, Matrix, Ragged or list of lists, n rows, optional
        The items that each query had before, which are left out; a list may become shorter than k.
    threads : int, optional
        The number of threads; by default the number of CPUs.

    Returns
    -------
    Predictions
        Its `data` are a `Ragged` of int64 item numbers, best first, and its `score` a `Ragged` of
        their scores: float64 if the scores are float64 or integers, else float32.

    Raises
    ------
    InputError
        If shapes do not fit, a score is NaN, or an item in `seen` does not exist.
    UsageError
        If `k` is not an integer from 1 to the number of items.

    Examples
    --------
    >>> best = top_k([[0.25, 1.0, 0.5], [0.6, 0.5, 0.5]], 2, seen=[[], [0]])
    >>> best.data.to_lists(), best.score.to_lists()
    ([[1, 2], [1, 2]], [[1.0, 0.5], [0.5, 0.5]])
    >>> import rankmill
    >>> rankmill.evaluate([[2], [1]], best, "map@2")["map@2"]
    0.75
    """
    if items is not None:
        raise UsageError(GONE["items of top_k"])
    given = Matrix.of(scores)
    rows, width = given.shape
    if positive(k, "k") > width:
        raise UsageError(f"k is {k}, but there are {plural(width, 'item')}: choose a smaller k")
    hidden = None if seen is None else _seen_of(seen, rows, width)
    step = rows_of(width)

    def best(start: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        end = min(start + step, rows)
        some = NO_SEEN
        if hidden is not None:
            first = hidden.offsets[start]
            some = hidden.offsets[start : end + 1] - first, hidden.values[first:]
        return best_of(floats_of_rows(given, start, end), k, "top_k", start, some)[:3]

    with Workers(threads) as workers:
        blocks = list(workers.map(best, range(0, rows, step))) or [best(0)]
    ends, found, numbers = zip(*blocks, strict=True)
    listed = offsets_of(np.concatenate([np.diff(one) for one in ends]))
    lists = [Ragged(listed, np.concatenate(values)) for values in (found, numbers)]
    return Predictions(lists[0], score=lists[1])


def _seen_of(seen: Any, rows: int, width: int) -> Ragged:
    """The items that each query had before, each of which is a column."""
    if hasattr(seen, "tocsr") or is_sparse(seen):
        lists = Ragged(*sparse_cells(seen, "seen")[:2])
    elif isinstance(seen, Matrix):
        lists = Ragged(*cells_of(seen)[:2])
    else:
        lists = seen if isinstance(seen, Ragged) else Ragged.from_lists(seen)
    values = lists.values
    if len(lists) != rows:
        raise InputError(
            f"seen has {plural(len(lists), 'row')}, and there are {rows} queries; expected the "
            "same number"
        )
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu":
        raise InputError(f"seen holds {lists!r}; expected the numbers of items")
    bad = (values < 0) | (values >= width)
    if bad.any():
        place = int(bad.argmax())
        row = int(np.searchsorted(lists.offsets, place, side="right")) - 1
        raise InputError(
            f"seen has the item {values[place]} in row {row}; expected items from 0 to {width - 1}"
        )
    return Ragged(lists.offsets, values.astype(np.int64, copy=False))
