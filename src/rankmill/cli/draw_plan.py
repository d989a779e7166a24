"""How the plan of an evaluation looks: `rankmill evaluate --plan`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rankmill.cli.draw import csv_text, markdown
from rankmill.cli.inputs import size_text
from rankmill.results.tables import plain_table
from rankmill.version import __version__

__all__ = ["render_plan"]

_NUMBERS = (1, 2, 3, 4)


def render_plan(plan: Mapping[str, Any], format: str) -> str:
    """Return what `rankmill.plan` returned as text in one format, with a line break at the end."""
    if format == "json":
        return json.dumps({"rankmill": __version__, **plan}, indent=2) + "\n"
    inputs = {"labels": plan["labels"], **plan["predictions"]}
    if len(plan["predictions"]) == 1:
        inputs = {"labels": plan["labels"], "predictions": next(iter(plan["predictions"].values()))}
    if format == "csv":
        keys = ["source", "shape", "files", "rows", "values", "bytes"]
        rows = [
            [name, *(str(one[key]) for key in keys), _columns(one, " ")]
            for name, one in inputs.items()
        ]
        return csv_text(["input", *keys, "columns"], rows)
    header = ["input", "files", "rows", "values", "to read", "shape", "columns"]
    rows = [
        [
            name,
            *(f"{one[key]:,}" for key in ("files", "rows", "values")),
            size_text(one["bytes"]),
            one["shape"],
            _columns(one, ", "),
        ]
        for name, one in inputs.items()
    ]
    if format == "markdown":
        return markdown(header, rows, right=_NUMBERS)
    total = size_text(sum(one["bytes"] for one in inputs.values()))
    return (
        f"{plain_table(header, rows, left=(0, 5, 6))}\n\n"
        f"to read          {total}\n"
        f"memory expected  {size_text(plan['memory'])} with {plan['threads']} threads\n"
    )


def _columns(one: Mapping[str, Any], between: str) -> str:
    return between.join(f"{role}={name}" for role, name in one["columns"].items() if name)
