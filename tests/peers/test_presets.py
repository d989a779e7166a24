"""Every preset, for every metric that it defines, against the references of its library."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import pytrec_eval

import rankmill
from dumps import DUMPS, dump
from preset_tables import CASES, SHAPES, WITH, tables
from rankmill.semantics.presets import PRESETS, preset
from references import REFERENCES, RefusedError
from references.steps import Labels, Predictions

CUTOFFS = (1, 3, 8)


SHARE = 0.3


def dump_for(name: str, seed: int, shape: dict[str, Any]) -> tuple[Labels, Predictions]:
    """A random dump that the library of a preset accepts."""
    labels, predictions = dump(seed, **shape)
    if name == "kaggle_landmark":
        labels = {query: rows[:1] for query, rows in labels.items()}
    if name == "kaggle_whale":
        both = labels.keys() & predictions.keys()
        labels = {query: labels[query][:1] for query in labels if query in both and labels[query]}
        predictions = {query: predictions[query] for query in predictions if query in labels}
    if name == "torchmetrics":  # has no right prediction in rows with a score of 0 or less
        predictions = {
            query: [(item, score + 10) for item, score in rows]
            for query, rows in predictions.items()
        }
    if name == "lenskit":  # has no value for a query without a list or without labels
        labels = {query: labels[query] for query in labels if query in predictions}
        predictions = {query: rows for query, rows in predictions.items() if labels.get(query)}
        labels = {query: labels[query] for query in predictions}
    if name == "google_landmarks_v2":
        empty = [query for query in predictions if not labels.get(query)]
        predictions = {query: rows for query, rows in predictions.items() if query not in empty}
    return labels, predictions


def with_cutoffs(metrics: list[str]) -> list[str]:
    """Return the metrics that have a value for each query, with cutoffs."""
    per_query = [metric for metric in metrics if metric != "gap"]
    return list(
        dict.fromkeys(
            metric.replace("@k", f"@{k}").replace("@x", f"@{SHARE}")
            for metric in per_query
            for k in CUTOFFS
        )
    )


def reference(name: str, metric: str) -> Any:
    """The reference of a metric, and its cutoff."""
    base, _, cutoff = metric.partition("@")
    base = "map" if name == "kaggle_whale" else base
    at_share = base in ("iprec", "rprec_mult")
    return REFERENCES[name][base], int(cutoff) if cutoff and not at_share else None


@pytest.mark.small
def test_every_preset_has_a_reference() -> None:
    presets = PRESETS.keys() - {"default"}
    lacking = presets - REFERENCES.keys()
    assert not lacking, f"add {lacking} to REFERENCES of tests/support/references/__init__.py"
    lacking = presets - SHAPES.keys()
    assert not lacking, f"add {lacking} to SHAPES of tests/support/preset_tables.py: its input"
    assert (SHAPES.keys() | REFERENCES.keys()) == presets
    golden = json.loads((Path(__file__).parents[1] / "golden.json").read_text())
    lacking = presets - golden["dump"].keys()
    assert not lacking, f'no {lacking} yet: pytest tests/contract/test_golden.py -m "" --update'


@pytest.mark.parametrize(("name", "shape", "metrics"), [one for one in CASES if one[2] != ["gap"]])
def test_values_of_every_query(name: str, shape: dict[str, Any], metrics: list[str]) -> None:
    expected: dict[str, dict[str, float]] = {metric: {} for metric in with_cutoffs(metrics)}
    all_labels: Labels = {}
    all_predictions: Predictions = {}
    for seed in range(DUMPS):
        labels, predictions = dump_for(name, seed, shape)
        for metric, values in expected.items():
            function, k = reference(name, metric)
            known = labels
            if name == "spark":  # lists are paired for each query with predictions
                known = {query: [] for query in predictions} | labels
            found = function(known, predictions, k)
            values.update({f"{seed}-{query}": value for query, value in found.items()})
        all_labels |= {f"{seed}-{query}": rows for query, rows in labels.items()}
        all_predictions |= {f"{seed}-{query}": rows for query, rows in predictions.items()}
    changed = WITH.get((name, metrics[0]), {})
    asked = {"preset": name} | changed if changed else name
    result = rankmill.evaluate(*tables(all_labels, all_predictions), [*expected], semantics=asked)
    assert result.semantics == replace(PRESETS[name].semantics, **changed)
    found = result.per_query.to_pydict()
    assert len(found["query"]) > 2 * DUMPS
    for metric, values in expected.items():
        assert dict(zip(found["query"], found[metric], strict=True)) == pytest.approx(
            values, rel=1e-12, abs=1e-14
        ), metric
        mean = math.fsum(values.values()) / len(values)
        assert result[metric] == pytest.approx(mean, rel=1e-12), metric
    assert result.queries == len(found["query"])


@pytest.mark.parametrize("name", [name for name in SHAPES if "gap" in PRESETS[name].metrics])
def test_gap(name: str) -> None:
    for seed in range(DUMPS):
        labels, predictions = dump_for(name, seed, SHAPES[name])
        if name == "google_landmarks_v2":  # its GAP has one prediction for each query
            predictions = {query: rows[:1] for query, rows in predictions.items()}
        if name == "kaggle_landmark":
            predictions = apart(predictions)
        expected = REFERENCES[name]["gap"](labels, predictions, None)
        result = rankmill.evaluate(*tables(labels, predictions), "gap", semantics=name)
        assert result["gap"] == pytest.approx(expected, rel=1e-12), seed


def apart(predictions: Predictions) -> Predictions:
    """Return the predictions without ties, because kaggle_landmark does not define their order."""
    return {
        query: [(item, score + place / 1000) for item, score in rows]
        for place, (query, rows) in enumerate(predictions.items())
    }


@pytest.mark.small
@pytest.mark.parametrize("name", ["trec_eval", "trec_eval-10", "ranx"])
def test_gains_that_an_evaluator_cuts_are_refused(name: str) -> None:
    """trec_eval reads grades by C's atol: 1.5 is 1, and 0.5 is not relevant."""
    run = {"q": {"a": 2.0, "b": 1.0}}
    told = rf"a gain is 0\.5, and {name} cuts gains to whole numbers, here to 0: write whole gains"
    changed = {"preset": name, "unpredicted": "zero"}
    for labels in ({"q": {"a": 1, "b": 0.5}}, {"q": {"b": -2.0}, "r": {"a": 0.5}}):
        for semantics in (name, rankmill.Semantics(name, depth=5), changed):
            with pytest.raises(rankmill.InputError, match=told):
                rankmill.evaluate(labels, run, "ndcg", semantics=semantics)
        with pytest.raises(rankmill.InputError, match=told):
            rankmill.compare(labels, {"old": run, "new": run}, "ndcg", semantics=name)
        assert rankmill.evaluate(labels, run, "ndcg")["ndcg"] is not None
    table = pa.table({"query": ["q"], "item": ["b"], "gain": [0.5]})
    prepared = rankmill.Labels(table).prepare()
    assert rankmill.evaluate(prepared, run, "map")["map"] == 0.5
    with pytest.raises(rankmill.InputError, match=told):
        rankmill.evaluate(prepared, run, "map", semantics=name)
    binary = rankmill.Labels(table, binary=True)
    assert rankmill.evaluate(binary, run, "hit", semantics=name)["hit"] == 1.0
    whole = {"q": {"a": 2.0, "b": -1.0}}
    assert rankmill.evaluate(whole, run, "ndcg", semantics=name)["ndcg"] == 1.0


# They join each row of labels with each prediction, which no choice does. Their map@1 of it.
MULTIPLIED = {"recommenders": 3.0, "rectools": 1.0}


@pytest.mark.parametrize("name", SHAPES)
def test_what_a_library_refuses_is_an_error(name: str) -> None:
    semantics = preset(name).semantics
    refused = {
        "repeated_predictions": ({"q": ["a"]}, {"q": ["a", "b", "a"]}),
        "repeated_labels": ({"q": ["a", "a"]}, {"q": ["a"]}),
        "unlabelled": ({"q": ["a"]}, {"q": ["a"], "r": ["a"]}),
    }
    metric = next(iter(with_cutoffs(list(PRESETS[name].metrics))), "gap")
    function, k = reference(name, metric)
    for field, dumped in refused.items():
        labels, predictions = (
            {
                query: [(item, float(9 - i)) for i, item in enumerate(items)]
                for query, items in one.items()
            }
            for one in dumped
        )
        if getattr(semantics, field) == "error":
            with pytest.raises(rankmill.InputError, match=field):
                rankmill.evaluate(*tables(labels, predictions), metric, semantics=name)
            if name in MULTIPLIED and field == "repeated_labels":
                assert function(labels, predictions, k) == {"q": MULTIPLIED[name]}
                continue
            with pytest.raises(RefusedError):
                function(labels, predictions, k)
        else:
            rankmill.evaluate(*tables(labels, predictions), metric, semantics=name)


def test_trec_eval_9_holds_scores_as_float32() -> None:
    """As pytrec_eval does: what differs beyond it is tied, and ordered by document."""
    scores = {"a": 1 + 1e-9, "b": 1.0}
    asked = pytrec_eval.RelevanceEvaluator({"q": {"a": 1}}, {"recip_rank"})
    assert asked.evaluate({"q": scores})["q"]["recip_rank"] == 0.5
    labels = pa.table({"query": ["q"], "items": [["a"]]})
    predictions = pa.table({"query": ["q"], "items": [[*scores]], "score": [[*scores.values()]]})
    for name, expected in (("trec_eval", 0.5), ("trec_eval-10", 1.0)):
        result = rankmill.evaluate(labels, predictions, "first_hit", semantics=name)
        assert result["first_hit"] == expected


def test_an_unknown_preset_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(rankmill.UsageError, match="did you mean trec_eval"):
        preset("trec-eval")
