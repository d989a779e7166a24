"""Lists without predictions, and queries without labels: no value out of range, no system gains."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from conftest import tells
from hypothesis import given, settings
from hypothesis import strategies as st

import rankmill
import strategies
from flat import flat
from rankmill import InputError
from rankmill.metrics.registry import REGISTRY, is_defined, parse
from rankmill.semantics.choices import DEFAULT
from strategies import examples

Lists = dict[int, list[str] | None]
Gains = dict[int, dict[str, float]]

METRICS = [
    one
    for one in strategies.metric_names([2], every=True)
    if parse(one).spec.kernel and is_defined(parse(one), DEFAULT)
]
OF_SUBTOPICS = [one.example for one in REGISTRY.values() if one.gains == "subtopics"]
NO_WORST = ["first_rank", "mean_rank", "num_nonrel_judged_ret", "utility"]
CHOICES: list[Any] = ["default", {"no_relevant": "scored"}]
CHOICES += [{"preset": one, "unpredicted": "zero"} for one in ("trec_eval", "trec_eval-10")]
LOST = 1  # the query that loses its predictions


def label_table(gains: Gains) -> pa.Table:
    rows = [(query, item, gain) for query, of in gains.items() for item, gain in of.items()]
    queries, items, each = zip(*rows, strict=True)
    return pa.table({"query": queries, "item": items, "gain": each, "subtopic": items})


def prediction_table(lists: Lists) -> pa.Table:
    kind = pa.list_(pa.string())
    return pa.table({"query": list(lists), "items": pa.array(list(lists.values()), kind)})


# How a system loses the predictions of a query: what stands in their place, and the options.
WAYS: dict[str, tuple[Callable[[Lists], Lists], dict[str, Any]]] = {
    "missing": (lambda lists: {q: of for q, of in lists.items() if q != LOST}, {}),
    "empty": (lambda lists: lists | {LOST: []}, {}),
    "null": (lambda lists: lists | {LOST: None}, {}),
    "padded": (lambda lists: lists | {LOST: ["-", "-"]}, {"padding": "-"}),
    "unjudged": (lambda lists: lists | {LOST: ["u1", "u2"]}, {"judged_only": True}),
    "seen": (
        lambda lists: lists | {LOST: ["s"]},
        {"train": pa.table({"query": [LOST], "item": ["s"]}), "drop_seen": True},
    ),
}


def is_refused(metric: str) -> bool:
    return math.isnan(parse(metric).spec.worst)


def assert_in_range(metric: str, value: float) -> None:
    low, high = parse(metric).spec.bounds
    assert low <= value <= high + 1e-12, (metric, value)


def names_for(semantics: Any, refused: bool) -> list[str]:
    """The metrics that have a value without predictions, or those that have none."""
    named = semantics.get("preset") if isinstance(semantics, dict) else None
    others = {"trec_eval": ("rbp", "graded_rbp", "rbp_resid", "unj", "dcg")}
    others["trec_eval-10"] = ("rbp",)
    return [
        one
        for one in METRICS
        if is_refused(one) is refused and parse(one).name not in others.get(named or "", ())
    ]


@st.composite
def inputs(draw: st.DrawFn) -> tuple[Gains, Lists]:
    """Graded labels of three queries, and lists of which each has a judged item."""
    gain = st.sampled_from([-1.0, 0.0, 1.0, 2.0])
    gains = {q: draw(st.dictionaries(st.sampled_from("abcd"), gain, min_size=1)) for q in (1, 2, 3)}
    gains[LOST]["a"] = draw(st.sampled_from([1.0, 2.0]))
    lists: Lists = {}
    for query, of in gains.items():
        of["d"] = max(0.0, of.get("d", 0.0))
        others = draw(st.lists(st.sampled_from("abcuv"), unique=True))
        lists[query] = draw(st.permutations([*others, "d"]))
    return gains, lists


@pytest.mark.small
@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=examples(12))
@given(inputs(), st.sampled_from(CHOICES))
def test_no_system_gains_by_losing_the_predictions_of_a_query(
    way: str, data: tuple[Gains, Lists], semantics: Any
) -> None:
    gains, lists = data
    lose, options = WAYS[way]
    labels = label_table(gains).drop_columns("subtopic")
    tables = [prediction_table(one) for one in (lists, lose(lists))]
    options = options | {"gain": "gain", "semantics": semantics}
    metrics = names_for(semantics, refused=False)
    whole, lost = (flat(rankmill.evaluate, labels, one, metrics, **options) for one in tables)
    parts = flat(rankmill.parts.evaluate_part, labels, tables[1], metrics, **options)
    assert rankmill.parts.State.from_row(parts.to_row()).result().metrics == lost.metrics
    assert whole.per_query["query"] == lost.per_query["query"]
    for metric in metrics:
        name = whole.aliases.get(metric, metric)
        pairs = zip(
            whole.per_query[name].to_pylist(), lost.per_query[name].to_pylist(), strict=True
        )
        better = parse(metric).better
        for before, after in pairs:
            assert_in_range(metric, after)
            if better != "neither":
                assert after <= before if better == "higher" else after >= before, metric
    for metric in names_for(semantics, refused=True):
        if parse(metric).spec.without_labels == "refused" and parse(metric).rel is not None:
            continue  # refused for another query, perhaps
        with pytest.raises(InputError) as caught:
            flat(rankmill.evaluate, labels, tables[1], metric, **options)
        assert f"{metric} has no value for it" in str(caught.value)


@pytest.mark.small
def test_a_list_of_nothing_covers_no_subtopic() -> None:
    labels = label_table({1: {"a": 1.0}, 2: {"b": 1.0}}).drop_columns("gain")
    for way, (lose, options) in WAYS.items():
        lists = prediction_table(lose({1: ["a"], 2: ["b"]}))
        found = flat(rankmill.evaluate, labels, lists, OF_SUBTOPICS, subtopic="subtopic", **options)
        for metric in OF_SUBTOPICS:
            assert found.per_query[metric][0].as_py() == 0, (way, metric)


@pytest.mark.small
@pytest.mark.lengthy
@settings(max_examples=examples(20))
@given(inputs(), st.sampled_from([{"rel": 3.0}, {"semantics": {"no_relevant": "scored"}}]))
def test_every_metric_stays_in_its_range_without_labels(
    data: tuple[Gains, Lists], options: dict[str, Any]
) -> None:
    gains, lists = data
    if "rel" not in options:
        gains[3] = {item: min(0.0, gain) for item, gain in gains[3].items()}
    tables = label_table(gains).drop_columns("subtopic"), prediction_table(lists)
    for metric in METRICS:
        if parse(metric).rel is not None:
            continue
        try:
            found = flat(rankmill.evaluate, *tables, metric, gain="gain", **options)
        except InputError as error:
            assert parse(metric).spec.without_labels == "refused"
            tells(error, ["query", "no label", "leave out"])
            continue
        for value in found.per_query[1].to_pylist():
            assert_in_range(metric, value)


# ------------------------------------------------------------------ values and words by hand

LABELS = label_table({1: {"x": 1.0}, 2: {"y": 1.0, "z": 0.0}}).drop_columns("subtopic")
GOOD = prediction_table({1: ["x"], 2: ["z", "y"]})
BAD = prediction_table({1: ["u"], 2: ["u", "v"]})


@pytest.mark.small
def test_values_by_hand() -> None:
    metrics = [
        "rbp_residual",
        "rbp_resid",
        "unjudged@5",
        "unj@5",
        "first_hit",
        "num_ret",
        "num_rel",
    ]
    options = {"gain": "gain", "judged_only": True}
    found = flat(rankmill.evaluate, LABELS, BAD, metrics, **options)
    assert list(found.metrics.values()) == [1, 1, 1, 1, 0, 0, 1]
    one = flat(rankmill.evaluate, LABELS, prediction_table({1: ["x"]}), metrics, **options)
    assert one["rbp_residual"] == pytest.approx((0.8 + 1) / 2)
    assert one.per_query["unj@5"].to_pylist() == [0, 1]


@pytest.mark.small
@pytest.mark.parametrize("metric", NO_WORST)
@pytest.mark.parametrize("semantics", ["default", "trec_eval"])
def test_what_has_no_worst_value_is_refused(metric: str, semantics: str) -> None:
    """Everywhere, also where a query without predictions is left out: this one had some."""
    options = {"gain": "gain", "judged_only": True, "semantics": semantics}
    assert flat(rankmill.evaluate, LABELS, GOOD, metric, **options)[metric] is not None
    runs = {"good": GOOD, "bad": BAD}
    rules = [f"{metric} drop <= 1%"]
    for door in (
        lambda: flat(rankmill.evaluate, LABELS, BAD, metric, **options),
        lambda: flat(rankmill.evaluate_runs, LABELS, runs, metric, **options),
        lambda: flat(rankmill.parts.evaluate_part, LABELS, BAD, metric, **options),
        lambda: flat(rankmill.compare, LABELS, runs, metric, **options),
        lambda: flat(rankmill.gate, LABELS, BAD, rules, baseline=GOOD, **options),
    ):
        with pytest.raises(InputError) as caught:
            door()
        tells(caught.value, ["query 1", "no predictions left", metric, "leave out --judged-only"])


@pytest.mark.small
def test_a_run_that_loses_its_predictions_loses() -> None:
    queries = range(1, 41)
    labels = label_table({q: {"x": 1.0} for q in queries}).drop_columns("subtopic")
    lists: dict[str, Lists] = {"good": {}, "bad": {}}
    for query in queries:
        lists["good"][query] = ["x", "u"][: 1 + query % 2]
        lists["bad"][query] = ["u"]
    runs = {name: prediction_table(of) for name, of in lists.items()}
    options: dict[str, Any] = {"gain": "gain", "drop_seen": True}
    options["train"] = pa.table({"query": list(queries), "item": ["u"] * len(queries)})
    found = flat(rankmill.compare, labels, runs, ["rbp_residual"], baseline="good", **options)
    one = found.differences["rbp_residual"]["bad"]
    assert (one.won, one.tied, one.lost) == (0, 0, 40)
    rules = ["rbp_residual drop <= 1%"]
    assert not flat(rankmill.gate, labels, runs["bad"], rules, baseline=runs["good"], **options)


@pytest.mark.small
def test_no_label_of_that_gain() -> None:
    for metric in ("mean_rank(rel=2)", "first_rank(rel=2)"):
        with pytest.raises(InputError) as caught:
            rankmill.evaluate(rankmill.Labels(LABELS, gain="gain"), GOOD, metric)
        tells(caught.value, ["query 1", "no label with a gain of 2 or more", metric, "smaller rel"])
