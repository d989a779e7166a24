"""Slices in evaluate, micro-averages, and weighted sums, beside the definition in plain Python."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conftest import tells

import rankmill
from cuts import cut
from rankmill import InputError, Labels, Predictions, Result, Results, UsageError
from rankmill.metrics.aggregates.mean import MicroAverage
from rankmill.metrics.registry import parse
from rankmill.metrics.sums import read_sums
from rankmill.parts import State, evaluate_part
from slice_oracle import OTTO, TYPES, counted_by_type, jackknife, micro, micro_error, otto_dump

SUM = "otto = " + " + ".join(f"{w}*relative_p@20:micro[type={t}]" for t, w in OTTO.items())
CLOSE: dict[str, Any] = {"rel": 1e-12, "abs": 1e-15}
METRICS = ["map@5", "recall@5:micro", "first_rank:median", "ndcg@10", "utility", "map:sum"]


def by_place(result: Result) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    rows = (list(row.values()) for row in result.by.to_pylist())
    return {(*row[:3],): (*row[3:],) for row in rows}


def session(labels: Any, submission: Any, **more: Any) -> Result:
    given = Labels(labels, query="session_type"), Predictions(submission, query="session_type")
    return rankmill.evaluate(*given, "relative_p@20:micro", by="type", sums=SUM, **more)


# ------------------------------------------------------------------ OTTO's score


@pytest.mark.small
def test_the_score_of_otto_with_its_interval_and_slices() -> None:
    labels, submission = otto_dump(3, 200)
    counted = counted_by_type(labels, submission)
    result = session(labels, submission)
    found = by_place(result)
    for kind in TYPES:
        value, error, queries = found["type", kind, "relative_p@20:micro"]
        assert value == pytest.approx(micro(counted[kind]), **CLOSE)
        assert error == pytest.approx(micro_error(counted[kind]), **CLOSE)
        assert error == pytest.approx(jackknife(counted[kind], micro), rel=0.03)
        assert queries == len(counted[kind])
    every = [one for each in counted.values() for one in each]
    assert result["relative_p@20:micro"] == pytest.approx(micro(every), **CLOSE)
    value = math.fsum(weight * micro(counted[kind]) for kind, weight in OTTO.items())
    squares = [(weight * micro_error(counted[kind])) ** 2 for kind, weight in OTTO.items()]
    otto = result.sums["otto"]
    assert result["otto"] == otto.value == pytest.approx(value, **CLOSE)
    assert otto.standard_error == pytest.approx(math.sqrt(math.fsum(squares)), **CLOSE)
    assert otto.low == pytest.approx(value - 1.959964 * otto.standard_error, rel=1e-6)
    assert otto.high == pytest.approx(value + 1.959964 * otto.standard_error, rel=1e-6)
    assert value != pytest.approx(result["relative_p@20:micro"], rel=0.01)


@pytest.mark.small
def test_the_mean_over_queries_is_another_score() -> None:
    labels, submission = otto_dump(4, 100)
    given = Labels(labels, query="session_type"), Predictions(submission, query="session_type")
    found = by_place(rankmill.evaluate(*given, ["relative_p@20", "relative_p@20:micro"], by="type"))
    for kind in TYPES:
        mean, pooled = (found["type", kind, f"relative_p@20{one}"][0] for one in ("", ":micro"))
        counted = counted_by_type(labels, submission)[kind]
        assert mean == pytest.approx(math.fsum(a / b for a, b in counted) / len(counted), **CLOSE)
        assert (mean == pytest.approx(pooled)) == (kind == "clicks")


@pytest.mark.small
def test_min_k_labels_makes_it_a_recall_and_any_order_gives_the_same_bits() -> None:
    labels, submission = otto_dump(5, 100)
    found = session(labels, submission, threads=1, per_query=False)
    assert found.per_query is None
    turned = labels.take(random.Random(1).sample(range(len(labels)), len(labels)))
    again = session(turned, submission.slice(0), threads=3)
    assert again.sums == found.sums
    assert again.by == found.by
    semantics = {"recall_divisor": "min_k_labels"}
    given = Labels(labels, query="session_type"), Predictions(submission, query="session_type")
    recall = rankmill.evaluate(*given, "recall@20:pooled", semantics=semantics)
    assert recall["recall@20:micro"] == found["relative_p@20:micro"]


def test_type_may_be_a_column_of_the_key() -> None:
    labels, submission = otto_dump(6, 50)
    parts = pc.split_pattern(submission["session_type"], "_")
    ids, kinds = zip(*parts.to_pylist(), strict=True)
    split = pa.table({"session": ids, "type": kinds, "items": submission["predictions"]})
    ids = [one.split("_")[0] for one in labels["session_type"].to_pylist()]
    held = pa.table({"session": ids, "type": labels["type"], "items": labels["labels"]})
    given = Labels(held, query=["session", "type"]), Predictions(split, query=["session", "type"])
    found = rankmill.evaluate(*given, (), by="type", sums=SUM)
    assert found.sums == session(labels, submission).sums


# ------------------------------------------------------------------ slices


@pytest.mark.small
@pytest.mark.parametrize("weighted", [False, True])
def test_a_slice_is_the_evaluation_of_its_queries(weighted: bool) -> None:
    labels, runs, country, _ = cut(count=120)
    metrics = METRICS
    weight = None
    if weighted:
        draw = random.Random(2)
        weights = [draw.choice([0.0, 0.5, 2.0]) for _ in country]
        labels = labels.append_column("w", pa.array(weights))
        weight, metrics = "w", ["map@5", "recall@5:micro", "ndcg@10"]
    whole = rankmill.evaluate(Labels(labels, weight=weight), runs["good"], metrics, by="country")
    found = by_place(whole)
    assert len(found) == 4 * len(metrics)
    for value in ("de", "fr", "it", None):
        kept = pa.array([one == value for one in country.values()])
        alone = rankmill.evaluate(Labels(labels.filter(kept), weight=weight), runs["good"], metrics)
        for metric in metrics:
            wanted = alone.metrics[metric], alone.standard_errors[metric], alone.queries
            assert found["country", value, metric] == wanted


@pytest.mark.small
def test_slices_are_those_of_compare() -> None:
    labels, runs, _, _ = cut()
    by = ["country", "age", "label_count", "list_length", "label_popularity"]
    compared = rankmill.compare(labels, runs, ["map@3"], by=by)
    results = rankmill.evaluate_runs(labels, runs, ["map@3"], by=by)
    wanted = {
        (*one.by, *one.value, name): (each.value, each.standard_error, one.queries)
        for one in compared.slices
        for name, each in one.values["map@3"].items()
    }
    found = {
        (by, value, name): row
        for name, one in results.items()
        for (by, value, _), row in by_place(one).items()
    }
    assert found == wanted
    rows = results.by.to_pylist()
    assert [row["system"] for row in rows] == ["poor"] * (len(rows) // 2) + ["good"] * (
        len(rows) // 2
    )
    assert rankmill.evaluate_runs(labels, runs, ["map@3"]).by is None
    again = Results.from_json(results.to_json())
    assert again == results
    assert again["good"].by == results["good"].by


def test_queries_that_only_the_predictions_have_are_of_an_unknown_slice() -> None:
    labels = pa.table({"query": [1, 2], "items": [["a"], ["b"]], "kind": ["x", "y"]})
    predictions = pa.table({"query": [1, 2, 3], "items": [["a"], ["c"], ["b"]]})
    found = by_place(
        rankmill.evaluate(
            labels, predictions, ["map", "recall:micro"], by="kind",
            semantics={"unlabelled": "zero"},
        )
    )  # fmt: skip
    assert found["kind", None, "map"] == (0.0, None, 1)
    assert found["kind", None, "recall:micro"] == (None, None, 1)
    assert found["kind", "x", "recall:micro"] == (1.0, None, 1)


# ------------------------------------------------------------------ micro-averages


@pytest.mark.small
def test_micro_averages_of_parts_and_of_expected_ties() -> None:
    labels, runs, _, _ = cut(count=60)
    names = ["recall@3:micro", "precision@3:micro", "map@3:micro"]
    whole = rankmill.evaluate(labels, runs["good"], names)
    every = runs["good"]
    parts = []
    for at in (0, 30):
        some = labels.slice(at, 30)
        own = pc.is_in(every["query"], some["query"].combine_chunks())
        parts.append(evaluate_part(some, every.filter(own), names))
    rows: list[Any] = [pa.Table.from_pylist([one.to_row()]).to_pylist()[0] for one in parts]
    merged = State.from_row(rows[1]).merge(State.from_row(rows[0])).result()
    assert merged.metrics == whole.metrics
    assert merged.standard_errors == whole.standard_errors
    tied = pa.table({"query": [1, 1, 2, 2], "item": ["a", "b", "a", "b"], "score": [1.0] * 4})
    held = pa.table({"query": [1, 2, 2], "item": ["a", "a", "b"]})
    half = rankmill.evaluate(held, tied, "recall@1:micro", semantics={"order": "expected"})
    assert half["recall@1:micro"] == 1.5 / 3


@pytest.mark.small
def test_micro_average_counts_labels_of_queries_without_predictions() -> None:
    labels = pa.table({"query": [1, 2, 3], "items": [["a", "b"], ["c", "d"], []]})
    predictions = pa.table({"query": [1, 3], "items": [["a"], ["z"]]})
    name = "recall@5:micro"
    assert rankmill.evaluate(labels, predictions, name)[name] == 0.25
    skipping = {"unpredicted": "skip"}
    assert rankmill.evaluate(labels, predictions, name, semantics=skipping)[name] == 0.5
    one = rankmill.evaluate(labels, predictions, name, semantics={"no_relevant": "one"})
    assert one[name] == 0.25  # a query without labels has none to find


def test_micro_average_of_a_damaged_row() -> None:
    row = MicroAverage(2, 1, 4, 1, 16, 9).to_row()
    assert MicroAverage.from_row(row).value == 0.25
    with pytest.raises(UsageError, match="squares are more than the sums allow"):
        MicroAverage.from_row(row | {"counted_squares": "17"})


def test_micro_averages_are_refused_where_nothing_is_divided() -> None:
    with pytest.raises(UsageError, match="first_hit has no :micro, as it is divided by nothing"):
        parse("first_hit:micro")
    with pytest.raises(UsageError, match="mean_rank has no :pooled, as a list without"):
        parse("mean_rank:pooled")


def test_the_jackknife_of_a_micro_average_agrees_with_its_error() -> None:
    labels, runs, _, _ = cut(count=300)
    found = rankmill.compare(labels, runs, ["map", "recall@3:micro"])
    assert found.pooled == ["recall@3:micro"]
    one = found.values["recall@3:micro"]["good"]
    assert one.value is not None
    assert one.low is not None
    assert one.low < one.value
    wanted = rankmill.evaluate(labels, runs["good"], "recall@3:micro")
    error = wanted.standard_errors["recall@3:micro"]
    # 20 groups know an error to a sixth or so.
    assert one.standard_error == pytest.approx(error, rel=0.5)
    assert found.differences["recall@3:micro"]["good"].tests["t"].p is not None


# ------------------------------------------------------------------ weighted sums


@pytest.mark.small
def test_terms_of_the_same_queries_vary_together() -> None:
    labels, runs, _, _ = cut()
    sums = ["a = 0.5*map@3 + 0.5*map@3", "none = map@3 - map@3", "c = map@3 + 2 * first_hit"]
    result = rankmill.evaluate(labels, runs["good"], "map@3", sums=sums)
    assert result.sums["a"].standard_error == pytest.approx(
        result.standard_errors["map@3"], **CLOSE
    )
    assert result.sums["none"][:2] == (0.0, 0.0)
    table = result.per_query.to_pydict()
    each = [a + 2 * b for a, b in zip(table["map@3"], table["first_hit"], strict=True)]
    n, mean = len(each), math.fsum(each) / len(each)
    error = math.sqrt(math.fsum((one - mean) ** 2 for one in each) / (n * (n - 1)))
    assert result.sums["c"].value == pytest.approx(mean, **CLOSE)
    assert result.sums["c"].standard_error == pytest.approx(error, **CLOSE)


def test_a_weighted_mean_and_a_summary_in_a_sum() -> None:
    labels, runs, country, _ = cut(count=60)
    draw = random.Random(4)
    weights = pa.array([draw.choice([0.0, 1.0, 3.0]) for _ in country])
    given = Labels(labels.append_column("w", weights), weight="w")
    sums = ["one = map@3", "two = recall@3:micro"]
    result = rankmill.evaluate(given, runs["good"], "map@3", sums=sums)
    for name, metric in (("one", "map@3"), ("two", "recall@3:micro")):
        wanted = result.metrics[metric], result.standard_errors[metric]
        assert result.sums[name][:2] == pytest.approx(wanted, **CLOSE)
    median = rankmill.evaluate(labels, runs["good"], "map", sums="x = 2*map:median")
    assert median.sums["x"] == (2 * median["map:median"], None, None, None)


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("otto", ["'otto' is not a weighted sum", "NAME = "]),
        ("x = ", ["cannot be read from ''"]),
        ("x = map +", ["cannot be read from '+'"]),
        ("x = 2 map", ["cannot be read from '2 map'"]),
        ("x = map map", ["cannot be read from 'map'"]),
        ("x = map[type]", ["cannot be read from '[type]'"]),
        ("x = 1.2.3*map", ["'1.2.3'", "'x'"]),
        ("x = -1e400*map", ["1e400 in the sum 'x' is too large", "up to 1e+50"]),
        ("x = map + 2e50*mrr", ["2e50 in the sum 'x' is too large"]),
        ("x = mapp", ["mapp", "map"]),
        ("Map = mrr", ["'Map'", "a metric"]),
    ],
)
def test_texts_that_are_no_sum(text: str, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        read_sums(text)
    tells(caught.value, words)


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "by", "kind", "words"),
    [
        (
            "x = map[country=de]",
            (),
            UsageError,
            ["no slices", "name 'country' in"],
        ),
        ("x = map[city=de]", "country", UsageError, ["only of country", "name 'city' in"]),
        ("x = map[country=es]", "country", InputError, ["'es'", "de, fr, it, (unknown)"]),
    ],
)
def test_what_a_sum_lacks(text: str, by: Any, kind: type, words: list[str]) -> None:
    labels, runs, _, _ = cut(count=30)
    with pytest.raises(kind) as caught:
        rankmill.evaluate(labels, runs["good"], "map", by=by, sums=text)
    tells(caught.value, words)


def test_two_sums_of_one_name_and_slices_of_all_systems() -> None:
    labels, runs, _, _ = cut(count=30)
    with pytest.raises(UsageError, match="has the name of another sum"):
        read_sums(["x = map", "x = mrr"])
    with pytest.raises(UsageError, match="use compare"):
        rankmill.evaluate_runs(labels, runs, "map", by="unpredicted")
    found = rankmill.evaluate(labels, runs["good"], "map", by="unpredicted")
    assert {row["by"] for row in found.by.to_pylist()} == {"unpredicted"}


def test_a_word_that_cuts_nothing_is_told_from_a_column(tmp_path: Path) -> None:
    path = tmp_path / "users.csv"
    path.write_text("query,age\n1,30\n2,40\n")
    with pytest.raises(UsageError, match="'age' can be cut by 2 to 100, or by year, month, day"):
        rankmill.evaluate({1: [1]}, {1: [1]}, "map", by=f"{path}:age:decade")


def test_intervals_of_pandas_are_texts():
    """Those of pandas.cut, in a column of the labels and in a Series."""
    pandas = pytest.importorskip("pandas")
    ages = pandas.Series([16.0, 30.0, None, 45.0], pandas.Index([1, 2, 3, 4], name="user"))
    cut = pandas.cut(ages.rename("age"), [0, 20, 60])
    labels = pandas.DataFrame({"user": [1, 2, 3, 4], "items": [[1]] * 4})
    inside = labels.assign(age=cut.to_numpy())
    for found in (
        rankmill.evaluate(labels, labels, "map@1", by=cut),
        rankmill.evaluate(inside, labels, "map@1", by="age"),
        rankmill.evaluate(inside.assign(age=inside["age"].astype("category")), labels, by="age"),
    ):
        assert {*found.by["slice"].to_pylist()} == {"(0, 20]", "(20, 60]", None}
    left = pandas.cut(ages.rename("age"), [0.5, 20, 60], right=False)
    found = rankmill.evaluate(labels, labels, "map@1", by=left)
    assert found.by["slice"].to_pylist() == ["[0.5, 20)", "[20, 60)", None]


@pytest.mark.parametrize("by", [len, {1: "a"}, [["a"]], lambda query: "a"])
def test_what_cannot_cut_is_refused_with_the_way_on(by: Any) -> None:
    with pytest.raises(UsageError, match=r"by cannot be a .*; expected the name of a column"):
        rankmill.evaluate([[1]], [[1]], "map@1", by=by)
