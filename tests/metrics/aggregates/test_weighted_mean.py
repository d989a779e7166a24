"""The exact weighted mean, beside fractions, NumPy and statsmodels."""

from __future__ import annotations

import functools
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from rankmill.errors import UsageError
from rankmill.kernels.exact import accumulate_weighted
from rankmill.metrics.aggregate import Closing
from rankmill.metrics.aggregates.mean import (
    WEIGHTED_BINS,
    Mean,
    SignedMean,
    WeightedMean,
    sum_weights,
)

pytestmark = pytest.mark.small

# Over 660 powers of two, which is all that weights may have.
WEIGHTS = st.one_of(
    st.just(0.0), st.floats(1e-100, 1e100), st.floats(0.5, 2), st.sampled_from([1.0, 1e100, 1e-100])
)
VALUES = st.one_of(
    st.floats(-1, 1), st.floats(-1e120, 1e120), st.sampled_from([0.0, -0.0, 1.0, 1 / 3, 5e-324])
)
PAIRS = st.lists(st.tuples(VALUES, WEIGHTS), max_size=12)


def weighted(pairs: list[tuple[float, float]]) -> WeightedMean:
    values, weights = np.array(pairs, np.float64).reshape(-1, 2).T
    return WeightedMean.of(values, weights)


def numbers(one: Any) -> tuple[float | None, ...]:
    return one.mean, one.standard_error, one.effective


@given(PAIRS)
def test_it_is_what_fractions_give(pairs: list[tuple[float, float]]) -> None:
    expected = oracle.weighted_mean_and_error(*zip(*pairs, strict=True)) if pairs else (None,) * 3
    assert numbers(weighted(pairs)) == expected


@given(PAIRS, st.randoms(use_true_random=False), st.integers(1, 4))
def test_parts_merge_in_any_order_and_travel(
    pairs: list[tuple[float, float]], order: random.Random, parts: int
) -> None:
    whole = weighted(pairs)
    order.shuffle(pairs)
    each = [weighted(pairs[part::parts]) for part in range(parts)]
    rows = pa.Table.from_pylist([{"map.count": 1, **one.to_row()} for one in each]).to_pylist()
    merged = functools.reduce(WeightedMean.merge, map(WeightedMean.from_row, rows), WeightedMean())
    assert merged == whole


@given(st.lists(VALUES, max_size=12), st.floats(1e-100, 1e100))
def test_equal_weights_give_the_bits_of_the_mean(values: list[float], weight: float) -> None:
    plain = Mean.of(np.array(values, np.float64))
    equal = weighted([(value, weight) for value in values])
    assert (equal.mean, equal.standard_error) == (plain.mean, plain.standard_error)
    assert equal.effective == (len(values) or None)


@given(VALUES, st.lists(WEIGHTS, min_size=1, max_size=9))
def test_a_constant_metric_has_no_error(value: float, weights: list[float]) -> None:
    found = weighted([(value, weight) for weight in weights])
    positive = sum(weight > 0 for weight in weights)
    assert found.mean == (value if positive else None)
    assert found.standard_error == (0 if positive > 1 else None)


@given(PAIRS, st.lists(WEIGHTS, max_size=5))
def test_queries_that_score_one_need_no_values(
    pairs: list[tuple[float, float]], ones: list[float]
) -> None:
    weights = np.array([weight for _, weight in pairs] + ones, np.float64)
    sums = [sum_weights(one) for one in (weights, weights[len(pairs) :])]
    added = WeightedMean(0, 0, 0, *weighted_sums(pairs))
    closed = added.close(Closing(len(weights), len(ones), *sums))
    assert closed == weighted(pairs + [(1.0, weight) for weight in ones])


def weighted_sums(pairs: list[tuple[float, float]]) -> tuple[int, int, int]:
    whole = weighted(pairs)
    return whole.wv, whole.wwv, whole.wwvv


def test_the_extremes_of_float64_are_exact() -> None:
    tiny, huge = 5e-324, 1.7976931348623157e308
    for pairs in (
        [(tiny, tiny), (-tiny, tiny), (1.0, tiny)],
        [(huge, huge), (-huge, huge), (huge, 1.0), (2.2250738585072014e-308, huge)],
        [(1 + 2**-52, 1 + 2**-52), (math.nextafter(1, 0), math.nextafter(2, 0))] * 3,
    ):
        found = weighted(pairs)
        sums = zip(*(products(*pair) for pair in pairs), strict=True)
        assert (found.wv, found.wwv, found.wwvv) == tuple(map(sum, sums))


def products(value: float, weight: float) -> tuple[int, int, int]:
    v, w = (int(Fraction(one) * 2**1074) for one in (value, weight))
    return w * v, w * w * v, w * w * v * v


def test_limbs_have_room_for_many_values() -> None:
    """All bits set, as often as limbs have room for: the sums of one value grow by multiples."""
    value = np.array([math.nextafter(2, 0)]).view(np.int64)
    bins = np.zeros(WEIGHTED_BINS, np.int64)
    accumulate_weighted(value, value, bins)
    assert bins.max() < 2**30


@pytest.mark.lengthy
def test_numpy_and_statsmodels_agree() -> None:
    """statsmodels: the same error from a regression on a constant by weighted least squares.

    Its heteroscedasticity-consistent covariance HC1 is the linearised one, with n / (n - 1).
    """
    linear_model = pytest.importorskip("statsmodels.regression.linear_model")
    weightstats = pytest.importorskip("statsmodels.stats.weightstats")
    draw = np.random.default_rng(5)
    for count in (2, 17, 400):
        values, weights = draw.random(count), draw.gamma(0.7, 3, count)
        found = WeightedMean.of(values, weights)
        assert found.mean == pytest.approx(np.average(values, weights=weights), rel=1e-13)
        assert found.mean == pytest.approx(weightstats.DescrStatsW(values, weights).mean, rel=1e-13)
        fit = linear_model.WLS(values, np.ones(count), weights=weights).fit(cov_type="HC1")
        assert found.standard_error == pytest.approx(fit.bse[0], rel=1e-12)
        assert found.effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-13)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"w": "-5"}, "are not sums"),
        ({"w": "1e9"}, "map.w is '1e9', not a sum"),
        ({"wv": 7}, "map.wv is 7, not text"),
        ({"ww": "1"}, "are not sums of the same queries"),
        ({"wwvv": "0"}, "are not sums of the same queries"),
        ({"positive": 0}, "are not sums of the same queries"),
        ({"positive": -1}, "map.positive is -1, not a count"),
    ],
)
def test_damaged_rows_are_refused(change: dict[str, Any], told: str) -> None:
    row = weighted([(0.5, 1.0), (0.25, 3.0)]).to_row() | change
    with pytest.raises(UsageError, match=told):
        WeightedMean.from_row({f"map.{key}": value for key, value in row.items()}, "map.")


def test_the_mean_without_weights_is_that_of_equal_ones() -> None:
    """To the last bit; its standard error is the textbook one."""
    generator = np.random.default_rng(9)
    for count in (0, 1, 2, 3, 50, 1000):
        for scale in (1e-100, 1.0, 1e100):
            values = scale * generator.normal(size=count)
            plain, weighted = SignedMean.of(values), WeightedMean.of(values, np.ones(count))
            assert (plain.mean, plain.standard_error) == (weighted.mean, weighted.standard_error)
            assert (plain.ratio(), plain.freedom) == (weighted.ratio(), weighted.freedom)
            assert plain.effective is None
            if count > 1:
                error = values.std(ddof=1) / math.sqrt(count)
                assert plain.standard_error == pytest.approx(error, rel=1e-12)
