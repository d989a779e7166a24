"""Tests of differences, beside SciPy, statsmodels and the enumeration of all cases."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from rankmill.analysis.statistics.paired_differences import paired_of
from rankmill.analysis.statistics.significance import (
    CORRECTIONS,
    TESTS,
    correct,
    equivalence,
    flipped_sums,
    noninferiority,
    run_test,
    t_test,
)
from strategies import some

REPLICATES = 10_000


def differences(seed: int) -> np.ndarray:
    """Differences of every kind: few and many, with ties and zeros or without."""
    random = np.random.default_rng(seed)
    n = int(random.choice([2, 3, 5, 8, 12, 13, 20, 50, 51, 80, 300]))
    found = random.normal(random.choice([0, 0.1, 0.5]), 1, n)
    if seed % 3 == 1:
        found = np.round(found * 2) / 4
    if seed % 3 == 2:
        found = np.round(found, 1) * (random.random(n) < 0.7)
    return found


SEEDS = range(90)


# ------------------------------------------------------------------ beside SciPy, exactly


@pytest.mark.small
@pytest.mark.parametrize("seed", SEEDS)
def test_t_is_scipys(seed):
    given = differences(seed)
    if given.std() == 0:
        return
    found = t_test(paired_of(given), 0.9)
    theirs = stats.ttest_1samp(given, 0)
    interval = theirs.confidence_interval(0.9)
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-10)
    assert (found.low, found.high) == pytest.approx(tuple(interval), rel=1e-10, abs=1e-12)


@pytest.mark.small
@pytest.mark.parametrize("seed", SEEDS)
def test_wilcoxon_is_scipys(seed):
    given = differences(seed)
    found = run_test("wilcoxon", paired_of(given))
    assert (found.low, found.high) == (None, None)
    if not given.any():
        return
    sizes = np.abs(given)
    tied = len(np.unique(sizes)) < len(sizes) or not given.all()
    if len(given) > 50:
        method = "asymptotic"
    elif not tied:
        method = "exact"
    elif len(given) <= 8:  # SciPy takes seconds for more
        method = stats.PermutationMethod(n_resamples=np.inf)
    else:  # SciPy would approximate: see the next test
        return
    theirs = stats.wilcoxon(given, zero_method="pratt", method=method)
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-10)


@pytest.mark.small
@pytest.mark.parametrize("n", range(1, 9))
def test_wilcoxon_of_few_is_the_share_of_all_signs(n):
    random = np.random.default_rng(n)
    given = random.integers(-3, 4, n) / 4
    ranks = stats.rankdata(np.abs(given)) * (given != 0)
    sums = [
        sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign)
        for signs in itertools.product([False, True], repeat=n)
    ]
    won = ranks[given > 0].sum()
    tails = np.mean(np.array(sums) >= won), np.mean(np.array(sums) <= won)
    assert run_test("wilcoxon", paired_of(given)).p == pytest.approx(min(1, 2 * min(tails)))


@pytest.mark.small
@pytest.mark.parametrize("seed", SEEDS)
def test_equivalence_is_two_tests_of_scipy(seed):
    given = differences(seed)
    if given.std() == 0:
        return
    paired = paired_of(given)
    above = stats.ttest_1samp(given, -0.2, alternative="greater").pvalue
    below = stats.ttest_1samp(given, 0.2, alternative="less").pvalue
    found = equivalence(paired, 0.2)
    assert found.p == pytest.approx(max(above, below), rel=1e-10)
    assert (found.low, found.high) == pytest.approx(t_test(paired, 0.9)[2:4], rel=1e-10)
    assert (found.p <= 0.05) == (found.low >= -0.2 and found.high <= 0.2)
    one_sided = noninferiority(paired, 0.2)
    assert one_sided.p == pytest.approx(above, rel=1e-10)
    assert (one_sided.low, one_sided.high) == (found.low, None)
    assert (one_sided.p <= 0.05) == (one_sided.low >= -0.2)


@pytest.mark.parametrize("seed", some(SEEDS[:9], 3))
def test_statsmodels_agrees(seed):
    pytest.importorskip("statsmodels", reason="statsmodels (extra test) is not installed")
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.weightstats import ttost_paired

    given = differences(seed)
    if given.std() > 0:
        theirs = ttost_paired(given, np.zeros(len(given)), -0.2, 0.2)[0]
        assert equivalence(paired_of(given), 0.2).p == pytest.approx(theirs, rel=1e-10)
    ps = np.random.default_rng(seed).random(7) ** 3
    for ours, name in {"holm": "holm", "bh": "fdr_bh"}.items():
        assert correct(ps.tolist(), ours) == pytest.approx(multipletests(ps, method=name)[1])


# ------------------------------------------------------------------ corrections


@pytest.mark.small
@pytest.mark.parametrize("seed", range(20))
def test_corrections_follow_their_definitions(seed):
    random = np.random.default_rng(seed)
    ps = (random.integers(0, 11, random.integers(0, 8)) / 10 * random.random()).tolist()
    m = len(ps)
    ranked = sorted(ps)
    holm = [max(min(1, (m - j) * q) for j, q in enumerate(ranked) if q <= p) for p in ps]
    bh = [min(min(1, q * m / (j + 1)) for j, q in enumerate(ranked) if q >= p) for p in ps]
    # Of those that are equal, step-down takes the largest factor and step-up the smallest.
    assert correct(ps, "holm") == pytest.approx(holm, rel=1e-14)
    assert correct(ps, "bh") == pytest.approx(bh, rel=1e-14)
    assert correct(ps, "none") == ps
    if m:
        theirs = stats.false_discovery_control(ps)
        assert correct(ps, "bh") == pytest.approx(theirs.tolist(), rel=1e-12)


@pytest.mark.small
@pytest.mark.parametrize("method", CORRECTIONS)
def test_what_has_no_p_is_not_corrected(method):
    ps = [0.5, 0.01, 0.03]
    expected = correct(ps, method)
    assert correct([None, 0.5, None, 0.01, 0.03], method) == [
        None,
        expected[0],
        None,
        *expected[1:],
    ]
    assert correct([], method) == []
    assert correct([None], method) == [None]


@pytest.mark.small
# ------------------------------------------------------------------ resampling


@pytest.mark.small
@pytest.mark.parametrize("n", range(1, 13))
def test_randomization_of_few_is_the_share_of_all_signs(n):
    random = np.random.default_rng(n)
    for given in (random.normal(0.4, 1, n), random.integers(-2, 4, n) / 10):
        signs = np.array(list(itertools.product([-1, 1], repeat=n)))
        share = np.mean(np.abs(signs @ given) >= abs(given.sum()) - 1e-12)
        with_zeros = paired_of(np.concatenate([given, np.zeros(5)]))
        assert run_test("randomization", with_zeros).p == pytest.approx(share, rel=1e-14)


def test_sums_that_are_equal_but_for_rounding_count_as_equal():
    # 0.1 + 0.2 is not 0.3 in float64, and both come from the same rank and the same labels.
    given = np.array([0.1, 0.2, -0.3] * 4 + [0.3])
    random = run_test("randomization", paired_of(given)).p
    tenths = np.round(given * 10).astype(int)
    signs = np.array(list(itertools.product([-1, 1], repeat=13)))
    share = np.mean(np.abs(signs @ tenths) >= abs(tenths.sum()))
    assert abs(random - share) < 4 * math.sqrt(share * (1 - share) / REPLICATES)


@pytest.mark.parametrize("values", [1, 5, 40, 400])
@pytest.mark.parametrize("n", [14, 200, 3000])
def test_random_signs_have_the_moments_of_their_distribution(n, values):
    random = np.random.default_rng(n + values)
    given = random.choice(random.normal(0, 1, values), n)
    sums = flipped_sums(paired_of(given), 40_000, 7)
    spread = math.sqrt((given**2).sum())
    assert abs(sums.mean()) < 4 * spread / 200
    fourth = 3 - 2 * (given**4).sum() / (given**2).sum() ** 2  # the kurtosis of the sum
    assert (sums**2).mean() == pytest.approx(spread**2, rel=4 * math.sqrt(fourth - 1) / 200)
    if values == 1:  # then the number of positive signs is binomial
        positive = np.round((sums / abs(given[0]) + n) / 2).astype(int)
        check_binomial(positive, n, 0.5)


def check_binomial(drawn: np.ndarray, n: int, p: float) -> None:
    """Chi-squared over bins of about equal chance."""
    edges = np.unique(stats.binom.ppf(np.linspace(0, 1, 30)[1:-1], n, p))
    chances = np.diff(np.concatenate([[0], stats.binom.cdf(edges, n, p), [1]]))
    counts = np.bincount(np.searchsorted(edges, drawn), minlength=len(chances))
    kept = chances * len(drawn) > 5
    expected = chances[kept] / chances[kept].sum() * counts[kept].sum()
    assert stats.chisquare(counts[kept], expected).pvalue > 1e-4


@pytest.mark.parametrize("seed", range(4))
def test_randomization_is_scipys_within_its_error(seed):
    random = np.random.default_rng(seed)
    given = np.round(random.exponential(1, 150) - 0.85, 1 + seed % 2)
    paired = paired_of(given)
    theirs = stats.permutation_test(
        (given,), np.sum, permutation_type="samples", n_resamples=9_999, rng=random
    )
    ours = run_test("randomization", paired)
    p = theirs.pvalue
    assert abs(ours.p - p) < 4 * math.sqrt(2 * p * (1 - p) / REPLICATES)


@pytest.mark.parametrize("kind", ["repeated", "distinct", "mixed"])
def test_threads_and_parts_change_no_bit(kind):
    random = np.random.default_rng(1)
    rounded = np.round(random.normal(0.01, 1, 6000), 1)
    distinct = random.normal(0.01, 1, 6000)
    given = {"repeated": rounded, "distinct": distinct}.get(
        kind, np.concatenate([rounded, distinct])
    )
    expected = run_test("randomization", paired_of(given), replicates=3000, threads=1)
    shuffled = random.permutation(given)
    merged = paired_of(shuffled[2000:]).merge(paired_of(shuffled[:2000]))
    assert run_test("randomization", merged, replicates=3000, threads=3) == expected
    assert run_test("randomization", merged, replicates=3000, seed=1) != expected
    few, many = flipped_sums(merged, 1500, 5), flipped_sums(merged, 3000, 5)
    assert few.tobytes() == many[:1500].tobytes()


# ------------------------------------------------------------------ edges


def all_tests(given: list[float]) -> dict[str, tuple]:
    paired = paired_of(np.array(given, np.float64))
    told = {name: run_test(name, paired, replicates=99) for name in TESTS}
    told["equivalence"] = equivalence(paired, 0.1)
    told["noninferiority"] = noninferiority(paired, 0.1)
    found = {name: (one.p, one.low, one.high) for name, one in told.items()}
    for values in found.values():
        assert all(value is None or math.isfinite(value) for value in values)
    return found


@pytest.mark.small
def test_without_queries_no_test_says_anything():
    assert set(all_tests([]).values()) == {(None, None, None)}


@pytest.mark.small
@pytest.mark.parametrize("n", [1, 2, 40])
def test_a_system_against_itself(n):
    found = all_tests([0.0] * n)
    for name in TESTS:
        interval = (0.0, 0.0) if name == "t" else (None, None)
        assert found[name] == (1.0, *interval)
    assert found["equivalence"] == (None, None, None)


@pytest.mark.small
@pytest.mark.parametrize("n", [1, 2, 20])
def test_the_same_difference_everywhere_has_no_t(n):
    found = all_tests([0.25] * n)
    for name in ("t", "equivalence", "noninferiority"):
        assert found[name] == (None, None, None)
    assert found["wilcoxon"][0] == 2 * 0.5**n
    assert found["randomization"][0] == (2 * 0.5**n if n < 12 else 0.01)


@pytest.mark.small
@pytest.mark.parametrize("given", [[0.3, 0.3, -0.1, 0, 1], [1, -1, 0.5, 0, -0.5], [2, -1, -1, 0]])
def test_intervals_mirror_when_systems_are_swapped(given):
    one, other = (t_test(paired_of(sign * np.array(given))) for sign in (1.0, -1.0))
    assert (one.p, one.low, one.high) == (other.p, -other.high, -other.low)


@pytest.mark.small
def test_one_query_decides():
    found = all_tests([0.0] * 30 + [1.0])
    assert [found[name][0] for name in ("randomization", "wilcoxon")] == [1.0, 1.0]
    assert found["t"][0] == pytest.approx(stats.ttest_1samp([0.0] * 30 + [1.0], 0).pvalue)


@pytest.mark.small
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-30, 1e30, 1e139])
def test_numbers_of_any_size_have_a_p(scale):
    given = [1.0, 2.0, -1.0, 3.0, 2.0, 0.0, 5.0]
    expected = all_tests(given)
    found = all_tests([one * scale for one in given])
    for name in ("randomization", "wilcoxon"):
        assert found[name] == expected[name]
    if scale > 1e-150:  # below, squares and with them the variance are 0 in float64
        assert found["t"][0] == pytest.approx(expected["t"][0], rel=1e-9)
