"""What is said of a converted input: `rankmill convert`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankmill.errors import plural
from rankmill.results.provenance import doubt_fact
from rankmill.show.tables import Facts


def converted_lines(told: Mapping[str, Any]) -> list[Facts]:
    """Return what is said of what `rankmill.convert` returned."""
    columns = ", ".join(f"{role}={column}" for role, column in told["input"]["columns"].items())
    rows = [
        ("wrote", told["path"]),
        (told["role"], f"{plural(told['queries'], 'query')}, {plural(told['items'], 'item')}"),
        ("read as", f"{told['input']['shape']}: {columns}"),
    ]
    if told["null_items"]:
        rows.append(("left out", f"{told['null_items']:,} null items"))
    if told["tied_ranks"]:
        rows.append(
            ("equal ranks", f"{plural(told['tied_ranks'], 'item')}: they keep the order of rows")
        )
    rows += [doubt_fact(one) for one in told["input"].get("doubts", ())]
    return [Facts(rows)]
