"""Comparison of systems: joined by query id, over the same queries, with honest words."""

import json
import math
import random
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from flat import flat
from rankmill.analysis.compare.view.comparison import view_of
from rankmill.analysis.statistics.significance import CORRECTIONS, TESTS, correct
from rankmill.columns.ids import to_ids
from rankmill.engine.slices import groups_of
from rankmill.package import GONE
from rankmill.show import writers
from systems import METRICS, compare, made, numbers, table

SKIP = {"unpredicted": "skip"}


def plainly(labels, runs, metric, base, name, semantics):
    """Return both values of each query that counts for all systems, from one call a system."""
    tables = {}
    for each, lists in runs.items():
        result = rankmill.evaluate(table(labels), table(lists), metric, semantics=semantics)
        tables[each] = dict(zip(*result.per_query.to_pydict().values(), strict=True))
    common = set.intersection(*map(set, tables.values()))
    return [(tables[base][query], tables[name][query]) for query in common]


@pytest.mark.small
@pytest.mark.parametrize("unpredicted", ["zero", "skip"])
def test_all_numbers_are_those_of_the_pairs_of_queries(unpredicted):
    draw = random.Random(unpredicted)
    labels, poor, good = made(1)
    for query in draw.sample(list(labels), 9):
        del poor[query]
    for query in draw.sample(list(labels), 5):
        del good[query]
    runs = {"poor": poor, "good": good, "third": dict(list(good.items())[3:])}
    semantics = {"unpredicted": unpredicted}
    found = compare(labels, runs, semantics=semantics)
    for metric in METRICS:
        for name in ("good", "third"):
            pairs = plainly(labels, runs, metric, "poor", name, semantics)
            before, after = map(np.array, zip(*pairs, strict=True))
            one = found.differences[metric][name]
            differences = after - before
            assert found.queries == len(pairs)
            assert found.values[metric]["poor"].value == pytest.approx(before.mean(), rel=1e-14)
            value = found.values[metric][name]
            assert value.value == pytest.approx(after.mean(), rel=1e-14)
            error = after.std(ddof=1) / math.sqrt(len(pairs))
            assert value.standard_error == pytest.approx(error, rel=1e-12)
            assert value.low + value.high == pytest.approx(2 * value.value)
            assert one.value == pytest.approx(differences.mean(), rel=1e-12)
            assert one.relative == pytest.approx(differences.mean() / before.mean(), rel=1e-12)
            signs = np.sign(differences)
            counts = [(signs == sign).sum() for sign in (1, 0, -1)]
            assert [one.won, one.tied, one.lost] == counts
            assert one.low < one.value < one.high
            assert 0 <= one.tests["t"].p <= one.tests["t"].corrected_p <= 1
    counted = {
        name: len(labels if unpredicted == "zero" else lists) for name, lists in runs.items()
    }
    assert found.left_out == {name: count - found.queries for name, count in counted.items()}
    assert found.unpredicted == {name: len(labels) - len(lists) for name, lists in runs.items()}
    assert found.per_query.num_rows == found.queries + found.differing


@pytest.mark.small
def test_intervals_and_p_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    labels, poor, good = made(2)
    found = compare(labels, {"poor": poor, "good": good}, confidence=0.9)
    for metric in METRICS:
        before, after = (
            found.per_query.column(f"{name}:{metric}").to_numpy() for name in ("poor", "good")
        )
        expected = stats.ttest_rel(after, before)
        one, value = found.differences[metric]["good"], found.values[metric]["good"]
        assert one.tests["t"].p == pytest.approx(expected.pvalue, rel=1e-10)
        ends = expected.confidence_interval(0.9)
        assert (one.low, one.high) == pytest.approx((ends.low, ends.high), rel=1e-10)
        ends = stats.ttest_1samp(after, 0).confidence_interval(0.9)
        assert (value.low, value.high) == pytest.approx((ends.low, ends.high), rel=1e-10)


@pytest.mark.small
@pytest.mark.parametrize("unpredicted", ["zero", "skip"])
def test_the_order_of_rows_systems_and_files_changes_nothing(unpredicted):
    labels, poor, good = made(3)
    good |= {-1: [1], 77: [2]}
    del poor[11], good[20], good[21]
    runs = {"poor": poor, "good": good, "mixed": {q: good[q] for q in sorted(good)[::2]}}
    options = {
        "baseline": "poor",
        "moved": 4,
        "tests": list(TESTS),
        "margin": 0.05,
        "semantics": {"unpredicted": unpredicted, "unlabelled": "zero"},
    }
    expected = numbers(compare(labels, runs, **options))
    for seed in range(4):
        draw = random.Random(seed)

        def shuffled(lists, draw=draw):
            return dict(draw.sample(list(lists.items()), len(lists)))

        some = shuffled({name: shuffled(one) for name, one in runs.items()})
        found = compare(shuffled(labels), some, threads=1 + seed % 2, **options)
        assert numbers(found) == expected


@pytest.mark.small
@pytest.mark.parametrize("missing", ["poor", "good"])
def test_a_misjoin_would_be_seen(missing):
    """Rows of one system are shuffled, and one query is missing on either side."""
    labels, poor, good = made(4)
    runs = {"poor": poor, "good": dict(random.Random(0).sample(list(good.items()), len(good)))}
    del runs[missing][13]
    left = {query: one for query, one in labels.items() if query != 13}
    found = compare(labels, runs, semantics=SKIP, moved=3)
    assert (found.queries, found.differing) == (59, 1)
    assert found.left_out == {name: int(name != missing) for name in runs}
    both = {name: {q: one for q, one in lists.items() if q != 13} for name, lists in runs.items()}
    expected = compare(left, both, moved=3)
    for key in ("metrics", "moved"):
        assert numbers(found)[key] == numbers(expected)[key]
    column = found.per_query.column(f"{missing}:map@3").to_pylist()
    assert found.per_query.column("query").to_pylist()[column.index(None)] == 13


@pytest.mark.small
def test_a_system_against_itself():
    labels, poor, _ = made(5)
    found = compare(labels, {"a": poor, "b": dict(reversed(poor.items()))}, tests=list(TESTS))
    for metric in METRICS:
        one = found.differences[metric]["b"]
        assert one.value == 0
        # 60 equal queries leave open that 1 in 17 differs, by all of the range.
        share = 1 - 0.025 ** (1 / 60)
        assert (one.low, one.high) == pytest.approx((-share, share), rel=0.01)
        assert (one.won, one.tied, one.lost) == (0, 60, 0)
        assert {tested.p for tested in one.tests.values()} == {1}
        assert {tested.corrected_p for tested in one.tests.values()} == {1}
        assert one.verdict == "no difference shown"
        assert found.winner(metric) is None


@pytest.mark.small
@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("alike", [True, False])
def test_few_queries_do_not_fail(count, alike):
    labels = {query: [query] for query in range(2)}
    runs = {"a": {query: [query] for query in range(count)} | {8: [1]}}
    runs["b"] = {query: [query if alike else 9] for query in range(2)} | {9: [1]}
    runs = {
        name: table(lists).append_column("score", [[[1.0]] * len(lists)])
        for name, lists in runs.items()
    }
    found = compare(
        labels, runs, ["map", "gap"], semantics=SKIP, tests=list(TESTS), margin=0.1, moved=2
    )
    assert found.queries == count
    one, value = found.differences["map"]["b"], found.values["map"]["a"]
    assert value.value == (1 if count else None)
    assert (value.low is None) == (count < 2)
    if not count:
        assert (one.value, one.verdict) == (None, None)
    else:
        assert one.value == (0 if alike else -1)
        assert one.relative == one.value
    for format in (*writers.FORMATS, "html"):
        shown = writers.write(view_of(found), format).replace("nan_confidence", "")
        assert "nan" not in shown.lower()
    found.to_json()


@pytest.mark.small
def test_words():
    labels, poor, good = made(6, 200)
    nearly = dict(good) | {0: [99]}
    runs = {"base": good, "poor": poor, "nearly": nearly}
    found = compare(labels, runs, "map@3")
    words = {name: one.verdict for name, one in found.differences["map@3"].items()}
    assert words == {"poor": "worse", "nearly": "no difference shown"}
    assert found.winner("map@3") is None
    assert compare(labels, {"base": good, "poor": poor}, "map@3").winner("map@3") == "base"
    found = compare(labels, runs, "map@3", margin=0.05)
    words = {name: one.verdict for name, one in found.differences["map@3"].items()}
    assert words == {"poor": "worse", "nearly": "equal within the margin"}

    one = found.differences["map@3"]["nearly"]
    assert one.equivalence.corrected_p <= 0.05
    assert one.noninferiority.corrected_p <= 0.05
    found = compare(labels, {**runs, "more": good}, "map@3", baseline="poor")
    assert {one.verdict for one in found.differences["map@3"].values()} == {"better"}
    assert found.winner("map@3") is None  # three systems are alike
    three = {"a": poor, "b": poor, "good": good}
    assert compare(labels, three, "map@3", all_pairs=True).winner("map@3") == "good"
    assert compare(labels, three, "map@3").winner("map@3") is None  # not tested against each


def test_a_system_may_be_shown_to_be_no_worse():
    draw = np.random.default_rng(2)
    labels = {q: [1] for q in range(400)}
    old = {q: [1] if one else [2] for q, one in enumerate(draw.random(400) < 0.5)}
    gained = draw.random(400) < 0.06
    new = {q: [1] if gained[q] else items for q, items in old.items()}
    new |= {q: [2] for q in range(3)}
    found = flat(rankmill.compare, labels, {"old": old, "new": new}, "hit@1", margin=0.02)
    one = found.differences["hit@1"]["new"]
    assert one.verdict == "non-inferior"
    assert one.equivalence.corrected_p > 0.05 >= one.noninferiority.corrected_p
    assert "non-inferior" in repr(found)


@pytest.mark.small
def test_a_test_that_points_against_the_mean_does_not_speak_for_it():
    labels = {query: [1] for query in range(40)}
    old = {query: [1] if query < 5 else [0, 0, 0, 0, 0, 1] for query in labels}
    new = {query: [0] if query < 5 else [0, 0, 0, 0, 1] for query in labels}
    found = compare(labels, {"old": old, "new": new}, "mrr", tests=["wilcoxon", "t"])
    one = found.differences["mrr"]["new"]
    assert one.value < 0 < one.won - one.lost
    assert one.tests["wilcoxon"].corrected_p < 0.05
    assert [tested.direction for tested in one.tests.values()] == [1, -1]
    assert one.verdict == "no difference shown"


@pytest.mark.small
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_p_is_corrected_over_metrics_and_systems(correction):
    labels, poor, good = made(7)
    half = {query: (good if query % 2 else poor)[query] for query in poor}
    runs = {"poor": poor, "good": good, "half": half}
    found = compare(labels, runs, correction=correction)
    tests = [one.tests["t"] for of in found.differences.values() for one in of.values()]
    ps = [one.p for one in tests]
    assert len(ps) == 6
    assert [one.corrected_p for one in tests] == correct(ps, correction)


@pytest.mark.small
def test_gap_has_a_value_and_no_test_where_no_query_can_be_left_out():
    labels = {0: [0]}
    runs = {
        name: pa.table({"query": [0], "items": [[0, 1]], "scores": [scores]})
        for name, scores in (("a", [0.5, 0.6]), ("b", [0.6, 0.5]))
    }
    for metrics in ("gap", ["map", "gap"]):
        found = compare(labels, runs, metrics)
        one = found.differences["gap"]["b"]
        assert one.value == 0.5
        assert (one.tests, one.verdict, one.won, one.low) == ({}, None, None, None)
        assert found.pooled == ["gap"]
        assert "gap is not a mean over queries: no interval and no test, because" in repr(found)
        assert "not tested" in repr(found)


@pytest.mark.small
@pytest.mark.lengthy
@pytest.mark.parametrize("tests", ["t", "wilcoxon", ["wilcoxon", "t"], ["t", "wilcoxon"]])
def test_gap_is_compared_by_a_jackknife(tests):
    draw = random.Random(3)
    labels = {query: [query] for query in range(90)}
    runs = {}
    for name, good in (("old", 0.3), ("same", 0.3), ("new", 0.7)):
        right = [draw.random() < good for _ in labels]
        rows = [[q if one else -1, -2] for q, one in zip(labels, right, strict=True)]
        scores = [[draw.random() + one, draw.random()] for one in right]
        runs[name] = pa.table({"query": list(labels), "items": rows, "scores": scores})
    found = compare(labels, runs, ["map", "gap"], tests=tests)
    assert not math.isnan(found.values["gap"]["old"].standard_error)
    # p of gap is corrected with that of the first test, and the verdict comes from it.
    asked = found.settings.tests
    means = [one.tests[asked[0]].p for one in found.differences["map"].values()]
    of_gap = found.differences["gap"]
    assert [list(one.tests) for one in of_gap.values()] == [["t"], ["t"]]
    every = means + [one.tests["t"].p for one in of_gap.values()]
    wanted = correct(every, "holm")[-2:]
    assert [one.tests["t"].corrected_p for one in of_gap.values()] == wanted
    assert [one.verdict for one in of_gap.values()] == ["no difference shown", "better"]
    low, high = of_gap["new"].low, of_gap["new"].high
    assert (of_gap["new"].tests["t"].low, low < of_gap["new"].value < high) == (low, True)
    groups = len(set(groups_of(to_ids(np.arange(90), "query"))))
    note = f"gap is not a mean over queries: its interval is a jackknife over {groups} groups"
    assert note in repr(found).replace("\n", " ")
    assert any(note in one for one in json.loads(found.to_json())["notes"])
    table = view_of(found).exact()
    places = {column.title: i for i, column in enumerate(table.columns)}
    last = table.rows[-1]
    assert last[places["metric"]] == "gap"
    assert last[places["t_corrected_p"]] == wanted[1]
    assert last[places["t_p"]] == of_gap["new"].tests["t"].p


@pytest.mark.small
def test_a_system_may_be_called_anything():
    labels, poor, good = made(9)
    found = compare(labels, {"labels": poor, "=b:map@3": good}, "map@3", moved=1)
    assert found.inputs["labels"]["rows"] == 60
    assert list(found.inputs["systems"]) == found.systems == ["labels", "=b:map@3"]
    assert found.per_query.column_names == ["query", "labels:map@3", "=b:map@3:map@3"]
    assert "from labels" in repr(found)


@pytest.mark.small
def test_moved_queries_are_the_first_by_difference_then_by_id():
    labels = {query: [1] for query in (30, 4, 200, 11, 5, 6)}
    old = {30: [1], 4: [0, 1], 200: [0], 11: [0], 5: [1], 6: [0, 1]}
    new = {30: [0], 4: [1], 200: [1], 11: [1], 5: [0], 6: [0, 0, 1]}
    found = compare(labels, {"old": old, "new": new}, "map", moved=2)
    rows = found.moved["map"]["new"]
    assert [(one.query, one.difference) for one in rows] == [(11, 1), (200, 1), (30, -1), (5, -1)]
    assert [(one.baseline, one.value) for one in rows] == [(0, 1), (0, 1), (1, 0), (1, 0)]
    rows = compare(labels, {"old": old, "new": new}, "map", moved=9).moved["map"]["new"]
    assert [one.query for one in rows] == [11, 200, 4, 6, 30, 5]
    texts = {f"q{query}": items for query, items in new.items()}
    found = compare(
        {f"q{q}": [1] for q in labels}, {"a": texts, "b": {} | {"q4": [1]}}, "map", moved=1
    )
    assert [one.query for one in found.moved["map"]["b"]] == ["q11"]


@pytest.mark.small
@pytest.mark.parametrize("metric", ["map", "first_rank", "num_ret"])
def test_losses_alone_are_those_among_the_queries_that_moved(metric):
    labels, poor, good = made(5)
    longer = {query: [*items, 0] for query, items in poor.items()}
    pairs = {q: (longer, good)[:: 1 if q % 2 else -1] for q in labels}
    runs = {"poor": {q: one[q] for q, (one, _) in pairs.items()}}
    runs["good"] = {q: one[q] for q, (_, one) in pairs.items()}
    both = compare(labels, runs, metric, moved=4).moved[metric]["good"]
    lost = compare(labels, runs, metric, moved=-4).moved[metric]["good"]
    assert (len(both), lost) == (8, both[:3:-1])
    lower = metric == "first_rank"
    assert all((one.difference > 0) == lower for one in lost)


@pytest.mark.small
@pytest.mark.parametrize("text", [False, True])
def test_left_out_queries_are_named_by_system(text):
    """Counts as sets have them, and the smallest ids, in whatever order files have their rows."""
    labels, poor, good = made(6)
    draw = random.Random(1)
    every = list(labels)
    runs = {"poor": poor, "good": good, "whole": {query: [1] for query in every}}
    lack = {"poor": draw.sample(every, 7), "good": draw.sample(every, 2)}
    for name, queries in lack.items():
        runs[name] = {q: one for q, one in runs[name].items() if q not in queries}
    kind = str if text else int
    given = {n: {kind(q): one for q, one in of.items()} for n, of in [("", labels), *runs.items()]}
    labels = given.pop("")
    found = compare(labels, given, "map", semantics=SKIP)
    assert list(found.lacking) == ["poor", "good"]
    for name, queries in lack.items():
        count, first = found.lacking[name]
        assert (count, first) == (len(queries), sorted(map(kind, queries))[:3])
    assert found.differing == len({*lack["poor"], *lack["good"]})
    shuffled = {n: dict(draw.sample([*of.items()], len(of))) for n, of in given.items()}
    assert compare(labels, shuffled, "map", semantics=SKIP).lacking == found.lacking
    ids = ", ".join(map(str, found.lacking["poor"].first))
    assert f"poor lacks 7 ({ids}, ...), good lacks 2 (" in repr(found)
    assert "per_query has null for them" in repr(found)
    assert rankmill.Comparison.from_json(found.to_json()) == found


@pytest.mark.small
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tests": "z"}, "there is no test 'z'; expected one of t, "),
        ({"tests": ()}, "tests is empty"),
        ({"tests": 3}, "tests is 3; expected names"),
        *(({"tests": ["t", name]}, GONE[name]) for name in ("bootstrap", "bca", "sign", "tukey")),
        ({"correction": "bonferroni"}, GONE["bonferroni"]),
        ({"correction": "x"}, "there is no correction 'x'; expected one of holm"),
        ({"confidence": 95}, "confidence is 95; expected a number between 0 and 1"),
        ({"margin": 0}, "margin is 0; expected a positive number"),
        ({"margin": math.nan}, "margin is nan"),
        ({"moved": 1.5}, "moved is 1.5; expected an integer, such as 5, or -5 for losses"),
        ({"seed": -1}, "seed is -1"),
        ({"baseline": "c"}, "there is no system 'c'; expected one of a, b"),
        ({"runs": {"a": "x"}}, "runs has 1; expected a mapping of two systems"),
        ({"runs": ["a", "b"]}, "runs is a list; expected a mapping"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_read(options, message):
    runs = options.pop("runs", {"a": "missing", "b": "missing too"})
    with pytest.raises(rankmill.UsageError, match=message.replace("(", r"\(")):
        flat(rankmill.compare, "missing", runs, "map", **options)


# ------------------------------------------------------------------ the command


@pytest.fixture
def dump(tmp_path):
    labels, poor, good = made(8)
    del good[7]
    paths = [tmp_path / f"{name}.parquet" for name in ("labels", "old", "new one")]
    for path, lists in zip(paths, (labels, poor, good), strict=True):
        pq.write_table(pa.table({"uid": list(lists), "items": list(lists.values())}), path)
    return paths


@pytest.mark.small
def test_the_command_says_who_is_better(run, dump, tmp_path):
    written = tmp_path / "q.parquet"
    asked = ["compare", *dump, "-m", "map@3", "--query", "uid"]
    code, out, err = run(*asked, "--per-query", written)
    assert (code, err) == (0, "")
    header, _, old, new = out.split("\n")[:4]
    assert header.split()[:5] == ["map@3", "value", "±", "95%", "from"]
    assert old.startswith("old ")
    assert new.startswith("new one ")
    assert " <0.0001  better " in new
    assert "*" in new
    assert "\n* best value for this metric\n" in out
    assert "\nqueries: 60 (those that count for every system)\n" in out
    (counted,) = (one for one in out.splitlines() if one.startswith("queries_only_labelled"))
    assert counted.split(maxsplit=3)[1:] == ["0", "1", "labelled but never predicted: they score 0"]
    columns = ["uid", "old:map@3", "new one:map@3"]
    assert pq.read_table(written).column_names == columns
    for baseline in ("new one", dump[2]):
        code, out, _ = run(*asked, "--baseline", baseline)
        assert "from new one" in out
        assert " worse " in out


@pytest.mark.small
def test_formats_of_the_command(run, dump):
    asked = ["compare", *dump, "-m", "map@3", "-m", "ndcg", "--query", "uid", "--test", "wilcoxon"]
    asked += ["--test", "t", "--moved", "1"]
    content = json.loads(run(*asked, "--format", "json")[1])
    one = content["metrics"]["map@3"]["new one"]["difference"]
    assert list(one["tests"]) == ["wilcoxon", "t"]
    assert one["won_share"] == one["won"] / 60
    assert content["metrics"]["map@3"]["old"]["difference"] is None
    rows = run(*asked, "--format", "csv")[1].splitlines()
    cells = [dict(zip(rows[0].split(","), row.split(","), strict=True)) for row in rows[1:]]
    assert [(row["metric"], row["system"]) for row in cells if not row["query"]] == [
        (metric, name) for metric in ("map@3", "ndcg") for name in ("old", "new one")
    ]
    assert cells[1]["difference"] == repr(one["value"])
    assert cells[1]["t_p"] == repr(one["tests"]["t"]["p"])
    assert cells[1]["wilcoxon_corrected_p"] == repr(one["tests"]["wilcoxon"]["corrected_p"])
    assert "| map@3 | value  | ± 95% | from old |" in run(*asked, "--format", "markdown")[1]


@pytest.mark.small
def test_moved_queries_have_a_command_that_explains_them(run, dump):
    more = ["--query", "uid", "--depth", "2", "--semantics", "unpredicted=skip", "--judged-only"]
    asked = ["compare", *dump, "-m", "map@3", "--moved", "2", "--format", "json", "--threads", "1"]
    content = json.loads(run(*asked, *more)[1])
    rows = content["moved"]["map@3"]["new one"]
    assert rows
    for row in rows:
        program, *words = shlex.split(row["explain"])
        assert program == "rankmill"
        code, out, _ = run(*words, "--format", "json")
        assert code == 0
        both = [one["value"] for one in json.loads(out)["systems"].values()]
        assert both == [row["baseline"], row["value"]]
        assert "--threads" not in row["explain"]


@pytest.mark.small
def test_commands_that_explain_count_as_the_comparison_did(run, dump, tmp_path):
    """They name the inputs beside the labels; those that cannot count alike are not there."""
    paths = [str(tmp_path / f"{name}.parquet") for name in ("a", "b")]
    for path, queries in zip(paths, ([1, 2, 3], [4, 5]), strict=True):
        lists = [[1, 2], [1], [3]][: len(queries)]
        pq.write_table(pa.table({"uid": queries, "items": lists}), path)
    more = ["--query", "uid", "--train", ",".join(paths), "--items", paths[0]]
    asked = ["compare", *dump, "-m", "map@3", "--moved", "2", *more]
    rows = json.loads(run(*asked, "--format", "json")[1])["moved"]["map@3"]["new one"]
    assert rows
    for row in rows:
        words = shlex.split(row["explain"])[1:]
        assert f"--train={','.join(paths)}" in words
        assert f"--items={paths[0]}" in words
        code, out, _ = run(*words, "--format", "json")
        assert code == 0
        both = [one["value"] for one in json.loads(out)["systems"].values()]
        assert both == [row["baseline"], row["value"]]
    dropped = run(*asked, "--drop-seen", "--format", "json")[1]
    rows = json.loads(dropped)["moved"]["map@3"]["new one"]
    assert all(row["explain"].endswith(" --drop-seen") for row in rows)
    out = run(*shlex.split(rows[0]["explain"])[1:], "--format", "json")[1]
    both = [one["value"] for one in json.loads(out)["systems"].values()]
    assert both == [rows[0]["baseline"], rows[0]["value"]]


@pytest.mark.small
def test_wrong_usage_and_no_common_query(run, dump, tmp_path):
    code, out, err = run("compare", *dump[:2], "-m", "map")
    assert (code, out) == (2, "")
    assert "two systems or more" in err
    code, out, err = run("compare", *dump, "-m", "map", "--test", "anova", "--query", "uid")
    assert (code, out) == (2, "")
    assert "no test 'anova'" in err
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"uid": [7], "items": [[1]]}), other)
    asked = ["-m", "map", "--query", "uid", "--semantics", "unpredicted=skip"]
    code, out, err = run("compare", dump[0], dump[2], other, *asked)
    assert code == 3
    assert "0 (those that count for every system)" in out
    assert "no query counts for every system" in err


@pytest.mark.small
def test_help_names_all_tests_and_corrections(run):
    shown = " ".join(run("compare", "--help-all")[1].split())
    for name in (*TESTS, *CORRECTIONS):
        assert name in shown


@pytest.mark.small
@pytest.mark.parametrize("run", [{1: [7, 1], 2: [4]}, {"u1": {"a": 0.5}, "u2": {"b": 0.25}}])
def test_one_system_in_the_place_of_several_is_told(run):
    for call in (rankmill.compare, rankmill.evaluate_runs):
        with pytest.raises(rankmill.UsageError, match="the items of one list, as one system"):
            call({1: [1]}, run, "map")
