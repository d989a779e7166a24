"""The bound of a mean with one unseen query, held to its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import unseen_oracle as oracle
from rankmill.analysis.statistics.moments import MINE, THEIRS, PairMoments
from rankmill.analysis.statistics.unseen import (
    Part,
    Spread,
    added,
    chance_above,
    largest,
    mean_ends,
    ratio_ends,
    spread_of,
    with_unseen,
)

pytestmark = pytest.mark.small
SHARES = st.floats(0, 1, allow_subnormal=False)


def pairs(least=1, most=40):
    return st.integers(least, most).flatmap(
        lambda n: st.tuples(
            *(st.lists(SHARES, min_size=n, max_size=n) for _ in range(2)),
            st.lists(st.floats(0.01, 100), min_size=n, max_size=n),
            st.lists(st.integers(0, 5), min_size=n, max_size=n),
        )
    )


@given(pairs(), st.floats(0, 2), st.sampled_from(["plain", "weights", "clusters"]))
def test_moments_give_the_cumulants_of_the_definition(drawn, ratio, how):
    old, new, weights, codes = map(np.array, drawn)
    more = {"plain": {}, "weights": {"weights": weights}, "clusters": {"codes": codes}}[how]
    found = PairMoments.of_clusters(new, old, codes) if how == "clusters" else None
    found = found or PairMoments.of(new, old, more.get("weights"))
    for end in (1.0, -ratio):
        expected = oracle.cumulants(new - ratio * old, end, **more)
        assert with_unseen(found.spread(ratio), end) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(pairs(2), st.integers(1, 39))
def test_moments_merge_and_part_to_the_bit(drawn, cut):
    old, new, weights, _ = map(np.array, drawn)
    for one in (None, weights):
        parts = [slice(0, cut), slice(cut, None)]
        whole = PairMoments.of(new, old, one)
        if cut < len(old):
            first, rest = (
                PairMoments.of(new[part], old[part], None if one is None else one[part])
                for part in parts
            )
            assert first.merge(rest).sums == rest.merge(first).sums == whole.sums
            assert whole.without(first).sums == rest.sums
        assert whole.without(whole) is None
        for side, values in ((MINE, new), (THEIRS, old)):
            assert whole.of_side(side).sums == PairMoments.of(values, None, one).sums


@pytest.mark.parametrize("n", [5, 30, 1000])
@pytest.mark.parametrize("tail", [0.2, 0.025, 1e-6])
def test_the_ends_are_those_of_a_shifted_gamma(n, tail):
    draw = np.random.default_rng(n)
    old, new = draw.random(n), draw.random(n) ** 4
    spread = PairMoments.of(new, old).spread(1.0)
    low, high = mean_ends([Part(1.0, spread, -1.0, 1.0)], tail)
    assert high == pytest.approx(min(1.0, oracle.largest(new - old, 1.0, tail)), rel=1e-9)
    assert low == pytest.approx(max(-1.0, oracle.smallest(new - old, -1.0, tail)), rel=1e-9)
    found = with_unseen(spread, 1.0)
    assert chance_above(found, largest(found, tail)) == pytest.approx(tail, rel=1e-6)


def test_the_bound_is_the_quantile_of_the_mean_with_random_weights():
    draw = np.random.default_rng(0)
    values = np.append((draw.random(40) < 0.1) * draw.random(40), 1.0)
    drawn = draw.dirichlet(np.ones(41), 200_000) @ values
    spread = PairMoments.of(values[:-1]).spread(0.0)
    found = largest(with_unseen(spread, 1.0), 0.025)
    assert found == pytest.approx(np.quantile(drawn, 0.975), rel=0.01)


@pytest.mark.parametrize("n", [20, 100, 5000])
@pytest.mark.parametrize("share", [0, 0.02, 0.3, 1])
def test_the_bound_of_a_share_is_that_of_clopper_and_pearson(n, share):
    k = round(n * share)
    p = k / n
    one = spread_of(p, (p * (1 - p) / (n - 1)) ** 0.5, n, (0.0, 1.0))
    low, high = mean_ends([Part(1.0, one, 0.0, 1.0)], 0.025)
    expected = (
        stats.beta.ppf(0.025, k, n - k + 1) if k else 0.0,
        stats.beta.isf(0.025, k + 1, n - k) if k < n else 1.0,
    )
    assert (low, high) == pytest.approx(expected, rel=0.06, abs=1e-3)


def test_independent_parts_add_up():
    draw = np.random.default_rng(1)
    old, new = draw.random(30), draw.random(50)
    parts = [
        Part(1.0, PairMoments.of(new).spread(0.0), 0.0, 1.0),
        Part(-0.9, PairMoments.of(old).spread(0.0), 0.0, 1.0),
    ]
    one, other = oracle.cumulants(new, 1.0), oracle.cumulants(old, 0.0)
    expected = [a + (-0.9) ** r * b for r, (a, b) in enumerate(zip(one, other, strict=True), 1)]
    assert added(parts, up=True) == pytest.approx(expected, rel=1e-9)


def test_no_end_leaves_the_range_and_nothing_unseen_is_nothing():
    assert mean_ends([Part(1.0, Spread(1.0, 0.0, 0.0, 0.5), 0.0, 1.0)], 1e-9)[1] == 1.0
    found = with_unseen(Spread(1.0, 0.0, 0.0, 0.1), 1.0)
    assert (found.square, largest(found, 0.025), chance_above(found, 1.0)) == (0.0, 1.0, 1.0)


def test_a_ratio_without_an_upper_end_is_unbounded():
    assert ratio_ends(lambda r: (0.1 - r, 0.3), 0.2) == (pytest.approx(0.1), float("inf"))
    assert ratio_ends(lambda r: (-0.1 - r, 0.5 - r), 0.2) == (0.0, pytest.approx(0.5))


def test_a_ratio_to_a_mean_that_may_be_0_has_no_end_above():
    """A gap in what is not refuted was taken for its end, and an undecided loss for one of half."""

    def of_t(ratio):
        half = 3.0 * np.sqrt(0.2**2 + (0.4 * ratio) ** 2 - 2 * 0.99 * ratio * 0.2 * 0.4)
        return 0.3 - ratio - half, 0.3 - ratio + half

    assert of_t(0.45)[1] < 0 < of_t(2.0)[1]
    assert ratio_ends(of_t, 0.3)[1] == np.inf
