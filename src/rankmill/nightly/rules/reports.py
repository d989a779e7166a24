"""A verdict, or why there is none, for others: chats, pull requests, JUnit and MLflow."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias
from xml.etree import ElementTree

from rankmill.errors import ResourceError, UsageError, install, is_shortage, plural
from rankmill.io.inert_text import markdown_text, visible, visible_message
from rankmill.io.stores.urls import is_url, redacted, shown
from rankmill.nightly.rules.baseline import either_order
from rankmill.nightly.rules.rules import HELD, NON_INFERIOR, UNDECIDED, Rule, parse_rule, percent
from rankmill.nightly.rules.verdict import (
    NOT_JUDGED,
    RuleOutcome,
    Verdict,
    by_rule,
    fails,
    few_of,
    shown_outcomes,
    slices_held,
)
from rankmill.nightly.runs.folder import NO_VERDICT, open_folder
from rankmill.nightly.runs.runs import Run, run_text
from rankmill.records import record
from rankmill.results.answer import Answer
from rankmill.show.tables import Cell, Column, Facts, Table, View

if TYPE_CHECKING:
    import pyarrow as pa


# ------------------------------------------------------------------ what broke

# So many of the last runs are read for the trends of slices, whose rows are not in summaries.
NIGHTS = 30

Night: TypeAlias = tuple[Any, float | None, float | None, str]
"""A run: its time, value, standard error, and the word of its verdict or ""."""
Trends: TypeAlias = Mapping[str | tuple[str, str], Sequence[Night]]
"""Metric, or metric and slice, -> the runs that count the same, of which this run is the last."""


def broken_words(found: Verdict, trends: Trends) -> list[str]:
    """Return a line for each rule, or slice of one, that was broken; the worst word comes first.

    Slices come before the whole if others of their rule did not break it: there one has to look. Of
    a rule, the slice that is furthest beyond the limit comes first.
    """
    rules = [*dict.fromkeys(one.rule for one in found.outcomes)]
    partly = {one.rule for one in found.outcomes if one.slice and not fails(found, one)}

    def order(one: RuleOutcome) -> tuple[bool, bool, int, float]:
        where = one.rule in partly
        beyond = math.inf if one.measured is None else abs(one.measured - one.limit)
        return one.word != found.word, not where, rules.index(one.rule), -beyond

    return [_words(one, found, trends) for one in sorted(found.failed, key=order)]


def slice_trends(
    found: Verdict, history: str, runs: Mapping[str, Sequence[Run]], now: datetime
) -> dict[tuple[str, str], list[Night]]:
    """Return the trend of each slice that a rule of a verdict is about, which is the last of it.

    `history` is the folder; `runs` has the earlier runs of each metric that count the same, in the
    order of time; and `now` is the time of the verdict.
    """
    folder = open_folder(history)
    trends: dict[tuple[str, str], list[Night]] = {}
    for one in found.outcomes:
        rule = parse_rule(one.rule)
        metric = rule.name(found.result.scope.rel) if one.slice else ""
        nights: list[Night] = []
        for run in runs.get(metric, ())[-NIGHTS:]:
            slices = folder.slices_of(run)
            known = (slices.get((*key, metric)) for key in slice_keys(rule, one.slice))
            night = next((each for each in known if each is not None), None)
            if night is not None:
                nights.append((run.time, night.value, night.standard_error, run.verdict or ""))
        if nights:
            trends[metric, one.slice] = [*nights, (now, one.value, None, one.word)]
    return trends


def trend_of(one: RuleOutcome, found: Verdict, trends: Trends) -> Sequence[Night]:
    """Return the runs of what an outcome is about, this one last; none without a history."""
    metric = parse_rule(one.rule).name(found.result.scope.rel)
    return trends.get((metric, one.slice) if one.slice else metric, ())


def _words(one: RuleOutcome, found: Verdict, trends: Trends) -> str:
    rule = parse_rule(one.rule)
    limit = rule.limit_text.partition(" ")[2]
    # What a series of nights has lost is told as its nights are.
    if rule.kind != "metric" or rule.since or one.value is None or one.measured is None:
        told = one.reason.removesuffix(f" (limit {rule.limit_text})")
        gone = rule.kind == "metric" and one.value is None
        return f"{told}, limit {limit}" if told != one.reason and not gone else told
    where = f"{_slice_text(rule, one.slice)}: " if one.slice else ""
    told = f"{where}{rule.subject} {one.value:.4g}"
    if rule.measure == "drop":
        amount = _percent(one.measured) if rule.relative else f"{abs(one.measured):.4g}"
        side = "below" if (one.measured > 0) == (rule.better == "higher") else "above"
        told += f", {amount} {side} the baseline"
    told += f", limit {limit}"
    before = night_before(trend_of(one, found, trends))
    if before is None and rule.measure == "value" and one.baseline is not None:
        before = "the baseline", one.baseline
    if before is None or (
        rule.measure == "drop" and (found.baseline or {}).get("kind") == "history"
    ):
        return told
    return f"{told}; {_change(one.value, *before)}"


def _slice_text(rule: Rule, shown: str) -> str:
    """Return the value of a slice alone where this says enough: Italy, but label_count = 1."""
    if len(rule.slices) > 1:
        return shown
    value = shown.removeprefix(f"{rule.slices[0][0]} = ")
    return value if any(one.isalpha() for one in value) and value != "(unknown)" else shown


def night_before(runs: Sequence[Night]) -> tuple[str, float] | None:
    """Return what the night before is called, and its value; not an earlier try of this night."""
    # Times may be numbers, which have no dates.
    days = [run[0].date() if hasattr(run[0], "date") else None for run in runs]
    for day, (_, value, *_) in zip(days[-2::-1], runs[-2::-1], strict=True):
        if value is None or (day is not None and day == days[-1]):
            continue
        if day is None or days[-1] is None:
            return "the run before", value
        return ("yesterday" if (days[-1] - day).days == 1 else f"{day:%Y-%m-%d}"), value
    return None


def _change(value: float, when: str, before: float) -> str:
    if value == before:
        return f"as {when}"
    amount = _percent((value - before) / before) if before else f"{abs(value - before):.4g}"
    return f"{amount} {'below' if value < before else 'above'} {when}"


def _percent(share: float) -> str:
    share = abs(share)
    return f"{100 * share:.2g}%" if share < 0.1 else percent(share)


def slice_keys(rule: Rule, shown: str) -> list[tuple[str, str]]:
    """Return what a slice may be called in a history, as its columns "by" and "slice" have it.

    Examples
    --------
    >>> slice_keys(parse_rule("map[a=*,b=*] >= 0.1"), "a = x, b = y")
    [('a, b', 'x, y'), ('b, a', 'y, x')]
    """
    names = [name for name, _ in rule.slices]
    if not shown.startswith(f"{names[0]} = "):
        names.reverse()
    values = [shown.removeprefix(f"{names[0]} = ")]
    if len(names) > 1:
        first, _, second = values[0].partition(f", {names[1]} = ")
        values = [first, second]
    return [*dict.fromkeys(either_order(names, values))]


# ------------------------------------------------------------------ the verdict for others

_MARKS = {HELD: "✅", NON_INFERIOR: "✅", UNDECIDED: "⚠️"}


def lines(found: Verdict) -> list[str]:
    """Return a line for each rule, and one for each slice in which it did not hold.

    Slices without enough data are one line together, and so are those that held. The notes follow.
    """
    shown: list[str] = []
    waiting = [one for one in found.outcomes if one.slice and one.word == UNDECIDED and one.counts]
    held = Counter(one.rule for one in found.outcomes if one.kept)
    of_rules = by_rule(found.outcomes)
    for one in shown_outcomes(found, most=1):
        if one.counts and (not one.slice or one.word != UNDECIDED):  # a note tells of the others
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
    judged = " ".join(filter(None, [_short(candidate), found.run]))
    if broken:
        more = f" (and {len(broken) - 1} more)" if broken[1:] else ""
        told = f"{found.word}: {broken[0]}{more}"
    else:
        kept = {one.rule for one in found.outcomes if one.kept}
        waiting = [one for one in found.outcomes if one.word == UNDECIDED and one.counts]
        bare = {one.rule for one in found.outcomes if one.kept and _is_untested(one)}
        of_them = f", {'' if bare == kept else f'{len(bare)} of them '}not tested" * bool(bare)
        told = f"{plural(len(kept), 'rule')} held{of_them}" if kept else ""
        aside = [one for one in found.outcomes if not one.counts]
        if waiting:
            told = f"{found.headline}: {few_of([*map(_undecided_words, waiting)], 1)}"
        if aside:
            left = few_of([*dict.fromkeys(map(_undecided_words, aside))], 1)
            told = "; ".join(filter(None, [told, f"{NOT_JUDGED}: {left}"]))
        told = ", ".join(filter(None, [_first_metric(found), told]))
    return f"{_mark(found)} {visible_message(f'{judged}: {told}')}\n"


def _short(path: str) -> str:
    """Return the name of a file, with its folder if it says no more than what it holds."""
    folder, _, file = path.rpartition("/")
    bare = re.fullmatch(r"(predictions?|preds?|run|lists|\*)(\.\w+)*", file, re.I)
    return "/".join(filter(None, [bare and folder.rpartition("/")[2], file]))


def _undecided_words(one: RuleOutcome) -> str:
    """Return what is undecided, or if nothing was measured, why."""
    if one.measured is None and not one.counts:
        return one.reason.partition(" (limit ")[0]
    return f"{parse_rule(one.rule).subject} where {one.slice}" if one.slice else one.rule


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
    change = (mine - one.baseline) / one.baseline
    # Standardized means of equal values differ in the last bits.
    change = 0.0 if abs(change) < 1e-12 else change
    return f"{told}, {100 * change:+.2g}% vs {base}"


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
        cells = (markdown_text(text) for text in (one.told, one.reason, one.rule))
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
        cases.append((name, kind, one.told, visible(one.reason)))
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
    candidate = _short(found.inputs.get("predictions", ""))
    judged = " ".join(filter(None, [candidate, run_text(found.time)]))
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


# ------------------------------------------------------------------ MLflow

# MLflow cuts off, or refuses, longer values.
LONGEST = 500
# By default MLflow asks a server that is down for minutes.
_PATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
}


def tracking_uri(uri: str) -> str:
    """Return the address of the server, which is that of MLFLOW_TRACKING_URI if `uri` is ""."""
    found = uri or os.environ.get("MLFLOW_TRACKING_URI", "")
    if not found:
        raise UsageError(
            "--mlflow has no address: give that of a tracking server, such as "
            "--mlflow=http://host:5000, or set MLFLOW_TRACKING_URI"
        )
    if uri and not re.match(r"[a-z][a-z0-9+.\-]*://|databricks|uc:", uri):
        raise UsageError(
            f"--mlflow is {uri!r}; expected the address of a tracking server, such as "
            "--mlflow=http://host:5000; without one, put --mlflow after all files"
        )
    _mlflow()
    return found


def _mlflow() -> Any:
    try:
        import mlflow
    except ImportError:
        raise UsageError(f"--mlflow needs the package mlflow-skinny: {install('mlflow')}") from None
    return mlflow


def log_run(table: pa.Table, uri: str, files: Sequence[str] = ()) -> None:
    """Log a run as a new one of the experiment that MLflow's own variables name.

    `table` has the rows of the run, as a history holds them. `files` are added as artifacts; those
    in stores and those that are not there are passed over. A ResourceError says that the server
    did not take it; all other outputs are written.
    """
    mlflow = _mlflow()
    rows = [row for row in table.to_pylist() if row["by"] is None]
    first = rows[0]
    for name, value in _PATIENCE.items():
        os.environ.setdefault(name, value)
    tags = {"rankmill.version": first["version"], "rankmill.verdict": first["verdict"]}
    tags = _named(dict(first["tags"])) | {name: one for name, one in tags.items() if one}
    try:
        mlflow.set_tracking_uri(uri)
        with mlflow.start_run(run_name=first["run"], tags=tags):
            mlflow.log_params({name: str(one)[:LONGEST] for name, one in _params(rows).items()})
            mlflow.log_metrics(_metrics(rows), timestamp=int(first["time"].timestamp() * 1000))
            for path in files:
                if not is_url(path) and os.path.isfile(path):
                    mlflow.log_artifact(path)
    except Exception as error:
        if is_shortage(error, "logging to MLflow"):
            raise
        reason = redacted((str(error).strip() or type(error).__name__).splitlines()[0])[:300]
        raise ResourceError(
            f"the run could not be logged to MLflow at {shown(uri)}: {reason}. All other outputs "
            "are written; check the address and the server, and run again"
        ) from None


def _metrics(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All numbers of a run; those of several systems have the name of the system in front."""
    found: dict[str, Any] = {}
    for row in rows:
        before = "" if row["system"] is None else f"{row['system']}/"
        found[f"{before}{row['metric']}"] = row["value"]
        found[f"{before}{row['metric']}/standard_error"] = row["standard_error"]
        found[f"{before}queries"] = row["queries"]
        found |= {f"{before}audit/{name}": count for name, count in row["audit"] or ()}
    return _named(found)


def _params(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    first = rows[0]
    found = {"gain_function": first["gain_function"]}
    for group in ("semantics", "scope"):
        found |= {f"{group}.{name}": one for name, one in json.loads(first[group]).items()}
    for name in ("source", "rows", "bytes", "checksum"):
        found[f"labels.{name}"] = first[f"labels_{name}"]
        for row in rows:
            before = "" if row["system"] is None else f"{row['system']}/"
            found[f"{before}predictions.{name}"] = row[f"predictions_{name}"]
    return _named(found)


def _named(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what has a value, by the names that MLflow takes."""
    legal = names_for_mlflow(list(found))
    return {legal[name]: one for name, one in found.items() if one is not None}


def names_for_mlflow(names: Sequence[str]) -> dict[str, str]:
    """Return the name that MLflow takes for each name, all different.

    MLflow takes letters, digits, ``_ - . /`` and blanks only. "@" becomes "_at_", as in MLflow's
    own names; any other sign becomes "_".

    Examples
    --------
    >>> names_for_mlflow(["map@12", "rbp(p=0.8)@10", "map(12"])
    {'map@12': 'map_at_12', 'rbp(p=0.8)@10': 'rbp_p_0.8_at_10', 'map(12': 'map_12'}
    """
    legal: dict[str, str] = {}
    for name in names:
        text = name.replace(")", "").replace("@", "_at_")
        text = re.sub(r"[^A-Za-z0-9_\-. /]", "_", text)
        # A path that leads elsewhere is refused.
        text = "/".join(part.strip(". ") or "_" for part in text.split("/"))[:250]
        while text in legal.values():
            text += "_"
        legal[name] = text
    return legal
