"""Tails and quantiles, beside SciPy's over wide ranges."""

import math

import pytest
from scipy import stats

from rankmill.analysis.statistics.distributions import (
    normal_quantile,
    normal_tail,
    sign_tail,
    t_quantile,
    t_tail,
)

pytestmark = pytest.mark.small

FREEDOM = [1, 2, 3, 4.5, 10, 31, 33, 100, 299, 300, 301, 1e3, 1e4, 1e6, 1e9]
EXACT = {"rel": 1e-12, "abs": 1e-290}


@pytest.mark.parametrize("freedom", FREEDOM)
def test_the_tail_of_t(freedom):
    for t in (0, 1e-3, 0.1, 0.5, 1, 1.7, 1.8, 2, 3, 5, 8, 12, 20, 37, 100, 1e4):
        for signed in (t, -t):
            expected = stats.t.sf(signed, freedom)
            assert t_tail(signed, freedom) == pytest.approx(expected, **EXACT)
    assert t_tail(math.inf, freedom) == 0
    assert t_tail(1e-8, freedom) < t_tail(0, freedom) == 0.5


@pytest.mark.parametrize("freedom", FREEDOM)
def test_the_quantile_of_t(freedom):
    for p in (1e-100, 1e-20, 1e-9, 1e-4, 0.01, 0.025, 0.3, 0.49, 0.5, 0.6, 0.9, 0.975, 0.9999):
        found = t_quantile(p, freedom)
        assert found == pytest.approx(stats.t.ppf(p, freedom), rel=1e-10)
        assert t_tail(-found, freedom) == pytest.approx(p, **EXACT)


def test_the_tail_and_the_quantile_of_the_normal_distribution():
    for z in (-37, -8, -1, -1e-3, 0, 1e-3, 1, 1.96, 5, 8, 20, 37):
        assert normal_tail(z) == pytest.approx(stats.norm.sf(z), **EXACT)
    for p in (1e-300, 1e-20, 1e-4, 0.025, 0.5, 0.6, 0.999):
        assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-12)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 20, 999, 1000, 1001, 12_345, 10**6])
def test_the_tail_of_signs(n):
    near = (int(n / 2 - share * n**0.5) for share in (0, 0.5, 1, 3, 10))
    for k in {0, 1, 5, 15, 16, 17, n // 10, n // 3, int(0.45 * n), *near}:
        if 0 <= k <= n / 2:
            expected = stats.binom.cdf(k, n, 0.5)
            assert sign_tail(k, n) == pytest.approx(expected, rel=1e-11, abs=1e-290)


def test_the_tail_of_few_signs_is_exact():
    for n in range(60):
        for k in range(n // 2 + 1):
            ways = sum(math.comb(n, j) for j in range(k + 1))
            assert sign_tail(k, n) == pytest.approx(ways / 2**n, rel=1e-15)
