"""rankmill on Spark beside the shuffle alone and Spark's own evaluation, warm, in one session.

    PYTHONPATH=.venv/spark python benchmarks/spark.py [DATA ...] [--rounds 2] [--whole] [--only X]
    python benchmarks/spark.py DATA [--batches] [--skew]

DATA are folders of generate.py; without any, dumps of 1M and 10M users are generated, which takes
all in all some 8 minutes on two quiet cores. Beside the shuffle alone there are RankingMetrics, SQL
functions on arrays, and SQL with joins and windows, which beyond 2M users takes --whole. --batches
are small Arrow batches; --skew is a query with ten million predictions. Times are medians, of the
clock and of the processors of Spark, its Python and this process, with the bytes that Spark counted
as shuffled, compressed. Beyond 2M users there is one round.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession, Window, functions

import rankmill
import rankmill.spark
from rankmill import Labels, Predictions
from rankmill.engine.job import parse_job
from rankmill.spark.exchange.layout import to_arrow
from rankmill.spark.exchange.spark_request import request_of

METRICS = ["map@12", "first_hit@5"]
LARGE = 2_000_000


def bytes_of(batches: Any) -> Any:
    size = sum(batch.nbytes for batch in batches)
    yield pa.RecordBatch.from_pydict({"bytes": [size]})


def shuffle_alone(labels: Any, predictions: Any, metrics: list[str]) -> Any:
    """The rows that rankmill shuffles, given to Python, which does nothing with them."""
    given = Labels(labels)
    job = parse_job(metrics, given, "default", part=True)
    request = request_of(given, {"": Predictions(predictions)}, job)
    rows, _ = request.rows(0, 1)
    return to_arrow(rows.mapInArrow(bytes_of, "bytes long"))


def ranking_metrics(labels: Any, predictions: Any) -> float:
    from pyspark.mllib.evaluation import RankingMetrics

    joined = labels.join(
        predictions.select("user_id", predictions["items"].alias("list")), "user_id"
    )
    pairs = joined.select("list", "items").rdd.map(tuple)
    return float(RankingMetrics(pairs).meanAveragePrecisionAt(12))


def array_functions(labels: Any, predictions: Any) -> Any:
    """AP@12 by functions on arrays, without exploding them."""
    lists = predictions.select("user_id", predictions["items"].alias("list"))
    joined = labels.join(lists, "user_id", "left")
    sql = """aggregate(sequence(1, least(size(list), 12)), cast(struct(0 as hits, 0D as sum) as
    struct<hits: int, sum: double>), (acc, i) -> if(array_contains(items, list[i - 1]) and
    not array_contains(slice(list, 1, i - 1), list[i - 1]),
    named_struct('hits', acc.hits + 1, 'sum', acc.sum + (acc.hits + 1D) / i), acc),
    acc -> acc.sum / nullif(least(size(array_distinct(items)), 12), 0))"""
    return joined.select(functions.avg(functions.expr(sql))).collect()[0][0]


def windows(labels: Any, predictions: Any) -> Any:
    """AP@12 by exploding lists, a join, and windows."""
    columns = functions.posexplode(functions.slice("items", 1, 12)).alias("rank", "item")
    ranked = (
        predictions.select("user_id", columns)
        .groupBy("user_id", "item")
        .agg(functions.min("rank").alias("rank"))
    )
    wanted = labels.select("user_id", functions.explode(functions.array_distinct("items")))
    hits = ranked.join(wanted.withColumnRenamed("col", "item"), ["user_id", "item"])
    by_rank = Window.partitionBy("user_id").orderBy("rank")
    at = functions.row_number().over(by_rank) / (functions.col("rank") + 1)
    sums = hits.withColumn("at", at).groupBy("user_id").agg(functions.sum("at").alias("sum"))
    size = functions.least(functions.size(functions.array_distinct("items")), functions.lit(12))
    each = functions.try_divide(functions.coalesce("sum", functions.lit(0.0)), size)
    return labels.join(sums, "user_id", "left").select(functions.avg(each)).collect()[0][0]


def skewed(spark: Any, size: int) -> tuple[Any, Any]:
    """10,000 queries of 30 long predictions, and one query with `size` of them."""
    usual = functions.col("id") % 300_000
    query = functions.when(functions.col("id") < 300_000, (usual / 30).cast("long")).otherwise(-1)
    score = functions.xxhash64("id").cast("double") / 2.0**63
    predictions = spark.range(300_000 + size).select(
        query.alias("query"), functions.col("id").alias("item"), score.alias("score")
    )
    labels = predictions.where(functions.pmod(functions.xxhash64("item"), functions.lit(7)) == 0)
    return labels.select("query", "item"), predictions


def processor_seconds() -> float:
    """The processor time of this process and all below it, of which Linux tells."""
    below: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        process = int(file.parent.name)
        below.setdefault(int(fields[1]), []).append(process)
        ticks[process] = sum(map(int, fields[11:15]))
    found, waiting = 0, [os.getpid()]
    while waiting:
        process = waiting.pop()
        found += ticks.get(process, 0)
        waiting += below.get(process, [])
    return found / os.sysconf("SC_CLK_TCK")


def tasks_of(
    spark: Any, folder: str, arguments: argparse.Namespace
) -> dict[str, Callable[[], Any]]:
    """What is measured over one dump."""
    paths = [os.path.join(folder, f"{name}.parquet") for name in ("labels", "predictions")]
    both = [spark.read.parquet(path) for path in paths]
    if arguments.skew:
        both = list(skewed(spark, 10_000_000))

    def score(metrics: list[str]) -> Any:
        return rankmill.spark.evaluate(*both, metrics).metrics

    tasks: dict[str, Callable[[], Any]] = {
        "the shuffle alone": lambda: shuffle_alone(*both, METRICS),
        "map@12 and first_hit@5": lambda: score(METRICS),
        "the shuffle alone, with confidences": lambda: shuffle_alone(*both, ["gap"]),
        "map@12, first_hit@5 and gap": lambda: score([*METRICS, "gap"]),
    }
    if not arguments.skew:
        tasks["RankingMetrics: map@12"] = lambda: ranking_metrics(*both)
        tasks["SQL on arrays: map@12"] = lambda: array_functions(*both)
        if users_in(folder) < LARGE or arguments.whole:
            tasks["SQL with joins and windows: map@12"] = lambda: windows(*both)
    if arguments.batches:
        for name in ("the shuffle alone", "map@12 and first_hit@5"):
            tasks[f"{name}, batches of 100"] = in_batches(spark, 100, tasks[name])
    return {name: task for name, task in tasks.items() if arguments.only in name}


def users_in(folder: str) -> int:
    return int(pq.read_metadata(os.path.join(folder, "predictions.parquet")).num_rows)


def shuffled_bytes(spark: Any) -> int:
    """What the executors have written for shuffles so far."""
    time.sleep(0.5)  # Spark counts behind
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(executors.apply(at).totalShuffleWrite() for at in range(executors.size()))


def measured(
    spark: Any, tasks: dict[str, Callable[[], Any]], rounds: int, warm: bool
) -> dict[str, tuple[float, ...]]:
    """Median times and shuffled MB in alternating rounds; the first warms up unless `warm`."""
    times: dict[str, list[tuple[float, ...]]] = {name: [] for name in tasks}
    for round_ in range(rounds + (not warm)):
        for name, task in tasks.items():
            before = shuffled_bytes(spark)
            began, used = time.perf_counter(), processor_seconds()
            found = task()
            took = time.perf_counter() - began, processor_seconds() - used
            took += ((shuffled_bytes(spark) - before) / 1e6,)
            if round_ or warm:
                times[name].append(took)
            if not round_ and not isinstance(found, pa.Table):
                print(f"{name}: {found} ({took[0]:.1f} s)", file=sys.stderr, flush=True)
    medians = {name: zip(*pairs, strict=True) for name, pairs in times.items()}
    return {n: tuple(map(statistics.median, each)) for n, each in medians.items()}  # type: ignore[misc]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", metavar="X", default="", help="the tasks with X in their name")
    for name in ("--whole", "--batches", "--skew"):
        parser.add_argument(name, action="store_true")
    arguments = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
    builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    columns: dict[str, dict[str, tuple[float, ...]]] = {}
    with tempfile.TemporaryDirectory() as place:
        folders = arguments.data or [os.path.join(place, f"{size}M") for size in (1, 10)]
        for folder in folders:
            if not arguments.data:
                users = os.path.basename(folder).replace("M", "000000")
                script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "generate.py")
                subprocess.run([sys.executable, script, folder, "--users", users], check=True)
            tasks, users_there = tasks_of(spark, folder, arguments), users_in(folder)
            rounds = arguments.rounds if users_there < LARGE else 1
            print(f"{users_there:,} users", file=sys.stderr)
            columns[f"{users_there:,} users"] = measured(spark, tasks, rounds, warm=bool(columns))
    spark.stop()
    print("|".join(["", " what ", *(f" {name} " for name in columns), ""]))
    print("| --- |" + " ---: |" * len(columns))
    for name in dict.fromkeys(name for of in columns.values() for name in of):
        cells = [of.get(name) for of in columns.values()]
        texts = [
            "" if one is None else "{:.2f} s ({:.1f}), {:,.0f} MB".format(*one) for one in cells
        ]
        print(f"| {name} | {' | '.join(texts)} |")


def in_batches(spark: Any, rows: int, task: Callable[[], Any]) -> Callable[[], Any]:
    """The task, with Arrow batches of so many rows."""
    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"

    def run() -> Any:
        before = spark.conf.get(setting)
        spark.conf.set(setting, str(rows))
        try:
            return task()
        finally:
            spark.conf.set(setting, before)

    return run


if __name__ == "__main__":
    main()
