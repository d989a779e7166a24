"""Runs logged to an MLflow server: a real one, started here and read back."""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import tells

from cli_runs import FIRST_HIT, MAP, write_dump
from rankmill.errors import install
from rankmill.nightly.rules.reports import names_for_mlflow

HAS_SERVER = importlib.util.find_spec("mlflow") and importlib.util.find_spec("mlflow.server")
needs_server = pytest.mark.skipif(
    not HAS_SERVER, reason="the server of MLflow is in the extra test-mlflow"
)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a tracking server with a SQLite store."""
    folder, port = tmp_path_factory.mktemp("mlflow"), free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder}/runs.db"]
    command += ["--artifacts-destination", str(folder / "artifacts")]
    url = f"http://127.0.0.1:{port}"
    with (folder / "log").open("w") as log:
        started = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=folder, start_new_session=True
        )
        try:
            for _ in range(600):
                try:
                    with urllib.request.urlopen(f"{url}/health", timeout=1):
                        break
                except OSError:
                    assert started.poll() is None, (folder / "log").read_text()
                    time.sleep(0.1)
            yield url
        finally:
            os.killpg(started.pid, 15)  # a group of its own: the server and its workers
            started.wait(30)


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
        monkeypatch.delenv(name)


@needs_server
@pytest.mark.filterwarnings("default")
def test_a_run_is_logged_and_read_back(
    server: str, tmp_path: Path, run: Any, monkeypatch: Any
) -> None:
    import mlflow

    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "nightly")
    labels, predictions = write_dump(tmp_path)
    more = ("--tag", "model=a7", "--tag", "a(b)=c", "-o", tmp_path / "result.json")
    metrics = ("-m", "map@3", "-m", "first_hit", "-m", "gap", "-m", "map(rel=1)@3")
    code, _, error = run("evaluate", labels, predictions, *metrics, *more, f"--mlflow={server}")
    assert (code, error) == (0, "")
    client = mlflow.MlflowClient(tracking_uri=server)
    experiment = client.get_experiment_by_name("nightly")
    (one,) = client.search_runs([experiment.experiment_id])
    assert one.info.status == "FINISHED"
    found = one.data.metrics
    assert found["map_at_3"] == pytest.approx(MAP)
    assert found["first_hit"] == pytest.approx(FIRST_HIT)
    assert found["map_at_3/standard_error"] > 0
    assert found["queries"] == 3
    assert found["audit/queries_only_predicted"] == 1
    assert "map_rel_1_at_3" in found
    assert "gap/standard_error" not in found
    assert one.data.params["semantics.unpredicted"] == "zero"
    assert one.data.params["gain_function"] == "linear"
    assert one.data.params["labels.source"] == str(labels)
    assert one.data.params["predictions.rows"] == "3"
    assert one.data.tags["model"] == "a7"
    assert one.data.tags["a_b"] == "c"
    assert re.fullmatch(r"\d+\.\d+\.\d+", one.data.tags["rankmill.version"])
    artifacts = [each.path for each in client.list_artifacts(one.info.run_id)]
    assert artifacts == ["result.json"]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
    kept = mlflow.MlflowClient().download_artifacts(one.info.run_id, "result.json", str(tmp_path))
    assert Path(kept).read_text() == (tmp_path / "result.json").read_text()
    # A comparison, by the address of the environment.
    other = tmp_path / "other.parquet"
    other.write_bytes(predictions.read_bytes())
    options = ("-m", "map@3", "--history", tmp_path / "h", "--mlflow")
    assert run("compare", labels, predictions, other, *options)[0] == 0
    newest = client.search_runs([experiment.experiment_id])[0]
    assert newest.data.metrics["other/map_at_3"] == pytest.approx(MAP)
    assert newest.data.params["other/predictions.source"] == str(other)
    (kept_run,) = (tmp_path / "h").iterdir()
    assert newest.info.run_name == kept_run.stem


@pytest.mark.filterwarnings("default")
def test_a_server_that_is_down_is_told_when_all_is_written(tmp_path: Path, run: Any) -> None:
    pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    labels, predictions = write_dump(tmp_path)
    address = f"http://me:secret@127.0.0.1:{free_port()}"
    more = ("-o", tmp_path / "out.json", "--history", tmp_path / "h", f"--mlflow={address}")
    code, _, error = run("evaluate", labels, predictions, "-m", "map@3", *more)
    assert code == 4
    tells(error, ["could not be logged to MLflow at http://127.0.0.1", "are written"])
    assert "secret" not in error
    assert (tmp_path / "out.json").exists()
    assert len([*(tmp_path / "h").iterdir()]) == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--mlflow",), "set MLFLOW_TRACKING_URI"),
        (("--mlflow", "predictions.parquet"), "put --mlflow after all files"),
    ],
)
def test_an_address_is_needed(options: tuple[str, ...], told: str, run: Any) -> None:
    code, _, error = run("evaluate", "labels.parquet", "p.parquet", *options)
    assert code == 2
    tells(error, [told])


def test_a_missing_mlflow_says_what_to_install(run: Any, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    code, _, error = run("evaluate", "l", "p", "--mlflow=http://127.0.0.1:1")
    assert code == 2
    tells(error, [install("mlflow")])


def test_names_are_legal_and_different() -> None:
    names = ["map@12", "map 12", "map_at_12", "é/../x", "P(rel=2)@10", "..", "a/b"]
    legal = names_for_mlflow(names)
    assert [*legal] == names
    assert len({*legal.values()}) == len(names)
    for name in legal.values():
        assert re.fullmatch(r"[A-Za-z0-9_\-. /]+", name)
        assert os.path.normpath(name) == name
