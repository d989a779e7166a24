"""Rules that no run breaks, that none keeps, or that are never decided are refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankmill
from rankmill import gate
from rankmill.analysis.compare.differences.comparison_state import column_of
from rankmill.metrics.registry import REGISTRY, parse
from rankmill.nightly.rules.measurements import (
    MeasuredSide,
    Measurement,
    detected,
    drop_of,
    interval_of,
    word_of,
)
from rankmill.nightly.rules.rules import parse_rule


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("map@12 drop <= 1", "nothing breaks it, .* from -1 to 1; did you mean 1%"),
        ("map@12 drop <= 100%", "nothing breaks it, .* 100% at most"),
        ("map@12 drop <= 250%", "nothing breaks it"),
        ("map@12 >= -1", "nothing breaks it, as map@12 is from 0 to 1"),
        ("map@12 >= 0", "nothing breaks it"),
        ("map@12 <= 1", "nothing breaks it"),
        ("map@12:median <= 1", "nothing breaks it"),
        ("map@12:above=0.5 <= 1", "nothing breaks it"),
        ("map@12 > 1", "nothing keeps it"),
        ("map@12 >= 8", "nothing keeps it, as map@12 is from 0 to 1"),
        ("map@12 == 2", "nothing keeps it"),
        ("map@12[country=*] drop <= 1", "nothing breaks it"),
        ("map@12 drop < -1", "nothing keeps it"),
        ("map@12 drop < 1", "breaks it; did you mean 1%"),
        ("first_rank <= 0.5", "nothing keeps it, as first_rank is 1 at least"),
        ("first_rank >= 1", "nothing breaks it"),
        ("first_rank drop <= -100.1%", "nothing keeps it"),
        ("queries >= 0", "nothing breaks it"),
        ("queries_only_labelled <= 100%", "nothing breaks it"),
        ("queries change <= -5%", "nothing keeps it"),
        ("predictions_age >= 0h", "nothing breaks it"),
        ("map@12:median >= 0.5 confidence 0.95", "no interval: .* or a rule for its mean"),
        ("map@12:p10 drop <= 5% confidence 0.95", "no interval"),
        ("ece <= 0.1 confidence 0.95", "ece has no interval: write confidence none"),
        ("auprc drop <= 5% confidence 0.95", "no interval"),
        ("coverage@12 >= 0.5 confidence 0.95", "no interval"),
        ("map@12[country=a,country=b] drop <= 1%", "names country twice"),
    ],
)
def test_rules_that_decide_nothing_are_refused_before_any_work(rule, message):
    with pytest.raises(rankmill.UsageError, match=message):
        gate("no such file", "no such file", [rule], baseline="x")


@pytest.mark.parametrize(
    "rule",
    [
        *("map@12 drop <= 99%", "map@12 drop <= 0.99", "map@12 > 0", "map@12 < 1"),
        *("map@12 >= 1", "map@12 == 1", "map@12:sum >= 400", "first_rank drop <= 300%"),
        *("first_rank drop <= 5", "utility >= -5", "repeated_items <= 5000", "queries > 0"),
        *("repeated_items <= 100%", "queries change <= 400%", "ece drop <= 400%"),
        *("novelty@12 drop <= 3 confidence 0.9", "gap drop <= 5% confidence 0.9"),
    ],
)
def test_rules_that_may_be_broken_and_kept_are_taken(rule):
    assert parse_rule(rule).text == rule


def test_gap_without_an_interval_is_refused_before_any_work():
    rule = "gap >= 0.5 confidence 0.9"
    with pytest.raises(rankmill.UsageError, match="does not know the order of gap_ties"):
        gate("no such file", "no such file", rule, semantics={"gap_ties": "given"})
    result = rankmill.evaluate({1: [2]}, {1: {2: 0.5}}, ["gap"])
    with pytest.raises(rankmill.UsageError, match="predictions are needed for it"):
        gate(None, result, rule)
    assert gate(None, result, "gap >= 0.5").word == "held"


@given(
    st.sampled_from([one for one in REGISTRY.values() if one.better != "neither"]),
    st.booleans(),
    st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.3, 1.0, 1.5, 40.0]),
    st.lists(st.floats(0, 1), min_size=2, max_size=2),
)
def test_a_rule_that_is_refused_has_one_word_for_all_values(spec, relative, limit, shares):
    low, high = parse(spec.example).bounds
    ends = max(low, -50.0), min(high, 50.0)
    value, base = (ends[0] + share * (ends[1] - ends[0]) for share in shares)
    text = f"{spec.example} drop <= {100 * limit if relative else limit}{'%' * relative}"
    found = drop_of(
        Measurement(MeasuredSide(value, None, 9), MeasuredSide(base)),
        None,
        relative=relative,
        better=spec.better,
    )
    if found is None:
        return
    refused = None
    try:
        parse_rule(text)
    except rankmill.UsageError as error:
        refused = str(error)
    if refused is not None:
        assert ("breaks" in refused) == (found.number <= limit + 1e-9)


def test_what_few_differences_detect_is_seen_and_not_much_more():
    """What was not seen does not grow with a drop: up to four times the drop was told."""
    draw, rule = np.random.default_rng(0), parse_rule("mrr drop <= 2%")
    old = np.where(draw.random(200) < 0.7, 1 / draw.integers(1, 11, 200), 0.0)
    old[:4] = 0.5

    def measured(lost):
        new = old.copy()
        new[:4] = 1.0, 1.0, 0.0, 0.0
        new[draw.permutation(200)[: round(200 * lost)]] = 0.0
        base = column_of(old, None, None, moments="pairs")
        return Measurement.of(column_of(new, old, None, moments="pairs"), base, (0.0, 1.0))

    told = detected(rule, measured(0), 0.95)
    nights = [interval_of(rule, measured(told), 0.95) for _ in range(100)]
    assert told < 0.35
    assert sum(word_of(rule, one, 0.95) == "regressed" for one in nights) >= 80


@pytest.mark.parametrize("limit", ["120%", "20%"])
@pytest.mark.parametrize("paired", [True, False])
def test_more_than_all_may_be_lost_where_values_are_below_0(limit, paired):
    """An interval that ended at 100 % was held at a limit of 120 %, whatever was lost."""
    draw = np.random.default_rng(0)
    old = draw.choice([1.0, 0.2], 400)
    rule = parse_rule(f"kendall_tau drop <= {limit}")
    for lost, word in ((0.0, "held"), (1.2, "regressed")):
        new = np.where(draw.random(400) < 0.8, old - lost, old)
        theirs = column_of(old, None, None, moments="pairs")
        mine = column_of(new, old if paired else None, None, moments="pairs")
        one = Measurement.of(mine, theirs if paired else None, (-1.0, 1.0))
        one = one if paired else one._replace(theirs=MeasuredSide.of(theirs))
        found = interval_of(rule, one, 0.95)
        assert found.low <= found.number <= found.high
        assert word_of(rule, found, 0.95) == word
        assert (found.high > 1) == (lost > 0)
        shown = (old.mean() - new.mean()) / old.mean()
        assert found.number == pytest.approx(shown)
    # Nothing is known of a share of a baseline that may be below 0 itself.
    one = Measurement(MeasuredSide(0.1, 0.2, 40), MeasuredSide(0.05, 0.2, 40), bounds=(-1.0, 1.0))
    found = interval_of(rule, one, 0.95)
    assert (found.low, found.high) == (-math.inf, math.inf)
    none = one._replace(theirs=MeasuredSide(0.0, 0.2, 40))
    assert word_of(rule, interval_of(rule, none, 0.95), 0.95) == "not enough data"


@pytest.mark.parametrize("spec", REGISTRY.values(), ids=lambda one: one.name)
def test_ranges_have_two_ends(spec):
    low, high = parse(spec.example).bounds
    assert low < high
    assert not math.isnan(low)
