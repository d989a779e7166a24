"""Holding rules about counts and ages against what was read."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rankmill.engine.job import BESIDE
from rankmill.errors import UsageError
from rankmill.metrics.aggregate import aggregate_of
from rankmill.metrics.registry import parse_all
from rankmill.nightly.rules.rules import HELD, Rule, age_text, parse_rule, percent, whole_of
from rankmill.nightly.rules.verdict import RuleOutcome
from rankmill.results.result import Result
from rankmill.sources.files.files import find_files

# What is held against the baseline although no rule asks for it.
VOLUMES_LOOKED_AT = "queries", "labels"


BASE = "the baseline"
# What two systems have in common, so that they are compared with an earlier night.
OF_LABELS = "labels", "label_rows", "queries_labelled"
# What was read, whatever counts.
ROWS = "label_rows", "prediction_rows"


def of_count(
    rule: Rule, mine: Result, before: Result | None, night: Result | None = None
) -> RuleOutcome:
    """Return what comes of a rule about a count of a result, and of that before.

    `night` is what an earlier night had, where `before` is of the same labels.
    """
    of = BASE
    if night is not None and rule.subject in ("queries", *OF_LABELS):
        before, of = night, "the last night that held"
    _check_counted(rule, mine, "give it, or leave out the rule")
    value = count_of(rule.subject, mine)
    base: float | None = None
    measured = float(value)
    if rule.measure == "change":
        if before is None:
            raise UsageError(
                f"rule {rule.text!r}: the baseline does not have its counts; give predictions, or "
                "per-query values that rankmill wrote"
            )
        _check_counted(rule, before, "evaluate the baseline with it")
        base = count_of(rule.subject, before)
        change = (value - base) / base if base else float(value != base)
        measured = abs(change)
        far = f"{percent(measured)} {'fewer' if change < 0 else 'more'} than"
        reason = f"{rule.subject} is {value:,}, {far} {of}{',' * (of != BASE)} of {base:,}"
        if not change:
            reason = f"{rule.subject} is {value:,}, as in {of}"
    elif rule.relative:
        whole = whole_of(rule.subject)
        total = count_of(whole, mine)
        measured = value / total if total else float(value > 0)
        reason = f"{rule.subject} is {value:,}, {percent(measured)} of {total:,} {whole}"
    else:
        reason = f"{rule.subject} is {value:,}"
    word = HELD if rule.keeps(measured) else rule.word
    reason = f"{reason} (limit {rule.limit_text})"
    return RuleOutcome(rule.text, word, "", value, base, measured, None, None, rule.limit, reason)


def volumes_lost(
    rules: Sequence[Rule], mine: Result, before: Result | None, night: Result | None = None
) -> list[RuleOutcome]:
    """Return the volumes that shrank to half of the baseline's or less, if no rule is about them.

    Labels that have not arrived, and queries without predictions, change what a metric means.
    """
    before = night or before
    asked, found = {one.subject for one in rules}, []
    for subject in VOLUMES_LOOKED_AT:
        value, base = (None if one is None else _known(subject, one) for one in (mine, before))
        if subject in asked or value is None or not base or value > base / 2:
            continue
        one = of_count(parse_rule(f"{subject} change < 50%"), mine, before, night)
        allow = f"half or more is missing, which only a rule such as {subject} change <= 90% allows"
        found.append(replace(one, reason=f"{one.reason}; {allow}"))
    return found


def _known(subject: str, one: Result) -> int | None:
    return one.audit.get("queries_in_both" if subject == "queries" else subject)


def _check_counted(rule: Rule, one: Result, todo: str) -> None:
    """Raise UsageError if a count is 0 only because nothing was there to count it by.

    What a result does not tell is not asked for.
    """
    inputs, scope, names = one.inputs, one.scope, one.metrics
    asked = parse_all(names) if names else []
    needs = {
        "seen_items": ("train", "train" in inputs),
        "unknown_items": ("items, train or features", bool({*BESIDE} & {*inputs})),
        "items_beyond_depth": ("depth", scope.depth is not None),
        "unjudged_items": ("judged_only", scope.judged_only),
        "tied_confidences": (
            "a metric such as gap",
            any(aggregate_of(one).passes > 1 for one in asked),
        ),
        "short_lists": ("a cutoff, as in map@10", any(one.k is not None for one in asked)),
    }
    option, counted = needs.get(rule.subject, ("", True))
    if inputs and names and not counted:
        raise UsageError(
            f"rule {rule.text!r}: {rule.subject} is not counted without {option}: {todo}"
        )


def count_of(subject: str, one: Result) -> int:
    """Return a count of a result."""
    found: Any
    if subject in ROWS:
        side = "labels" if subject == "label_rows" else "predictions"
        found = one.inputs.get(side, {}).get("rows")
    else:
        found = one.audit.get("queries_in_both" if subject == "queries" else subject)
    if found is None:
        raise UsageError(f"the baseline does not have {subject}: evaluate it again")
    return int(found)


def of_age(rule: Rule, age: float) -> RuleOutcome:
    """Return what comes of a rule about the age of an input, in seconds."""
    word = HELD if rule.keeps(age) else rule.word
    reason = f"{rule.subject} is {age_text(age)} (limit {rule.limit_text})"
    return RuleOutcome(rule.text, word, "", age, None, age, None, None, rule.limit, reason)


def written_at(subject: str, labels: Any, predictions: Any) -> float:
    """Return when the newest file of an input was written, in seconds since 1970."""
    value = labels if subject == "labels_age" else predictions
    paths = [value] if isinstance(value, str | os.PathLike) else value
    if not isinstance(paths, list | tuple) or not all(
        isinstance(one, str | os.PathLike) for one in paths
    ):
        raise UsageError(
            f"{subject} needs files; a {type(value).__name__} has no age: give paths, or leave out "
            "the rule"
        )
    files = find_files([os.fspath(one) for one in paths])
    return max((one.listed or one.identity())[3] for one in files) / 1e9
