"""rankmill on Spark beside the shuffle alone and Spark's own evaluation, warm, in one session.

python benchmarks/spark.py DATA [--rounds 3] [--rivals] [--batches] [--skew] [--placing] [--only X]

DATA is a folder of generate.py. --rivals adds RankingMetrics, SQL functions on arrays, and SQL with
joins and windows; --batches, small Arrow batches; --skew, a query with ten million predictions;
--placing, the same rows shuffled, with all labels in each task, and in tables of buckets.
Times are medians, of the clock and of the processors of Spark, its Python and this process. The
bytes that a task shuffles are those that Spark counted, compressed, in the last round.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession, Window, functions

import rankmill
import rankmill.spark
from rankmill.engine.cuts import job_of
from rankmill.spark.exchange.layout import shuffled
from rankmill.spark.exchange.spark_request import request_of

METRICS = ["map@12", "first_hit@5"]


def bytes_of(batches: Any) -> Any:
    size = sum(batch.nbytes for batch in batches)
    yield pa.RecordBatch.from_pydict({"bytes": [size]})


def shuffle_alone(labels: Any, predictions: Any, metrics: list[str]) -> Any:
    """The rows that rankmill shuffles, given to Python, which does nothing with them."""
    sides = rankmill.Labels(labels), {"": rankmill.Predictions(predictions)}
    job = job_of(metrics, sides[0], "default", None, (), (), part=True)
    request = request_of(*sides, job)
    rows = shuffled(request.frames, request.sides, request.partitions)
    return rows.mapInArrow(bytes_of, "bytes long").toArrow()


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


def placings(spark: Any, labels: Any, predictions: Any, folder: str) -> dict[str, Any]:
    """The same evaluation by each way that rows come to their tasks, with all labels and few."""
    tables = []
    for name, frame in (("bucketed_labels", labels), ("bucketed_predictions", predictions)):
        written = frame.write.mode("overwrite").option("path", os.path.join(folder, name))
        written.bucketBy(8, "user_id").saveAsTable(name)
        tables.append(spark.table(name))
    few = labels.where("user_id % 20 = 0").cache()
    few.count()

    def unsent() -> Any:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", -1)
        try:
            return rankmill.spark.evaluate(*tables, METRICS).metrics
        finally:
            spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")

    def score(labels: Any, partitions: int | None = None) -> Any:
        found = rankmill.spark.evaluate(labels, predictions, METRICS, partitions=partitions)
        return found.metrics

    return {
        "shuffled": lambda: score(labels, partitions=4),
        "labels in each task": lambda: score(labels),
        "in buckets": unsent,
        "few labels, shuffled": lambda: score(few, partitions=4),
        "few labels in each task": lambda: score(few),
    }


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


def shuffled_bytes(spark: Any) -> int:
    """What the executors have written for shuffles so far."""
    time.sleep(0.5)  # Spark counts behind
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(executors.apply(at).totalShuffleWrite() for at in range(executors.size()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", metavar="X", default="", help="the tasks with X in their name")
    for name in ("--rivals", "--batches", "--skew", "--placing"):
        parser.add_argument(name, action="store_true")
    arguments = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
    builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    paths = [os.path.join(arguments.data, f"{name}.parquet") for name in ("labels", "predictions")]
    both = [spark.read.parquet(path) for path in paths]
    tasks: dict[str, Callable[[], Any]] = {
        "shuffle alone": lambda: shuffle_alone(*both, METRICS),
        "rankmill.spark": lambda: rankmill.spark.evaluate(*both, METRICS).metrics,
        "shuffle with confidences": lambda: shuffle_alone(*both, ["gap"]),
        "rankmill.spark, gap too": lambda: (
            rankmill.spark.evaluate(*both, [*METRICS, "gap"]).metrics
        ),
    }
    if arguments.rivals:
        tasks["RankingMetrics"] = lambda: ranking_metrics(*both)
        tasks["SQL on arrays"] = lambda: array_functions(*both)
        tasks["SQL with joins and windows"] = lambda: windows(*both)
    if arguments.placing:
        tasks |= placings(spark, *both, os.path.join(arguments.data, "buckets"))
    if arguments.batches:
        for name in ("shuffle alone", "rankmill.spark"):
            tasks[f"{name}, batches of 100"] = in_batches(spark, 100, tasks[name])
    if arguments.skew:
        both = list(skewed(spark, 10_000_000))
    print(rankmill.evaluate(*paths, [*METRICS, "gap"]).metrics)
    tasks = {name: task for name, task in tasks.items() if arguments.only in name}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in tasks}
    written = dict.fromkeys(tasks, 0)
    for round_ in range(arguments.rounds + 1):  # the first is not counted
        for name, task in tasks.items():
            before = shuffled_bytes(spark)
            began, used = time.perf_counter(), processor_seconds()
            found = task()
            took = time.perf_counter() - began, processor_seconds() - used
            written[name] = shuffled_bytes(spark) - before
            if round_:
                times[name].append(took)
            elif not isinstance(found, pa.Table):
                print(f"{name}: {found}", flush=True)
    for name, pairs in times.items():
        clock, processors = (statistics.median(each) for each in zip(*pairs, strict=True))
        moved = f", shuffled {written[name] / 1e6:,.1f} MB" if written[name] else ""
        print(f"{name}: {clock:.2f} s, processors {processors:.2f} s{moved}")


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
