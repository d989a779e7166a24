"""Sessions of Spark, in this process and on a cluster; skipped where there is no Java.

PYTEST_DONT_REWRITE, because pytest looks for doctests here before a test loads it as a plugin.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Java compiles less, as these processes do not live long: half of the processor time.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "3",
    "spark.log.level": "OFF",
}
# Plans of a few rows are interpreted: to compile each takes longer. Clusters do compile them.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

# Of a cluster of processes whose tasks are harmed.
HARMED = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    # A slow task is started a second time on another executor.
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "100ms",
}


@pytest.fixture(scope="session")
def start() -> Iterator[Callable[..., Any]]:
    """Start a session with some settings, in place of the one before if that has others."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java to run Spark")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"

    last: tuple[str, dict[str, str]] | None = None

    def begin(master: str, **settings: str) -> Any:
        nonlocal last
        before = SparkSession.getActiveSession()
        if before is not None:
            if last == (master, settings):  # its processes of Python have loaded all they need
                return before
            before.stop()
        last = master, settings
        builder = SparkSession.builder.master(master)
        for name, value in {**SETTINGS, **settings}.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()

    yield begin
    running = SparkSession.getActiveSession()
    if running is not None:
        running.stop()


@pytest.fixture(scope="module")
def spark(start: Callable[..., Any]) -> Any:
    """A session in this process, with two threads."""
    return start("local[2]", **INTERPRETED)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def spark_class(log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a process of Spark; it ends with this one, at the latest by the fixture."""
    import pyspark

    script = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_JAVA_OPTS": JAVA}
    with log.open("wb") as out:
        return subprocess.Popen([str(script), *arguments], stdout=out, stderr=out, env=environment)


@pytest.fixture(scope="session")
def master(tmp_path_factory: pytest.TempPathFactory, start: Callable[..., Any]) -> Iterator[str]:
    """A cluster on this machine, a master and two workers in processes of their own."""
    folder = tmp_path_factory.mktemp("cluster")
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    name = "org.apache.spark.deploy"
    where = ["--host", "127.0.0.1", "--webui-port", "0"]
    started = [spark_class(folder / "master", f"{name}.master.Master", *where, "--port", str(port))]
    try:
        for number in range(2):
            more = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{number}")]
            log = folder / f"worker{number}"
            started.append(spark_class(log, f"{name}.worker.Worker", *where, *more, url))
        wait_until(
            lambda: (folder / "master").read_text(errors="replace").count("Registering worker") == 2
        )
        yield url
    finally:
        for one in reversed(started):
            one.terminate()
        for one in started:
            one.wait(30)


def wait_until(true: Callable[[], Any], seconds: float = 300) -> None:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.1)
