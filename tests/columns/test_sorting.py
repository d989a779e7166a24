"""Sorting inside of kernels, compiled and as plain Python, beside NumPy's."""

import numpy as np
import pytest

from rankmill.kernels.jit import kernel
from rankmill.kernels.sorting import sort_pairs, sort_values


@kernel
def sorted_values(out_values):
    sort_values(out_values)


@kernel
def sorted_pairs(out_keys, out_members):
    count = len(out_keys)
    sort_pairs(out_keys, out_members, count, np.empty_like(out_keys), np.empty(count, np.int64))


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
@pytest.mark.parametrize("distinct", [1, 3, 1_000])
def test_values_and_pairs_are_in_the_order_of_numpy(dtype, distinct):
    draw = np.random.default_rng(distinct)
    for count in (*range(36), 100, 1_000):
        keys = draw.integers(-distinct, distinct, count).astype(dtype)
        values = keys.copy()
        sorted_values(values)
        np.testing.assert_array_equal(values, np.sort(keys))
        values, members = keys.copy(), np.arange(count)
        sorted_pairs(values, members)
        np.testing.assert_array_equal(values, np.sort(keys))
        np.testing.assert_array_equal(members, np.argsort(keys, kind="stable"))
