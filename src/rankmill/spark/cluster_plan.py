"""What is shown of the plan of an evaluation on a cluster: `rankmill spark evaluate --plan`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankmill.engine.plan_view import rows_of
from rankmill.package import stamp
from rankmill.semantics.scope import WHOLE, Scope
from rankmill.show.tables import Column, Facts, Part, Table, View, size_text
from rankmill.spark.workers import PYTHON_MEMORY


def cluster_plan_view(plan: Mapping[str, Any]) -> View:
    """Return what is shown of what `rankmill.spark.plan_runs` returned."""
    runs = plan["predictions"]
    if len(runs) == 1:
        runs = {"predictions": next(iter(runs.values()))}
    inputs = {"labels": plan["labels"], **runs}

    def table() -> Table:
        columns = [Column("input"), Column("to read", "size"), Column("shape"), Column("placing")]
        columns += [Column("shuffled", "size"), Column("tasks", "count"), Column("columns")]
        keys = ("bytes", "shape", "placing", "shuffled", "tasks")
        return Table(columns, rows_of(inputs, keys, ", "))

    def screen() -> list[Part]:
        facts = {
            "memory of a task": _size(plan["task_memory"]),
            "memory of the driver": _size(plan["driver_memory"]),
        }
        if plan["python_limit"] is not None:
            least = plan["python_memory"]
            told = "a size is unknown" if least is None else f"needs {size_text(least)}"
            facts[PYTHON_MEMORY] = f"is {plan['python_limit']}, {told}"
        scope = Scope(**plan["scope"])
        facts |= {"scope": str(scope)} if scope != WHOLE else {}
        why = {f"{name}: {one['placing']}": f"because {one['why']}" for name, one in runs.items()}
        return [table(), "", Facts([*facts.items(), *why.items()])]

    def exact() -> Table:
        keys = ("source", "shape", "bytes", "placing", "why", "shuffled", "tasks")
        columns = [Column(name) for name in ("input", *keys, "columns")]
        return Table(columns, rows_of(inputs, keys, " "))

    return View(screen, lambda: [table()], exact, lambda: {**stamp(), **plan})


def _size(size: int | None) -> str:
    return "unknown, because a size is unknown" if size is None else f"at most {size_text(size)}"
