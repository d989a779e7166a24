"""A catalogue and subtopics on Spark: the same bits as in one process, whatever is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
import rankmill.spark
from data import alike, frame_of, same_with, tables
from rankmill import Catalogue, Labels
from rankmill.metrics.aggregate import aggregate_of, needs_of
from rankmill.metrics.registry import REGISTRY, parse
from rankmill.spark.exchange.layout import to_arrow

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours

DRAW = np.random.default_rng(5)
ITEMS = pa.table(
    {
        "item": [f"id {number}" for number in range(12)],
        "genre": [["a", "b"][: 1 + number % 2] for number in range(12)],
    }
)
FEATURES = pa.table(
    {
        "item": ITEMS["item"],
        "vector": [[float(number), 1.0, float(number**2 % 5)] for number in range(12)],
    }
)
TRAIN = pa.table(
    {
        "query": [f"id {number}" for number in DRAW.integers(0, 90, 300)],
        "item": [f"id {number}" for number in DRAW.integers(0, 12, 300)],
    }
)
WIDE = TRAIN.group_by("query").aggregate([("item", "list")]).rename_columns(TRAIN.column_names)


def of_catalogues() -> list[str]:
    """All metrics that look at a catalogue."""
    found = []
    for name, spec in REGISTRY.items():
        if spec.wanted or spec.at is not None:  # a number that has to be told, and no catalogue
            continue
        metric = parse(name if spec.cutoff == "none" else f"{name}@3")
        whole = getattr(aggregate_of(metric), "whole", False)
        if whole or any(one.given for one in needs_of(metric)):
            found.append(metric.text)
    assert len(found) > 20
    return found


def given(session: Any, **tables: Any) -> tuple[Catalogue, Catalogue]:
    """A catalogue of tables, and the same of DataFrames."""
    kept = {name: one for name, one in tables.items() if not isinstance(one, pa.Table)}
    frames = {name: frame_of(session, one) for name, one in tables.items() if name not in kept}
    return Catalogue(**tables), Catalogue(**kept, **frames)


def test_every_metric_of_a_catalogue_has_the_same_bits(spark: Any) -> None:
    labels, predictions = tables("strings", "wide", "wide")
    here, there = given(spark, train=TRAIN, items=ITEMS, group="genre", features=FEATURES)
    metrics = [*of_catalogues(), "map@3", "gap"]
    frames = [frame_of(spark, one) for one in (labels, predictions)]
    found = rankmill.spark.evaluate(*frames, metrics, catalogue=there)
    same_with(found, rankmill.evaluate(labels, predictions, metrics, catalogue=here))


@pytest.mark.parametrize(
    ("metrics", "names"),
    [
        (["coverage@3", "gini@3"], ("items",)),
        (["coverage@3", "ild_cosine@3"], ("features",)),
        (["coverage@3", "popularity_lift@3"], ("train",)),
    ],
    ids=str,
)
def test_what_is_left_out_of_a_catalogue_is_taken_from_the_rest(
    spark: Any, metrics: list[str], names: tuple[str, ...]
) -> None:
    labels, predictions = tables("strings", "wide", "long")
    every = {"items": ITEMS, "features": FEATURES, "train": WIDE}
    here, there = given(spark, **{name: every[name] for name in names})
    frames = [frame_of(spark, one) for one in (labels, predictions)]
    # Without a number of partitions, labels go to all tasks if nothing comes by query.
    found = rankmill.spark.evaluate(*frames, metrics, catalogue=there)
    same_with(found, rankmill.evaluate(labels, predictions, metrics, catalogue=here))


def test_training_may_be_a_path(spark: Any, tmp_path: Path) -> None:
    labels, predictions = tables("strings", "wide", "wide")
    frames = [frame_of(spark, one) for one in (labels, predictions)]
    path = tmp_path / "train.parquet"
    pq.write_table(TRAIN, path)
    here, there = (Catalogue(train=one) for one in (TRAIN, path))
    found = rankmill.spark.evaluate(*frames, "novelty@3", catalogue=there, partitions=2)
    same_with(found, rankmill.evaluate(labels, predictions, "novelty@3", catalogue=here))


def test_what_was_seen_is_dropped_and_the_values_of_queries_know_it(spark: Any) -> None:
    labels, predictions = tables("strings", "long", "wide")
    here, there = given(spark, train=TRAIN, drop_seen=True)
    frames = [frame_of(spark, one) for one in (labels, predictions)]
    options: dict[str, Any] = {"by": "weight", "per_query": True}
    metrics = ["map@3", "recall@3"]
    found = rankmill.spark.evaluate(*frames, metrics, catalogue=there, partitions=5, **options)
    whole = rankmill.evaluate(labels, predictions, metrics, catalogue=here, **options)
    same_with(found, whole)
    assert whole.audit["seen_items"] > 9
    rows = to_arrow(found.per_query).sort_by("query").to_pylist()
    assert rows == whole.per_query.sort_by("query").to_pylist()
    with pytest.raises(rankmill.UsageError, match="gap with drop_seen needs all predictions"):
        rankmill.spark.evaluate(*frames, "gap", catalogue=there)


@pytest.mark.long
def test_labels_with_subtopics_have_the_same_bits(spark: Any) -> None:
    labels, old = tables("strings", "long", "wide")
    new = tables("strings", "wide", "wide", seed=3)[1]
    labels = labels.append_column("topic", pa.array([row % 3 for row in range(len(labels))]))
    told: dict[str, Any] = {"subtopic": "topic", "gain": "gain", "weight": "weight"}
    here, there = Labels(labels, **told), Labels(frame_of(spark, labels), **told)
    runs = {"old": old, "new": new}
    frames = {name: frame_of(spark, one) for name, one in runs.items()}
    metrics = ["alpha_ndcg@3", "err_ia@3"]
    whole = rankmill.evaluate(here, old, metrics, by="weight")
    # Of 30 partitions, some have no labels.
    for partitions in (None, 30):
        how: dict[str, Any] = {"by": "weight", "partitions": partitions}
        same_with(rankmill.spark.evaluate(there, frames["old"], metrics, **how), whole)
    found = rankmill.spark.compare(there, frames, metrics, by="label_popularity")
    alike(found, rankmill.compare(here, runs, metrics, by="label_popularity"))
    with pytest.raises(rankmill.UsageError, match=r"needs labels with subtopics"):
        rankmill.spark.evaluate(there.data, frames["old"], "alpha_ndcg@3")


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (TRAIN, "train cannot be a Table; expected a DataFrame of Spark or a path"),
        ("no/train.parquet", "no/train.parquet cannot be read by Spark as parquet"),
        ({"query": [1], "item": [2]}, "train: the query ids cannot be compared"),
        ({"query": ["id 1"], "topic": [2]}, "train: .* no column looks like the item"),
        (
            {"query": ["id 1", None], "item": ["id 1", "id 2"]},
            "train: .* has no query id .*in partition [01]; rows are counted within it",
        ),
        (
            {"query": ["id 1"], "item": pa.array([None], pa.string())},
            "the DataFrame of train holds no items",
        ),
    ],
    ids=str,
)
def test_a_wrong_catalogue_is_one_clear_error(spark: Any, train: Any, message: str) -> None:
    labels, predictions = tables("strings", "wide", "wide")
    frames = [frame_of(spark, one) for one in (labels, predictions)]
    if isinstance(train, dict):
        train = frame_of(spark, pa.table(train))
    with pytest.raises(rankmill.RankmillError, match=message):
        rankmill.spark.evaluate(
            *frames, "novelty@3", catalogue=Catalogue(train=train), partitions=2
        )
