"""Every choice of every field of Semantics, on data small enough to count by hand; and refusals.

In the tables, a list of labels is a text with one letter for each item, and predictions are
(item, confidence).
"""

from __future__ import annotations

import collections
import itertools
import math
import statistics
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import tells

import rankmill
from flat import flat
from rankmill import InputError, Semantics, UsageError
from rankmill.columns.ids import to_ids
from rankmill.columns.lists import offsets_of
from rankmill.matching.hits import Hits, group_hits
from rankmill.metrics.families.gain import LARGEST_IDEAL
from rankmill.metrics.gap.gap import PooledPredictions, rank_pooled
from rankmill.semantics.choices import CHOICES, Choices

Lists = dict[int, list[tuple[Any, Any]]]


def listed(letters: str) -> list[tuple[str, float]]:
    """Return one prediction for each letter, by falling confidence."""
    return [(letter, 1.0 - i / 8) for i, letter in enumerate(letters)]


def labels_of(lists: dict[int, str]) -> pa.Table:
    return pa.table(
        {
            "query": pa.array(list(lists), pa.int64()),
            "items": pa.array([list(letters) for letters in lists.values()], pa.list_(pa.string())),
        }
    )


def predictions_of(lists: Lists) -> pa.Table:
    return pa.table(
        {
            "query": pa.array(list(lists), pa.int64()),
            "items": pa.array(
                [[item for item, _ in one] for one in lists.values()], pa.list_(pa.string())
            ),
            "score": pa.array(
                [[score for _, score in one] for one in lists.values()], pa.list_(pa.float64())
            ),
        }
    )


def score(
    labels: dict[int, str], predictions: Lists, metric: str, semantics: Any = "default"
) -> float | None:
    tables = labels_of(labels), predictions_of(predictions)
    return rankmill.evaluate(*tables, metric, semantics=semantics).metrics[metric]


ERROR = "error"
TIED = [("w", 0.1), *((letter, 0.5) for letter in "mnhzc")]

# field -> (labels, predictions, metric, fields that are fixed, choice -> value)
TABLE: dict[str, tuple[dict[int, str], Lists, str, dict[str, str], dict[str, Any]]] = {
    "ap_divisor": (
        {1: "abcd"},
        {1: listed("ax")},
        "map@3",
        {},
        {"min_k_labels": 1 / 3, "labels": 1 / 4, "min_labels_predictions": 1 / 2, "hits": 1.0},
    ),
    "repeated_predictions": (
        {1: "ab"},
        {1: listed("aab")},
        "map",
        {},
        {"once": (1 + 2 / 3) / 2, "drop": 1.0, "each": 3 / 2, "error": ERROR},
    ),
    "repeated_labels": (
        {1: "aab"},
        {1: listed("a")},
        "recall",
        {},
        {"set": 1 / 2, "count": 1 / 3, "error": ERROR},
    ),
    "order": (
        {1: "h"},
        {1: [("x", 0.1), ("y", 0.2), ("q", 0.5 - 1e-9), ("r", 0.5 - 1e-9), *TIED]},
        "first_hit",
        {},
        {
            "given": 1 / 8,
            "confidence": 1 / 3,
            "item_descending": 1 / 4,
            "item_ascending": 1 / 2,
            "item_descending_float32": 1 / 6,
            "worst": 1 / 5,
            "best": 1.0,
            "expected": (1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 5,
        },
    ),
    # Two of four are right: the first and third as given, the second and third by ids.
    "gap_ties": (
        {1: "b", 2: "a"},
        {2: [("a", 0.5), ("z", 0.5)], 1: [("b", 0.5), ("a", 0.5)]},
        "gap",
        {},
        {
            "expected": (2 + 5 / 3 + 3 / 2 + 7 / 6 + 1 + 5 / 6) / 6 / 2,
            "worst": (1 / 3 + 2 / 4) / 2,
            "best": 1.0,
            "given": (1 + 2 / 3) / 2,
            "ids": (1 / 2 + 2 / 3) / 2,
            "threshold": 2 * (2 / 4) / 2,
        },
    ),
    "gap_total": (
        {1: "abe", 2: "c", 3: "de"},
        {1: listed("a"), 2: [("x", 0.1)], 3: []},
        "gap",
        {},
        {
            "labelled_queries": 1 / 3,
            "label_pairs": 1 / 6,
            "predicted_label_pairs": 1 / 4,
            "hits": 1.0,
        },
    ),
    "unpredicted": (
        {1: "a", 2: "b", 3: "c"},
        {1: listed("xa"), 3: []},
        "map",
        {},
        {"zero": 1 / 6, "skip": 1 / 2, "error": ERROR},
    ),
    "unlabelled": (
        {1: "a"},
        {1: listed("xa"), 9: listed("c"), 8: []},
        "map",
        {},
        {"skip": 1 / 2, "zero": 1 / 4, "one": 3 / 4, "error": ERROR},
    ),
    "no_relevant": (
        {1: "a", 2: "", 3: ""},
        {1: listed("xa"), 2: listed("cde")},
        "num_ret",
        {"unpredicted": "skip"},
        {"skip": 2.0, "zero": 1.0, "one": 3 / 2, "scored": 5 / 2, "error": ERROR},
    ),
    "precision_divisor": (
        {1: "a"},
        {1: listed("ax")},
        "precision@4",
        {},
        {"k": 1 / 4, "min_k_predictions": 1 / 2},
    ),
    "recall_divisor": (
        {1: "abc"},
        {1: listed("ab")},
        "recall@2",
        {},
        {"labels": 2 / 3, "min_k_labels": 1.0},
    ),
    "recall_rounding": (
        {1: "abcd"},
        {1: listed("axb")},
        "iprec@0.3",
        {},
        {"up": 2 / 3, "nearest": 1.0},
    ),
    "ideal_dcg": (
        {1: "a"},
        {1: listed("a")},
        "ndcg@3",
        {},
        {"labels": 1.0, "k": 1 / (1 + 1 / math.log2(3) + 1 / 2)},
    ),
    "nan_confidence": (
        {1: "a"},
        {1: [("x", math.nan), ("y", None), ("a", 0.5)]},
        "first_hit",
        {"order": "confidence"},
        {"last": 1.0, "error": ERROR},
    ),
}


@pytest.mark.small
@pytest.mark.parametrize(
    ("field", "choice"), [(field, choice) for field in CHOICES for choice in CHOICES[field]]
)
def test_each_choice_changes_a_number_counted_by_hand(field: str, choice: str) -> None:
    labels, predictions, metric, fixed, values = TABLE[field]
    assert values.keys() == CHOICES[field].keys()
    assert len(set(values.values())) == len(values)
    semantics = {**fixed, field: choice}
    if values[choice] == ERROR:
        with pytest.raises(InputError):
            score(labels, predictions, metric, semantics)
        return
    found = score(labels, predictions, metric, semantics)
    assert found == pytest.approx(values[choice], rel=1e-15)
    if choice == next(iter(CHOICES[field])):
        assert score(labels, predictions, metric, fixed) == found


@pytest.mark.small
@pytest.mark.parametrize(
    ("semantics", "metric", "value"),
    [
        # f1 uses both divisors: 2 / (4 + 3), 2 / (2 + 3), 2 / (4 + 3), with one hit among "ax".
        ({}, "f1@4", 2 / 7),
        ({"precision_divisor": "min_k_predictions"}, "f1@4", 2 / 5),
        ({"recall_divisor": "min_k_labels"}, "f1@1", 1.0),
        # Without a cutoff there is no k to divide by.
        ({"ideal_dcg": "k"}, "ndcg", 1 / (1 + 1 / math.log2(3) + 1 / 2)),
        ({"recall_divisor": "min_k_labels"}, "recall", 1 / 3),
        ({"recall_divisor": "min_k_labels"}, "rprec", 1 / 3),
        ({"ap_divisor": "hits"}, "map", 1.0),
    ],
)
def test_divisors(semantics: dict[str, str], metric: str, value: float) -> None:
    found = score({1: "abc"}, {1: listed("ax")}, metric, semantics)
    assert found == pytest.approx(value, rel=1e-15)


# ------------------------------------------------------------------ choices that interact


@pytest.mark.small
def test_orders_hold_for_the_cutoffs_of_gap() -> None:
    """Two predictions are tied, and the first is right; gap@1 takes one of them."""
    labels, predictions = {1: "a"}, {1: [("a", 0.5), ("x", 0.5)]}
    for ties in ("expected", "given", "ids"):
        for order, value in (("confidence", 1.0), ("worst", 0.0), ("best", 1.0)):
            semantics = {"order": order, "gap_ties": ties}
            assert score(labels, predictions, "gap@1", semantics) == value
            swapped = {1: predictions[1][::-1]}
            value = 0.0 if order == "confidence" else value
            assert score(labels, swapped, "gap@1", semantics) == value


@pytest.mark.small
def test_repeats_are_dropped_before_the_cutoff_and_after_nulls() -> None:
    labels = pa.table({"query": [1], "items": [["a", "b"]]})
    items, scores = [None, "x", "a", None, "a", "b"], [9.0, 2.0, 3.0, None, 1.0, 2.0]
    predictions = pa.table({"query": [1], "items": [items], "score": [scores]})
    semantics = {"repeated_predictions": "drop", "order": "item_descending"}
    # By confidence: a, then x and b, then a again.
    result = rankmill.evaluate(
        labels, predictions, ["map@3", "precision@3", "gap@2", "gap"], semantics=semantics
    )
    assert list(result.metrics.values()) == [(1 + 2 / 3) / 2, 2 / 3, 1.0, 1 + 3 / 4 + 1 / 12]
    assert (result.audit["null_items"], result.audit["repeated_items"]) == (2, 1)


@pytest.mark.small
@pytest.mark.parametrize("repeats", ["drop", "each"])
@pytest.mark.parametrize("order", ["worst", "best", "expected"])
def test_open_orders_ask_what_to_do_with_repeats(order: str, repeats: str) -> None:
    labels, predictions = {1: "a"}, {1: [("a", 0.5), ("a", 0.25)]}
    with pytest.raises(InputError) as caught:
        score(labels, predictions, "map", {"order": order})
    tells(caught.value, ["row 0", "query 1", "'a'", order, "--semantics repeated_predictions=drop"])
    score(labels, predictions, "map", {"order": order, "repeated_predictions": repeats})
    bare = predictions_of(predictions).drop_columns("score")
    result = rankmill.evaluate(labels_of(labels), bare, "map", semantics={"order": order})
    assert result["map"] == 1.0  # the given order is kept


@pytest.mark.small
@pytest.mark.parametrize("k", [1, 3, 1023, 1024, 5000, LARGEST_IDEAL])
def test_ideal_dcg_of_any_cutoff(k: int) -> None:
    ideal = math.fsum(1 / math.log2(rank + 1) for rank in range(1, k + 1))
    found = score({1: "a"}, {1: listed("a")}, f"ndcg@{k}", {"ideal_dcg": "k"})
    assert found == pytest.approx(1 / ideal, rel=1e-14)


@pytest.mark.small
@pytest.mark.parametrize(
    ("gain_function", "one", "three"),
    [("linear", 1, 3), ("exp", 1, 7), ("1=3,3=7", 3, 7), ("1=4,3=2", 4, 2), ("1=3,3=3", 3, 3)],
)
def test_ideal_dcg_of_k_labels_has_the_worth_of_gain_1(
    gain_function: str, one: float, three: float
) -> None:
    labels, lists = {"q": {"a": 3, "b": 1}}, {"q": ["b", "a"]}
    how = Semantics(gain_function=gain_function, ideal_dcg="k")
    found = rankmill.evaluate(labels, lists, ["ndcg@1", "ndcg@2", "ndcg"], semantics=how)
    assert found["ndcg@1"] == 1.0
    value = (one + three / math.log2(3)) / (one + one / math.log2(3))
    assert found["ndcg@2"] == pytest.approx(value, rel=1e-15)
    bare = rankmill.evaluate(
        labels, lists, "ndcg", semantics=Semantics(gain_function=gain_function)
    )
    assert bare["ndcg"] == found["ndcg"]  # without a cutoff there is no k
    traced = rankmill.explain(labels, lists, "ndcg@2", query_id="q", semantics=how)
    assert traced.value == found["ndcg@2"]


@pytest.mark.small
def test_ideal_dcg_of_k_labels_asks_for_the_worth_of_gain_1() -> None:
    how = Semantics(gain_function="3=7", ideal_dcg="k")
    with pytest.raises(InputError, match=r"'3=7' does not name: add 1=\.\.\."):
        rankmill.evaluate({"q": {"a": 3}}, {"q": ["a"]}, "ndcg@1", semantics=how)


@pytest.mark.small
def test_counted_labels_are_places_of_the_ideal_list() -> None:
    labels, predictions = {1: "aab"}, predictions_of({1: listed("a")})
    second, third = 1 / math.log2(3), 1 / 2
    for gains, ideal in (
        (None, 1 + second + third),
        ([1.0, 1.0, 1.0], 1 + second + third),
        ([2.0, 1.0, 1.0], 2 + second + third),
        ([1.0, 0.0, 3.0], 3 + second),
    ):
        table = labels_of(labels)
        if gains is not None:
            table = table.append_column("gain", pa.array([gains]))
        result = rankmill.evaluate(
            table, predictions, ["ndcg", "recall"], semantics={"repeated_labels": "count"}
        )
        found = gains[0] if gains else 1.0
        assert result["ndcg"] == pytest.approx(found / ideal, rel=1e-15)
        assert result["recall"] == (1 / 2 if gains and 0.0 in gains else 1 / 3)


@pytest.mark.small
@pytest.mark.parametrize("unlabelled", ["zero", "one"])
def test_other_queries_stand_behind_the_labelled_by_id(unlabelled: str) -> None:
    """The ids of queries without labels need not fit the type of the labels' ids."""
    labels = pa.table({"query": pa.array([5, 1], pa.int8()), "items": [["a"], ["b"]]})
    lists = {3000: listed("a"), 1: listed("b"), 7: [], 300: listed("c"), -5: listed("b")}
    result = rankmill.evaluate(
        labels, predictions_of(lists), "map", semantics={"unlabelled": unlabelled}
    )
    assert result.per_query["query"].to_pylist() == [5, 1, -5, 300, 3000]
    other = {"zero": 0.0, "one": 1.0}[unlabelled]
    assert result.per_query["map"].to_pylist() == [0.0, 1.0, other, other, other]
    assert result.queries == 5
    assert result["map"] == (1 + 3 * other) / 5
    error = statistics.stdev([0.0, 1.0, other, other, other]) / math.sqrt(5)
    assert result.standard_errors["map"] == pytest.approx(error, rel=1e-14)


@pytest.mark.small
def test_other_queries_of_text_types_are_text() -> None:
    labels = pa.table({"query": ["a"], "items": [[1]]})
    queries = pa.array(["b", "a"]).dictionary_encode()
    predictions = pa.table({"query": queries, "items": [[1], [1]]})
    result = rankmill.evaluate(labels, predictions, "map", semantics={"unlabelled": "one"})
    assert result.per_query["query"].to_pylist() == ["a", "b"]


@pytest.mark.small
def test_a_missing_confidence_ties_with_minus_infinity() -> None:
    semantics = {"nan_confidence": "last", "order": "confidence"}
    for missing in (math.nan, None):
        predictions = {1: [("a", -math.inf), ("x", missing), ("y", -1e300)]}
        assert score({1: "a"}, predictions, "first_hit", semantics) == 1 / 2
        worst = semantics | {"order": "worst"}
        assert score({1: "a"}, predictions, "first_hit", worst) == 1 / 3


@pytest.mark.small
def test_queries_share_a_pattern_only_if_all_of_it_is_the_same() -> None:
    """There are so many patterns that they collide in the table of patterns."""
    draw = np.random.default_rng(4)
    counts = draw.integers(0, 60, (2, 9000))
    ranks = draw.integers(1, 4, 9000)
    some = np.minimum(draw.integers(0, 2, 9000), counts.min(axis=0))
    hits = Hits(
        offsets=offsets_of(some),
        ranks=ranks[: some.sum()],
        gains=np.ones(some.sum()),
        label_counts=counts[0],
        prediction_counts=counts[1],
        label_offsets=offsets_of(counts[0]),
        label_gains=np.empty(0),
        discounts=np.empty(0),
        repeats=0,
    )

    def of(one: Hits) -> list[tuple[int, ...]]:
        listed = [one.ranks[a:b].tolist() for a, b in itertools.pairwise(one.offsets)]
        both = zip(one.label_counts.tolist(), one.prediction_counts.tolist(), strict=True)
        return [(*pair, *ranks) for pair, ranks in zip(both, listed, strict=True)]

    found = group_hits(hits)
    distinct, every = of(found.hits), of(hits)
    assert [distinct[pattern] for pattern in found.of_query] == every
    assert len(set(every)) == len(distinct) > 5000
    times = collections.Counter(every)
    assert found.counts.tolist() == [times[one] for one in distinct]


@pytest.mark.small
def test_one_column_cannot_hold_all_queries() -> None:
    labels = pa.table({"query": pa.array([2**64 - 1], pa.uint64()), "items": [[1]]})
    predictions = pa.table({"query": [-1], "items": [[1]]})
    with pytest.raises(InputError, match="cast both to one integer type, or to strings"):
        rankmill.evaluate(labels, predictions, "map", semantics={"unlabelled": "one"})
    options = {"semantics": {"unlabelled": "one"}, "per_query": False}
    assert flat(rankmill.evaluate, labels, predictions, "map", **options)["map"] == 0.5


@pytest.mark.small
def test_gap_without_anything_right_is_zero() -> None:
    for total in CHOICES["gap_total"]:
        for ties in CHOICES["gap_ties"]:
            semantics = {"gap_total": total, "gap_ties": ties}
            nothing = None if total == "predicted_label_pairs" else 0.0  # 0 / 0
            assert score({1: "a"}, {2: listed("a")}, "gap", semantics) == nothing
            assert score({1: "a"}, {1: [], 2: []}, "gap", semantics) == nothing


@pytest.mark.small
@pytest.mark.parametrize("ties", CHOICES["gap_ties"])
def test_the_terms_of_ranked_predictions_add_up_to_gap(ties: str) -> None:
    confidences = [0.5, 0.25, 0.5, 1.0, 0.5, 0.25, -0.0, 0.0, 0.0]
    right = [True, False, False, False, True, True, False, True, True]
    labels = pa.table({"query": range(9), "items": [[int(one)] for one in right]})
    predictions = pa.table(
        {"query": range(9), "items": [[1]] * 9, "score": [[one] for one in confidences]}
    )
    pooled = PooledPredictions(
        to_ids(np.arange(9), "queries"),
        to_ids(np.ones(9, np.int64), "items"),
        np.array(confidences),
        np.array(right),
    )
    ranked = rank_pooled(pooled, ties)
    result = rankmill.evaluate(
        labels, predictions, "gap", semantics={"gap_ties": ties, "gap_total": "hits"}
    )
    assert math.fsum(ranked.terms) / 5 == pytest.approx(result["gap"], rel=1e-14)
    assert sorted(ranked.order.tolist()) == list(range(9))


# ------------------------------------------------------------------ what is refused


@pytest.mark.small
@pytest.mark.parametrize(
    ("field", "labels", "predictions", "wanted"),
    [
        (
            "unpredicted",
            {1: "a", 5: "b", 6: "c"},
            {1: listed("a")},
            ["the table of predictions", "query 5", "1 more", "'skip'"],
        ),
        (
            "unlabelled",
            {1: "a"},
            {1: listed("a"), 77: listed("a")},
            ["the table of predictions", "query 77", "row 1", "'skip'"],
        ),
        (
            "no_relevant",
            {1: "a", 2: ""},
            {1: listed("a"), 2: listed("a")},
            ["the table of predictions", "query 2", "row 1", "'skip'"],
        ),
        (
            "no_relevant",
            {1: "a", 2: ""},
            {1: listed("a")},
            ["the table of predictions", "query 2", "without a label", "'skip'"],
        ),
        (
            "repeated_predictions",
            {1: "a"},
            {8: listed("xyx")},
            ["the table of predictions", "query 8", "row 0", "'x'", "repeated_predictions=drop"],
        ),
        (
            "repeated_labels",
            {1: "a", 8: "bcb"},
            {1: listed("a")},
            ["the table of labels", "query 8", "'b'"],
        ),
    ],
)
def test_what_is_an_error_says_where(
    field: str, labels: dict[int, str], predictions: Lists, wanted: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        score(labels, predictions, "map", {field: "error"})
    message = tells(caught.value, [*wanted, field, "'error'"])
    assert "0 more" not in message


@pytest.mark.small
def test_no_relevant_is_no_error_where_the_query_does_not_count() -> None:
    for unpredicted in ("skip", "error"):
        semantics = {"no_relevant": "error", "unpredicted": unpredicted}
        assert score({1: "a", 2: ""}, {1: listed("a"), 2: []}, "map", semantics) == 1.0


@pytest.mark.small
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"order": "random"}, ["order", "'random'", "given, confidence, item_descending"]),
        ({"order": ["given"]}, ["order", "['given']"]),
        ({"ties": "worst"}, ["no field 'ties'", "gap_ties"]),
        ({1: "worst"}, ["no field 1"]),
        ("trec", ["unknown preset 'trec'", "did you mean", "default"]),
        (None, ["None", "preset"]),
        (["order"], ["['order']", "mapping"]),
    ],
    ids=str,
)
def test_semantics_that_are_none(given: Any, wanted: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        score({1: "a"}, {1: listed("a")}, "map", given)
    tells(caught.value, wanted)


@pytest.mark.small
@pytest.mark.parametrize(
    ("metric", "semantics", "wanted"),
    [
        ("map@3", {"order": "expected", "ap_divisor": "hits"}, ["map@3", "no closed form"]),
        ("gap@3", {"order": "expected"}, ["gap@3", "first 3", "another order"]),
        ("ndcg@1000001", {"ideal_dcg": "k"}, ["ndcg@1000001", "1,000,000", "'labels'"]),
    ],
)
def test_metrics_without_a_value(metric: str, semantics: Any, wanted: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        score({1: "a"}, {1: listed("a")}, metric, semantics)
    tells(caught.value, wanted)


@pytest.mark.small
def test_semantics_in_each_form() -> None:
    labels, predictions = {1: "ab"}, {1: listed("a")}
    given = Choices(ap_divisor="labels", order="confidence")
    for form in (given, {"ap_divisor": "labels", "order": "confidence"}):
        tables = labels_of(labels), predictions_of(predictions)
        result = rankmill.evaluate(*tables, "map@1", semantics=form)
        assert result["map@1"] == 1 / 2
        assert result.semantics == given
        assert result.to_dict()["semantics"] == given.to_dict()
        assert result.to_dict()["semantics"].keys() == CHOICES.keys()
    assert given.differences() == {"ap_divisor": "labels", "order": "confidence"}
    assert given.differences(given) == {}
    assert score(labels, predictions, "map@1", "default") == score(labels, predictions, "map@1")
    ranx = {"preset": "ranx", "repeated_predictions": "once"}
    assert score(labels, {1: listed("aa")}, "map", ranx) == 1 / 2


@pytest.mark.small
def test_the_default_of_each_field_is_its_first_choice() -> None:
    assert Choices().to_dict() == {field: next(iter(one)) for field, one in CHOICES.items()}


@pytest.mark.small
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rel": "2"}, ["rel is '2'", "a number"]),
        ({"rel": True}, ["rel is True", "a number"]),
        ({"judged_only": 1}, ["judged_only is 1", "True or False"]),
    ],
)
def test_what_counts_is_a_number_and_a_flag(given: Any, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        rankmill.Semantics(**given)
    tells(caught.value, words)


@pytest.mark.small
def test_ties_that_scikit_learn_counts_otherwise_are_told() -> None:
    """average_precision_score([1, 0, 1], [1, 1, 0.5]) is 0.5833."""
    labels, tied = {"q": {"a": 1, "c": 1}}, {"q": {"a": 1.0, "b": 1.0, "c": 0.5}}
    (note,) = rankmill.evaluate(labels, tied, "map", semantics="sklearn_ap").notes
    assert "2 predictions have the same score" in note
    assert "its average_precision_score may differ" in note
    apart = {"q": {"a": 1.0, "b": 0.75, "c": 0.5}}
    assert not rankmill.evaluate(labels, apart, "map", semantics="sklearn_ap").notes
