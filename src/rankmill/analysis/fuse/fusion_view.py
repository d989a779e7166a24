"""Fused: the lists of several runs that were fused into one, and how they read."""

from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa

from rankmill.errors import UsageError, plural
from rankmill.package import stamp
from rankmill.results.answer import Answer, read_fields
from rankmill.show.tables import Column, Facts, Part, Table, View

# So many queries, and items of each, are shown.
_SHOWN = 10


@dataclass(frozen=True, repr=False, eq=False)
class Fused(Answer):
    """Runs that were fused, which serve as predictions where they were not written.

    Attributes
    ----------
    path : str or None
        The file that was written; None if there is a `table`.
    method, norm : str or None
    queries, items : int
        How many there are.
    queries_in_all : int
        The number of queries that all runs have.
    repeated_items : int
        How many items were left out, as they repeat one of the same list.
    runs : dict of str to dict
        Each input, as it was read.
    trained_on : int or None
        The training queries; None if nothing is learned from any.
    table : pyarrow.Table or None
        By ascending query id, with "query_id", "items" and "scores"; None if a file was written.
    optimised : dict or None
        What was chosen by a "metric": its "value" and "held_out" value over the training queries,
        the number of "settings" tried, the "weights" of runs, and "k" or "parameter" if there is
        one. Half of the queries choose, and the value over the others is held out, both ways.
    """

    path: str | None
    method: str
    norm: str | None
    queries: int
    items: int
    queries_in_all: int
    repeated_items: int
    runs: dict[str, dict[str, Any]]
    trained_on: int | None = None
    table: pa.Table | None = None
    optimised: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes; the rows of the table as "rows"."""
        told = stamp() | {name: one for name, one in vars(self).items() if name != "table"}
        return told if self.table is None else told | {"rows": self.table.to_pylist()}

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Self:
        """Return the object from what `to_dict` returned, with the types of JSON in the table."""
        found = read_fields(cls, told)
        if "rows" not in told:
            return found
        return replace(found, table=pa.Table.from_pylist(told["rows"]))

    def to_arrow(self) -> pa.Table:
        """Return `table`; UsageError if the lists were written to a file."""
        if self.table is None:
            raise UsageError(f"the fused lists were written to {self.path}: read them there")
        return self.table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Hand the table over to what reads Arrow, such as `evaluate`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _view(self) -> View:
        def screen() -> list[Part]:
            first: list[Part] = [] if self.table is None else ["", _first(self.table)]
            return [_facts(self), *first]

        def page() -> list[Part]:
            return [_facts(self) if self.table is None else _first(self.table)]

        return View(screen, page, lambda: _first(self.to_arrow()), self.to_dict)


def _facts(found: Fused) -> Facts:
    how = found.method + (f", {found.norm}" if found.norm else "")
    rows = [
        *([] if found.path is None else [("wrote", found.path)]),
        ("fused", f"{plural(found.queries, 'query')}, {plural(found.items, 'item')}: {how}"),
        *([] if found.trained_on is None else _learned(found)),
        *((name, plural(run["queries"], "query")) for name, run in found.runs.items()),
        ("in all runs", plural(found.queries_in_all, "query")),
    ]
    if found.repeated_items:
        rows.append(("left out", f"{found.repeated_items:,} repeated items"))
    return Facts(rows)


def _learned(found: Fused) -> list[tuple[str, str]]:
    """What was learned from training queries."""
    queries, best = plural(found.trained_on or 0, "query"), found.optimised
    if best is None:
        return [("trained on", queries)]
    options = {"--weights": ",".join(map(_digits, best["weights"].values()))}
    numbers = {f"--{name}": best[name] for name in ("k", "parameter")}
    options |= {name: _digits(one) for name, one in numbers.items() if one is not None}
    tried = f"best of {plural(best['settings'], 'setting')} over {queries}"
    held = best["held_out"]
    how = "chosen on each half of these queries, evaluated on the other"
    return [
        ("chosen", " ".join(f"{name} {one}" for name, one in options.items())),
        (best["metric"], f"{best['value']:.4f}, {tried}"),
        ("held out", "unknown: a half has no query" if held is None else f"{held:.4f}, {how}"),
    ]


def _digits(number: float) -> str:
    """All digits of a number, for who types it again."""
    return repr(number).removesuffix(".0")


def _first(table: pa.Table) -> Table:
    """The first items of the first queries, each with its score."""
    rows: list[list[Any]] = []
    for query, items, scores in zip(*table.slice(0, _SHOWN).to_pydict().values(), strict=True):
        pairs = zip(items[:_SHOWN], scores, strict=False)
        more = ", ..." if len(items) > _SHOWN else ""
        listed = ", ".join(f"{item} ({score:.6g})" for item, score in pairs) + more
        rows.append([str(query), len(items), listed])
    return Table([Column("query"), Column("items", "count"), Column("first items")], rows)
