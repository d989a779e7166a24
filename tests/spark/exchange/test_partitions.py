"""Into how many partitions rows are shuffled, by what Spark knows of their size."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from flat import job_of
from rankmill.spark.exchange.spark_request import (
    SparkRequest,
    partition_count,
    request_of,
    sizes_of,
)

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]


def test_what_spark_knows_of_sizes_decides(spark: Any, tmp_path: Any) -> None:
    rows = spark.range(100_000).selectExpr("id as query", "array(id) as item")
    rows.write.parquet(str(tmp_path / "some"))
    frame = spark.read.parquet(str(tmp_path / "some"))

    def request(labels: Any, predictions: Any) -> SparkRequest:
        job, *inputs = job_of(labels, {"": predictions}, "map", {}, part=True)
        return request_of(*inputs, job)

    def sizes(labels: Any, predictions: Any) -> list[int | None]:
        found = request(labels, predictions)
        return sizes_of(found.frames, found.sides)

    size = sum(file.stat().st_size for file in (tmp_path / "some").glob("*.parquet"))
    # A join is not taken to be as large as both sides multiplied.
    assert sizes(frame.join(frame.select("query"), "query"), frame) == [2 * size, size]
    assert request(frame, frame).partitions == spark.sparkContext.defaultParallelism
    # The rows of an RDD have no size that is known; then there are as many as Spark would make.
    unknown = spark.createDataFrame(frame.rdd, frame.schema)
    assert sizes(frame, unknown) == [size, None]
    assert request(frame, unknown).partitions == 3


@pytest.mark.parametrize(
    ("sizes", "count"),
    [([1, 1], 2), ([1 << 30, 1 << 20], 33), ([None, 1], 7), ([None, 1 << 30], 32)],
)
def test_partitions_by_size(sizes: list[int | None], count: int) -> None:
    session = SimpleNamespace(
        conf=SimpleNamespace(get=lambda name: "7"),
        sparkContext=SimpleNamespace(defaultParallelism=2),
    )
    assert partition_count(session, sizes) == count
