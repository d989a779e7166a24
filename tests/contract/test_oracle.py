"""The oracle: it agrees with brute force and with answers found by hand, and is complete."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import oracle_lists
from lines import expect_lines
from strategies import examples

TIED = st.lists(st.tuples(st.sampled_from([0.0, -0.0, 0.5, 1.0]), st.booleans()), max_size=6)


@settings(max_examples=examples(150))
@given(TIED, st.integers(1, 4))
def test_closed_form_of_ties_is_the_mean_over_all_orders(
    predictions: list[tuple[float, bool]], total: int
) -> None:
    brute = oracle.brute_force_gap(predictions, total)
    closed = [
        oracle.global_average_precision(predictions, total, ties)
        for ties in ("expected", "worst", "best")
    ]
    assert closed == pytest.approx([float(value) for value in brute], abs=1e-14)


def test_brute_force_gap_by_hand() -> None:
    # One right and one wrong prediction tied at the top: 1 or 1/2, so 3/4 on average.
    assert oracle.brute_force_gap([(1.0, True), (1.0, False)], 1) == (
        Fraction(3, 4),
        Fraction(1, 2),
        Fraction(1),
    )


@pytest.mark.parametrize(
    ("text", "labels", "predictions", "expected"),
    [
        ("map", ["a", "b"], ["x", "a", "y", "b"], 0.5),
        ("map@2", ["a", "b", "c"], ["a", "x", "b"], 0.5),
        ("map@5", ["a", "a"], ["a", "a"], 1.0),
        ("first_hit", ["a"], [None, "x", "a"], 0.5),
        ("mrr@1", ["a"], ["x", "a"], 0.0),
        ("precision@4", ["a"], ["a", "a"], 0.25),
        ("recall", ["a", "b"], ["a", "a"], 0.5),
        ("hit@1", ["a"], ["x", "a"], 0.0),
        ("f1@2", ["a", "b", "c"], ["a", "x"], 2 / 5),
        ("rprec", ["a", "b"], ["x", "a", "b"], 0.5),
        ("dcg", {"a": 3, "b": 1}, ["x", "b", "a"], 1 / 1.584962500721156 + 3 / 2),
        ("dcg@2", {"a": 3, "b": -1}, ["a", "b"], 3.0),
        ("ndcg", {"a": 2.0}, ["x", "y", "a"], 0.5),
        ("ndcg@3", None, ["x", "y", "a"], 0.0),
    ],
)
def test_by_hand(text: str, labels: object, predictions: list[str], expected: float) -> None:
    assert oracle.query_value(text, labels, predictions) == pytest.approx(expected, abs=1e-15)


def test_exponential_gains_by_hand() -> None:
    assert oracle.query_value("dcg", {"a": 3}, ["a"], "exp") == 7.0


def test_a_whole_evaluation_by_hand() -> None:
    labels = {"q": [("a", 1), ("a", 2), ("b", 0), (None, 1)], "r": ["a"], "s": [], "t": None}
    predictions = {
        "q": [("a", 0.5), ("a", 0.5), (None, 0.9)],
        "u": [("a", 0.5)],
        "s": [("b", 0.1)],
        "r": None,
    }
    found = oracle.evaluate(labels, predictions, ["map", "hit@3", "gap"])
    assert found.queries == 2
    assert found.metrics["map"] == found.metrics["hit@3"] == 0.5
    assert found.per_query["map"] == {"q": 1.0, "r": 0.0}
    assert found.standard_errors == {"map": 0.5, "hit@3": 0.5, "gap": None}
    # One right prediction in a tie of three at the top: (1 + 1/2 + 1/3) / 3, over two queries.
    assert found.metrics["gap"] == pytest.approx(11 / 18 / 2, abs=1e-15)
    assert found.bounds["gap"] == pytest.approx((1 / 6, 1 / 2), abs=1e-15)
    assert found.audit == {
        "queries_labelled": 2,
        "queries_predicted": 3,
        "queries_in_both": 1,
        "queries_only_labelled": 1,
        "queries_only_predicted": 2,
        "empty_label_lists": 2,
        "repeated_labels": 1,
        "null_labels": 1,
        "nonpositive_gains": 1,
        "repeated_items": 1,
        "null_items": 1,
        "items_beyond_depth": 0,
        "unjudged_items": 0,
        "seen_items": 0,
        "unknown_items": 0,
        "short_lists": 1,
        "tied_confidences": 3,
        "tied_ranks": 0,
        "comment_lines": 0,
        "labels": 2,
        "predictions": 4,
    }


def test_long_rows_are_ordered() -> None:
    rows = [("q", "a", 2, 0.1), ("r", "c", 1, 0.0), ("q", "b", 1, 0.1), ("q", "d", 3, 0.7)]
    items = {
        order: [item for item, _ in oracle.lists_of_rows(rows, order)["q"]]
        for order in ("file", "rank", "confidence")
    }
    assert items == {
        "file": ["a", "b", "d"],
        "rank": ["b", "a", "d"],
        "confidence": ["d", "a", "b"],
    }


@pytest.mark.small
def test_every_registered_metric_has_an_oracle() -> None:
    from rankmill.metrics import registry as metrics

    line = """VALUES: "{name}": {name},
    and above it its formula in plain Python, from the ranks of a list, its gains and R:
    def {name}(one: Listed) -> float:"""
    expect_lines("tests/support/oracle_lists.py", line, metrics.REGISTRY, {*oracle.ORACLES})


@pytest.mark.small
def test_metrics_without_an_expected_value_are_told() -> None:
    from rankmill.metrics import registry as metrics

    line = """NOT_EXPECTED: "{name}",
    or, if `count` adds it up in QUANTITIES or it has a twin in kernels/expectation.py, add the name
    of the quantity to EXPECTED of src/rankmill/metrics/base.py"""
    found = {name for name, spec in metrics.REGISTRY.items() if spec.expected is None}
    there = oracle_lists.NOT_EXPECTED
    expect_lines("tests/support/oracle_lists.py", line, found & {*oracle_lists.VALUES}, there)


@pytest.mark.small
def test_metrics_that_are_better_when_lower_are_told() -> None:
    from rankmill.metrics import registry as metrics

    line = """LOWER_IS_BETTER: "{name}", as its row says better='lower': it is 1 without
    predictions; if it has no worst value, add it to NO_WORST, too"""
    found = {name for name, spec in metrics.REGISTRY.items() if spec.better == "lower"}
    there = oracle_lists.LOWER_IS_BETTER
    expect_lines("tests/support/oracle_lists.py", line, found & {*oracle_lists.VALUES}, there)


@pytest.mark.small
def test_every_alias_is_an_alias_of_the_registry() -> None:
    from rankmill.metrics import registry as metrics

    registered = {alias: name for name, spec in metrics.REGISTRY.items() for alias in spec.aliases}
    assert registered == oracle.ALIASES


def test_every_audit_field_has_an_oracle() -> None:
    from rankmill.results import audit

    assert list(oracle.audit({}, {}, [])) == list(audit.FIELDS)
