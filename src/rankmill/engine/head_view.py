"""What is shown of how an input is understood: `rankmill head`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankmill.errors import plural, spoken
from rankmill.package import stamp
from rankmill.show.tables import Column, Facts, Part, Table, View
from rankmill.sources.meaning.rules import NAMES, RULES
from rankmill.sources.roles.findings import PARTS

_SHAPES = {"wide": "wide: one row per query, with lists", "long": "long: one row per item"}
_ORDERS = {"rank": "by rank", "score": "by falling score", "rows": "the order of the rows"}


def head_view(told: Mapping[str, Any], role_told: bool) -> View:
    """Return what is shown of what `head` returned."""

    def columns() -> Table:
        titles = [Column(title) for title in ("column", "type", "role", "why")]
        return Table(titles, [_column(one, told["shape"]) for one in told["columns"]])

    def queries() -> Table:
        titles = [Column("query"), Column("items", "count"), Column("first items")]
        return Table(titles, [[str(q["query"]), q["count"], _items(q)] for q in told["queries"]])

    def rules() -> Table:
        used = {rule for one in told["columns"] for rule in one["rules"]} - {*NAMES}
        rows = [(name, one.read, one.option) for name, one in RULES.items() if name in used]
        plainly = [[spoken(cell.replace("`", "")) for cell in row] for row in rows]
        return Table([Column(title) for title in ("rule", "what is read", "option")], plainly)

    def page() -> list[Part]:
        return [columns(), *(one for one in (rules(), queries()) if one.rows)]

    def screen() -> list[Part]:
        return [_facts(told, role_told), *(part for table in page() for part in ("", table))]

    return View(screen, page, columns, lambda: {**stamp(), **told})


def _facts(told: Mapping[str, Any], role_told: bool) -> Facts:
    kind = told["format"] or "Arrow"
    packed = f", compressed with {told['compression']}" if told["compression"] else ""
    rows = "not known before all are read" if told["rows"] is None else f"{told['rows']:,}"
    facts = [
        ("source", told["source"]),
        ("format", f"{kind}{packed}"),
        ("files", f"{told['files']:,}"),
        ("rows", rows),
    ]
    if told["role"] is not None:
        other = "predictions" if told["role"] == "labels" else "labels"
        how = f"--{other} on the command line, {other.capitalize()}(...) in Python"
        why = "" if role_told else spoken(f" (by its columns; {how} reads it as {other})")
        facts.append(("read as", told["role"] + why))
    if told["shape"] is not None:
        facts.append(("shape", _SHAPES[told["shape"]]))
    if told["order"] is not None and told["role"] == "predictions":
        facts.append(("order", _ORDERS[told["order"]]))
    if told["shape"] == "long" and told["queries"]:
        facts.append(("first queries", f"of the first {plural(told['looked_at'], 'row')}"))
    if told["comment_lines"]:
        facts.append(("comments", f"{plural(told['comment_lines'], 'line')}, skipped"))
    return Facts(facts)


def _column(one: Mapping[str, Any], shape: str | None) -> list[str]:
    unread = "" if shape is None or PARTS.intersection(one["rules"]) else "not read"
    return [one["name"], one["type"], one["role"] or unread, ", ".join(one["rules"])]


def _items(query: Mapping[str, Any]) -> str:
    """The first items, each with its number in brackets."""
    items = [str(item) for item in query["items"]]
    for numbers in ("scores", "gains"):
        if numbers in query:
            pairs = zip(items, query[numbers], strict=True)
            items = [f"{item} ({_short(number)})" for item, number in pairs]
    return ", ".join(items) + (", ..." if query["count"] > len(items) else "")


def _short(number: float | str) -> str:
    return number if isinstance(number, str) else f"{number:.6g}"
