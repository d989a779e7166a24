"""Queries of very different sizes on Spark: the same bits, in the memory that the page promises."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from data import same

import rankmill
import rankmill.spark
from rankmill.spark import merging

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours

# The promise of the docs page: 300 MB for Python, and the rows as Arrow holds them, three times.
PYTHON, TIMES = 300_000_000, 3
ROWS = 2_000_000


def skewed(spark: Any) -> list[Any]:
    """Labels and predictions: a query has half of the rows, 1 % of the others half of the rest."""
    from pyspark.sql import functions

    number = functions.col("id")
    query = (
        functions.when(number < ROWS / 2, -1)
        .when(number < ROWS * 3 / 4, number % 50)
        .otherwise(50 + number % 5000)
    )
    noise = functions.xxhash64("id")
    predictions = spark.range(ROWS).select(
        query.cast("long").alias("query"),
        number.alias("item"),
        (noise.cast("double") / 2.0**63).alias("score"),
    )
    labels = predictions.where(
        functions.pmod(functions.xxhash64("item", "query"), functions.lit(9)) == 0
    )
    return [labels.select("query", "item"), predictions]


def recorded(folder: str, usual: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function like `function_of`, whose tasks leave a file with their bytes and peak."""

    def function_of(task: Any) -> Any:
        usual_run = usual(task)

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            import resource

            size = 0

            def passed() -> Iterator[Any]:
                nonlocal size
                for batch in batches:
                    size += batch.nbytes
                    yield batch

            yield from usual_run(passed())
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            Path(folder, uuid.uuid4().hex).write_text(f"{size} {peak}")

        return run

    return function_of


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="memory is counted as on Linux")
def test_a_query_with_half_of_the_rows_has_the_same_bits_and_fits(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = skewed(spark)
    metrics = ["map", "ndcg@10", "gap", "gap@5"]
    whole = rankmill.evaluate(*(frame.toArrow() for frame in frames), metrics)
    monkeypatch.setattr(merging, "function_of", recorded(str(tmp_path), merging.function_of))
    found = rankmill.spark.evaluate(*frames, metrics, partitions=4)
    same(found, whole)
    tasks = [tuple(map(int, file.read_text().split())) for file in tmp_path.iterdir()]
    print(tasks)
    assert len(tasks) >= 8  # both passes
    # A process has many tasks: its peak is that of the largest so far.
    assert max(peak for _, peak in tasks) < PYTHON + TIMES * max(size for size, _ in tasks)
