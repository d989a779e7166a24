"""Harm done to one task of Spark, while it works."""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rankmill.spark.exchange import tasks


def harm(flag: str, what: str) -> None:
    """Do harm to the task that comes first, and to no other."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    process = os.getpid()
    if what == "executor":  # the Java process above this one
        while "java" not in Path(f"/proc/{process}/comm").read_text():
            stat = Path(f"/proc/{process}/stat").read_text()
            process = int(stat.rpartition(")")[2].split()[1])
    if what in ("executor", "python"):
        os.kill(process, signal.SIGKILL)
    if what == "exception":
        raise OSError("the network is gone for a moment")
    if what == "fetch":  # what this executor has written for others to read
        for file in Path(os.environ["SPARK_EXECUTOR_DIRS"]).rglob("shuffle_*"):
            file.unlink()
        return
    time.sleep(3)  # so that speculation sees a slow task


def made_by(task: Any, *known: Any) -> Any:
    """Return the function or the class of a task, which may be handed on to what answers."""
    task = next((one for one in known if isinstance(one, partial)), task)
    return task.func if isinstance(task, partial) else type(task)


def harming(monkeypatch: pytest.MonkeyPatch, kind: Any, what: str, folder: Path) -> Path:
    """Do harm in the first task of a kind, in the middle if it gives more than one batch.

    The file that is returned exists afterwards; without it, harm is done again.
    """
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not have this file
    usual, flag = tasks.function_of, folder / "harmed"

    def function_of(task: Any, *known: Any) -> Any:
        run = usual(task, *known)
        if made_by(task, *known) is not kind:
            return run

        def harmed(batches: Any) -> Any:
            parts = iter(run(iter(list(batches))))
            first = next(parts)
            harm(str(flag), what)
            yield first
            yield from parts

        return harmed

    monkeypatch.setattr(tasks, "function_of", function_of)
    return flag
