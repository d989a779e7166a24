"""The gate: rules, what they are held against, and what comes of them."""

import json
import os
import random
import re
import shutil
import time
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import rankmill
from cli_runs import on_a_terminal
from flat import flat
from rankmill import InputError, Rules, UsageError
from rankmill.cli import draw
from rankmill.io.whole_files import write_files
from rankmill.nightly.gate.gate import gate
from rankmill.nightly.history import History
from rankmill.nightly.rules.measurements import MeasuredSide, Measurement, drop_of
from rankmill.nightly.rules.reports import (
    broken_words,
    junit,
    lines,
    markdown,
    slice_keys,
    summary_line,
)
from rankmill.nightly.rules.rules import parse_rule
from rankmill.package import GONE
from rankmill.show.tables import Bad

QUERIES = 1500
COUNTRIES = ("de", "fr", "it")


def draw_lists(seed, lost=(), share=0.0, only=None):
    """Lists in which the label of every second query is at rank 1; some queries lose it."""
    draw = random.Random(seed)
    lists = []
    for q in range(QUERIES):
        items = draw.sample(range(100, 160), 5)
        hit = q % 2 and not (draw.random() < share and (only is None or q % 3 == only))
        lists.append([q % 50, *items] if hit else items)
    return {q: one for q, one in enumerate(lists) if q not in lost}


def table(lists):
    scores = [[1 / (1 + i) for i in range(len(one))] for one in lists.values()]
    return pa.table({"user_id": list(lists), "items": list(lists.values()), "score": scores})


@pytest.fixture(scope="module")
def dumps():
    labels = pa.table(
        {
            "user_id": range(QUERIES),
            "items": [[q % 50] for q in range(QUERIES)],
            "country": [COUNTRIES[q % 3] for q in range(QUERIES)],
        }
    )
    return {
        "labels": labels,
        "old": table(draw_lists(1)),
        "same": table(draw_lists(2)),
        "worse": table(draw_lists(3, share=0.2)),
        "italy": table(draw_lists(4, share=0.6, only=2)),
        "fewer": table(draw_lists(5, lost=range(500))),
    }


def word(dumps, name, *rules, **options):
    return flat(gate, dumps["labels"], dumps[name], rules, **options)


@pytest.mark.parametrize("function", [rankmill.gate, rankmill.gate_power])
def test_rules_may_be_an_iterator_that_is_read_once(dumps, function):
    rules = ["map@5 >= 0.1", "hit@5 drop <= 1% confidence 0.95"]
    asked, base = (dumps["labels"], dumps["same"]), dumps["old"]
    found = function(*asked, iter(rules), baseline=base)
    assert found == function(*asked, rules, baseline=base)
    assert len(found.to_dict()["outcomes" if function is rankmill.gate else "rules"]) == 2


@pytest.mark.parametrize(
    ("name", "rule", "expected"),
    [
        ("same", "map@5 >= 0.45", "held"),
        ("same", "map@5 < 0.45", "regressed"),
        ("same", "map@5 >= 0.45 confidence 0.95", "held"),
        ("same", "map@5 >= 0.5 confidence 0.95", "not enough data"),
        ("same", "map@5 >= 0.6 confidence 0.95", "regressed"),
        ("same", "map@5 drop <= 1%", "held"),
        ("worse", "map@5 drop <= 1%", "regressed"),
        ("worse", "map@5 drop <= 0.01", "regressed"),
        ("worse", "map@5 drop <= 25%", "held"),
        ("worse", "map@5 drop <= 1% confidence 0.95", "regressed"),
        ("worse", "map@5 drop <= 20% confidence 0.95", "not enough data"),
        ("worse", "map@5 drop <= 20%", "not enough data"),
        ("worse", "map@5 drop <= 25% confidence none", "held"),
        ("same", "guardrail map@5 drop <= 5%", "held"),
        ("worse", "guardrail map@5 drop <= 20%", "not enough data"),
        ("worse", "guardrail map@5 drop <= 5%", "regressed"),
        ("same", "map@5:median drop <= 5%", "held"),
        ("italy", "map@5[country=*] drop <= 3%", "regressed"),
        ("italy", "map@5[country=de] drop <= 3%", "held"),
        ("italy", "map@5[country=it] drop <= 3%", "regressed"),
        ("italy", "map@5[country=it, label_count=1] drop <= 3%", "regressed"),
        ("italy", "map@5[country=it] >= 0.4", "regressed"),
        ("same", "gap >= 0.1", "held"),
        ("same", "gap drop <= 5% confidence 0.9", "not enough data"),
        ("worse", "gap drop <= 5% confidence 0.9", "regressed"),
        ("fewer", "queries change <= 10%", "bad volume"),
        ("fewer", "prediction_rows change <= 40%", "held"),
        ("fewer", "queries >= 1000", "held"),
        ("fewer", "queries_only_labelled <= 1%", "bad audit"),
        ("fewer", "queries_only_labelled <= 34%", "held"),
        ("same", "repeated_items == 0", "held"),
        ("same", "tied_confidences <= 5%", "bad audit"),
    ],
)
def test_rules_come_to_their_words(dumps, name, rule, expected):
    rules = [rule, "gap > 0"] if "tied" in rule else [rule]
    found = word(dumps, name, *rules, baseline=dumps["old"], undecided="fail")
    assert found.word == expected
    assert found.exit_code == (expected != "held")
    assert all(one.reason for one in found.outcomes)


def plain_drop(before, after, relative):
    """Return the drop, and by the bootstrap of queries its standard error."""
    draws = np.random.default_rng(0).integers(0, len(before), (4000, len(before)))
    b, v = before[draws].mean(axis=1), after[draws].mean(axis=1)
    drops = (b - v) / b if relative else b - v
    drop = before.mean() - after.mean()
    return drop / (before.mean() if relative else 1), drops.std()


@pytest.mark.parametrize("relative", [True, False])
def test_intervals_of_drops_are_those_of_resampled_queries(relative):
    draw = np.random.default_rng(3)
    before = draw.random(400)
    after = np.clip(before * 0.9 + draw.normal(0, 0.1, 400), 0, 1)
    error = stats.sem(after - before)
    sides = (MeasuredSide(each.mean(), stats.sem(each), 400) for each in (after, before))
    one = Measurement(*sides, error)
    found = drop_of(one, 0.95, relative=relative)
    drop, spread = plain_drop(before, after, relative)
    assert found.number == pytest.approx(drop, rel=1e-12)
    half = stats.t.ppf(0.975, 399) * spread
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.05)
    if not relative:
        low, high = stats.ttest_rel(before, after).confidence_interval()
        assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9)


def test_unpaired_drops_are_those_of_welch():
    draw = np.random.default_rng(3)
    before, after = draw.random(50), draw.random(300) * 0.8
    one = Measurement(
        *(MeasuredSide(each.mean(), stats.sem(each), len(each)) for each in (after, before))
    )
    found = drop_of(one, 0.95, relative=False)
    test = stats.ttest_ind(before, after, equal_var=False).confidence_interval()
    assert (found.low, found.high) == pytest.approx((test.low, test.high), rel=1e-9)


def test_a_drop_from_nothing():
    assert (
        drop_of(
            Measurement(MeasuredSide(0.0, 0.0, 9), MeasuredSide(0.0, 0.0, 9), 0.0),
            0.9,
            relative=True,
        ).number
        == 0
    )
    assert (
        drop_of(Measurement(MeasuredSide(), MeasuredSide(0.5, 0.1, 9)), 0.9, relative=True) is None
    )
    assert drop_of(
        Measurement(MeasuredSide(0.5, None, 1), MeasuredSide(1.0, None, 1)), 0.9, relative=True
    ) == (
        0.5,
        None,
        None,
    )


def test_all_slices_hold_together(dumps):
    found = word(dumps, "italy", "map@5[country=*] drop <= 3%", baseline=dumps["old"])
    words = {one.slice: one.word for one in found.outcomes}
    assert words["country = it"] == "regressed"
    assert set(words) == {"country = de", "country = fr", "country = it"}
    compared = rankmill.compare(
        dumps["labels"],
        {"a": dumps["old"], "b": dumps["italy"]},
        "map@5",
        by="country",
        confidence=1 - 0.05 / 3,
        tests=rankmill.Tests(correction="none"),
    )
    absolute = word(dumps, "italy", "map@5[country=*] drop <= 0.01", baseline=dumps["old"])
    for one, expected in zip(absolute.outcomes, compared.slices, strict=True):
        difference = expected.differences["map@5"]["b"]
        # The bound is as wide as t on the side of doubt, and one more query may move either end.
        assert -one.low == pytest.approx(difference.high, abs=0.02)
        assert -one.high == pytest.approx(difference.low, abs=0.02)


def test_the_slice_nearest_to_the_limit_stands_for_all_that_held(dumps):
    rules = ["map@5[country=*] drop <= 90%", "map@5[country=*] >= 0.01"]
    found = word(dumps, "italy", *rules, baseline=dumps["old"])
    assert found.word == "held"
    told = lines(found)
    assert [one.partition(" is ")[0] for one in told] == ["held: map@5 where country = it"] * 2
    for one in told:
        assert one.endswith("; of 3 slices that held, the nearest to the limit")


def test_what_could_change_the_value_is_told_with_the_verdict():
    labels = pa.table({"user": [1, 1, 2], "item": [7, 8, 9], "stars": [5.0, 0.0, 4.0]})
    predictions = pa.table({"user": [1, 1, 2], "item": [7, 8, 9], "score": [0.5, 0.5, 0.5]})
    found = gate(labels, predictions, "map >= 0.1")
    for shown in (repr(found), found.to_markdown(), found._repr_html_()):
        assert "if it is the gain, use Labels(gain=" in shown


def test_slices_that_held_are_shown_too(dumps):
    rule = "map@5[country=*] drop <= 3%"
    found = word(dumps, "italy", rule, baseline=dumps["old"])
    by_slice = {one.slice: one for one in found.outcomes}
    assert [one.word for one in by_slice.values()].count("regressed") == 1
    for shown in (str(found), found.to_markdown(), markdown(found)):
        assert all(f"where {one} is" in shown for one in by_slice)
    # A mail of cron has a line for what is broken, and one for the rest.
    words = [one.partition(": ")[0] for one in lines(found)]
    assert words == ["regressed", "held"]


def test_of_many_slices_those_that_held_are_counted(dumps):
    places = pa.array(["p1" if i % 3 == 2 else f"p{i % 20}" for i in range(QUERIES)])
    labels = dumps["labels"].append_column("place", places)
    rule = "map@5[place=*] drop <= 50%"
    found = gate(labels, dumps["italy"], rule, baseline=dumps["old"])
    held = [one for one in found.outcomes if one.word == "held"]
    others = [one for one in found.outcomes if one.word != "held"]
    assert others
    assert len(held) > 1
    told = f"{rule}: held in {len(held)} of {len(found.outcomes)} slices; of those that held, only"
    for shown in (str(found), found.to_markdown(), markdown(found)):
        assert all(f"where {one.slice} is" in shown for one in others)
        assert [f"where {one.slice} is" in shown for one in held].count(True) == 1
        assert told in shown.replace("\\", "")
    (line,) = (one for one in lines(found) if one.startswith("held: "))
    assert f"; of {len(held)} slices that held, the nearest to the limit" in line


@pytest.mark.parametrize("baseline", [False, True])
def test_a_slice_that_no_query_has_is_an_error(dumps, baseline):
    rule = "map@5[country=es] " + ("drop <= 3%" if baseline else ">= 0.1")
    given = {"baseline": dumps["old"]} if baseline else {}
    told = "has country = es; there are country = de; country = fr; country = it$"
    with pytest.raises(rankmill.UsageError, match=told):
        word(dumps, "same", rule, **given)
    with pytest.raises(rankmill.UsageError, match="has country = it, label_count = 9; there are"):
        word(dumps, "same", "map@5[country=it, label_count=9] >= 0.1")


def test_the_nearest_of_many_slices_are_listed(dumps):
    places = pa.array([f"p{i % 40}" for i in range(QUERIES)])
    labels = dumps["labels"].append_column("place", places)
    told = "has place = p39x; there are place = p39; .* and 30 more"
    with pytest.raises(rankmill.UsageError, match=told):
        gate(labels, dumps["same"], "map@5[place=p39x] >= 0.1")


def test_a_confidence_next_to_certainty(dumps):
    rule = "map@5[country=*] drop <= 5% confidence 0.9999999999999999"
    for one in word(dumps, "worse", rule, baseline=dumps["old"]).outcomes:
        assert one.word == "not enough data"
        assert -10 < one.low < one.measured < one.high <= 1


@pytest.mark.parametrize("undecided", ["warn", "fail"])
def test_what_the_data_do_not_decide(dumps, undecided):
    rule = "map@5 drop <= 20% confidence 0.95"
    found = word(dumps, "worse", rule, baseline=dumps["old"], undecided=undecided)
    assert found.outcomes[0].word == "not enough data"
    assert (found.word, found.exit_code) == ("not enough data", int(undecided == "fail"))


# ------------------------------------------------------------------ earlier runs


@pytest.fixture
def written(dumps, tmp_path):
    for name, one in dumps.items():
        pq.write_table(one, tmp_path / f"{name}.parquet")
    earlier = rankmill.evaluate(dumps["labels"], dumps["old"], ["map@5", "gap"])
    pq.write_table(earlier.per_query, tmp_path / "queries.parquet")
    return tmp_path


@pytest.fixture
def result(dumps):
    return rankmill.evaluate(dumps["labels"], dumps["old"], ["map@5", "gap"], per_query=False)


def test_an_earlier_run_by_query_is_paired(dumps, written):
    rules = [
        "map@5 drop <= 20% confidence 0.95",
        "map@5[country=*] drop <= 3%",
        "queries change <= 10%",
        "gap drop <= 30% confidence none",
    ]
    direct = word(dumps, "worse", *rules, baseline=str(written / "old.parquet"))
    paired = word(dumps, "worse", *rules, baseline=str(written / "queries.parquet"))
    assert paired.baseline["kind"] == "per-query"
    # Only predictions tell how chance moves gap, and so what its rule detects.
    known = [*(one.to_dict() for one in direct.outcomes[:-1]), paired.outcomes[-1].to_dict()]
    assert [one.to_dict() for one in paired.outcomes] == known
    assert paired.outcomes[-1] == replace(direct.outcomes[-1], detects=None)
    shuffled = pq.read_table(written / "queries.parquet").take(
        np.random.default_rng(0).permutation(QUERIES)
    )
    again = word(dumps, "worse", *rules, baseline=shuffled)
    assert [one.to_dict() for one in again.outcomes] == known


@pytest.mark.parametrize("suffix", [".arrow", ".feather", ".pq"])
def test_an_earlier_run_by_query_in_other_formats(dumps, written, suffix):
    earlier = rankmill.evaluate(dumps["labels"], dumps["old"], ["map@5"]).per_query
    path = written / f"values{suffix}"
    write_files([(path, earlier)])
    found = word(dumps, "worse", "map@5 drop <= 20% confidence 0.95", baseline=str(path))
    same = word(dumps, "worse", "map@5 drop <= 20% confidence 0.95", baseline=earlier)
    assert found.baseline["kind"] == "per-query"
    assert [one.to_dict() for one in found.outcomes] == [one.to_dict() for one in same.outcomes]
    write_files([(path, earlier.set_column(1, "map@5", pa.array(np.zeros(QUERIES))))])
    with pytest.raises(InputError, match="does not match its checksum"):
        word(dumps, "worse", "map@5 drop <= 20%", baseline=str(path))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_values_of_queries_as_text_are_no_baseline(dumps, written, suffix):
    path = written / f"values{suffix}"
    write_files([(path, rankmill.evaluate(dumps["labels"], dumps["old"], ["map@5"]).per_query)])
    with pytest.raises(UsageError, match=r"does not show how they were counted: .*\.arrow"):
        word(dumps, "worse", "map@5 drop <= 20%", baseline=str(path))
    with pytest.raises(InputError, match="per-query values, which are a baseline for 'rankmill g"):
        rankmill.evaluate(dumps["labels"], path, "map")


def test_only_queries_of_both_runs_count(dumps, written):
    earlier = pq.read_table(written / "queries.parquet").slice(100)
    found = word(dumps, "worse", "map@5 drop <= 1%", baseline=earlier)
    assert found.comparison.queries == QUERIES - 100
    labels = dumps["labels"].slice(100)
    fewer = gate(labels, dumps["worse"], "map@5 drop <= 1%", baseline=dumps["old"])
    assert found.outcomes[0].measured == pytest.approx(fewer.outcomes[0].measured, rel=1e-12)


def test_a_result_is_not_paired(dumps, result):
    rule = "map@5 drop <= 20% confidence 0.95"
    told = word(dumps, "worse", rule, "queries change <= 1%", baseline=result)
    assert told.baseline["kind"] == "result"
    assert told.comparison is None
    direct = word(dumps, "worse", rule, baseline=dumps["old"]).outcomes[0]
    one = told.outcomes[0]
    assert one.measured == pytest.approx(direct.measured, rel=1e-12)
    assert one.high - one.low > direct.high - direct.low


def test_the_json_of_a_result_is_no_baseline(dumps, result, tmp_path):
    rule = "map@5 drop <= 1%"
    verdict = word(dumps, "same", rule, baseline=result)
    for told in (result.to_json(), result.to_json(indent=2), verdict.to_json()):
        (tmp_path / "x.json").write_text(told)
        with pytest.raises(UsageError, match=r"the JSON of a result, .* values by query"):
            word(dumps, "same", rule, baseline=str(tmp_path / "x.json"))
    (tmp_path / "x.json").write_text(json.dumps({7: [1], 8: [2]}))  # as are lists by query
    assert word(dumps, "same", rule, baseline=str(tmp_path / "x.json")).baseline["kind"] == (
        "predictions"
    )


def test_a_result_is_judged_by_its_numbers(dumps):
    options = {"semantics": {"unpredicted": "skip"}, "depth": 5}
    old, new = (
        flat(rankmill.evaluate, dumps["labels"], one, ["map@10", "gap"], **options, per_query=False)
        for one in (dumps["old"], dumps["worse"])
    )
    rules = ["map@10 drop <= 5% confidence 0.9", "gap >= 0.9", "queries change <= 10%"]
    whole = flat(gate, dumps["labels"], dumps["worse"], rules, baseline=old, **options)
    found = gate(None, new, rules, baseline=old)
    # Only predictions tell how chance moves gap, so that its outcome names no baseline.
    mine, theirs = (
        [replace(one, baseline=0, detects=0) for one in of.outcomes] for of in (found, whole)
    )
    assert mine == theirs
    assert found.comparison is None
    assert (found.word, found.result) == (whole.word, new)
    for given, message in [
        ((dumps["labels"], new, "map@10 > 0"), "labels: a Result is judged"),
        ((None, new, "map@5 > 0"), r"rule for map@5, but the Result has map@10, gap"),
        ((None, new, "map@10[country=*] > 0"), "need per-query values"),
        ((None, new, "labels_age < 1d"), "a Result has no age"),
    ]:
        with pytest.raises(rankmill.UsageError, match=message):
            gate(*given)
    for more in ({"baseline": dumps["old"]}, {"baseline": old, "by": "country"}):
        with pytest.raises(rankmill.UsageError, match="numbers"):
            flat(gate, None, new, "map@10 drop <= 1%", **more)


def test_runs_that_counted_otherwise_are_no_baseline(dumps, written, result):
    with pytest.raises(rankmill.UsageError, match="unpredicted is 'zero' there, 'skip' here"):
        word(
            dumps,
            "same",
            "map@5 drop <= 1%",
            baseline=result,
            semantics={"unpredicted": "skip"},
        )
    with pytest.raises(rankmill.UsageError, match=r"has map@5, gap.*, but not ndcg@5"):
        word(dumps, "same", "ndcg@5 drop <= 1%", baseline=result)
    bare = pq.read_table(written / "queries.parquet").replace_schema_metadata(None)
    with pytest.raises(rankmill.UsageError, match="does not have its counts"):
        word(dumps, "same", "map@5 drop <= 1%", "queries change <= 1%", baseline=bare)
    rule = "map@5 drop <= 1%"
    earlier = (result, str(written / "queries.parquet"))
    for one in earlier:
        with pytest.raises(rankmill.UsageError, match="gain_function is 'linear' there, 'exp'"):
            word(dumps, "same", rule, baseline=one, gain_function="exp")
    graded = dumps["labels"].append_column("gain", pa.array([[1]] * QUERIES))
    for one in earlier:
        with pytest.raises(rankmill.UsageError, match=r"just relevant or not in .* had gains here"):
            gate(graded, dumps["same"], rule, baseline=one)
        same = gate(rankmill.Labels(graded, binary=True), dumps["same"], rule, baseline=one)
        assert same.word == word(dumps, "same", rule, baseline=one).word
    labels = dumps["labels"].append_column("w", pa.array([1.0] * QUERIES))
    weighted = rankmill.evaluate(rankmill.Labels(labels, weight="w"), dumps["old"], ["map@5"])
    with pytest.raises(rankmill.UsageError, match="weight is 'w' there, None here"):
        gate(labels, dumps["same"], "map@5 drop <= 1%", baseline=weighted)


def test_several_systems_are_no_baseline(run, written, monkeypatch):
    monkeypatch.chdir(written)
    inputs = [f"{name}.parquet" for name in ("labels", "old", "same")]
    several = ["--per-query", "both.parquet"]
    assert run("evaluate", *inputs, "-m", "map@5", *several)[0] == 0
    arguments = ["--rule", "map@5 drop <= 1%", "--baseline", "both.parquet"]
    code, _, err = run("gate", *inputs[:2], *arguments)
    assert code == 2
    assert "the baseline both.parquet is of several systems" in err


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (lambda whole: whole | {"metrics": {"map@5": 0.5}}, "does not match its checksum"),
        (lambda whole: whole | {"queries": None}, "does not match its checksum"),
        (lambda whole: [whole], "a table cannot be read"),
        (lambda whole: {}, "does not match its checksum"),
    ],
)
def test_a_broken_result_is_no_baseline(dumps, written, result, told, message):
    changed = json.dumps(told(json.loads(result.to_json())))
    values = pq.read_table(written / "queries.parquet")
    values = values.replace_schema_metadata({b"rankmill result": changed})
    with pytest.raises(rankmill.InputError, match=message):
        word(dumps, "same", "map@5 drop <= 1%", baseline=values)


def test_a_baseline_needs_the_metrics_that_drop_and_no_others(dumps, written, result, tmp_path):
    rules = ["map@5 drop <= 90%", "hit@1 >= 0.1", "queries change <= 10%"]
    direct = word(dumps, "same", *rules, metrics=["rr"], baseline=dumps["old"])
    History(tmp_path / "runs").record(rankmill.evaluate(dumps["labels"], dumps["old"], ["map@5"]))
    for baseline in (result, str(written / "queries.parquet"), "last"):
        asked = {"baseline": baseline, "history": tmp_path / "runs"}
        found = word(dumps, "same", *rules, metrics=["rr"], **asked)
        told = [(one.word, one.value, one.measured) for one in found.outcomes]
        assert told == [(one.word, one.value, one.measured) for one in direct.outcomes]
        assert list(found.result.metrics) == ["map@5", "hit@1", "rr"]
        assert word(dumps, "same", rules[2], **asked).outcomes[0].measured == told[2][2]


def test_a_rule_that_a_baseline_never_decides_is_refused(dumps, written, result):
    rule = "map@5[country=*] drop <= 3%"
    with pytest.raises(rankmill.UsageError, match=r"needs per-query values: give"):
        word(dumps, "italy", rule, baseline=result)
    rule = "gap drop <= 3% confidence 0.95"
    for one in (result, str(written / "queries.parquet")):
        with pytest.raises(rankmill.UsageError, match="needs the predictions of the baseline"):
            word(dumps, "italy", rule, baseline=one)


def test_a_system_without_any_value_does_not_pass(dumps):
    nothing = pa.table({"user_id": [-1], "items": [[1]]})
    rules = ["map@5 >= 0.1", "map@5 drop <= 1%", "map@5 drop <= 1% confidence 0.9"]
    options = {"baseline": dumps["old"], "semantics": {"unpredicted": "skip"}}
    found = flat(gate, dumps["labels"], nothing, rules, **options)
    assert [one.word for one in found.outcomes] == ["bad volume"] * 4
    assert found.exit_code == 1
    assert found.outcomes[0].reason == "map@5: there is no value (limit >= 0.1)"


def test_values_of_other_queries_are_no_baseline(dumps, written):
    values = pq.read_table(written / "queries.parquet")
    other = values.set_column(0, "user_id", pa.array(range(QUERIES, 2 * QUERIES)))
    with pytest.raises(rankmill.InputError, match="none of its 1,500 queries is among the 1,500"):
        word(dumps, "same", "map@5 drop <= 1%", baseline=other)
    twice = values.append_column("map@5", values["map@5"])
    with pytest.raises(rankmill.InputError, match="has two columns 'map@5'"):
        word(dumps, "same", "map@5 drop <= 1%", baseline=twice)


# ------------------------------------------------------------------ rules


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("map@5", "is not understood; expected one such as map@12 >= 0.08"),
        ("map@5 drop >= 1%", "a drop has an upper limit"),
        ("mapp@5 >= 0", "'mapp@5' is neither a metric, nor a count"),
        ("querys <= 1", "did you mean 'queries'"),
        ("queries drop <= 1%", "only metrics drop"),
        ("map@5 change <= 1%", "only counts have a change"),
        ("queries change <= 5", "a change is in percent"),
        ("map@5 >= 5%", "not a share of anything"),
        ("queries_labelled <= 5%", "not a share of anything"),
        ("map@5 <= 5h", "an age has a unit"),
        ("predictions_age <= 5", "an age has a unit"),
        ("gap[country=*] >= 0", "it has no slices"),
        ("queries[country=*] >= 0", "slices and a confidence are for metrics"),
        ("map@5[country] >= 0", "is not a slice"),
        ("map@5[a=*,b=*,c=*] >= 0", "is not a slice"),
        ("map@5 >= 0 confidence 95", "expected a number from 0.5 to below 1"),
        ("map@5 == 0 confidence 0.9", "a limit to one side"),
        ("map@5 == 0 confidence never", "from 0.5 to below 1, such as 0.95, or none"),
        ("queries >= 1 confidence none", "slices and a confidence are for metrics"),
        ("guardrail map@5 >= 0.1", "a guardrail is tested"),
        ("guardrail map@5 drop <= 1% confidence none", "a guardrail is tested"),
        ("guardrail ece drop <= 0.1", "a guardrail is tested"),
        ("map@5 >= 1e400", "larger than any number"),
        ('map@5[country="it"] >= 0', "without quotes"),
    ],
)
def test_wrong_rules_are_refused_before_any_work(rule, message):
    with pytest.raises(rankmill.UsageError, match=message):
        gate("no such file", "no such file", [rule], baseline="x")


def test_what_else_is_refused(dumps, tmp_path):
    with pytest.raises(rankmill.UsageError, match=r"is a History; .*history='runs'"):
        word(dumps, "same", "map@5 drop <= 1%", baseline=rankmill.History(tmp_path))
    with pytest.raises(rankmill.UsageError, match="needs a baseline"):
        word(dumps, "same", "map@5 drop <= 1%")
    with pytest.raises(rankmill.UsageError, match="no rule was given: give one with rules="):
        word(dumps, "same")
    with pytest.raises(rankmill.UsageError, match="undecided is 'maybe'"):
        word(dumps, "same", "map@5 > 0", undecided="maybe")
    with pytest.raises(rankmill.UsageError, match=GONE["undecided pass"]):
        word(dumps, "same", "map@5 > 0", undecided="pass")
    with pytest.raises(rankmill.UsageError, match="a Table has no age"):
        word(dumps, "same", "predictions_age <= 1d")
    with pytest.raises(rankmill.InputError, match="no column 'land' for the slices"):
        word(dumps, "same", "map@5[land=*] > 0")


def test_what_was_not_tested_is_told_and_a_guardrail_is_not_inferior(dumps):
    rules = ["map@5 drop <= 25% confidence none", "guardrail hit@5 drop <= 40%", "map@5 >= 0.1"]
    found = gate(dumps["labels"], dumps["worse"], rules, baseline=dumps["old"])
    plain, guardrail, value = found.outcomes
    assert (found.word, found.exit_code) == ("held", 0)
    assert (plain.word, guardrail.word, value.word) == ("held", "non-inferior", "held")
    assert (plain.low, plain.high) == (None, None)
    assert plain.reason.endswith("within the limit <= 25%, not tested)")
    assert value.reason.endswith("(within the limit >= 0.1, not tested)")
    assert "not tested" not in guardrail.reason
    assert "3 rules held, 2 of them not tested" in summary_line(found, {})
    # The error rate is shared by rules that are primary; each guardrail has its own.
    shared = Rules([*rules[1:], "map@5 drop <= 25%"], family_confidence=0.999)
    alone, _, primary = gate(
        *(dumps[n] for n in ("labels", "worse")), shared, baseline=dumps["old"]
    ).outcomes
    assert "confidence 0.95," in alone.reason
    assert "confidence 0.999," in primary.reason


def test_rules_of_one_text_are_equal():
    assert parse_rule("map@5 drop<=1%") == replace(
        parse_rule(" map@5  drop <= 1% "), text="map@5 drop<=1%"
    )


# ------------------------------------------------------------------ the command


def test_the_command_ends_with_the_verdict(run, written, tmp_path):
    files = [str(written / f"{name}.parquet") for name in ("labels", "italy", "old")]
    labels, new, old = files
    outputs = ["--json", f"{tmp_path}/v.json", "--junit", f"{tmp_path}/v.xml"]
    outputs += ["--markdown", f"{tmp_path}/v.md", "--per-query", f"{tmp_path}/q.parquet"]
    rules = ["map@5[country=*] drop <= 3%", "queries change <= 10%", "map@5 >= 0.9 confidence 0.9"]
    asked = [part for rule in rules for part in ("--rule", rule)]
    code, out, err = run("gate", labels, new, "--baseline", old, *asked, *outputs)
    assert code == 1
    told = [line for line in err.splitlines() if ": " in line]
    assert told[0].startswith("regressed: map@5 where country = it is 0.")
    assert "limit <= 3%" in told[0]
    assert told[1].endswith("; of 2 slices that held, the nearest to the limit")
    assert told[2] == "held: queries is 1,500, as in the baseline (limit <= 10%)"
    assert "verdict: regressed" in out
    content = json.loads((tmp_path / "v.json").read_text())
    assert (content["word"], content["exit_code"]) == ("regressed", 1)
    assert len(content["outcomes"]) == 5
    suite = ET.parse(tmp_path / "v.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("5", "2", "0")
    assert (tmp_path / "v.md").read_text().startswith("## ❌ rankmill: regressed")
    assert pq.read_table(tmp_path / "q.parquet").num_rows == QUERIES
    again = [
        "gate",
        labels,
        new,
        "--rule",
        "map@5 drop <= 1%",
        "--baseline",
        f"{tmp_path}/q.parquet",
    ]
    assert run(*again)[0] == 0


def test_reports_keep_what_their_readers_ask_for(dumps):
    values = ("]]><x>\x1b[31m", "|", "a\\b\x00")
    where = pa.array([values[q % 3] for q in range(QUERIES)])
    labels = dumps["labels"].set_column(2, "country", where)
    found = gate(labels, dumps["italy"], "map@5[country=*] drop <= 1%", baseline=dumps["old"])
    suite = ET.fromstring(junit(found)).find("testsuite")
    # The type SUREFIRE_TIME of junit-10.xsd.
    times = [one.get("time") for one in (suite, *suite.findall("testcase"))]
    assert all(
        re.fullmatch(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]{0,3})?", t) for t in times
    )
    told = markdown(found)
    first = next(line for line in told.splitlines() if "where country = a" in line)
    # What is not visible is escaped once, as in the table of slices.
    assert r"country = a\\\\b\\x00 is" in first
    assert r"| a\\\\b\\x00 |" in told


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--rule", "map@5 >= 0.1"], 0),
        (["--rule", "map@5 >= 0.9"], 1),
        (["--rule", "map5 >= 0.9"], 2),
        ([], 2),
        (["--rule", "map@5 >= 0.9", "--query", "nope"], 3),
        (["--rule", "predictions_age <= 9d"], 0),
        (["--rule", "map@5 >= 0.1", "--markdown", "-"], 2),
    ],
)
def test_exit_codes(run, written, monkeypatch, arguments, expected):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    labels, new = (str(written / f"{name}.parquet") for name in ("labels", "same"))
    assert run("gate", labels, new, *arguments)[0] == expected


def test_a_broken_file_is_no_regression(run, written):
    broken = written / "broken.parquet"
    broken.write_bytes((written / "same.parquet").read_bytes()[:-40])
    code, _, err = run("gate", str(written / "labels.parquet"), broken, "--rule", "map@5 >= 0.9")
    assert code == 3
    assert "broken.parquet" in err


def test_a_stale_file(run, written):
    old = written / "same.parquet"
    os.utime(old, (0, 0))
    files = [str(written / "labels.parquet"), str(old)]
    code, _, err = run("gate", *files, "--rule", "predictions_age <= 36h")
    assert (code, err.splitlines()[-1].split(":")[0]) == (1, "stale")


def test_the_summary_of_a_pull_request_is_appended(run, written, monkeypatch, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    files = [str(written / f"{name}.parquet") for name in ("labels", "same")]
    assert run("gate", *files, "--rule", "map@5 >= 0.1", "--markdown", "-")[0] == 0
    assert summary.read_text().startswith("before\n## ✅ rankmill: held")


def test_a_run_of_the_history_is_a_baseline(run, written, tmp_path):
    files = {name: str(written / f"{name}.parquet") for name in ("labels", "old", "same", "worse")}
    history = ["--history", f"{tmp_path}/runs"]
    first = ["gate", files["labels"], files["old"], "--rule", "map@5 >= 0.1", *history]
    rule = ["--rule", "map@5 drop <= 1% confidence none", "--rule", "queries change <= 1%"]
    os.mkdir(tmp_path / "runs")
    none = run("gate", files["labels"], files["same"], *rule, "--baseline", "last", *history)
    assert none[0] == 3
    assert "need no baseline: --rule 'queries > 0' --metric 'map@5'" in none[2]
    assert run(*first)[0] == 0
    for how in ("last", "median:7"):
        asked = [*rule, "--baseline", how, *history, "--tag", f"how={how}"]
        assert run("gate", files["labels"], files["same"], *asked)[0] == 0
        code, _, err = run("gate", files["labels"], files["worse"], *asked)
        assert code == 1
        assert "below the baseline of" in err
    told = rankmill.History(tmp_path / "runs")
    assert [one.verdict for one in told.runs] == [
        *("no verdict", "held"),
        *["held", "regressed"] * 2,
    ]
    assert run("gate", files["labels"], files["same"], *rule, "--baseline", "last")[0] == 2


def nights(*values, first=1):
    """A trend whose last night is the run itself."""
    days = [datetime(2026, 1, first + i, tzinfo=UTC) for i in range(len(values))]
    return [(day, value, None, "held") for day, value in zip(days, values, strict=True)]


def test_what_broke_is_told_with_the_night_before(dumps):
    found = word(dumps, "italy", "map@5[country=*] >= 0.4", "map@5 >= 0.45")
    value = next(one.value for one in found.outcomes if one.slice == "country = it")
    whole = found.result["map@5"]
    short = f"it: map@5 {value:.4g}, limit 0.4"
    assert broken_words(found, {}) == [short, f"map@5 {whole:.4g}, limit 0.45"]

    def told(*before, first=1):
        of = nights(*before, value, first=first)
        return broken_words(found, {("map@5", "country = it"): of})[0]

    assert told(2 * value) == f"{short}; 50% below yesterday"
    assert told(0.9, value / 2) == f"{short}; 100% above yesterday"
    assert told(value) == f"{short}; as yesterday"
    assert told(2 * value, None) == f"{short}; 50% below 2026-01-01"
    assert told(None) == short
    assert told(0.0) == f"{short}; {value:.4g} above yesterday"
    # An earlier try of this night is not the night before.
    again = [*nights(2 * value, value / 2), *nights(value, first=2)]
    assert broken_words(found, {("map@5", "country = it"): again})[0].endswith("below yesterday")
    assert broken_words(found, {"map@5": nights(2 * whole, whole)})[1].endswith(
        "50% below yesterday"
    )
    places = [(1, 2 * value, None, ""), (2, value, None, "")]
    line = broken_words(found, {("map@5", "country = it"): places})[0]
    assert line == f"{short}; 50% below the run before"


def test_where_to_look_comes_first(dumps):
    # Only one country broke its rule: it explains the whole, which comes second.
    rules = "map@5 >= 0.45", "map@5[country=*] >= 0.4"
    lines_of = broken_words(word(dumps, "italy", *rules), {})
    assert [line.partition(" 0.")[0] for line in lines_of] == ["it: map@5", "map@5"]
    # All of them broke it: the whole is what one has to know.
    lines_of = broken_words(word(dumps, "worse", "map@5 >= 0.49", "map@5[country=*] >= 0.49"), {})
    assert len(lines_of) == 4
    assert lines_of[0].startswith("map@5 0.")


def test_what_broke_against_a_baseline_is_told(dumps):
    rules = "map@5[country=*] drop <= 3%", "queries change <= 1%", "map@5[country=it] >= 0.4"
    found = word(dumps, "italy", *rules, baseline=dumps["old"])
    outcome = next(one for one in found.failed if one.rule == rules[0])
    lines_of = broken_words(found, {})
    drop = 100 * outcome.measured
    assert lines_of[0] == f"it: map@5 {outcome.value:.4g}, {drop:.3g}% below the baseline, limit 3%"
    assert (
        lines_of[1] == f"it: map@5 {outcome.value:.4g}, limit 0.4; {drop:.3g}% below the baseline"
    )
    fewer = word(dumps, "fewer", rules[1], baseline=dumps["old"])
    assert broken_words(fewer, {}) == [
        "queries is 1,000, 33.3% fewer than the baseline of 1,500, limit 1%"
    ]
    two = word(dumps, "italy", "map@5[country=it,label_count=1] >= 0.4")
    assert broken_words(two, {})[0].startswith("country = it, label_count = 1: map@5 ")
    one = word(dumps, "italy", "map@5[label_count=*] >= 0.49")
    assert broken_words(one, {})[0].startswith("label_count = 1: map@5 ")


def test_a_line_for_a_chat(run, dumps, written, tmp_path):
    files = [str(written / f"{name}.parquet") for name in ("labels", "italy")]
    line = tmp_path / "line.txt"
    asked = ["gate", *files, "--history", f"{tmp_path}/runs", "--summary"]
    assert (
        run(*asked, str(line), "--rule", "map@5[country=*] >= 0.001", "--date", "2026-01-01")[0]
        == 0
    )
    told = r"✅ italy.parquet 2026-01-01 [\d:]{8} UTC: map@5 0\.\d+, 1 rule held\n"
    assert re.fullmatch(told, line.read_text())
    # A name that tells the role alone has its folder before it.
    (tmp_path / "bert").mkdir()
    shutil.copy(files[1], tmp_path / "bert" / "predictions.parquet")
    for name in ("predictions.parquet", "*.parquet"):
        asked_of = [files[0], str(tmp_path / "bert" / name), "--summary", "-", "--rule"]
        assert run("gate", *asked_of, "map@5 >= 0.001")[1].startswith(f"✅ bert/{name} 20")
    assert run("gate", files[0], "bert/none/run", *asked_of[2:], "map@5 > 0")[1].startswith(
        "❌ none/run 20"
    )
    rules = ["--rule", "map@5[country=*] >= 0.4", "--rule", "queries >= 9999"]
    code, out, err = run(*asked, "-", *rules, "--date", "2026-01-02")
    when = r"❌ italy.parquet 2026-01-02 [\d:]{8} UTC: "
    told = rf"{when}bad volume: queries is 1,500, limit 9999 \(and 1 more\)\n"
    assert (code, bool(re.fullmatch(told, out))) == (1, True)
    assert "bad volume: queries is 1,500" in err
    code, out, _ = run(*asked, "-", *rules[:2], "-o", f"{tmp_path}/x.csv", "--date", "2026-01-02")
    told = rf"{when}regressed: it: map@5 0\.\d+, limit 0\.4; as yesterday\n"
    assert re.fullmatch(told, out), out
    undecided = ["--rule", "map@5 >= 0.5 confidence 0.95"]
    same = ["gate", files[0], str(written / "same.parquet"), "--summary", "-", *undecided]
    page = tmp_path / "v.md"
    line = run(*same, "--markdown", str(page))[1]
    told = r"⚠️ same.parquet [\d: -]+ UTC: map@5 0\.\d+, not enough data for 1 of 1 rule: map@5 >"
    assert re.match(told, line)
    assert page.read_text().startswith("## ⚠️ rankmill: not enough data for 1")
    assert run(*same, "--format", "json")[0] == 2
    assert run(*same, "--json", "-", "-o", f"{tmp_path}/y.csv")[0] == 2
    assert run(*same[:4], str(tmp_path / "x.png"), *undecided)[0] == 2


def test_a_terminal_shows_each_reason_once_and_what_broke_in_red(written):
    files = [str(written / f"{name}.parquet") for name in ("labels", "worse")]
    arguments = ["gate", *files, "--rule", "map@5 >= 0.45", "--rule", "queries >= 5"]
    code = f"from rankmill.cli import main\nmain({arguments!r}, 'rankmill')"
    shown = on_a_terminal(code, 150)
    assert sum("queries is 1,500" in line for line in shown) == 1
    assert sum("map@5 is " in line for line in shown) == 1
    assert cell_style(Bad("regressed")) == "bold red"
    assert not cell_style("held")


def cell_style(text):
    return str(draw._drawn(text).style)


def test_slices_are_found_under_the_names_of_a_history():
    rule = parse_rule("map@5[a=*,b=*] >= 0.1")
    assert slice_keys(rule, "b = x, y, a = z")[0] == ("b, a", "x, y, z")
    assert slice_keys(parse_rule("map@5[a=*] >= 0.1"), "a = b = c") == [("a", "b = c")]


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("seen_items <= 0", "seen_items is not counted without train"),
        ("unknown_items <= 1%", "unknown_items is not counted without items, train or features"),
        ("tied_confidences <= 0", "tied_confidences is not counted without a metric such as gap"),
        ("unjudged_items <= 1%", "unjudged_items is not counted without judged_only"),
        ("items_beyond_depth <= 0", "items_beyond_depth is not counted without depth"),
    ],
)
def test_a_count_of_what_is_not_there_is_no_pass(dumps, rule, told):
    with pytest.raises(rankmill.UsageError, match=told):
        word(dumps, "same", rule)


def test_a_baseline_that_did_not_count_is_none(dumps, result):
    train = pa.table({"user_id": [0], "item_id": [100]})
    with pytest.raises(rankmill.UsageError, match="without train: evaluate the baseline with it"):
        word(dumps, "same", "seen_items change <= 10%", baseline=result, train=train)


def test_counts_are_held_where_they_are_counted(dumps):
    train = {"train": pa.table({"user_id": [0], "item_id": [100]})}
    features = {"features": {100: [1.0]}}
    for rule, options in (
        ("seen_items <= 100%", train),
        ("unknown_items <= 100%", train),
        ("unknown_items <= 100%", features),
        ("unjudged_items <= 100%", {"judged_only": True}),
        ("items_beyond_depth <= 100%", {"depth": 1}),
    ):
        assert word(dumps, "same", rule, **options).word == "held"
    with pytest.raises(rankmill.UsageError, match="short_lists is not counted without a cutoff"):
        word(dumps, "same", "map > 0", "short_lists <= 0")
    assert word(dumps, "same", "gap > 0", "tied_confidences <= 100%").word == "held"
    assert word(dumps, "same", "map@5 > 0", "short_lists <= 99.9%").word == "held"


def test_a_verdict_is_true_if_the_system_may_go_on(dumps):
    old = dumps["old"]
    held, broken = (word(dumps, one, "map@5 drop <= 1%", baseline=old) for one in ("same", "worse"))
    assert held
    assert not broken
    held.raise_for_failure()
    with pytest.raises(
        rankmill.RegressionError, match=r"^regressed: map@5 is .* below the baseline"
    ):
        broken.raise_for_failure()


def test_the_date_is_the_time_of_the_run(run, written, tmp_path):
    files = [str(written / f"{name}.parquet") for name in ("labels", "same")]
    asked = ["gate", *files, "--rule", "map@5 >= 0.1", "--history", f"{tmp_path}/runs"]
    page = tmp_path / "page.html"
    assert run(*asked, "--date", "2026-02-03")[0] == 0
    assert run(*asked, "--date", "2026-02-01", "--report", str(page))[0] == 0
    found = rankmill.History(tmp_path / "runs")
    assert [f"{one.time:%F}" for one in found.runs] == ["2026-02-01", "2026-02-03"]
    # Runs later than this one are no baseline.
    asked[3:5] = ["--rule", "map@5 drop <= 1%", "--baseline", "last"]
    code, out, _ = run(*asked, "--date", "2026-02-02")
    assert code == 0
    assert f"{found.runs[0].id}, 1 day old" in out
    assert f"left out: the run {found.runs[1].id}, dated 2026-02-03" in out


def test_a_file_of_the_future_has_no_age(written):
    files = [str(written / f"{name}.parquet") for name in ("labels", "same")]
    rules = ["labels_age <= 1h"]
    written_at = time.time() + 30
    os.utime(files[0], (written_at, written_at))
    assert rankmill.gate(*files, rules)
    os.utime(files[0], (written_at, written_at + 10_770))
    with pytest.raises(rankmill.InputError, match="of the labels was written 3h after now: the cl"):
        rankmill.gate(*files, rules)
