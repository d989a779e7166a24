"""Sorting the values of lists: by counting, in runs, and by merging these, where ties stay."""

from __future__ import annotations

import numpy as np
import pytest

from rankmill.columns.lists import offsets_of, sort_values
from rankmill.kernels.lists import RUN

pytestmark = pytest.mark.small


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("distinct", [2, 40, 1 << 30])
def test_lists_of_all_lengths_are_sorted_stably(dtype: type, distinct: int) -> None:
    draw = np.random.default_rng(distinct)
    near = [RUN - 1, RUN, RUN + 1, 2 * RUN, 2 * RUN + 1, 3 * RUN, 4 * RUN + 5, 9 * RUN - 1]
    offsets = offsets_of(np.array([0, 1, 2, 3, *near, 0, 500]))
    keys = draw.integers(-distinct, distinct, offsets[-1]).astype(dtype)
    given = draw.permuted(np.arange(len(keys)))
    expected, tied = [], 0
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        members = given[start:end]
        expected += members[np.argsort(keys[members], kind="stable")].tolist()
        counts = np.unique(keys[members], return_counts=True)[1]
        tied += int(counts[counts > 1].sum())
    order, found = sort_values(offsets, keys, given.copy())
    assert order is not None
    assert (order.tolist(), found) == (expected, tied)
