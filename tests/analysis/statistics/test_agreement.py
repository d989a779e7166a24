"""Agreement of rankings, random halves of the queries, and the number of queries needed."""

import itertools
import math
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankmill.analysis.stability.halves import half_sums, halves_of, random_keys
from rankmill.analysis.statistics.agreement import (
    correlation,
    order_of,
    ranks_of,
    signs_of,
    tau_ap,
    tau_b,
)
from rankmill.analysis.statistics.paired_differences import paired_of
from rankmill.analysis.statistics.sample_size import queries_needed, t_power
from rankmill.analysis.statistics.significance import run_test
from rankmill.columns.ids import to_ids
from rankmill.threads import Workers
from slow_halves import slow_halves, slow_one_way, slow_tau_ap

# ------------------------------------------------------------------ agreement of rankings

# Two rankings of ten systems, and what the authors of tau_AP,b print for them (ircor 1.0).
FIRST = [0.06, 0.2, 0.27, 0.37, 0.57, 0.63, 0.66, 0.9, 0.91, 0.94]
SECOND = [0.37, 0.06, 0.2, 0.27, 0.57, 0.66, 0.63, 0.91, 0.9, 0.94]
ONE_WAY, TIED_TAU, TIED_BOTH_WAYS = 0.7491182, 0.75, 0.6269841


def rounded(values):
    """Return values on a grid of fifths, so that some are tied."""
    return [round(value * 5) / 5 for value in values]


@pytest.mark.small
def test_ap_correlation_is_that_of_the_published_example():
    assert slow_one_way(SECOND, FIRST) == pytest.approx(ONE_WAY, abs=1e-7)
    assert tau_ap(signs_of(FIRST), signs_of(SECOND)) == pytest.approx(slow_tau_ap(FIRST, SECOND))
    tied = [signs_of(rounded(one)) for one in (FIRST, SECOND)]
    assert float(tau_b(*tied)) == pytest.approx(TIED_TAU, abs=1e-7)
    assert tau_ap(*tied) == pytest.approx(TIED_BOTH_WAYS, abs=1e-7)


@pytest.mark.small
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=9))
def test_correlations_are_those_of_scipy_and_of_two_loops(pairs):
    stats = pytest.importorskip("scipy.stats")
    first, second = [one for one, _ in pairs], [one for _, one in pairs]
    found = correlation(signs_of(first), signs_of(second))
    assert found.tau_ap == pytest.approx(slow_tau_ap(first, second))
    if len({*first}) < 2 or len({*second}) < 2:
        assert found == (None, None)
    else:
        assert found.tau_b == pytest.approx(stats.kendalltau(first, second).statistic)
        assert correlation(signs_of(second), signs_of(first)) == pytest.approx(found)


@pytest.mark.small
def test_a_ranking_agrees_with_itself_and_not_with_its_reverse():
    for values in ([3, 2, 1], [1, 1, 2, 3, 3]):
        signs = signs_of(values)
        assert correlation(signs, signs) == (1, 1)
        assert correlation(signs, -signs) == (-1, -1)


@pytest.mark.small
def test_rounding_makes_no_rank():
    third = 0.1 + 0.2  # 0.3 and a bit
    assert ranks_of(order_of([0.3, third, 0.2])) == [1, 1, 3]
    assert ranks_of(order_of([0.3, 0.3 + 1e-9, 0.2])) == [2, 1, 3]
    assert ranks_of(order_of([0.0, 0.0])) == [1, 1]


# ------------------------------------------------------------------ queries needed


@pytest.mark.small
@pytest.mark.parametrize(("confidence", "power"), [(0.95, 0.8), (0.99, 0.9), (0.9, 0.6)])
def test_queries_needed_are_those_of_statsmodels(confidence, power):
    solver = pytest.importorskip("statsmodels.stats.power").TTestPower()
    for effect in (2.0, 1.0, 0.7, 0.5, 0.2, 0.1, 0.03, 0.01, 0.001):
        found = queries_needed(effect, confidence, power)
        wanted = float(solver.solve_power(effect, alpha=1 - confidence, power=power))
        assert found == math.ceil(wanted) or found == pytest.approx(wanted, rel=1e-6)
        assert queries_needed(-effect, confidence, power) == found


@pytest.mark.small
def test_power_is_that_of_the_noncentral_t():
    stats = pytest.importorskip("scipy.stats")
    for effect, queries in itertools.product((0.01, 0.3, 1.0, 4.0), (2, 3, 10, 200, 30_000)):
        end, middle = stats.t.ppf(0.975, queries - 1), effect * math.sqrt(queries)
        far, near = stats.nct(queries - 1, middle), stats.nct(queries - 1, -middle)
        if middle > 30:
            assert t_power(effect, queries, 0.95) == pytest.approx(1)
        else:
            wanted = far.sf(end) + near.sf(end)
            assert t_power(effect, queries, 0.95) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.small
def test_a_tiny_difference_needs_as_many_queries_as_the_normal_test():
    assert queries_needed(1e-7, 0.95, 0.8) == pytest.approx((1.959964 + 0.841617) ** 2 * 1e14, 1e-4)
    assert queries_needed(100.0, 0.95, 0.8) == 2


# ------------------------------------------------------------------ halves


def sums_of(columns, largest, keys, splits, threads=2):
    with Workers(threads) as workers:
        return half_sums(columns, largest, keys, splits, workers)


@pytest.mark.small
@pytest.mark.parametrize("count", [2, 3, 8, 61])
def test_halves_are_those_of_plain_loops(count):
    draw = random.Random(count)
    queries = draw.sample(range(-1000, 1000), count)
    values = {name: {q: draw.randrange(4) / 3 for q in queries} for name in "abc"}
    columns = [np.array(list(one.values())) for one in values.values()]
    keys = random_keys(to_ids(pa.array(queries), "queries"), 7)
    found = halves_of(list(values), sums_of(columns, [1.0] * 3, keys, 70))
    tau, shares = slow_halves(values, 7, 70)
    assert found.tau == pytest.approx(tau)
    for (one, other), share in shares.items():
        assert found.agreement[one][other] == share == found.agreement[other][one]


@pytest.mark.small
def test_halves_are_drawn_from_the_id_and_the_seed_alone():
    numbers, words = pa.array(range(5000)), pa.array([f"query {i}" for i in range(5000)])
    for array in (numbers, words):
        ids = to_ids(array, "queries")
        keys = random_keys(ids, 3)
        order = np.random.default_rng(0).permutation(5000)
        shuffled = to_ids(array.take(pa.array(order)), "queries")
        assert (random_keys(shuffled, 3) == keys[order]).all()
        assert (random_keys(ids, 4) != keys).all()
        assert len({*keys.tolist()}) == 5000
    # Each process has its own hashes of strings; the halves do not depend on them.
    other = ids._replace(keys=np.zeros(5000, np.uint64))
    assert (random_keys(other, 3) == keys).all()
    narrow = to_ids(numbers.cast(pa.uint16()), "queries")
    assert (random_keys(narrow, 3) == random_keys(to_ids(numbers, "queries"), 3)).all()


@pytest.mark.small
def test_halves_are_fair_and_do_not_repeat():
    keys = random_keys(to_ids(pa.array(range(20_000)), "queries"), 0)
    sums = sums_of([], [], keys, 130)
    first, second = sums.sizes
    assert (first + second == 20_000).all()
    deviations = (first - 10_000) / math.sqrt(5000)
    assert 0.7 < deviations.std() < 1.3
    assert abs(deviations).max() < 4.5
    assert len({*first.tolist()}) > 80


@pytest.mark.small
def test_sums_of_halves_do_not_depend_on_the_order_of_queries():
    random_values = np.random.default_rng(5)
    columns = [random_values.random(9000) * scale for scale in (1e-300, 1.0, 3e100)]
    largest = [float(one.max()) for one in columns]
    keys = random_keys(to_ids(pa.array(range(9000)), "queries"), 0)
    sums = sums_of(columns, largest, keys, 10)
    order = random_values.permutation(9000)
    again = sums_of([one[order] for one in columns], largest, keys[order], 10)
    for one, other in zip((*sums[:2], *sums.sizes), (*again[:2], *again.sizes), strict=True):
        assert (one == other).all()
    for column, big, first, second in zip(columns, largest, *sums[:2], strict=True):
        unit = 2.0 ** (math.frexp(big)[1] - 40)
        assert (first + second) * unit == pytest.approx(column.sum(), rel=1e-9)


@pytest.mark.small
@pytest.mark.lengthy
def test_halves_agree_as_often_as_random_signs_give_a_smaller_difference():
    """As the page says: the share is about 1 less the p of the randomization test."""
    for seed, shift in enumerate((0.0, 0.01, 0.03, 0.05)):
        values = np.random.default_rng(seed).normal(size=(2, 2000))
        values[0] += shift - (values[0] - values[1]).mean() * (shift > 0)
        keys = random_keys(to_ids(pa.array(range(2000)), "queries"), seed)
        largest = [float(np.abs(values).max())] * 2
        found = halves_of(["a", "b"], sums_of(list(values), largest, keys, 4000))
        p = run_test("randomization", paired_of(values[0] - values[1]), replicates=4000).p
        assert found.agreement["a"]["b"] == pytest.approx(1 - p, abs=0.03)
