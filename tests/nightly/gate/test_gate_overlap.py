"""A baseline that shares few queries with a run is not paired with it."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import rankmill
from flat import flat
from rankmill import Rules, gate
from rankmill.nightly.history import History
from rankmill.nightly.rules.reports import junit, lines, markdown
from rankmill.package import GONE

N = 300
RULE = "map@2 drop <= 5% confidence none"


def lists(right, count=N):
    """Return predictions whose first item is the label of the queries in `right`."""
    items = [[1] if query in right else [9] for query in range(count)]
    return pa.table({"user_id": range(count), "items": items})


LABELS = pa.table(
    {
        "user_id": range(N),
        "items": [[1]] * N,
        "land": ["it" if query < 100 else "de" for query in range(N)],
    }
)
ALL = set(range(N))


def values(predictions, labels=LABELS, **options):
    return flat(
        rankmill.evaluate, labels, predictions, ["map@2"], per_query=True, **options
    ).per_query


def bare(table):
    """Return values of queries that do not tell their run."""
    return table.replace_schema_metadata(None)


def test_a_collapse_outside_of_the_queries_in_common_is_seen():
    old = lists(ALL)
    collapsed = lists(set(range(20)))
    earlier = values(old).slice(0, 20)
    for baseline in (earlier, bare(earlier)):
        (one,) = gate(LABELS, collapsed, RULE, baseline=baseline).outcomes
        assert (one.word, one.value, one.baseline) == ("regressed", 20 / N, 1.0)
        assert (one.paired, one.queries, one.paired_value) == (0, N, None)
        assert one.reason == (
            "map@2 is 0.0666667, 93.3% below the baseline of 1 (not paired, as only 20 of 300 "
            "queries are of both runs, limit <= 5%)"
        )
    lost = lists(set(range(270)))
    (one,) = gate(LABELS, lost, RULE, baseline=values(old).slice(0, 270)).outcomes
    assert (one.word, one.paired, one.queries, one.value) == ("not enough data", 270, N, 0.9)
    assert one.reason == (
        "map@2 is 0.9, 1 over the queries of both, as the baseline (paired over 270 of 300 "
        "queries, within the limit <= 5%, not tested); but 10% worse over all queries of each run"
    )
    (one,) = gate(LABELS, lost, RULE, baseline=values(old).slice(0, 269)).outcomes
    assert (one.word, one.paired, one.queries, one.value) == ("regressed", 0, N, 0.9)


COUNT = 4000
NEAR = "hit@1 drop <= 1% confidence 0.95"
PARTS = {
    "the same queries": (0, 0.5, 0, 0.5),
    "new ones like the others": (400, 0.5, 0, 0.5),
    "new ones that all miss": (400, 0.0, 0, 0.5),
    "others that are gone, like the rest": (0, 0.5, 400, 0.5),
    "others that are gone, which all hit": (0, 0.5, 400, 1.0),
    "others that are gone, which all missed": (0, 0.5, 400, 0.0),
}
SEEN = {"new ones that all miss", "others that are gone, which all hit"}


@pytest.mark.parametrize("rule", [NEAR, "hit@1 drop <= 1%", "hit@1[land=*] drop <= 3%"])
@pytest.mark.parametrize("part", PARTS)
def test_queries_of_one_run_alone_do_not_hold_and_do_not_disturb(part, rule):
    """Of 4,000 queries of both runs, which score the same, the pairs alone hold any rule."""
    new, of_new, gone, of_gone = PARTS[part]
    draw = np.random.default_rng(7)
    both = draw.random(COUNT) < 0.5
    ids = np.arange(COUNT + new + gone)

    def tonight(places, *rates):
        right = np.concatenate([both, *(draw.random(n) < rate for n, rate in rates)])
        items = [[1] if one else [9] for one in right]
        land = ["it" if query % 2 else "de" for query in ids[places]]
        labels = pa.table({"user_id": ids[places], "items": [[1]] * len(items), "land": land})
        return labels, pa.table({"user_id": ids[places], "items": items})

    before = tonight(np.r_[:COUNT, COUNT + new : len(ids)], (gone, of_gone))
    labels, predictions = tonight(np.r_[: COUNT + new], (new, of_new))
    earlier = rankmill.evaluate(*before, ["hit@1"], per_query=True).per_query
    found = gate(labels, predictions, rule, baseline=earlier)
    words = {one.word for one in found.outcomes}
    # Which slices the queries that are gone were of is not known.
    unseen = bool(gone) and "[" in rule
    assert words == {"not enough data" if part in SEEN and not unseen else "held"}


def test_few_queries_in_common_need_the_value_of_the_baseline_as_a_whole():
    earlier = values(lists(ALL)).slice(0, 5)
    collapsed = lists(set(range(5)))
    assert gate(LABELS, collapsed, RULE, baseline=earlier).word == "regressed"
    with pytest.raises(rankmill.InputError, match="have 5 of 300 queries in common"):
        gate(LABELS, collapsed, RULE, baseline=bare(earlier))
    few = gate(LABELS.slice(0, 5), lists({0}, 5), RULE, baseline=bare(earlier))
    assert (few.word, few.outcomes[0].paired) == ("regressed", 5)


def test_errors_of_both_add_up_where_they_are_not_paired():
    draw = np.random.default_rng(3)
    old, new = ({*np.flatnonzero(draw.random(N) < 0.7).tolist()} for _ in range(2))
    before = values(lists(old)).slice(0, 150)
    rule = "map@2 drop <= 0.05 confidence 0.9"
    found = gate(LABELS, lists(new), rule, baseline=bare(before)).outcomes[0]
    theirs = [float(query in old) for query in range(150)]
    mine = [float(query in new) for query in range(N)]
    ends = stats.ttest_ind(theirs, mine, equal_var=False).confidence_interval(0.9)
    assert found.high >= ends.high - 1e-12  # what was not seen may add to it
    assert 0 <= ends.low - found.low < 0.02
    assert (found.value, found.baseline) == (np.mean(mine), pytest.approx(np.mean(theirs)))


def test_every_form_says_over_how_many_queries():
    earlier = values(lists(ALL)).slice(6)
    found = gate(LABELS, lists(ALL - {0, 1, 2}), RULE, baseline=earlier)
    told = "paired over 294 of 300 queries"
    assert [told in one for one in lines(found)[:1]] == [True]
    assert told in markdown(found)
    assert told in junit(found)
    assert told in repr(found)
    one = json.loads(found.to_json())["outcomes"][0]
    assert (one["paired"], one["queries"], one["paired_value"], one["value"]) == (294, N, 1, 0.99)
    assert told in one["reason"]


def test_a_row_of_the_history_says_it_too(tmp_path):
    found = gate(LABELS, lists(ALL - {0}), RULE, baseline=values(lists(ALL)).slice(6))
    path = History(tmp_path / "runs").record(found)
    row = pq.read_table(path, partitioning=None).to_pylist()[0]
    (one,) = json.loads(row["outcomes"])
    assert (one["paired"], one["queries"]) == (294, N)
    assert row["value"] == pytest.approx(299 / 300)


def test_a_rule_about_the_value_is_about_all_queries():
    earlier = values(lists(ALL)).slice(0, 20)
    rules = [RULE, "map@2 >= 0.5", "map@2[land=it] >= 0.5"]
    found = gate(LABELS, lists(set(range(20))), rules, baseline=earlier)
    assert [one.word for one in found.outcomes] == ["regressed"] * 3
    assert [one.value for one in found.outcomes] == pytest.approx([20 / N, 20 / N, 0.2])


def test_systems_that_count_other_queries_are_not_paired_over_the_few_of_both():
    semantics = {"unpredicted": "skip"}
    some = lists(ALL).slice(0, 30)  # the other queries are lost
    found = gate(LABELS, some, RULE, baseline=lists(ALL), semantics=semantics).outcomes[0]
    assert (found.paired, found.queries) == (0, N)
    slices = "map@2[land=*] drop <= 5%"
    germany, italy, lost = gate(
        LABELS, some, slices, baseline=lists(ALL), semantics=semantics
    ).outcomes
    assert (lost.rule, lost.word) == ("queries change < 50%", "bad volume")
    assert (italy.slice, italy.paired, italy.queries) == ("land = it", 0, 100)
    assert (germany.slice, germany.word) == ("land = de", "bad volume")


SLICED = "map@2[land=*] drop <= 5%"


@pytest.mark.parametrize("kept", [0, 29, 269, 270, 299, 300])
def test_a_baseline_that_answers_other_queries_holds_nothing(kept, tmp_path, run):
    """Its queries without predictions score 0, so anything is better than that."""
    tonight, other = lists(ALL), lists(ALL).slice(0, kept)
    strangers = pa.table({"user_id": range(1000, 1100), "items": [[1]] * 100})
    other = pa.concat_tables([other, strangers])
    rules = [RULE, SLICED, "map@2 >= 0.5"]
    found = gate(LABELS, tonight, rules, baseline=other)
    drops, others = found.outcomes[:3], found.outcomes[3:]
    assert {one.word for one in others} == {"held"}
    assert {one.word for one in drops} == {"held" if kept >= 270 else "not enough data"}
    assert found.exit_code == 0
    assert gate(LABELS, tonight, Rules(rules, undecided="fail"), baseline=other).exit_code == (
        kept < 270
    )
    lacks = f"the baseline has no predictions for {N - kept} of 300 queries with labels"
    assert [lacks in note for note in found.notes].count(True) == (kept < N)
    for one in drops:
        assert one.reason.endswith(f"; {lacks}") == (kept < 270)
    # The table, JSON, and the page say it.
    texts = [str(found), found.to_json()]
    for name, one in {"labels": LABELS, "new": tonight, "old": other}.items():
        pq.write_table(one, tmp_path / f"{name}.parquet")
    names = [tmp_path / f"{name}.parquet" for name in ("labels", "new")]
    asked = ["--rule", RULE, "--baseline", tmp_path / "old.parquet"]
    shown = run("gate", *names, *asked, "--report", tmp_path / "page.html")[1]
    texts += [shown, (tmp_path / "page.html").read_text()]
    assert [lacks in text for text in texts] == [kept < N] * 4


def test_a_baseline_that_lacks_queries_hides_no_regression():
    half, worse = lists(ALL).slice(0, 200), lists(set(range(20)))
    (one,) = gate(LABELS, worse, RULE, baseline=half).outcomes
    assert one.word == "regressed"
    # A system that lacks as many is compared as ever, and so is one where none of these count.
    assert gate(LABELS, half, RULE, baseline=half).notes == []
    skip = gate(LABELS, lists(ALL), RULE, baseline=half, semantics="recommenders")
    assert "has no predictions" not in str(skip)


def test_a_slice_is_paired_by_its_own_queries():
    new = lists(ALL - set(range(60)))
    earlier = values(lists(ALL)).slice(20)  # 80 of 100 in Italy, all elsewhere
    found = gate(LABELS, new, "map@2[land=*] drop <= 5%", baseline=earlier)
    germany, italy = found.outcomes
    assert (germany.paired, germany.queries, germany.word) == (200, 200, "held")
    assert (italy.paired, italy.queries, italy.value) == (0, 100, 0.4)
    assert italy.word == "regressed"
    rest = values(lists(ALL)).slice(95)
    found = gate(LABELS, new, "map@2[land=it] drop <= 5%", baseline=rest).outcomes[0]
    assert found.word == "not enough data"
    assert "5 of 100 queries are of both runs" in found.reason


def test_weights_that_an_earlier_run_lacks_are_not_made_up():
    labels = LABELS.append_column("w", pa.array(np.arange(1.0, N + 1)))
    earlier = values(lists(ALL), labels, weight="w").slice(0, 100)
    new = lists(set(range(100)))
    asked = {"weight": "w", "baseline": bare(earlier)}
    found = flat(gate, labels, new, RULE, **asked).outcomes[0]
    assert (found.baseline, found.word) == (1.0, "regressed")
    asked["baseline"] = bare(earlier.drop(["weight"]))
    with pytest.raises(rankmill.InputError, match="does not have its overall value"):
        flat(gate, labels, new, RULE, **asked)


def test_another_share_cannot_be_asked_for(run, tmp_path):
    with pytest.raises(TypeError, match="min_overlap"):
        rankmill.Rules(RULE, min_overlap=0.5)
    told = GONE["--min-overlap"]
    assert told in run("gate", "l.csv", "p.csv", "--rule", RULE, "--min-overlap", "0.5")[2]
    text = f'labels = "l.csv"\npredictions = "p.csv"\nrules = ["{RULE}"]\nmin_overlap = 0.05\n'
    (tmp_path / "rankmill.toml").write_text(text)
    assert told in run("gate", f"{tmp_path}/rankmill.toml")[2]


# ------------------------------------------------------------------ what is no baseline


def test_a_file_that_was_cut_says_how_many_queries_it_should_hold(tmp_path):
    pq.write_table(values(lists(ALL)).slice(0, 5), tmp_path / "cut.parquet")
    with pytest.raises(rankmill.InputError, match="holds 5 of the 300 queries of its run"):
        gate(LABELS, lists(ALL), RULE, baseline=tmp_path / "cut.parquet")
    found = gate(LABELS, lists(ALL), RULE, baseline=values(lists(ALL)).slice(5))
    assert "the baseline holds 295 of the 300 queries of its run" in found.notes


def result_of(value):
    found = rankmill.evaluate(LABELS, lists(ALL), ["map@2"], per_query=False)
    return replace(found, metrics={"map@2": value})


@pytest.mark.parametrize(
    ("value", "message"),
    [(None, "no value of map@2 .null."), (1.7, "map@2 is 1.7, which no run has: it is from 0 to")],
)
def test_a_value_that_is_none_or_cannot_be_is_an_error(value, message):
    with pytest.raises(rankmill.InputError, match=message):
        gate(LABELS, lists(ALL), RULE, baseline=result_of(value))


def test_values_of_queries_out_of_range_are_an_error():
    earlier = bare(values(lists(ALL)))
    wrong = earlier.set_column(1, "map@2", pa.array([1.0] * (N - 1) + [float("nan")]))
    with pytest.raises(rankmill.InputError, match="map@2 is nan, which no run has"):
        gate(LABELS, lists(ALL), RULE, baseline=wrong)


def test_a_baseline_without_predictions_is_an_error():
    strangers = pa.table({"user_id": [N + 1], "items": [[1]]})
    semantics = {"unpredicted": "skip"}
    with pytest.raises(rankmill.InputError, match="does not have its overall value"):
        gate(LABELS, lists(ALL), RULE, baseline=strangers, semantics=semantics)
    rule = "map@2:median drop <= 5%"
    with pytest.raises(rankmill.InputError, match="the baseline has no value of map@2:median"):
        gate(LABELS, lists(ALL), rule, baseline=strangers, semantics=semantics)


def test_a_baseline_of_nothing_holds_nothing():
    broken = gate(LABELS, lists(set()), RULE, baseline=result_of(0.0))
    assert broken.outcomes[0].word == "not enough data"
    why = (
        "map@2 is 0, and so is the baseline: nothing is worse (within the limit <= 5%, not tested)"
    )
    assert broken.outcomes[0].reason == why
    better = gate(LABELS, lists({1, 2, 3}), RULE, baseline=result_of(0.0)).outcomes[0]
    assert (better.word, better.reason) == (
        "held",
        "map@2 is 0.01, above the baseline of 0 (within the limit <= 5%, not tested)",
    )
