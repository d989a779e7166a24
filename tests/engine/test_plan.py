"""plan(): the facts from footers, and that a run keeps to its limit of memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from flat import flat
from rankmill import InputError, UsageError

PEAK = """
import resource, sys, rankmill
labels, predictions, metrics = sys.argv[1], sys.argv[2], sys.argv[3].split()
memory = int(sys.argv[4])
how = {"threads": 2, "per_query": False, "memory": memory}
try:
    rankmill.evaluate(labels, predictions, metrics, **how)
except rankmill.ResourceError as error:
    print(error, file=sys.stderr)
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
    told = rankmill.plan(labels, predictions, ["map@12"])
    assert told["labels"]["rows"] == QUERIES
    assert told["labels"]["values"] == 3 * QUERIES
    system = told["predictions"]
    assert (system["rows"], system["values"]) == (QUERIES, LENGTH * QUERIES)
    assert system["columns"] == {"query": "user_id", "item": "items"}
    assert 0 < system["bytes"] < Path(predictions).stat().st_size
    more = rankmill.plan(labels, predictions, ["map@12", "gap"])
    assert more["predictions"]["bytes"] > system["bytes"]


def test_plan_of_arrays_tells_their_bytes() -> None:
    lists = rankmill.arrays.Ragged.from_lists([["x" * 1000, "y" * 1000], ["z" * 1000]])
    planned = rankmill.plan(lists, lists, "map")
    assert planned["labels"]["values"] == 3
    assert 3000 < planned["labels"]["bytes"] < 3200


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
        ("map@12 gap", 1 << 26),
        pytest.param("map@12 gap", 100_000_000, marks=pytest.mark.long),
    ],
)
@pytest.mark.long
def test_peak_memory_keeps_to_the_limit(dump: tuple[str, str], metrics: str, memory: int) -> None:
    """The program and the batches take 300 MB, of which 100 MB are taken in any case."""
    rankmill.evaluate(*dump, metrics.split(), memory=memory)  # compiles if needed
    peak = peak_of(*dump, metrics, memory)
    assert 100e6 < peak <= 300e6 + memory, f"{peak / 1e6:.0f} MB"


def peak_of(labels: str, predictions: str, metrics: str, memory: int) -> int:
    """Return the peak memory of an evaluation in a process of its own."""
    command = [sys.executable, "-c", PEAK, labels, predictions, metrics, str(memory)]
    # A child's peak includes the memory of its parent at the fork, so a small shell forks it.
    done = subprocess.run(
        ["sh", "-c", '"$@"; exit $?', "sh", *command], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in KiB on Linux")
def test_counts_of_items_are_refused_before_they_are_joined(tmp_path: Path) -> None:
    """3.6 million distinct items of 20 bytes take 170 MB, and to join them as much again."""
    queries = 300_000
    items = pa.array([f"item-{number:015d}" for number in range(12 * queries)])
    paths = []
    for width in (1, 12):
        paths.append(str(tmp_path / f"{width}.parquet"))
        offsets = pa.array(np.arange(0, width * queries + 1, width, dtype=np.int32))
        lists = pa.ListArray.from_arrays(offsets, items[: width * queries])
        table = pa.table({"user_id": np.arange(queries), "items": lists})
        pq.write_table(table, paths[-1], row_group_size=20_000)
    beside = peak_of(*paths, "map@12", 1 << 27)
    with pytest.raises(rankmill.ResourceError, match="counts of items take more than 67MB"):
        rankmill.evaluate(*paths, "gini@10", memory=1 << 27, per_query=False)
    peak = peak_of(*paths, "gini@10", 1 << 27)
    assert peak - beside <= 400e6, f"{(peak - beside) / 1e6:.0f} MB"


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
def test_labels_beyond_memory_keep_to_the_limit(many_labels: tuple[str, str]) -> None:
    labels, predictions = many_labels
    rankmill.evaluate(predictions, predictions, ["map@12"], threads=1)  # compiles if needed
    # All labels take 560 MB.
    peak, memory = peak_of(labels, predictions, "map@12", 1 << 27), 1 << 27
    assert peak <= 300e6 + memory, f"{peak / 1e6:.0f} MB"


@pytest.mark.small
def test_plan_of_a_catalogue(tmp_path: Path) -> None:
    items = pa.table({"item": np.arange(1000)})
    tables = {
        "lists": pa.table({"query": [1, 2], "items": [[1, 2], [3]]}),
        "train": pa.table({"query": [1, 1, 2], "item": [1, 2, 9]}),
        "items": items,
        "features": items.append_column("vector", pa.array([[0.0, 1.0]] * 1000)),
    }
    for name, one in tables.items():
        pq.write_table(one, tmp_path / name)
    more = {name: str(tmp_path / name) for name in tables if name != "lists"}
    both = [str(tmp_path / "lists")] * 2
    assert not {*more} & {*rankmill.plan(*both, "map@2")}
    asked = flat(rankmill.plan, *both, "map@2,novelty@2,ild_cosine", **more)
    assert [asked[name]["rows"] for name in more] == [3, 1000, 1000]
