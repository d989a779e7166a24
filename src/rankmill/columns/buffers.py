"""Convert Arrow arrays to NumPy arrays and back, without a copy.

Arrow's own ``to_numpy``, its scalars, and ``pyarrow.array`` of a NumPy array import pandas if it is
installed, which takes longer than a small run. Importing ``pyarrow.compute`` takes 30 ms, and some
methods of Arrow import it on their first call. A function that needs it imports it when it is
called.
"""

from typing import Any

import numpy as np
import pyarrow as pa

_DTYPES = {
    pa.from_numpy_dtype(dtype): np.dtype(dtype)
    for dtype in (*"bhilBHIL", np.float16, np.float32, np.float64)
}


def numbers_of(array: Any, null: float | None = None) -> np.ndarray:
    """The numbers of an Arrow array of integers or floats, as a read-only view.

    A null is replaced by `null`; without it, the array must hold none.
    """
    if array.null_count and null is not None:
        array = array.fill_null(null)
    dtype = _DTYPES[array.type]
    if len(array) == 0:
        return np.empty(0, dtype)
    data: np.ndarray = np.frombuffer(array.buffers()[1], dtype)
    return data[array.offset : array.offset + len(array)]


def validity_of(array: Any) -> np.ndarray:
    """Booleans that are true where an Arrow array holds a value and false where it holds a null."""
    return numbers_of(array.is_valid().cast(pa.uint8())).view(np.bool_)


def arrow_of(numbers: np.ndarray) -> Any:
    """A NumPy array as an Arrow array without nulls; numbers in native byte order are a view."""
    if numbers.dtype.kind not in "iuf":
        return pa.array(numbers)
    native = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("="))
    buffers = [None, pa.py_buffer(native)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(native.dtype), len(native), buffers)
