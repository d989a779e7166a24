"""The memory of a task: what its Python has at most, beside what docs/spark.md says."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill.spark
from harm import made_by
from rankmill.spark.evaluation import count
from rankmill.spark.exchange import tasks
from rankmill.spark.exchange.tasks import score

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = [
    pytest.mark.long,  # with a session of its own
    pytest.mark.filterwarnings("ignore"),  # those of Spark are not ours
    pytest.mark.skipif(
        not os.access("/proc/self/clear_refs", os.W_OK), reason="memory is told as by Linux"
    ),
]
METRICS = ["map@12", "gap"]
ROWS, LENGTH = 1_800_000, 12
# Python, numba, pyarrow and the compiled kernels; and how often a task holds its rows at most.
A_TASK, TIMES_HELD = 320 << 20, 4


@pytest.fixture(scope="module")
def spark(start: Callable[..., Any]) -> Any:
    """A session whose tasks have a process each, without what others have left in it."""
    return start("local[2]", **{"spark.python.worker.reuse": "false"})


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Labels and predictions by their shape; nearly all long rows are those of one query."""
    draw = np.random.default_rng(0)
    item = draw.integers(0, 4000, ROWS)  # files hold such ids in less than memory does
    score = (draw.permutation(ROWS) / 2.0**22).astype(np.float32)
    offsets = np.arange(0, ROWS + 1, LENGTH, dtype=np.int32)
    query = np.arange(ROWS // LENGTH)
    order, right = draw.permutation(ROWS), draw.random(ROWS) < 0.2
    alone = np.maximum(np.arange(ROWS) - ROWS * 9 // 10, 0)
    shapes = {
        "long": [
            {"query": alone[right], "item": np.flatnonzero(right)},
            {"query": alone[order], "item": order, "score": score},
        ],
        "wide": [
            {"query": query, "item": lists(offsets // 4, item)},
            {
                "query": query,
                "item": lists(offsets, item),
                "score": lists(offsets, -np.sort(-score)),
            },
        ],
    }
    folder, found = tmp_path_factory.mktemp("memory"), {}
    for shape, both in shapes.items():
        found[shape] = [str(folder / f"{shape}-{number}") for number in range(2)]
        for path, columns in zip(found[shape], both, strict=True):
            pq.write_table(pa.table(columns), path)
    return found


def lists(offsets: np.ndarray, values: np.ndarray) -> Any:
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))


def recorded(folder: str, usual: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function like `function_of`, whose tasks leave a file with their peak."""

    def function_of(task: Any, *known: Any) -> Any:
        run = usual(task, *known)
        made = made_by(task, *known)
        if made not in (score, count):
            return run

        def measured(batches: Iterator[Any]) -> Iterator[Any]:
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins again
            size = 0

            def counted() -> Iterator[Any]:
                nonlocal size
                for batch in batches:
                    size += batch.nbytes
                    yield batch

            yield from run(counted())
            status = Path("/proc/self/status").read_text()
            peak = int(status.partition("VmHWM:")[2].split()[0]) << 10
            name = f"{made.__name__}-{uuid.uuid4().hex}"
            Path(folder, name).write_text(f"{size} {peak}")

        return measured

    return function_of


@pytest.mark.parametrize("shape", ["long", "wide"])
def test_a_task_holds_its_rows_four_times_at_most(
    spark: Any,
    files: dict[str, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shape: str,
) -> None:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not have this file
    monkeypatch.setattr(tasks, "function_of", recorded(str(tmp_path), tasks.function_of))
    frames = [spark.read.parquet(path) for path in files[shape]]
    rankmill.spark.evaluate(*frames, METRICS, partitions=1)
    peaks = {file.name: tuple(map(int, file.read_text().split())) for file in tmp_path.iterdir()}
    assert len({name.partition("-")[0] for name in peaks}) == 2  # both passes
    peak, size = max(peak for _, peak in peaks.values()), max(size for size, _ in peaks.values())
    assert size > 20_000_000
    assert peak <= A_TASK + TIMES_HELD * size
