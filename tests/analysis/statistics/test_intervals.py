"""Intervals and claims where queries are few, alike, or near a baseline of 0."""

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import optimize, stats

import rankmill
from flat import flat
from rankmill.analysis.compare.differences.comparison_state import Sums, column_of
from rankmill.analysis.compare.differences.differences import Settings
from rankmill.analysis.compare.differences.judgement import differences, judged, relative_ends
from rankmill.analysis.statistics.unseen import (
    Spread,
    chance_below,
    with_unseen,
)
from rankmill.metrics.registry import REGISTRY, parse
from rankmill.nightly.rules.measurements import (
    MeasuredSide,
    Measurement,
    drop_of,
    value_of,
    word_of,
)
from rankmill.nightly.rules.rules import parse_rule
from strategies import some

pytestmark = pytest.mark.small

UNIT = (0.0, 1.0)


def measured(old, new, bounds=UNIT, weights=None):
    columns = column_of(new, old, weights, moments="pairs"), column_of(old, None, weights)
    return Measurement.of(*columns, bounds)


def word(rule, old, new, confidence=0.95, better="higher"):
    asked = parse_rule(rule)
    found = drop_of(measured(old, new), confidence, relative=asked.relative, better=better)
    return word_of(asked, found, confidence)


def compared(old, new, **options):
    """Compare two systems by hit@1 values of 0 and 1, or of precision@5 in fifths."""
    metric = options.pop("metric", "hit@1")
    labels = pa.table({"user_id": range(len(old)), "items": [[1, 2, 3, 4, 5]] * len(old)})

    def lists(values):
        return [[1, 2, 3, 4, 5][: round(5 * v)] + [9] * (5 - round(5 * v)) for v in values]

    runs = {
        name: pa.table({"user_id": range(len(old)), "items": lists(values)})
        for name, values in (("old", old), ("new", new))
    }
    return flat(rankmill.compare, labels, runs, metric, **options).differences[metric]["new"]


@pytest.mark.parametrize("hits", [0, 1, 3, 20, 49, 50])
def test_of_hits_the_bound_is_that_of_clopper_and_pearson(hits):
    values = np.repeat([1.0, 0.0], [hits, 50 - hits])
    found = value_of(measured(values, values), 0.95)
    low = stats.beta.ppf(0.025, hits, 51 - hits) if hits else 0.0
    high = stats.beta.isf(0.025, hits + 1, 50 - hits) if hits < 50 else 1.0
    assert (found.low, found.high) == pytest.approx((low, high), abs=2e-3)
    assert 0 <= found.low <= hits / 50 <= found.high <= 1


def test_with_many_queries_what_was_not_seen_adds_nothing():
    values = np.random.default_rng(0).normal(0.1, 0.3, 1_000_000).clip(-1, 1)
    low, high = value_of(measured(values, values, bounds=(-1.0, 1.0)), 0.95)[1:]
    half = 1.96 * stats.sem(values)
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=half / 99)


@pytest.mark.parametrize("seed", some(range(12), 3))
def test_a_ratio_is_refuted_where_the_t_test_refutes_it(seed):
    draw = np.random.default_rng(seed)
    b = (draw.random(12) < (0.2 if seed < 6 else 0.8)) * draw.random(12)
    v = b * draw.random(12) + 0.2 * draw.random(12)
    t = stats.t.ppf(0.975, 11)

    def shown(relative):
        rest = v - (1 + relative) * b
        return rest.mean() / stats.sem(rest)

    errors = stats.sem(v), stats.sem(b), stats.sem(v - b)
    low, high = relative_ends(v.mean(), b.mean(), errors, t, True)
    if low > -1:
        assert shown(low) == pytest.approx(t, rel=1e-6)
    else:
        assert shown(-1) <= t
    if high is None:
        assert all(shown(r) > -t for r in np.linspace(-1, 1000, 2001))
    else:
        assert shown(high) == pytest.approx(-t, rel=1e-6)
    assert low <= v.mean() / b.mean() - 1 <= (math.inf if high is None else high)


def test_one_hit_that_is_lost_is_no_drop():
    old, new = np.zeros(1000), np.zeros(1000)
    old[7] = 1
    assert word("hit@1 drop <= 50%", old, new, 0.999999) == "not enough data"
    found = drop_of(measured(old, new), 0.95, relative=True)
    assert (found.number, found.high) == (1.0, 1.0)
    assert found.low < -1
    one = compared(old, new)
    assert (one.relative, one.relative_low, one.relative_high) == (-1.0, -1.0, None)


@pytest.mark.parametrize("rule", ["hit@1 drop <= 3%", "hit@1 drop <= 0.03"])
def test_queries_that_are_alike_do_not_hold_a_rule(rule):
    for n in (2, 30, 100):
        for value in (0.0, 1.0):
            same = np.full(n, value)
            assert word(rule, same, same) == "not enough data"
    many = np.ones(3000)
    assert word(rule, many, many) == "held"
    # Twice nothing is no loss, but says nothing of a share of nothing.
    nothing = np.zeros(3000)
    assert word("hit@1 drop <= 3%", nothing, nothing) == "not enough data"
    assert word("hit@1 drop <= 0.03", nothing, nothing) == "held"


def test_one_loss_of_300_is_not_held_where_t_would():
    old, new = np.ones(300), np.ones(300)
    new[0] = 0
    found = drop_of(measured(old, new), 0.95, relative=False)
    t = stats.ttest_1samp(old - new, 0).confidence_interval(0.95)
    clopper = stats.beta.ppf(0.025, 1, 300), stats.beta.isf(0.025, 2, 299)
    assert t.high < 0.01 < found.high == pytest.approx(clopper[1], rel=0.02)
    assert found.low < clopper[0]  # one more query may gain
    assert word("hit@1 drop <= 0.01", old, new) == word("hit@1 drop <= 1%", old, new)
    assert word("hit@1 drop <= 0.01", old, new) == "not enough data"


def test_two_queries_do_not_regress():
    assert word("hit@1 drop <= 3%", np.ones(2), np.zeros(2)) == "not enough data"
    assert word("hit@1 drop <= 3%", np.ones(9), np.zeros(9)) == "regressed"


def test_values_that_are_alike_do_not_keep_a_limit():
    one = Measurement(MeasuredSide(1.0, 0.0, 2), bounds=UNIT)
    assert 0 < value_of(one, 0.95).low < math.sqrt(0.025)  # that of Clopper and Pearson
    assert value_of(one, 0.95).high == 1
    assert value_of(one._replace(bounds=(0.0, math.inf)), 0.95) == (1.0, None, None)
    down = value_of(Measurement(MeasuredSide(0.0, 0.0, 2), bounds=UNIT), 0.95)
    assert (down.low, down.high) == (0, pytest.approx(1 - value_of(one, 0.95).low))


@pytest.mark.parametrize(("by", "expected"), [(0.2, "better"), (0.01, "no difference shown")])
def test_queries_that_all_win_by_the_same(by, expected):
    if by == 0.2:
        one = compared([0.2] * 40, [0.4] * 40, metric="p@5")
        assert one.verdict == expected
        unseen = with_unseen(Spread(0.2, 0.0, 0.0, 1 / 40), -1.0)
        assert one.tests["t"].p == pytest.approx(2 * chance_below(unseen, 0.0))
        # That a share of 1 / 1.2 of all lose all.
        assert (1 / 1.2) ** 40 < one.tests["t"].p / 2 < 1.5 * (1 / 1.2) ** 40
        assert 0 < one.low < 0.2 < one.high
        swapped = compared([0.4] * 40, [0.2] * 40, metric="p@5")
        assert (swapped.low, swapped.high) == pytest.approx((-one.high, -one.low))
    unseen = with_unseen(Spread(by, 0.0, 0.0, 1 / 40), -1.0)
    chance = min(1.0, 2 * chance_below(unseen, 0.0))
    assert (chance <= 0.05) == (expected == "better")


def test_rounding_is_no_spread():
    old = np.random.default_rng(0).integers(0, 90, 40) / 100
    new = old + 0.01
    assert len(set(new - old)) > 1
    sums = Sums(40, {"map": {"a": column_of(old, None, None), "b": column_of(new, old, None)}})
    one = judged(differences(sums, "a", Settings(), 1), Settings())["map", "b"]
    assert one.verdict == "no difference shown"
    assert one.low < -0.05
    assert word("hit@1 drop <= 1%", new, old) == "not enough data"


def test_tied_queries_are_equal_only_if_there_are_many():
    for n, expected in ((2, "no difference shown"), (40, "no difference shown"), (80, "equal")):
        one = compared([0.2] * n, [0.2] * n, metric="p@5", margin=0.05)
        assert one.equivalence.p == pytest.approx(0.95**n, rel=0.2)
        assert one.verdict.startswith(expected)


def test_a_margin_heeds_what_was_not_seen_and_keeps_the_p_of_t():
    old, new = [0.2] * 60, [0.2] * 59 + [0.4]
    one = compared(old, new, metric="p@5", margin=0.02)
    values = np.array(new) - np.array(old)
    tail = stats.ttest_1samp(values, 0.02, alternative="less").pvalue
    assert one.equivalence.p == pytest.approx(tail)
    assert one.equivalence.p < 0.05 < one.equivalence.corrected_p
    assert one.verdict == "no difference shown"


def test_the_interval_of_a_relative_difference_is_fiellers():
    draw = np.random.default_rng(1)
    old = np.round(draw.random(80) * 5) / 5
    new = np.clip(old - (draw.random(80) < 0.3) / 5, 0, 1)
    one = compared(old.tolist(), new.tolist(), metric="p@5")
    t = stats.t.ppf(0.975, 79)

    def far(relative, sign):
        rest = new - (1 + relative) * old
        return rest.mean() / stats.sem(rest) - sign * t

    low, high = (optimize.brentq(far, -0.9, 0.5, args=(sign,)) for sign in (1, -1))
    assert (one.relative_low, one.relative_high) == pytest.approx((low, high), rel=1e-6)


def test_few_effective_queries_have_no_t():
    values, weights = np.random.default_rng(0).random(30), np.ones(30)
    weights[0] = 40
    one = measured(values, values * 0.5, weights=weights)
    wide = drop_of(one, 0.95, relative=True)
    assert wide.low < 0.3
    assert wide.high == 1 or wide.high > 0.7
    endless = one._replace(bounds=(0.0, math.inf))
    assert "effective queries" in endless.why
    assert drop_of(endless, 0.95, relative=True).low is None
    assert value_of(endless, 0.95).low is None


def test_ranges_are_read_from_their_texts():
    assert parse("map@5").spec.bounds == (0.0, 1.0)
    assert parse("first_rank").spec.bounds == (1.0, math.inf)
    for name in ("alpha_ndcg", "num_ret"):
        assert REGISTRY[name].bounds == (0.0, math.inf)
    assert REGISTRY["utility"].bounds == (-math.inf, math.inf)
    assert REGISTRY["ild_cosine"].bounds == (0.0, 2.0)


@pytest.mark.parametrize(("heavy", "told"), [(60, "no t test"), (6, "are rough"), (1.5, "")])
def test_few_effective_queries_are_told(heavy, told):
    n = 40
    weights = [heavy if q < 3 else 1.0 for q in range(n)]
    labels = pa.table({"user_id": range(n), "items": [[1]] * n, "w": weights})
    runs = {
        name: pa.table({"user_id": range(n), "items": [[int(q % m == 0)] for q in range(n)]})
        for name, m in (("a", 3), ("b", 2))
    }
    found = rankmill.compare(rankmill.Labels(labels, weight="w"), runs, "hit@1")
    assert (not told and not found.notes) or told in found.notes[0]
    one = found.differences["hit@1"]["b"]
    assert (one.verdict is None) == (one.low is None) == (told == "no t test")


@pytest.mark.parametrize("turned", [False, True])
def test_a_relative_interval_has_the_sign_of_the_difference(turned: bool) -> None:
    """A system that has no spread may have more unseen than the difference has."""
    labels = {query: ["a"] for query in range(60)}
    best = {key: ["a"] for key in labels}
    other = {query: ["b", "a"] if query % 5 == 0 else ["a"] for query in labels}
    runs = {"base": best, "new": other} if turned else {"base": other, "new": best}
    one = rankmill.compare(labels, runs, "mrr").differences["mrr"]["new"]
    if turned:
        assert one.high < 0
        assert one.relative_low < one.relative < one.relative_high <= 0
    else:
        assert one.low > 0
        assert 0 <= one.relative_low < one.relative < one.relative_high
