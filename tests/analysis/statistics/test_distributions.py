"""Tails and quantiles, beside SciPy's over wide ranges."""

import math

import pytest
from scipy import stats

from rankmill.analysis.statistics.distributions import (
    normal_quantile,
    normal_tail,
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
