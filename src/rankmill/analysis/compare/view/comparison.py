"""Comparison: what a comparison of systems found, and how it reads as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Self

from rankmill.analysis.compare.differences.differences import (
    BETTER,
    HIGHER,
    LOWER,
    NOT_SHOWN,
    WORSE,
    Difference,
    Estimate,
    Lacking,
    Likeness,
    Moved,
    Settings,
    Slice,
    SystemPair,
    beaten_of,
    by_metric,
    left_out_note,
    named,
    ranks_of,
    read_by_metric,
)
from rankmill.analysis.compare.view.tables import (
    Explain,
    board_parts,
    moved_tables,
    pair_tables,
    paper_parts,
    rank_tables,
    slice_tables,
    tests_of,
)
from rankmill.analysis.statistics.significance import Tested
from rankmill.engine.results import audit_table
from rankmill.metrics.registry import lines_of, parse
from rankmill.package import stamp
from rankmill.records import record
from rankmill.results.answer import Answer, plain_fields, read_fields
from rankmill.results.audit import facts_of, rules_of
from rankmill.semantics.choices import DEFAULT, WHOLE, Choices, Scope
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
    view_of_blocks,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from rankmill.analysis.compare.differences.comparison_state import ComparisonState
    from rankmill.analysis.compare.view.details import Details
    from rankmill.show.pictures import Picture

MOST_TOLD = 3
"""So many systems of a note are named."""
IN_TABLE = "per_query has null for them"
"""Where Python lists the queries that a system lacks."""


@record(frozen=True, repr=False, eq=False)
class Comparison(Answer):
    """Systems side by side over the same queries, with tests of the differences.

    Attributes
    ----------
    baseline : str
        The system that all others are compared with.
    values : dict of str to dict of str to Estimate
        Metric -> system -> value, including the baseline.
    differences : dict of str to dict of str to Difference
        Metric -> system -> difference from the baseline, for all other systems.
    queries : int
        The number of queries that count for every system. All means are over these.
    effective_queries : float or None
        How many queries of equal weight would give the same precision; None without weights.
    left_out : dict of str to int
        System -> how many queries count for it, but not for every other system.
    differing : int
        The number of queries that count for some systems only.
    lacking : dict of str to Lacking
        System -> how many queries count for another system, but not for it, and the smallest ids of
        these; systems that lack none are left out.
    unpredicted : dict of str to int
        System -> how many queries have labels, but no predictions of it. The semantics say whether
        they score 0 or are left out.
    audit : dict of str to dict of str to int
        System -> its audit, as that of a `Result`; {} for merged states.
    slices : list of Slice
        The slices of each column of `by`, tested on their own; the first test decides.
    pairs : list of SystemPair
        Every pair of systems in each metric, with `all_pairs`; pairs with the baseline come first.
    moved : dict of str to dict of str to list of Moved
        Metric -> system -> the queries that gained most and then those that lost most, which are
        last; or only these, the one that lost most first.
    per_query : pyarrow.Table or None
        A row for each query that counts for any system: its id, and a column SYSTEM:METRIC for
        each system and metric; null where a query does not count for it. None of merged states.
    alike : dict of str to dict of str to Likeness
        Metric -> system -> how similar its lists are to those of the baseline.
    pooled : list of str
        The metrics that are not means over queries, such as gap. `notes` explains their intervals;
        their only test is "t", and each system is evaluated over all its own queries.
    state : ComparisonState or None
        The sums over queries from which all of this is computed; None if it was read from JSON.
    settings : Settings
    clusters : int or None
        How many clusters the queries come in; None without `cluster`.
    details : Details or None
        Additional data for an HTML report, if requested.
    semantics, scope, notes, inputs, seconds
        As those of a `Result`; `inputs` has "labels", under "systems" each system by its name, and
        "train" and so on if they were given.
    """

    baseline: str
    values: dict[str, dict[str, Estimate]]
    differences: dict[str, dict[str, Difference]]
    queries: int
    effective_queries: float | None
    left_out: dict[str, int]
    differing: int
    unpredicted: dict[str, int]
    slices: list[Slice]
    state: ComparisonState | None
    lacking: dict[str, Lacking] = field(default_factory=dict)
    audit: dict[str, dict[str, int]] = field(default_factory=dict)
    pairs: list[SystemPair] = field(default_factory=list)
    moved: dict[str, dict[str, list[Moved]]] = field(default_factory=dict)
    per_query: pa.Table | Any = None  # Any: so that type checkers ask no user to rule None out
    alike: dict[str, dict[str, Likeness]] = field(default_factory=dict)
    pooled: list[str] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    clusters: int | None = None
    details: Details | None = None
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
    def others(self) -> list[str]:
        """The names of all systems but the baseline."""
        return [name for name in self.systems if name != self.baseline]

    def winner(self, metric: str) -> str | None:
        """Return the system that is shown to be better than every other, or None.

        That of three systems or more needs `all_pairs`: without, only the baseline is tested
        against every other system.
        """
        if not self.pairs and len(self.others) > 1:
            return None
        beaten = self.shown_to_beat(metric)
        return next((n for n, of in beaten.items() if len(of) == len(self.others)), None)

    def shown_to_beat(self, metric: str) -> dict[str, list[str]]:
        """Return for each system the others that it is shown to be better than, as tested."""
        of = self.differences[metric].items()
        pairs = self.pairs or [SystemPair(metric, self.baseline, name, one) for name, one in of]
        shown = (one for one in pairs if one.difference.verdict in (BETTER, WORSE))
        return {name: [*beaten] for name, beaten in beaten_of(shown, self.values)[metric].items()}

    @property
    def whole(self) -> Slice:
        """All queries, as if they were a slice."""
        return Slice((), (), self.queries, self.values, self.differences)

    @property
    def ranks(self) -> dict[str, dict[int, dict[str, int | None]]]:
        """Metric without its cutoff -> cutoff -> system -> rank; {} without `cutoffs`."""
        return {
            metric: {k: ranks_of(self.values[one], parse(one).better) for k, one in at.items()}
            for metric, at in self._lines.items()
        }

    @property
    def _lines(self) -> dict[str, dict[int, str]]:
        return lines_of(self.values) if self.settings.cutoffs else {}

    def _picture(self) -> Picture:
        from rankmill.analysis.compare.view.plots import plot_comparison

        # What was read from JSON has no queries to draw.
        sums = None if self.state is None else self.state.whole
        return plot_comparison(self.baseline, self.whole, self.slices, self.settings, sums)

    def to_dict(self) -> dict[str, Any]:
        """Return all but `per_query`, `state` and `details` as dicts, lists, strings and numbers.

        Values of each query would make 68 MB of 3 kB, for a million queries, two systems and two
        metrics. ``pyarrow.parquet.write_table(found.per_query, path)`` keeps them in 8 MB.
        """
        return {
            **stamp(),
            **plain_fields(self, "baseline systems queries effective_queries clusters differing"),
            **plain_fields(self, "left_out lacking unpredicted audit settings"),
            "metrics": by_metric(self.values, self.differences),
            **plain_fields(self, "pairs ranks slices pooled alike moved"),
            **plain_fields(self, "semantics scope notes inputs seconds"),
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Self:
        """Return the object from what `to_dict` returned, without `per_query` and `state`."""
        return read_fields(cls, {"state": None, **told, **read_by_metric(told["metrics"])})

    def _view(self) -> View:
        return view_of(self, listing="" if self.per_query is None else IN_TABLE)


def view_of(found: Comparison, explain: Explain | None = None, listing: str = "") -> View:
    """Return what is shown of a comparison.

    `explain` gives a command for each query that moved, and `listing` says where all queries are
    that a system lacks.
    """

    def blocks() -> list[list[Part]]:
        tables: list[list[Part]] = [[metric_table(found, metric)] for metric in found.values]
        base, settings = found.baseline, found.settings
        notes: list[Part] = [*notes_of(found, listing)]
        if found.pairs:
            tables = [leaderboard_parts(found), *pair_tables(found.pairs, settings)]
        elif any(isinstance(one, Table) and one.marked for (one,) in tables):
            notes.insert(0, f"* {STAR}")
        more = [
            *rank_tables(found.values, found._lines),
            *slice_tables(base, found.others, found.slices, settings),
            *moved_tables(base, found.moved, settings, explain),
        ]
        return [*tables, notes, *more, _audit(found)]

    def content() -> dict[str, Any]:
        content = found.to_dict()
        if explain is not None:
            for metric, of_system in content["moved"].items():
                for name, rows in of_system.items():
                    for row in rows:
                        row["explain"] = explain(metric, name, row["query"])
        return content

    def paper() -> list[Part]:
        base = found.baseline
        moved = moved_tables(base, found.moved, found.settings, None)
        tables = paper_parts(
            base, found.whole, found.slices, found.settings, notes_of(found), found.pairs
        )
        return [*tables, *(part for block in moved for part in block)]

    return view_of_blocks(
        blocks,
        lambda: _facts(found),
        lambda: _exact_table(found),
        content,
        paper,
        found.notes,
    )


def leaderboard_parts(found: Comparison) -> list[Part]:
    """Return the table of all systems, with the letters of all pairs if they are compared."""
    return board_parts(found.baseline, found.whole, found.settings, found.pairs)


def metric_table(found: Comparison, metric: str) -> Table:
    """A row for each system; what compares it with the baseline is empty in the baseline's."""
    settings, level = found.settings, f"{100 * found.settings.confidence:.6g}%"
    corrected = "" if settings.correction == "none" else f" ({settings.correction})"
    titles = [f"p {one}" for one in settings.tests] if len(settings.tests) > 1 else ["p"]
    columns = [
        Column(metric),
        Column("value", "value"),
        Column(f"± {level}", "error"),
        Column(f"from {found.baseline}", "difference"),
        Column(f"{level} interval", "interval"),
        *(Column(f"{one}{corrected}", "p") for one in titles),
        Column("result"),
        Column("relative", "change"),
        Column(f"{level} interval", "changes"),
        *(Column(name, "share") for name in ("won", "tied", "lost")),
    ]
    of = found.values[metric]
    best = best_value([one.value for one in of.values()], parse(metric).better)
    rows: list[list[Cell]] = []
    for name, one in of.items():
        marked = Best(one.value) if one.value is not None and one.value == best else one.value
        more = _cells(found.differences[metric].get(name), settings)
        rows.append([name, marked, one.half, *more])
    return Table(columns, rows)


def _cells(one: Difference | None, settings: Settings) -> list[Cell]:
    if one is None:
        return [None, None, *[None] * len(settings.tests), "", *[None] * 5]
    tests = [one.tests.get(test) for test in settings.tests]
    if len(tests) == 1:  # a metric such as gap has one test, whatever is asked for
        tests = list(one.tests.values()) or tests
    return [
        *(one.value, one.interval),
        *(None if test is None else test.corrected_p for test in tests),
        *(one.verdict or "not tested", one.relative, one.relative_interval),
        *map(one.share, (one.won, one.tied, one.lost)),
    ]


def notes_of(found: Comparison, listing: str = "") -> list[str]:
    """Return the lines that a reader of the numbers has to know; `listing` is that of `view_of`."""
    notes = list(found.notes)
    if found.differing:
        note = left_out_note(found.differing, found.lacking)
        notes.append(f"{note}; {listing}" if listing else note)
    notes += _claims(found)
    if found.pooled and found.differing:
        notes.append(f"{', '.join(found.pooled)}: each system's is over its own queries")
    return notes


def _claims(found: Comparison) -> Iterator[str]:
    """Yield what shown differences rest on, and what differences could have been shown."""
    level = 1 - found.settings.confidence
    every = [(m, name, one) for m, of in found.differences.items() for name, one in of.items()]
    shown = [one for one in every if one[2].verdict in (BETTER, WORSE, HIGHER, LOWER)]
    few = [f"{name} in {metric}" for metric, name, one in shown if (one.bound_p or 0.0) > level]
    if few:
        yield (
            f"rests on few queries: {_some(few)}: a single further query, at worst, would undo "
            "the result: confirm it with more queries"
        )
    hidden: dict[tuple[str, float], str] = {}  # a metric in two spellings once
    for metric, name, one in every:
        if one.verdict == NOT_SHOWN and one.detects is not None:
            hidden.setdefault((name, one.detects), f"{one.detects:.2g} ({metric}, {name})")
    if hidden:
        yield (
            "no difference shown: in 80% of such comparisons one is shown from these on: "
            f"{_some([*hidden.values()])}"
        )


def _some(texts: Sequence[str]) -> str:
    """Return the first few texts."""
    more = f" and {len(texts) - MOST_TOLD:,} more" if texts[MOST_TOLD:] else ""
    return ", ".join(texts[:MOST_TOLD]) + more


def _audit(found: Comparison) -> list[Part]:
    """Return what the audits of the systems counted, if there is anything that may surprise."""
    audits = found.audit or {
        name: {"queries_only_labelled": count} for name, count in found.unpredicted.items()
    }
    table = audit_table(audits, found.semantics, found.scope, usual=())
    return [table] if table.rows else []


def _facts(found: Comparison) -> Facts:
    settings = found.settings
    tested = tests_of(found.whole, found.pairs)
    family = f"metrics times {'pairs of ' * bool(found.pairs)}systems"
    test = f"{', '.join(settings.tests)}; p "
    test += (
        "not corrected"
        if settings.correction == "none"
        else f"corrected by {settings.correction} over {tested:,} ({family})"
    )
    if found.slices and settings.correction != "none":
        test += f"; of slices over {sum(one.tests_run for one in found.slices):,} of their own"
    bounded = (of.values() for cut in found.slices for of in cut.differences.values())
    if any(one.bound_p is not None for each in bounded for one in each):
        test += "; p of slices is not below that of the mean with one unseen query"
    count = f"{found.queries:,} (those that count for every system)"
    if found.effective_queries is not None:
        count += f"; the weights make them worth {found.effective_queries:,.1f} of equal weight"
    if found.clusters is not None:
        count += f"; they come in {found.clusters:,} clusters by {settings.cluster}"
    facts = [("queries", count), ("test", test)]
    if settings.adjust is not None:
        less = (
            f"{metric} {name} {one.variance_reduction:.1%}"
            for metric, of in found.differences.items()
            for name, one in of.items()
            if one.variance_reduction is not None
        )
        facts.append(("adjusted", f"by {settings.adjust}; variance less by {', '.join(less)}"))
    if settings.margin is not None:
        facts.append(("margin", repr(settings.margin)))
    if found.inputs:  # a state does not know where its queries came from
        facts += facts_of(found.inputs)
    facts += rules_of(found.semantics, found.scope).items()
    return Facts([*facts, ("seconds", f"{found.seconds:.2f}")], aligned=False)


# ------------------------------------------------------------------ exact numbers

_OF_MARGIN = ("equivalence", "noninferiority")
_OF_TESTS = ("tests", *_OF_MARGIN)


def _exact_table(found: Comparison) -> Table:
    """A row for each slice, metric and system, with every digit; of all queries first.

    What is not compared with the baseline follows the rows of all queries. The queries
    that moved are last, with columns of their own.
    """
    names = ["by", "slice", "metric", "system", "baseline", "queries", *Estimate._fields]
    fields = [one.name for one in dataclasses.fields(Difference) if one.name not in _OF_TESTS]
    renamed = {"value": "difference", "low": "difference_low", "high": "difference_high"}
    names += [renamed.get(name, name) for name in fields]
    every_test = (
        name for of in found.differences.values() for one in of.values() for name in one.tests
    )
    tests = dict.fromkeys([*found.settings.tests, *every_test])
    names += [f"{test}_{field}" for test in tests for field in Tested._fields]
    names += [f"{one}_{field}" for one in _OF_MARGIN for field in ("p", "corrected_p")]
    more = ["query", "baseline_value"] * bool(found.moved)

    def row(
        of: Slice, metric: str, name: str, pair: SystemPair | None = None, **own: Cell
    ) -> list[Cell]:
        one = of.differences[metric].get(name, Difference(None, better=parse(metric).better))
        one, base = (one, found.baseline) if pair is None else (pair.difference, pair.baseline)
        cells: list[Cell] = [*(named(of.by, of.value) if of.by else (None, None))]
        cells += [metric, name, base, None if metric in found.pooled else of.queries]
        cells += [*of.values[metric][name], *(getattr(one, field) for field in fields)]
        nothing = Tested(None)
        cells += [cell for test in tests for cell in one.tests.get(test, nothing)]
        cells += [cell for each in _OF_MARGIN for cell in (getattr(one, each) or nothing)[:2]]
        return [*cells, *map(own.get, more)]

    rows: list[list[Cell]] = []
    whole = found.whole
    for of in (whole, *found.slices):
        rows += [row(of, metric, name) for metric in of.values for name in of.values[metric]]
        others = (p for p in found.pairs if of is whole and p.baseline != found.baseline)
        rows += [row(of, p.metric, p.system, p) for p in others]
    for metric, of_system in found.moved.items():
        for name, queries in of_system.items():
            for one in queries:
                of = _alone(metric, name, one)
                rows.append(row(of, metric, name, query=one.query, baseline_value=one.baseline))
    return Table([Column(name) for name in (*names, *more)], rows)


def _alone(metric: str, system: str, one: Moved) -> Slice:
    """Return a query that moved as a slice of one query, metric and system."""
    difference = Difference(one.difference, better=parse(metric).better)
    return Slice((), (), 1, {metric: {system: Estimate(one.value)}}, {metric: {system: difference}})
