"""compare() of what evaluate_runs has scored: the bits of a comparison that reads the inputs."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from flat import flat
from rankmill.engine.results import Results
from rankmill.errors import UsageError

GENERATOR = np.random.default_rng(7)
QUERIES = [f"q{i}" for i in range(40)]


def lists(size: int, queries: list[str]) -> dict[str, list[int]]:
    return {q: GENERATOR.choice(30, size, replace=False).tolist() for q in queries}


LABELS = lists(4, QUERIES)
RUNS = {
    "old": lists(8, [*QUERIES[:35], "strange"]),
    "new": lists(8, [*QUERIES[3:], "strange", "odd"]),
    "best": {q: LABELS[q][::-1] for q in QUERIES} | {"strange": [3]},
}
FACTS = pa.table(
    {
        "query": [*QUERIES[5:], "strange", "unknown"],
        "country": [("it", "fr", None)[i % 3] for i in range(37)],
        "session": [f"s{i // 3}" for i in range(37)],
        "device": [("tv", "phone")[i % 2] for i in range(37)],
    }
)
BEFORE = pa.table({"query": QUERIES[2:], "before": GENERATOR.random(38)})
METRICS = ["map@5", "ndcg@10", "mrr:median"]


def same(found: Any, expected: Any) -> None:
    assert found == expected
    assert found.values == expected.values
    assert found.moved == expected.moved
    assert found.per_query.equals(expected.per_query)
    assert repr(found.state.whole) == repr(expected.state.whole)


@pytest.mark.rows(2)
@pytest.mark.parametrize("semantics", ["default", "trec_eval", {"unlabelled": "zero"}])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"baseline": "best", "tests": ["t", "wilcoxon"], "margin": 0.1, "moved": 3},
        {"by": FACTS, "correction": "bh"},
        {"by": FACTS, "cluster": "session"},
        {"adjust": BEFORE},
        {"tests": "randomization", "seed": 3, "confidence": 0.9},
    ],
    ids=["plain", "tests", "slices", "clusters", "adjusted", "resampled"],
)
def test_same_bits_as_from_the_inputs(semantics: Any, options: dict[str, Any]) -> None:
    results = rankmill.evaluate_runs(LABELS, RUNS, METRICS, semantics=semantics)
    expected = flat(rankmill.compare, LABELS, RUNS, METRICS, semantics=semantics, **options)
    same(flat(rankmill.compare, results, **options), expected)
    again = pickle.loads(pickle.dumps(results))
    same(flat(rankmill.compare, again, threads=1, **options), expected)


def test_what_is_no_mean_has_the_value_of_the_results_alone() -> None:
    metrics = ["map@5", "gini@5", "precision@3:micro"]
    found = rankmill.compare(rankmill.evaluate_runs(LABELS, RUNS, metrics))
    expected = rankmill.compare(LABELS, RUNS, metrics)
    for name in metrics[1:]:
        one, other = found.values[name]["new"], expected.values[name]["new"]
        assert (one.value, one.low) == (other.value, None)
        assert other.low is not None
        assert found.differences[name]["new"].tests == {}
        why = "no interval and no test, because its predictions are not at hand"
        assert any(note.startswith(f"{name} is not") and why in note for note in found.notes)


def test_weights_and_files(tmp_path: Path) -> None:
    labels = pa.table(
        {
            "user": list(range(20)),
            "items": [[i, i + 1] for i in range(20)],
            "worth": [1.0 + i / 7 for i in range(20)],
        }
    )
    pq.write_table(
        pa.table({"user": list(range(20)), "country": ["it", "fr"] * 10}), tmp_path / "f.parquet"
    )
    runs = {
        name: pa.table({"user": list(range(20)), "items": [[i + i % far] for i in range(20)]})
        for name, far in (("a", 2), ("b", 3))
    }
    results = rankmill.evaluate_runs(rankmill.Labels(labels, weight="worth"), runs, "map,hit@1")
    by = str(tmp_path / "f.parquet")
    expected = rankmill.compare(rankmill.Labels(labels, weight="worth"), runs, "map,hit@1", by=by)
    same(rankmill.compare(results, by=by), expected)


def test_some_of_the_metrics() -> None:
    results = rankmill.evaluate_runs(LABELS, RUNS, METRICS)
    expected = rankmill.compare(LABELS, RUNS, ["ndcg@10", "map@5"])
    same(rankmill.compare(results, metrics="ndcg@10,AP@5"), expected)


def test_inputs_are_not_read_again(tmp_path: Path) -> None:
    for name, one in (("labels", LABELS), ("old", RUNS["old"]), ("new", RUNS["new"])):
        table = pa.table({"query": list(one), "items": list(one.values())})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    paths = {name: tmp_path / f"{name}.parquet" for name in ("old", "new")}
    results = rankmill.evaluate_runs(tmp_path / "labels.parquet", paths, "map")
    expected = rankmill.compare(tmp_path / "labels.parquet", paths, "map")
    for path in tmp_path.iterdir():
        path.unlink()
    same(rankmill.compare(results), expected)


CONFIDENT = {
    name: {q: [(i, 1.0) for i in of] for q, of in run.items()} for name, run in RUNS.items()
}


def of_runs(**options: Any) -> Results:
    return flat(rankmill.evaluate_runs, LABELS, RUNS, "map", **options)


@pytest.mark.parametrize(
    ("make", "options", "wanted"),
    [
        (lambda: rankmill.evaluate_runs(LABELS, CONFIDENT, "map,gap"), {}, "gap needs all pred"),
        (
            lambda: of_runs(per_query=False),
            {},
            "per_query=True",
        ),
        (
            lambda: Results.from_json(of_runs().to_json()),
            {},
            "JSON does not hold them",
        ),
        (of_runs, {"by": "country"}, "'country' needs"),
        (
            of_runs,
            {"by": "label_count"},
            "'label_count'",
        ),
        (of_runs, {"cluster": "session"}, "'session'"),
        (of_runs, {"adjust": "before"}, "'before'"),
        (of_runs, {"runs": RUNS}, "runs cannot be combined"),
        (of_runs, {"semantics": "trec_eval"}, "semantics cannot be combined"),
        (
            of_runs,
            {"metrics": "mrr"},
            "no 'mrr', but map",
        ),
        (
            lambda: rankmill.evaluate_runs(LABELS, {"a": RUNS["old"]}, "map"),
            {},
            "runs has 1; expected",
        ),
        (
            lambda: mixed(rankmill.evaluate(LABELS, RUNS["old"], "map", semantics="trec_eval")),
            {},
            "not of one call",
        ),
    ],
)
def test_what_needs_the_inputs(make: Any, options: dict[str, Any], wanted: str) -> None:
    with pytest.raises(UsageError, match=wanted) as caught:
        flat(rankmill.compare, make(), **options)
    assert "\n" not in str(caught.value)


def mixed(other: rankmill.Result) -> Results:
    results = rankmill.evaluate_runs(LABELS, RUNS, "map")
    results["other"] = other
    return results


def test_a_dict_of_results_is_told_from_labels() -> None:
    found = rankmill.evaluate([[1]], [[1]], "map@1")
    with pytest.raises(rankmill.UsageError, match="labels is a dict of results: compare takes"):
        rankmill.compare({"a": found, "b": found})
