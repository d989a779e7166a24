"""Trace: how a metric came about, rank by rank, and how that reads as text."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from rankmill.results.escaping import visible
from rankmill.results.tables import aligned_numbers, html_table, plain_lines, plain_table
from rankmill.semantics.choices import DEFAULT, Semantics

_TEXTS = ("query", "item", "hit", "correct", "note")
# So many rows are drawn as text.
_DRAWN = 50


@dataclass(frozen=True, repr=False, eq=False)
class Trace:
    """How a metric came about, rank by rank.

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
        A row a rank: the prediction, whether it is a hit, and the "term" that it adds to the "sum".
    facts : dict of str to str
        What else there is to know: title -> text.
    semantics : Semantics
    """

    metric: str
    query: int | str | None
    value: float | None
    total: float
    divisor: float | None
    table: pa.Table
    facts: dict[str, str] = field(default_factory=dict)
    semantics: Semantics = DEFAULT

    @property
    def headline(self) -> str:
        """The value, and what it is the quotient of, in a line."""
        of = self.metric if self.query is None else f"{self.metric} of query {self.query}"
        if self.value is None:
            why = "there is nothing to divide by" if self.query is None else "it does not count"
            return f"{of}: {why}"
        if self.divisor is None:
            return f"{of} = {self.value!r}"
        return f"{of} = {self.total!r} / {self.divisor:.17g} = {self.value!r}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts, lists, strings and numbers."""
        from rankmill.version import __version__

        return {
            "rankmill": __version__,
            "metric": self.metric,
            "query": self.query,
            "value": self.value,
            "total": self.total,
            "divisor": self.divisor,
            "facts": self.facts,
            "semantics": self.semantics.to_dict(),
            "rows": [{name: _strict(value) for name, value in row.items()} for row in self.rows()],
        }

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table, ids that are bytes as text."""
        columns = {name: _values(self.table.column(name)) for name in self.table.column_names}
        return [
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        ]

    def cells(self) -> tuple[list[str], list[list[str]], tuple[int, ...]]:
        """The header and the rows as text, and which columns are text."""
        names = [name for name in self.table.column_names if name != "note"]
        columns = {name: _texts(name, self.table.column(name)) for name in names}
        noted = self.table.column("note").to_pylist() if "note" in self.table.column_names else []
        if any(noted):
            columns["note"] = noted
        left = tuple(place for place, name in enumerate(columns) if name in _TEXTS)
        return list(columns), [list(row) for row in zip(*columns.values(), strict=True)], left

    def _drawn(self) -> Trace:
        """The trace as it is drawn: a notebook cannot hold the rows of a gap of millions."""
        if self.table.num_rows <= _DRAWN:
            return self
        facts = self.facts | {"drawn": f"the first {_DRAWN} rows; `table` has all"}
        return replace(self, table=self.table.slice(0, _DRAWN), facts=facts)

    def __repr__(self) -> str:
        drawn = self._drawn()
        header, rows, left = drawn.cells()
        facts = plain_lines(drawn.facts.items())
        table = plain_table(header, rows, left=left)
        return "\n".join([table, "", *facts, visible(self.headline)])

    def _repr_html_(self) -> str:
        from html import escape

        drawn = self._drawn()
        header, rows, left = drawn.cells()
        facts = [f"{title}: {text}" for title, text in drawn.facts.items()]
        below = [
            f"<div><small>{escape(visible(line))}</small></div>" for line in [*facts, self.headline]
        ]
        return "\n".join([html_table(header, rows, left=left), *below])


def _values(column: Any) -> list[Any]:
    if kinds.is_large_binary(column.type) or kinds.is_binary(column.type):
        values = column.to_pylist()
        return [None if one is None else one.decode(errors="backslashreplace") for one in values]
    return list(column.to_pylist())


def _strict(value: Any) -> Any:
    """The value, an infinite one as text: strict JSON has none."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _texts(name: str, column: Any) -> list[str]:
    values = _values(column)
    if name == "confidence":  # of any size, perhaps infinite
        return ["" if one is None else f"{one:.7g}" for one in values]
    if kinds.is_boolean(column.type):
        return ["" if one is None else "yes" if one else "no" for one in values]
    if kinds.is_floating(column.type):
        shown = aligned_numbers([one for one in values if one is not None], 6)
        texts = iter(shown)
        return ["" if one is None else next(texts) for one in values]
    return ["" if one is None else str(one) for one in values]
