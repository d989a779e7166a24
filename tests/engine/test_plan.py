"""plan(): the facts from footers, and that a run stays within the memory it predicts."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import rankmill
from flat import flat
from rankmill import InputError, UsageError
from rankmill.columns.ids import to_ids
from rankmill.engine.plan import A_THREAD, FRUGAL_THREAD, plan_runs
from rankmill.metrics.records.item_counter import ItemCounter, bytes_of_counter
from rankmill.sources.inputs.inputs import AHEAD_BYTES
from shown import render_plan
from strategies import some

PEAK = """
import resource, sys, rankmill
labels, predictions, metrics = sys.argv[1], sys.argv[2], sys.argv[3].split()
memory = int(sys.argv[4])
rankmill.evaluate(labels, predictions, metrics, threads=2, per_query=False, memory=memory)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
QUERIES = 100_000
LENGTH = 250


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Write lists with 200 MB of items and 100 MB of confidences, in small files."""
    folder = tmp_path_factory.mktemp("planned")
    generator = np.random.default_rng(0)
    labels, predictions = str(folder / "labels.parquet"), str(folder / "predictions.parquet")
    items = pa.array(generator.integers(0, 50, 3 * QUERIES))
    offsets = pa.array(np.arange(0, len(items) + 1, 3, dtype=np.int32))
    lists = pa.ListArray.from_arrays(offsets, items)
    pq.write_table(pa.table({"user_id": np.arange(QUERIES), "items": lists}), labels)
    part = QUERIES // 10
    offsets = pa.array(np.arange(0, part * LENGTH + 1, LENGTH, dtype=np.int32))
    row = pa.array(np.tile(np.arange(LENGTH), part))
    scores = pa.array(np.tile(np.linspace(1, 0, LENGTH, dtype=np.float32), part))
    with pq.ParquetWriter(
        predictions,
        pa.schema(
            {"user_id": pa.int64(), "items": pa.list_(pa.int64()), "scores": pa.list_(pa.float32())}
        ),
    ) as writer:
        for first in range(0, QUERIES, part):
            columns = [
                pa.array(np.arange(first, first + part)),
                pa.ListArray.from_arrays(offsets, row),
                pa.ListArray.from_arrays(offsets, scores),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=writer.schema))
    return labels, predictions


def test_plan_tells_what_is_there(dump: tuple[str, str]) -> None:
    labels, predictions = dump
    told = rankmill.plan(labels, predictions, ["map@12"], threads=2)
    assert told["labels"]["rows"] == QUERIES
    assert told["labels"]["values"] == 3 * QUERIES
    system = told["predictions"]
    assert (system["rows"], system["values"]) == (QUERIES, LENGTH * QUERIES)
    assert system["columns"] == {"query": "user_id", "item": "items"}
    assert 0 < system["bytes"] < Path(predictions).stat().st_size
    more = rankmill.plan(labels, predictions, ["map@12", "gap"], threads=2)
    assert more["memory"] > told["memory"]
    assert more["predictions"]["bytes"] > system["bytes"]
    alone = rankmill.plan(labels, predictions, ["map@12"], threads=1)
    assert told["memory"] - alone["memory"] == A_THREAD + AHEAD_BYTES, "read with the labels"
    frugal = [rankmill.plan(*dump, "map@12", threads=one, memory=1 << 28) for one in (1, 2)]
    assert frugal[1]["memory"] - frugal[0]["memory"] == FRUGAL_THREAD, "nothing is read ahead"


def test_gap_and_metrics_over_a_catalogue_share_the_memory(dump: tuple[str, str]) -> None:
    memory = 40_000_000  # both would take more

    def needed(*metrics: str) -> int:
        how: dict[str, Any] = {"threads": 1, "memory": memory, "per_query": False}
        more = rankmill.plan(*dump, ["map@12", *metrics], **how)["memory"]
        return int(more - rankmill.plan(*dump, "map@12", **how)["memory"])

    assert needed("gap") == memory * 5 // 4
    assert needed("gap", "coverage@8") < memory * 5 // 4


def test_plan_of_arrays_tells_their_bytes() -> None:
    lists = rankmill.arrays.Ragged.from_lists([["x" * 1000, "y" * 1000], ["z" * 1000]])
    planned = rankmill.plan(lists, lists, "map")
    assert planned["labels"]["values"] == 3
    assert 3000 < planned["labels"]["bytes"] < 3200


def test_values_that_are_kept_count_for_each_system() -> None:
    labels = pa.table({"query": range(1000), "items": [[1]] * 1000})

    def needed(systems: int, per_query: bool) -> int:
        runs = {str(name): labels for name in range(systems)}
        return plan_runs(labels, runs, ["map", "ndcg"], per_query=per_query)["memory"]

    for systems in (1, 3):
        kept = needed(systems, True) - needed(systems, False)
        assert kept == 8 * 1000 * 2 * systems


def test_plan_refuses_what_evaluate_refuses(dump: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        rankmill.plan(dump[0], str(tmp_path / "nowhere.parquet"))
    with pytest.raises(UsageError, match="unknown metric"):
        rankmill.plan(dump[0], dump[1], ["mop@3"])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in KiB on Linux")
@pytest.mark.parametrize(
    ("metrics", "memory"),
    [
        pytest.param("map@12", 1, marks=pytest.mark.long),
        ("map@12 gap", 1),
        pytest.param("map@12 gap", 100_000_000, marks=pytest.mark.long),
    ],
)
def test_peak_memory_is_the_planned_one(dump: tuple[str, str], metrics: str, memory: int) -> None:
    """At most that, and at least two thirds: below 512 MiB, batches and buffers are smaller."""
    labels, predictions = dump
    rankmill.evaluate(labels, predictions, metrics.split(), memory=memory)  # compiles if needed
    planned = rankmill.plan(
        labels,
        predictions,
        metrics.split(),
        threads=2,
        memory=memory,
        per_query=False,
    )["memory"]
    peak = peak_of(labels, predictions, metrics, memory)
    assert peak <= planned, f"{peak / 1e6:.0f} MB against {planned / 1e6:.0f} MB planned"
    assert planned <= 1.5 * peak, f"{peak / 1e6:.0f} MB against {planned / 1e6:.0f} MB planned"


def peak_of(labels: str, predictions: str, metrics: str, memory: int) -> int:
    """Return the peak memory of an evaluation in a process of its own."""
    command = [sys.executable, "-c", PEAK, labels, predictions, metrics, str(memory)]
    # A child's peak includes the memory of its parent at the fork, so a small shell forks it.
    done = subprocess.run(
        ["sh", "-c", '"$@"; exit $?', "sh", *command], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.fixture(scope="module")
def many_labels(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Write 4 million sorted queries, 10 labels and a prediction each, in groups of 500,000."""
    folder = tmp_path_factory.mktemp("many")
    paths = []
    for side, length in (("labels", 10), ("predictions", 1)):
        paths.append(str(folder / f"{side}.parquet"))
        part = 1 << 19
        offsets = pa.array(np.arange(0, part * length + 1, length, dtype=np.int32))
        items = pa.array(np.tile(np.arange(length), part))
        schema = pa.schema({"user_id": pa.int64(), "items": pa.list_(pa.int64())})
        with pq.ParquetWriter(paths[-1], schema) as writer:
            for first in range(0, 8 * part, part):
                ids = pa.array(np.arange(first, first + part))
                lists = pa.ListArray.from_arrays(offsets, items)
                writer.write_table(pa.Table.from_arrays([ids, lists], schema=schema))
    return paths[0], paths[1]


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in KiB on Linux")
def test_labels_beyond_memory_keep_to_the_plan(many_labels: tuple[str, str]) -> None:
    labels, predictions = many_labels
    rankmill.evaluate(predictions, predictions, ["map@12"], threads=1)  # compiles if needed
    options = {"threads": 2, "per_query": False}
    planned, held = (
        flat(rankmill.plan, labels, predictions, ["map@12"], memory=memory, **options)
        for memory in (1 << 20, 1 << 30)
    )
    peak = peak_of(labels, predictions, "map@12", 1 << 20)
    assert peak <= planned["memory"], f"{peak / 1e6:.0f} MB, {planned['memory'] / 1e6:.0f} planned"
    # The memory of all labels, without a hash table: 560 MB.
    assert planned["memory"] < 250e6 + (1 << 22) * (10 * 8 + 19), "a bound that cannot fail"
    assert planned["memory"] < held["memory"]


# ------------------------------------------------------------------ a catalogue


@pytest.mark.small
@pytest.mark.parametrize("cutoffs", [(1,), (1, 5, 20)])
@pytest.mark.parametrize("count", [3_000, 5_000, pytest.param(70_000, marks=pytest.mark.lengthy)])
@pytest.mark.parametrize("kind", ["near", "far", "text"])
def test_counters_of_items_hold_what_the_formula_says(
    cutoffs: tuple[int, ...], count: int, kind: str
) -> None:
    """At most that, and at least a quarter; a table of numbers close together has no more."""
    numbers = np.arange(count) * (10**12 if kind == "far" else 1)
    items = pa.array(numbers).cast(pa.string()) if kind == "text" else numbers
    counter = ItemCounter(cutoffs)
    for start in range(0, count, 1000):
        some = to_ids(items[start : start + 1000], "items")
        counter.add(np.arange(len(some.keys) + 1), some)
    held = sum(
        one.nbytes
        for table in (counter._direct, counter._hashed)
        for one in vars(table).values()
        if isinstance(one, np.ndarray)
    )
    text = sum(map(len, items.to_pylist())) if kind == "text" else 0
    planned = bytes_of_counter(count, len(cutoffs), text)
    assert (0 if kind == "near" else planned / 4) < held <= planned + (1 << 17)


@pytest.mark.small
def test_plan_of_a_catalogue(tmp_path: Path) -> None:
    """What every input and every item adds; without a list of items, the most there can be."""
    lists = pa.table({"query": [1, 2], "items": [[1, 2], [3]]})
    train = pa.table({"query": [1, 1, 2], "item": [1, 2, 9]})
    items = pa.table({"item": np.arange(1000)})
    vectors = items.append_column("vector", pa.array([[0.0, 1.0]] * 1000))
    for name, one in (("l", lists), ("t", train), ("i", items), ("v", vectors)):
        pq.write_table(one, tmp_path / f"{name}.parquet")
    both = str(tmp_path / "l.parquet"), str(tmp_path / "l.parquet")
    train, items, vectors = (str(tmp_path / f"{name}.parquet") for name in "tiv")

    def told(metrics: str, **more: str) -> dict[str, object]:
        return flat(rankmill.plan, *both, metrics, threads=3, **more)

    plain = told("map@2")
    assert not {"train", "items", "features", "counts"} & {*plain}
    bare = told("map@2,gini@2,gini@5")
    an_item = 3 * (72 + 3 * 24)  # and behind rank 5
    assert bare["counts"] == {"items": None, "most": 3, "bytes": an_item}
    assert bare["memory"] - plain["memory"] == an_item  # 3 predictions, each on one thread
    asked = told("map@2,gini@2,gini@5", items=items)
    assert asked["counts"] == {"items": 1000, "most": None, "bytes": 3 * (72 + 2 * 24)}
    assert asked["memory"] - plain["memory"] == 1000 * (24 + 72 + 2 * 24)
    assert asked["items"]["rows"] == asked["items"]["values"] == 1000
    hits = told("map@2,coverage_of_labels@2", items=items)
    assert hits["counts"]["bytes"] == 2 * 3 * (72 + 24)
    far = told("map@2,ild_cosine", features=vectors)
    assert far["memory"] - plain["memory"] == 1000 * (24 + 2 * 8 * 2)
    assert told("map@2", train=train)["memory"] - plain["memory"] == 3 * (35 + 8)


def items_of(kind: str, numbers: np.ndarray) -> Any:
    if kind == "text":
        return pc.binary_join_element_wise(
            "the same article ", pa.array(numbers).cast("string"), ""
        )
    return pa.array(numbers if kind == "close" else numbers * 7_919_000_001)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in KiB on Linux")
@pytest.mark.parametrize("kind", some(["scattered", "close", "text"], 3))
def test_peak_memory_is_within_the_bound_of_unknown_items(kind: str, tmp_path: Path) -> None:
    """Each prediction may be an item of its own, and here each is."""
    queries, each = 100_000, 15
    offsets = np.arange(0, queries * each + 1, each, dtype=np.int32)
    numbers = np.random.default_rng(0).permutation(queries * each)
    lists = pa.ListArray.from_arrays(offsets, items_of(kind, numbers))
    first = pa.ListArray.from_arrays(np.arange(queries + 1), items_of(kind, numbers[::each]))
    for name, one in (("labels", first), ("predictions", lists)):
        table = pa.table({"user_id": np.arange(queries), "items": one})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=4_000)
    both = [str(tmp_path / f"{name}.parquet") for name in ("labels", "predictions")]
    metrics = "coverage@8 coverage_of_labels@8 gini@8"
    how: dict[str, Any] = {"threads": 2, "per_query": False, "memory": 10**10}
    planned = rankmill.plan(*both, metrics.split(), **how)
    values = queries * (each + 1)
    assert planned["counts"]["items"] is None
    assert planned["counts"]["most"] == (queries * each if kind == "close" else values)
    peaks = []
    for asked in (metrics, "map@8"):
        peaks.append(peak_of(*both, asked, how["memory"]))
    counts = planned["memory"] - rankmill.plan(*both, "map@8", **how)["memory"]
    assert peaks[0] <= planned["memory"]
    assert peaks[0] - peaks[1] <= counts


@pytest.mark.small
def test_most_items_of_footers(tmp_path: Path) -> None:
    """Bounds in footers are used if all row groups have them; text in frames has no bound."""

    def most(*items: Any, **how: Any) -> tuple[int | None, str]:
        kind = how.pop("kind", None)
        for place, one in enumerate(items):
            table = pa.table({"user_id": [1], "items": pa.array([one], kind)})
            pq.write_table(table, tmp_path / f"{place}", **how)
        files = [str(tmp_path / str(place)) for place in range(2)]
        planned = plan_runs(files[0], {"": files[1]}, "coverage@2")
        return planned["counts"]["most"], render_plan(planned, "table")

    assert most([5, 5, 5], [6, 5, 9, 9])[0] == 9 - 5 + 1
    assert most([-5], [2**62])[0] == 2
    wide = [2**64 - 2] * 3, [2**64 - 1]
    assert most(*wide, kind=pa.list_(pa.uint64()))[0] == 2
    assert most([5, 5, 5], [6, 5], write_statistics=False)[0] == 5
    found, shown = most(["a", "a"], ["b"])
    assert found == 3
    assert "memory at most" in shown
    assert "at most 3 items" in shown
    files = str(tmp_path / "0"), str(tmp_path / "1")
    frame = pa.table({"user_id": [1], "items": [["a"]]})
    planned = plan_runs(files[0], {"a": files[1], "b": frame}, "coverage@2")
    assert planned["counts"]["most"] is None
    shown = render_plan(planned, "table")
    assert "memory expected" in shown
    assert "not included" in shown
