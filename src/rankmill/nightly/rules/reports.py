"""A verdict for others: as a line a rule, as Markdown for a pull request, and as JUnit."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from rankmill.errors import UsageError, install, plural
from rankmill.io.inert_text import markdown_text, visible, visible_message
from rankmill.nightly.rules.breaches import Trends, broken_words
from rankmill.nightly.rules.rules import HELD, UNDECIDED
from rankmill.nightly.rules.verdict import Verdict, by_rule, fails, shown_outcomes, slices_held

_MARKS = {HELD: "✅", UNDECIDED: "⚠️"}


def lines(found: Verdict) -> list[str]:
    """Return a line for each rule, and one for each slice in which it did not hold.

    Slices without enough data are one line together, and so are those that held. The notes follow.
    """
    shown, waiting = [], [one for one in found.outcomes if one.slice and one.word == UNDECIDED]
    held = Counter(one.rule for one in found.outcomes if one.word == HELD)
    of_rules = by_rule(found.outcomes)
    for one in shown_outcomes(found, most=1):
        if not one.slice or one.word != UNDECIDED:
            many = one.word == HELD and held[one.rule] > 1
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
    """Return a line for a chat: the verdict, and what broke by how much.

    `trends` are the earlier runs, to say how far it is from the night before.
    """
    broken = broken_words(found, trends)
    if not broken:
        rules = plural(len({one.rule for one in found.outcomes}), "rule")
        return f"{_mark(found)} {found.headline}{f' ({rules})' * (found.word == HELD)}\n"
    more = f" (and {len(broken) - 1} more)" if broken[1:] else ""
    return f"{_mark(found)} {visible_message(f'{found.word}: {broken[0]}{more}')}\n"


def _mark(found: Verdict) -> str:
    return "❌" if found.failed else _MARKS[found.word]


def markdown(found: Verdict) -> str:
    """Return a summary for a pull request: the verdict, the rules, and the metrics."""
    parts = [f"## {_mark(found)} rankmill: {found.headline}\n"]
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
    check_junit()
    from junitparser import Failure, Skipped, TestCase, TestSuite

    suite = TestSuite("rankmill gate")
    # The usual schema (junit-10.xsd of Jenkins) takes three decimals at most.
    seconds = round(found.seconds / len(found.outcomes), 3)
    for one in found.outcomes:
        name = f"{one.rule} ({one.slice})" if one.slice else one.rule
        case = TestCase(visible(name), "rankmill.gate", seconds)
        case.system_out = visible(one.reason)
        if fails(found, one):
            case.result = [Failure(visible(one.reason), one.word)]
        elif one.word == UNDECIDED:
            case.result = [Skipped(visible(one.reason))]
        suite.add_testcase(case)
    return _xml(suite)


def junit_of_errors(names: Iterable[str], reason: str, kind: str) -> str:
    """Return JUnit XML in which each case is an error of one reason."""
    from junitparser import Error, TestCase, TestSuite

    suite = TestSuite("rankmill gate")
    for name in names:
        case = TestCase(visible(name), "rankmill.gate", 0.0)
        case.result = [Error(visible_message(reason), kind)]
        suite.add_testcase(case)
    return _xml(suite)


def _xml(suite: Any) -> str:
    from junitparser import JUnitXml

    suite.update_statistics()
    xml = JUnitXml("rankmill")
    xml.add_testsuite(suite)
    text: bytes = xml.tostring()  # type: ignore[no-untyped-call]
    return text.decode()


def check_junit() -> None:
    """Raise UsageError if JUnit files cannot be written, before any work."""
    from importlib.util import find_spec

    if find_spec("junitparser") is None:
        raise UsageError(f"JUnit files need junitparser: {install('junit')}")
