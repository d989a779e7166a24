"""Which side of a metric is better: every metric says it, and every command reads it."""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import tells

import rankmill
from flat import flat
from lines import expect_lines
from rankmill import UsageError
from rankmill.analysis.compare.view.comparison import view_of as comparison_view
from rankmill.analysis.statistics.paired_differences import paired_of
from rankmill.analysis.statistics.significance import equivalence, noninferiority
from rankmill.metrics.registry import REGISTRY, is_defined, parse
from rankmill.nightly.gate.judge import _of_metric
from rankmill.nightly.report import page
from rankmill.nightly.rules.measurements import MeasuredSide, Measurement, drop_of
from rankmill.nightly.rules.rules import parse_rule
from rankmill.nightly.rules.sides import Sides
from rankmill.semantics.choices import Choices
from rankmill.show import writers
from rankmill.show.tables import Best, Table
from shown import view_all

LOWER = {
    *("first_rank", "mean_rank", "rbp_residual", "unjudged", "num_nonrel_judged_ret"),
    *("rbp_resid", "unj", "fallout", "log_loss"),
    *("ece", "brier", "miscalibration"),
}
# They describe lists or labels. Coverage, novelty and their like name a goal: these are "higher".
NEITHER = {
    *("num_ret", "num_rel", "best_f1_threshold", "gini", "entropy", "hhi"),
    *("popularity", "popularity_lift", "head_share", "middle_share", "tail_share", "aplt", "aclt"),
}
# They look at what is listed, or how even it is, and not at whether it is right.
OF_LISTS = {
    *("coverage", "user_coverage", "personalization", "novelty", "exposure_parity", "ild"),
    *(
        "miscalibration",
        "treatment_parity",
        "impact_parity",
        "recall_parity",
        "epd",
        "ild_cosine",
        "epd_cosine",
    ),
}

# ------------------------------------------------------------------ the registry

# Each query has graded labels, judged items that are wrong, and an item that nobody judged.
GAINS = {"a": 2.0, "b": 1.0, "x": 0.0, "y": 0.0}
SUBTOPICS = {"a": "s", "b": "t", "x": "s", "y": "t"}
GROUPS = {"a": "1", "b": "2", "x": "3", "y": "3", "z": "3"}
PERFECT = ["a", "b", "x", "y", "z"]
QUERIES = range(4)


def _table(lists: list[list[str]], gains: list[list[float]] | None = None) -> pa.Table:
    more = {} if gains is None else {"gain": gains}
    return pa.table({"user_id": [*QUERIES], "items": lists, **more})


def _values(order: list[str]) -> dict[str, float | None]:
    """What each metric of the registry is for lists in one order."""
    labels = _table([[*GAINS]] * 4, [[*GAINS.values()]] * 4)
    # Two are sure: in a bad list those that are wrong.
    sure = [0.95, 0.9, 0.15, 0.1, 0.05][: len(order)]
    predictions = _table([order] * 4).append_column("confidence", pa.array([sure] * 4))
    given: dict[str, Any] = {
        "items": pa.table({"item_id": [*GROUPS], "genre": [[one] for one in GROUPS.values()]}),
        "item_group": "genre",
        "features": {item: [1.0, place] for place, item in enumerate(GROUPS)},
        "train": _table([["x", "z"]] * 4),
    }
    examples = {name: parse(spec.example.replace("@10", "@2")) for name, spec in REGISTRY.items()}
    of_topics = {name for name, spec in REGISTRY.items() if spec.gains == "subtopics"}
    plain = [one for name, one in examples.items() if name not in of_topics]
    found: dict[str, float | None] = {}
    for semantics, defined in ((Choices(), True), (Choices(order="expected"), False)):
        texts = [one.text for one in plain if is_defined(one, Choices()) == defined]
        found |= flat(
            rankmill.evaluate, labels, predictions, texts, semantics=semantics, **given
        ).metrics
    rows = [(q, item, SUBTOPICS[item], gain) for q in QUERIES for item, gain in GAINS.items()]
    named = zip(("user_id", "item_id", "subtopic", "gain"), zip(*rows, strict=True), strict=True)
    topics = [examples[name].text for name in of_topics]
    cut = rankmill.evaluate(
        rankmill.Labels(pa.table({name: [*one] for name, one in named}), subtopic="subtopic"),
        predictions,
        topics,
    )
    found |= cut.metrics
    return {name: found[one.text] for name, one in examples.items()}


@pytest.mark.small
def test_directions_are_those_that_were_thought_about() -> None:
    found = {name: spec.better for name, spec in REGISTRY.items()}
    for side, table in (("lower", LOWER), ("neither", NEITHER)):
        line = f"{side.upper()}: {{name}}, as its row says better={side!r}"
        of_side = {name for name, better in found.items() if better == side}
        expect_lines("tests/metrics/test_direction.py", line, of_side, table)
    assert {*found.values()} == {"higher", "lower", "neither"}


@pytest.mark.small
def test_a_perfect_list_is_on_the_better_side() -> None:
    apart = set()
    for good, bad in ((PERFECT, PERFECT[::-1]), (PERFECT[:2], PERFECT[2:])):
        values = _values(good), _values(bad)
        for name, spec in REGISTRY.items():
            one, other = values[0][name], values[1][name]
            if one is None or other is None or one == other or name in OF_LISTS | NEITHER:
                continue
            apart.add(name)
            if (one > other) != (spec.better == "higher"):
                pytest.fail(
                    f"{name} is {one} for the best list and {other} for the worst, but better is "
                    f"{spec.better!r}: change the row, or, if it does not look at what is right, "
                    f"add to tests/metrics/test_direction.py, OF_LISTS: {name!r}",
                    pytrace=False,
                )
    line = "OF_LISTS: {name}, as the best and the worst list have the same value"
    told = OF_LISTS | NEITHER
    expect_lines("tests/metrics/test_direction.py", line, REGISTRY.keys() - apart, told)


@pytest.mark.small
@pytest.mark.parametrize("summary", ["", ":gm", ":median", ":p10", ":sum", ":above=3"])
def test_summaries_and_parameters_have_the_direction_of_their_metric(summary: str) -> None:
    assert parse(f"first_rank(rel=2)@5{summary}").better == "lower"
    assert parse(f"map@5{summary}").better == "higher"
    assert parse(f"num_ret{summary}").better == "neither"


@pytest.mark.small
def test_the_list_of_metrics_tells_the_direction(run_cli: Callable[..., Any]) -> None:
    listed = run_cli("metrics", "--format", "csv").stdout
    header, *_ = listed.splitlines()
    assert "better" in header.split(",")
    words = " ".join(run_cli("metrics").stdout.split())
    assert "range: 1 and up; lower is better" in words
    assert "range: 0 if all items are shown equally often, to 1; neither side is better" in words
    assert not [one.name for one in REGISTRY.values() if "better" in one.range]


# ------------------------------------------------------------------ several systems side by side

# `good` has the label at rank 1, `bad` at rank 3 behind items that are wrong.
LABELS = pa.table({"user_id": [*range(40)], "items": [["a"]] * 40})
MIXED = ["map@3", "first_rank@3", "gini@3", "num_ret", "ece"]


def _runs() -> dict[str, pa.Table]:
    # An item more before the others at some queries gives the differences a spread.
    made = {"good": (["a", "x"], 7), "bad": (["x", "y", "a"], 5)}
    runs = {}
    for name, (one, often) in made.items():
        lists = [["z", *one] if q % often == 0 else one for q in range(40)]
        sure = [[0.9, 0.2, 0.1, 0.05][: len(each)] for each in lists]
        runs[name] = pa.table({"user_id": [*range(40)], "items": lists, "confidence": sure})
    return runs


@pytest.mark.small
def test_the_star_is_on_the_better_side() -> None:
    results = rankmill.evaluate_runs(LABELS, _runs(), MIXED)
    values, *more = view_all(results).screen()
    assert isinstance(values, Table)
    starred = {row[0]: [isinstance(cell, Best) for cell in row[1::2]] for row in values.rows}
    assert starred == {
        **{name: [True, False] for name in ("map@3", "first_rank@3", "ece")},
        **{name: [False, False] for name in ("gini@3", "num_ret")},
    }
    assert "lower is better: first_rank@3, ece" in more
    assert "neither side is better: gini@3, num_ret" in more


# ------------------------------------------------------------------ compare

ASKED = ["map@3", "first_rank@3", "num_ret", "ece"]


def _compared(baseline: str, **options: Any) -> rankmill.Comparison:
    return flat(rankmill.compare, LABELS, _runs(), ASKED, baseline=baseline, **options)


@pytest.mark.small
@pytest.mark.parametrize("test", ["t", "randomization", "wilcoxon"])
def test_a_lower_rank_is_better_and_a_number_is_only_higher(test: str) -> None:
    for baseline, other in (("bad", "good"), ("good", "bad")):
        found = _compared(baseline, tests=test)
        one = {metric: found.differences[metric][other] for metric in ASKED}
        word = "better" if other == "good" else "worse"
        assert [one[metric].verdict for metric in ASKED[:2]] == [word, word]
        assert one["num_ret"].verdict == ("lower" if other == "good" else "higher")
        # Differences stay the value less the baseline.
        assert (one["map@3"].value > 0) == (one["first_rank@3"].value < 0) == (other == "good")
        won = (40, 0, 0) if other == "good" else (0, 0, 40)
        for metric in ASKED[:2]:
            assert (one[metric].won, one[metric].tied, one[metric].lost) == won
        assert (one["num_ret"].won, one["num_ret"].tied, one["num_ret"].lost) == (None, 4, None)
        assert one["num_ret"].to_dict()["won_share"] is None
        assert [found.winner(metric) for metric in ASKED] == ["good", "good", None, "good"]
        assert one["ece"].better == "lower"
        assert found.notes[-2:] == [
            "lower is better: first_rank@3, ece",
            "neither side is better: num_ret",
        ]


@pytest.mark.small
def test_of_two_better_systems_the_lower_one_wins() -> None:
    runs = _runs() | {"best": _runs()["good"]}
    lists = [["y", *one] for one in runs["good"]["items"].to_pylist()]
    lists[0] = ["a"]  # one query apart, so that the difference has a variance
    runs["good"] = pa.table({"user_id": [*range(40)], "items": lists})
    runs["worst"] = pa.table({"user_id": [*range(40)], "items": [["x", "y", "z", "y2", "a"]] * 40})
    found = rankmill.compare(LABELS, runs, ["first_rank"], baseline="worst", all_pairs=True)
    assert {one.verdict for one in found.differences["first_rank"].values()} == {"better"}
    assert found.winner("first_rank") == "best"


@pytest.mark.small
def test_a_margin_is_for_the_worse_side() -> None:
    """Non-inferiority of a metric is that of the metric times -1; equivalence is the same."""
    import scipy.stats  # a second, which not every run of small tests is to wait for

    draw = np.random.default_rng(0)
    values = draw.normal(0.02, 0.1, 50)
    one, other = paired_of(values), paired_of(-values)
    lower, higher = noninferiority(one, 0.05, better="lower"), noninferiority(other, 0.05)
    assert lower.p == higher.p
    assert (lower.low, lower.high) == (None, -higher.low)
    assert lower.p == pytest.approx(
        scipy.stats.ttest_1samp(values, 0.05, alternative="less").pvalue, rel=1e-9
    )
    assert equivalence(one, 0.05).p == equivalence(other, 0.05).p
    found = _compared("bad", margin=1.0)
    good = {metric: found.differences[metric]["good"] for metric in ASKED}
    assert good["first_rank@3"].noninferiority.p < 0.01
    assert good["num_ret"].noninferiority is None
    assert good["num_ret"].equivalence is not None
    assert _compared("good", margin=1.0).differences["first_rank@3"]["bad"].noninferiority.p > 0.5


@pytest.mark.small
def test_slices_and_queries_that_lost_are_those_that_rose() -> None:
    lists = [[f"x{i}" for i in range(q % 4)] + ["a"] for q in range(40)]
    same = [["x0", "a"]] * 40
    runs = {
        name: pa.table({"user_id": [*range(40)], "items": one})
        for name, one in (("old", same), ("new", lists))
    }
    by = pa.table({"user_id": [*range(40)], "class": [str(q % 4) for q in range(40)]})
    found = rankmill.compare(LABELS, runs, ["first_rank", "num_ret"], by=by, moved=2)
    of_slices = {one.value[0]: one.differences["first_rank"]["new"] for one in found.slices}
    assert {name for name, one in of_slices.items() if one.gain < 0} == {"2", "3"}
    moved = [one.difference for one in found.moved["first_rank"]["new"]]
    assert moved == [-1, -1, 2, 2]  # those that gained, then those that lost most
    assert [one.difference for one in found.moved["num_ret"]["new"]] == [2, 2, -1, -1]


@pytest.mark.small
def test_every_form_has_the_side_and_the_words() -> None:
    view = comparison_view(_compared("bad"))
    rows = list(csv.DictReader(writers.write(view, "csv").splitlines()))
    sides = {(one["metric"], one["better"]) for one in rows}
    assert sides == {(metric, parse(metric).better) for metric in ASKED}
    words = {(one["metric"], one["verdict"]) for one in rows if one["system"] == "good"}
    assert {("first_rank@3", "better"), ("num_ret", "lower")} <= words
    told = json.loads(writers.write(view, "json"))
    assert told["metrics"]["first_rank@3"]["good"]["difference"]["verdict"] == "better"
    assert told["metrics"]["num_ret"]["good"]["difference"]["better"] == "neither"
    for format in ("table", "markdown", "html", "latex"):
        text = html.unescape(writers.write(view, format)).replace("\\_", "_")
        assert "lower is better: first_rank@3, ece" in text, format
        assert "neither side is better: num_ret" in text, format


@pytest.mark.small
def test_a_paper_marks_what_is_better() -> None:
    text = writers.write(comparison_view(_compared("bad")), "latex")
    row = next(line for line in text.splitlines() if line.startswith("good"))
    cells = row.removesuffix(r" \\").split(" & ")
    assert all("textbf" in cell and "uparrow" in cell for cell in cells[1:3])
    assert "textbf" not in cells[3]
    assert "textsuperscript{-}" in cells[3]
    assert "- shown to be lower" in text
    assert "neither side is better: num" in text


def test_a_picture_names_the_side() -> None:
    titles = [getattr(one, "text", "") for one in _compared("bad").plot().marks]
    assert "map@3" in titles
    assert "first_rank@3; lower is better" in titles
    assert "num_ret; neither side is better" in titles


# ------------------------------------------------------------------ gate and history


def _reasons(system: str, base: str, *rules: str, **options: Any) -> list[str]:
    runs = _runs()
    found = flat(rankmill.gate, LABELS, runs[system], rules, baseline=runs[base], **options)
    return [f"{one.word}: {one.reason}" for one in found.outcomes]


@pytest.mark.small
def test_a_drop_is_a_change_for_the_worse() -> None:
    first, ece = "first_rank drop <= 1% confidence none", "ece drop <= 0.01"
    confident = "first_rank drop <= 1% confidence 0.95"
    assert [one.partition(":")[0] for one in _reasons("good", "bad", first, ece, confident)] == [
        *["held"] * 3
    ]
    worse = _reasons("bad", "good", first, ece, confident)
    assert worse[0] == (
        "regressed: first_rank is 3.2, 178% above the baseline of 1.15 (paired over 40 of 40 "
        "queries, limit <= 1%)"
    )
    assert worse[1].startswith("regressed: ece is ")
    assert " above the baseline of " in worse[1]
    assert ", rise " in worse[2]
    assert worse[2].startswith("regressed: first_rank is 3.2, 178% above")
    assert _reasons("bad", "bad", first) == [
        "held: first_rank is 3.2, as the baseline (paired over 40 of 40 queries, within the limit "
        "<= 1%, not tested)"
    ]
    assert "64.1% below the baseline of 3.2" in _reasons("good", "bad", first)[0]


@pytest.mark.parametrize("relative", [True, False])
def test_a_rise_is_the_drop_the_other_way_round(relative: bool) -> None:
    one = Measurement(MeasuredSide(0.5, 0.02, 90), MeasuredSide(0.4, 0.03, 90), 0.01)
    down = drop_of(one, 0.95, relative=relative)
    up = drop_of(one, 0.95, relative=relative, better="lower")
    assert down is not None
    assert up == (-down.number, -down.high, -down.low)
    assert up.number == pytest.approx(0.25 if relative else 0.1)


@pytest.mark.parametrize(
    ("value", "error", "word"),
    [(0.0, 0.0, "not enough data"), (0.3, 0.01, "regressed"), (0.01, 0.01, "not enough data")],
)
def test_a_rise_from_nothing_keeps_no_share(value: float, error: float, word: str) -> None:
    one = Measurement(MeasuredSide(value, error, 90), MeasuredSide(0.0, 0.0, 90), error)
    outcome = _of_metric(
        parse_rule("unjudged@5 drop <= 1% confidence 0.95"), Sides(one, one.value), 0.95
    )
    assert outcome.word == word
    json.dumps(outcome.to_dict(), allow_nan=False)
    outcome = _of_metric(parse_rule("unjudged@5 drop <= 1%"), Sides(one, one.value), None)
    assert outcome.word == ("regressed" if value else "held")
    if value == 0.3:
        assert outcome.reason == (
            "unjudged@5 is 0.3, above the baseline of 0 (no share of 0, limit <= 1%)"
        )


@pytest.mark.small
@pytest.mark.parametrize("rule", ["gini@10 drop <= 1%", "num_ret[country=*] drop <= 0.1"])
def test_what_has_no_better_side_has_no_drop(rule: str) -> None:
    name = rule.partition(" ")[0].partition("[")[0]
    with pytest.raises(UsageError) as error:
        parse_rule(rule)
    tells(error.value, [rule, f"neither side of {name} is better", f"{name} <= 0.9"])


# ------------------------------------------------------------------ over cutoffs


@pytest.mark.small
def test_the_lower_rank_comes_first() -> None:
    lists = {"top": 1, "middle": 2, "low": 3}
    runs = {
        name: pa.table(
            {
                "user_id": [*range(40)],
                "items": [[*"xyzu"[: rank - 1 + q % 2], "a"] for q in range(40)],
            }
        )
        for name, rank in lists.items()
    }
    runs["low"] = runs["low"].set_column(1, "items", pa.array([["x", "y", "z", "a"]] * 40))
    found = rankmill.compare(LABELS, runs, ["first_rank", "map"], cutoffs=[3, 5])
    assert found.ranks["first_rank"][5] == found.ranks["map"][5] == lists
    assert found.notes == ["lower is better: first_rank@3, first_rank@5"]


# ------------------------------------------------------------------ the page of a run


def _words(metrics: list[str], baseline: str, **options: Any) -> str:
    by = pa.table({"user_id": [*range(40)], "half": ["ab"[q % 2] for q in range(40)]})
    found = flat(
        rankmill.compare, LABELS, _runs(), metrics, baseline=baseline, by=by, moved=2, **options
    )
    return html.unescape(re.sub("<[^>]*>", "", page(found)))


@pytest.mark.small
def test_a_page_says_what_is_better() -> None:
    text = _words(["first_rank"], "bad")
    assert "good is 64% better in first_rank" in text
    assert "A dot left of the line is better in first_rank." in text
    assert "right of the line" not in text
    assert "b gained" in text
    assert "lost" not in re.findall(r"half = . (\w+)", text)
    text = _words(["first_rank", "map"], "good")
    assert "bad is worse in 2 of 2 metrics" in text
    assert re.search(r"half = . lost \d+%", text)
    assert "those that lost come first" in text
    assert re.search(r"In first_rank, query \d+ lost \d", text)
    # Of the queries that moved, those that lost most come first.
    ranks = re.findall(r"Query \d+: (\S+) → (\S+) \(", text)
    assert all(float(before) < float(after) for before, after in ranks[:2])
    assert "A dot right of the line is better. A dot left of the line is better in first_rank." in (
        text
    )


@pytest.mark.small
def test_a_page_ranks_nothing_without_a_better_side() -> None:
    text = _words(["num_ret", "num_rel"], "good")
    assert "bad is different in 1 of 2 metrics" in text
    assert re.search(r"num_ret is \d+% higher for bad", text)
    assert "Neither side is better in num_ret and num_rel." in text
    assert "num_ret rose in 2 and fell in 0 of 2 slices" in text
    assert "those that fell come first" in text
    assert not re.search("(?<!is )better|worse|lost|gained", text.partition("Counted by")[0])
