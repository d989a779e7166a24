"""Rows that are not shuffled: labels in each task, or both sides bucketed by query."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import rankmill
import rankmill.spark
from data import frame_of, same, tables
from fake_frames import FakeFrame
from flat import flat, job_of
from rankmill.cli.spark import command
from rankmill.engine.parts import evaluate_part
from rankmill.spark import broadcast as broadcasting
from rankmill.spark import placement
from rankmill.spark.broadcast import broadcast
from rankmill.spark.exchange.partitions import partition_count
from rankmill.spark.exchange.spark_request import SparkRequest, request_of
from rankmill.spark.placement import placing_of
from strategies import examples

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours

METRICS = ["map@3", "gap", "gap@2", "first_hit", "ndcg"]


def request_for(labels: Any, predictions: Any, metrics: Any, **options: Any) -> SparkRequest:
    """Return the request to score one system."""
    partitions = options.pop("partitions", None)
    job, *inputs = job_of(labels, {"": predictions}, metrics, options, part=True, keep_values=False)
    return request_of(*inputs, job, partitions)


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How rows came to the tasks, in the order of the jobs."""
    found: list[str] = []
    for name in ("broadcast", "_in_place", "_shuffled"):
        usual = getattr(placement, name)

        def noted(*arguments: Any, name: str = name, usual: Any = usual) -> Any:
            found.append(name.strip("_"))
            return usual(*arguments)

        monkeypatch.setattr(placement, name, noted)
    return found


def rows(of: list[tuple[int | None, list[int]]]) -> pa.Table:
    kinds = pa.schema({"query": pa.int64(), "item": pa.list_(pa.int64())})
    return pa.Table.from_pylist([{"query": query, "item": items} for query, items in of], kinds)


# ------------------------------------------------------------------ labels in each task


@settings(max_examples=examples(60))
@given(
    seed=st.integers(0, 1 << 32),
    kind=st.sampled_from(["integers", "strings"]),
    shape=st.sampled_from(["wide", "long"]),
    weighted=st.booleans(),
    at_once=st.sampled_from([1 << 10, 1 << 20]),
    twice=st.booleans(),
    labelled=st.booleans(),
)
def test_any_placing_of_predictions_gives_the_state_of_all(
    seed: int, kind: str, shape: str, weighted: bool, at_once: int, twice: bool, labelled: bool
) -> None:
    draw = random.Random(seed)
    labels, predictions = tables(kind, shape, "wide", seed)
    metrics, options = ["map@3", "gap", "gap@2", "recall"], {"weight": None}
    if weighted:
        metrics, options = ["map", "p@2"], {"weight": "weight"}
    batch = predictions.combine_chunks().to_batches()[0]
    numbers = list(range(len(batch)))
    if twice:  # a query has two rows
        queries = predictions["query"].to_pylist()
        known = set(labels["query"].to_pylist())
        numbers.append(draw.choice([n for n in numbers if (queries[n] in known) == labelled]))
    parts: list[list[Any]] = [[] for _ in range(4)]
    for number in numbers:
        draw.choice(parts).append(batch.slice(number, 1))
    frames = FakeFrame([labels.to_batches()], labels.schema), FakeFrame(parts, batch.schema)
    request = request_for(frames[0], frames[1], metrics, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(broadcasting, "AT_ONCE", at_once)
        patch.setattr(broadcasting, "FAN", 1)  # so that keys are checked in several groups
        patch.setattr(broadcasting, "partition", itertools.count().__next__)
        found = None
        with suppress(rankmill.InputError) if twice else nullcontext():  # both rows in one table
            found = broadcast(request, 1, labels.select(list(request.sides[0].slots)))
    assert (found is None) == twice
    if found is not None:
        expected = flat(evaluate_part, labels, predictions, metrics, **options)
        expected = dataclasses.replace(expected, origin=None).to_row()
        row = found.value.to_row()
        assert {k: str(v) for k, v in row.items()} == {k: str(v) for k, v in expected.items()}
        assert (found.label_rows, found.rows) == (len(labels), len(predictions))


@pytest.mark.parametrize("kind", ["integers", "strings"])
def test_labels_that_fit_go_to_the_tasks(spark: Any, ways: list[str], kind: str) -> None:
    shape = "wide" if kind == "integers" else "long"
    both = tables(kind, shape, "wide")
    options: dict[str, Any] = {"semantics": {"unlabelled": "zero"}}
    frames = [frame_of(spark, one) for one in both]
    found = flat(rankmill.spark.evaluate, frames[0], frames[1].repartition(5), METRICS, **options)
    assert ways == ["broadcast"]
    same(found, flat(rankmill.evaluate, *both, METRICS, **options))


def test_each_system_is_placed_by_itself(spark: Any, ways: list[str]) -> None:
    labels, wide = tables("integers", "wide", "wide")
    _, long = tables("integers", "wide", "long", seed=1)
    frames = {name: frame_of(spark, one) for name, one in (("a", wide), ("b", long))}
    of_labels = frame_of(spark, labels)
    found = rankmill.spark.evaluate_runs(of_labels, frames, METRICS)
    assert ways == ["broadcast", "shuffled"]
    for name, one in rankmill.evaluate_runs(labels, {"a": wide, "b": long}, METRICS).items():
        same(found[name], one)
    for per_query, how in ((False, "broadcast"), (True, "shuffle")):
        planned = rankmill.spark.plan(of_labels, frames["a"], "map", per_query=per_query)
        assert planned["predictions"]["placing"] == how


def test_long_predictions_stay_if_spark_knows_that_queries_are_together(
    spark: Any, ways: list[str]
) -> None:
    both = tables("strings", "long", "long")
    labels, predictions = (frame_of(spark, one) for one in both)
    found = rankmill.spark.evaluate(labels, predictions.repartition(4, "query"), METRICS)
    assert ways == ["broadcast"]
    same(found, rankmill.evaluate(*both, METRICS))
    for other in (predictions.repartition(4, "item"), predictions.repartition(4)):
        assert placing_of(request_for(labels, other, "map"), 1).how == "shuffle"


@pytest.mark.parametrize("query", [1, 7])  # with labels, and without
def test_a_query_in_two_partitions_ends_in_the_error_of_the_shuffle(
    spark: Any, ways: list[str], query: int
) -> None:
    labels = frame_of(spark, rows([(1, [1]), (2, [2])]))
    one = frame_of(spark, rows([(query, [1]), (2, [2])])).coalesce(2)
    # Spark 4.3 keeps a union of single partitions in one.
    other = frame_of(spark, rows([(query, [1])])).coalesce(2)
    with pytest.raises(rankmill.InputError, match=f"query {query}"):
        rankmill.spark.evaluate(labels, one.union(other), "map")
    assert ways == ["broadcast", "shuffled"]


@pytest.mark.parametrize(
    ("labels", "predictions", "semantics", "message"),
    [
        ([(1, [1]), (None, [2])], [(1, [1])], {}, "null"),
        ([(1, [1]), (1, [2])], [(1, [1])], {}, "query 1"),
        ([(4, [1]), (4, [2])], [(1, [1])], {}, "query 4"),
        ([(1, [1])], [(1, [1]), (None, [2])], {}, "null.*in partition"),
        ([(1, [1]), (2, [1])], [(1, [1])], {"unpredicted": "error"}, "query 2 has labels but no"),
        ([(1, [1])], [(1, [1]), (5, [1])], {"unlabelled": "error"}, "query 5 .* not among"),
    ],
)
def test_wrong_data_is_one_clear_error(
    labels: Any, predictions: Any, semantics: Any, message: str
) -> None:
    both = [FakeFrame([one.to_batches()], one.schema) for one in (rows(labels), rows(predictions))]
    request = request_for(both[0], both[1], "map", semantics=semantics)
    with pytest.raises(rankmill.InputError, match=message):
        broadcast(request, 1, rows(labels))


# ------------------------------------------------------------------ both sides in place


@pytest.fixture
def unsent(spark: Any) -> Iterator[Any]:
    """The session, in which no labels are sent to all tasks."""
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", -1)
    yield spark
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["integers", "strings"])
def test_tables_bucketed_by_query_are_not_shuffled(
    unsent: Any, ways: list[str], tmp_path: Any, kind: str
) -> None:
    both = tables(kind, "wide", "wide")
    frames = []
    for name, one in zip(("labels", "predictions"), both, strict=True):
        written = frame_of(unsent, one).write.option("path", str(tmp_path / name))
        written.bucketBy(3, "query").saveAsTable(f"{name}_{kind}")
        frames.append(unsent.table(f"{name}_{kind}"))
    found = rankmill.spark.evaluate(*frames, METRICS)
    assert ways == ["in_place"]
    same(found, rankmill.evaluate(*both, METRICS))
    rows = placing_of(request_for(frames[0], frames[1], METRICS), 1).rows
    tasks = rows.mapInArrow(lambda batches: batches, rows.schema)
    plan = tasks._jdf.queryExecution().executedPlan().toString()
    assert "MapInArrow" in plan
    assert "Exchange" not in plan


def test_frames_partitioned_by_query_are_not_shuffled_again(unsent: Any, ways: list[str]) -> None:
    labels, predictions = tables("integers", "wide", "wide")
    twice = pa.concat_tables([predictions, predictions.slice(0, 1)])
    of_labels, of_predictions, of_twice = (
        frame_of(unsent, one).repartition(4, "query") for one in (labels, predictions, twice)
    )
    same(
        rankmill.spark.evaluate(of_labels, of_predictions, METRICS),
        rankmill.evaluate(labels, predictions, METRICS),
    )
    assert ways == ["in_place"]
    query = predictions["query"][0]
    for found, message in (
        ((of_labels, of_twice), f"predictions: query {query} appears a second time"),
        ((of_twice, of_labels), f"labels: query {query} appears a second time"),
    ):
        with pytest.raises(rankmill.InputError, match=message):
            rankmill.spark.evaluate(*found, "map")
    assert ways == ["in_place"] * 3
    other = request_for(of_labels, of_predictions.repartition(3, "query"), "map")
    assert placing_of(other, 1).how == "shuffle"


def test_partitions_too_large_for_a_task_are_shuffled(unsent: Any) -> None:
    both = [frame_of(unsent, one) for one in tables("integers", "wide", "wide")]
    both = [one.repartition(4, "query") for one in both]
    request = request_for(both[0], both[1], "map")
    assert placing_of(request, 1).tasks == 4
    size = sum(request.sizes)
    assert placing_of(request, 1, size // 4).how == "in place"
    assert placing_of(request, 1, size // 4 - 1).how == "shuffle"


# ------------------------------------------------------------------ sizes


def test_what_spark_knows_of_sizes_decides(spark: Any, tmp_path: Any) -> None:
    spark.range(100_000).selectExpr("id as query", "array(id) as item").write.parquet(
        str(tmp_path / "some")
    )
    frame = spark.read.parquet(str(tmp_path / "some"))

    def request(labels: Any, predictions: Any, **options: Any) -> Any:
        return request_for(labels, predictions, "map", **options)

    def how(*arguments: Any, **options: Any) -> str:
        return placing_of(request(*arguments, **options), 1).how

    size = request(frame, frame).sizes[0]
    on_disk = sum(file.stat().st_size for file in (tmp_path / "some").glob("*.parquet"))
    assert size == on_disk
    # A join is not taken to be as large as both sides multiplied.
    assert request(frame.join(frame.select("query"), "query"), frame).sizes == [2 * size, size]
    assert request(frame, frame).partitions == spark.sparkContext.defaultParallelism
    # The rows of an RDD have no size that is known; then there are as many as Spark would make.
    unknown = spark.createDataFrame(frame.rdd, frame.schema)
    assert request(frame, unknown).sizes == [size, None]
    assert request(frame, unknown).partitions == 3
    assert how(frame, unknown) == "broadcast"
    assert how(unknown, frame) == "shuffle"
    assert how(frame, frame, partitions=4) == "shuffle"
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", -1)
    assert how(frame, frame) == "shuffle"
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)


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


# ------------------------------------------------------------------ the plan


def test_a_plan_tells_what_would_move(unsent: Any, tmp_path: Any) -> None:
    labels, predictions = tables("integers", "wide", "wide")
    paths = [str(tmp_path / name) for name in ("labels.parquet", "a.parquet", "b.parquet")]
    for path, one in zip(paths, (labels, predictions, predictions), strict=True):
        pq.write_table(one, path)
    of_labels, one, other = map(unsent.read.parquet, paths)
    sizes = request_for(of_labels, one, "map").sizes
    runs = {"a": one, "b": other.repartition(2)}
    found = rankmill.spark.plan_runs(of_labels, runs, ["map", "gap"], partitions=5)
    assert found["labels"]["bytes"] == sizes[0]
    a, b = found["predictions"].values()
    assert (a["placing"], a["tasks"]) == (b["placing"], b["tasks"]) == ("shuffle", 5)
    assert a["shuffled"] == a["bytes"] + sizes[0]
    assert b["shuffled"] == b["bytes"] == a["bytes"]
    whole = a["shuffled"] + b["shuffled"]
    assert found["task_memory"] == (320 << 20) + 16 * (whole // 5)
    assert found["driver_memory"] == 8 * sizes[0]
    unsent.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    sent = rankmill.spark.plan(of_labels, one, "map")
    assert (sent["predictions"]["placing"], sent["predictions"]["shuffled"]) == ("broadcast", 0)
    assert sent["task_memory"] == (320 << 20) + 4 * (4 * sizes[0] + (64 << 20))
    assert sent["driver_memory"] == 8 * sizes[0]
    unknown = unsent.createDataFrame(one.rdd, one.schema)
    assert rankmill.spark.plan(unknown, one, "map")["task_memory"] is None

    shown = CliRunner().invoke(command, ["evaluate", *paths, "-m", "map", "--plan"])
    assert shown.exit_code == 0, shown.output
    assert "broadcast" in shown.output
    told = ["--plan", "--partitions", "3", "--format", "json"]
    shown = CliRunner().invoke(command, ["evaluate", *paths[:2], *told])
    (only,) = json.loads(shown.output)["predictions"].values()
    assert only["tasks"] == 3
