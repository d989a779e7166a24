"""Verdict: what came of the rules, and how it reads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from rankmill.analysis.compare.view.comparison import Comparison
from rankmill.analysis.compare.view.details import Details
from rankmill.errors import RegressionError, UsageError, plural
from rankmill.nightly.rules.baseline import SliceValue
from rankmill.nightly.rules.measurements import Interval
from rankmill.nightly.rules.rules import (
    BAD_AUDIT,
    BAD_VOLUME,
    EVERY,
    HELD,
    NON_INFERIOR,
    REGRESSED,
    STALE,
    UNDECIDED,
    Rule,
    amount,
    parse_rule,
)
from rankmill.package import stamp
from rankmill.records import record
from rankmill.results.answer import Answer, plain_fields
from rankmill.results.audit import described, rules_of
from rankmill.results.result import Result
from rankmill.results.slices import UNKNOWN
from rankmill.show.tables import Bad, Cell, Column, Facts, Part, Table, View

if TYPE_CHECKING:
    from rankmill.show.pictures import Picture

# The words from the worst on. Bad inputs come first: what was measured on them says little.
ORDER = (STALE, BAD_VOLUME, BAD_AUDIT, REGRESSED, UNDECIDED, HELD)
# So many slices of a rule are all shown.
MOST_SLICES = 10
# So many outcomes that do not count are named in a note.
MOST_ASIDE = 3
NOT_JUDGED = "not judged"
ON_UNDECIDED = ("warn", "fail")


@record(frozen=True)
class RuleOutcome:
    """What came of one rule, or of one slice of it.

    Attributes
    ----------
    rule : str
        As it was written.
    word : str
        "held", of a guardrail "non-inferior", "not enough data", or how it failed: "regressed",
        "bad volume", "bad audit" or "stale".
    slice : str
        Which slice, such as "country = it"; empty for all queries.
    value, baseline : float or None
        Of the system over all its queries, and of the baseline if the rule needs one.
    measured : float or None
        What the limit is for: the value, the drop or the change; relative if the limit is. A drop
        is a change for the worse, also where that is a rise; None for a share of 0.
    low, high : float or None
        The interval of `measured`, if the rule has a confidence.
    limit : float
    reason : str
        All of this in a line.
    paired, queries : int or None
        Over how many queries the two were paired, and how many count on either side; None if the
        baseline has no values of queries. Too few are not paired: `paired` is 0.
    paired_value : float or None
        The value of the system over the queries that were paired, as `baseline` is then.
    counts : bool
        Whether the verdict depends on it. It does not on a slice without a baseline yet, on one
        that was gone the night before already, and on one too small for its rule.
    detects : float or None
        The smallest drop that the rule fails in 80% of nights on such data, in the unit of the
        limit; None if no drop is large enough, or the data do not tell.
    night : tuple of float or None
        Of a rule about a series of paired nights, what tonight adds to it: by how much the mean is
        within the limit, its squared error, by how much one unseen query could move it up and down,
        and the baseline.
    """

    rule: str
    word: str
    slice: str
    value: float | None
    baseline: float | None
    measured: float | None
    low: float | None
    high: float | None
    limit: float
    reason: str
    paired: int | None = None
    queries: int | None = None
    paired_value: float | None = None
    counts: bool = True
    detects: float | None = None
    night: tuple[float, ...] | None = None

    @property
    def told(self) -> str:
        """The word as tables and lines have it: what does not count is "not judged"."""
        return self.word if self.counts else NOT_JUDGED

    @property
    def kept(self) -> bool:
        """Whether the rule was kept."""
        return self.word in (HELD, NON_INFERIOR)

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes as strings and numbers."""
        return dict(vars(self))


@record(frozen=True, repr=False, eq=False)
class Verdict(Answer):
    """Whether a system keeps its rules, and why.

    Attributes
    ----------
    word : str
        The most severe word of all outcomes: "stale", "bad volume", "bad audit", "regressed" or
        "not enough data"; "held" if every rule was kept.
    outcomes : list of RuleOutcome
        In the order of the rules; of a rule for every slice there is one for each slice.
    result : Result
        What the evaluation of the system found.
    comparison : Comparison or None
        The comparison with the baseline, if there are values of each query of both.
    baseline : dict of str to object, or None
        What the system was compared with: its "kind" ("predictions", "per-query", "result" or
        "history") and "source"; None without a baseline.
    undecided : {"warn", "fail"}
        What to do with rules without enough data.
    seconds : float
    details : Details or None
        Additional data for an HTML report, if requested.
    slices : list of SliceValue
        The system over all queries and in each slice, for the history; no other form shows it.
    run : str
        The date and time that all outputs of a command name; empty in Python.
    """

    word: str
    outcomes: list[RuleOutcome]
    result: Result
    comparison: Comparison | None = None
    baseline: dict[str, Any] | None = None
    undecided: str = "warn"
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    details: Details | None = None
    slices: list[SliceValue] = field(default_factory=list)
    run: str = ""

    @property
    def failed(self) -> list[RuleOutcome]:
        """The outcomes that make the verdict fail."""
        return [one for one in self.outcomes if fails(self, one)]

    @property
    def headline(self) -> str:
        """The word, and of how many rules it is if they are undecided, or some were not judged."""
        if self.word not in (HELD, UNDECIDED):
            return self.word
        judged = [one for one in self.outcomes if one.counts]
        if self.outcomes and not judged:
            return NOT_JUDGED
        of_word = {one.rule for one in judged if self.word == HELD or one.word == UNDECIDED}
        rules = {one.rule for one in self.outcomes}
        if self.word == HELD and of_word == rules:
            return self.word
        return f"{self.word} for {len(of_word)} of {plural(len(rules), 'rule')}"

    @property
    def exit_code(self) -> int:
        """0 if the system may go on, 1 if not."""
        return 1 if self.failed else 0

    def __bool__(self) -> bool:
        """Whether the system may go on, so that ``assert gate(...)`` stops a bad one."""
        return self.exit_code == 0

    def raise_for_failure(self) -> None:
        """Raise RegressionError, which has a line for each reason, if a rule was broken."""
        if not self:
            raise RegressionError("\n".join(f"{one.word}: {one.reason}" for one in self.failed))

    def to_dict(self) -> dict[str, Any]:
        """Return all as dicts, lists, strings and numbers."""
        return {
            **stamp(),
            **plain_fields(self, "word exit_code undecided outcomes baseline result comparison"),
            **plain_fields(self, "notes seconds run"),
        }

    def _picture(self) -> Picture:
        if self.comparison is None:
            raise UsageError(
                "there is no picture of a Verdict without a comparison: give a baseline with "
                "per-query values"
            )
        return self.comparison._picture()

    def _view(self) -> View:
        def table() -> Table:
            shown = shown_outcomes(self)
            known = any(one.detects is not None for one in shown)
            names = ["rule", "verdict", *(["detects"] if known else []), "reason"]
            rows: list[list[Cell]] = [
                [
                    *(one.rule, Bad(one.word) if fails(self, one) else one.told),
                    *([_detects(one)] if known else []),
                    one.reason,
                ]
                for one in shown
            ]
            return Table([Column(name) for name in names], rows)

        def facts() -> Facts:
            headline = Bad(self.headline) if self.failed else self.headline
            rows: list[tuple[str, str]] = [("verdict", headline)]
            rows += [("run", self.run)] if self.run else []
            if self.baseline is not None:
                rows.append(("baseline", f"{self.baseline['source']} ({self.baseline['kind']})"))
            rows += [(role, described(one)) for role, one in self.result.inputs.items()]
            rows += rules_of(self.result.semantics, self.result.scope).items()
            return Facts([*rows, ("seconds", f"{self.seconds:.2f}")], aligned=False)

        def parts() -> list[Part]:
            return [table(), *slices_held(self), *dict.fromkeys([*self.notes, *self.result.notes])]

        def exact() -> Table:
            names = list(RuleOutcome.__dataclass_fields__)
            rows: list[list[Cell]] = [
                [getattr(one, name) for name in names] for one in self.outcomes
            ]
            return Table([Column(name) for name in names], rows)

        return View(lambda: [*parts(), "", facts()], parts, exact, self.to_dict)


def fails(found: Verdict, one: RuleOutcome) -> bool:
    """Return whether an outcome makes a verdict fail."""
    passes = one.kept or (one.word == UNDECIDED and found.undecided != "fail")
    return one.counts and not passes


def judged_slices(rule: Rule, outcomes: list[RuleOutcome], undecided: str) -> list[RuleOutcome]:
    """Return the outcomes of a rule for every slice; slices too small for it do not count.

    Nor do queries without a value, which such a rule asks for by no name. All may still break it,
    and one that is undecided counts if none is decided, or if `undecided` is "fail".
    """
    if not rule.starred or all(one.word == UNDECIDED for one in outcomes):
        return outcomes
    unnamed = [is_unnamed(rule, one.slice) for one in outcomes]
    small = [undecided != "fail" and is_small(rule, *_found(one)) for one in outcomes]
    return [
        replace(one, counts=False) if one.word == UNDECIDED and any(aside) else one
        for one, *aside in zip(outcomes, unnamed, small, strict=True)
    ]


def _found(one: RuleOutcome) -> tuple[Interval, float | None]:
    number = math.inf if one.measured is None else one.measured
    return Interval(number, one.low, one.high), one.baseline


def is_unnamed(rule: Rule, slice_name: str) -> bool:
    """Return whether a slice is of queries without a value, which a starred rule does not name."""
    starred = {f"{name} = {UNKNOWN}" for name, value in rule.slices if value == EVERY}
    return not starred.isdisjoint(slice_name.split(", "))


def is_small(rule: Rule, found: Interval, baseline: float | None) -> bool:
    """Return whether a slice is too small for an undecided rule.

    Its interval reaches from no change to the loss of all; or the value keeps the limit, and the
    interval is so wide that no change at all would be undecided, too. That of a value is wider than
    half of the range.
    """
    low = -math.inf if found.low is None else found.low
    high = math.inf if found.high is None else found.high
    ends = rule.metric.bounds
    if not rule.paired:
        return high - low > (ends[1] - ends[0]) / 2
    worst = ends[1 if rule.better == "lower" else 0]
    base, of = baseline or 0.0, (baseline or 1.0) if rule.relative else 1.0
    wide = rule.keeps(found.number) and high - found.number > rule.limit
    return wide or (low <= 0 and high >= abs(base - worst) / of)


def not_judged(outcomes: list[RuleOutcome]) -> str:
    """Return a note with the reasons of outcomes that do not count; "" if all count."""
    aside = [*dict.fromkeys(one.reason for one in outcomes if not one.counts)]
    return f"{NOT_JUDGED}: {few_of(aside, MOST_ASIDE)}" if aside else ""


def few_of(texts: Sequence[str], most: int) -> str:
    """Return the first texts as a list, and how many more there are."""
    more = [f"and {len(texts) - most:,} more"] * (len(texts) > most)
    return "; ".join([*texts[:most], *more])


def undecided_note(outcomes: list[RuleOutcome]) -> str:
    """Return a note that names what has too little data, and what to do; "" if all is decided."""
    waiting = [one for one in outcomes if one.word == UNDECIDED and one.counts]
    if not waiting:
        return ""
    told = "; ".join(
        f"{rule} ({_named(of)})" if of[0].slice else rule for rule, of in by_rule(waiting).items()
    )
    sliced = any(one.slice for one in waiting)
    tested = any(one.low is not None or one.high is not None for one in waiting)
    bare = ", or compare the values without a test (confidence none)" * tested
    instead = ", or write rules for larger slices only, such as [COLUMN=VALUE]" * sliced
    return (
        f"too little data for {told}: such a run is never the baseline last or median: allow "
        f"more (--power shows how much each rule needs){bare}{instead}"
    )


def _named(outcomes: list[RuleOutcome]) -> str:
    return "; ".join(one.slice for one in outcomes[:3]) + "; ..." * (len(outcomes) > 3)


def worst(outcomes: list[RuleOutcome]) -> str:
    """Return the worst word of the outcomes that count; "held" if all are kept."""
    broken = (one.word for one in outcomes if one.counts and not one.kept)
    return min(broken, key=ORDER.index, default=HELD)


def shown_outcomes(found: Verdict, most: int = MOST_SLICES) -> list[RuleOutcome]:
    """Return the outcomes that people read; of slices, those that did not hold come first.

    If a rule has more slices than `most`, only the one nearest to the limit stands for those that
    held.
    """
    shown: list[RuleOutcome] = []
    for of_rule in by_rule(found.outcomes).values():
        held = [one for one in of_rule if one.kept]
        shown += [one for one in of_rule if not one.kept]
        shown += held if len(of_rule) <= most else sorted(held, key=_distance)[:1]
    return shown


def by_rule(outcomes: Iterable[RuleOutcome]) -> dict[str, list[RuleOutcome]]:
    """Return the outcomes of each rule, which are several of one for slices."""
    found: dict[str, list[RuleOutcome]] = {}
    for one in outcomes:
        found.setdefault(one.rule, []).append(one)
    return found


def slices_held(found: Verdict) -> list[str]:
    """Return a note for each rule that has more slices than a table shows."""
    return [
        f"{rule}: held in {sum(one.kept for one in of_rule):,} of {len(of_rule):,} slices; "
        "of those that held, only the nearest to the limit is shown; CSV and JSON have all"
        for rule, of_rule in by_rule(found.outcomes).items()
        if len(of_rule) > MOST_SLICES
    ]


def _detects(one: RuleOutcome) -> str:
    return "" if one.detects is None else amount(one.detects, parse_rule(one.rule))


def _distance(one: RuleOutcome) -> float:
    """Return how far the nearer end of the interval of an outcome is from the limit."""
    ends = [end for end in (one.low, one.high, one.measured) if end is not None]
    return min((abs(end - one.limit) for end in ends), default=0.0)
