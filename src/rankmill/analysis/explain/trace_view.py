"""Trace: how a metric came about, rank by rank, and how that reads as text."""

import math
from collections.abc import Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any, Self

import pyarrow as pa
import pyarrow.types as types

from rankmill.package import stamp
from rankmill.records import record
from rankmill.results.answer import Answer, plain_fields, read_fields
from rankmill.results.audit import rules_of
from rankmill.semantics.choices import DEFAULT, WHOLE, Choices, Scope
from rankmill.show.tables import Column, Facts, Kind, Part, Table, View
from rankmill.show.writers import html_text, plain_text

_TEXTS = ("query", "item", "hit", "correct", "note")
# Of each system, side by side with others.
_BESIDE = ("query", "item", "hit", "correct", "term", "note")
_INFINITE = ("inf", "-inf", "nan")
# So many rows are drawn as text.
_DRAWN = 50


@record(frozen=True, repr=False, eq=False)
class Trace(Answer):
    """How a metric was computed, rank by rank.

    Attributes
    ----------
    metric : str
    query : int or str or None
        The query whose list it is; None for gap, which ranks all predictions in one list.
    value : float or None
        As `evaluate` has it; None where the query does not count, or gap is divided by nothing.
    total : float
        What the terms of all rows add up to.
    divisor : float or None
        What the total is divided by; None if by nothing.
    table : pyarrow.Table
        One row per rank: the prediction, whether it is a hit, and the "term" that it adds to the
        "sum". One row per group of items for miscalibration.
    facts : dict of str to str
        Further facts: title -> text.
    semantics : Choices
    scope : Scope
        Which labels and predictions counted.
    """

    metric: str
    query: int | str | None
    value: float | None
    total: float
    divisor: float | None
    table: pa.Table
    facts: dict[str, str] = field(default_factory=dict)
    semantics: Choices = DEFAULT
    scope: Scope = WHOLE

    @property
    def headline(self) -> str:
        """The value and the quotient that gives it, in one line."""
        of = self.metric if self.query is None else f"{self.metric} of query {self.query}"
        if self.value is None:
            lacks = "nothing to divide by" if self.divisor == 0 else "no value"
            return f"{of}: {'it does not count' if self.query is not None else f'there is {lacks}'}"
        if self.divisor is None:
            return f"{of} = {self.value!r}"
        return f"{of} = {self.total!r} / {self.divisor:.17g} = {self.value!r}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts, lists, strings and numbers."""
        return {
            **stamp(),
            **plain_fields(self, "metric query value total divisor facts semantics scope"),
            "rows": [{name: _strict(value) for name, value in row.items()} for row in self.rows()],
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Self:
        """Return the object from what `to_dict` returned, with the types of JSON in the table."""
        rows = [{name: _number(name, one) for name, one in row.items()} for row in told["rows"]]
        table = pa.Table.from_pylist(rows) if rows else pa.table({"rank": []})
        return replace(read_fields(cls, told | {"table": None}), table=table)

    def to_arrow(self) -> pa.Table:
        """Return `table`."""
        return self.table

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table, ids that are bytes as text."""
        names, rows = self.table.column_names, _exact(self.table).rows
        return [dict(zip(names, row, strict=True)) for row in rows]

    def __repr__(self) -> str:
        table, *below = _page(self, _DRAWN)
        return plain_text([table, "", *below])

    def _repr_html_(self) -> str:
        return html_text(_page(self, _DRAWN))

    def _view(self) -> View:
        def screen() -> list[Part]:
            facts = self.facts | rules_of(self.semantics, self.scope)
            return [_shown(self.table), "", Facts((facts | {"value": self.headline}).items())]

        page = partial(_page, self, self.table.num_rows)
        return View(screen, page, lambda: _exact(self.table), self.to_dict)


def traces_view(found: Mapping[str, Trace]) -> View:
    """Return what is shown of several systems: their lists side by side, rank by rank."""

    def parts() -> list[Part]:
        return [_side_by_side(found), "", Facts(_joint_facts(found).items())]

    def content() -> dict[str, Any]:
        systems = {name: one.to_dict() for name, one in found.items()}
        once = stamp()
        for one in systems.values():
            _ = [one.pop(key) for key in once]
        return {**once, "systems": systems}

    return View(parts, parts, lambda: _exact(joint_table(found)), content)


def joint_table(found: Mapping[str, Trace]) -> pa.Table:
    """Return the rows of all systems below each other, with the system before each."""
    tables = [
        one.table.add_column(0, "system", pa.array([name] * one.table.num_rows, pa.string()))
        for name, one in found.items()
    ]
    return pa.concat_tables(tables, promote_options="permissive")


def _side_by_side(found: Mapping[str, Trace]) -> Table:
    """Return a row for each rank: the item of each system, whether it is a hit, and its term.

    Tables without ranks, such as the points of a curve, have all of their columns.
    """
    ranked = all("rank" in one.table.column_names for one in found.values())
    columns = [Column("rank", "count")] if ranked else []
    lists: list[list[list[Any]]] = []
    for name, one in found.items():
        rows = [row for row in one.rows() if not ranked or row["rank"] is not None]
        names = [
            each
            for each in one.table.column_names
            if not ranked or (each in _BESIDE and (each != "note" or any(r[each] for r in rows)))
        ]
        types_of = {each: one.table.schema.field(each).type for each in names}
        columns += [Column(f"{name}: {each}", _kind(each, t)) for each, t in types_of.items()]
        lists.append([[row[each] for each in names] for row in rows])
        lists[-1].append([None] * len(names))  # stands for what a shorter list does not have
    count = max(map(len, lists)) - 1
    cells = [[cell for one in lists for cell in one[min(at, len(one) - 1)]] for at in range(count)]
    return Table(columns, [[at + 1, *row] if ranked else row for at, row in enumerate(cells)])


def _joint_facts(found: Mapping[str, Trace]) -> dict[str, str]:
    """Return the facts that all systems share, and then those of each; values are last."""
    every = {name: one.facts | {"value": one.headline} for name, one in found.items()}
    told: dict[str, str] = {}
    for title in dict.fromkeys(key for facts in every.values() for key in facts):
        texts = {name: facts[title] for name, facts in every.items() if title in facts}
        if len(texts) == len(every) and len({*texts.values()}) == 1 and title != "value":
            told[title] = next(iter(texts.values()))
        else:
            told |= {f"{title} of {name}": text for name, text in texts.items()}
    one = next(iter(found.values()))
    last = {title: told.pop(title) for title in list(told) if title.startswith("value of ")}
    return told | rules_of(one.semantics, one.scope) | last


def _page(found: Trace, most: int) -> list[Part]:
    """The first rows: a notebook cannot hold those of a gap of millions."""
    facts = dict(found.facts)
    if found.table.num_rows > most:
        facts["drawn"] = f"the first {most} rows; `table` has all"
    return [_shown(found.table.slice(0, most)), Facts(facts.items()), found.headline]


def _shown(table: pa.Table) -> Table:
    """The rows as people read them, without notes if there are none."""
    if "note" in table.column_names and not any(table.column("note").to_pylist()):
        table = table.drop_columns("note")
    kinds = [Column(one.name, _kind(one.name, one.type)) for one in table.schema]
    return Table(kinds, _exact(table).rows)


def _exact(table: pa.Table) -> Table:
    """The rows with every digit."""
    values = [_values(one) for one in table.columns]
    return Table([Column(name) for name in table.column_names], list(zip(*values, strict=True)))


def _kind(name: str, kind: Any) -> Kind:
    if name in _TEXTS and not (name == "correct" and types.is_integer(kind)):
        return "text"
    if types.is_string(kind) or types.is_boolean(kind):
        return "text"
    if name == "confidence":
        return "score"
    return "number" if types.is_floating(kind) else "count"


def _values(column: Any) -> list[Any]:
    if types.is_large_binary(column.type) or types.is_binary(column.type):
        values = column.to_pylist()
        return [None if one is None else one.decode(errors="backslashreplace") for one in values]
    return list(column.to_pylist())


def _strict(value: Any) -> Any:
    """The value, an infinite one as text: strict JSON has none."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number(name: str, value: Any) -> Any:
    """The value that `_strict` made a text of."""
    return float(value) if value in _INFINITE and name not in _TEXTS else value
