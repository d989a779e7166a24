"""What is shown of the plan of an evaluation: `rankmill evaluate --plan`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from rankmill.engine.memory import SPARED
from rankmill.errors import plural, spoken
from rankmill.package import stamp
from rankmill.semantics.scope import WHOLE, Scope
from rankmill.show.tables import Column, Facts, Part, Table, View, size_text

Inputs = Mapping[str, Mapping[str, Any]]


def plan_view(plan: Mapping[str, Any]) -> View:
    """Return what is shown of what `rankmill.plan` returned."""
    inputs = inputs_of(plan)
    memory = f"{size_text(plan['memory'])} with {plan['threads']} threads"
    total = size_text(sum(one["bytes"] for one in inputs.values()))
    counts = plan.get("counts", {"items": 0, "most": 0})
    bound = counts["items"] is None and counts["most"]
    facts = {"to read": total, "memory at most" if bound else "memory expected": memory}
    if plan["least"] > SPARED:
        facts["--memory at least"] = size_text(plan["least"])
    if "counts" in plan:
        facts["counts of items"] = _counts_text(**plan["counts"])
    shown = {name: Column(name, "count") for name in ("files", "rows", "values")}
    shown |= {"bytes": Column("to read", "size"), "shape": Column("shape")}
    told = "source", "shape", "files", "rows", "values", "bytes"
    return view_of_plan(plan, inputs, shown, told, facts)


def inputs_of(plan: Mapping[str, Any]) -> Inputs:
    """Return what a plan tells of each input by its name; a single system needs none."""
    runs = plan["predictions"]
    if len(runs) == 1:
        runs = {"predictions": next(iter(runs.values()))}
    more = {name: plan[name] for name in ("train", "items", "features") if name in plan}
    return {"labels": plan["labels"], **runs, **more}


def view_of_plan(
    plan: Mapping[str, Any],
    inputs: Inputs,
    shown: Mapping[str, Column],
    told: Collection[str],
    facts: Mapping[str, str],
    more: Mapping[str, str] = MappingProxyType({}),
) -> View:
    """Return what is shown of a plan.

    People see what is `shown` of each input, in these columns, and CSV has what is `told`. `facts`
    stand before the scope, and `more` behind it.
    """

    def rows(keys: Collection[str], between: str) -> list[list[Any]]:
        found = []
        for name, one in inputs.items():
            columns = (f"{role}={column}" for role, column in one["columns"].items() if column)
            found.append([name, *(one.get(key) for key in keys), between.join(columns)])
        return found

    table = Table([Column("input"), *shown.values(), Column("columns")], rows(shown, ", "))
    exact = Table([Column(name) for name in ("input", *told, "columns")], rows(told, " "))
    scope = Scope(**plan.get("scope", {}))
    every = {**facts, **({"scope": str(scope)} if scope != WHOLE else {}), **more}
    screen: list[Part] = [table, "", Facts(every.items())]
    return View(lambda: screen, lambda: [table], lambda: exact, lambda: {**stamp(), **plan})


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
