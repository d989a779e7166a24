"""What other tests share with those of report."""

from __future__ import annotations

from random import Random

import pyarrow as pa

HOSTILE = [
    '<script>alert("1")</script>',
    "'\"><img src=x onerror=alert(1)>",
    "x" * 10_000,
    "\u202egpj.exe\u202c",
    "\x1b[31mred\x07",
    "{{ 7 * 7 }}{% raw %}",
    "&amp;&lt;",
    "שלום עולם",
    "</style></title></svg>",
    "a\nb\tc\x00",
]


def data(seed: int = 5, queries: int = 400) -> dict[str, pa.Table]:
    """Make labels with groups, and two systems; the new one loses in the group "it"."""
    draw = Random(seed)
    ids = [f"q{i}" for i in range(queries)]
    group = [draw.choice(["it", "de", "fr"]) for _ in ids]
    labels = [draw.sample(range(50), 3) for _ in ids]
    lists = {}
    for system, chance in (("old", 0.4), ("new", 0.5)):
        rows = []
        for its, of in zip(group, labels, strict=True):
            here = 0.1 if (its, system) == ("it", "new") else chance
            rows.append([
                draw.choice(of) if draw.random() < here else 100 + i for i in range(8)
            ])  # fmt: skip
        lists[system] = [list(dict.fromkeys(row)) for row in rows]
    made = {"labels": pa.table({"query_id": ids, "items": labels, "group": group})}
    for system, rows in lists.items():
        scores = [[1 - i / 10 for i in range(len(row))] for row in rows]
        made[system] = pa.table({"query_id": ids, "items": rows, "scores": scores})
    return made
