"""Matrices with a number for each query and item."""

from typing import Any, Self

import numpy as np

from rankmill.columns.objects import check_dense, is_tensor, numpy_of
from rankmill.errors import InputError


class Matrix:
    """A number for each query and item: row q is query q, column i is item i.

    As predictions, the numbers are scores: all items are ranked, and equal scores keep the order of
    the columns unless the semantics say otherwise. As labels, they are gains: every item with a
    gain other than 0 is a label. If all gains of a matrix are 1, its labels have no gains.

    Parameters
    ----------
    values : array_like or torch.Tensor, shape (queries, items)
        Numbers, which are not copied; float16 and bfloat16 are counted with as float32, integers as
        float64, which changes no value. A tensor may require a gradient, and be on any device:
        it is copied to the CPU a block of rows at a time. Sparse arrays of SciPy are taken instead
        of a matrix; their stored cells count.

    Raises
    ------
    InputError
        If the values are not two-dimensional, or are not numbers.

    Examples
    --------
    >>> from rankmill.arrays import Matrix
    >>> scores = Matrix([[0.1, 0.7, 0.2], [0.5, 0.3, 0.4]])
    >>> scores
    Matrix(2 x 3, float64)
    >>> import rankmill
    >>> rankmill.evaluate(Matrix([[0, 1, 0], [0, 0, 1]]), scores, "first_hit@2")["first_hit@2"]
    0.75
    """

    __slots__ = ("values",)

    def __init__(self, values: Any) -> None:
        if hasattr(values, "columns"):
            raise InputError(
                f"a Matrix cannot be a {type(values).__name__}, whose rows and columns have names "
                "that would be lost: give its to_numpy() if they are queries and items in order"
            )
        if is_tensor(values):
            check_dense(values)
        elif np.ma.isMaskedArray(values):
            raise InputError(
                "a Matrix cannot be a masked array, whose mask would be lost: fill it, such as "
                "scores with -inf by its filled(-inf)"
            )
        else:
            try:
                values = np.asarray(values)
            except ValueError:
                raise InputError(
                    "the rows of a Matrix do not all have the same length; expected one number for "
                    "each query and item"
                ) from None
        if hasattr(values[()], "toarray"):
            raise InputError("a Matrix cannot be sparse: evaluate takes a sparse matrix as it is")
        if values.ndim != 2:
            raise InputError(
                f"a Matrix has the shape {tuple(values.shape)}; expected two dimensions, a row for "
                "each query and a column for each item"
            )
        dtype = numpy_of(values[:0]).dtype
        if dtype.kind not in "biuf" or dtype.itemsize > 8:
            raise InputError(f"a Matrix holds {dtype}; expected numbers of at most 64 bits")
        self.values = values

    @classmethod
    def of(cls, values: Any) -> Self:
        """The matrix, or the values of one."""
        return values if isinstance(values, cls) else cls(values)

    @property
    def shape(self) -> tuple[int, int]:
        """How many queries and items there are."""
        queries, items = self.values.shape
        return int(queries), int(items)

    def block(self, start: int, end: int) -> np.ndarray:
        """Rows as a contiguous array; no more of a tensor is copied than these."""
        return np.ascontiguousarray(numpy_of(self.values[start:end]))

    def __repr__(self) -> str:
        dtype = str(self.values.dtype).removeprefix("torch.")
        return f"Matrix({self.shape[0]:,} x {self.shape[1]:,}, {dtype})"
