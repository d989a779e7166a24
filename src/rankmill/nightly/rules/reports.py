"""A verdict, or why there is none, for others: as lines, Markdown for a pull request, and JUnit."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from xml.etree import ElementTree

from rankmill.errors import plural
from rankmill.io.inert_text import markdown_text, visible, visible_message
from rankmill.nightly.rules.breaches import Trends, broken_words
from rankmill.nightly.rules.rules import HELD, NON_INFERIOR, UNDECIDED, parse_rule
from rankmill.nightly.rules.verdict import (
    RuleOutcome,
    Verdict,
    by_rule,
    fails,
    not_judged,
    shown_outcomes,
    slices_held,
)
from rankmill.nightly.runs.earlier_runs import NO_VERDICT
from rankmill.nightly.runs.runs import run_text
from rankmill.records import record
from rankmill.results.answer import Answer
from rankmill.show.tables import Cell, Column, Facts, Table, View

_MARKS = {HELD: "✅", NON_INFERIOR: "✅", UNDECIDED: "⚠️"}


def lines(found: Verdict) -> list[str]:
    """Return a line for each rule, and one for each slice in which it did not hold.

    Slices without enough data are one line together, and so are those that held. The notes follow.
    """
    shown, waiting = [], [one for one in found.outcomes if one.slice and one.word == UNDECIDED]
    held = Counter(one.rule for one in found.outcomes if one.kept)
    of_rules = by_rule(found.outcomes)
    for one in shown_outcomes(found, most=1):
        if not one.slice or one.word != UNDECIDED:
            many = one.kept and held[one.rule] > 1
            of = f"; of {held[one.rule]:,} slices that held, the nearest to the limit" * many
            shown.append(visible_message(f"{one.word}: {one.reason}{of}"))
    for rule, mine in by_rule(waiting).items():
        names = ", ".join(one.slice for one in mine[:3]) + (", ..." if mine[3:] else "")
        told = f"{UNDECIDED}: {rule}: in {len(mine)} of {len(of_rules[rule])} slices ({names})"
        if len(mine) == 1:
            told = f"{UNDECIDED}: {mine[0].reason}"
        shown.append(visible_message(told))
    return shown + [visible_message(f"note: {one}") for one in found.notes]


def summary_line(found: Verdict, trends: Trends) -> str:
    """Return a line for a chat: what was judged and when, its first metric, and the verdict.

    `trends` are the earlier runs, to say how far it is from the night before.
    """
    broken = broken_words(found, trends)
    candidate = str(found.result.inputs["predictions"].get("source", ""))
    judged = " ".join(filter(None, [candidate.rpartition("/")[2], found.run]))
    if broken:
        more = f" (and {len(broken) - 1} more)" if broken[1:] else ""
        told = f"{found.word}: {broken[0]}{more}"
    else:
        kept = {one.rule for one in found.outcomes if one.kept}
        waiting = [one for one in found.outcomes if one.word == UNDECIDED and one.counts]
        bare = {one.rule for one in found.outcomes if one.kept and _is_untested(one)}
        of_them = f", {'' if bare == kept else f'{len(bare)} of them '}not tested" * bool(bare)
        told = f"{plural(len(kept), 'rule')} held{of_them}"
        if waiting:
            first = waiting[0]
            told = f"{found.headline}: {first.rule}{f' ({first.slice})' * bool(first.slice)}"
        told = ", ".join(filter(None, [_first_metric(found), told]))
        told = "; ".join(filter(None, [told, not_judged(found.outcomes, 1)]))
    return f"{_mark(found)} {visible_message(f'{judged}: {told}')}\n"


def _first_metric(found: Verdict) -> str:
    """Return the first metric of the rules, or else of the result, and how it changed."""
    rules = [(one, parse_rule(one.rule)) for one in found.outcomes if not one.slice]
    one = next((one for one, rule in rules if rule.kind == "metric"), None)
    if one is None or one.value is None:
        known = ((name, value) for name, value in found.result.metrics.items() if value is not None)
        name, value = next(known, ("", None))
        return "" if value is None else f"{name} {value:.4g}"
    told = f"{parse_rule(one.rule).subject} {one.value:.4g}"
    if not one.baseline or found.baseline is None:
        return told
    mine = one.value if one.paired_value is None else one.paired_value
    source = str(found.baseline["source"])
    night = re.search(r"\b\d{4}(\d{2})(\d{2})T\d{12}Z-", source)
    base = f"{night[1]}-{night[2]}" if night else source.rpartition("/")[2]
    return f"{told}, {100 * (mine - one.baseline) / one.baseline:+.2g}% vs {base}"


def _is_untested(one: RuleOutcome) -> bool:
    """Return whether the value of a metric was compared with the limit by itself."""
    return one.low is None and one.high is None and parse_rule(one.rule).kind == "metric"


def _mark(found: Verdict) -> str:
    aside = any(not one.counts for one in found.outcomes)
    return "❌" if found.failed else _MARKS[UNDECIDED if aside else found.word]


def markdown(found: Verdict) -> str:
    """Return a summary for a pull request: the verdict, the rules, and the metrics."""
    parts = [f"## {_mark(found)} rankmill: {found.headline}\n"]
    parts += [f"Run of {found.run}.\n"] if found.run else []
    rows = ["| | verdict | reason | rule |", "|---|---|---|---|"]
    for one in shown_outcomes(found):
        cells = (markdown_text(text) for text in (one.word, one.reason, one.rule))
        rows.append(f"| {_MARKS.get(one.word, '❌')} | {' | '.join(cells)} |")
    parts.append("\n".join(rows) + "\n")
    parts += [f"{markdown_text(one)}\n" for one in slices_held(found)]
    if found.comparison is not None:
        parts.append(found.comparison.to_markdown())
    if found.baseline is not None:
        source = markdown_text(str(found.baseline["source"]))
        parts.append(f"Baseline: {source} ({found.baseline['kind']}).\n")
    return "\n".join(parts)


def junit(found: Verdict) -> str:
    """Return the verdict as JUnit XML: a test case for each rule, and for each slice of one."""
    cases = []
    for one in found.outcomes:
        name = f"{one.rule} ({one.slice})" if one.slice else one.rule
        kind = "failure" if fails(found, one) else "skipped" if one.word == UNDECIDED else ""
        cases.append((name, kind, one.word, visible(one.reason)))
    return _xml(cases, found.run, found.seconds)


def _xml(cases: Sequence[tuple[str, str, str, str]], run: str, seconds: float) -> str:
    """Return cases as XML: of each its name, the element for what went wrong, its type and text."""
    counts = Counter(kind for _, kind, _, _ in cases)
    told = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counted = {"tests": len(cases)} | {name: counts[kind] for name, kind in told.items()}
    # The usual schema (junit-10.xsd of Jenkins) takes three decimals at most.
    shared = {name: str(one) for name, one in counted.items()} | {"time": f"{seconds:.3f}"}
    root = ElementTree.Element("testsuites", {"name": "rankmill", **shared})
    time = {"timestamp": run.removesuffix(" UTC").replace(" ", "T")} if run else {}
    suite = ElementTree.SubElement(root, "testsuite", {"name": "rankmill gate", **time, **shared})
    for name, kind, word, reason in cases:
        each = {"name": visible(name), "classname": "rankmill.gate"}
        each["time"] = f"{seconds / len(cases):.3f}"
        case = ElementTree.SubElement(suite, "testcase", each)
        if kind:
            ElementTree.SubElement(case, kind, {"message": reason, "type": word})
        ElementTree.SubElement(case, "system-out").text = reason
    return ElementTree.tostring(root, "unicode", xml_declaration=True)


# ------------------------------------------------------------------ without a verdict


@record(frozen=True, repr=False, eq=False)
class NoVerdict(Answer):
    """Why there is no verdict."""

    reason: str  # the message of the error
    exit_code: int | None  # 3 for wrong data, 4 for a lack of memory, and so on; None if not known
    rules: Sequence[str]  # those that were not judged
    inputs: Mapping[str, str]  # what was to be read: "labels" and "predictions"
    time: datetime

    @property
    def headline(self) -> str:
        """Say that there is no verdict, and why."""
        return f"{NO_VERDICT}: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """Return the keys that a verdict has, and the reason."""
        return {
            "word": NO_VERDICT,
            "reason": self.reason,
            "exit_code": self.exit_code,
            "rules": [*self.rules],
            "outcomes": [],
            "baseline": None,
            "result": None,
            "comparison": None,
            "notes": [],
            "run": run_text(self.time),
        }

    def _view(self) -> View:
        def exact() -> Table:
            names = [*RuleOutcome.__dataclass_fields__]
            known: dict[str, Cell] = {"word": NO_VERDICT, "reason": self.reason}
            rules = self.rules or [""]
            rows = [[(known | {"rule": rule}).get(name) for name in names] for rule in rules]
            return Table([Column(name) for name in names], rows)

        told = [("verdict", self.headline), ("run", run_text(self.time))]
        facts = Facts([*told, *self.inputs.items()], aligned=False)
        return View(lambda: [facts], lambda: [self.headline], exact, self.to_dict)


def summary_without(found: NoVerdict) -> str:
    """Return a line for a chat."""
    judged = found.inputs.get("predictions", "").rpartition("/")[2]
    judged = " ".join(filter(None, [judged, run_text(found.time)]))
    return f"❌ {visible_message(f'{judged}: {found.headline}')}\n"


def markdown_without(found: NoVerdict) -> str:
    """Return a summary for a pull request."""
    rules = "".join(f"- not judged: {markdown_text(rule)}\n" for rule in found.rules)
    run = f"Run of {run_text(found.time)}.\n\n"
    return f"## ❌ rankmill: {NO_VERDICT}\n\n{run}{markdown_text(found.reason)}\n\n{rules}"


def junit_without(found: NoVerdict) -> str:
    """Return JUnit XML in which each rule is an error; without a rule, one case is."""
    told, rules = visible_message(found.reason), found.rules or ["rankmill gate"]
    cases = [(rule, "error", NO_VERDICT, told) for rule in rules]
    return _xml(cases, run_text(found.time), 0.0)
