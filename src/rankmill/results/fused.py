"""What is said of fused runs: `rankmill fuse`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankmill.errors import plural
from rankmill.results.tables import Facts


def fused_lines(told: Mapping[str, Any]) -> list[Facts]:
    """Return what is said of what `rankmill.fuse` returned."""
    runs = told["runs"].items()
    how = told["method"] + (f", {told['norm']}" if told["norm"] else "")
    rows = [
        ("wrote", told["path"]),
        ("fused", f"{plural(told['queries'], 'query')}, {plural(told['items'], 'item')}: {how}"),
        *((name, plural(run["queries"], "query")) for name, run in runs),
        ("in all runs", plural(told["queries_in_all"], "query")),
    ]
    if told["repeated_items"]:
        rows.append(("left out", f"{told['repeated_items']:,} repeated items"))
    return [Facts(rows)]
