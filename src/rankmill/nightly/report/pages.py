"""page() writes what was found as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rankmill.analysis.compare.view.comparison import (
    Comparison,
    leaderboard_parts,
    metric_table,
    notes_of,
)
from rankmill.analysis.compare.view.details import Details
from rankmill.analysis.compare.view.tables import pair_tables, slice_tables
from rankmill.analysis.explain.trace import Listed, side_by_side
from rankmill.engine.results import Results, board_of, facts_of_systems, slice_boards
from rankmill.errors import InputError, UsageError, plural
from rankmill.io.inert_text import visible
from rankmill.metrics.registry import sides_of
from rankmill.nightly.report import subject_sections, words
from rankmill.nightly.report.subject import Subject, subject_of
from rankmill.nightly.report.words import (
    FactList,
    Finding,
    Finds,
    Folded,
    Grid,
    Html,
    Section,
    grid_of,
    kind_of,
    listed,
    name,
    say,
)
from rankmill.nightly.rules.reports import NoVerdict, Trends, broken_words, night_before, trend_of
from rankmill.nightly.rules.rules import UNDECIDED
from rankmill.nightly.rules.verdict import NOT_JUDGED, RuleOutcome, Verdict, by_rule, fails
from rankmill.nightly.runs.runs import run_text
from rankmill.package import __version__
from rankmill.results import audit
from rankmill.results.audit import beside, described, semantics_text
from rankmill.results.slices import slice_parts
from rankmill.semantics.choices import DEFAULT, WHOLE, Choices, Scope
from rankmill.show import charts
from rankmill.show.marks import COLOURS, count, number, percent, rules, scale_of
from rankmill.show.tables import Best, Table
from rankmill.sources.files.files import is_pipe
from rankmill.sources.nouns import Given

TEMPLATES = Path(__file__).parent / "templates"
# Besides the headline, the header names so many of what was broken.
MOST_BROKEN = 4
# So many outcomes of rules are shown at once; others are folded.
MOST_OUTCOMES = 20
RANKS = 12  # of each list


def page(
    subject: Any,
    *,
    details: Details | None = None,
    lists: Sequence[Listed] = (),
    history: Trends | None = None,
    command: str | None = None,
) -> str:
    """Return a page about a result, a comparison or a verdict: one HTML file without scripts.

    Parameters
    ----------
    subject : Result, Comparison or Verdict
    details : Details, optional
        Charts beyond the numbers, if the subject does not hold them: ``compare`` and ``gate`` do
        with ``details=True``, and ``evaluate_in_detail`` returns them.
    lists : sequence of Listed, optional
        The lists of queries that moved, from `lists_of`.
    history : mapping of str to sequence of runs, optional
        Metric -> the runs that count the same, in the order of time, each as (time, value, standard
        error or None, word of the verdict or ""). For slices, the key is the metric and the slice,
        as ("map@12", "country = it").
    command : str, optional
        The command line that makes this page again.

    Returns
    -------
    str

    Raises
    ------
    UsageError
        If there is nothing to make a page of.

    Examples
    --------
    >>> import rankmill
    >>> lists = rankmill.arrays.Ragged.from_lists
    >>> result = rankmill.evaluate(lists([[1], [2]]), lists([[1], [3, 2]]), ["map@2"])
    >>> "map@2 is" in page(result).replace("<bdi>", "").replace("</bdi>", "")
    True
    """
    found = subject_of(subject, details, lists, history, command)
    sections = [one for one in _sections(found) if one is not None]
    return _rendered(_headline(found), _tone(found), _eyebrow(found), [*_points(found)], sections)


def lists_of(details: Details | None, given: Mapping[str, Any]) -> list[Listed]:
    """Return the lists of the queries that moved most, for `page`; all inputs are read once more.

    `details` are those of a comparison or a verdict, and `given` the arguments of `evaluate_runs`,
    perhaps among others. There are no lists if an input can be read only once.
    """
    moved = {} if details is None else details.moved
    first = next((of for of in moved.values() if any(of.values())), {})
    queries = list(dict.fromkeys(one.query for rows in first.values() for one in rows))
    if not queries or any(map(_read_once, (given["labels"], *given["runs"].values()))):
        return []
    taken = inspect.signature(side_by_side).parameters
    left = {name: value for name, value in given.items() if name in taken}
    try:
        return side_by_side(queries=queries, ranks=RANKS, **left)
    except (InputError, UsageError):  # a stream from Python that is used up
        return []


def _read_once(one: Any) -> bool:
    data = one.data if isinstance(one, Given) else one
    paths: Sequence[Any] = data if isinstance(data, list) else [data]
    return any(isinstance(path, str) and is_pipe(path) for path in paths)


def page_without_verdict(found: NoVerdict, command: str | None = None) -> str:
    """Return the page of a gate that ended without a verdict."""
    rules = [Finding("not judged", "bad", name(one, 60)) for one in found.rules]
    title = "The rule was not judged" if len(rules) == 1 else "No rule was judged"
    facts = [(side, _long(source)) for side, source in found.inputs.items()]
    sections = [
        Section("Verdict", title, "", [Finds(rules)]),
        _how_section([*facts, ("exit code", found.exit_code or "unknown")], command, "Run"),
    ]
    headline = say("No verdict: {}", name(found.reason, 400))
    return _rendered(headline, "bad", say("{}", run_text(found.time)), [], sections)


def leaderboard_page(found: Comparison | Results, command: str | None = None) -> str:
    """Return the page of a comparison: the table of all systems, what was tested, the slices.

    That of results has no differences, as nothing is tested.
    """
    if isinstance(found, Results):
        return _results_page(found, command)
    board, *notes = leaderboard_parts(found)
    assert isinstance(board, Table)
    (metric, *_), first = found.values, str(board.rows[0][bool(found.pairs)])
    beaten = found.shown_to_beat(metric)[first]
    better: object = f"{len(beaten)} of {plural(len(found.others), 'other system')}"
    if len(beaten) == 1:
        better = "the other system" if len(found.others) == 1 else name(beaten[0])
    told = name(first), name(metric), better
    headline = say("{} leads in {}, shown to be better than {}", *told)
    if sides_of(found.values)[metric] == "neither":
        headline = say("{} side by side", plural(len(found.systems), "system"))
    if found.pairs:
        title, tables = "Every pair of systems", [*pair_tables(found.pairs, found.settings)]
    else:
        title = f"Differences from {found.baseline}"
        tables = [[metric, metric_table(found, metric)] for metric in found.values]
    folded = [Folded(str(what), [grid_of(table)]) for what, table in tables]
    sections = [
        Section("Leaderboard", "", " ".join(map(str, notes)), [grid_of(board)]),
        Section("Pairs" if found.pairs else "Differences", title, "", folded),
    ]
    for what, table in slice_tables(found.baseline, found.others, found.slices, found.settings):
        sections.append(Section("Slices", str(what), "", [grid_of(table)]))
    subject = subject_of(found, None, (), None, command)
    return _rendered(headline, "even", say("{}", subject.counted), [], [*sections, _how(subject)])


def _results_page(found: Results, command: str | None) -> str:
    one = next(iter(found.values()))
    (board, *notes), (metric, *_) = board_of(found, found.same, sides_of(one)), one.metrics
    assert isinstance(board, Table)
    best = [str(row[0]) for row in board.rows if isinstance(row[1], Best)]
    headline = say("{} side by side", plural(len(found), "system"))
    if best:
        told = listed([*map(name, best)]), "has" if len(best) == 1 else "have", name(metric)
        headline = say("{} {} the best {}; differences are not tested", *told)
    sections = [Section("Leaderboard", "", "; ".join(map(str, notes)), [grid_of(board)])]
    if one.sums:
        sections.append(Section("Sums", "", "", [grid_of(slice_parts(found)[0])]))
    sides = sides_of(one) if found.same else dict.fromkeys(one, "neither")
    for table in slice_boards(found, sides):
        title = say("By {}", name(table.columns[0].title))
        sections.append(Section("Slices", title, "", [grid_of(table)]))
    facts = [(name(side), _long(text)) for side, text in facts_of_systems(found, found.same)]
    counted = say("{}", plural(one.queries, "query"))
    return _rendered(headline, "even", counted, [], [*sections, _how_section(facts, command)])


def _rendered(
    headline: Html,
    tone: str,
    eyebrow: Html,
    points: Sequence[tuple[str, Html | str]],
    sections: Sequence[Section],
) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_inert,
    )
    environment.tests["part"] = lambda part, kind: kind_of(part) == kind
    style = _sheet()
    hashed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return environment.get_template("page.html").render(
        style=Html(style),
        policy=f"default-src 'none'; style-src 'sha256-{hashed}'; base-uri 'none'; "
        "form-action 'none'",
        headline=headline,
        tone=tone,
        eyebrow=eyebrow,
        points=points,
        sections=sections,
    )


def _sheet() -> str:
    """Return the sheet of a page, with the colours and the rules of drawings."""
    style = (TEMPLATES / "page.css").read_text("utf-8")
    for place, scheme in enumerate(("light", "dark")):
        colours = "; ".join(f"--{role}: {both[place]}" for role, both in COLOURS.items())
        style = style.replace(f"/* {scheme} */", f"{colours};")
    return style.replace("/* drawings */", rules("svg", {one: f"var(--{one})" for one in COLOURS}))


def _inert(value: Any) -> Any:
    """Return what a template shows of a value: HTML of our own as it is, anything else visible."""
    return value if hasattr(value, "__html__") else visible(str(value))


def _sections(subject: Subject) -> Iterator[Section | None]:
    yield _rules(subject)
    yield from ruled_slices(subject)
    yield subject_sections.changes(subject)
    yield subject_sections.metrics(subject)
    yield from subject_sections.slices(subject)
    yield from subject_sections.figures(subject)
    yield from subject_sections.levels(subject)
    yield subject_sections.trend(subject)
    yield audited(subject)
    yield from subject_sections.queries(subject)
    yield _how(subject)


# ------------------------------------------------------------------ the verdict


def _headline(subject: Subject) -> Html:
    verdict = subject.verdict
    if verdict is None and subject.comparison is None:
        metric = subject.metrics[0]
        return words.value_words(metric, subject.values[metric][subject.main])
    if verdict is None:
        return words.changes_words(subject.changes)
    if verdict.failed:
        return name(broken_words(verdict, subject.history)[0], 300)
    if verdict.word == UNDECIDED or verdict.headline == NOT_JUDGED:
        return say("{}", verdict.headline.capitalize())
    if verdict.headline != verdict.word:
        return say("{}; the others were not judged", verdict.headline.capitalize())
    return say("Held: every rule was kept" if verdict.outcomes else "Held: there are no rules")


def _points(subject: Subject) -> Iterator[tuple[str, Html | str]]:
    """Yield what else should be known at once, with its tone."""
    verdict = subject.verdict
    if verdict is not None and verdict.failed:
        broken, total = (len({one.rule for one in of}) for of in (verdict.failed, verdict.outcomes))
        yield "bad", say("{}: {} of {} rules broken", verdict.word.capitalize(), broken, total)
        others = broken_words(verdict, subject.history)[1:]
        yield from (("bad", name(one, 300)) for one in others[:MOST_BROKEN])
        if others[MOST_BROKEN:]:
            yield "bad", say("and {} more", len(others) - MOST_BROKEN)
    if verdict is None and subject.comparison is not None:
        for section in subject_sections.slices(subject):
            lost = any("worse" in str(one) for one in section.parts[:1])
            yield "bad" if lost else "even", section.title
    result = subject.result
    if result is not None:
        found = findings(result.audit, *subject.rules)
        if any(one.word == SUSPECT for one in found):
            yield "warn", audit_title(found)


def _tone(subject: Subject) -> str:
    verdict = subject.verdict
    if verdict is not None:
        undecided = any(one.word == UNDECIDED for one in verdict.outcomes)
        return "bad" if verdict.failed else "warn" if undecided else "good"
    tones = {subject_sections.tone_of(one) for _, _, one in subject.changes}
    if subject.comparison is None or tones <= {"even"}:
        return "even"
    return "warn" if {"good", "bad"} <= tones else "bad" if "bad" in tones else "good"


def _eyebrow(subject: Subject) -> Html:
    queries = subject.counted
    if subject.baseline is None:
        inputs = {} if subject.result is None else subject.result.inputs
        source = inputs.get("predictions", {}).get("source", "")
        return say("{} · {}", name(source), queries) if source else say("{}", queries)
    systems = [name(one) for one in subject.systems]
    return say("{} against {} · {}", listed(systems), name(subject.baseline), queries)


def _rules(subject: Subject) -> Section | None:
    """Return each rule with its reason, broken ones first; None without a verdict."""
    verdict = subject.verdict
    if verdict is None or not verdict.outcomes:
        return None
    order = sorted(verdict.outcomes, key=lambda one: TONES.index(tone_of(verdict, one)))
    held: set[str] = set()
    rows = []
    for one in order:
        if one.kept and one.rule in held:
            continue  # of slices that held, one stands for all
        held |= {one.rule} if one.kept else set()
        told = name(one.rule, 60), "", name(one.reason, 300)
        rows.append(Finding(one.told, tone_of(verdict, one), *told))
    lead = ""
    if verdict.baseline:
        source = name(verdict.baseline.get("source", ""), 120)
        lead = say("Compared with {} ({}).", source, verdict.baseline.get("kind", ""))
    first = rows[0]
    if order[0].kept:
        title = say("{} kept", "The rule was" if len(rows) == 1 else "All rules were")
    else:
        title = say("{}: {}", first.word.capitalize(), first.title)
    parts: list[Any] = [Finds(rows[:MOST_OUTCOMES])]
    if rows[MOST_OUTCOMES:]:
        rest = rows[MOST_OUTCOMES:]
        parts.append(Folded(f"{len(rest):,} more", [Finds(rest)]))
    return Section("Verdict", title, lead, parts)


# ------------------------------------------------------------------ inputs


def _how(subject: Subject) -> Section:
    """Return how it was counted, the inputs, the version and the command."""
    semantics, scope = subject.rules
    settings = subject.settings
    counted = "as by default" if semantics == DEFAULT else semantics_text(semantics)
    facts: list[tuple[Any, Any]] = [("counted", counted)]
    if scope != WHOLE:
        facts.append(("scope", str(scope)))
    if subject.comparison is not None:
        tests = ", ".join(settings.tests)
        facts.append(("test", f"{tests}; p corrected by {settings.correction}"))
        inputs = subject.comparison.inputs
        facts.append(("labels", described(inputs.get("labels", {}))))
        facts += [(name(n), described(one)) for n, one in inputs.get("systems", {}).items()]
        facts += [(side, described(one)) for side, one in beside(inputs).items()]
    elif subject.result is not None:
        facts += [(side, described(one)) for side, one in subject.result.inputs.items()]
    run = getattr(subject.verdict, "run", "")
    facts += [("run", run)] if run else []
    seconds = (subject.verdict or subject.comparison or subject.result).seconds  # type: ignore[union-attr]
    facts += [("seconds", f"{seconds:.2f}")]
    return _how_section([(title, _long(text)) for title, text in facts], subject.command)


def _how_section(
    facts: Sequence[tuple[Any, Any]], command: str | None, verb: str = "Counted"
) -> Section:
    parts = [FactList([*facts, ("rankmill", __version__)])]
    if command:
        parts.append(FactList([("command", command)], code=True))
    return Section("How", f"{verb} by rankmill {__version__}", "", parts)


def _long(text: Any) -> Html:
    return name(text, 400)


# ------------------------------------------------------------------ the sections of rules

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
            told = Html(f'<span class="{tone_of(verdict, one)}">{name(one.told)}</span>')
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
