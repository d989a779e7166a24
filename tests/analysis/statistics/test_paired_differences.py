"""Differences as a histogram: exact, and the same in any order."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankmill.analysis.statistics.paired_differences import Paired, paired_of
from rankmill.errors import InputError

pytestmark = pytest.mark.small

DIFFERENCES = st.lists(
    st.one_of(
        st.sampled_from([0.0, -0.0, 0.5, -0.5, 1 / 3, 1e-300, 5e-324]),
        st.floats(-1e6, 1e6, allow_nan=False),
    ),
    max_size=30,
)


def same(one: Paired, other: Paired) -> bool:
    pairs = (one.values, other.values), (one.counts, other.counts)
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)


@given(DIFFERENCES, st.integers(0, 30), st.randoms())
def test_parts_in_any_order_are_the_same_histogram(differences, cut, random):
    whole = paired_of(np.array(differences))
    mixed = random.sample(differences, len(differences))
    parts = paired_of(np.array(mixed[:cut])), paired_of(np.array(mixed[cut:]))
    assert same(whole, parts[0].merge(parts[1]))
    assert same(whole, parts[1].merge(parts[0]))
    assert whole.merge(whole).counts.tolist() == (2 * whole.counts).tolist()
    assert (np.diff(whole.values) > 0).all()
    assert not np.signbit(whole.values[whole.values == 0]).any()
    assert np.repeat(whole.values, whole.counts).tolist() == sorted(differences)


@given(DIFFERENCES)
def test_numbers_are_correctly_rounded(differences):
    paired = paired_of(np.array(differences))
    exact = [Fraction(one) for one in differences]
    n = len(exact)
    assert paired.n == n
    assert paired.won == sum(one > 0 for one in exact)
    assert paired.tied == sum(one == 0 for one in exact)
    assert paired.lost == sum(one < 0 for one in exact)
    assert paired.mean == (float(sum(exact) / n) if n else None)


def test_magnitudes_have_both_signs():
    found = paired_of(np.array([0.5, -0.5, 0.0, 0.5, -0.25, 2.0])).magnitudes
    assert found.values.tolist() == [0.25, 0.5, 2.0]
    assert found.positive.tolist() == [0, 2, 1]
    assert found.negative.tolist() == [1, 1, 0]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e200])
def test_a_difference_that_is_no_number_is_refused(wrong):
    with pytest.raises(InputError, match=r"query 1 \(from 0\) is .*expected a finite number"):
        paired_of(np.array([0.0, wrong]))
