"""rank_biased_overlap() and kendall_tau(): against the formulas in plain Python, and SciPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rankmill
from rankmill import UsageError
from rankmill.arrays import kendall_tau, rank_biased_overlap

LISTS = st.lists(st.integers(0, 9), max_size=9)
PAIRS = st.lists(st.tuples(LISTS, LISTS), min_size=1, max_size=5)


def overlap(one: list[int], other: list[int], p: float, k: int | None) -> float:
    one, other = list(dict.fromkeys(one)), list(dict.fromkeys(other))
    depth = max(len(one), len(other)) if k is None else min(k, max(len(one), len(other)))
    if not one or not other:
        return 0.0
    shares = [len({*one[:d]} & {*other[:d]}) / d for d in range(1, depth + 1)]
    weights = [p ** (d - 1) for d in range(1, depth + 1)]
    return math.fsum(w * a for w, a in zip(weights, shares, strict=True)) / math.fsum(weights)


@pytest.mark.small
@example([([0, 1], [0, 0, 1])], 0.5, 2)
@given(PAIRS, st.sampled_from([0.3, 0.5, 0.95]), st.sampled_from([None, 1, 3]))
def test_overlap(pairs: list[tuple[list[int], list[int]]], p: float, k: int | None) -> None:
    ones, others = map(list, zip(*pairs, strict=True))
    found = rank_biased_overlap(ones, others, k, p)
    expected = [overlap(one, other, p, k) for one, other in pairs]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0)
    np.testing.assert_allclose(rank_biased_overlap(others, ones, k, p), found, rtol=1e-12, atol=0)


@pytest.mark.small
@example([([0, 1], [0, 0, 1])], 2)
@given(PAIRS, st.sampled_from([None, 2]))
def test_tau(pairs: list[tuple[list[int], list[int]]], k: int | None) -> None:
    ones, others = map(list, zip(*pairs, strict=True))
    expected = []
    for one, other in pairs:
        first, second = (list(dict.fromkeys(each)) for each in (one, other))
        both = [item for item in second[:k] if item in first]
        signs = [
            1 if first.index(a) < first.index(b) else -1
            for at, a in enumerate(both)
            for b in both[at + 1 :]
        ]
        none = 0.0 if other else -1.0
        expected.append(sum(signs) / len(signs) if signs else none)
    np.testing.assert_array_equal(kendall_tau(ones, others, k), expected)


@pytest.mark.small
def test_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    draw = np.random.default_rng(3)
    ones, others = ([draw.permutation(30).tolist() for _ in range(20)] for _ in range(2))
    there = [
        stats.kendalltau(np.argsort(one), np.argsort(other)).statistic
        for one, other in zip(ones, others, strict=True)
    ]
    np.testing.assert_allclose(kendall_tau(ones, others), there, rtol=1e-12)


@pytest.mark.small
def test_the_metrics_of_evaluate_are_the_same() -> None:
    ones, others = [["a", "b", "c"], ["x"]], [["c", "a", "z", "b"], ["y", "x"]]
    labels: Any = {
        q: {item: float(9 - at) for at, item in enumerate(one)} for q, one in enumerate(ones)
    }
    result = rankmill.evaluate(labels, dict(enumerate(others)), "rbo@3,kendall_tau")
    table = result.per_query
    assert table is not None
    assert table["rbo@3"].to_pylist() == rank_biased_overlap(ones, others, 3).tolist()
    assert table["kendall_tau"].to_pylist() == kendall_tau(ones, others).tolist()


@pytest.mark.small
@pytest.mark.parametrize("p", [0, 1, 2, "x", math.nan])
def test_a_p_that_is_none(p: Any) -> None:
    with pytest.raises(UsageError):
        rank_biased_overlap([[1]], [[1]], p=p)
