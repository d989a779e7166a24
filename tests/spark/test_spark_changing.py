"""Frames whose rows change each time that Spark computes them, and frames that only look so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rankmill
import rankmill.spark
from rankmill import Catalogue
from rankmill.spark.exchange.layout import to_arrow

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours

CHANGED = "a DataFrame has other rows than when it was read before"
RANDOM = "cast(java_method('java.lang.Math', 'random') as double)"
PARTS = {"partitions": 3}


class Frames:
    """Labels, predictions and training whose rows stay, and such that change."""

    def __init__(self, spark: Any) -> None:
        self.labels = spark.range(300).selectExpr("id as query", "id % 20 as item")
        numbers = spark.range(3000).selectExpr("id % 300 as query", "id % 37 as item", "id")
        stays = "(id * 7919 % 3000) / 3000d as score"
        other = f"cast({RANDOM} * 37 as long) as item"
        self.long = numbers.selectExpr("query", "item", stays)
        self.scores = numbers.selectExpr("query", "item", f"{RANDOM} as score")
        self.items = numbers.selectExpr("query", other, stays)
        self.train = self.items.select("query", "item")
        # Of these only the number of rows is compared: of so many it is hardly ever the same.
        many = spark.range(1).selectExpr(f"cast({RANDOM} * 20000 as long) as n")
        some = many.selectExpr("explode(sequence(0L, n)) as id")
        self.some = some.selectExpr("id as query", "id % 20 as item")


def evaluated(frames: Frames) -> Any:
    return rankmill.spark.evaluate(frames.labels, frames.items, "map@3", per_query=True, **PARTS)


def compared(frames: Frames, metrics: Any, **options: Any) -> Any:
    runs = {"a": frames.items, "b": frames.long}
    return rankmill.spark.compare(frames.labels, runs, metrics, **PARTS, **options)


def gated(frames: Frames) -> Any:
    both = frames.labels, frames.items
    return rankmill.spark.gate(*both, "map@3 >= 0.01", **PARTS)


def known(frames: Frames, metrics: str, **options: Any) -> Any:
    had = Catalogue(train=frames.train, **options)
    return rankmill.spark.evaluate(frames.labels, frames.long, metrics, catalogue=had, **PARTS)


def popular(frames: Frames) -> Any:
    runs = {"a": frames.long, "b": frames.long}
    return rankmill.spark.compare(frames.some, runs, "map@3", by="label_popularity", **PARTS)


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(
            lambda frames: rankmill.spark.evaluate(frames.labels, frames.scores, "gap", **PARTS),
            id="the confidences of gap",
        ),
        pytest.param(lambda frames: compared(frames, "gap"), id="the interval of gap"),
        pytest.param(lambda frames: known(frames, "popularity_lift@3"), id="training, three times"),
        pytest.param(lambda frames: known(frames, "map@3", drop_seen=True), id="training"),
        pytest.param(popular, id="the popularity of labels"),
    ],
)
def test_other_rows_in_a_later_pass_are_an_error(spark: Any, call: Callable[..., Any]) -> None:
    with pytest.raises(rankmill.InputError, match=f"^{CHANGED}.*persist"):
        call(Frames(spark))


@pytest.mark.rows(1)
@pytest.mark.parametrize(
    "values",
    [
        pytest.param(lambda frames: evaluated(frames).per_query, id="evaluate"),
        pytest.param(lambda frames: compared(frames, "map").per_query, id="compare"),
        pytest.param(lambda frames: gated(frames).result.per_query, id="gate"),
    ],
)
def test_values_that_contradict_their_mean_are_an_error(
    spark: Any, values: Callable[..., Any]
) -> None:
    from pyspark.errors import PySparkException

    found = values(Frames(spark))
    with pytest.raises(PySparkException, match=f"InputError: {CHANGED}"):
        to_arrow(found)


@pytest.mark.long
def test_rows_in_another_order_are_the_same_rows(spark: Any) -> None:
    from pyspark.sql import functions

    frames = Frames(spark)
    # Neither collect_list nor a random shuffle puts rows in the same order twice.
    labels = frames.labels.union(frames.labels.selectExpr("query", "item + 1")).orderBy(
        functions.expr(RANDOM)
    )
    labels = labels.groupBy("query").agg(functions.collect_list("item").alias("item"))
    tied = frames.long.withColumn("score", functions.expr("round(score, 1)"))
    tied = tied.orderBy(functions.expr(RANDOM))
    train = frames.long.select("query", "item").orderBy(functions.expr(RANDOM))
    narrow = tied.withColumn("query", functions.expr("cast(query as smallint)"))
    options: Any = {"catalogue": Catalogue(train=train), **PARTS}
    metrics = ["map@3", "gap", "gap@2", "popularity_lift@3"]
    found = rankmill.spark.evaluate_runs(labels, {"a": tied, "b": narrow}, metrics, **options)
    for one in found.values():
        rows = to_arrow(one.per_query.coalesce(1).union(one.per_query))
        assert rows.num_rows == 2 * one.queries
    runs = {"a": tied, "b": narrow}
    both = rankmill.spark.compare(labels, runs, metrics, by="label_popularity", **options)
    assert both.values["gap"]["a"] == both.values["gap"]["b"]
    assert len(both.per_query.limit(3).collect()) == 3
