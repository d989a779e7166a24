"""Tests of differences, beside SciPy, statsmodels and the enumeration of all cases."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from rankmill.analysis.statistics.bootstrap import bootstrap_means, flipped_sums
from rankmill.analysis.statistics.outcome import CORRECTIONS, correct
from rankmill.analysis.statistics.paired_differences import paired_of
from rankmill.analysis.statistics.significance import (
    TESTS,
    equivalence,
    noninferiority,
    run_test,
    t_test,
    tukey,
)
from rankmill.errors import InputError
from strategies import some

RESAMPLING = ("randomization", "bootstrap", "bca")
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
def test_sign_is_scipys(seed):
    given = differences(seed)
    won, lost = int((given > 0).sum()), int((given < 0).sum())
    found = run_test("sign", paired_of(given))
    expected = stats.binomtest(won, won + lost).pvalue if won + lost else 1.0
    assert found.p == pytest.approx(expected, rel=1e-10)


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
    for ours, name in {"holm": "holm", "bh": "fdr_bh", "bonferroni": "bonferroni"}.items():
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
    assert correct(ps, "bonferroni") == pytest.approx([min(1, p * m) for p in ps])
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


@pytest.mark.parametrize(
    ("ones", "zeros"),
    [(1, 9), (5, 200), (95, 5), (100, 100), (100, 5000), (1024, 1024), (3000, 900), (1500, 10**6)],
)
def test_the_number_of_draws_of_a_value_is_binomial(ones, zeros):
    paired = paired_of(np.repeat([0.0, 1.0, -1e-9], [zeros, ones, 7]))
    means = bootstrap_means(paired, 40_000, 3)
    drawn = np.round(means * paired.n).astype(int)
    check_binomial(drawn, paired.n, ones / paired.n)


def check_binomial(drawn: np.ndarray, n: int, p: float) -> None:
    """Chi-squared over bins of about equal chance."""
    edges = np.unique(stats.binom.ppf(np.linspace(0, 1, 30)[1:-1], n, p))
    chances = np.diff(np.concatenate([[0], stats.binom.cdf(edges, n, p), [1]]))
    counts = np.bincount(np.searchsorted(edges, drawn), minlength=len(chances))
    kept = chances * len(drawn) > 5
    expected = chances[kept] / chances[kept].sum() * counts[kept].sum()
    assert stats.chisquare(counts[kept], expected).pvalue > 1e-4


@pytest.mark.parametrize("seed", range(4))
def test_monte_carlo_tests_are_scipys_within_their_error(seed):
    random = np.random.default_rng(seed)
    given = np.round(random.exponential(1, 150) - 0.85, 1 + seed % 2)
    paired = paired_of(given)
    theirs = stats.permutation_test(
        (given,), np.sum, permutation_type="samples", n_resamples=9_999, rng=random
    )
    ours = run_test("randomization", paired)
    p = theirs.pvalue
    assert abs(ours.p - p) < 4 * math.sqrt(2 * p * (1 - p) / REPLICATES)
    for name, method in {"bootstrap": "percentile", "bca": "BCa"}.items():
        found = run_test(name, paired, confidence=0.9)
        boot = stats.bootstrap(
            (given,), np.mean, n_resamples=9_999, method=method, confidence_level=0.9, rng=random
        )
        # The error of a quantile is sqrt(p (1 - p) / B) / density, here of a normal distribution;
        # BCa's quantiles move with the error of the bias, too.
        near = np.std(given) / math.sqrt(150) * math.sqrt(2 * 0.05 * 0.95 / REPLICATES) / 0.103
        near *= 4 if name == "bootstrap" else 6
        interval = boot.confidence_interval
        assert (found.low, found.high) == pytest.approx(tuple(interval), abs=near)
        t = t_test(paired, 0.9)
        assert found.p == pytest.approx(t.p, abs=0.05)
        if name == "bca" and 0.0002 < found.p < 0.9:  # its p is where its interval ends at 0
            at = run_test(name, paired, confidence=1 - found.p)
            assert min(abs(at.low), abs(at.high)) < near


@pytest.mark.parametrize("kind", ["repeated", "distinct", "mixed"])
@pytest.mark.parametrize("name", RESAMPLING)
def test_threads_and_parts_change_no_bit(kind, name):
    random = np.random.default_rng(1)
    rounded = np.round(random.normal(0.01, 1, 6000), 1)
    distinct = random.normal(0.01, 1, 6000)
    given = {"repeated": rounded, "distinct": distinct}.get(
        kind, np.concatenate([rounded, distinct])
    )
    expected = run_test(name, paired_of(given), replicates=3000, threads=1)
    shuffled = random.permutation(given)
    merged = paired_of(shuffled[2000:]).merge(paired_of(shuffled[:2000]))
    assert run_test(name, merged, replicates=3000, threads=3) == expected
    assert run_test(name, merged, replicates=3000, seed=1) != expected
    first = flipped_sums(merged, 1500, 5), bootstrap_means(merged, 1500, 5)
    more = flipped_sums(merged, 3000, 5), bootstrap_means(merged, 3000, 5)
    for few, many in zip(first, more, strict=True):
        assert few.tobytes() == many[:1500].tobytes()


# ------------------------------------------------------------------ Tukey's


def test_tukey_of_two_systems_is_the_randomization_test():
    random = np.random.default_rng(0)
    values = random.random((60, 2)) + np.array([0.1, 0.0])
    paired = paired_of(values[:, 0] - values[:, 1])
    p = run_test("randomization", paired).p
    assert abs(tukey(values)[0, 1] - p) < 4 * math.sqrt(2 * p * (1 - p) / REPLICATES)


@pytest.mark.small
def test_tukey_of_few_queries_is_the_share_of_all_orders():
    values = np.array([[0.1, 0.2, 0.9], [0.3, 0.1, 0.8], [0.2, 0.2, 0.7], [0.5, 0.5, 0.5]])
    orders = [list(map(list, itertools.permutations(row))) for row in values]
    ranges = np.array([np.ptp(np.sum(chosen, axis=0)) for chosen in itertools.product(*orders)])
    found = tukey(values, replicates=2000)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        share = np.mean(ranges >= abs(values[:, i].sum() - values[:, j].sum()) - 1e-12)
        assert abs(found[i, j] - share) < 4 * math.sqrt(share * (1 - share) / 2000) + 1 / 2000


def test_the_order_of_queries_and_systems_and_threads_change_no_bit_of_tukeys():
    random = np.random.default_rng(0)
    values = np.round(random.random((700, 5)) * [1.0, 1.01, 1.02, 1.1, 1.0], 2)
    expected = tukey(values, 2000, threads=1)
    places = random.permutation(5)
    found = tukey(random.permutation(values)[:, places], 2000, threads=3)
    for (i, j), p in found.items():
        assert p == expected[tuple(sorted((int(places[i]), int(places[j]))))]
    assert tukey(values, 2000, seed=1) != expected


@pytest.mark.small
def test_edges_of_tukeys():
    assert tukey(np.empty((0, 3))) == {(0, 1): None, (0, 2): None, (1, 2): None}
    assert tukey(np.ones((4, 2)), replicates=9) == {(0, 1): 1.0}
    assert tukey(np.ones((4, 1)), replicates=9) == {}
    with pytest.raises(InputError, match="not a finite number"):
        tukey(np.array([[0.0, np.nan]]))


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
        interval = (0.0, 0.0) if name in ("t", "bootstrap", "bca") else (None, None)
        assert found[name] == (1.0, *interval)
    assert found["equivalence"] == (None, None, None)


@pytest.mark.small
@pytest.mark.parametrize("n", [1, 2, 20])
def test_the_same_difference_everywhere_has_no_t(n):
    found = all_tests([0.25] * n)
    for name in ("t", "bootstrap", "bca", "equivalence", "noninferiority"):
        assert found[name] == (None, None, None)
    assert found["sign"][0] == found["wilcoxon"][0] == 2 * 0.5**n
    assert found["randomization"][0] == (2 * 0.5**n if n < 12 else 0.01)


@pytest.mark.small
@pytest.mark.parametrize("seed", range(6))
def test_the_p_of_bca_inverts_the_interval_that_is_shown(seed):
    draw = np.random.default_rng(seed)
    given = draw.choice([-1.0, 0.0, 0.0, 0.5, 1.0], 25) if seed % 2 else draw.normal(0.3, 1, 15)
    paired = paired_of(given)
    p = run_test("bca", paired, replicates=999).p
    for share in (0.5, 0.2, 0.1, 0.05, 0.02, 0.99 * p, 1.01 * p):
        found = run_test("bca", paired, replicates=999, confidence=1 - share)
        assert (found.low <= 0 <= found.high) == (p >= share)


@pytest.mark.small
def test_two_wins_among_ties_are_not_shown_by_bca():
    found = run_test("bca", paired_of(np.array([1.0] * 2 + [0.0] * 998)))
    assert found.low == 0
    assert found.p > 0.05


@pytest.mark.small
@pytest.mark.parametrize("name", ["t", "bootstrap", "bca"])
@pytest.mark.parametrize("given", [[0.3, 0.3, -0.1, 0, 1], [1, -1, 0.5, 0, -0.5], [2, -1, -1, 0]])
def test_intervals_mirror_when_systems_are_swapped(name, given):
    one, other = (
        run_test(name, paired_of(sign * np.array(given)), replicates=499) for sign in (1.0, -1.0)
    )
    assert (one.p, one.low, one.high) == (other.p, -other.high, -other.low)


@pytest.mark.small
def test_one_query_decides():
    found = all_tests([0.0] * 30 + [1.0])
    assert [found[name][0] for name in ("randomization", "wilcoxon", "sign")] == [1.0, 1.0, 1.0]
    assert found["t"][0] == pytest.approx(stats.ttest_1samp([0.0] * 30 + [1.0], 0).pvalue)
    assert found["bootstrap"][0] > 0.05
    far = run_test("bca", paired_of(np.array([0.0] * 400 + [1.0])), confidence=1 - 1e-12)
    assert 0 <= far.low < far.high <= 1  # where the acceleration would turn the quantiles round


@pytest.mark.small
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-30, 1e30, 1e139])
def test_numbers_of_any_size_have_a_p(scale):
    given = [1.0, 2.0, -1.0, 3.0, 2.0, 0.0, 5.0]
    expected = all_tests(given)
    found = all_tests([one * scale for one in given])
    for name in ("randomization", "wilcoxon", "sign"):
        assert found[name] == expected[name]
    if scale > 1e-150:  # below, squares and with them the variance are 0 in float64
        for name in ("t", "bootstrap", "bca"):
            assert found[name][0] == pytest.approx(expected[name][0], rel=1e-9)
