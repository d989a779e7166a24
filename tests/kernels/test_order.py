"""Sorting inside of kernels, compiled and as plain Python, beside NumPy's."""

import numpy as np
import pytest

from rankmill.kernels.jit import kernel
from rankmill.kernels.order import sort_floats, sort_values


@kernel
def sorted_values(out_values):
    sort_values(out_values)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
@pytest.mark.parametrize("distinct", [1, 3, 1_000])
def test_values_are_in_the_order_of_numpy(dtype, distinct):
    draw = np.random.default_rng(distinct)
    for count in (*range(36), 100, 1_000):
        keys = draw.integers(-distinct, distinct, count).astype(dtype)
        values = keys.copy()
        sorted_values(values)
        np.testing.assert_array_equal(values, np.sort(keys))


@pytest.mark.parametrize(("dtype", "bits"), [(np.float32, np.int32), (np.float64, np.int64)])
def test_floats_are_in_the_order_of_numpy(dtype, bits):
    draw = np.random.default_rng(1)
    strange = [0.0, -0.0, np.inf, -np.inf, 5e-324, -5e-324, np.finfo(dtype).max, 1.0, -1.0]
    for count in (0, 1, 9, 300):
        keys = np.append(strange, draw.normal(size=count) * 10.0 ** draw.integers(-30, 30, count))
        keys = draw.permutation(keys.astype(dtype))
        values, spare = keys.copy().view(bits), np.empty(len(keys), bits)
        moved = sort_floats(dtype().itemsize, values, spare, np.empty((8, 256), np.int64))
        found = (spare if moved else values).view(dtype)
        np.testing.assert_array_equal(found, np.sort(keys))
