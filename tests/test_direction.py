"""Which side of a metric is better: every metric says it, and every command reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import rankmill
from rankmill.metrics.registry import REGISTRY, is_defined, parse
from rankmill.results.tables import Best, Table
from rankmill.semantics.choices import Semantics
from shown import view_all

LOWER = {
    *("first_rank", "mean_rank", "rbp_residual", "unjudged", "num_nonrel_judged_ret"),
    *("ece", "brier", "miscalibration"),
}
# They describe lists or labels. Coverage, novelty and their like name a goal: these are "higher".
NEITHER = {
    *("num_ret", "num_rel", "best_f1_threshold", "gini", "entropy", "hhi"),
    *("popularity", "popularity_lift", "head_share", "middle_share", "tail_share"),
}
# They look at what is listed, and not at whether it is right.
OF_LISTS = {
    *("coverage", "user_coverage", "personalization", "novelty", "exposure_parity", "ild"),
    "miscalibration",
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
        "train": _table([["x", "z"]] * 4),
    }
    examples = {name: parse(spec.example.replace("@10", "@2")) for name, spec in REGISTRY.items()}
    of_topics = {name for name, spec in REGISTRY.items() if spec.gains == "subtopics"}
    plain = [one for name, one in examples.items() if name not in of_topics]
    found: dict[str, float | None] = {}
    for semantics, defined in ((Semantics(), True), (Semantics(order="expected"), False)):
        texts = [one.text for one in plain if is_defined(one, Semantics()) == defined]
        found |= rankmill.evaluate(labels, predictions, texts, semantics=semantics, **given).metrics
    rows = [(q, item, SUBTOPICS[item], gain) for q in QUERIES for item, gain in GAINS.items()]
    named = zip(("user_id", "item_id", "subtopic", "gain"), zip(*rows, strict=True), strict=True)
    topics = [examples[name].text for name in of_topics]
    cut = rankmill.evaluate(
        pa.table({name: [*one] for name, one in named}), predictions, topics, subtopic="subtopic"
    )
    found |= cut.metrics
    return {name: found[one.text] for name, one in examples.items()}


@pytest.mark.small
def test_directions_are_those_that_were_thought_about() -> None:
    found = {name: spec.better for name, spec in REGISTRY.items()}
    assert {name for name, better in found.items() if better == "lower"} == LOWER
    assert {name for name, better in found.items() if better == "neither"} == NEITHER
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
            assert (one > other) == (spec.better == "higher"), (name, one, other)
    assert set(REGISTRY) - apart == OF_LISTS | NEITHER


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


def _runs(good: str = "good", bad: str = "bad") -> dict[str, pa.Table]:
    lists = {good: ["a", "x"], bad: ["x", "y", "a"]}
    # Where the label stands differs a little between queries, so that differences have a spread.
    return {
        name: pa.table(
            {
                "user_id": [*range(40)],
                "items": [["z", *one] if q % 7 == 0 else one for q in range(40)],
                "confidence": [[0.9, 0.2, 0.1, 0.05][: len(one) + (q % 7 == 0)] for q in range(40)],
            }
        )
        for name, one in lists.items()
    }


@pytest.mark.small
def test_the_star_is_on_the_better_side() -> None:
    results = rankmill.evaluate_runs(LABELS, _runs(), MIXED)
    values, *more = view_all(results).screen()
    assert isinstance(values, Table)
    starred = {row[0]: [isinstance(cell, Best) for cell in row[1:]] for row in values.rows}
    assert starred == {
        **{name: [True, False] for name in ("map@3", "first_rank@3", "ece")},
        **{name: [False, False] for name in ("gini@3", "num_ret")},
    }
    assert "lower is better: first_rank@3, ece" in more
    assert "neither side is better: gini@3, num_ret" in more
