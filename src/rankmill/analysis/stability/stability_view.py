"""Stability: how far a ranking of systems holds, and how it reads as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from rankmill.analysis.compare.differences.differences import (
    Estimate,
    lacking_of,
    left_out_note,
)
from rankmill.analysis.stability.halves import Halves
from rankmill.analysis.statistics.agreement import Correlation
from rankmill.analysis.statistics.sample_size import Needed
from rankmill.package import stamp
from rankmill.results.answer import Answer, plain, plain_fields, read_fields
from rankmill.results.provenance import facts_of, rules_of
from rankmill.semantics.choices import DEFAULT, Choices
from rankmill.semantics.scope import WHOLE, Scope
from rankmill.show.tables import (
    Cell,
    Column,
    Facts,
    Kind,
    Part,
    Table,
    View,
    decimals_of,
    view_of_blocks,
)

if TYPE_CHECKING:
    from rankmill.show.pictures import Picture


@dataclass(frozen=True)
class Design:
    """How it was computed: the arguments of `stability`."""

    cutoffs: tuple[int, ...]
    confidence: float = 0.95
    power: float = 0.8
    splits: int = 100
    seed: int = 0


@dataclass(frozen=True, repr=False, eq=False)
class Stability(Answer):
    """A ranking of systems over cutoffs, metrics and halves of the queries.

    Attributes
    ----------
    values : dict of str to dict of str to dict of int to Estimate
        Metric -> system -> cutoff -> the mean over queries with its interval.
    ranks : dict of str to dict of str to dict of int to (int or None)
        Metric -> system -> cutoff -> 1 plus the number of systems that are better.
    between_cutoffs : dict of str to dict of int to dict of int to Correlation
        Metric -> cutoff -> cutoff -> how well the two rankings agree.
    between_metrics : dict of str to dict of str to dict of int to Correlation
        Metric -> other metric -> cutoff -> how well the two rankings agree.
    halves : dict of str to dict of int to Halves
        Metric -> cutoff -> how well random halves of the queries agree.
    needed : dict of str to dict of int to list of Needed
        Metric -> cutoff -> for each two neighbors in the ranking, from the top, the number of
        queries needed to tell them apart.
    queries : int
        The number of queries that count for every system. All means are over these.
    left_out, differing, unpredicted
        As those of a `Comparison`.
    design : Design
    semantics, scope, notes, inputs, seconds
        As those of a `Comparison`.

    For one system, `between_cutoffs`, `between_metrics`, `halves` and `needed` are empty.
    """

    values: dict[str, dict[str, dict[int, Estimate]]]
    ranks: dict[str, dict[str, dict[int, int | None]]]
    between_cutoffs: dict[str, dict[int, dict[int, Correlation]]]
    between_metrics: dict[str, dict[str, dict[int, Correlation]]]
    halves: dict[str, dict[int, Halves]]
    needed: dict[str, dict[int, list[Needed]]]
    queries: int
    left_out: dict[str, int]
    differing: int
    unpredicted: dict[str, int]
    design: Design
    semantics: Choices = DEFAULT
    scope: Scope = WHOLE
    notes: list[str] = field(default_factory=list)
    inputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def systems(self) -> list[str]:
        """The names of all systems, in the order given."""
        return list(self.left_out)

    @property
    def metrics(self) -> list[str]:
        """The names of all metrics, without cutoffs."""
        return list(self.values)

    @property
    def cutoffs(self) -> tuple[int, ...]:
        """All cutoffs, ascending."""
        return self.design.cutoffs

    def neighbours(self, metric: str) -> list[tuple[str, str]]:
        """Return all pairs that are neighbors in the ranking at any cutoff, the largest first."""
        found: dict[frozenset[str], tuple[str, str]] = {}
        for k in reversed(self.cutoffs):
            for one in self.needed[metric][k]:
                found.setdefault(frozenset((one.better, one.worse)), (one.better, one.worse))
        return list(found.values())

    def _picture(self) -> Picture:
        from rankmill.analysis.compare.view.plots import plot_cutoffs

        return plot_cutoffs(self.values, self.design.confidence)

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes as dicts, lists, strings and numbers; a cutoff is a string."""
        return {
            **stamp(),
            **plain_fields(self, "systems queries differing left_out unpredicted"),
            "settings": plain(self.design),
            "metrics": {metric: self._of_metric(metric) for metric in self.metrics},
            **plain_fields(self, "between_metrics semantics scope notes inputs seconds"),
        }

    def _of_metric(self, metric: str) -> dict[str, Any]:
        ranks = self.ranks[metric]
        values = {
            name: {str(k): one._asdict() | {"rank": ranks[name][k]} for k, one in of_system.items()}
            for name, of_system in self.values[metric].items()
        }
        return {
            "values": values,
            "between_cutoffs": plain(self.between_cutoffs.get(metric, {})),
            "halves": plain(self.halves.get(metric, {})),
            "needed": plain(self.needed.get(metric, {})),
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Self:
        """Return the object from what `to_dict` returned."""
        parts: dict[str, dict[str, Any]] = {}
        for metric, of in told["metrics"].items():
            for name, one in of.items():
                if one:  # one system has no ranking
                    parts.setdefault(name, {})[metric] = one
        ranks = {
            metric: {name: {k: one["rank"] for k, one in at.items()} for name, at in of.items()}
            for metric, of in parts["values"].items()
        }
        empty: dict[str, Any] = {name: {} for name in ("between_cutoffs", "halves", "needed")}
        return read_fields(cls, told | empty | parts | {"ranks": ranks, "design": told["settings"]})

    def _view(self) -> View:
        def blocks() -> list[list[Part]]:
            several = len(self.systems) > 1
            sections = [_agreement, _halves, _needed] if several else []
            tables = [part for section in (_values, *sections) for part in section(self)]
            return [*tables, _notes(self)]

        return view_of_blocks(blocks, lambda: _facts(self), lambda: _exact(self), self.to_dict)


def _table(found: Stability, title: str, kind: Kind, rows: list[list[Cell]]) -> Table:
    """A column for each cutoff."""
    return Table([Column(title), *(Column(f"@{k}", kind) for k in found.cutoffs)], rows)


def _values(found: Stability) -> Iterator[list[Part]]:
    """Each value with the rank of the system; for one system each value with its interval."""
    for metric, of_system in found.values.items():
        if len(of_system) == 1:
            ((_, at),) = of_system.items()
            level = f"{100 * found.design.confidence:.6g}%"
            columns = [Column(metric), Column("value", "value"), Column(f"± {level}", "error")]
            alone: list[list[Cell]] = [[f"@{k}", one.value, one.half] for k, one in at.items()]
            yield [Table(columns, alone)]
            continue
        every = [one.value for at in of_system.values() for one in at.values()]
        decimals = decimals_of(every)
        rows: list[list[Cell]] = []
        for name, at in of_system.items():
            cells_of = (_ranked(found, metric, name, k, decimals) for k in at)
            rows.append([name, *cells_of])
        yield [_table(found, metric, "text", rows)]


def _ranked(found: Stability, metric: str, name: str, k: int, decimals: int) -> str:
    value, rank = found.values[metric][name][k].value, found.ranks[metric][name][k]
    if value is None or rank is None:
        return ""
    told_apart = any(of_system[k] != 1 for of_system in found.ranks[metric].values())
    return f"{value:.{decimals}f} ({rank}){'*' if rank == 1 and told_apart else ''}"


def _agreement(found: Stability) -> Iterator[list[Part]]:
    """Correlations with the largest and with the next cutoff, then between metrics."""
    last, following = found.cutoffs[-1], dict(zip(found.cutoffs, found.cutoffs[1:], strict=False))
    for metric, between in found.between_cutoffs.items() if following else ():
        rows: list[list[Cell]] = []
        for title, others in (
            (f"with @{last}", dict.fromkeys(found.cutoffs, last)),
            ("with the next cutoff", following),
        ):
            pairs = [between.get(k, {}).get(others.get(k, 0)) for k in found.cutoffs]
            rows += _correlations(title, pairs)
        yield [_table(found, f"{metric}: agreement of rankings", "correlation", rows)]
    rows = []
    for i, metric in enumerate(found.metrics):
        for other in found.metrics[i + 1 :]:
            at = found.between_metrics[metric][other]
            rows += _correlations(f"of {metric} and {other}", [at.get(k) for k in found.cutoffs])
    if rows:
        yield [_table(found, "agreement of metrics", "correlation", rows)]


def _correlations(title: str, found: list[Correlation | None]) -> list[list[Cell]]:
    return [
        [f"tau_b {title}", *(None if one is None else one.tau_b for one in found)],
        [f"tau_AP {title}", *(None if one is None else one.tau_ap for one in found)],
    ]


def _halves(found: Stability) -> Iterator[list[Part]]:
    """The correlation between halves for all metrics, then how often halves agree on each pair."""
    if len(found.systems) > 2:
        taus: list[list[Cell]] = [
            [metric, *(at[k].tau for k in found.cutoffs)] for metric, at in found.halves.items()
        ]
        yield [_table(found, "tau_b between halves of the queries", "correlation", taus)]
    for metric, at in found.halves.items():
        rows: list[list[Cell]] = [
            [f"{one} and {other}", *(at[k].agreement[one][other] for k in found.cutoffs)]
            for one, other in found.neighbours(metric)
        ]
        yield [_table(found, f"{metric}: halves name the same better system", "share", rows)]


def _needed(found: Stability) -> Iterator[list[Part]]:
    """The number of queries needed for each pair, at the cutoffs where the two are neighbours."""
    for metric, at in found.needed.items():
        numbers = {
            k: {frozenset((one.better, one.worse)): one.queries for one in at[k]}
            for k in found.cutoffs
        }
        rows: list[list[Cell]] = [
            [f"{one} and {other}", *(numbers[k].get(frozenset((one, other))) for k in numbers)]
            for one, other in found.neighbours(metric)
        ]
        yield [_table(found, f"{metric}: queries needed ({found.queries:,} used)", "count", rows)]


def _notes(found: Stability) -> list[Part]:
    notes = list(found.notes)
    if len(found.systems) > 1:
        notes.insert(0, "(1) the rank of the system at a cutoff, * the best")
    if found.differing:
        lacking = lacking_of(found.left_out, found.differing, {})
        notes.append(left_out_note(found.differing, lacking))
    return [*notes]


def _facts(found: Stability) -> Facts:
    design, facts = found.design, [("queries", f"{found.queries:,} count for every system")]
    if len(found.systems) > 1:
        level = f"{1 - design.confidence:.6g}"
        facts += [
            ("halves", f"{design.splits:,} random splits of the queries, seed {design.seed}"),
            ("queries needed", f"paired t-test, level {level}, power {design.power:.6g}"),
        ]
    lacking = [f"{name} {count:,}" for name, count in found.unpredicted.items() if count]
    if lacking:
        rule = "score 0" if found.semantics.unpredicted == "zero" else "do not count"
        facts.append(("without predictions", f"{', '.join(lacking)}; these queries {rule}"))
    facts += facts_of(found.inputs)
    facts += rules_of(found.semantics, found.scope).items()
    return Facts([*facts, ("seconds", f"{found.seconds:.2f}")], aligned=False)


def _exact(found: Stability) -> Table:
    """A row for each number, with what it is of."""
    names = ["what", "metric", "cutoff", "system", "other_metric", "other_cutoff", "other_system"]
    rows = [*_exact_values(found), *_exact_correlations(found), *_exact_pairs(found)]
    return Table([Column(name) for name in (*names, "value")], rows)


def _exact_values(found: Stability) -> Iterator[list[Cell]]:
    for metric, of_system in found.values.items():
        for name, at in of_system.items():
            for k, one in at.items():
                for what, number in one._asdict().items():
                    yield [what, metric, k, name, None, None, None, number]
                yield ["rank", metric, k, name, None, None, None, found.ranks[metric][name][k]]
                yield ["queries", metric, k, name, None, None, None, found.queries]


def _exact_correlations(found: Stability) -> Iterator[list[Cell]]:
    for metric, between in found.between_cutoffs.items():
        for k, others in between.items():
            for other, both in others.items():
                for what, number in both._asdict().items():
                    yield [what, metric, k, None, metric, other, None, number]
    for metric, of_other in found.between_metrics.items():
        for name, at in of_other.items():
            for k, both in at.items():
                for what, number in both._asdict().items():
                    yield [what, metric, k, None, name, k, None, number]


def _exact_pairs(found: Stability) -> Iterator[list[Cell]]:
    for metric, at in found.halves.items():
        for k, halves in at.items():
            yield ["halves_tau_b", metric, k, None, None, None, None, halves.tau]
            for name, shares in halves.agreement.items():
                for other, share in shares.items():
                    yield ["halves_agreement", metric, k, name, None, None, other, share]
    for metric, needed in found.needed.items():
        for k, pairs in needed.items():
            for one in pairs:
                for what in ("difference", "deviation", "effect", "queries"):
                    title = "queries_needed" if what == "queries" else what
                    number = getattr(one, what)
                    yield [title, metric, k, one.better, None, None, one.worse, number]
