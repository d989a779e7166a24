"""Results: what several systems came to, side by side."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from rankmill.errors import spoken
from rankmill.metrics.registry import sides_of
from rankmill.package import stamp
from rankmill.results import audit
from rankmill.results.answer import Answer
from rankmill.results.audit import facts_of, rules_of
from rankmill.results.result import CountedQueries, Result, exact_table, metrics_table
from rankmill.results.slices import UNKNOWN, slice_parts
from rankmill.semantics.choices import Choices, Scope
from rankmill.semantics.metric_names import SIDES
from rankmill.show.tables import (
    STAR,
    Best,
    Cell,
    Column,
    Facts,
    Part,
    Table,
    View,
    best_value,
    leaderboard,
)

if TYPE_CHECKING:
    from rankmill.show.pictures import Picture


class Results(Answer, dict[str, Result]):
    """The result of each system by name, from one call of `evaluate_runs`, shown side by side.

    Parameters
    ----------
    results : mapping of str to Result
    same_queries : bool, optional
        Whether all have the same queries in the mean, if that is not known from the results.
    """

    def __init__(self, results: Mapping[str, Result], same_queries: bool | None = None) -> None:
        super().__init__(results)
        self._same = same_queries

    def to_dict(self) -> dict[str, Any]:
        """Return the dicts of all results, and whether they are of the same queries."""
        told: Any = self._view().content()
        return dict(told)

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Self:
        """Return the object from what `to_dict` returned."""
        version = {name: told[name] for name in stamp() if name in told}
        results = {name: Result.from_dict(version | one) for name, one in told["systems"].items()}
        return cls(results, told["same_queries"])

    @property
    def by(self) -> Any:
        """The slices of all systems as one table, with "system" first; None without slices."""
        import pyarrow as pa

        tables = {name: one.by for name, one in self.items() if one.by is not None}
        named = [
            one.add_column(0, "system", pa.array([name] * len(one), pa.string()))
            for name, one in tables.items()
        ]
        return pa.concat_tables(named) if named else None

    def __missing__(self, name: object) -> Result:
        raise KeyError(f"no system {name!r} here, there are {', '.join(self)}: results[SYSTEM]")

    def __repr__(self) -> str:
        return super().__repr__() if self else "{}"

    def _repr_html_(self) -> str | None:
        return super()._repr_html_() if self else None

    @property
    def same(self) -> bool | None:
        """Whether all have the same queries in the mean; None if that is not known."""
        return same_queries(self) if self._same is None else self._same

    def _view(self) -> View:
        return systems_view(self, self.same, sides_of(next(iter(self.values()), {})))

    def _picture(self) -> Picture:
        from rankmill.engine.curves import curve_picture

        return curve_picture(self)

    def _compared(self) -> dict[str, Result]:
        return dict(self)


# ------------------------------------------------------------------ what is shown of them


def same_queries(results: Mapping[str, Result]) -> bool | None:
    """Return whether all systems of one call of `evaluate_runs` have the same queries in the mean.

    Returns None if their numbers are the same and the results do not tell which queries count.
    """
    first, *others = results.values()
    if any(one.queries != first.queries for one in others):
        return False
    if not others or not first.semantics.counts_by_predictions:
        return True
    counted = [one.counted for one in results.values() if one.counted is not None]
    if len(counted) < len(results):
        return None
    return all(_same_ids(one, counted[0]) for one in counted[1:])


def _same_ids(one: CountedQueries, other: CountedQueries) -> bool:
    if not (one.of_labels == other.of_labels).all():
        return False
    if one.others is None or other.others is None:
        return one.others is other.others
    try:
        return bool(one.others.cast(other.others.type).equals(other.others))
    except ValueError:  # as of an integer that the other type lacks
        return False


def systems_view(
    results: Mapping[str, Result], same_queries: bool | None, sides: Mapping[str, str]
) -> View:
    """Return what is shown of the results of systems, of one call of `evaluate_runs`.

    `same_queries` tells whether they were averaged over the same queries, None if that is not
    known, and `sides` which side of each metric is better.
    """
    first, note = next(iter(results.values())), _note(results, same_queries)
    notes = joint_notes(results)

    def screen() -> list[Part]:
        values = _values(results, sides, comparable=not note)
        legend = [f"* {STAR}", *side_notes(sides)] if values.marked else []
        more = slice_parts(results)
        facts = Facts(facts_of_systems(results, same_queries), aligned=False)
        audits = {name: one.audit for name, one in results.items()}
        counts = audit_table(audits, first.semantics, first.scope)
        return [values, *legend, *notes, "", *more, counts, "", facts]

    def page() -> list[Part]:
        every = _long({name: metrics_table(one) for name, one in results.items()})
        return [*board(), every, *(one for one in slice_parts(results) if one)]

    def exact() -> Table:
        table = _long({name: exact_table(one) for name, one in results.items()})
        return Table([*table.columns, Column("note")], [[*row, note] for row in table.rows])

    def content() -> dict[str, object]:
        once = stamp()
        contents = {
            name: {key: value for key, value in one.to_dict().items() if key not in once}
            for name, one in results.items()
        }
        return {**once, "same_queries": same_queries, "note": note or None, "systems": contents}

    def board() -> list[Part]:
        return board_of(results, same_queries, sides)

    return View(screen, page, exact, content, board, notes)


def board_of(
    results: Mapping[str, Result], same_queries: bool | None, sides: Mapping[str, str]
) -> list[Part]:
    """Return the table of all systems, and what has to be said about it."""
    first, note = next(iter(results.values())), _note(results, same_queries)
    values = {m: {name: one.metrics[m] for name, one in results.items()} for m in first.metrics}
    # Values over different queries have no best, and no order.
    table = leaderboard(values, dict.fromkeys(sides, "neither") if note else sides)
    legend = [f"bold: {STAR}", *side_notes(sides)] if table.marked else []
    return [table, *legend, *([note] if note else []), *joint_notes(results)]


def slice_boards(results: Mapping[str, Result], sides: Mapping[str, str]) -> Iterator[Table]:
    """Yield the systems in each slice of each way to cut, the best of the slice first."""
    found: dict[str, dict[Any, dict[str, dict[str, Any]]]] = {}
    for name, one in results.items():
        for way, value, *row in [] if one.by is None else (r.values() for r in one.by.to_pylist()):
            of_slice = found.setdefault(way, {}).setdefault(value, {})
            of_slice.setdefault(name, {})[row[0]] = row
    for way, of_way in found.items():
        rows: list[list[Cell]] = []
        for value, of in of_way.items():
            metrics = next(iter(of.values()))
            values = {m: {name: one[m][1] for name, one in of.items()} for m in metrics}
            board = leaderboard(values, sides)
            for system, *cells in board.rows:
                queries = next(iter(of[str(system)].values()))[3]
                rows.append([UNKNOWN if value is None else value, queries, system, *cells])
        yield Table([Column(way), Column("queries", "count"), *board.columns], rows)


def _note(results: Mapping[str, Result], same_queries: bool | None) -> str:
    if same_queries:
        return ""
    counts = ", ".join(f"{name} {one.queries:,}" for name, one in results.items())
    if same_queries is None:
        return spoken(
            f"perhaps averaged over different queries: {counts}; use --per-query to find out"
        )
    return f"averaged over different queries, so the values are not comparable: {counts}"


def side_notes(sides: Mapping[str, str]) -> list[str]:
    """Return a line on the metrics of which the higher value is not the better one.

    Examples
    --------
    >>> side_notes({"map": "higher", "ece": "lower", "gini": "neither"})
    ['lower is better: ece', 'neither side is better: gini']
    """
    of_side = {side: [name for name, one in sides.items() if one == side] for side in SIDES}
    return [f"{SIDES[side]}: {', '.join(names)}" for side, names in of_side.items() if names]


def _values(results: Mapping[str, Result], sides: Mapping[str, str], *, comparable: bool) -> Table:
    """A row a metric, two columns a system; the best is marked if they are `comparable`."""
    rows: list[list[Cell]] = []
    for metric in next(iter(results.values())).metrics:
        values = [one.metrics[metric] for one in results.values()]
        best = best_value(values, sides[metric]) if comparable else None
        row: list[Cell] = [metric]
        for value, one in zip(values, results.values(), strict=True):
            row.append(value if value is None or value != best else Best(value))
            row.append(one.standard_errors.get(metric))
        rows.append(row)
    columns = [Column("metric")]
    for name in results:
        columns += [Column(name, "value"), Column("error", "error")]
    return Table(columns, rows)


def audit_table(
    audits: Mapping[str, Mapping[str, int]],
    semantics: Choices,
    scope: Scope,
    usual: Collection[str] = audit.HEADLINE,
) -> Table:
    """Return what the audits of systems count: `usual` counts, and those that may surprise."""
    columns = [Column("audit"), *(Column(name, "count") for name in audits), Column("")]
    counted = audit.rows([*audits.values()], semantics, scope, usual)
    return Table(columns, [[name, *counts, meaning] for name, counts, meaning in counted])


def joint_notes(results: Mapping[str, Result]) -> list[str]:
    """Return the notes of all systems: one that all have once, others after who has them."""
    of_note: dict[str, list[str]] = {}
    for name, one in results.items():
        for note in dict.fromkeys(one.notes):
            of_note.setdefault(note, []).append(name)
    return [
        note if len(names) == len(results) else f"{', '.join(names)}: {note}"
        for note, names in of_note.items()
    ]


def _long(tables: Mapping[str, Table]) -> Table:
    """The rows of all tables below each other, with the system before each."""
    columns = max((table.columns for table in tables.values()), key=len)
    rows = [
        [name, *row, *[None] * (len(columns) - len(row))]
        for name, table in tables.items()
        for row in table.rows
    ]
    return Table([Column("system"), *columns], rows)


def facts_of_systems(
    results: Mapping[str, Result], same_queries: bool | None
) -> list[tuple[str, str]]:
    """Return what was read, how it was counted, and how long it took."""
    note = _note(results, same_queries)
    first = next(iter(results.values()))
    systems = {name: one.inputs.get("predictions", {}) for name, one in results.items()}
    facts = facts_of({"systems": systems, **first.inputs})
    facts += rules_of(first.semantics, first.scope).items()
    if first.scope.weight is not None:
        counts = ((name, one.effective_queries or 0) for name, one in results.items())
        facts.append(("effective", ", ".join(f"{name} {count:,.1f}" for name, count in counts)))
    if note:
        facts.append(("queries", note))
    facts.append(("seconds", f"{sum(one.seconds for one in results.values()):.2f}"))
    return facts
