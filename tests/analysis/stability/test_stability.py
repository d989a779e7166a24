"""Stability of a ranking: over cutoffs, between metrics, over halves, and the queries needed."""

import csv
import io
import itertools
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from flat import flat
from rankmill.analysis.statistics.sample_size import queries_needed
from slow_halves import slow_halves, slow_tau_ap

CUTOFFS = (1, 2, 4)
SKIP = {"unpredicted": "skip"}


def table(lists):
    return pa.table({"query": list(lists), "items": list(lists.values())})


def made(seed, count=60):
    """Labels and four systems, as {query: items}; two of the systems are equal."""
    draw = random.Random(seed)
    labels = {query: draw.sample(range(8), draw.randint(1, 3)) for query in range(count)}
    runs = {name: {q: draw.sample(range(8), 4) for q in labels} for name in ("poor", "other")}
    runs["good"] = {q: [one[0], *draw.sample(range(8, 12), 2)] for q, one in labels.items()}
    return labels, {**runs, "same": dict(runs["good"])}


def stability(labels, runs, metrics=("map", "recall"), cutoffs=CUTOFFS, **options):
    runs = {name: table(one) for name, one in runs.items()}
    return flat(rankmill.stability, table(labels), runs, metrics, cutoffs=cutoffs, **options)


def numbers(found):
    """Return all that must not depend on the order of rows, systems and files."""
    content = found.to_dict()
    for key in ("seconds", "inputs", "systems"):
        del content[key]
    return content


@pytest.mark.small
@pytest.mark.parametrize("unpredicted", ["zero", "skip"])
def test_all_numbers_are_those_of_compare_and_of_plain_loops(unpredicted):
    stats = pytest.importorskip("scipy.stats")
    labels, runs = made(1)
    del runs["poor"][3], runs["good"][5], runs["good"][6]
    semantics = {"unpredicted": unpredicted}
    options = {"semantics": semantics, "confidence": 0.9}
    found = stability(labels, runs, power=0.7, splits=40, seed=5, **options)
    names = [f"{metric}@{k}" for metric in found.metrics for k in CUTOFFS]
    tables = {name: table(one) for name, one in runs.items()}
    beside = flat(rankmill.compare, table(labels), tables, names, **options)
    assert found.queries == beside.queries == (60 if unpredicted == "zero" else 57)
    assert (found.left_out, found.differing) == (beside.left_out, beside.differing)
    assert found.unpredicted == beside.unpredicted
    rows = [row for row in beside.per_query.to_pylist() if None not in row.values()]
    for metric, k in itertools.product(found.metrics, CUTOFFS):
        for name in runs:
            assert found.values[metric][name][k] == beside.values[f"{metric}@{k}"][name]
        means = {name: round(found.values[metric][name][k].value, 12) for name in runs}
        for name in runs:
            better = sum(means[other] > means[name] for other in runs)
            assert found.ranks[metric][name][k] == 1 + better
        for other in CUTOFFS:
            others = [round(found.values[metric][name][other].value, 12) for name in runs]
            both = found.between_cutoffs[metric][k][other]
            assert both.tau_b == pytest.approx(stats.kendalltau([*means.values()], others)[0])
            assert both.tau_ap == pytest.approx(slow_tau_ap([*means.values()], others))
        values = {
            name: {row["query"]: row[f"{name}:{metric}@{k}"] for row in rows} for name in runs
        }
        tau, shares = slow_halves(values, 5, 40)
        assert found.halves[metric][k].tau == pytest.approx(tau)
        for (one, other), share in shares.items():
            assert found.halves[metric][k].agreement[one][other] == share
    for k in CUTOFFS:
        of_map, of_recall = (
            [round(found.values[metric][name][k].value, 12) for name in runs]
            for metric in ("map", "recall")
        )
        both = found.between_metrics["map"]["recall"][k]
        assert both == found.between_metrics["recall"]["map"][k]
        assert both.tau_b == pytest.approx(stats.kendalltau(of_map, of_recall)[0])


@pytest.mark.small
def test_queries_needed_are_from_the_differences_of_neighbours():
    labels, runs = made(2)
    found = stability(labels, runs, "map", power=0.9)
    tables = {name: table(one) for name, one in runs.items()}
    results = rankmill.evaluate_runs(table(labels), tables, [f"map@{k}" for k in CUTOFFS])
    for k, pairs in found.needed["map"].items():
        ranked = sorted(runs, key=lambda name: (found.ranks["map"][name][k], name))
        assert [(one.better, one.worse) for one in pairs] == [*itertools.pairwise(ranked)]
        for one in pairs:
            both = (results[name].per_query for name in (one.better, one.worse))
            better, worse = (each.column(f"map@{k}").to_numpy() for each in both)
            differences = better - worse
            assert one.difference == pytest.approx(differences.mean())
            assert one.deviation == pytest.approx(differences.std(ddof=1))
            if {one.better, one.worse} == {"good", "same"}:
                assert one.deviation == 0
            if not one.difference:
                assert (one.effect, one.queries) == (None, None)
            else:
                assert one.effect == pytest.approx(one.difference / one.deviation)
                assert one.queries == queries_needed(one.effect, 0.95, 0.9)
    assert ("good", "same") in found.neighbours("map")


@pytest.mark.small
@pytest.mark.parametrize("unpredicted", ["zero", "skip"])
@pytest.mark.parametrize("text", [False, True])
def test_the_order_of_rows_systems_and_threads_changes_nothing(unpredicted, text):
    labels, runs = made(3)
    runs["good"] |= {-1: [1], 77: [2]}
    del runs["poor"][11], runs["good"][20], runs["good"][21]
    if text:
        labels = {f"q{query}": one for query, one in labels.items()}
        runs = {name: {f"q{q}": one for q, one in lists.items()} for name, lists in runs.items()}
    options = {"semantics": {"unpredicted": unpredicted, "unlabelled": "zero"}, "splits": 70}
    expected = numbers(stability(labels, runs, **options))
    for seed in range(3):
        draw = random.Random(seed)

        def shuffled(lists, draw=draw):
            return dict(draw.sample(list(lists.items()), len(lists)))

        again = shuffled({name: shuffled(lists) for name, lists in runs.items()})
        found = stability(shuffled(labels), again, threads=1 + seed, **options)
        assert numbers(found) == expected
    assert numbers(stability(labels, runs, **options, seed=1)) != expected


@pytest.mark.small
def test_halves_compare_systems_of_different_largest_values():
    labels = {query: [1] for query in range(60)}
    runs = {"late": {query: [2, 3, 1] for query in labels}}
    runs["early"] = {query: [1] if query % 20 < 7 else [2] for query in labels}
    found = stability(labels, runs, "map", [3])
    values = {"late": dict.fromkeys(labels, 1 / 3)}
    values["early"] = {query: float(query % 20 < 7) for query in labels}
    _, shares = slow_halves(values, 0, 100)
    assert found.halves["map"][3].agreement["late"]["early"] == shares["late", "early"] < 0.5


def test_the_order_of_metrics_and_cutoffs_changes_nothing():
    labels, runs = made(4)
    one = stability(labels, runs, ["map", "recall"], (64, 1, 2, 2))
    other = stability(labels, runs, "recall,map", [1, 2, 64])
    assert numbers(one) == numbers(other)
    assert one.cutoffs == (1, 2, 64)
    assert one.metrics == ["map", "recall"]


def test_names_with_parameters_and_those_that_need_a_cutoff():
    labels, runs = made(5)
    found = stability(labels, runs, ["map(rel=1)", "precision", "P", "rbp(p=0.5)"], [3])
    assert found.metrics == ["map(rel=1)", "precision", "P", "rbp(p=0.5)"]
    assert found.values["precision"]["good"] == found.values["P"]["good"]
    assert stability(labels, runs, "map", [3], rel=1).metrics == ["map(rel=1)"]


# ------------------------------------------------------------------ edge cases


@pytest.mark.small
def test_one_system_has_values_and_intervals_only():
    labels, runs = made(6)
    found = rankmill.stability(table(labels), table(runs["good"]), cutoffs=CUTOFFS)
    assert found.systems == ["predictions"]
    assert found.ranks == {"map": {"predictions": dict.fromkeys(CUTOFFS, 1)}}
    assert (found.between_cutoffs, found.between_metrics) == ({}, {})
    assert (found.halves, found.needed) == ({}, {})
    one = found.values["map"]["predictions"][2]
    result = rankmill.evaluate(table(labels), table(runs["good"]), "map@2")
    assert (one.value, one.standard_error) == (result["map@2"], result.standard_errors["map@2"])
    assert one.low < one.value < one.high
    named = stability(labels, {"good": runs["good"]}, "map")
    assert named.values["map"]["good"] == found.values["map"]["predictions"]
    assert "±" in repr(found)
    assert "tau" not in repr(found)


@pytest.mark.small
def test_two_systems_have_no_correlation_between_halves():
    labels, runs = made(7)
    found = stability(labels, {name: runs[name] for name in ("poor", "good")}, "map")
    for k in CUTOFFS:
        assert found.halves["map"][k].tau is None
        assert found.halves["map"][k].agreement["poor"]["good"] is not None
        for other in CUTOFFS:
            tau, ap = found.between_cutoffs["map"][k][other]
            assert tau == ap
            assert tau in (-1, 1)


@pytest.mark.small
def test_a_system_against_itself_says_nothing():
    labels, runs = made(8)
    found = stability(labels, dict.fromkeys("abc", runs["good"]))
    for metric, k in itertools.product(found.metrics, CUTOFFS):
        assert {found.ranks[metric][name][k] for name in "abc"} == {1}
        assert found.between_cutoffs[metric][k][1] == (None, None)
        assert found.halves[metric][k].tau is None
        assert found.halves[metric][k].agreement["a"] == {"b": None, "c": None}
        assert [one[:3] for one in found.needed[metric][k]] == [("a", "b", 0), ("b", "c", 0)]
        assert [one.queries for one in found.needed[metric][k]] == [None, None]
    assert "*\n" not in repr(found)
    found.to_json()


@pytest.mark.small
@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("alone", [False, True])
def test_few_queries_have_no_numbers_that_do_not_exist(count, alone, recwarn):
    labels, runs = made(9, count=max(count, 1))
    kept = {"good": runs["good"]} if alone else {name: runs[name] for name in ("poor", "good")}
    if not count:
        kept = {name: {99: [1]} for name in kept}
    found = stability(labels, kept, "map", semantics=SKIP)
    assert found.queries == count
    one = found.values["map"]["good"][1]
    assert (one.value is None) == (count == 0)
    assert (one.low is None) == (count < 2)
    assert found.ranks["map"]["good"][1] in ((None,) if not count else (1, 2))
    if not alone and count < 2:
        agreement = {"poor": {"good": None}, "good": {"poor": None}}
        assert found.halves["map"][1].agreement == agreement
        assert all(one.queries is None for one in found.needed["map"][1])
    assert "NaN" not in found.to_json()
    assert repr(found)
    assert found._repr_html_()
    assert not [one for one in recwarn if issubclass(one.category, RuntimeWarning)]


# ------------------------------------------------------------------ wrong usage


@pytest.mark.small
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": "map@10"}, "'map@10' already has a cutoff"),
        ({"metrics": "P_10"}, "'P_10' already has a cutoff"),
        ({"metrics": ["map", "rprec"]}, "takes no cutoff"),
        ({"metrics": "gap"}, "gap is not a mean over queries"),
        ({"metrics": "mpa"}, "unknown metric 'mpa': did you mean map"),
        ({"metrics": []}, "no metric was asked for"),
        ({"metrics": 3}, "expected names"),
        ({"cutoffs": []}, "cutoffs is empty"),
        ({"cutoffs": 5}, "cutoffs is 5"),
        ({"cutoffs": "1,2"}, "cutoffs is '1,2'"),
        ({"cutoffs": [0]}, "a cutoff is 0"),
        ({"confidence": 95}, "confidence is 95"),
        ({"power": 0}, "power is 0"),
        ({"splits": 0}, "splits is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"runs": {}}, "runs is empty"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_read(options, message):
    given_options = {"runs": {"a": "missing.parquet"}, **options}
    with pytest.raises(rankmill.UsageError, match=message.replace("?", r"\?")):
        flat(rankmill.stability, "missing.parquet", **given_options)


# ------------------------------------------------------------------ the command


@pytest.fixture
def written(tmp_path):
    labels, runs = made(10)
    files = {"labels": labels, **runs}
    for name, lists in files.items():
        pq.write_table(table(lists), tmp_path / f"{name}.parquet")
    return {name: tmp_path / f"{name}.parquet" for name in files}


def test_the_command_says_what_python_says(written, run_cli, tmp_path):
    paths = [written[name] for name in ("labels", "poor", "other", "good")]
    asked = ["stability", *paths, "-m", "map", "-m", "recall", "--cutoffs", "1,2,4"]
    asked += ["--splits", "20", "--seed", "2", "--power", "0.9", "--confidence", "0.9"]
    shown = json.loads(run_cli(*asked, "--format", "json").stdout)
    runs = {name: written[name] for name in ("poor", "other", "good")}
    options = {"splits": 20, "seed": 2, "power": 0.9, "confidence": 0.9}
    found = flat(
        rankmill.stability, written["labels"], runs, ["map", "recall"], cutoffs=[1, 2, 4], **options
    )
    wanted = json.loads(found.to_json())
    for content in (shown, wanted):
        del content["seconds"]
    assert shown == wanted
    for suffix in ("json", "csv", "md"):
        assert run_cli(*asked, "-o", tmp_path / f"out.{suffix}").exit_code == 0
    assert json.loads((tmp_path / "out.json").read_text())["systems"] == [*runs]
    text = run_cli(*asked).stdout
    places = [text.index(part) for part in ("map ", "agreement of rankings", "halves", "needed")]
    assert places == sorted(places)
    assert (tmp_path / "out.md").read_text().count("|") > 100


def test_csv_has_every_number(written, run_cli):
    paths = [written[name] for name in ("labels", "poor", "other", "good")]
    asked = ["stability", *paths, "-m", "map", "-m", "recall", "--cutoffs", "1,4"]
    rows = list(csv.DictReader(io.StringIO(run_cli(*asked, "--format", "csv").stdout)))
    runs = {name: written[name] for name in ("poor", "other", "good")}
    found = rankmill.stability(written["labels"], runs, ["map", "recall"], cutoffs=[1, 4])
    by_key = {tuple(row.values())[:-1]: row["value"] for row in rows}
    assert len(by_key) == len(rows)

    def cell(what, k, system="", metric="", cutoff="", other=""):
        return float(by_key[what, "map", str(k), system, metric, str(cutoff), other])

    for k in (1, 4):
        for name in runs:
            one = found.values["map"][name][k]
            assert cell("value", k, name) == one.value
            assert cell("low", k, name) == one.low
            assert cell("rank", k, name) == found.ranks["map"][name][k]
        both = found.between_cutoffs["map"][k][4]
        assert cell("tau_b", k, "", "map", 4) == both.tau_b
        both = found.between_metrics["map"]["recall"][k]
        assert cell("tau_ap", k, "", "recall", k) == both.tau_ap
        share = found.halves["map"][k].agreement["poor"]["good"]
        assert cell("halves_agreement", k, "poor", other="good") == share
        one = found.needed["map"][k][0]
        assert cell("queries_needed", k, one.better, other=one.worse) == one.queries


def test_the_command_draws_the_values_over_cutoffs(written, run_cli, tmp_path):
    paths = [written[name] for name in ("labels", "poor", "good")]
    outcome = run_cli("stability", *paths, "-m", "map", "--plot", tmp_path / "a.svg")
    assert outcome.exit_code == 0, outcome.stderr
    text = (tmp_path / "a.svg").read_text()
    assert all(name in text for name in ("poor", "good", "Value by cutoff"))
    assert run_cli("stability", *paths, "--plot", tmp_path / "a.jpg").exit_code == 2


def test_the_command_refuses_what_python_refuses(written, run_cli):
    labels, poor = written["labels"], written["poor"]
    for more, message in (
        (["-m", "map@3"], "already has a cutoff"),
        (["--cutoffs", "1,x"], "not a list of positive integers"),
        (["--cutoffs", "0"], "a cutoff is 0"),
        (["--power", "2"], "power is 2"),
    ):
        outcome = run_cli("stability", labels, poor, *more)
        assert outcome.exit_code == 2
        assert message in outcome.stderr


def test_no_query_in_all_systems_is_an_error_of_the_input(written, run_cli, tmp_path):
    pq.write_table(table({99: [1]}), tmp_path / "strange.parquet")
    paths = [written["labels"], written["poor"], tmp_path / "strange.parquet"]
    outcome = run_cli("stability", *paths, "--semantics", "unpredicted=skip")
    assert outcome.exit_code == 3
    assert "no query counts for every system" in outcome.stderr
