"""Spark in this process: the same bits as in one process, and one clear error for wrong data."""

from __future__ import annotations

import contextlib
import random
import textwrap
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import rankmill
import rankmill.spark
from data import FIELDS, frame_of, same, same_queries, tables
from flat import flat

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours


def frames(spark: Any, *of: pa.Table) -> list[Any]:
    return [frame_of(spark, one) for one in of]


def test_systems_share_a_shuffle_and_may_have_other_shapes_and_types(spark: Any) -> None:
    labels, wide = tables("integers", "wide", "wide")
    _, long = tables("integers", "wide", "long", seed=1)
    long = long.set_column(0, "user_id", long["query"].cast(pa.int32()))
    labels = labels.set_column(0, "query", labels["query"].cast(pa.int16()))
    names = ["query", "items", "scores"]
    runs = {"a.b": wide.rename_columns(names), "": long, "c": wide.slice(0, 9)}
    metrics = ["map@5", "gap", "recall"]
    of_runs = {name: frame_of(spark, one) for name, one in runs.items()}
    found = rankmill.spark.evaluate_runs(frame_of(spark, labels), of_runs, metrics, per_query=True)
    whole = rankmill.evaluate_runs(labels, runs, metrics)
    assert list(found) == list(whole)
    for name, one in found.items():
        same(one, whole[name])
        same_queries(one.per_query, whole[name].per_query)


@pytest.mark.parametrize("semantics", ["default", "sklearn"])
def test_values_of_queries_are_a_frame_that_nothing_collects(spark: Any, semantics: str) -> None:
    labels, predictions = tables("strings", "long", "wide")
    options: dict[str, Any] = {"weight": "weight"} if semantics == "default" else {}
    options |= {"semantics": semantics}
    whole = flat(rankmill.evaluate, labels, predictions, ["map", "p@3"], **options)
    found = flat(
        rankmill.spark.evaluate,
        *frames(spark, labels, predictions),
        ["map", "p@3"],
        per_query=True,
        **options,
    )
    assert type(found.per_query).__name__ == "DataFrame"
    same_queries(found.per_query, whole.per_query)


def test_equal_confidences_of_long_rows_rank_by_item_whatever_the_order_of_rows(spark: Any) -> None:
    draw = random.Random(0)
    rows = [
        {"query": query, "item": item, "score": draw.randrange(3) / 4}
        for query in range(40)
        for item in range(6)
    ]
    labels = pa.table({"query": range(40), "item": [[draw.randrange(6)] for _ in range(40)]})
    sorted_rows = pa.Table.from_pylist(rows)
    draw.shuffle(rows)
    predictions = pa.Table.from_pylist(rows)
    found = rankmill.spark.evaluate(*frames(spark, labels, predictions), ["map", "gap@2"])
    whole = rankmill.evaluate(labels, sorted_rows, ["map", "gap@2"])
    for field in set(FIELDS) - {"notes"}:
        assert getattr(found, field) == getattr(whole, field), field
    assert "rank by item id" in found.notes[-1]


# Types of Spark, of which some are not in all versions.
KINDS = {
    "time": "timestamp'2020-01-01 10:00:00'",
    "local time": "timestamp_ntz'2020-01-01 10:00:00'",
    "times": "array(timestamp'2020-01-01 10:00:00')",
    "struct": "struct(timestamp'2020-01-01 10:00:00' as t)",
    "map": "map(timestamp'2020-01-01 10:00:00', 1)",
    "days": "interval 3 days",
    "months": "interval 3 months",
    "void": "null",
    "decimal": "cast(1 as decimal(38, 18))",
    "variant": "parse_json('{}')",
    "time of day": "time'10:00:00'",
    "geometry": "st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')",
}


def with_kinds(frame: Any) -> Any:
    """Add a column of each of the types that this Spark has."""
    from pyspark.errors import PySparkException

    for name, value in KINDS.items():
        with contextlib.suppress(PySparkException):
            frame = frame.selectExpr("*", f"{value} as `a {name}`")
    return frame


def test_columns_without_a_role_may_have_any_type(spark: Any) -> None:
    both = tables("integers", "wide", "wide")
    labels, predictions = map(with_kinds, frames(spark, *both))
    assert "a time" in labels.columns
    had = rankmill.Catalogue(train=predictions)
    asked: Any = {"metrics": ["map@3", "novelty@3"], "catalogue": had, "partitions": 1}
    found = rankmill.spark.evaluate(labels, predictions, by="weight", **asked)
    expected = rankmill.evaluate(*both, "map@3")["map@3"]
    assert found["map@3"] == expected
    runs = {"a": predictions, "b": predictions}
    compared = rankmill.spark.compare(labels, runs, by="weight", **asked)
    assert compared.values["map@3"]["a"].value == expected
    values = rankmill.spark.evaluate(labels, predictions, "map@3", per_query=True).per_query
    rules = "map@3 drop <= 1%"
    for baseline in (predictions, with_kinds(values)):
        verdict = rankmill.spark.gate(labels, predictions, rules, baseline=baseline, partitions=1)
        assert verdict.exit_code == 0


def test_times_cut_slices_in_the_time_zone_of_the_session(spark: Any) -> None:
    zone = "spark.sql.session.timeZone"
    before = spark.conf.get(zone)
    spark.conf.set(zone, "UTC")
    labels, predictions = map(with_kinds, frames(spark, *tables("integers", "wide", "wide")))
    spark.conf.set(zone, "Asia/Tokyo")
    try:
        found = rankmill.spark.evaluate(labels, predictions, "map", by="a time", partitions=1)
    finally:
        spark.conf.set(zone, before)
    assert found.by["slice"].unique().to_pylist() == ["2020-01-01 19:00:00+09:00"]
    for role, told in (("query", "none in 'a time'"), ("item", "'a time' for the item .*cast")):
        with pytest.raises(rankmill.InputError, match=told):
            rankmill.spark.evaluate(rankmill.Labels(labels, **{role: "a time"}), predictions, "map")


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("labels", "predictions", "metrics", "message"),
    [
        ({"query": [1, None], "item": [[1], [2]]}, None, "map", "null.*in partition [01];"),
        ({"query": [4, 4], "item": [[1], [2]]}, None, "map", "query 4.*in partition [01];"),
        (
            None,
            {"query": [1], "item": [[1]], "score": [[float("nan")]]},
            "gap",
            "(?i)nan.*in partition [01];",
        ),
        (None, {"query": [1], "item": [["a"]]}, "map", "the item ids cannot be compared"),
        (None, {"query": [1.5], "item": [[1]]}, "map", "found 1.5; a fraction.*in partition [01];"),
        (None, {"query": [1]}, "map", "no column looks like the item"),
        (
            None,
            {"query": pa.array([], pa.int64()), "item": pa.array([], pa.list_(pa.int64()))},
            "map",
            "the DataFrame of predictions holds no rows",
        ),
        ({"query": [1], "item": pa.array([[]], pa.list_(pa.int64()))}, None, "map", "no query has"),
    ],
)
def test_wrong_data_is_one_clear_error(
    spark: Any, labels: Any, predictions: Any, metrics: str, message: str
) -> None:
    labels = pa.table(labels or {"query": [1, 2], "item": [[1], [2]]})
    predictions = pa.table(predictions or {"query": [1, 2], "item": [[1], [2]]})
    with pytest.raises(rankmill.InputError, match=message) as caught:
        rankmill.spark.evaluate(*frames(spark, labels, predictions), metrics, partitions=2)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": "gap", "semantics": {"gap_ties": "ids"}}, "needs all predictions at once"),
        ({"partitions": 0}, "partitions is 0"),
        ({"in_order": True}, "rows of Spark have no order"),
    ],
)
def test_wrong_requests_are_refused_before_a_job(
    spark: Any, options: dict[str, Any], message: str
) -> None:
    labels, predictions = tables("integers", "long", "long")
    with pytest.raises(rankmill.RankmillError, match=message):
        flat(
            rankmill.spark.evaluate,
            *frames(spark, labels, predictions),
            **{"metrics": "map", **options},
        )


@pytest.mark.long
def test_the_example_of_the_help_runs(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    told = (rankmill.spark.__doc__ or "").split("::\n")[1].split("\nSpark does not")[0]
    exec(textwrap.dedent(told), {})
    assert "map@12" in capsys.readouterr().out.split()


def test_frames_without_end_are_refused(spark: Any) -> None:
    endless = spark.readStream.format("rate").load()
    with pytest.raises(rankmill.UsageError, match="labels cannot be a streaming DataFrame"):
        rankmill.spark.evaluate(endless, endless, "map")


def test_older_versions_of_spark_are_refused() -> None:
    session = SimpleNamespace(version="3.4.4")
    old = SimpleNamespace(mapInArrow=None, schema=None, sparkSession=session, isStreaming=False)
    with pytest.raises(rankmill.UsageError, match=r"Spark 3\.4\.4 is too old"):
        rankmill.spark.evaluate(old, old, "map")
