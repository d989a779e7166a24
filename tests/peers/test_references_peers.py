"""The references of the presets against libraries that a test run may lack.

A library that is not installed is skipped. Each test says which input its library does not accept;
its dumps have no such input. Passed so far, in one environment: ranx 0.3.21,
torchmetrics 1.9.0 with torch 2.13.0, recommenders 1.2.1, RecTools 0.19.0, replay-rec 0.22.0,
lenskit 2025.8.1, pyspark 4.3.0 with Java 17, ml_metrics 0.1.4.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rankmill
from dumps import hold
from references.steps import Labels, Predictions, relevant_rows

PEERS = "{0} is not installed: pip install '.[peers]'"
BARE = "{0} is not installed: pip install --no-deps {0}, since its pins rule out rankmill's"

# The warnings that the libraries themselves cause.
pytestmark = pytest.mark.filterwarnings("ignore")


def ranx_says(labels: Labels, predictions: Predictions, k: int | None) -> dict[str, Any]:
    """No repeats (a dictionary)."""
    import ranx

    names = ("map", "mrr", "precision", "recall", "hit_rate", "f1", "ndcg", "dcg", "r-precision")
    keys = ("map", "first_hit", "precision", "recall", "hit", "f1", "ndcg", "dcg", "rprec")
    asked = [name if k is None or name == "r-precision" else f"{name}@{k}" for name in names]
    qrels = ranx.Qrels({query: {i: int(g) for i, g in rows} for query, rows in labels.items()})
    run = ranx.Run({query: dict(listed) for query, listed in predictions.items()})
    values = ranx.evaluate(qrels, run, asked, return_mean=False, make_comparable=True)
    found = {
        key: dict(zip(sorted(labels), values[name].tolist(), strict=True))
        for key, name in zip(keys, asked, strict=True)
    }
    if k is None:  # here ranx divides by the number of predictions
        del found["precision"], found["f1"]
    return found


def test_ranx() -> None:
    """Lists with ties have at most 15 predictions: in longer ones ranx leaves the order open."""
    pytest.importorskip("ranx", reason=PEERS.format("ranx"))
    hold("ranx", ranx_says, grades=(0, 1, 2, 3), longest=14)


def test_the_letters_of_ranx() -> None:
    """Its Student's t is not corrected, and its letters are in the order of the runs."""
    ranx = pytest.importorskip("ranx", reason=PEERS.format("ranx"))
    draw = np.random.default_rng(3)
    labels = {f"q{q}": ["a", "b"] for q in range(60)}
    runs = {
        name: {q: ["ab"[one] if draw.random() < p else "xy"[one] for one in (0, 1)] for q in labels}
        for name, p in (("best", 0.8), ("good", 0.65), ("fair", 0.6), ("poor", 0.2))
    }
    theirs = ranx.compare(
        ranx.Qrels({q: dict.fromkeys(one, 1) for q, one in labels.items()}),
        [
            ranx.Run({q: {i: 1 - r / 9 for r, i in enumerate(of)} for q, of in run.items()}, name)
            for name, run in runs.items()
        ],
        ["map@2", "mrr@2"],
        max_p=0.05,
        stat_test="student",
        rounding_digits=4,
    )
    tests = rankmill.Tests(correction="none")
    ours = rankmill.compare(labels, runs, ["map@2", "mrr@2"], tests=tests, all_pairs=True)
    table = [line.split()[1:4] for line in str(theirs).splitlines()[2:]]
    text = re.sub(r"[*] ?|(?<=\d) (?=[ᵃᵇᶜᵈ])", "", str(ours))
    assert [line.split()[1:4] for line in text.splitlines()[2:6]] == table
    assert any(len(row[1]) > len("0.1234ᵃ") for row in table)


def torchmetrics_says(labels: Labels, predictions: Predictions, k: int | None) -> dict[str, Any]:
    """Take rows of (score, right?, query) and compare each query's value, not only the mean."""
    import torch
    from torchmetrics import retrieval
    from torchmetrics.classification import BinaryAveragePrecision

    names = {"map": "MAP", "first_hit": "MRR", "precision": "Precision", "recall": "Recall"}
    names |= {"hit": "HitRate", "ndcg": "NormalizedDCG"}
    queries = sorted(predictions)
    rows = [
        (confidence, int(dict(labels.get(query, [])).get(item, 0.0)), number)
        for number, query in enumerate(queries)
        for item, confidence in predictions[query]
    ]
    scores, grades, indexes = (torch.tensor(column) for column in zip(*rows, strict=True))

    def values(name: str, **cutoff: int) -> dict[str, float]:
        measure = getattr(retrieval, f"Retrieval{name}")(aggregation=lambda v, dim: v, **cutoff)
        graded = name == "NormalizedDCG"
        measure.update(scores, grades if graded else (grades > 0).long(), indexes=indexes)
        return dict(zip(queries, measure.compute().tolist(), strict=True))

    found = {metric: values(name, **({"top_k": k} if k else {})) for metric, name in names.items()}
    found["rprec"] = values("RPrecision")
    if k is None:
        # From 0 to 1, or it takes a sigmoid, which in float32 tears ties apart.
        average = BinaryAveragePrecision()((scores + 4) / 16, (grades > 0).long())
        found["gap"] = float(average.nan_to_num(0.0))  # not a number if nothing is right
    return found


@pytest.mark.long
@pytest.mark.parametrize("repeats", [False, True])
def test_torchmetrics(repeats: bool) -> None:
    """It computes in float32, and leaves the order of ties open except in ndcg."""
    pytest.importorskip("torchmetrics", reason=PEERS.format("torchmetrics"))
    shape = {"grades": (0, 1, 2, 3), "repeats": repeats}
    hold("torchmetrics", torchmetrics_says, 1e-6, ties=False, **shape)
    hold("torchmetrics", torchmetrics_says, 1e-6, only={"ndcg"}, **shape)


def frames(labels: Labels, predictions: Predictions) -> tuple[Any, Any]:
    """Return rows of labels, and rows of predictions with their rank."""
    import pandas as pd

    right = [(q, item, 1.0) for q, rows in labels.items() for item in relevant_rows(rows)]
    listed = [
        (query, item, confidence, rank)
        for query, rows in predictions.items()
        for rank, (item, confidence) in enumerate(rows, start=1)
    ]
    return (
        pd.DataFrame(right, columns=["user", "item", "rating"]),
        pd.DataFrame(listed, columns=["user", "item", "score", "rank"]),
    )


def recommenders_says(labels: Labels, predictions: Predictions, k: int | None) -> dict[str, Any]:
    from recommenders.evaluation import python_evaluation

    names = {"user": "userID", "item": "itemID", "score": "prediction"}
    right, listed = (frame.rename(columns=names) for frame in frames(labels, predictions))
    rows = right, listed.drop(columns="rank")
    if k is None:
        found = {"map": "map", "recall": "recall_at_k"}
    else:
        found = {name: f"{name}_at_k" for name in ("map", "precision", "recall", "ndcg")}
    cutoff = 10**6 if k is None else k
    return {
        metric: getattr(python_evaluation, name)(*rows, k=cutoff) for metric, name in found.items()
    }


def test_recommenders() -> None:
    """It returns only means, and 0 if no prediction is right. Its ndcg is wrong with repeats."""
    pytest.importorskip("recommenders", reason=BARE.format("recommenders"))
    hold("recommenders", recommenders_says, cutoffs=(1, 3, 8), only={"ndcg"})
    others = {"map", "precision", "recall"}
    hold("recommenders", recommenders_says, only=others, repeats=True, repeated_labels=True)


def rectools_says(labels: Labels, predictions: Predictions, k: int | None) -> dict[str, Any]:
    if k is None:
        return {}
    from rectools import metrics

    names = {"map": "MAP", "first_hit": "MRR", "precision": "Precision", "recall": "Recall"}
    names |= {"hit": "HitRate", "f1": "F1Beta", "ndcg": "NDCG"}
    columns = {"user": "user_id", "item": "item_id"}
    right, listed = (frame.rename(columns=columns) for frame in frames(labels, predictions))
    return {
        metric: getattr(metrics, name)(k=k).calc_per_user(listed, right).to_dict()
        for metric, name in names.items()
    }


@pytest.mark.long  # importing it takes 5 s; test_references.py holds the preset
def test_rectools() -> None:
    pytest.importorskip("rectools", reason=BARE.format("rectools"))
    hold("rectools", rectools_says, repeats=True, repeated_labels=True)


def replay_says(labels: Labels, predictions: Predictions, k: int | None) -> dict[str, Any]:
    """It takes data frames, or dictionaries, which can hold a query without labels."""
    if k is None:
        return {}
    from replay import metrics

    names = {"map": "MAP", "first_hit": "MRR", "precision": "Precision", "recall": "Recall"}
    names |= {"hit": "HitRate", "ndcg": "NDCG"}
    columns = {"user": "query_id", "item": "item_id"}
    right, listed = (frame.rename(columns=columns) for frame in frames(labels, predictions))
    inputs: tuple[Any, Any] = listed.drop(columns="rank").rename(columns={"score": "rating"}), right
    if not all(labels.values()):
        inputs = predictions, {query: relevant_rows(rows) for query, rows in labels.items()}
    return {
        metric: getattr(metrics, name)([k], mode=metrics.PerUser())(*inputs)[f"{name}-PerUser@{k}"]
        for metric, name in names.items()
    }


def test_replay() -> None:
    """A dictionary keeps ties in the given order, so those dumps have none."""
    pytest.importorskip("replay.metrics", reason=PEERS.format("replay-rec"))
    hold("replay", replay_says, repeats=True, repeated_labels=True, empty_labels=False)
    hold("replay", replay_says, repeats=True, repeated_labels=True, ties=False)


def lenskit_says(labels: Labels, predictions: Predictions, k: int | None) -> dict[str, Any]:
    from lenskit.data import ItemList, ItemListCollection
    from lenskit.metrics import RunAnalysis, ranking
    from lenskit.metrics.ranking._map import AveragePrecision

    found = {"map": AveragePrecision, "first_hit": ranking.RecipRank, "hit": ranking.Hit}
    found |= {"precision": ranking.Precision, "recall": ranking.Recall}
    found |= {"ndcg_jk": ranking.NDCG, "dcg_jk": ranking.DCG}
    measures = {metric: measure(k) for metric, measure in found.items()}

    def collection(lists: dict[str, list[str]], ordered: bool) -> Any:
        items = {
            query: ItemList(item_ids=np.array(listed, dtype=object), ordered=ordered)
            for query, listed in lists.items()
        }
        return ItemListCollection.from_dict(items, "user_id")

    lists = {query: [item for item, _ in listed] for query, listed in predictions.items()}
    right = {query: relevant_rows(rows) for query, rows in labels.items()}
    data = collection(lists, True), collection(right, False)
    if not all(right.get(query) for query, listed in lists.items() if listed):
        with pytest.raises(ZeroDivisionError):
            RunAnalysis(measures.pop("map")).measure(*data)
    table = RunAnalysis(*measures.values()).measure(*data).list_metrics()
    return {metric: table[measure.label].to_dict() for metric, measure in measures.items()}


def test_lenskit() -> None:
    """Its average precision fails for a list of a query without labels."""
    pytest.importorskip("lenskit", reason=PEERS.format("lenskit"))
    shape = {"repeats": True, "repeated_labels": True, "empty_lists": True}
    hold("lenskit", lenskit_says, **shape)
    hold("lenskit", lenskit_says, unlabelled=False, **shape)


@pytest.fixture
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason=PEERS.format("pyspark"))
    from pyspark.sql import SparkSession

    options = {"spark.ui.enabled": "false", "spark.log.level": "OFF"}
    options |= {"spark.pyspark.python": sys.executable}
    session = SparkSession.builder.master("local[1]").config(map=options).getOrCreate()
    yield session.sparkContext
    session.stop()


def test_spark(spark: Any) -> None:
    """It returns only means; its Python API takes no gains."""
    from pyspark.mllib.evaluation import RankingMetrics

    def spark_says(labels: Labels, predictions: Predictions, k: int | None) -> dict[str, Any]:
        rows = [
            ([item for item, _ in predictions[query]], relevant_rows(labels[query]))
            for query in labels.keys() & predictions.keys()
        ]
        measures = RankingMetrics(spark.parallelize(rows, 1))
        if k is None:
            return {"map": measures.meanAveragePrecision}
        names = {"map": "meanAveragePrecisionAt", "precision": "precisionAt"}
        names |= {"recall": "recallAt", "ndcg": "ndcgAt"}
        return {metric: getattr(measures, name)(k) for metric, name in names.items()}

    shape = {"repeats": True, "repeated_labels": True, "empty_lists": True}
    hold("spark", spark_says, cutoffs=(3, None), **shape)


def ml_metrics_says(labels: Labels, predictions: Predictions, k: int | None) -> dict[str, Any]:
    import ml_metrics

    actual = [relevant_rows(rows) for rows in labels.values()]
    predicted = [[item for item, _ in predictions.get(query, [])] for query in labels]
    return {"map": ml_metrics.mapk(actual, predicted, 10**6 if k is None else k)}


def test_ml_metrics() -> None:
    """It returns only means. Without labels, a query is 1 in its release, 0 in its repository."""
    pytest.importorskip("ml_metrics", reason="ml_metrics needs setuptools < 58 to install")
    import ml_metrics

    assert ml_metrics.apk([], ["a"]) == 1.0
    hold("ml_metrics", ml_metrics_says, repeats=True, repeated_labels=True, empty_labels=False)
