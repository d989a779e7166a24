"""Sections about what rules and the audit found: slices that rules name, and what looks wrong."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rankmill.analysis.compare.view.comparison import Comparison, notes_of
from rankmill.errors import plural
from rankmill.nightly.report.section import (
    FactList,
    Finding,
    Finds,
    Grid,
    Html,
    Section,
    listed,
    name,
    say,
)
from rankmill.nightly.report.subject import Subject
from rankmill.nightly.rules.breaches import night_before, trend_of
from rankmill.nightly.rules.verdict import RuleOutcome, Verdict, by_rule, fails
from rankmill.results import audit
from rankmill.semantics.choices import Choices, Scope
from rankmill.show import charts
from rankmill.show.marks import count, number, percent, scale_of

SUSPECT = "look"
# So many slices of a rule are drawn, those that broke it first.
MOST_SLICES = 24
# So many slices that broke a rule are named in a title.
NAMED = 3
TONES = ("bad", "warn", "even")
"""The tones of outcomes, the worst first."""


def findings(counts: Mapping[str, int], semantics: Choices, scope: Scope) -> list[Finding]:
    """Return what is notable, what looks wrong first, and the larger share first."""
    meanings = audit.meanings(semantics, scope)
    found = []
    for key, many in audit.notable(counts).items():
        title, of, limit = audit.COUNTS[key]
        whole = counts.get(of, 0)
        share = many / whole if whole else 1.0
        told = f"{percent(share)} of {count(whole)} {of.replace('_', ' ')}" if whole else ""
        suspect = share > limit
        one = Finding(
            SUSPECT if suspect else "noted",
            "warn" if suspect else "even",
            f"{count(many)} {title}",
            told and f"({told})",
            meanings[key],
        )
        found.append((not suspect, -share, one))
    return [one for *_, one in sorted(found, key=lambda each: each[:2])]


def audit_title(found: list[Finding]) -> str:
    """Say whether anything looks wrong."""
    suspect = [str(one.title) for one in found if one.word == SUSPECT]
    if not suspect:
        return "Nothing looks wrong in the inputs"
    more = f", and {len(suspect) - 1} more" if len(suspect) > 1 else ""
    return f"Look at the inputs: {suspect[0]}{more}"


def audited(subject: Subject) -> Section | None:
    """Return what was counted, with all notes; None if the result is not known."""
    result = subject.result
    if result is None:
        return None
    found = findings(result.audit, *subject.rules)
    queries = result.audit.get("queries_in_both", 0), result.audit.get("queries_labelled", 0)
    both, labelled = queries
    lead = say("{} of {} with labels have predictions.", count(both), plural(labelled, "query"))
    compared = subject.comparison
    notes = [
        *getattr(subject.verdict, "notes", ()),
        *(result.notes if compared is None else notes_of(compared)),
    ]
    parts: list[Any] = [Finds(found)] if found else []
    if compared is not None:
        parts += _of_systems(compared)
    parts += [FactList([("note", note) for note in dict.fromkeys(notes)])] if notes else []
    return Section("Audit", audit_title(found), lead, parts)


def _of_systems(compared: Comparison) -> Iterator[Grid]:
    """Yield what is notable in the audit of any system, side by side, if anything is."""
    rows = audit.rows([*compared.audit.values()], compared.semantics, compared.scope, usual=())
    cells = [[audit.COUNTS[key].title, *map(count, counts)] for key, counts, _ in rows]
    if rows:
        yield Grid(["audit", *map(name, compared.audit)], cells)


def tone_of(verdict: Verdict, one: RuleOutcome) -> str:
    """Return the tone of an outcome."""
    return "bad" if fails(verdict, one) else "even" if one.kept else "warn"


def ruled_slices(subject: Subject) -> Iterator[Section]:
    """Yield each rule for slices, with the trend of every slice from the history."""
    verdict = subject.verdict
    if verdict is None:
        return
    for rule, of_rule in by_rule(one for one in verdict.outcomes if one.slice).items():
        shown = sorted(of_rule, key=lambda one: TONES.index(tone_of(verdict, one)))[:MOST_SLICES]
        trends = [  # without a history, this run alone
            trend_of(one, verdict, subject.history) or [(None, one.value, None, one.word)]
            for one in shown
        ]
        nights = max(map(len, trends))
        dots = [_dot(one, tone_of(verdict, one)) for one in shown]
        bases = [charts.Dot(one.baseline, name=charts.BASE) for one in shown]
        scale = scale_of([end for dot in [*bases, *dots] for end in dot[:3]], most=4)
        rows, befores = [], set()
        for one, base, dot, runs in zip(shown, bases, dots, trends, strict=True):
            if nights > 1:
                before = (night_before(runs) or ("", None))[1]
                drawing = charts.sparkline([run[1] for run in runs], [dot.tone])
            else:
                before, drawing = one.baseline, charts.track([base, dot], scale)
            befores.add(before)
            told = Html(f'<span class="{tone_of(verdict, one)}">{name(one.word)}</span>')
            numbers = "" if before is None else number(before), number(one.value)
            rows.append([name(one.slice), drawing, *numbers, told])
        drawn = f"the last {nights} runs" if nights > 1 else charts.axis(scale)
        earlier = "" if befores == {None} else "before" if nights > 1 else "baseline"
        header = ["slice", drawn, earlier, "now", "result"]
        grid = Grid(header, rows, frozenset({0, 4}), 1, frozenset({2}))
        broken = [one for one in shown if fails(verdict, one)]
        lead = "Each line has a scale of its own."
        if nights == 1:
            lead = "There is no earlier run of these slices."
            lead += " Gray dots are the baseline." if earlier else ""
        if len(shown) < len(of_rule):
            lead += f" {len(shown)} of {len(of_rule)} slices are shown."
        yield Section("Slices of a rule", _title(rule, broken, len(of_rule)), lead, [grid])


def _dot(one: RuleOutcome, tone: str) -> charts.Dot:
    """Return the value of a slice, with its interval if the limit is for the value."""
    low, high = (one.low, one.high) if one.measured == one.value else (None, None)
    return charts.Dot(one.value, low, high, tone=tone.replace("even", ""))


def _title(rule: str, broken: Sequence[RuleOutcome], total: int) -> Html:
    if not broken:
        return say("{}: no slice of {} broke it", name(rule, 60), total)
    named = [name(one.slice) for one in broken[:NAMED]]
    more = len(broken) - len(named)
    who = listed([*named, *([say("{} more", more)] if more > 0 else [])])
    return say("{}: broken by {}", name(rule, 60), who)
