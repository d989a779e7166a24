"""Ragged lists, and matrices with a number for each query and item, as sources of lists."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, floats_of
from rankmill.columns.ids import to_ids
from rankmill.columns.lists import offsets_of, sort_values
from rankmill.columns.matrix import Matrix
from rankmill.columns.objects import check_dense, is_sparse, is_tensor, numpy_of
from rankmill.columns.ragged_lists import Ragged
from rankmill.columns.ranked_lists import Lists, Place
from rankmill.errors import InputError, UsageError, plural, positive
from rankmill.kernels.best import best_items
from rankmill.package import GONE
from rankmill.sources.nouns import Labels, Predictions
from rankmill.sources.roles.source import BATCH_ROWS, BATCH_VALUES, Columns, InputOptions, Source
from rankmill.sources.rows.wide import by_score, numbers_of_lists
from rankmill.threads import Workers

NO_SEEN = np.zeros(0, np.int64), np.zeros(0, np.int64)
# Orders in which equal scores stand as they are given.
AS_GIVEN = "given", "confidence"
IN_FLOAT32 = "item_descending_float32"


def open_ragged(items: Ragged, asked: InputOptions, name: str | None = None) -> Source:
    """Open Ragged items, with optional Ragged numbers for these items, as a source."""
    numbers, number_column = asked.numbers, asked.kind
    name = name or f"the Ragged of {asked.role}"
    sides = {"items": items}
    if numbers is not None:
        if not isinstance(numbers, Ragged) or not np.array_equal(numbers.offsets, items.offsets):
            raise InputError(
                f"{number_column} for Ragged items must be a Ragged with the same offsets, one "
                f"number per item; found {numbers!r} with {items!r}"
            )
        sides[number_column] = numbers
    kinds = {side: pa.large_list(_value_type(one)) for side, one in sides.items()}
    if not len(items.values):  # an input without items can be compared with ids of any type
        kinds["items"] = pa.large_list(pa.null())

    def sizes(columns: list[str]) -> dict[str, tuple[int, int]]:
        whole = {side: (len(one.values), one.values.nbytes) for side, one in sides.items()}
        whole["query"] = len(items), 8 * len(items)
        return {column: whole[column] for column in columns}

    def lists(columns: Columns) -> list[Iterator[Lists]]:
        return [
            _ragged_block(items, numbers, columns, name, *ends)
            for ends in _ragged_blocks(items.offsets)
        ]

    schema = pa.schema({"query": pa.int64(), **kinds})
    whole = {name: schema}
    return Source(name, whole, len(items), sizes, lists=lists, positional=True, bare=True)


def _value_type(one: Ragged) -> Any:
    values = one.values
    return pa.from_numpy_dtype(values.dtype) if isinstance(values, np.ndarray) else values.type


def _ragged_blocks(offsets: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield ranges of lists, each with about BATCH_VALUES values and at most BATCH_ROWS lists."""
    start, count = 0, len(offsets) - 1
    while start < count:
        enough = int(np.searchsorted(offsets, offsets[start] + BATCH_VALUES))
        end = min(max(enough, start + 1), start + BATCH_ROWS, count)
        yield start, end
        start = end


def _ragged_block(
    items: Ragged, numbers: Ragged | None, columns: Columns, name: str, start: int, end: int
) -> Iterator[Lists]:
    """Yield the one block of a piece; a generator, as then the thread that takes it does it."""
    queries = to_ids(np.arange(start, end), name)
    first, last = items.offsets[start], items.offsets[end]
    offsets = items.offsets[start : end + 1] - first
    taken = None
    column = columns.score or columns.gain
    if column is not None and numbers is not None:
        raw = arrow_of(numbers.values[first:last])
        taken = numbers_of_lists(raw, None, offsets, queries, columns, Place(name, start))
    ids = to_ids(items.values[first:last], f"{name}: column {columns.item!r}")
    lists = Lists(queries, offsets, ids, taken, 0, 0, Place(name, start), end - start)
    yield by_score(lists) if columns.unordered else lists


def open_matrix(matrix: Matrix, asked: InputOptions) -> Source:
    """Open a dense matrix: of scores, which rank all items, or of gains."""
    name = f"the Matrix of {asked.role}"
    if asked.role != "predictions":
        return _open_cells(*cells_of(matrix), matrix.shape, asked, name)
    rows, width = matrix.shape
    lists_of = {"items": pa.large_list(pa.int64()), "score": pa.large_list(pa.float64())}
    schema = pa.schema({"query": pa.int64(), **lists_of})

    def sizes(columns: list[str]) -> dict[str, tuple[int, int]]:
        counts = [rows if column == "query" else rows * width for column in columns]
        return {column: (count, 8 * count) for column, count in zip(columns, counts, strict=True)}

    def best(depth: int, order: str) -> Source:
        if order == IN_FLOAT32 and floats_of_rows(matrix, 0, 0).dtype != np.float32:
            depth = width  # rounding makes more scores equal
        tied = order not in AS_GIVEN

        def lists(columns: Columns) -> list[Iterator[Lists]]:
            step = rows_of(width)
            return [
                _block(matrix, columns, name, start, min(start + step, rows), depth, tied)
                for start in range(0, rows, step)
            ]

        return replace(whole, lists=lists)

    more: dict[str, Any] = {"positional": True, "bare": True, "unordered": True}
    whole = Source(name, {name: schema}, rows, sizes, best=best, width=width, **more)
    return best(width, AS_GIVEN[0])


def rows_of(width: int) -> int:
    """How many rows of a matrix make a block."""
    return int(min(BATCH_ROWS, max(1, BATCH_VALUES // max(1, width))))


def _block(
    matrix: Matrix, columns: Columns, name: str, start: int, end: int, depth: int, tied: bool
) -> Iterator[Lists]:
    """Yield the one block of a piece; a generator, as then the thread that takes it does it."""
    scores = floats_of_rows(matrix, start, end, name)
    if columns.nan_last:
        scores = np.where(np.isnan(scores), scores.dtype.type(-math.inf), scores)
    offsets, items, numbers, ties = best_of(scores, depth, name, start, tied=tied)
    queries, ids = to_ids(np.arange(start, end), name), to_ids(items, name)
    yield Lists(queries, offsets, ids, numbers, 0, ties, Place(name, start), end - start)


def best_of(
    scores: np.ndarray,
    depth: int,
    name: str,
    start: int = 0,
    seen: tuple[np.ndarray, np.ndarray] = NO_SEEN,
    *,
    tied: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """The offsets, items and scores of the best items of each row, and how many scores are equal.

    Equal scores stand in the order of the items; with `tied` all that equal the last one are taken.
    `seen` are offsets and items to leave out. Messages call row 0 row `start` of `name`.
    """
    rows, width = scores.shape
    depth = min(depth, width)
    room = rows * (width if tied else depth)
    offsets, items = np.empty(rows + 1, np.int64), np.empty(room, np.int64)
    numbers = np.empty(room, scores.dtype)
    bad = best_items(scores, depth, tied, *seen, offsets, items, numbers)
    if bad >= 0:
        raise InputError(
            f"{name}: the score in row {start + bad // width}, column {bad % width} is NaN; "
            "expected a number for every item, such as -inf for what comes last; with the "
            "semantics nan_confidence 'last', evaluate takes NaN for it"
        )
    items, numbers = items[: offsets[-1]], numbers[: offsets[-1]]
    order, equal = sort_values(offsets, -numbers)
    if order is not None:
        items, numbers = items[order], numbers[order]
    return offsets, items, numbers, equal


def open_sparse(matrix: Any, asked: InputOptions) -> Source:
    """Open a sparse array of SciPy or PyTorch: its cells are labels with gains, or predictions.

    Cells that are stored twice are added up, as both do. A stored 0 is a judged item.
    """
    name = f"the {type(matrix).__name__} of {asked.role}"
    if asked.role in ("items", "features"):
        dense = "to_dense" if is_tensor(matrix) else "toarray"
        raise UsageError(f"{asked.role} cannot be a {type(matrix).__name__}: give its {dense}()")
    return _open_cells(*sparse_cells(matrix, name), matrix.shape, asked, name)


def sparse_cells(matrix: Any, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The offsets, columns and numbers of the rows of a sparse array, by column."""
    if len(matrix.shape) != 2:
        raise InputError(f"{name} has the shape {matrix.shape}; expected a row for each query")
    if is_tensor(matrix):
        return _tensor_cells(matrix, name)
    if matrix.dtype.kind not in "biuf" or matrix.dtype.itemsize > 8:
        raise InputError(f"{name} holds {matrix.dtype}; expected numbers of at most 64 bits")
    try:
        if getattr(matrix, "format", "") in ("csr", "csc"):
            matrix.check_format(full_check=True)  # else SciPy writes where its offsets point
    except ValueError as error:
        raise InputError(f"{name} is broken: {error}") from None
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows.indptr.astype(np.int64), rows.indices, rows.data


def _tensor_cells(tensor: Any, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of a sparse tensor, whose indices PyTorch itself does not check."""
    layout, (height, width) = str(tensor.layout), tensor.shape
    if layout == "torch.sparse_coo":
        (rows, columns), numbers = numpy_of(tensor._indices()), numpy_of(tensor._values())
    elif layout == "torch.sparse_csr":
        ends, columns = numpy_of(tensor.crow_indices()), numpy_of(tensor.col_indices())
        if len(ends) != height + 1 or (counts := np.diff(ends)).min(initial=0) < 0:
            raise InputError(f"{name} is broken: its rows end before they start")
        rows, numbers = np.repeat(np.arange(height), counts), numpy_of(tensor.values())
    else:
        raise InputError(f"{name} has the layout {layout}, which is not read: give its to_sparse()")
    if numbers.dtype.kind not in "biuf" or numbers.ndim > 1:
        raise InputError(f"{name} holds {numbers.dtype}; expected numbers of at most 64 bits")
    for one, size in ((rows, height), (columns, width)):
        if len(one) != len(numbers) or ((one < 0) | (one >= size)).any():
            raise InputError(f"{name} is broken: it has cells outside of its shape")
    order = np.lexsort((columns, rows))
    rows, columns, numbers = rows[order], columns[order], numbers[order]
    new = np.append(True, (np.diff(rows) != 0) | (np.diff(columns) != 0))[: len(rows)]
    if not new.all():
        numbers = np.add.reduceat(numbers, np.flatnonzero(new))
    return offsets_of(np.bincount(rows[new], minlength=height)), columns[new], numbers


def cells_of(matrix: Matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of what is not 0 in a dense matrix."""
    rows, width = matrix.shape
    lengths, items, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], []
    for start in range(0, rows, step := rows_of(width)):
        block = matrix.block(start, min(start + step, rows))
        places = np.flatnonzero(block)
        lengths.append(np.bincount(places // max(1, width), minlength=len(block)))
        items.append(places % max(1, width))
        numbers.append(block.ravel()[places])
    flat = np.concatenate(numbers) if numbers else np.zeros(0)
    return offsets_of(np.concatenate(lengths)), np.concatenate(items), flat


def _open_cells(
    offsets: np.ndarray,
    items: np.ndarray,
    numbers: np.ndarray,
    shape: tuple[int, int],
    asked: InputOptions,
    name: str,
) -> Source:
    """Open the cells of a matrix; those of labels have no gains if all are 1."""
    ranked = asked.role == "predictions"
    if ranked and numbers.dtype.kind == "b":
        numbers = numbers.astype(np.float32)
    plain = not ranked and (asked.binary or numbers.dtype.kind == "b" or bool((numbers == 1).all()))
    beside = None if plain else Ragged(offsets, numbers)
    source = open_ragged(Ragged(offsets, items), replace(asked, numbers=beside), name)
    return replace(source, unordered=ranked, width=shape[1])


def floats_of_rows(matrix: Matrix, start: int, end: int, name: str = "") -> np.ndarray:
    """Rows of a matrix as float32 or float64."""
    block = matrix.block(start, end)
    if block.dtype.kind == "b":
        return block.astype(np.float32)
    return floats_of(arrow_of(block.ravel()), name).reshape(block.shape)


# ------------------------------------------------------------------ the best items of a matrix


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
    >>> from rankmill.arrays import top_k
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


# ------------------------------------------------------------------ flat scores with indexes

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
    >>> from rankmill.arrays import from_indexes
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
