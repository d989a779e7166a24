"""What the audit says of queries is what happens to them, under every preset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from flat import flat
from rankmill.results.audit import meanings
from rankmill.semantics.presets import PRESETS, preset

Lists = dict[int, list[str]]
METRICS = ["map@2", "gap"]


def evaluate(name: str, labels: Lists, predictions: Lists, zero: str = "none") -> Any:
    """Evaluate lists; the items called `zero` have no gain as labels; confidences fall."""
    gains = [[float(item != zero) for item in items] for items in labels.values()]
    scores = [
        [-0.1 * place - query for place, _ in enumerate(items)]
        for query, items in predictions.items()
    ]
    sides = [
        pa.table({"query": list(side), "items": list(side.values()), column: numbers})
        for side, column, numbers in ((labels, "gain", gains), (predictions, "score", scores))
    ]
    return flat(rankmill.evaluate, *sides, METRICS, gain="gain", semantics=name)


def said(name: str, count: str) -> str:
    """What the audit says that these rules make of a count."""
    return meanings(preset(name).semantics)[count].partition(": ")[2]


def means(text: str, alone: float) -> float | None:
    """The mean over one query with the value `alone`, and another that a text is about."""
    if text.startswith("an error"):
        return None
    return alone if text.startswith("left out") else alone / 2


@pytest.mark.parametrize("name", PRESETS)
def test_queries_without_predictions(name: str) -> None:
    text = said(name, "queries_only_labelled")
    alone = evaluate(name, {5: ["a"]}, {5: ["a"]})
    result = evaluate(name, {5: ["a"], 6: ["b"]}, {5: ["a"]})
    assert result.audit["queries_only_labelled"] == 1
    assert result["map@2"] == means(text, alone["map@2"])
    counted = preset(name).semantics.gap_total in ("labelled_queries", "label_pairs")
    assert (result["gap"] != alone["gap"]) == counted
    assert ("but gap counts them" in text) == (counted and text.startswith("left out"))


@pytest.mark.parametrize("name", PRESETS)
def test_queries_without_a_label(name: str) -> None:
    text = said(name, "queries_only_predicted")
    of_strange, _, more = text.removesuffix("; wrong in gap").partition("; if among the labels, ")
    alone = evaluate(name, {5: ["a"]}, {5: ["a"]})
    if means(of_strange, 1.0) is None:
        with pytest.raises(rankmill.InputError, match="unlabelled is 'error'"):
            evaluate(name, {5: ["a"]}, {5: ["a"], 1: ["b"]})
    else:
        result = evaluate(name, {5: ["a"]}, {5: ["a"], 1: ["b"]})
        assert result.audit["queries_only_predicted"] == 1
        assert result["map@2"] == means(of_strange, alone["map@2"])
        assert result["gap"] < alone["gap"]
    result = evaluate(name, {5: ["a"], 1: ["z"]}, {5: ["a"], 1: ["z"]}, zero="z")
    assert result.audit["queries_only_predicted"] == result.audit["empty_label_lists"] == 1
    assert result["map@2"] == means(more or of_strange, alone["map@2"])
    assert result["gap"] < alone["gap"]
    assert result["map@2"] == means(said(name, "empty_label_lists"), alone["map@2"])


@pytest.mark.parametrize("name", PRESETS)
def test_queries_with_neither_a_label_nor_predictions(name: str) -> None:
    text = said(name, "empty_label_lists")
    result = evaluate(name, {5: ["a"], 6: ["z"]}, {5: ["a"]}, zero="z")
    assert result.audit["empty_label_lists"] == 1
    text = "left out" if text.endswith("if predicted, else left out") else text
    assert result["map@2"] == means(text, 1.0)


@pytest.mark.parametrize("name", PRESETS)
def test_repeats(name: str) -> None:
    semantics = preset(name).semantics
    text = said(name, "repeated_labels")
    if text == "an error":
        with pytest.raises(rankmill.InputError, match="repeated_labels is 'error'"):
            evaluate(name, {5: ["a", "a"]}, {5: ["a"]})
    else:
        count = 2 if text == "R counts them, hits do not" else 1
        recall = rankmill.evaluate(
            pa.table({"query": [5], "items": [["a", "a"]]}),
            pa.table({"query": [5], "items": [["a"]]}),
            "recall",
            semantics=semantics,
        )
        if semantics.recall_divisor == "labels":
            assert recall["recall"] == 1 / count
    text = said(name, "repeated_items")
    if text == "an error":
        with pytest.raises(rankmill.InputError, match="repeated_predictions is 'error'"):
            evaluate(name, {5: ["a", "b"]}, {5: ["a", "a", "b"]})
        return
    result = rankmill.evaluate(
        pa.table({"query": [5], "items": [["a", "b"]]}),
        pa.table({"query": [5], "items": [["a", "a", "b"]]}),
        "precision@3",
        semantics=semantics,
    )
    hits = {"wrong": 2, "dropped, and later ones move up": 2, "hits again if the first is one": 3}
    assert result["precision@3"] == hits[text] / 3


def test_labels_that_are_the_predictions_are_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    both = pa.table({"query": [1, 2], "items": [["a"], ["b"]], "guess": [["a"], ["b"]]})
    for name in ("labels", "copy"):
        pq.write_table(both, f"{name}.parquet")
    told = "the predictions are the labels: both are 'items' of labels.parquet"
    for name, noted in {"labels": True, "copy": False, "guess": False}.items():
        file = "labels.parquet" if name == "guess" else f"{name}.parquet"
        item = "guess" if name == "guess" else "items"
        predictions = rankmill.Predictions(file, item=item)
        found = rankmill.evaluate(rankmill.Labels("labels.parquet"), predictions, "map@2")
        assert found["map@2"] == 1
        assert (told in found.notes) == noted
    same = both.select(["query", "items"])
    told = told.replace("labels.parquet", "the table of labels")
    assert rankmill.evaluate(same, same, "map@2").notes == [told]
    assert rankmill.evaluate(same, same.slice(0), "map@2").notes == []  # another object
    candidates = {"query": [1, 1, 2], "item": [*"abc"], "score": [0.5, 0.7, 0.9]}
    judged = pa.table(candidates | {"gain": [1, 0, 1]})
    assert rankmill.evaluate(judged, judged, "map@2").notes == []


@pytest.mark.parametrize(
    ("names", "value"),
    [
        (("actual", "predicted"), 0.5),
        (("ground_truth", "recs"), 0.5),
        (("labels", "preds"), 0.5),
        (("labels", "mine"), "several columns could be the item: labels, mine"),
        (("mine", "predictions"), "several columns could be the item: predictions, mine"),
        (("items", "preds"), "several columns could be the item: items, preds"),
    ],
)
def test_both_sides_in_one_table_are_told_apart(names: tuple[str, str], value: Any) -> None:
    mine, theirs = names
    table = pa.table({"user": [1, 2], mine: [["a"], ["b"]], theirs: [["x", "a"], ["x", "b"]]})
    if isinstance(value, str):
        with pytest.raises(rankmill.InputError, match=value):
            rankmill.evaluate(table, table, "map@2")
        return
    found = rankmill.evaluate(table, table, "map@2")
    assert (found["map@2"], found.notes) == (value, [])


@pytest.mark.parametrize(
    ("label", "prediction", "told"),
    [
        ("a b", '"a,x"', "items separated by spaces, the predictions items separated by commas"),
        ("a b", "a|x", "items separated by spaces, the predictions items separated by bars"),
        ("a b", "\"['a', 'x']\"", "items separated by spaces, the predictions items in brackets"),
        ("a b", "a x", None),
        ("a b", "a 0.5 x 0.25", None),  # pairs are separated by spaces, too
        ("a", "a x", None),  # a label in each row has no separator
    ],
)
def test_other_separators_than_those_of_the_labels_are_noted(
    label: str, prediction: str, told: str | None, tmp_path: Path
) -> None:
    for name, cell in {"labels": label, "predictions": prediction}.items():
        (tmp_path / f"{name}.csv").write_text(f"id,items\nq,{cell}\nr,{cell}\n")
    found = rankmill.evaluate(tmp_path / "labels.csv", tmp_path / "predictions.csv", "map@1")
    assert found["map@1"] == 1
    assert len(found.notes) == (told is not None)
    if told:
        assert f"the labels have {told}: " in found.notes[0]
        assert "'rankmill check'" in found.notes[0]
