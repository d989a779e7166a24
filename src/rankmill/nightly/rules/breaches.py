"""What broke, where, and by how much: in a line for headlines and chats, the worst first."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from rankmill.nightly.rules.earlier_values import either_order
from rankmill.nightly.rules.rules import Rule, parse_rule, percent
from rankmill.nightly.rules.verdict import RuleOutcome, Verdict, fails
from rankmill.nightly.runs.folder import open_folder
from rankmill.nightly.runs.runs import Run

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
    if rule.kind != "metric" or one.value is None or one.measured is None:
        told = one.reason.removesuffix(f" (limit {rule.limit_text})")
        return f"{told}, limit {limit}" if told != one.reason else told
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
    if before is None or (rule.measure == "drop" and (found.baseline or {})["kind"] == "history"):
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
