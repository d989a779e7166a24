"""gate() says whether a system keeps its rules, and gate_power() what these would see."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from time import perf_counter
from time import time as clock_time
from typing import Any, NamedTuple

from rankmill.analysis.compare.compare import comparison_of
from rankmill.analysis.compare.comparison_request import settings_of
from rankmill.analysis.compare.conclusion import few_notes
from rankmill.analysis.compare.differences.comparison_state import ComparisonState, Sums
from rankmill.analysis.compare.differences.judgement import estimates
from rankmill.analysis.compare.queries.join import Joined, join_runs
from rankmill.analysis.compare.view.comparison import Comparison
from rankmill.analysis.compare.view.details import Details, details_of
from rankmill.analysis.statistics.distributions import t_quantile, t_tail
from rankmill.engine.evaluate import Local, executor_of
from rankmill.engine.finish import sealed
from rankmill.engine.first_pass import Progress
from rankmill.engine.job import parse_job
from rankmill.errors import InputError, UsageError, told_shortly
from rankmill.nightly.gate.gate_request import (
    CheckedGate,
    Rules,
    asked_of,
    metrics_asked,
    numbers_of_run,
)
from rankmill.nightly.gate.judge import Evidence, cases_of, confidence_of_each, finite, judge
from rankmill.nightly.rules.baseline import (
    BASELINE,
    CANDIDATE,
    check_gains,
    open_baseline,
    slice_values,
    with_table,
)
from rankmill.nightly.rules.counts import volumes_lost, written_at
from rankmill.nightly.rules.measurements import Interval, RuleTest, detected, test_of, word_of
from rankmill.nightly.rules.rules import UNDECIDED, Rule, age_text, percent
from rankmill.nightly.rules.sides import Lack, Sides, lack_of, notes_of_pairs
from rankmill.nightly.rules.verdict import (
    RuleOutcome,
    Verdict,
    is_small,
    is_unnamed,
    judged_slices,
    not_judged,
    undecided_note,
    worst,
)
from rankmill.records import record
from rankmill.results.answer import Answer
from rankmill.results.result import Result
from rankmill.semantics.semantics import Counting, Semantics
from rankmill.show.tables import Cell, Column, Part, Table, View
from rankmill.sources.nouns import Catalogue, Labels, Predictions
from rankmill.sources.roles.source import MEMORY

# The clocks of two machines may differ by so many seconds.
CLOCKS_DIFFER = 60.0


@told_shortly
def gate(
    labels: Any,
    predictions: Any,
    rules: str | Iterable[str] | Rules,
    *,
    baseline: Any = None,
    history: str | Path | None = None,
    metrics: str | Sequence[str] = (),
    by: Any = (),
    moved: int = 0,
    cluster: str | None = None,
    adjust: Any = None,
    time: datetime | None = None,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
    partitions: int | None = None,
    details: bool = False,
) -> Verdict:
    """Check predictions against rules, with or without a baseline.

    Parameters
    ----------
    labels, predictions
        As for `evaluate`. Or `predictions` is a `Result` and `labels` is None: its numbers are held
        against rules without slices, and the baseline is an earlier run.
    rules : str, iterable of str, or Rules
        Rules such as ``"map@12 >= 0.08"`` or ``"map@12 drop <= 1% confidence 0.95"``;
        ``rankmill docs gate`` has the grammar. Use `Rules` to also set what holds for all rules,
        such as what to do if there are not enough data for one.
    baseline : object, optional
        What rules with "drop" and "change" compare with: predictions, or an earlier run, which is
        a `Result`, or the .parquet or .arrow file of its values by query; or with a history "last",
        "median:7", "ago:28d", "tag:release=v7" or the id of a run. Predictions that are given bare
        are read as `predictions` says of its own.
    history : str or path, optional
        The folder or URL of the history that such a baseline is looked up in, and in which the
        nights of sequential rules are counted. `gate` only reads it: record the verdict with
        ``History(folder).record(verdict)``, as below.
    metrics : str or sequence of str
        More metrics to evaluate than those of the rules, or a set of them, such as "official",
        "recsys" or "pr".
    by, moved, cluster, adjust
        As for `compare`. The columns of rules for slices are added to `by`.
    time : datetime, optional
        The time of the run, with its zone, as for `History.record`; by default now. Runs of a
        history that are later are not used as a baseline.
    semantics, catalogue, threads, memory, progress, partitions
        As for `evaluate`. On Spark there is no `cluster`, `adjust` and `details`, a table of `by`
        may be a DataFrame, and so may the values by query of an earlier run.
    details : bool
        As for `compare`.

    Returns
    -------
    Verdict
        The errors are those of `evaluate`. A UsageError is also raised if a
        rule is not understood or names something unknown, before anything is read, or if the
        baseline was counted otherwise.

    Examples
    --------
    >>> import rankmill
    >>> import pyarrow as pa
    >>> labels = pa.table({"user_id": [7, 8], "items": [[1, 2], [3]]})
    >>> good = pa.table({"user_id": [8, 7], "items": [[3], [1, 2]]})
    >>> bad = pa.table({"user_id": [8, 7], "items": [[3], [5, 2]]})
    >>> rule = "map@12 drop <= 5% confidence none"  # two queries are too few for a test
    >>> found = rankmill.gate(labels, bad, ["map@12 >= 0.5", rule], baseline=good)
    >>> found.word, [one.word for one in found.outcomes]
    ('regressed', ['held', 'regressed'])
    >>> found.outcomes[1].reason
    'map@12 is 0.625, 37.5% below the baseline of 1 (paired over 2 of 2 queries, limit <= 5%)'

    Night after night, record each verdict before you act on it. The first night has no earlier run,
    so its rules need no baseline:

    >>> import tempfile
    >>> from rankmill import History
    >>> runs = tempfile.TemporaryDirectory()
    >>> verdict = rankmill.gate(labels, good, "map@12 >= 0.5")
    >>> path = History(runs.name).record(verdict)
    >>> verdict.raise_for_failure()
    >>> verdict = rankmill.gate(labels, bad, rule, baseline="last", history=runs.name)
    >>> path = History(runs.name).record(verdict)
    >>> verdict.raise_for_failure()
    Traceback (most recent call last):
        ...
    rankmill.errors.RegressionError: regressed: map@12 is 0.625, ...
    >>> runs.cleanup()
    """
    began = perf_counter()
    ruled = Rules.of(rules)
    if isinstance(predictions, Result):
        unused = {"by": by, "moved": moved, "metrics": metrics}
        unused |= {"cluster": cluster, "adjust": adjust}
        unused |= {"labels": labels is not None, "details": details}
        found = _of_result(predictions, ruled, baseline, history, time, catalogue, unused)
        return replace(found, seconds=perf_counter() - began)
    given, candidate = Labels.of(labels), Predictions.of(predictions)
    alone: Any = {"cluster": cluster, "adjust": adjust, "details": details}
    executor = executor_of(given, {"": candidate}, Local(threads, progress), partitions, **alone)
    here = isinstance(executor, Local)
    settings = settings_of("t", ruled.confidence, None, moved, cluster, adjust)
    names = metrics_asked(ruled, metrics)
    job = parse_job(names, given, semantics, catalogue, memory=memory)
    opened = open_baseline if here else executor.opens(given)
    asked = asked_of(ruled, job, settings, baseline, history, time, by, adjust, opened)
    ages = ages_of(asked, given.data, candidate.data)
    shown = None
    if here:
        joined, evidence = measured(asked, given, candidate, catalogue, executor, ages, details)
        comparison, shown = _compared(joined, evidence, executor, details)
    else:
        evidence, comparison = executor.measured(asked, given, candidate, catalogue, ages)
    found = verdict_of(evidence, comparison)
    return replace(found, seconds=perf_counter() - began, details=shown)


def _compared(
    joined: Joined, evidence: Evidence, local: Local, details: bool
) -> tuple[Comparison | None, Details | None]:
    """Return the comparison with a baseline that is paired, and what a page shows."""
    state, settings = evidence.state, evidence.asked.settings
    with local.workers() as workers:
        paired = BASELINE in joined.results
        comparison = comparison_of(joined, state, settings, workers) if paired else None
        shown = None if comparison is None else comparison.details
        if details and shown is None:
            shown = details_of(joined, settings, workers, joined.traits.segments)
            if state.whole.clusters is not None:
                values = estimates(state.whole, settings.confidence)
                told = state.whole.clusters.positive, settings.cluster
                shown = replace(shown, values=values, clusters=told[0], cluster=told[1])
    return comparison, shown


def measured(
    asked: CheckedGate,
    labels: Labels,
    predictions: Predictions,
    catalogue: Catalogue | None,
    local: Local,
    ages: Mapping[str, float],
    details: bool = False,
) -> tuple[Joined, Evidence]:
    """Score what is asked for, beside the baseline, and add it up."""
    runs, earlier = asked.runs(predictions), asked.earlier
    how = next(iter(runs)), asked.cuts, local, catalogue
    joined = join_runs(asked.job, labels, runs, *how, details=details)
    if earlier is not None:
        check_gains(earlier, joined.results[CANDIDATE])
    if earlier is not None and earlier.table is not None:
        joined = with_table(joined, earlier)
    with local.workers() as workers:
        state = joined.state(workers, crossed=asked.crossed, moments=asked.dropping)
        alone = {}
        if any(state.left_out.values()):  # then each side has queries of its own
            alone = joined.states_alone(workers, crossed=asked.crossed, moments=asked.dropping)
    results = {**joined.results, CANDIDATE: sealed(joined.results[CANDIDATE])}
    return joined, Evidence(asked, results, joined.without, state, ages, alone)


def _of_result(
    result: Result,
    rules: Rules,
    baseline: Any,
    history: str | Path | None,
    time: datetime | None,
    catalogue: Catalogue | None,
    unused: Mapping[str, Any],
) -> Verdict:
    """Hold the numbers of a result against rules; it was counted as it says.

    `unused` is what numbers alone have no use for, and may not be given.
    """
    wrong = [name for name, one in unused.items() if one]
    if wrong:
        raise UsageError(
            f"{', '.join(wrong)}: a Result is judged by its numbers alone; leave this out, with "
            "None for labels, or give predictions"
        )
    how, scope = (result.semantics, result.gain_function), result.scope
    counted = Semantics(
        rel=scope.rel,
        depth=scope.depth,
        judged_only=scope.judged_only,
        gain_function=result.gain_function,
    ).under(result.semantics)
    items = replace(Catalogue.of(catalogue), drop_seen=scope.drop_seen)
    weighted = Labels(None, weight=scope.weight)
    job = parse_job(metrics_asked(rules, ()), weighted, counted, items)
    settings = settings_of("t", rules.confidence, None, 0)
    run = baseline, history, time, (), None
    asked = asked_of(rules, job, settings, *run, numbers_of_run)
    ruled = sorted({one.name(scope.rel) for one in asked.rules if one.kind == "metric"})
    missing = next((name for name in ruled if name not in result.metrics), None)
    if missing is not None:
        there = ", ".join(result.metrics)
        raise UsageError(
            f"there is a rule for {missing}, but the Result has {there}: evaluate it too, or "
            "leave out the rule"
        )
    if any(one.slices for one in asked.rules):
        raise UsageError("rules for slices need per-query values: give predictions")
    if asked.earlier is not None:
        check_gains(asked.earlier, result)
    sums = Sums(result.queries, {})
    nothing: dict[str, Any] = {"slices": {}, "left_out": {}, "differing": 0, "unpredicted": {}}
    state = ComparisonState((CANDIDATE,), CANDIDATE, (), *how, result.scope, sums, **nothing)
    ages = ages_of(asked, result, result)
    return verdict_of(Evidence(asked, {CANDIDATE: result}, {}, state, ages, {}), None)


def ages_of(asked: CheckedGate, labels: Any, predictions: Any) -> dict[str, float]:
    """Return the ages in seconds of the inputs that rules are about."""
    clock = clock_time()
    old = [one.subject for one in asked.rules if one.kind == "age"]
    ages = {name: clock - written_at(name, labels, predictions) for name in old}
    young = next((name for name, age in ages.items() if age < -CLOCKS_DIFFER), None)
    if young is not None:
        raise InputError(
            f"{young}: the newest file of the {young.removesuffix('_age')} was written "
            f"{age_text(-ages[young])} after now: the clock of the machine that wrote it, or of "
            "this one, is wrong"
        )
    return {name: max(0.0, age) for name, age in ages.items()}


def verdict_of(evidence: Evidence, comparison: Comparison | None) -> Verdict:
    """Hold what was measured against the rules."""
    asked, state = evidence.asked, evidence.state
    earlier = asked.earlier
    lack = None
    if earlier is not None and earlier.kind == "predictions":
        lack = lack_of(evidence.result, evidence.results[BASELINE])
    outcomes, notes = [], [] if earlier is None else [*earlier.notes]
    for rule in asked.rules:
        judged = judged_slices(rule, judge(rule, evidence), asked.given.undecided)
        outcomes += [_despite(lack, one) if rule.measure == "drop" else one for one in judged]
    outcomes += volumes_lost(asked.rules, evidence.result, evidence.before, evidence.night)
    notes += filter(None, [undecided_note(outcomes), not_judged(outcomes)])
    notes += [] if lack is None else [lack.note]
    if state.whole.clusters is not None:
        count = f"{state.whole.clusters.positive:,} clusters by {asked.settings.cluster}"
        notes.append(f"intervals are those of {count}")
    return Verdict(
        worst(outcomes),
        outcomes,
        evidence.result,
        comparison,
        None if earlier is None else earlier.to_dict(),
        asked.given.undecided,
        notes=[
            *notes,
            *notes_of_pairs(state, asked.settings.adjust),
            *few_notes(state, asked.settings),
        ],
        slices=slice_values(evidence.alone.get(CANDIDATE, state), CANDIDATE, asked.rules),
    )


def _despite(lack: Lack | None, one: RuleOutcome) -> RuleOutcome:
    """Return the outcome of a drop; nothing holds against a baseline that lacks the queries."""
    if lack is None or lack.enough or not one.kept:
        return one
    return replace(one, word=UNDECIDED, reason=f"{one.reason}; {lack}")


# ------------------------------------------------------------------ what the rules would see

YEAR = 365
# So many nights stand for all that there can be, spread by the golden ratio.
NIGHTS, GOLDEN = 512, (math.sqrt(5) - 1) / 2
_NOTES = (
    "smallest drop: one that the rule fails in 80% of nights; of slices, from the easiest to the "
    "hardest. For a limit of the value it is counted from tonight's value, and for a series it is "
    "one that is found by its tenth night.",
    "false alarms: nights of a year that a rule fails though nothing changed, each night with "
    "other queries of the same kind. The same queries and the same system give none.",
    "holds: nights without a change in which the rule holds, or some of its slices do and all "
    "others are too small; with small slices, this may be 20 points off. No other night is the "
    "baseline last or median: if few hold, it is a lucky one, and there are more false alarms than "
    "these.",
    "price: of n queries, a verdict needs a mean beyond the limit by 3.7/n of the range of the "
    "metric at least, and by 6.7/n in one of 20 slices, as queries that were not seen may differ.",
)
_EMPTY = (
    "empty: a count, a series, a rule without an earlier run, or a system compared with itself: "
    "these data tell no error of it."
)
_NONE = "none: these data are too few for the rule to fail in 80% of nights, whatever is lost."


class RulePower(NamedTuple):
    """What a rule sees, and how often it errs.

    Attributes
    ----------
    rule : str
    smallest, largest : float or None
        The smallest drop that it fails in 80% of nights: in its slices the smallest and the
        largest of these; None where no drop is seen, or the data do not tell.
    relative : bool
        Whether these are shares of the baseline.
    alarms : float or None
        Expected nights with a false alarm in a year; None if the data do not tell.
    held : float or None
        The share of nights without a change in which it holds; None if the data do not tell.
    """

    rule: str
    smallest: float | None
    largest: float | None
    relative: bool
    alarms: float | None
    held: float | None


@record(frozen=True, repr=False, eq=False)
class GatePower(Answer):
    """What the rules of a gate see on some data, and how often they err.

    Attributes
    ----------
    rules : list of RulePower
    alarms : float or None
        Expected nights of a year in which any rule fails though nothing changed.
    """

    rules: list[RulePower]
    alarms: float | None

    def _view(self) -> View:
        def table() -> Table:
            rows: list[list[Cell]] = [
                [one.rule, _drop(one), _held(one), _alarms(one.alarms)] for one in self.rules
            ]
            rows += [["any of these", "", "", _alarms(self.alarms)]] if rows[1:] else []
            titles = "rule", "smallest drop", "holds", "false alarms per year"
            return Table([Column(one) for one in titles], rows)

        def parts() -> list[Part]:
            blind = any(one.alarms is not None and one.largest is None for one in self.rules)
            empty = any(one.alarms is None for one in self.rules)
            return [table(), *_NOTES, *([_NONE] if blind else []), *([_EMPTY] if empty else [])]

        def exact() -> Table:
            rows: list[list[Cell]] = [list(one) for one in self.rules]
            return Table([Column(name) for name in RulePower._fields], rows)

        return View(parts, parts, exact, self.to_dict)


def _drop(one: RulePower) -> str:
    if one.alarms is None:
        return ""
    least, most = (
        "none" if end is None else percent(end) if one.relative else f"{end:.3g}"
        for end in (one.smallest, one.largest)
    )
    return least if least == most else f"{least} to {most}"


def _held(one: RulePower) -> str:
    return "" if one.held is None else percent(one.held)


def _alarms(alarms: float | None) -> str:
    return "" if alarms is None else f"{alarms:.2g}" if alarms < 10 else f"{alarms:.0f}"


def gate_power(
    labels: Any,
    predictions: Any,
    rules: str | Iterable[str] | Rules,
    *,
    baseline: Any = None,
    history: str | Path | None = None,
    metrics: str | Sequence[str] = (),
    by: Any = (),
    cluster: str | None = None,
    adjust: Any = None,
    time: datetime | None = None,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
) -> GatePower:
    """Show what the rules of a gate can detect, and how often they would fail by chance.

    Parameters
    ----------
    labels, predictions, rules, baseline, history, metrics, by, cluster, adjust, time
        As for `gate`.
    semantics, catalogue, threads, memory, progress
        As for `evaluate`.

    Returns
    -------
    GatePower
        For each rule, the smallest drop that it fails in 80% of nights, and its false alarms per
        year of nights.

    Examples
    --------
    >>> import rankmill
    >>> import pyarrow as pa
    >>> labels = pa.table({"user_id": range(400), "items": [[1]] * 400})
    >>> old, new = ([[1] if q % n else [2, 1] for q in range(400)] for n in (2, 3))
    >>> old, new = (pa.table({"user_id": range(400), "items": one}) for one in (old, new))
    >>> rule = "map drop <= 1% confidence 0.95"
    >>> (found,) = rankmill.gate_power(labels, new, rule, baseline=old).rules
    >>> round(found.smallest, 3), round(found.alarms, 1)
    (0.091, 2.1)
    """
    given, of_labels = Rules.of(rules), Labels.of(labels)
    settings = settings_of("t", given.confidence, None, 0, cluster, adjust)
    names = metrics_asked(given, metrics)
    job = parse_job(names, of_labels, semantics, catalogue, memory=memory)
    asked = asked_of(given, job, settings, baseline, history, time, by, adjust)
    local, candidate = Local(threads, progress), Predictions.of(predictions)
    _, evidence = measured(asked, of_labels, candidate, catalogue, local, {})
    found, chances = list[RulePower](), list[float]()
    for rule in asked.rules:
        known = rule.kind == "metric" and not evidence.lacks_run(rule)
        cases = cases_of(rule, evidence) if known else []
        every = [test_of(rule, one.measured) for one in cases]
        tests = [one for one in every if one is not None]
        each = confidence_of_each(rule, len(cases))
        told = (detected(rule, one.measured, each) for one in cases)
        seen = [one for one in told if one is not None]
        counts = rule.since is None and bool(tests)
        if counts:
            chances.append(_chance(rule, tests, len(cases)))
        found.append(
            RulePower(
                rule.text,
                finite(min(seen, default=None)),
                finite(max(seen, default=None)),
                rule.relative,
                YEAR * chances[-1] if counts else None,
                _chance_to_hold(rule, cases, every, given.undecided) if counts else None,
            )
        )
    # As if rules did not depend on each other.
    together = YEAR * (1 - math.prod(1 - one for one in chances)) if chances else None
    return GatePower(found, together)


def _chance(rule: Rule, tests: Sequence[RuleTest], slices: int) -> float:
    """Return the chance of a false alarm of a rule in a night."""
    confidence = confidence_of_each(rule, slices)
    far = [(test.far(confidence) + test.margin) / test.error for test in tests]
    return 1 - math.prod(1 - t_tail(t, test.freedom) for t, test in zip(far, tests, strict=True))


def _chance_to_hold(
    rule: Rule, cases: Sequence[Sides], tests: Sequence[RuleTest | None], undecided: str
) -> float:
    """Return the chance that a rule holds in a night without a change.

    A rule for every slice does so if some slices hold, and `judged_slices` sets aside the others.
    """
    confidence, starred = confidence_of_each(rule, len(cases)), rule.starred
    hold, undecided_by = list[float](), list[float]()
    for sides, test in zip(cases, tests, strict=True):
        if test is None:
            continue
        far = test.far(confidence)
        if not starred:
            hold.append(test.chance_below(test.margin - far))
            continue
        held = aside = 0
        for one, base in _nights(rule, test, far):
            word = word_of(rule, one, confidence)
            held += word == rule.kept
            small = undecided != "fail" and is_small(rule, one, base)
            aside += word == UNDECIDED and (small or is_unnamed(rule, sides.shown))
        hold.append(held / NIGHTS)
        undecided_by.append(aside / NIGHTS)
    if not starred:
        return math.prod(hold)
    fine = math.prod(sum(one) for one in zip(hold, undecided_by, strict=True))
    return fine - math.prod(undecided_by)


def _nights(rule: Rule, test: RuleTest, far: float) -> Iterator[tuple[Interval, float | None]]:
    """Yield what nights without a change measure, with the value of the baseline, if it has one.

    Values vary by their errors, which are those of tonight. Nights are the points of a lattice.
    """
    one, half = test.one, far * test.scale
    value, base, covariance = one.value or 0.0, one.base or 0.0, one.covariance
    of_v, of_b = one.mine.error or 0.0, one.theirs.error or 0.0
    common = covariance / of_b if of_b else 0.0
    own = math.sqrt(max(0.0, of_v**2 - common**2))
    for night in range(NIGHTS):
        y = t_quantile((night + 0.5) / NIGHTS, test.freedom)
        if not rule.paired:
            v = value + of_v * y
            yield Interval(v, v - half, v + half), None
            continue
        z = t_quantile(math.fmod((night + 0.5) * GOLDEN, 1.0), test.freedom)
        b, v = base + of_b * y, base + common * y + own * z
        found = Interval(drop := test.sign * (b - v), drop - half, drop + half)
        yield (_relative(v, b, far / test.error, test) if rule.relative else found), b


def _relative(v: float, b: float, errors: float, test: RuleTest) -> Interval:
    """Return a relative drop, with the ends that are so many errors away (Fieller)."""
    if b <= 0:
        return Interval(0.0)
    one, v = test.one, max(0.0, v)
    constant = v**2 - (errors * (one.mine.error or 0.0)) ** 2
    square = b**2 - (errors * (one.theirs.error or 0.0)) ** 2
    middle = v * b - errors**2 * one.covariance
    most = middle + math.sqrt(max(0.0, middle**2 - square * constant))
    low = constant / most if constant > 0 else 0.0
    high = most / square if square > 0 else math.inf
    ends = sorted((test.sign * (1 - low), test.sign * (1 - high)))
    return Interval(test.sign * (1 - v / b), *ends)
