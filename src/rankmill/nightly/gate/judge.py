"""Holding a rule against what was measured."""

import difflib
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from rankmill.analysis.compare.differences.comparison_state import ComparisonState
from rankmill.analysis.compare.differences.differences import named
from rankmill.analysis.compare.differences.pooled_differences import Without
from rankmill.engine.segments import OF_PREDICTIONS, natural
from rankmill.errors import InputError, UsageError, plural
from rankmill.nightly.gate.gate_request import CheckedGate
from rankmill.nightly.gate.series import (
    FEWEST,
    Night,
    PairedNight,
    night_of,
    of_pairs,
    of_pin,
    why_undecided,
)
from rankmill.nightly.rules.baseline import (
    BASELINE,
    CANDIDATE,
    Value,
    either_order,
    is_gone,
    slices_lost,
)
from rankmill.nightly.rules.counts import of_age, of_count
from rankmill.nightly.rules.measurements import (
    Interval,
    MeasuredSide,
    Measurement,
    detected,
    interval_of,
    word_of,
)
from rankmill.nightly.rules.rules import (
    BAD_VOLUME,
    EVERY,
    UNDECIDED,
    USUAL_CONFIDENCE,
    Rule,
    amount,
    drop_text,
)
from rankmill.nightly.rules.sides import (
    LEAST_IN_COMMON,
    Sides,
    against,
    at_one_mix,
    bounds_of,
    measured_of,
    shared_of,
    slices_of,
    slices_of_side,
    with_unpaired,
)
from rankmill.nightly.rules.verdict import RuleOutcome
from rankmill.nightly.runs.runs import RecordedMetric as Recorded
from rankmill.records import record
from rankmill.results.result import Result

# So many slices are listed for one that is not there, the nearest first.
MOST_LISTED = 10
UNKNOWN = ("", "(unknown)", "null")
FIRST_NIGHT = "this is the first night, or none before it held: there is no run to compare with yet"


@record(frozen=True)
class Evidence:
    """What rules are held against."""

    asked: CheckedGate
    results: Mapping[str, Result]  # of the system, and of a baseline that is scored or paired
    # Metric over all predictions -> system -> its values without each group of queries.
    without: Mapping[str, Without]
    state: ComparisonState  # what the queries of the system add up to, and of a paired baseline
    ages: Mapping[str, float]  # of inputs, in seconds
    # What the system and a paired baseline add up to over all their queries, if these differ.
    alone: Mapping[str, ComparisonState]

    @property
    def result(self) -> Result:
        """That of the system."""
        return self.results[CANDIDATE]

    @property
    def before(self) -> Result | None:
        """The result of the baseline, if it is known."""
        earlier = self.asked.earlier
        if earlier is not None and earlier.kind == "predictions":
            return self.results[BASELINE]
        return None if earlier is None else earlier.result

    @property
    def night(self) -> Result | None:
        """The last night that held, for counts of labels that a paired baseline has too."""
        earlier = self.asked.earlier
        return None if earlier is None or earlier.night is None else earlier.night.result

    def lacks_run(self, rule: Rule) -> bool:
        """Whether the history has no run yet that a rule compares with."""
        earlier = self.asked.earlier
        if earlier is None:
            return rule.needs_baseline
        of_metric = rule.measure == "drop" and rule.needs_baseline
        return of_metric and earlier.lacks(rule.name(self.result.scope.rel))

    def recorded(self, metric: str) -> Recorded:
        """Return a metric of the baseline over all its queries, without a value if not known."""
        earlier, one = self.asked.earlier, self.before
        if earlier is not None and metric in earlier.recorded:
            return earlier.recorded[metric]
        if one is None:
            return Recorded(None, None, None, None)
        known = one.metrics.get(metric), one.standard_errors.get(metric), one.averaged(metric)
        return Recorded(*known, None, one.effective_queries)

    def side_of(self, one: Recorded) -> MeasuredSide:
        """Return a value of the history; it has no error if it does not tell what weights leave."""
        weighted = self.result.scope.weight is not None
        error = None if weighted and one.effective_queries is None else one.standard_error
        known = one.value, error, one.queries or 0, one.effective_queries
        return MeasuredSide(*known, third=one.third_moment)


def judge(rule: Rule, evidence: Evidence) -> list[RuleOutcome]:
    """Return what comes of a rule: an outcome, or one for each slice."""
    if evidence.lacks_run(rule):
        return [replace(_undecided(rule, "", FIRST_NIGHT), counts=False)]
    if rule.kind == "age":
        return [of_age(rule, evidence.ages[rule.subject])]
    if rule.kind == "count":
        return [of_count(rule, evidence.result, evidence.before, evidence.night)]
    found = cases_of(rule, evidence)
    if not found:
        return [_without_queries(rule, evidence.alone.get(CANDIDATE, evidence.state))]
    confidence = confidence_of_each(rule, len(found))
    if rule.since is not None:
        return _of_series(rule, found, evidence, confidence or USUAL_CONFIDENCE)
    return [_of_metric(rule, one, confidence) for one in found]


def cases_of(rule: Rule, evidence: Evidence) -> list[Sides]:
    """Return what a rule for a metric measures, in each of its slices."""
    if not rule.slices:
        return [_at_one_mix(rule, _whole(rule, evidence), evidence)]
    return _slices_of(rule, evidence)


def confidence_of_each(rule: Rule, slices: int) -> float | None:
    """Return the confidence of each slice of a rule: all of them hold together (Bonferroni)."""
    level = rule.least_confidence
    return level if level is None or slices < 2 else 1 - (1 - level) / slices


def _slices_of(rule: Rule, evidence: Evidence) -> list[Sides]:
    """Return the slices that a rule is for, in natural order."""
    wanted, metric = dict(rule.slices), rule.name(evidence.result.scope.rel)
    found: list[tuple[tuple[str, ...], Value, Sides]] = []
    for by in evidence.state.slices:
        if set(by) == set(wanted):
            of_way = slices_of(by, metric, evidence.state, evidence.alone, paired=rule.paired)
            found += (
                (by, value, _with_before(rule, by, value, sides, evidence))
                for value, sides in of_way
            )
    earlier = evidence.asked.earlier
    # Both sides of a pair have the slices of the same labels: a night tells which are gone.
    earlier = earlier if earlier is None or earlier.night is None else earlier.night
    if rule.paired and earlier is not None and earlier.slices:
        there = {named(by, value) for by, value, _ in found}
        lost = [*slices_lost(earlier.slices, rule, metric, there)]
        night = earlier.night_before(metric) if lost and rule.starred else {}
        for by, value, one in lost:
            # A slice of a few queries may have none by chance. One that is gone fails one night.
            few = (one.queries or 0) < LEAST_IN_COMMON
            base = None if few or is_gone(named(by, value), night) else one.value
            theirs = MeasuredSide(base, queries=one.queries or 0)
            found.append((by, value, Sides(Measurement(MeasuredSide(), theirs), None)))
        found.sort(key=lambda one: tuple(map(natural, one[1])))
    return [
        sides._replace(shown=_shown(by, value))
        for by, value, sides in found
        if all(_fits(wanted[name], one) for name, one in zip(by, value, strict=True))
    ]


def _with_before(
    rule: Rule, by: tuple[str, ...], value: Value, sides: Sides, evidence: Evidence
) -> Sides:
    """Return the sides of a slice with the value of a baseline that has none of queries."""
    metric = rule.name(evidence.result.scope.rel)
    slices = {} if evidence.asked.earlier is None else evidence.asked.earlier.slices
    known = (slices.get((*names, metric)) for names in either_order(by, value))
    before = next((one for one in known if one is not None), None)
    if before is None or not rule.paired:
        return sides
    side = evidence.side_of(before)
    if rule.starred and min(side.queries, sides.measured.mine.queries) < LEAST_IN_COMMON:
        side = side._replace(value=None)  # a starred queries are there, and right, by chance
    return sides._replace(measured=sides.measured._replace(theirs=side))


def _shown(by: tuple[str, ...], value: tuple[str | None, ...]) -> str:
    """Return what a slice is called."""
    texts = ("(unknown)" if one is None else one for one in value)
    return ", ".join(f"{name} = {one}" for name, one in zip(by, texts, strict=True))


def _without_queries(rule: Rule, state: ComparisonState) -> RuleOutcome:
    """Return what comes of a rule for slices if no query of a system counts at all.

    If some do, a UsageError says that the slice that is asked for is none of theirs.
    """
    by, values = next(
        (by, of_way) for by, of_way in state.slices.items() if set(by) == {*dict(rule.slices)}
    )
    asked = _shown(by, tuple(dict(rule.slices)[name] for name in by))
    if not values:
        return _undecided(rule, asked, "no query counts", word=BAD_VOLUME)
    there = [_shown(by, value) for value in sorted(values, key=lambda v: tuple(map(natural, v)))]
    there.sort(key=lambda one: -difflib.SequenceMatcher(None, asked, one).ratio())
    more = f" and {len(there) - MOST_LISTED:,} more" if there[MOST_LISTED:] else ""
    raise UsageError(
        f"rule {rule.text!r}: no query that counts has {asked}; there are "
        f"{'; '.join(there[:MOST_LISTED])}{more}"
    )


def _fits(wanted: str, value: str | None) -> bool:
    return wanted == EVERY or (wanted in UNKNOWN if value is None else wanted == value)


def _whole(rule: Rule, evidence: Evidence) -> Sides:
    """Return what a rule measures over all queries."""
    metric, state = rule.name(evidence.result.scope.rel), evidence.state
    own = evidence.result.metrics[metric]
    if not rule.paired or BASELINE not in state.systems or metric not in state.metrics:
        one = _unpaired(metric, evidence)
        if rule.needs_baseline and one.base is None and own is not None:
            raise InputError(
                f"rule {rule.text!r}: the baseline has no value of {metric}, as none of its "
                "queries counts: is it from other data?"
            )
        return Sides(one, own)
    shared = shared_of(state)
    if shared.suffice():
        pairs = measured_of(state.whole, metric, paired=True)
        mine, theirs = (evidence.alone.get(side, state) for side in (CANDIDATE, BASELINE))
        whole = with_unpaired(pairs, mine.whole, theirs.whole, shared.both, metric)
        return Sides(pairs, own, shared, True, whole if evidence.alone else None)
    one, alone = _unpaired(metric, evidence), evidence.alone[BASELINE].whole
    if state.whole.clusters is not None:
        if alone.clusters is None:
            raise UsageError(
                f"rule {rule.text!r}: the baseline and this run have {shared.both:,} of "
                f"{shared.either:,} queries in common, and those that only the baseline has have "
                "no clusters: leave out --cluster"
            )
        return Sides(against(one, alone, metric), own, shared)
    if one.base is not None:
        return Sides(one, own, shared)
    # An earlier run that does not tell its values as a whole: those of its queries do.
    one = against(one, alone, metric)
    if one.base is None or shared.both < LEAST_IN_COMMON:
        raise InputError(
            f"rule {rule.text!r}: the baseline and this run have {shared.both:,} of "
            f"{shared.either:,} queries in common, which are too few to compare, and the baseline "
            "does not have its overall value: is it from other data, or truncated? Give its "
            "predictions, or evaluate it again"
        )
    return Sides(one, own, shared)


def _at_one_mix(rule: Rule, sides: Sides, evidence: Evidence) -> Sides:
    """Return both sides at the mix of the baseline, if they are of other queries in known slices.

    Slices are those of the first way to cut that does not come of the predictions: at one mix of
    their lists, a system that shows less would be as good as before. Weighted queries, and
    clusters, stay as they are.
    """
    state, earlier = evidence.state, evidence.asked.earlier
    metric, whole = rule.name(evidence.result.scope.rel), evidence.alone.get(CANDIDATE, state)
    ways = (by for by in whole.slices if len(by) == 1 and by[0] not in OF_PREDICTIONS)
    by = next(ways, None)
    weighted = evidence.result.scope.weight is not None or state.whole.clusters is not None
    if rule.measure != "drop" or sides.paired or rule.since is not None or weighted:
        return sides
    if by is None or earlier is None or sides.measured.base is None or metric not in whole.metrics:
        return sides
    if earlier.kind == "history":
        recorded = earlier.its_slices(metric)
        theirs = {key: evidence.side_of(one) for key, one in recorded.items() if key[0] == by[0]}
    else:
        theirs = slices_of_side(evidence.alone.get(BASELINE), by, metric, BASELINE)
    mine = slices_of_side(whole, by, metric, CANDIDATE)
    found = at_one_mix(sides.measured, mine, theirs)
    return sides if found is None else sides._replace(measured=found[0], mix=found[1])


def _unpaired(metric: str, evidence: Evidence) -> Measurement:
    """Return the value of a system, and that of the baseline as its result tells it."""
    result, known = evidence.result, evidence.without.get(metric, {})
    whole = evidence.alone.get(CANDIDATE, evidence.state)
    if metric in whole.metrics:
        mine = measured_of(whole.whole, metric, paired=False)
    else:
        of_mine = result.metrics[metric], result.standard_errors[metric], result.averaged(metric)
        side = MeasuredSide(*of_mine, result.effective_queries)
        mine = Measurement(side, bounds=bounds_of(metric))
    theirs = evidence.side_of(evidence.recorded(metric))
    # A mean over lists, or a ratio of sums, has an exact error.
    if CANDIDATE in known and mine.mine.error is None:
        mine = Measurement.of_groups(mine.value, theirs.value, known)
        if BASELINE in known:
            return mine
    return mine._replace(theirs=theirs)


def _of_metric(rule: Rule, sides: Sides, confidence: float | None) -> RuleOutcome:
    """Hold a metric against a rule."""
    if not rule.paired:  # how sure the baseline is says nothing of a value
        one = sides.measured
        sides = sides._replace(measured=one._replace(theirs=one.theirs._replace(effective=None)))
    found = replace(_held(rule, sides, confidence), value=sides.own)
    if sides.shared is None:
        return found
    found = replace(found, paired=0, queries=sides.shared.either)
    if not sides.paired:
        return found
    return replace(found, paired=sides.shared.both, paired_value=sides.measured.value)


def _of_series(
    rule: Rule, cases: list[Sides], evidence: Evidence, confidence: float
) -> list[RuleOutcome]:
    """Hold a metric over the nights of a series against a rule; the history is read once."""
    earlier, metric = evidence.asked.nights, rule.name(evidence.result.scope.rel)
    assert earlier is not None  # as there is such a rule
    assert rule.since is not None
    if rule.since > earlier.now.date():
        later = f"its series begins on {rule.since}, after this night"
        outcomes = (_undecided(rule, one.shown, later, one.measured) for one in cases)
        return [replace(one, counts=False) for one in outcomes]
    baseline = evidence.asked.earlier
    pairs, nights = None, None
    if baseline is not None and baseline.kind != "history":
        pairs = earlier.paired(rule, metric)
    else:
        nights = earlier.alone(rule, metric, [one.shown for one in cases])
    found = [_of_nights(rule, one, pairs, nights, earlier.now, confidence) for one in cases]
    if pairs is not None or evidence.asked.given.undecided == "fail":
        return found
    # It is undecided for weeks, in which the baseline of the other rules has to move on.
    return [replace(one, counts=one.counts and one.word != UNDECIDED) for one in found]


def _of_nights(
    rule: Rule,
    sides: Sides,
    paired: Mapping[str, list[PairedNight]] | None,
    alone: Mapping[str, list[Night]] | None,
    now: datetime,
    confidence: float,
) -> RuleOutcome:
    """Hold one case of a series against a rule, given its nights with pairs, or those without."""
    one, shown = sides.measured, sides.shown
    night: PairedNight | None = None
    if one.value is None:
        return _undecided(rule, shown, "there is no value", one, BAD_VOLUME)
    if one.mine.error is None:
        return _undecided(rule, shown, "one query has no error", one)
    if sides.paired and paired is not None:
        night = night_of(rule, one)
        pairs = [*paired.get(shown, ()), night]
        found = of_pairs(pairs, rule, confidence)
        what = f"mean of {plural(len(pairs), 'night')} since {rule.since}"
    elif alone is None:
        return _undecided(rule, shown, f"not paired: {_share_text(sides)}", one)
    else:
        tonight = Night(now.toordinal(), one.value, one.mine.error**2, one.mine.size)
        nights = [*alone[shown], tonight]
        pinned = of_pin(nights, rule, confidence)
        if pinned is None:
            told = _undecided(rule, shown, why_undecided(len(nights), rule), one)
            # Nights that are still to come must not keep this one from being a baseline.
            return replace(told, counts=len(nights) > FEWEST)
        found = pinned
        what = f"last nights against those from {rule.since} on"
    if rule.relative and rule.better == "higher" and rule.metric.bounds[0] >= 0:
        # Nothing loses more than all.
        found = found._replace(high=None if found.high is None else min(found.high, 1.0))
    ends = "no interval, as the baseline is 0"
    if found.low is not None and found.high is not None:
        ends = drop_text(rule, found.low, found.high)
    where = f" where {shown}" * bool(shown)
    reason = (
        f"{rule.subject}{where} is {one.value:.6g} tonight; {drop_text(rule, found.number)} "
        f"({what}, {ends} at confidence {confidence:.6g}, limit {rule.limit_text})"
    )
    numbers = finite(found.number), finite(found.low), finite(found.high), rule.limit
    word = word_of(rule, found, confidence)
    known = rule.text, word, shown, sides.own, one.base
    return RuleOutcome(*known, *numbers, reason, night=night)


def _held(rule: Rule, sides: Sides, confidence: float | None) -> RuleOutcome:
    one, shown = sides.measured, sides.shown
    found = interval_of(rule, one, confidence)
    if one.value is None and (not shown or one.base is not None):
        # Without a single query that counts, something is wrong with the inputs.
        why = "there is no value"
        if rule.paired and one.base is not None:
            why += f", and the baseline has {one.base:.6g}"
            if shown and not one.mine.queries:
                why = f"no queries, and {one.theirs.queries:,} in the baseline"
        return _undecided(rule, shown, why, one, BAD_VOLUME)
    if found is None and one.base is None and not (sides.shared and sides.shared.both):
        return _not_compared(rule, sides)
    if found is None:
        few = sides.shared is not None and one.base is None
        why = f"not paired: {_share_text(sides)}" if few else "the baseline has no value"
        return _undecided(rule, shown, why, one)
    word = word_of(rule, found, confidence)
    if not shown and _is_worst(rule, one):
        word = UNDECIDED  # both may be broken
    reason = _reason(rule, sides, found, confidence)
    if word == rule.kept and sides.whole is not None:  # what is not paired may be what is broken
        level = confidence or USUAL_CONFIDENCE
        whole = interval_of(rule, sides.whole, level)
        if whole is not None and word_of(rule, whole, level) == rule.word:
            word = UNDECIDED
            reason += f"; but {amount(whole.number, rule)} worse over all queries of each run"
    return RuleOutcome(
        rule.text,
        word,
        shown,
        one.value,
        one.base,
        finite(found.number),
        finite(found.low),
        finite(found.high),
        rule.limit,
        reason,
        detects=finite(detected(rule, one, confidence)),
    )


def _not_compared(rule: Rule, sides: Sides) -> RuleOutcome:
    """Return what comes of a slice that the baseline or this run lacks; it does not count.

    If it did, no run from now on would be a baseline that has the slice, or has it no more.
    """
    one, shown = sides.measured, sides.shown
    before = one.theirs.queries
    why = f"slice {shown}: no queries, and {before:,} in the baseline"
    why += ", too few to miss" if before < LEAST_IN_COMMON else "; gone on the night before already"
    if one.value is not None:
        queries = plural(sides.shared.either if sides.shared else one.mine.queries, "query")
        why = f"slice {shown}, {queries}, {rule.subject} {one.value:.4g}: "
        few = f"{why}too few to compare, and {before:,} in the baseline"
        why = few if one.theirs.queries else f"new {why}no baseline yet"
    return replace(_undecided(rule, shown, "", one), reason=why, counts=False)


def _reason(rule: Rule, sides: Sides, found: Interval, confidence: float | None) -> str:
    one, shown = sides.measured, sides.shown
    value = f"{rule.subject}{f' where {shown}' if shown else ''} is {sides.own:.6g}"
    if f"{one.value:.6g}" == f"{sides.own:.6g}":
        pass  # nobody would see a difference
    elif sides.mix is not None:
        value += f", {one.value:.6g} at the {sides.mix.by} mix of the baseline"
    else:
        value += f", {one.value:.6g} {'adjusted ' * one.adjusted}over the queries of both"
    if _is_worst(rule, one):
        value += ", and so is the baseline: nothing is worse"
    elif rule.measure == "drop" and one.value == one.base:
        value += ", as the baseline"
    elif rule.measure == "drop":
        far = amount(abs(found.number), rule)
        number = "" if math.isinf(found.number) or not found.number else f"{far} "
        side = "below" if (found.number > 0) == (rule.better == "higher") else "above"
        value += f", {number}{side} the baseline of {one.base:.6g}"
    told = f"limit {rule.limit_text}"
    if math.isinf(found.number):
        told = f"no share of 0, {told}"
    elif confidence is not None and found.low is None and one.why:
        told = f"no interval, as {one.why}, {told}"
    elif confidence is not None and found.low is not None and found.high is not None:
        ends = f"{amount(found.low, rule)} to {amount(found.high, rule)}"
        ends = drop_text(rule, found.low, found.high) if rule.measure == "drop" else ends
        told = f"{ends} at confidence {confidence:.6g}, {told}"
    elif confidence is not None:
        told = f"no interval, {told}"
    elif rule.keeps(found.number):
        told = f"within the {told}, not tested"
    if sides.paired:
        told = f"{_share_text(sides)}, {told}"
    elif sides.shared is not None:
        told = f"not paired, as only {_share_text(sides)}, {told}"
    return f"{value} ({told}){_mix_text(rule, sides)}"


def _mix_text(rule: Rule, sides: Sides) -> str:
    """Return what the mix did to the value, where it matters, and the slices of one run alone."""
    mix, one = sides.mix, sides.measured
    if mix is None or one.value is None or one.base is None:
        return ""
    told = f"; left out, as one run alone has them: {', '.join(mix.alone)}" if mix.alone else ""
    of = one.base if rule.relative and one.base else 1.0
    if not mix.matters(max(rule.limit, 0.01) * abs(of)):
        return told
    parts = (
        f"{100 * part / of:+.3g}%" if rule.relative else f"{part:+.4g}"
        for part in (mix.part, one.value - one.base)
    )
    moved, alike = parts
    return f"; the mix of {mix.by} moved it by {moved}, what is within the slices by {alike}{told}"


def _is_worst(rule: Rule, one: Measurement) -> bool:
    """Return whether a drop is from the worst value there is to the same value."""
    if rule.measure != "drop" or one.value != one.base:
        return False
    low, high = rule.metric.bounds
    return one.base == (high if rule.better == "lower" else low)


def _share_text(sides: Sides) -> str:
    """Return how many queries are compared in pairs, or could be."""
    assert sides.shared is not None
    both, either = sides.shared
    of = f"{both:,} of {either:,} queries"
    return f"paired over {of}" if sides.paired else f"{of} are of both runs"


def finite(number: float | None) -> float | None:
    """Return a number as JSON may have it: None for a share of 0."""
    return None if number is None or math.isinf(number) else number


def _undecided(
    rule: Rule, shown: str, why: str, one: Measurement | None = None, word: str = UNDECIDED
) -> RuleOutcome:
    value, base = (None, None) if one is None else (one.value, one.base)
    where = f"{rule.subject} where {shown}" if shown else rule.subject
    reason = f"{where}: {why} (limit {rule.limit_text})"
    return RuleOutcome(rule.text, word, shown, value, base, None, None, None, rule.limit, reason)
