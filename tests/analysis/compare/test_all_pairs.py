"""All pairs of systems: each once, corrected over the family, told by letters in one table."""

from __future__ import annotations

import random
import re
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

import rankmill
from rankmill.analysis.statistics.significance import correct
from rankmill.show.tables import Best, leaderboard
from systems import made, table

METRICS = ["map@3", "recall@2", "first_rank", "num_ret"]


def four(count: int = 80) -> tuple[Any, dict[str, Any]]:
    """Labels and four systems: a poor one, a better one, one like each."""
    labels, poor, good = made(4, count)
    draw = random.Random(4)
    noisy = {q: draw.sample(range(8), 3) for q in labels}
    nearly = {q: (good[q] if q % 3 else poor[q]) for q in labels}
    runs = {"noisy": noisy, "nearly": nearly, "poor": poor, "good": good}
    return table(labels), {name: table(one) for name, one in runs.items()}


LABELS, RUNS = four()


def p_of_scipy(found: rankmill.Comparison) -> dict[tuple[str, str, str], float]:
    """The p of each metric and pair by SciPy, where there is a spread; 1 where nothing differs."""
    every = found.per_query.to_pandas()
    told = {}
    for metric in found.values:
        for one, other in combinations(RUNS, 2):
            less = every[f"{other}:{metric}"] - every[f"{one}:{metric}"]
            told[metric, one, other] = stats.ttest_1samp(less, 0).pvalue if less.any() else 1.0
    return told


@pytest.mark.parametrize(
    ("correction", "theirs"),
    [("holm", "holm"), ("bh", "fdr_bh"), ("none", None)],
)
def test_each_pair_is_tested_once_and_corrected_over_all_pairs_and_metrics(correction, theirs):
    tests = rankmill.Tests(correction=correction)
    found = rankmill.compare(LABELS, RUNS, METRICS, tests=tests, all_pairs=True)
    expected = p_of_scipy(found)
    ours = {one[:3]: one.difference.tests["t"] for one in found.pairs}
    assert list(ours) == list(expected)
    assert [one.p for one in ours.values()] == pytest.approx([*expected.values()], rel=1e-9)
    corrected = [*expected.values()]
    corrected = corrected if theirs is None else multipletests(corrected, method=theirs)[1].tolist()
    assert [one.corrected_p for one in ours.values()] == pytest.approx(corrected, rel=1e-9)


OPTIONS: list[dict[str, Any]] = [
    {"margin": 0.1},
    {"tests": rankmill.Tests(["randomization", "wilcoxon"], correction="none")},
    {"metrics": ["map@3", "gap"]},
    {"labels": rankmill.Labels(LABELS.append_column("w", pa.array([1.0, 2.0] * 40)), weight="w")},
    {"labels": LABELS.append_column("c", pa.array([f"{q // 2}" for q in range(80)])),
     "cluster": "c"},
    {"adjust": pa.table({"query": range(80), "before": np.random.default_rng(0).random(80)})},
    {"semantics": "trec_eval"},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=lambda one: next(iter(one)))
def test_a_pair_is_the_difference_from_either_as_the_baseline(options):
    given = {"labels": LABELS, "metrics": METRICS[:2]} | options
    runs = dict(RUNS)
    if "gap" in given["metrics"]:
        scores = pa.array([[0.9, 0.5, 0.1]] * 80)
        runs = {n: t.append_column("scores", scores) for n, t in runs.items()}
    if given.get("semantics"):
        runs["poor"] = runs["poor"].slice(10)
    found = rankmill.compare(runs=runs, baseline="poor", all_pairs=True, **given)
    pairs = {one[:3]: one.difference for one in found.pairs}
    assert len(pairs) == len(found.pairs) == 6 * len(found.values)
    for base in runs:
        alone = rankmill.compare(runs=runs, baseline=base, **given)
        for metric, of in alone.differences.items():
            for name, one in of.items():
                if (metric, base, name) in pairs:
                    pair = pairs.pop((metric, base, name))
                    assert uncorrected(pair) == uncorrected(one)
    assert not pairs
    firsts = {m: {p.system: p.difference for p in found.pairs if p[:2] == (m, "poor")}
              for m in found.values}  # fmt: skip
    assert found.differences == firsts


def uncorrected(one: Any) -> dict[str, Any]:
    told = one.to_dict()
    del told["verdict"]
    for test in [*told["tests"].values(), told["equivalence"], told["noninferiority"]]:
        if test is not None:
            del test["corrected_p"]
    return told


def test_slices_are_a_family_of_their_own_and_stay_with_the_baseline():
    kinds = pa.table({"query": range(80), "kind": ["a", "b"] * 40})
    found = rankmill.compare(LABELS, RUNS, "map@3", by=kinds, all_pairs=True)
    pairs = [one.difference.tests["t"] for one in found.pairs]
    of_slices = [one for each in found.slices for one in each.differences["map@3"].values()]
    assert (len(pairs), len(of_slices)) == (6, 2 * 3)
    assert [one.corrected_p for one in pairs] == correct([one.p for one in pairs])
    assert [one.tests["t"].corrected_p for one in of_slices] == correct(
        [max(one.tests["t"].p, one.bound_p) for one in of_slices]
    )
    told = "over 6 (metrics times pairs of systems); of slices over 6 of their own"
    assert told in repr(found)
    alone = rankmill.compare(LABELS, RUNS, "map@3", all_pairs=True)
    assert "over 6 (metrics times pairs of systems)" in repr(alone)
    assert "of slices" not in repr(alone)


# ------------------------------------------------------------------ the table


def letters_by_definition(found: rankmill.Comparison, metric: str) -> dict[str, str]:
    """Name -> the letters of those that it differs from with the better, or higher, value."""
    values = {name: one.value or 0.0 for name, one in found.values[metric].items()}
    lower = metric == "first_rank"
    first = found.values["map@3"]
    order = sorted(RUNS, key=lambda name: -(first[name].value or 0.0))
    p = {frozenset(one[1:3]): one.difference.tests["t"].corrected_p
         for one in found.pairs if one.metric == metric}  # fmt: skip
    marks = dict.fromkeys(order, "")
    for one, other in permutations(order, 2):
        less = values[one] - values[other]
        if p[frozenset((one, other))] <= 0.05 and (less < 0 if lower else less > 0):
            marks[one] += "abcd"[order.index(other)]
    return marks


def test_letters_name_the_systems_that_differ_and_are_worse():
    lists = RUNS["good"]["items"].to_pylist()
    longer = [[*one, 99] if q % 3 else one for q, one in enumerate(lists)]  # num_ret differs
    runs = RUNS | {"good": RUNS["good"].set_column(1, "items", pa.array(longer))}
    found = rankmill.compare(LABELS, runs, METRICS, all_pairs=True)
    lines = found.to_latex().splitlines()
    rows = [line[: -len(r" \\")].split(" & ") for line in lines[5:9]]
    assert [row[0] for row in rows] == [*"abcd"]
    shown = 0
    for place, metric in enumerate(METRICS, 2):
        expected = letters_by_definition(found, metric)
        assert [row[1] for row in rows] == list(expected)
        values = [one.value or 0.0 for one in found.values[metric].values()]
        best = {"first_rank": min(values), "num_ret": None}.get(metric, max(values))
        for row in rows:
            mark = re.search(r"\\textsuperscript\{(\w+)\}", row[place])
            assert (mark[1] if mark else "") == expected[row[1]]
            assert ("textbf" in row[place]) == (found.values[metric][row[1]].value == best)
            shown += mark is not None
    assert shown >= 6
    assert "by a paired t-test, p corrected by Holm over 24 tests, level 0.05." in found.to_latex()
    assert "or higher than where neither side is better" in found.to_latex()


def test_the_same_table_in_every_format():
    found = rankmill.compare(LABELS, RUNS, METRICS[:1], all_pairs=True)
    assert found.winner("map@3") == "good"
    value = f"{found.values['map@3']['good'].value:.4f}"
    assert f"{value}*ᵇᶜᵈ" in repr(found).splitlines()[2]
    assert f"| a | good | **{value}ᵇᶜᵈ** |" in found.to_markdown()
    assert f"<b>{value}ᵇᶜᵈ</b></td>" in found.to_html()
    assert f"a & good & \\textbf{{{value}}}\\textsuperscript{{bcd}} \\\\" in found.to_latex()
    exact = found.to_arrow()
    assert [*zip(exact["baseline"].to_pylist(), exact["system"].to_pylist(), strict=True)] == [
        *(("noisy", name) for name in RUNS),
        *[("nearly", "poor"), ("nearly", "good"), ("poor", "good")],
    ]
    assert rankmill.Comparison.from_json(found.to_json()) == found


def test_without_all_pairs_nothing_is_other_than_before():
    found = rankmill.compare(LABELS, RUNS, METRICS)
    assert found.pairs == []
    assert "every two systems" not in repr(found)


def test_results_have_the_table_without_letters():
    results = rankmill.evaluate_runs(LABELS, RUNS, ["first_rank", "map@3"])
    found = rankmill.compare(results, all_pairs=True).to_latex().splitlines()
    plain = results.to_latex().splitlines()
    for line, lettered in zip(plain[3:9], found[3:9], strict=True):
        without = re.sub(r"\\textsuperscript\{\w+\}", "", lettered)
        assert line == re.sub(r"^([a-d]|\\#) & ", "", without)
    assert plain[5].startswith("good & \\textbf{")
    assert "| good | **" in results.to_markdown()


def test_results_over_different_queries_have_no_best():
    runs = RUNS | {"good": RUNS["good"].slice(9)}
    results = rankmill.evaluate_runs(LABELS, runs, "map@3", semantics="trec_eval")
    assert "textbf" not in results.to_latex()
    assert "averaged over different queries" in results.to_latex()


def test_many_systems_have_two_letters_after_those_with_one():
    values = {"map": {f"s{i:02}": float(60 - i) for i in range(60)}}
    every = [*values["map"]]
    beaten = {name: every[place + 1 :] for place, name in enumerate(every)}
    table = leaderboard(values, {"map": "higher"}, {"map": beaten})
    labels = [str(row[0]) for row in table.rows]
    assert labels[23:27] == ["y", "z", "aa", "ab"]
    assert labels[-1] == "bj"
    assert len({*labels}) == 60
    (first, *_) = (row[2] for row in table.rows)
    assert isinstance(first, Best)
    assert first.mark == ",".join(labels[1:])


def test_a_value_that_is_missing_comes_last_and_is_no_best():
    values = {"map": {"a": None, "b": 0.25, "c": 0.5}}
    table = leaderboard(values, {"map": "higher"})
    assert [row[0] for row in table.rows] == ["c", "b", "a"]
    assert [isinstance(row[1], Best) for row in table.rows] == [True, False, False]


# ------------------------------------------------------------------ the command


@pytest.fixture
def files(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    labels = LABELS.append_column("kind", pa.array(["<b>", "b"] * 40))
    for name, one in {"labels": labels, **RUNS}.items():
        pq.write_table(one, f"{name}.parquet")
    return [f"{name}.parquet" for name in ("labels", *RUNS)]


def test_the_command_prints_the_table_of_python(files, run):
    code, shown, error = run("compare", *files, "-m", "map@3", "-m", "recall@2", "--all-pairs",
                             "--format", "latex")  # fmt: skip
    assert (code, error) == (0, "")
    assert shown == rankmill.compare(LABELS, RUNS, METRICS[:2], all_pairs=True).to_latex()


def test_a_leaderboard_is_a_page_with_the_table_the_pairs_and_the_slices(files, run):
    given = (
        "-m",
        "map@3",
        "-m",
        "first_rank",
        "--by",
        "kind",
        "--all-pairs",
        "--leaderboard=board.html",
    )
    code, shown, error = run("compare", *files, *given)
    assert (code, error) == (0, "")
    assert "map@3: every two systems" in shown
    with open("board.html", encoding="utf-8") as file:
        page = file.read()
    assert "<script" not in page
    assert "leads in <bdi>map@3</bdi>, shown to be better than 3 of 3 other systems" in page
    for section in ("Leaderboard", "Pairs", "Slices", "How"):
        assert f'<p class="kicker">{section}</p>' in page
    assert re.search(r"<b>0\.\d{4}ᵇᶜᵈ</b>", page)
    assert page.count("<summary>") == 2
    assert "&lt;b&gt;" in page
    assert "--leaderboard=board.html" in page


def test_a_leaderboard_changes_no_number_and_the_star_does_not_depend_on_the_baseline(files, run):
    given = "-m", "map@3", "-m", "first_rank", "--by", "kind", "--format", "csv"
    plain = run("compare", *files, *given)
    assert plain[0] == 0
    assert run("compare", *files, *given, "--leaderboard", "board.html") == plain
    with open("board.html", encoding="utf-8") as file:
        page = file.read()
    assert "leads in <bdi>map@3</bdi>, shown to be better than <bdi>noisy</bdi>" in page
    assert "Differences from noisy" in page
    starred = [
        re.findall(r"^(\w+) +\S+\* ", run("compare", *files, "-m", "map@3", *more)[1], re.M)
        for more in ((), ("--baseline", "poor"), ("--baseline", "good"))
    ]
    assert starred == [["good"]] * 3


def test_a_leaderboard_of_results_has_slices_and_tests_nothing(files, run):
    metrics = ["map@3", "first_rank", "num_ret"]
    given = ["-m", ",".join(metrics), "--by", "kind", "--leaderboard", "board.html"]
    code, _, error = run("evaluate", *files, *given)
    assert (code, error) == (0, "")
    with open("board.html", encoding="utf-8") as file:
        page = file.read()
    assert "<script" not in page
    assert "<bdi>good</bdi> has the best <bdi>map@3</bdi>; differences are not tested" in page
    assert re.findall(r'kicker">([A-Z]\w+)', page) == ["Leaderboard", "Slices", "How"]
    labels = LABELS.append_column("kind", pa.array(["<b>", "b"] * 40))
    results = rankmill.evaluate_runs(labels, RUNS, metrics, by="kind")
    rows = [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
        for row in re.findall("<tr>.*?</tr>", page, re.S)
    ]
    of_slices = [row for row in rows if row and row[0] in ("&lt;b&gt;", "b")]
    assert [row[1] for row in of_slices] == ["40"] * 8
    for kind in ("<b>", "b"):
        held = {(row["system"], row["metric"]): row["value"]
                for row in results.by.to_pylist() if row["slice"] == kind}  # fmt: skip
        shown = [row for row in of_slices if row[0] == kind.replace("<b>", "&lt;b&gt;")]
        order = sorted(RUNS, key=lambda name: -held[name, "map@3"])
        assert [row[2] for row in shown] == order
        best = {"map@3": max, "first_rank": min}
        for row in shown:
            for metric, cell in zip(metrics, row[3:], strict=True):
                bold, value = cell.startswith("<b>"), held[row[2], metric]
                assert float(re.sub("</?b>", "", cell)) == pytest.approx(value, abs=5e-4)
                ends = [held[name, metric] for name in RUNS]
                assert bold == (metric in best and value == best[metric](ends)), (metric, row)


def test_a_leaderboard_takes_two_systems(files, run):
    code, _, error = run("evaluate", *files[:2], "--leaderboard", "board.html")
    assert code == 2
    assert "--leaderboard takes the PREDICTIONS of two systems or more" in error


def test_a_leaderboard_is_html(files, run):
    code, _, error = run("compare", *files, "--leaderboard", "board.md")
    assert code == 2
    assert "cannot write HTML to board.md" in error
