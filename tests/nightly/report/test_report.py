"""The page: what it is made of is right, what it says is computed, and nothing in it acts."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import math
import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rankmill
from cli_runs import on_a_terminal
from dumps import dump
from flat import flat
from page_data import HOSTILE, data
from rankmill.analysis.compare.differences.differences import Difference, Estimate, Slice
from rankmill.analysis.compare.queries.label_facts import bins_of
from rankmill.analysis.compare.view.comparison import Comparison
from rankmill.analysis.compare.view.details import (
    CutoffPoint,
    Details,
    evaluate_in_detail,
    histograms_of,
)
from rankmill.analysis.explain.trace import side_by_side
from rankmill.errors import UsageError
from rankmill.io.inert_text import brief
from rankmill.metrics.gap.gap import Gap
from rankmill.nightly.gate.gate import gate
from rankmill.nightly.report import lists_of, page, words
from rankmill.nightly.report.pages import _sheet, audit_title, findings
from rankmill.nightly.report.words import name, say
from rankmill.results import audit
from rankmill.results.result import Result
from rankmill.semantics.choices import DEFAULT, WHOLE
from rankmill.show import charts
from rankmill.show.marks import (
    LOOKS,
    Text,
    distinct_texts,
    half_width,
    number,
    percent,
    scale_of,
    signed,
    tick_texts,
)
from rankmill.threads import Workers
from repository import run_python
from strategies import examples

# ------------------------------------------------------------------ details


def tables(seed: int, systems: int = 2) -> tuple[Any, dict[str, Any]]:
    """Make labels and systems as dicts of query -> lists or items with scores."""
    labels, _ = dump(seed)
    runs = {}
    for i in range(systems):
        _, lists = dump(seed + 1000 * i, ties=False, repeats=True)
        runs[f"s{i}"] = {query: dict(pairs) for query, pairs in lists.items()}
    return {query: [item for item, _ in pairs] for query, pairs in labels.items()}, runs


def plain(result: Result) -> dict[str, Any]:
    return {key: value for key, value in result.to_dict().items() if key != "seconds"}


@settings(max_examples=examples(15))
@given(
    st.integers(0, 500),
    st.sampled_from([["map@3"], ["ndcg@5", "P@2"], ["map"], ["gap", "hit@4"], ["rprec"]]),
    st.sampled_from(["default", "trec_eval", {"unpredicted": "skip"}, {"no_relevant": "one"}]),
)
def test_details_change_nothing(seed: int, metrics: list[str], semantics: Any) -> None:
    labels, runs = tables(seed)
    more: dict[str, Any] = {"semantics": semantics}
    one = {"s0": runs["s0"]}
    before = flat(rankmill.evaluate_runs, labels, one, metrics, **more)["s0"]
    after = flat(evaluate_in_detail, labels, one, metrics, **more)[0]["s0"]
    assert plain(after) == plain(before)
    assert after.per_query is not None
    assert after.per_query.equals(before.per_query)
    found = [
        flat(rankmill.compare, labels, runs, metrics, **more, details=one) for one in (False, True)
    ]
    told = [{k: v for k, v in each.to_dict().items() if k != "seconds"} for each in found]
    assert told[0] == told[1]
    assert repr(found[0]).partition("seconds")[0] == repr(found[1]).partition("seconds")[0]


@settings(max_examples=examples(15))
@given(st.integers(0, 500), st.sampled_from(["map", "ndcg", "recall", "first_hit"]))
def test_cutoffs_and_hits_equal_what_evaluate_says(seed: int, metric: str) -> None:
    labels, runs = tables(seed, 1)
    results, details = evaluate_in_detail(labels, runs, [f"{metric}@6"])
    for point in details.cutoffs[f"{metric}@6"]["s0"]:
        alone = rankmill.evaluate(labels, runs["s0"], [f"{metric}@{point.cutoff}"])
        (value,), (error,) = alone.metrics.values(), alone.standard_errors.values()
        assert point == CutoffPoint(point.cutoff, value, error)
    assert [one.cutoff for one in details.cutoffs[f"{metric}@6"]["s0"]] == [1, 2, 3, 5, 6]
    counted = [query for query, items in labels.items() if items]
    for rank, share in enumerate(details.hits["s0"], 1):
        hits = 0
        for query in counted:
            scores = runs["s0"].get(query, {})
            ranked = sorted(scores, key=lambda item: -scores[item])
            hits += rank <= len(ranked) and ranked[rank - 1] in labels[query]
        assert share == pytest.approx(hits / len(counted), abs=1e-12)
    assert len(details.hits["s0"]) == 6
    assert results["s0"].queries == len(counted)


def test_slices_and_histograms_equal_the_values_of_queries() -> None:
    labels, runs = tables(3)
    found = flat(rankmill.compare, labels, runs, ["map@5"], details=True)
    details = found.details
    assert details is not None
    for one in details.slices:
        if one.by == ("label_count",):
            low, _, high = one.value[0].partition("-")  # type: ignore[union-attr]
            within = [q for q, v in labels.items() if int(low) <= len(set(v)) <= int(high or low)]
            table = found.per_query
            assert table is not None
            rows = {row["query_id" if "query_id" in row else next(iter(row))]: row
                    for row in table.to_pylist()}  # fmt: skip
            values = [rows[q]["s1:map@5"] for q in within if q in rows]
            assert one.queries == len(values)
            assert one.values["map@5"]["s1"].value == pytest.approx(np.mean(values))
    values = np.array([0.0, 0.0, 0.051, 0.301, 1.0])
    one = histograms_of({"new": values})["new"]
    assert (one.zeros, sum(one.counts), one.counts[1], one.counts[6], one.counts[-1]) == (
        *(2, 3, 1, 1, 1),
    )


def test_bins_hold_all_predictions_once() -> None:
    draw = np.random.default_rng(1)
    confidences = np.round(draw.random(5000), 2)
    correct = draw.random(5000) < confidences
    cut = [slice(0, 1700), slice(1700, 1700), slice(1700, 5000)]
    parts = [confidences[i][correct[i]] for i in cut]
    gap = replace(Gap.of(parts), kept=tuple(confidences[i] for i in cut))
    with Workers(2) as workers:
        found = bins_of(gap, workers)
        assert bins_of(gap.small(), workers) == []
    assert sum(one.predictions for one in found) == 5000
    assert sum(one.correct for one in found) == correct.sum()
    for one, after in pairwise(found):
        assert one.low <= one.confidence <= one.high <= after.high
        inside = (confidences > one.low) & (confidences <= one.high)
        if one is not found[0]:
            assert one.predictions == inside.sum()
            assert one.correct == (inside & correct).sum()


@settings(max_examples=examples(15))
@given(st.integers(0, 500))
def test_lists_side_by_side_are_those_of_explain(seed: int) -> None:
    labels, runs = tables(seed)
    queries = [query for query in labels if labels[query]]
    for one in side_by_side(labels, runs, queries, 4):
        assert sorted(one.labels) == sorted(set(labels[str(one.query)]))
        for system, listed in one.lists.items():
            if one.query not in runs[system]:
                assert listed == []
                continue
            trace = rankmill.explain(labels, runs[system], "recall@4", one.query)
            rows = [row for row in trace.table.to_pylist() if row["rank"] is not None]
            assert listed == [(row["item"], row["hit"]) for row in rows]


# ------------------------------------------------------------------ words and numbers


@pytest.mark.parametrize(
    ("ends", "ticks"),
    [
        ([0.21, 0.387], ["0.20", "0.25", "0.30", "0.35", "0.40"]),
        ([0.0, 1.0], ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ([-0.031, 0.012], ["-0.04", "-0.03", "-0.02", "-0.01", "0.00", "0.01", "0.02"]),
        ([3.0, 3.0], ["2.6", "2.8", "3.0", "3.2", "3.4"]),
        ([], ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
    ],
)
def test_an_axis_has_round_ends(ends: list[float], ticks: list[str]) -> None:
    scale = scale_of(ends)
    assert [text.replace("−", "-") for text in tick_texts(scale)] == ticks
    assert all(scale.holds(one) for one in ends)


@example([2.2250738585e-313])
@given(st.lists(st.floats(-1e9, 1e9), max_size=6))
def test_an_axis_holds_its_values(values: list[float]) -> None:
    scale = scale_of(values)
    assert scale.low < scale.high
    assert 2 <= len(scale.ticks) <= 9
    assert all(0 <= scale.share(one) <= 1 for one in values)
    assert len(set(tick_texts(scale))) == len(scale.ticks) or max(map(abs, values)) > 1e3 * (
        scale.high - scale.low
    )


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.051, 0.349, 0.95], ["0.051", "0.35", "0.95"]),
        ([157.3, 62.1, 0.0], ["157", "62", "0"]),
        ([-12.6, -3.04], ["−13", "−3.0"]),
        ([100.1, 100.4], ["100.1", "100.4"]),
        ([9.8e-10, 4.8e11], ["9.8e−10", "4.8e11"]),
        ([12345.6], ["12,346"]),
        ([math.inf, 1.0, 1.0], ["inf", "1.0", "1.0"]),
        ([], []),
    ],
)
def test_values_along_an_axis_are_told_apart(values: list[float], texts: list[str]) -> None:
    assert distinct_texts(values) == texts


@given(st.lists(st.floats(allow_nan=False), max_size=6))
def test_any_values_are_told_apart(values: list[float]) -> None:
    assert len(set(distinct_texts(values))) == len(set(values))


def test_close_ticks_are_told_apart_with_their_signs() -> None:
    assert tick_texts(scale_of([0.000001, -0.000001]), signed=True)[::2] == [
        *("−1.0e−6", "0", "+1.0e−6")
    ]
    assert tick_texts(scale_of([1.0000001, 1.0000003])) == [
        *("1.00000010", "1.00000015", "1.00000020", "1.00000025", "1.00000030")
    ]
    assert tick_texts(scale_of([1e-9, 3e-9]), percent=True)[0] == "1.0e−7%"


def test_numbers_say_enough_and_no_more() -> None:
    assert [number(one) for one in (0.29031, -0.5, 0.0, None, 2e-7)] == [
        *("0.2903", "−0.5000", "0", "none", "2e-07")
    ]
    assert [half_width(one) for one in (0.00316, 0.25, 0.0, None, 1e-9)] == [
        *("±0.0032", "±0.25", "±0", "", "±1.0e−9")
    ]
    assert [percent(one) for one in (0.068, 0.5, 0.0003, 1.0)] == ["6.8%", "50%", "0.030%", "100%"]
    assert [signed(one) for one in (0.01234, -1.0, 0.0)] == ["+0.0123", "−1.00", "0"]


def change(value: float, verdict: str | None, relative: float | None = None) -> Difference:
    return Difference(value, relative, value - 0.01, value + 0.01, verdict=verdict)


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (change(0.01, "better", 0.04), "new is 4.0% better in map"),
        (change(-0.01, "worse", -0.04), "new is 4.0% worse in map"),
        (change(-0.01, "worse"), "new is 0.0100 worse in map"),
        (change(0.01, "no difference shown", 0.04), "No difference is shown for map"),
        (change(0.0, "equal within the margin", 0.0), "new is equal in map within the margin"),
        (change(0.01, None, 0.04), "map is 4.0% higher for new, which is not tested"),
        (change(0.0, None, 0.0), "map is the same for new"),
        (Difference(None), "map cannot be compared"),
        (None, "map cannot be compared"),
    ],
)
def test_a_change_is_told(one: Difference | None, told: str) -> None:
    assert words.change_words("map", "new", one).plain == told


def test_slices_are_told_worst_first() -> None:
    def cut(**changes: Difference) -> list[Slice]:
        value = {"map": {"new": Estimate(0.5)}}
        return [
            Slice(("group",), (key,), 10, value, {"map": {"new": one}})
            for key, one in changes.items()
        ]

    def told(**changes: Difference) -> str:
        return words.slices_words(cut(**changes), "map", "new").plain

    lost, more = change(-0.1, "worse", -0.04), change(-0.1, "worse", -0.2)
    gained, same = change(0.1, "better", 0.03), change(0.1, "no difference shown", 0.5)
    assert told(tail=lost, head=gained) == "group = tail lost 4.0%"
    assert told(a=lost, b=more) == "group = b lost 20% and group = a lost 4.0%"
    assert told(a=lost, b=more, c=lost, d=lost).endswith("and 2 more slices lost")
    assert told(a=lost, b=more, c=lost).endswith("and one more slice lost")
    assert told(a=gained, b=same) == "group = a gained 3.0%"
    assert told(a=gained, b=gained, c=gained, d=same) == (
        "3 of 4 slices gained, and none is shown to have lost"
    )
    rare = Slice(("label_popularity",), ("tail",), 10, {}, {"map": {"new": lost}})
    assert words.slices_words([rare], "map", "new").plain == "Queries with rare labels lost 4.0%"
    assert told(a=same) == "No slice is shown to have gained or lost in map"


def test_cutoffs_are_told() -> None:
    def told(*values: float, other: tuple[float, ...] = ()) -> str:
        lines = {"new": [CutoffPoint(i, v, 0.0) for i, v in enumerate(values, 1)]}
        if other:
            lines["old"] = [CutoffPoint(i, v, 0.0) for i, v in enumerate(other, 1)]
        return words.cutoffs_words("map@3", lines, list(lines)).plain

    assert told(0.1, 0.2, 0.3) == "map rises from 0.100 at 1 to 0.300 at 3"
    assert told(0.3, 0.2, 0.1) == "map falls from 0.300 at 1 to 0.100 at 3"
    assert told(0.3, 0.1, 0.2) == (
        "of these cutoffs, map is lowest at 2 (0.100) and highest at 1 (0.300)"
    )
    assert told(0.3, 0.3, 0.301) == "map is 0.300 at 1 and 0.301 at 3"
    assert told(0.1, 0.2, other=(0.0, 0.1)).endswith("; new is above old throughout")
    assert told(0.1, 0.2, other=(0.2, 0.3)).endswith("; old is above new throughout")
    assert told(0.1, 0.2, other=(0.0, 0.3)).endswith("0.200 at 2")
    assert told(0.1, 0.2, other=(0.1, 0.2)).endswith("0.200 at 2")


def test_a_trend_is_told() -> None:
    def told(*values: float | None) -> str:
        return words.trend_words("map", [(0, one, None, "") for one in values]).plain

    assert told(0.3) == "map has no trend yet: there is one run"
    assert told(0.1, 0.2) == "map is higher than in the run before"
    assert told(0.3, 0.2, 0.1) == "map is lower than in all 2 runs before"
    assert told(0.1, 0.4, 0.2) == "map is 50% below the run before, and within the range of all"
    assert told(0.1, 0.2, 0.2) == "map is as in the run before"


@pytest.mark.parametrize("places", [None, [0.0, 0.9, 0.92, 0.95, 0.97, 1.0]])
def test_labels_below_a_line_do_not_touch(places: list[float] | None) -> None:
    series = charts.Series("s0", [0.1, 0.2, 0.3, 0.2, 0.1, 0.2])
    labels = [f"2026-01-0{day}" for day in range(1, 7)]
    text = charts.lines([series], labels, "", "", places=places, left=7).__html__()
    found = re.findall(r'x="([\d.]+)%"[^>]*>2026-01-0(\d)<', text)
    across = sorted(float(x) for x, _ in found)
    assert {day for _, day in found} == (set("123456") if places is None else set("16"))
    assert min(b - a for a, b in pairwise(across)) > 16


def test_long_numbers_below_a_line_stay_inside() -> None:
    texts = ["1,000,000,000.25", "7", "1,000,000,000.75"]
    series = charts.Series("s0", [0.1, 0.2, 0.3])
    drawing = charts.lines([series], texts, "", "", places=[0, 0.5, 1], every=2)
    below = {one.text: one.anchor for one in drawing.marks if isinstance(one, Text)}
    assert [below.get(one) for one in texts] == ["start", None, "end"]


def test_the_audit_has_what_looks_wrong_first() -> None:
    counts = audit.empty() | {
        "queries_labelled": 1000, "queries_only_labelled": 500, "labels": 3000,
        "predictions": 10_000, "tied_confidences": 400, "repeated_items": 3, "tied_ranks": 200,
    }  # fmt: skip
    found = findings(counts, DEFAULT, WHOLE)
    assert [(one.word, str(one.title)) for one in found] == [
        ("look", "500 queries without predictions"),
        ("look", "200 ties within a query"),
        ("look", "3 repeated predictions"),
        ("noted", "400 tied confidences"),
    ]
    assert found[0].more == "(50% of 1,000 queries labelled)"
    assert audit_title(found) == "Look at the inputs: 500 queries without predictions, and 2 more"
    assert audit_title(found[3:]) == "Nothing looks wrong in the inputs"


@pytest.mark.parametrize("text", HOSTILE)
def test_names_are_inert_and_short(text: str) -> None:
    shown = name(text)
    assert len(shown) < 600
    assert shown.startswith("<bdi")
    inner = re.sub(r"</?bdi[^>]*>", "", shown)
    assert "<" not in inner
    assert not re.search("[\x00-\x1f\u202a-\u202e\u2066-\u2069]", shown)
    assert len(brief(text)) <= 60
    assert say("{} {}", text, "<b>").count("<") == 0


# ------------------------------------------------------------------ the page


class Reader(html.parser.HTMLParser):
    """Checks that tags are closed in order, and keeps what matters of them."""

    VOID = ("meta", "br", "img", "link")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())


def checked(text: str) -> Reader:
    """Read a page, and check that it is one file that does nothing."""
    read = Reader(text)
    kinds = {tag for tag, _ in read.tags}
    assert not kinds & {"script", "link", "img", "iframe", "object", "a", "form", "base"}
    for _, attributes in read.tags:
        assert not [key for key in attributes if key.startswith("on")]
        assert not attributes.keys() & {"style", "src", "href", "xlink:href", "srcset"}
    style = re.search("<style>(.*?)</style>", text, re.S)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    (policy,) = (
        a["content"] for _, a in read.tags if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
    assert "unsafe" not in policy
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    assert "://" not in text.replace("s3://", "")
    charts = [attributes for tag, attributes in read.tags if tag == "svg"]
    assert all(a.get("role") == "img" or a.get("aria-hidden") == "true" for a in charts)
    assert text.count('role="img"><title>') == sum(a.get("role") == "img" for a in charts)
    return read


@pytest.fixture(scope="module")
def inputs() -> dict[str, pa.Table]:
    return data()


@pytest.fixture(scope="module")
def compared(inputs: dict[str, pa.Table]) -> Comparison:
    runs = {name: inputs[name] for name in ("old", "new")}
    return flat(
        rankmill.compare,
        inputs["labels"],
        runs,
        ["map@5", "gap"],
        by=["group"],
        details=True,
        moved=2,
    )


def test_a_page_of_a_comparison_says_what_one_sees(
    inputs: dict[str, pa.Table], compared: Comparison
) -> None:
    runs = {name: inputs[name] for name in ("old", "new")}
    lists = lists_of(compared.details, {"labels": inputs["labels"], "runs": runs})
    began = datetime(2026, 1, 1, tzinfo=UTC)
    runs_before = [(began + timedelta(i), 0.3 + i / 100, 0.01, "held") for i in range(5)]
    history = {"map@5": runs_before, "gap": runs_before}
    text = page(compared, lists=lists, history=history, command="rankmill compare …")
    told = checked(text).words
    change = compared.differences["map@5"]["new"]
    assert words.change_words("map@5", "new", change).plain in told
    assert "group = it lost" in told
    assert "map@5 is higher than in all 4 runs before" in told
    assert "rankmill compare …" in told
    for one in compared.moved["map@5"]["new"]:
        assert f"Query {one.query}" in told
    assert text.count('class="hit"') == sum(
        right for one in lists for items in one.lists.values() for _, right in items
    )
    for expected in ("Rank 1 is right for", "Half of the queries score", "by cutoff", "jackknife"):
        assert expected in told
    assert len(text) < 200_000


@pytest.mark.parametrize("systems", [["new"], ["new", "old"]])
def test_a_metric_in_two_spellings_is_drawn_once(
    inputs: dict[str, pa.Table], systems: list[str]
) -> None:
    """Tables of results have each as it was asked for; the second one would say the same again."""
    runs = {name: inputs[name] for name in systems}
    names, drawn = ["map@5", "MAP@5", "P@2", "precision@2"], []
    for metrics in (names[::2], names):
        if len(runs) == 1:
            results, details = evaluate_in_detail(inputs["labels"], runs, metrics)
            assert list(results["new"].metrics) == metrics
            text = page(results["new"], details=details)
        else:
            text = page(flat(rankmill.compare, inputs["labels"], runs, metrics, details=True))
        drawn.append([checked(text).words.count(name) for name in names])
    assert drawn[1] == drawn[0]
    assert drawn[0][1::2] == [0, 0]


def test_a_page_of_a_result_needs_no_details(inputs: dict[str, pa.Table]) -> None:
    result = rankmill.evaluate(inputs["labels"], inputs["new"], ["map@5", "gap"])
    told = checked(page(result)).words
    assert f"map@5 is {result['map@5']:.4f}" in told
    assert "Half of the queries score" in told
    assert "Against the baseline" not in told
    results, details = evaluate_in_detail(
        inputs["labels"], {"new": inputs["new"]}, ["map@5", "gap"]
    )
    told = checked(page(results["new"], details=details)).words
    assert "Rank 1 is right for" in told
    assert "By popularity" in told
    assert "Confidence is" in told
    assert re.search("% of the most confident .*% of predictions are right, and .*% of all", told)
    assert "By group" not in told
    cut, by_group = evaluate_in_detail(inputs["labels"], {"new": inputs["new"]}, by=["group"])
    told = checked(page(cut["new"], details=by_group)).words
    assert "By group group = it scores lowest" in told
    few, little = evaluate_in_detail(
        inputs["labels"], {"new": inputs["new"]}, ["map@5", "gap"], memory=1000
    )
    assert "Charts by confidence are left out" in checked(page(few["new"], details=little)).words


@pytest.mark.parametrize("metric", ["ece", "auprc", "brier", "coverage@5"])
def test_memory_is_not_blamed_for_charts_of_other_metrics(
    inputs: dict[str, pa.Table], metric: str
) -> None:
    results, details = evaluate_in_detail(
        inputs["labels"], {"new": inputs["new"]}, ["map@5", metric]
    )
    assert "left out" not in checked(page(results["new"], details=details)).words


def test_a_page_of_a_verdict_has_broken_rules_first(inputs: dict[str, pa.Table]) -> None:
    rules = ["map@5 >= 0.1", "map@5[group=*] drop <= 3%", "queries change <= 10%"]
    found = flat(gate, inputs["labels"], inputs["new"], rules, baseline=inputs["old"], details=True)
    assert found.word == "regressed"
    told = checked(page(found)).words
    assert "Regressed: 1 of 3 rules broken" in told
    first = told.index("map@5[group=*] drop <= 3%")
    assert first < told.index("map@5 >= 0.1")
    assert found.failed[0].reason in told
    held = flat(gate, inputs["labels"], inputs["new"], ["map@5 >= 0.1"], details=True)
    assert "Held: every rule was kept" in checked(page(held)).words


def test_the_headline_says_which_slice_broke_and_every_slice_is_drawn(
    inputs: dict[str, pa.Table],
) -> None:
    rules = ["map@5[group=*] >= 0.2", "map@5 >= 0.01"]
    found = flat(gate, inputs["labels"], inputs["new"], rules, details=True, by=["list_length"])
    (broken,) = found.failed
    assert broken.value is not None
    began = datetime(2026, 1, 1, tzinfo=UTC)
    values = [2 * broken.value, 2 * broken.value, broken.value]
    runs = [(began + timedelta(i), value, None, "held") for i, value in enumerate(values)]
    headline = f"it: map@5 {broken.value:.4g}, limit 0.2"
    told = checked(page(found)).words
    assert told.startswith(f"{headline} · rankmill")
    assert "There is no earlier run of these slices." in told
    assert " before now result" not in told
    assert "map@5[group=*] >= 0.2: broken by group = it" in told
    assert "Regressed: 1 of 2 rules broken" in told
    assert "By length of the list" in told
    text = page(found, history={("map@5", "group = it"): runs})
    read = checked(text).words
    assert read.startswith(f"{headline}; 50% below yesterday · rankmill")
    assert "the last 3 runs" in read
    assert text.count('stroke-width="1.5"') == 1  # of the others this is the first run
    ends = re.findall(r'<circle cx="[\d.]+%" cy="[\d.]+" r="4"', text)
    assert len(ends) >= 3
    # A second try of this night: the night before is still what it is compared with.
    again = [*runs, (runs[-1][0] + timedelta(hours=1), broken.value, None, "held")]
    read = checked(page(found, history={("map@5", "group = it"): again, "map@5": again})).words
    assert read.startswith(f"{headline}; 50% below yesterday · rankmill")
    assert f"before now result group = it {2 * broken.value:.4f} {broken.value:.4f}" in read
    assert "map@5 is lower than in all 2 runs before" in read
    against = flat(
        gate, inputs["labels"], inputs["new"], rules, baseline=inputs["old"], details=True
    )
    told = checked(page(against)).words
    for one in against.outcomes:
        if one.slice:
            assert one.slice in told
            assert f"{one.slice} {one.baseline:.4f} {one.value:.4f}" in told
    assert "Gray dots are the baseline." in told
    assert "below the baseline · rankmill" in told
    held = gate(inputs["labels"], inputs["new"], ["map@5[group=*] >= 0.0001"])
    assert "no slice of 3 broke it" in checked(page(held)).words


def test_of_many_broken_slices_most_are_folded(inputs: dict[str, pa.Table]) -> None:
    count = inputs["labels"].num_rows
    many = pa.array([f"s{row % 60}" for row in range(count)])
    labels = inputs["labels"].append_column("shop", many)
    text = page(gate(labels, inputs["new"], ["map@5[shop=*] >= 0.9999"]))
    verdict = text[text.index("Verdict</p>") : text.index("</section>", text.index("Verdict</p>"))]
    shown, _, folded = verdict.partition("<details")
    assert shown.count("where shop = ") == 20
    assert "<summary>40 more</summary>" in folded
    assert folded.count("where shop = ") == 40


def test_a_page_counts_rules_clusters_and_notes(inputs: dict[str, pa.Table]) -> None:
    open_rule = "map@5[group=*] drop <= 1%"
    found = gate(inputs["labels"], inputs["old"], [open_rule], baseline=inputs["old"])
    assert [one.word for one in found.outcomes] == ["not enough data"] * 3
    told = checked(page(replace(found, notes=["left out: a run"]))).words
    assert "Not enough data for 1 of 1 rule" in told
    assert "left out: a run" in told
    ids = inputs["labels"].column("query_id").to_pylist()
    labels = inputs["labels"].append_column("user", pa.array([int(one[1:]) // 2 for one in ids]))
    found = gate(labels, inputs["new"], ["map@5 drop <= 1%"], baseline=inputs["old"],
                 cluster="user")  # fmt: skip
    told = checked(page(found)).words
    assert "candidate against baseline · 400 queries in 200 clusters by user" in told
    assert "Means over 400 queries in 200 clusters by user, with" in told
    # The same without a baseline, where the page has only the result and what was seen beside it.
    assert found.comparison is not None
    half = half_width(found.comparison.values["map@5"]["candidate"].half)
    alone = flat(gate, labels, inputs["new"], ["map@5 >= 0.01"], cluster="user", details=True)
    told = checked(page(alone)).words
    assert "400 queries in 200 clusters by user" in told
    assert f"map@5 is {number(alone.result['map@5'])} {half}" in told
    plain = flat(gate, labels, inputs["new"], ["map@5 >= 0.01"], details=True, query="query_id")
    assert f"map@5 is {number(alone.result['map@5'])} {half} " not in checked(page(plain)).words


def test_the_slices_of_a_gate_are_drawn_without_a_baseline(
    files: dict[str, Path], run_cli: Any
) -> None:
    target = files["labels"].parent / "page.html"
    given = ["gate", files["labels"], files["new"], "--rule", "map@5[group=it] >= 0.2"]
    given += ["--history", files["labels"].parent / "runs", "--report", target]
    for night in (1, 2, 3):
        run_cli(*given, "--by", "list_length", "--date", f"2026-01-0{night}")
    told = checked(target.read_text("utf-8")).words
    assert "; as yesterday" in told
    assert "the last 3 runs" in told
    assert "By group" in told
    assert "By length of the list" in told
    # A night that is gated again later: runs after it are not of its past.
    run_cli(*given, "--date", "2026-01-02")
    told = checked(target.read_text("utf-8")).words
    assert "the last 3 runs" in told
    assert "2026-01-03" not in told.partition("left out: ")[0]


@pytest.mark.parametrize("kind", ["per-query", "result"])
def test_a_page_shows_what_an_earlier_run_has(
    kind: str, inputs: dict[str, pa.Table], tmp_path: Path
) -> None:
    earlier = rankmill.evaluate(inputs["labels"], inputs["old"], ["map@5"])
    assert earlier.per_query is not None
    pq.write_table(earlier.per_query, tmp_path / "q.parquet")
    baseline = (
        str(tmp_path / "q.parquet") if kind == "per-query" else replace(earlier, per_query=None)
    )
    rules = ["map@5 drop <= 50%"]
    found = flat(gate, inputs["labels"], inputs["new"], rules, baseline=baseline, details=True)
    assert found.baseline is not None
    assert found.baseline["kind"] == kind
    runs = {"candidate": inputs["new"]}
    lists = lists_of(found.details, {"labels": inputs["labels"], "runs": runs})
    told = checked(page(found, lists=lists)).words
    assert "Rank 1 is right for" in told
    assert ("Who gained and who lost" in told) == ("Query q" in told) == (kind == "per-query")


def test_pages_of_odd_data_are_pages() -> None:
    lists = rankmill.arrays.Ragged.from_lists
    labels = lists([[1], [2]])
    checked(page(rankmill.evaluate(labels, lists([[], []]), ["map@2"])))
    same = {"a": lists([[1], [2]]), "b": lists([[1], [2]]), "c": lists([[3], [2]])}
    checked(page(flat(rankmill.compare, labels, same, ["map@2", "rprec"], details=True)))
    nothing = {"a": {7: [1]}, "b": {8: [1]}}
    skip = {"unpredicted": "skip"}
    found = flat(rankmill.compare, {1: [1]}, nothing, ["map@2"], semantics=skip, details=True)
    assert found.queries == 0
    checked(page(found))
    # One system has a query with labels and lists, the other none.
    one_sided = {"a": {7: [1]}, "b": {1: [2, 1]}}
    found = flat(rankmill.compare, {1: [1]}, one_sided, ["map@2"], semantics=skip, details=True)
    assert "Rank 1 is right for 0%" in checked(page(found)).words
    with pytest.raises(UsageError, match="there is no page of a int; expected a Result"):
        page(3)


def test_hostile_ids_and_names_are_inert() -> None:
    ids = HOSTILE
    labels = pa.table({"query_id": ids, "items": [[one] for one in ids], "<b>": ids})
    hit = pa.table({"query_id": ids, "items": [[one, "other"] for one in ids]})
    miss = pa.table({"query_id": ids, "items": [["other", one] for one in ids]})
    runs = {"<script>old": hit, "\u202enew" * 500: miss}
    found = flat(
        rankmill.compare,
        labels,
        runs,
        ["map@5"],
        by=["<b>"],
        moved=20,
        details=True,
        confidence=0.8,
    )
    lists = lists_of(found.details, {"labels": labels, "runs": runs})
    assert len(lists) == len(ids)
    text = page(found, lists=lists, command="rankmill compare \u202e<script> \x1b[1m")
    read = checked(text)
    assert "<script" not in text
    assert "49" not in re.findall(r"\{\{.{0,10}", text)
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", text)
    assert "x" * 200 not in text
    assert "שלום עולם" in read.words
    assert len(text) < 300_000


def test_a_page_of_a_million_queries_is_small() -> None:
    draw = np.random.default_rng(2)
    values = draw.random(100_000)
    slices = [
        Slice(("item",), (f"{i}",), 10, {"map": {"a": Estimate(0.1), "b": Estimate(0.2)}},
              {"map": {"b": change(draw.normal(), "worse", draw.normal())}})
        for i in range(1000)
    ]  # fmt: skip
    ragged = rankmill.arrays.Ragged.from_lists
    two = {"a": ragged([[1], [2]]), "b": ragged([[1], [3]])}
    found = rankmill.compare(ragged([[1], [2]]), two, ["map"])
    found = replace(found, slices=slices)
    details = Details({}, histograms={"map": histograms_of({"b": values})})
    history = {f"m{i}": [(j, 0.5, 0.1, "held") for j in range(10_000)] for i in range(20)}
    text = page(found, details=details, history=history)
    assert len(text) < 400_000
    assert "24 of 1,000 slices" in checked(text).words


# ------------------------------------------------------------------ colours


def colours() -> dict[str, dict[str, str]]:
    """Return the palettes of light, dark and paper."""
    blocks = re.findall(r":root \{(.*?)\}", _sheet(), re.S)
    found = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in blocks]
    return dict(zip(("light", "dark", "print"), found, strict=True))


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours by the definition of WCAG 2."""

    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_colours_have_contrast(scheme: str) -> None:
    palette = colours()[scheme]
    assert palette.keys() == colours()["light"].keys()
    for ground in ("paper", "card"):
        for text in ("ink", "soft", "good", "bad", "warn", "even"):
            assert contrast(palette[text], palette[ground]) >= 4.5, (text, ground)
        for drawn in LOOKS:
            assert contrast(palette[drawn], palette[ground]) >= 3, (drawn, ground)
    for text in ("ink", "good"):
        assert contrast(palette[text], palette["hit"]) >= 4.5
    assert contrast(palette["ink"], palette["shade"]) >= 4.5


# ------------------------------------------------------------------ the command line


@pytest.fixture
def files(tmp_path: Path, inputs: dict[str, pa.Table]) -> dict[str, Path]:
    for name_of, table in inputs.items():
        pq.write_table(table, tmp_path / f"{name_of}.parquet")
    return {name_of: tmp_path / f"{name_of}.parquet" for name_of in inputs}


def shown(text: str) -> str:
    """Return a text without what differs from one run to the next."""
    return re.sub(r"seconds.*|(?<=run: ).* UTC", "", text)


@pytest.mark.parametrize(
    ("command", "systems", "more"),
    [
        ("evaluate", ["new"], []),
        ("evaluate", ["new"], ["--format", "json", "-m", "gap"]),
        ("compare", ["old", "new"], ["--by", "group"]),
        ("compare", ["old", "new"], ["--format", "csv", "--by", "label_count"]),
        ("gate", ["new"], ["--rule", "map@5 >= 0.9"]),
    ],
)
def test_the_option_report_changes_no_output(
    command: str, systems: list[str], more: list[str], files: dict[str, Path], run_cli: Any
) -> None:
    given = [command, files["labels"], *(files[one] for one in systems), "-m", "map@5", *more]
    target = files["labels"].parent / "page.html"
    before, after = run_cli(*given), run_cli(*given, "--report", target)
    assert (before.exit_code, shown(before.stdout), before.stderr) == (
        *(after.exit_code, shown(after.stdout), after.stderr),
    )
    told = checked(target.read_text("utf-8")).words
    assert f"rankmill {command}" in told
    assert "Rank 1 is right for" in told


def test_report_is_a_command(files: dict[str, Path], run_cli: Any) -> None:
    given = ["report", files["labels"], files["new"]]
    printed = run_cli(*given, "-m", "map@5")
    assert printed.exit_code == 0, printed.stderr
    assert "Metrics" in checked(printed.stdout).words
    target = files["labels"].parent / "page.html"
    outcome = run_cli(*given, files["old"], "-m", "map@5", "--by", "group", "-o", target)
    assert (outcome.exit_code, outcome.stdout) == (0, "")
    told = checked(target.read_text("utf-8")).words
    assert told.startswith("group = it lost") or "new against old" in told


@pytest.mark.skipif(os.name == "nt", reason="no pseudo-terminals")
def test_a_page_does_not_flood_a_terminal(files: dict[str, Path]) -> None:
    arguments = ["report", *map(str, (files["labels"], files["new"])), "-m", "map@5"]
    code = "from rankmill.cli import main\nmain({!r})"
    told = " ".join(on_a_terminal(code.format(arguments), 300))
    assert "name a file, such as -o page.html, or use -o - to print it" in told
    assert "<html" not in told
    assert "</html>" in " ".join(on_a_terminal(code.format([*arguments, "-o", "-"]), 300))


def test_a_page_shows_the_history(files: dict[str, Path], run_cli: Any) -> None:
    folder = files["labels"].parent
    given = ["gate", files["labels"], files["new"], "--rule", "map@5 >= 0.1", "--history"]
    target = folder / "page.html"
    for runs in range(3):
        run_cli(*given, folder / "history", "--report", target)
        told = checked(target.read_text("utf-8")).words
        assert ("map@5 is as in the run before" in told) == (runs > 0)
    assert "The last 3 runs" in told
    outcome = run_cli("report", files["labels"], files["new"], "-m", "map@5",
                      "--history", folder / "history")  # fmt: skip
    assert "The last 4 runs" in checked(outcome.stdout).words


def test_a_page_is_written_with_the_other_outputs_or_not_at_all(
    files: dict[str, Path], run_cli: Any
) -> None:
    folder = files["labels"].parent
    given = ["evaluate", files["labels"], files["new"], "-m", "map@5", "-o", folder / "a.json"]
    outcome = run_cli(*given, "--report", folder / "none" / "page.html")
    assert outcome.exit_code == 2
    assert not (folder / "a.json").exists()
    outcome = run_cli(*given, "--report", folder / "a.json")
    assert "are the same file" in outcome.stderr
    outcome = run_cli(*given, files["old"], "--report", folder / "page.html")
    assert "rankmill report" in outcome.stderr
    assert not (folder / "a.json").exists()
    assert not (folder / "page.html").exists()


def test_jinja_is_loaded_only_when_asked_for(files: dict[str, Path]) -> None:
    code = f"""
import sys
from rankmill.cli import main
for more in ([], ["--report", {str(files["labels"].parent / "p.html")!r}]):
    try:
        main(["evaluate", {str(files["labels"])!r}, {str(files["new"])!r}, *more], "rankmill")
    except SystemExit as ending:
        assert not ending.code, ending.code
    print("LOADED", "jinja2" in sys.modules)
"""
    assert re.findall("LOADED (.*)", run_python(code)) == ["False", "True"]


def test_the_page_of_a_result_has_its_slices() -> None:
    labels = {f"q{n}": ["a"] for n in range(40)}
    run = {query: ["a" if n % 4 else "b"] for n, query in enumerate(labels)}
    country = pa.table(
        {"query": [*labels], "country": ["de" if n % 2 else "fr" for n in range(40)]}
    )
    shown = page(rankmill.evaluate(labels, run, "map@2", by=country))
    assert "country" in shown
    assert "fr" in shown
    assert "country" not in page(rankmill.evaluate(labels, run, "map@2"))
