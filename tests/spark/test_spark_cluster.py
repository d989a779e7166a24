"""Spark on a cluster of processes: the same bits while executors, workers and tasks fail."""

from __future__ import annotations

import shutil
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rankmill
import rankmill.spark
from data import frame_of, same, tables
from harm import harming
from rankmill.spark import evaluation
from rankmill.spark.exchange import tasks
from repository import SOURCE
from spark_sessions import HARMED

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore"),  # those of Spark are not ours
]

METRICS = ["map@3", "gap", "gap@2", "first_hit"]


@pytest.fixture(scope="module")
def cluster(start: Callable[..., Any], master: str) -> Iterator[Any]:
    session = start(master, **HARMED)
    yield session
    session.stop()  # another application can have its processors


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A virtual environment in an archive, with what the one of the tests has."""
    venv.create(tmp_path / "packed", symlinks=True)
    (there,) = (tmp_path / "packed").glob("lib/python*/site-packages")
    paths = [path for path in sys.path if path.endswith("site-packages")]
    (there / "tests.pth").write_text("\n".join([str(SOURCE.parent), *paths]))
    packed = shutil.make_archive(str(tmp_path / "packed"), "gztar", tmp_path / "packed")
    return Path(packed)


def test_executors_run_the_python_of_an_archive(
    start: Callable[..., Any], master: str, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    session = start(master, **{**HARMED, "spark.archives": f"{archive}#environment"})
    labels, predictions = tables("strings", "wide", "wide")
    both = [frame_of(session, one) for one in (labels, predictions)]

    def prefixes(batches: Any) -> Any:
        import sys

        for batch in batches:
            yield batch.set_column(0, "query", pa.array([sys.prefix] * len(batch), pa.string()))

    where = both[0].select("query").mapInArrow(prefixes, "query string").distinct().collect()
    assert all(one[0].endswith("/environment") for one in where), where
    found = rankmill.spark.evaluate(*both, METRICS, partitions=4)
    session.stop()  # the next one has the Python of the tests
    same(found, rankmill.evaluate(labels, predictions, METRICS))


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="no /proc to find executors in"
)


@needs_proc
@pytest.mark.parametrize("number", ["first", "second"])
@pytest.mark.parametrize("what", ["executor", "python", "exception", "slow", "fetch"])
def test_a_failure_in_a_pass_changes_no_bit(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str, what: str
) -> None:
    shape = "wide" if what in ("executor", "slow") else "long"
    labels, predictions = tables("integers", "wide", shape)
    kind = tasks.score if number == "first" else evaluation.count
    flag = harming(monkeypatch, kind, what, tmp_path)
    both = [frame_of(cluster, one) for one in (labels, predictions)]
    found = rankmill.spark.evaluate(*both, METRICS, partitions=4)
    assert flag.exists()
    same(found, rankmill.evaluate(labels, predictions, METRICS))
