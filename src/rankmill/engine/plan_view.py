"""What is shown of the plan of an evaluation: `rankmill evaluate --plan`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankmill.engine.memory import SPARED
from rankmill.errors import plural, spoken
from rankmill.package import stamp
from rankmill.semantics.scope import WHOLE, Scope
from rankmill.show.tables import Column, Facts, Part, Table, View, size_text


def plan_view(plan: Mapping[str, Any]) -> View:
    """Return what is shown of what `rankmill.plan` returned."""
    runs = plan["predictions"]
    if len(runs) == 1:
        runs = {"predictions": next(iter(runs.values()))}
    more = {name: plan[name] for name in ("train", "items", "features") if name in plan}
    inputs = {"labels": plan["labels"], **runs, **more}

    def table() -> Table:
        columns = [Column("input"), *(Column(one, "count") for one in ("files", "rows", "values"))]
        columns += [Column("to read", "size"), Column("shape"), Column("columns")]
        keys = ("files", "rows", "values", "bytes", "shape")
        return Table(columns, rows_of(inputs, keys, ", "))

    def screen() -> list[Part]:
        memory = f"{size_text(plan['memory'])} with {plan['threads']} threads"
        total = size_text(sum(one["bytes"] for one in inputs.values()))
        counts = plan.get("counts", {"items": 0, "most": 0})
        bound = counts["items"] is None and counts["most"]
        facts = {"to read": total, "memory at most" if bound else "memory expected": memory}
        if plan["least"] > SPARED:
            facts["--memory at least"] = size_text(plan["least"])
        if "counts" in plan:
            facts["counts of items"] = _counts_text(**plan["counts"])
        scope = Scope(**plan.get("scope", {}))
        facts |= {"scope": str(scope)} if scope != WHOLE else {}
        return [table(), "", Facts(facts.items())]

    def exact() -> Table:
        keys = ("source", "shape", "files", "rows", "values", "bytes")
        columns = [Column(name) for name in ("input", *keys, "columns")]
        return Table(columns, rows_of(inputs, keys, " "))

    return View(screen, lambda: [table()], exact, lambda: {**stamp(), **plan})


def _counts_text(items: int | None, most: int | None, bytes: int) -> str:
    each = f"{bytes} bytes for each item, and three times its text on each thread"
    if items is None and most:
        return spoken(f"{each}; at most {plural(most, 'item')}, as --items is not given")
    if items is None:
        lacks = (
            "not included in the expected memory, because their number is unknown without --items"
        )
        return spoken(f"{each}: {lacks}")
    return f"{each}; {plural(items, 'item')}"


def rows_of(
    inputs: Mapping[str, Mapping[str, Any]], keys: tuple[str, ...], between: str
) -> list[list[Any]]:
    """Return a row of a table for each input: its name, some of its facts, its columns."""
    return [
        [
            name,
            *(one.get(key) for key in keys),
            between.join(f"{role}={column}" for role, column in one["columns"].items() if column),
        ]
        for name, one in inputs.items()
    ]
