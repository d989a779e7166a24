"""Options of a gate together: overlap, weights, clusters, a covariate, slices and the history."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from statsmodels.regression.linear_model import OLS

import rankmill
from flat import flat
from rankmill import gate, gate_power
from rankmill.nightly.history import History

N = 300
RULE = "map@2 drop <= 5% confidence 0.95"
SLICED = "map@2[land=*] drop <= 5%"
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
LABELS = pa.table(
    {
        "user_id": range(N),
        "items": [[1]] * N,
        "land": ["it" if query < 100 else "de" for query in range(N)],
        "number": [float(query % 7) for query in range(N)],
    }
)
ALL = set(range(N))


def lists(right):
    """Return predictions whose first item is the label of the queries in `right`."""
    return pa.table({"user_id": range(N), "items": [[1] if q in right else [9] for q in range(N)]})


def some(seed, rate=0.6):
    return {*np.flatnonzero(np.random.default_rng(seed).random(N) < rate).tolist()}


def values(right, **options):
    found = flat(rankmill.evaluate, LABELS, lists(right), ["map@2"], per_query=True, **options)
    return found.per_query


def test_power_of_rules_that_are_not_paired_is_that_of_all_queries():
    before = values(some(1)).slice(0, 150).replace_schema_metadata(None)
    whole, italy = gate_power(
        LABELS, lists(some(2)), [RULE, "map@2[land=it] drop <= 5%"], baseline=before
    ).rules
    assert 0.1 < whole.smallest < 0.4
    paired = gate_power(LABELS, lists(some(2)), RULE, baseline=values(some(1))).rules[0]
    assert paired.smallest < whole.smallest
    assert italy.smallest > whole.smallest


def test_a_slice_that_only_the_run_of_the_history_has_is_bad_volume(tmp_path):
    lands = ["it"] * 100 + ["de"] * 195 + ["fr"] * 5
    labels = LABELS.set_column(2, "land", pa.array(lands))
    History(tmp_path).record(gate(labels, lists(ALL), "map@2 >= 0.1", by="land"), time=FIRST)
    later = {"baseline": "last", "history": tmp_path, "time": FIRST + timedelta(1)}
    gone = labels.slice(100, 195)
    found = flat(gate, gone, lists(ALL), SLICED, **later)
    assert (found.word, found.exit_code) == ("bad volume", 1)
    words = {one.slice: (one.word, one.baseline) for one in found.outcomes}
    assert words == {
        "land = de": ("held", 1.0),
        "land = it": ("bad volume", 1.0),
        "land = fr": ("not enough data", None),  # five queries may be none by chance
    }
    assert found.outcomes[2].reason == (
        "map@2 where land = it: no queries, and 100 in the baseline (limit <= 5%)"
    )
    new = labels.set_column(2, "land", pa.array(["es"] * 100 + lands[100:]))
    spain = {one.slice: one for one in flat(gate, new, lists(ALL), SLICED, **later).outcomes}[
        "land = es"
    ]
    assert spain.word == "not enough data"
    assert spain.reason == "new slice land = es, 100 queries, map@2 1: no baseline yet"


def test_a_slice_of_two_columns_is_found_again_in_either_order(tmp_path):
    cut = ["map@2 >= 0.1", "map@2[land=*, label_count=*] >= 0.1"]
    History(tmp_path).record(gate(LABELS, lists(ALL), cut, by=["land", "label_count"]), time=FIRST)
    later = {"baseline": "last", "history": tmp_path, "time": FIRST + timedelta(1)}
    for by in (["land", "label_count"], ["label_count", "land"]):
        rules = "map@2[label_count=*, land=*] drop <= 50%"
        whole = flat(gate, LABELS, lists(ALL), rules, by=by, **later)
        assert [one.word for one in whole.outcomes] == ["held"] * 2
        half = flat(gate, LABELS.slice(100), lists(ALL), rules, by=by, **later)
        assert sorted(one.word for one in half.outcomes) == ["bad volume", "held"]


def weighted(sigma):
    drawn = np.exp(sigma * np.random.default_rng(1).normal(size=N))
    return LABELS.append_column("w", pa.array(drawn))


def test_a_run_of_the_history_tells_how_many_queries_its_weights_leave(tmp_path):
    heavy, even = weighted(2.5), weighted(0.0)
    first = gate(rankmill.Labels(heavy, weight="w"), lists(some(1)), "map@2 >= 0.01", by="land")
    left = first.result.effective_queries
    assert left < 10
    History(tmp_path).record(first, time=FIRST)
    later = {"history": tmp_path, "time": FIRST + timedelta(1), "weight": "w"}
    rules = ["map@2 drop <= 5% confidence 0.95", SLICED]
    found = flat(gate, even, lists(some(2)), rules, baseline="last", **later)
    assert [one.word for one in found.outcomes] == ["not enough data"] * 3
    # As few queries of equal weight as these weights leave say as little.
    assert found.outcomes[0].low is None or found.outcomes[0].low < -0.5


def test_a_rule_about_the_value_does_not_heed_the_weights_of_the_baseline():
    before = rankmill.evaluate(
        rankmill.Labels(weighted(2.5), weight="w"), lists(some(1)), ["map@2"]
    )
    rule = "map@2 >= 0.3 confidence 0.95"
    found = gate(rankmill.Labels(weighted(0.0), weight="w"), lists(some(2)), rule, baseline=before)
    alone = gate(rankmill.Labels(weighted(0.0), weight="w"), lists(some(2)), rule)
    assert found.outcomes[0].word == "held"
    assert found.outcomes[0].reason == alone.outcomes[0].reason


def test_queries_of_weight_0_are_none_of_the_queries_of_a_value():
    zeros = LABELS.append_column("w", pa.array([1.0] * 50 + [0.0] * (N - 50)))
    rule = "map@2 >= 0.1 confidence 0.95"
    found = gate(rankmill.Labels(zeros, weight="w"), lists(some(1)), rule).outcomes[0]
    few = gate(LABELS.slice(0, 50), lists(some(1)).slice(0, 50), rule).outcomes[0]
    assert (found.low, found.high) == pytest.approx((few.low, few.high), rel=1e-9)


def test_the_slices_of_a_night_are_those_of_all_its_queries(tmp_path):
    new = lists(ALL - set(range(50)))
    found = gate(LABELS, new, SLICED, baseline=values(ALL).slice(40))
    alone = gate(LABELS, new, "map@2 >= 0.1", by="land")
    assert {one.slice: (one.value, one.queries) for one in found.slices[1:]} == {
        "it": (0.5, 100),
        "de": (1.0, 200),
    }
    assert found.slices == alone.slices


TOKYO = timezone(timedelta(hours=9))


def test_a_try_of_a_night_does_not_serve_it_whatever_the_zone_of_its_time(tmp_path):
    def night(day, right, rule, **options):
        time = datetime(2026, 1, day, 0, 30, tzinfo=TOKYO)  # the day before in UTC
        found = flat(gate, LABELS, lists(right), rule, history=tmp_path, time=time, **options)
        History(tmp_path).record(found, time=time)
        return found.outcomes[0]

    night(1, ALL, "map@2 >= 0.1")
    night(2, some(1), "map@2 >= 0.1")
    again = night(2, some(1), "map@2 drop <= 5%", baseline="last")
    assert (again.word, again.baseline) == ("regressed", 1.0)


def test_a_time_needs_its_zone(tmp_path):
    History(tmp_path).record(gate(LABELS, lists(ALL), "map@2 >= 0.1"), time=FIRST)
    options = {"baseline": "last", "history": tmp_path, "time": datetime(2026, 1, 3)}
    with pytest.raises(rankmill.UsageError, match="expected one with its zone"):
        flat(gate, LABELS, lists(ALL), RULE, **options)


def test_an_adjusted_value_is_called_so_and_only_where_there_is_one():
    later = LABELS.slice(20)
    found = gate(LABELS, lists(some(2)), RULE, baseline=values(some(1)).slice(20), adjust="number")
    one = found.outcomes[0]
    assert f"{one.paired_value:.6g} adjusted over the queries of both" in one.reason
    assert "drops over all queries, and the values given with them, are adjusted by number" in (
        found.notes
    )
    paired = gate(later, lists(some(2)).slice(20), RULE, baseline=values(some(1)).slice(20))
    assert one.paired_value != pytest.approx(paired.outcomes[0].value, rel=1e-9)
    few = gate(LABELS, lists(some(2)), RULE, baseline=values(some(1)).slice(100), adjust="number")
    assert few.outcomes[0].paired == 0
    assert few.notes[-1].endswith("compare the values as a whole, and adjust nothing by number")
    assert not any("are adjusted" in note for note in few.notes)


def test_clusters_that_are_not_paired_add_up_their_errors():
    skip = {"semantics": {"unpredicted": "skip"}, "cluster": "who"}
    users = np.random.default_rng(4).integers(0, 30, N)
    labels = LABELS.append_column("who", pa.array([f"u{user}" for user in users]))
    old, new = lists(some(1)).slice(0, 200), lists(some(2)).slice(100)
    rules = ["map@2 drop <= 0.05 confidence 0.9", "map@2[land=de] drop <= 0.05 confidence 0.9"]
    found = flat(gate, labels, new, rules, baseline=old, **skip).outcomes
    for one, (first, last) in zip(found, [(0, 200), (100, 200)], strict=True):
        right = (some(1), slice(first, last)), (some(2), slice(100, N))
        (base, base_error, of_base), (value, error, of_value) = (
            robust(np.isin(np.arange(N), [*hits])[part] * 1.0, users[part]) for hits, part in right
        )
        both = np.hypot(error, base_error)
        freedom = both**4 / (error**4 / of_value + base_error**4 / of_base)
        half = stats.t.ppf(0.95, freedom) * both
        assert (one.paired, one.value, one.baseline) == (
            0,
            pytest.approx(value),
            pytest.approx(base),
        )
        assert 0 <= base - value - half - one.low < 0.02
        assert one.high >= base - value + half - 1e-12  # what was not seen may add to it
    bare = values(some(1)).slice(0, 200).replace_schema_metadata(None)
    with pytest.raises(rankmill.UsageError, match="only the baseline has have no clusters"):
        flat(gate, labels, new, rules, baseline=bare, **skip)


def robust(numbers, users):
    """Return a mean, its cluster-robust error of statsmodels, and the degrees of freedom."""
    how = {"cov_type": "cluster", "cov_kwds": {"groups": users}}
    fit = OLS(numbers, np.ones(len(numbers))).fit(**how)
    sizes = np.unique(users, return_counts=True)[1]
    effective = sizes.sum() ** 2 / (sizes**2).sum()
    return fit.params[0], fit.bse[0], (effective - 1) / (1 + 2 * (1 - effective / len(sizes)))


@pytest.mark.parametrize(
    ("one", "other", "unit"), [("5%", "5%", 1.0), ("0.1", "1e79", 1e80)], ids=["share", "number"]
)
def test_gains_of_any_size_have_the_same_verdict(one, other, unit):
    random = np.random.default_rng(7)
    gains, ranks = 1 + random.random(80), [random.permutation(4)[:3].tolist() for _ in range(80)]
    old, new = (pa.table({"user_id": range(40), "items": ranks[i::2]}) for i in range(2))

    def ends(scale, limit, paired):
        queries = np.repeat(range(40), 2)
        labels = pa.table({"user_id": queries, "item": [1, 2] * 40, "gain": gains * scale})
        before = old if paired else rankmill.evaluate(labels, old, ["dcg@3"])
        found = gate(labels, new, f"dcg@3 drop <= {limit} confidence 0.95", baseline=before)
        return found.outcomes[0].low, found.outcomes[0].high

    for paired in (True, False):
        small, large = ends(1.0, one, paired), ends(1e80, other, paired)
        assert large == pytest.approx([end * unit for end in small])


def test_ten_heavy_queries_that_alone_differ_show_no_more_than_to_t():
    """Their skewness is that of chance: the bound alone was wrong in 5 % of nights, and not 2.5."""
    count = 410
    labels = pa.table({"user_id": range(count), "items": [[1]] * count})
    labels = labels.append_column("w", pa.array([5.0] * 10 + [1.0] * 400))
    old, new = ([[1]] * 410 for _ in range(2))
    old, new = [[2]] * 2 + old[2:], new[:2] + [[2]] * 8 + new[10:]
    old, new = (pa.table({"user_id": range(count), "items": one}) for one in (old, new))
    given = rankmill.Labels(labels, weight="w")
    (one,) = gate(given, new, "hit@1 drop <= 0", baseline=old).outcomes
    assert one.word == "not enough data"
    assert one.low < 0 < one.high
    even = rankmill.Labels(labels.set_column(2, "w", pa.array([2.0] * count)), weight="w")
    plain = labels.select([0, 1])
    ends = [gate(each, new, "hit@1 drop <= 0", baseline=old).outcomes[0] for each in (even, plain)]
    assert ends[0].low == pytest.approx(ends[1].low, rel=1e-9)
