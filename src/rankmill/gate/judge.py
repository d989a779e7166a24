"""Holding a rule against what was measured."""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from rankmill.compare.pooled import Without
from rankmill.compare.segments import natural
from rankmill.compare.state import ComparisonState
from rankmill.compare.sums import Sums
from rankmill.errors import UsageError
from rankmill.gate.baseline import BASELINE, CANDIDATE
from rankmill.gate.beside import INPUTS
from rankmill.gate.measured import NO_BOUNDS, Interval, Measured, drop_of, value_of
from rankmill.gate.rules import (
    BAD_VOLUME,
    EVERY,
    HELD,
    OF_SLICES,
    SHARE_OF,
    UNDECIDED,
    Rule,
    age_text,
)
from rankmill.gate.runs import Measured as Recorded
from rankmill.gate.runs import SliceKey
from rankmill.gate.sliced import Value, named, slice_before
from rankmill.gate.verdict import Outcome
from rankmill.metrics.aggregate import aggregate_of
from rankmill.metrics.registry import parse, parse_all
from rankmill.results.result import Result

UNKNOWN = ("", "(unknown)", "null")


class Evidence(NamedTuple):
    """What rules are held against.

    Attributes
    ----------
    result : Result
        Of the system.
    state : ComparisonState
        What its queries add up to, and those of a paired baseline.
    told : mapping or None
        The result of the baseline as JSON has it, None if it is not known.
    without : mapping
        Metric over all predictions -> system -> its values without each group of queries.
    ages : dict of str to float
        The ages of inputs in seconds.
    slices : mapping
        The slices of a baseline without values of queries.
    """

    result: Result
    state: ComparisonState
    told: Mapping[str, Any] | None
    without: Mapping[str, Without]
    ages: Mapping[str, float]
    slices: Mapping[SliceKey, Recorded] = MappingProxyType({})


def judge(rule: Rule, evidence: Evidence) -> list[Outcome]:
    """Return what comes of a rule: an outcome, or one for each slice.

    Raises
    ------
    UsageError
        If the baseline does not tell what the rule needs.
    """
    if rule.kind == "age":
        return [_of_age(rule, evidence.ages[rule.subject])]
    if rule.kind == "count":
        return [of_count(rule, evidence.result.to_dict(), evidence.told)]
    found = cases_of(rule, evidence)
    if not found:
        shown = ", ".join(f"{name} = {value}" for name, value in rule.slices)
        return [_undecided(rule, shown, "no query is in it")]
    confidence = confidence_of_each(rule, len(found))
    return [_of_metric(rule, one.shown, one.measured, confidence) for one in found]


class Case(NamedTuple):
    """What a rule measures over all queries, or in a slice: its names, and what it is called."""

    by: str
    slice: str
    shown: str
    measured: Measured


def cases_of(rule: Rule, evidence: Evidence) -> list[Case]:
    """Return what a rule for a metric measures, in each of its slices."""
    if not rule.slices:
        return [Case("", "", "", _whole(rule, evidence))]
    return [
        Case(*named(by, value), shown, _of_slice(rule, by, value, evidence))
        for shown, (by, value) in _slices_of(rule, evidence.state)
    ]


def confidence_of_each(rule: Rule, slices: int) -> float | None:
    """Return the confidence of each slice of a rule: all of them hold together (Bonferroni)."""
    if not rule.slices:
        return rule.confidence
    return 1 - (1 - (rule.least_confidence or OF_SLICES)) / slices


def _of_slice(rule: Rule, by: tuple[str, ...], value: Value, evidence: Evidence) -> Measured:
    found = _of_sums(rule, evidence.state.slices[by][value], evidence)
    before = slice_before(evidence.slices, by, value, _name(rule, evidence))
    if before is None or not rule.paired:
        return found
    return found._replace(
        base=before.value, base_error=before.standard_error, base_queries=before.queries or 0
    )


def _slices_of(
    rule: Rule, state: ComparisonState
) -> Iterator[tuple[str, tuple[tuple[str, ...], Value]]]:
    """Yield what the slices that a rule is for are called, in natural order, and what they are."""
    wanted = dict(rule.slices)
    for by, of_way in state.slices.items():
        if set(by) != set(wanted):
            continue
        for value in sorted(of_way, key=lambda value: tuple(map(natural, value))):
            pairs = list(zip(by, value, strict=True))
            if all(_fits(wanted[name], one) for name, one in pairs):
                texts = (f"{name} = {'(unknown)' if one is None else one}" for name, one in pairs)
                yield ", ".join(texts), (by, value)


def _fits(wanted: str, value: str | None) -> bool:
    return wanted == EVERY or (wanted in UNKNOWN if value is None else wanted == value)


def _whole(rule: Rule, evidence: Evidence) -> Measured:
    """Return what a rule measures over all queries."""
    metric = _name(rule, evidence)
    if BASELINE in evidence.state.systems and metric in evidence.state.metrics:
        return _of_sums(rule, evidence.state.whole, evidence)
    result, known = evidence.result, evidence.without.get(metric, {})
    of_mine = result.metrics[metric], result.standard_errors[metric], result.averaged(metric)
    mine = Measured(*of_mine, bounds=bounds_of(metric), effective=result.effective_queries)
    if evidence.state.whole.clusters is not None and metric in evidence.state.metrics:
        mine = _of_sums(rule, evidence.state.whole, evidence)
    if CANDIDATE in known:
        base = (evidence.told or {}).get("metrics", {}).get(metric)
        mine = Measured.of_groups(mine.value, base, known)
        if BASELINE in known:
            return mine
    if not rule.paired:
        return mine
    told = evidence.told or {}
    error = told.get("standard_errors", {}).get(metric)
    base = told.get("metrics", {}).get(metric)
    queries = told.get("lists", {}).get(metric, told.get("queries", 0))
    effective = told.get("effective_queries")
    both = {"base": base, "base_error": error, "base_effective": effective}
    return mine._replace(**both, base_queries=int(queries or 0))


def bounds_of(metric: str) -> tuple[float, float]:
    """Return the range of what a metric is a mean of; infinite if it is no mean over queries."""
    one = parse(metric)
    return one.spec.bounds if one.spec.kernel and not one.summary else NO_BOUNDS


def _name(rule: Rule, evidence: Evidence) -> str:
    """Return what results call the metric of a rule."""
    return parse_all([rule.subject], evidence.result.scope.rel)[0].text


def _of_sums(rule: Rule, sums: Sums, evidence: Evidence) -> Measured:
    metric = _name(rule, evidence)
    of = sums.columns[metric]
    sides = of[CANDIDATE], of.get(BASELINE)
    return Measured.of(*sides, bounds_of(metric), adjusted=rule.measure == "drop")


def _of_metric(rule: Rule, shown: str, one: Measured, confidence: float | None) -> Outcome:
    """Hold a metric against a rule; `shown` is the slice."""
    found = interval_of(rule, one, confidence)
    if one.value is None and not shown:
        # Without a single query that counts, something is wrong with the inputs.
        return replace(_undecided(rule, shown, "there is no value", one), word=BAD_VOLUME)
    if found is None:
        return _undecided(rule, shown, "there is no value", one)
    word = word_of(rule, found, confidence)
    return Outcome(
        rule.text,
        word,
        shown,
        one.value,
        one.base,
        _told(found.number),
        _told(found.low),
        _told(found.high),
        rule.limit,
        _reason(rule, shown, one, found, confidence),
    )


def interval_of(rule: Rule, one: Measured, confidence: float | None) -> Interval | None:
    """Return what the limit of a rule is for, with its interval."""
    if rule.measure == "value":
        return value_of(one, confidence, up=rule.operator in (">=", ">"))
    return drop_of(one, confidence, relative=rule.relative, better=rule.better)


def word_of(rule: Rule, found: Interval, confidence: float | None) -> str:
    """Return the word: with a confidence, all of the interval is on one side of the limit."""
    if confidence is None:
        return HELD if rule.keeps(found.number) else rule.word
    if found.low is None or found.high is None:
        return UNDECIDED
    kept = [rule.keeps(end) for end in (found.low, found.high)]
    return HELD if all(kept) else UNDECIDED if any(kept) else rule.word


def _reason(
    rule: Rule, shown: str, one: Measured, found: Interval, confidence: float | None
) -> str:
    value = f"{rule.subject}{f' where {shown}' if shown else ''} is {one.value:.6g}"
    if rule.measure == "drop" and found.number == 0:
        value += ", as the baseline"
    elif rule.measure == "drop":
        number = "" if math.isinf(found.number) else f"{_amount(abs(found.number), rule)} "
        side = "below" if (found.number > 0) == (rule.better == "higher") else "above"
        value += f", {number}{side} the baseline of {one.base:.6g}"
    told = f"limit {rule.limit_text}"
    if math.isinf(found.number):
        told = f"no share of 0, {told}"
    elif confidence is not None and found.low is None and one.why:
        told = f"no interval, as {one.why}, {told}"
    elif confidence is not None and found.low is not None and found.high is not None:
        what = "drop " if rule.measure == "drop" else ""
        what = "rise " if what and rule.better == "lower" else what
        ends = f"{_amount(found.low, rule)} to {_amount(found.high, rule)}"
        told = f"{what}{ends} at confidence {confidence:.6g}, {told}"
    elif confidence is not None:
        told = f"no interval, {told}"
    return f"{value} ({told})"


def _told(number: float | None) -> float | None:
    """Return a number as JSON may have it: None for a share of 0."""
    return None if number is None or math.isinf(number) else number


def _amount(number: float, rule: Rule) -> str:
    if math.isinf(number):
        return "unbounded"
    return f"{100 * number:.3g}%" if rule.relative else f"{number:.4g}"


def _undecided(rule: Rule, shown: str, why: str, one: Measured | None = None) -> Outcome:
    value, base = (None, None) if one is None else (one.value, one.base)
    where = f"{rule.subject} where {shown}" if shown else rule.subject
    reason = f"{where}: {why} (limit {rule.limit_text})"
    return Outcome(rule.text, UNDECIDED, shown, value, base, None, None, None, rule.limit, reason)


def of_count(rule: Rule, mine: Mapping[str, Any], told: Mapping[str, Any] | None) -> Outcome:
    """Hold a count against a rule; both results are as their JSON has them."""
    _check_counted(rule, mine, "give it, or leave out the rule")
    value = count_of(rule.subject, mine)
    base: float | None = None
    measured = float(value)
    if rule.measure == "change":
        if told is None:
            raise UsageError(
                f"rule {rule.text!r}: the baseline does not tell its counts; give predictions, "
                "the JSON of a result, or values by query that rankmill wrote"
            )
        _check_counted(rule, told, "evaluate the baseline with it")
        base = count_of(rule.subject, told)
        change = (value - base) / base if base else float(value != base)
        measured = abs(change)
        far = f"{100 * measured:.3g}% {'fewer' if change < 0 else 'more'} than"
        reason = f"{rule.subject} is {value:,}, {far} the baseline of {base:,}"
        if not change:
            reason = f"{rule.subject} is {value:,}, as in the baseline"
    elif rule.relative:
        whole = SHARE_OF.get(rule.subject, "predictions")
        total = count_of(whole, mine)
        measured = value / total if total else float(value > 0)
        reason = f"{rule.subject} is {value:,}, {100 * measured:.3g}% of {total:,} {whole}"
    else:
        reason = f"{rule.subject} is {value:,}"
    word = HELD if rule.keeps(measured) else rule.word
    reason = f"{reason} (limit {rule.limit_text})"
    return Outcome(rule.text, word, "", value, base, measured, None, None, rule.limit, reason)


def _check_counted(rule: Rule, told: Mapping[str, Any], todo: str) -> None:
    """Raise UsageError if a count is 0 only because nothing was there to count it by.

    `told` is a result as its JSON has it. What it does not tell is not asked for.
    """
    inputs, scope, names = (told.get(key, {}) for key in ("inputs", "scope", "metrics"))
    asked = parse_all(names) if names else []
    needs = {
        "seen_items": ("train", "train" in inputs),
        "unknown_items": ("items, train or features", bool({*INPUTS} & {*inputs})),
        "items_beyond_depth": ("depth", scope.get("depth") is not None),
        "unjudged_items": ("judged_only", bool(scope.get("judged_only"))),
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


def count_of(subject: str, told: Mapping[str, Any]) -> int:
    """Return a count of a result, as its JSON has it."""
    if subject in ("label_rows", "prediction_rows"):
        side = "labels" if subject == "label_rows" else "predictions"
        found = told.get("inputs", {}).get(side, {}).get("rows")
    else:
        found = told.get("audit", {}).get("queries_in_both" if subject == "queries" else subject)
    if found is None:
        raise UsageError(f"the baseline does not tell {subject}: evaluate it again")
    return int(found)


def _of_age(rule: Rule, age: float) -> Outcome:
    word = HELD if rule.keeps(age) else rule.word
    reason = f"{rule.subject} is {age_text(age)} (limit {rule.limit_text})"
    return Outcome(rule.text, word, "", age, None, age, None, None, rule.limit, reason)


def written_at(subject: str, labels: Any, predictions: Any) -> float:
    """Return when the newest file of an input was written, in seconds since 1970.

    Raises
    ------
    UsageError
        If the input is no file.
    """
    from rankmill.sources.files import find_files

    value = labels if subject == "labels_age" else predictions
    paths = [value] if isinstance(value, str | os.PathLike) else value
    if not isinstance(paths, list | tuple) or not all(
        isinstance(one, str | os.PathLike) for one in paths
    ):
        raise UsageError(f"{subject} needs files; a {type(value).__name__} has no age")
    files = find_files([os.fspath(one) for one in paths])
    return max((one.listed or one.identity())[3] for one in files) / 1e9
