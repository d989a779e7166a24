"""Holding a rule against what was measured."""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from rankmill.compare.pooled import Without
from rankmill.compare.segments import natural
from rankmill.compare.state import ComparisonState
from rankmill.compare.sums import Sums
from rankmill.errors import UsageError
from rankmill.gate.baseline import BASELINE, CANDIDATE
from rankmill.gate.beside import INPUTS
from rankmill.gate.measured import NO_BOUNDS, Interval, Measured, drop_of, value_of
from rankmill.gate.rules import BAD_VOLUME, EVERY, HELD, SHARE_OF, UNDECIDED, Rule, age_text
from rankmill.gate.verdict import Outcome
from rankmill.metrics.aggregate import aggregate_of
from rankmill.metrics.registry import parse, parse_all
from rankmill.results.result import Result

# The confidence of rules for slices that name none: by chance alone, one of many is far off.
OF_SLICES = 0.95
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
    """

    result: Result
    state: ComparisonState
    told: Mapping[str, Any] | None
    without: Mapping[str, Without]
    ages: Mapping[str, float]


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
        return [_of_count(rule, evidence)]
    if not rule.slices:
        return [_of_metric(rule, "", _whole(rule, evidence), rule.confidence)]
    slices = dict(_slices_of(rule, evidence.state))
    if not slices:
        shown = ", ".join(f"{name} = {value}" for name, value in rule.slices)
        return [_undecided(rule, shown, "no query is in it")]
    # Bonferroni: the intervals of all slices hold together.
    confidence = 1 - (1 - (rule.confidence or OF_SLICES)) / len(slices)
    return [
        _of_metric(rule, shown, _of_sums(rule, one, evidence), confidence)
        for shown, one in slices.items()
    ]


def _slices_of(rule: Rule, state: ComparisonState) -> Iterator[tuple[str, Sums]]:
    """Yield the slices that a rule is for, in natural order, with what they are called."""
    wanted = dict(rule.slices)
    for by, of_way in state.slices.items():
        if set(by) != set(wanted):
            continue
        for value in sorted(of_way, key=lambda value: tuple(map(natural, value))):
            pairs = list(zip(by, value, strict=True))
            if all(_fits(wanted[name], one) for name, one in pairs):
                texts = (f"{name} = {'(unknown)' if one is None else one}" for name, one in pairs)
                yield ", ".join(texts), of_way[value]


def _fits(wanted: str, value: str | None) -> bool:
    return wanted == EVERY or (wanted in UNKNOWN if value is None else wanted == value)


def _whole(rule: Rule, evidence: Evidence) -> Measured:
    """Return what a rule measures over all queries."""
    metric = _name(rule, evidence)
    if BASELINE in evidence.state.systems and metric in evidence.state.metrics:
        return _of_sums(rule, evidence.state.whole, evidence)
    result, known = evidence.result, evidence.without.get(metric, {})
    of_mine = result.metrics[metric], result.standard_errors[metric], result.averaged(metric)
    mine = Measured(*of_mine, bounds=_bounds(metric), effective=result.effective_queries)
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


def _bounds(metric: str) -> tuple[float, float]:
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
    return Measured.of(*sides, _bounds(metric), adjusted=rule.measure == "drop")


def _of_metric(rule: Rule, shown: str, one: Measured, confidence: float | None) -> Outcome:
    """Hold a metric against a rule; `shown` is the slice."""
    if rule.measure == "value":
        found = value_of(one, confidence, up=rule.operator in (">=", ">"))
    else:
        found = drop_of(one, confidence, relative=rule.relative, better=rule.better)
    if one.value is None and not shown:
        # Without a single query that counts, something is wrong with the inputs.
        return replace(_undecided(rule, shown, "there is no value", one), word=BAD_VOLUME)
    if found is None:
        return _undecided(rule, shown, "there is no value", one)
    word = _word(rule, found, confidence)
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


def _word(rule: Rule, found: Interval, confidence: float | None) -> str:
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


def _of_count(rule: Rule, evidence: Evidence) -> Outcome:
    mine = evidence.result.to_dict()
    _check_counted(rule, mine, "give it, or leave out the rule")
    value = count_of(rule.subject, mine)
    base: float | None = None
    measured = float(value)
    if rule.measure == "change":
        if evidence.told is None:
            raise UsageError(
                f"rule {rule.text!r}: the baseline does not tell its counts; give predictions, "
                "the JSON of a result, or values by query that rankmill wrote"
            )
        _check_counted(rule, evidence.told, "evaluate the baseline with it")
        base = count_of(rule.subject, evidence.told)
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
