"""What a gate is asked: its rules, baseline and options, checked before anything is read."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, replace
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from rankmill.analysis.compare.comparison_request import with_dependence
from rankmill.analysis.compare.differences.differences import Settings
from rankmill.config.face import EXPECTED, is_choice, read_choice
from rankmill.engine.cuts import Cuts, column_names, cuts_of
from rankmill.engine.job import Job
from rankmill.errors import InputError, UsageError
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.metrics.exposure import GIVE_ITEMS, is_of_catalogue
from rankmill.nightly.gate.series import EarlierNights, nights_before
from rankmill.nightly.history import history_of
from rankmill.nightly.rules.baseline import (
    BASELINE,
    CANDIDATE,
    Baseline,
    check_alike,
    first_night,
    has_slices,
    open_baseline,
    slices_before,
)
from rankmill.nightly.rules.counts import OF_LABELS, ROWS
from rankmill.nightly.rules.rules import UNTESTED, Rule, parse_rules, why_no_interval
from rankmill.nightly.rules.verdict import ON_UNDECIDED
from rankmill.nightly.runs.folder import ChosenRun, NoRunError, is_pinned, open_folder
from rankmill.nightly.runs.runs import Run, rules_of_job, time_of_name, time_of_run
from rankmill.package import GONE
from rankmill.records import record
from rankmill.results.result import Result
from rankmill.sources.nouns import Predictions

NO_TEST = f"confidence {UNTESTED}"


@record(frozen=True)
class Rules:
    """The rules of a gate, and what holds for all of them.

    Parameters
    ----------
    rules : str or iterable of str
        - "map@12 >= 0.08": the value keeps a limit.
        - "map@12 drop <= 1%": it is at most so much worse than the baseline, with 95% confidence.
        - "map@12 drop <= 1% confidence none": the values alone are compared.
        - "guardrail recall@12 drop <= 2%": it is to be shown that it is not worse by more.
        - "map@12[country=*] drop <= 3%": in each slice by a column of the labels or of `by`.
        - "queries change <= 10%", "repeated_items == 0", "predictions_age <= 36h": what was read.

        ``rankmill docs gate`` has the whole grammar.
    confidence : float
        The confidence of the intervals of the comparison that comes with the verdict.
    family_confidence : float, optional
        The confidence that all rules with "confidence" hold together, such as 0.95: of nights
        without a change for the worse, at most 5% then fail any rule. The rules share this error
        rate, so a larger drop is needed to fail each of them. Rules without "confidence" are not
        covered. By default, each rule has its own error rate, and ten rules fail more nights than
        one.
    undecided : {"warn", "fail"}
        What to do with a rule without enough data. "warn" lets it pass.

    Examples
    --------
    >>> import rankmill
    >>> rankmill.Rules(["map@12 >= 0.08", "queries change <= 10%"], undecided="fail").undecided
    'fail'
    """

    rules: str | Iterable[str]
    _: KW_ONLY
    confidence: float = 0.95
    family_confidence: float | None = None
    undecided: str = "warn"

    @classmethod
    def of(cls, rules: Any) -> "Rules":
        """Return what is given as rules."""
        return rules if isinstance(rules, cls) else cls(rules)

    @cached_property
    def parsed(self) -> list[Rule]:
        """The rules, parsed once: an iterable of texts may be read only once."""
        return parse_rules(self.rules)


class CheckedGate(NamedTuple):
    """What to hold against which rules: the checked options of `gate`."""

    given: Rules
    rules: list[Rule]  # with the confidence that each has tonight
    job: Job
    settings: Settings
    cuts: Cuts
    earlier: Baseline | None
    nights: EarlierNights | None = None  # those before tonight, for rules about a series

    @property
    def dropping(self) -> frozenset[str]:
        """The metrics that a rule compares with the baseline."""
        rel = self.job.scope.rel
        return frozenset(one.name(rel) for one in self.rules if one.measure == "drop")

    @property
    def crossed(self) -> bool:
        """Whether slices of two ways to cut are needed."""
        return any(len(one.slices) > 1 for one in self.rules)

    def runs(self, predictions: Predictions) -> dict[str, Predictions]:
        """Return the systems to score: this one, and the baseline if that is predictions.

        Data that are given bare are read as the predictions of this system are.
        """
        runs = {CANDIDATE: predictions}
        if self.earlier is not None and self.earlier.kind == "predictions":
            base = self.earlier.predictions
            if not isinstance(base, Predictions):
                base = replace(predictions, data=base)
            runs = {BASELINE: base, CANDIDATE: predictions}
        return runs


def metrics_asked(rules: Rules, more: str | Sequence[str]) -> Sequence[str]:
    """Return the names of the metrics of rules, and of more; those by default if there is none."""
    ruled = [one.subject for one in rules.parsed if one.kind == "metric"]
    extra = [more] if isinstance(more, str) else more
    return [*dict.fromkeys([*ruled, *extra])] or DEFAULT_METRICS


def asked_of(
    given: Rules,
    job: Job,
    settings: Settings,
    baseline: Any,
    history: str | Path | None,
    time: datetime | None,
    by: Any,
    adjust: Any,
    opened: Callable[[Any, Sequence[str]], Baseline] = open_baseline,
) -> CheckedGate:
    """Check what is asked of a gate before anything is read.

    `opened` opens a baseline that is not a run of a history; the others are as for `gate`.
    """
    asked = given.parsed
    _check(given, baseline)
    asked = [_tested(one, job, alone=opened is numbers_of_run) for one in asked]
    earlier, by = None, cuts_of(by)
    dropping = [one for one in asked if one.measure == "drop"]
    dropped = [*dict.fromkeys(one.name(job.scope.rel) for one in dropping)]
    if isinstance(baseline, str) and is_choice(baseline):
        try:
            earlier = from_history(baseline, history, asked, job, time, by)
        except InputError:  # the first night has none, which rules about itself need not know
            if any(one.needs_baseline for one in asked):
                raise
    elif baseline is not None:
        _check_no_history(baseline, history)
        earlier = opened(baseline, dropped)
        if earlier.kind == "predictions":
            earlier = _with_last_night(earlier, asked, history, job, time, by)
    for one in asked:
        _check_catalogue(one, job, earlier)
    if earlier is not None:
        check_alike(earlier, job, dropped)
        asked = [_decidable(one, earlier, job.scope.rel) for one in asked]
    for what, name in (("weight", job.scope.weight), ("cluster", settings.cluster)):
        if adjust is not None and name is not None:
            raise UsageError(f"adjust cannot be combined with {what} in a gate: give one of them")
    cuts = with_dependence(_cuts(by, asked), settings, adjust, job.scope.weight)
    asked = _with_dependence(asked, earlier, settings)
    levels = levelled(asked, given.family_confidence)
    nights = None
    if any(one.since is not None for one in asked):
        nights = nights_before(asked, history, job, time)
    return CheckedGate(given, levels, job, settings, cuts, earlier, nights)


def _with_last_night(
    pair: Baseline,
    rules: Sequence[Rule],
    history: str | Path | None,
    job: Job,
    time: datetime | None,
    by: Cuts,
) -> Baseline:
    """Return predictions of the same labels with what the last night of a history had of these.

    Raises UsageError if a rule compares the labels with themselves, as there is no history.
    """
    if history is None:
        lonely = next((r for r in rules if r.measure == "change" and r.subject in OF_LABELS), None)
        if lonely is not None:
            raise UsageError(
                f"rule {lonely.text!r} compares the labels with themselves, as the baseline is "
                "predictions for the same labels: give a history, with whose last night that held "
                f"labels are compared, or write a limit, such as {lonely.subject} >= 1000"
            )
        return pair
    try:
        night = from_history("last or none", history, rules, job, time, by)
    except InputError:  # it serves no drop, which the predictions are for
        night = None
    return replace(pair, night=night)


def numbers_of_run(value: Any, metrics: Sequence[str]) -> Baseline:
    """Return an earlier run as a baseline by its numbers."""
    found = open_baseline(value, metrics)
    if found.result is None:
        raise UsageError(
            f"the baseline {found.source} does not have the numbers of an earlier run; expected a "
            "Result, or a run of a history"
        )
    return replace(found, kind="result", table=None)


def _check(given: Rules, baseline: Any) -> None:
    undecided = given.undecided
    if undecided not in ON_UNDECIDED:
        told = f"undecided is {undecided!r}; expected one of {', '.join(ON_UNDECIDED)}"
        raise UsageError(GONE.get(f"undecided {undecided}", told))
    lonely = next((one for one in given.parsed if one.needs_baseline), None)
    if baseline is None and lonely is not None:
        raise UsageError(
            f"rule {lonely.text!r} needs a baseline: give one with --baseline, such as the "
            "predictions of the model that is in use"
        )


def _check_no_history(baseline: Any, history: str | os.PathLike[str] | None) -> None:
    """Raise UsageError if a baseline is a folder of runs, which are no predictions."""
    if not isinstance(baseline, str | os.PathLike):
        return
    name = os.fspath(baseline)
    begins = name.removesuffix(" or none").partition(":")[0]
    if not os.path.exists(name) and get_close_matches(begins, ("last", "median", "ago", "tag")):
        raise UsageError(
            f"there is no file {name!r}, and a history has no such baseline; expected {EXPECTED}"
        )
    same = history is not None and name.rstrip("/") == os.fspath(history).rstrip("/")
    names = os.listdir(name) if os.path.isdir(name) else []
    files = [one for one in names if one.endswith(".parquet") and one[0] not in "._"]
    if same or (files and all(time_of_name(one) is not None for one in files)):
        raise UsageError(
            f"the baseline {name} is a history, and not predictions: the baseline 'last' compares "
            f"with the last run of it that held, if {name} is given as the history"
        )


def _untested(rule: Rule, why: str) -> Rule:
    """Return a rule that has no interval; UsageError if it asks for one, as nothing breaks it."""
    if rule.confidence is not None or rule.slices or rule.guardrail:
        raise UsageError(f"rule {rule.text!r} {why}")
    return replace(rule, tested=False)


def _tested(rule: Rule, job: Job, *, alone: bool) -> Rule:
    if rule.least_confidence is None:
        return rule
    why = why_no_interval(rule.metric, job.semantics, alone=alone)
    return _untested(rule, f"has no interval here, as {why}: write {NO_TEST}") if why else rule


def _check_catalogue(rule: Rule, job: Job, earlier: Baseline | None) -> None:
    """Raise UsageError if a rule compares shares of the items of two nights."""
    scored = earlier is not None and earlier.kind == "predictions" and rule.since is None
    if rule.kind != "metric" or rule.measure == "value" or scored or job.beside:
        return
    if is_of_catalogue(rule.metric):
        raise UsageError(
            f"rule {rule.text!r} compares shares of different catalogues, each of the items that "
            f"one night has: {GIVE_ITEMS}"
        )


def _decidable(rule: Rule, earlier: Baseline, rel: float | None) -> Rule:
    """Return a rule that this baseline can decide, once it has its metric."""
    if earlier.kind == "predictions" or rule.measure != "drop" or not rule.needs_baseline:
        return rule
    if earlier.lacks(rule.name(rel)):
        return rule
    if rule.slices and earlier.table is None and not earlier.slices:
        needs = "per-query values: give predictions or a per-query file"
    elif rule.least_confidence is not None and not rule.metric.spec.kernel:
        needs = "the predictions of the baseline, as it is not a mean over queries"
    else:
        return rule
    return _untested(rule, f"needs {needs}; the baseline {earlier.source} has none of them")


def _with_dependence(
    rules: Sequence[Rule], earlier: Baseline | None, settings: Settings
) -> list[Rule]:
    """Return the rules; UsageError if one asks for an interval of clusters that is not known."""
    cluster = settings.cluster
    paired = earlier is not None and (earlier.kind == "predictions" or earlier.table is not None)
    dropping = any(one.measure == "drop" and not one.slices for one in rules)
    if settings.adjust is not None and not (paired and dropping):
        raise UsageError(
            "adjust is for a rule with drop, and needs the per-query values of the baseline: give "
            "predictions or a per-query file"
        )
    found = []
    for one in rules:
        why = ""
        if cluster is None or one.least_confidence is None:
            pass
        elif one.measure == "drop" and not paired:
            why = "the per-query values of the baseline: give predictions or a per-query file"
        elif not one.metric.spec.kernel:
            why = f"a mean over queries: write {NO_TEST}"
        told = f"with cluster {cluster!r} needs {why}"
        found.append(_untested(one, told) if why else one)
    return found


def _cuts(by: Cuts, rules: Sequence[Rule]) -> Cuts:
    """Return what `by` and the rules for slices cut by; a rule may name a column of a table."""
    there = {name for one in by.tables for name in column_names(one)}
    names = [name for one in rules for name, _ in one.slices if name not in there]
    return cuts_of([*by.columns, *by.derived, *by.tables, *names])


def from_history(
    how: str,
    history: str | os.PathLike[str] | None,
    rules: Sequence[Rule],
    job: Job,
    time: datetime | None,
    by: Cuts,
) -> Baseline | None:
    """Return the run of a history that is the baseline; for each metric of a drop another, maybe.

    `time` is that of the run that is compared, None for now. Messages repeat `by`. On the first
    night there is none, if `how` allows for that.
    """
    if history is None:
        told = (
            f"the baseline {how!r} is a run of a history: give --history, or ./{how} for "
            "a file of this name"
        )
        raise UsageError(GONE.get(str(how), told))
    choice = read_choice(how)
    name, runs = os.fspath(history), history_of(history)
    counted = rules_of_job(job)
    drops = [one for one in rules if one.measure == "drop" and one.needs_baseline]
    named = [(one, one.name(job.scope.rel)) for one in drops]
    names = [*dict.fromkeys(name for _, name in named)]
    if not runs.metrics and choice.optional:
        return None
    if not runs.metrics:
        typed, called = first_night(names, _cuts(by, drops))
        raise InputError(
            f"the history {name!r} has no run to compare with: write the baseline as '{how} or "
            "none', or begin it with a gate whose rules need no baseline: --rule 'queries > 0'"
            f"{typed} on the command line, History({name!r}).record({called}) in Python"
        )
    if not names:  # the rules are about counts alone: a run with a metric of the job, or any, tells
        known = [metric for metric, system in runs.metrics if system is None]
        mine = [metric.text for metric in job.metrics]
        names = [*(one for one in mine if one in known), *known, *mine][:1]
    now, folder = time_of_run(time), open_folder(name)

    def chosen_of(metric: str) -> ChosenRun:
        mine = [rule for rule, of in named if of == metric and rule.slices]

        def fits(run: Run) -> bool:
            return all(has_slices(folder, run, rule, metric) for rule in mine)

        return runs.baseline(how, metric, rules=counted, now=now, fits=fits if mine else None)

    found: dict[str, ChosenRun] = {}
    for metric in names:
        try:
            found[metric] = chosen_of(metric)
        except NoRunError:  # a metric, too, has a first night
            if not choice.optional:
                raise
    if not found:
        return None
    cut = [(rule, of) for rule, of in named if rule.slices and of in found]
    first = next(iter(found.values())).run
    measured = {metric: one.run.get(metric) for metric, one in found.items()}
    ids = dict.fromkeys(_called(one.run, now) for one in found.values())
    notes = tuple(dict.fromkeys(one.note for one in found.values() if one.note))
    chosen = {metric: one.run for metric, one in found.items()}
    slices = slices_before(folder, chosen, cut, _cuts(by, drops)) if cut else {}
    source = f"{how} of {history}: {'; '.join(ids)}"
    # Only a rule about rows reads them.
    of_rows = any(one.subject in ROWS for one in rules)
    rows = folder.rows_of(first) if of_rows else {}
    # Where every night has the tag, it pins none of them: all count since the first one.
    pinned = [one for one in runs.runs if choice.pinned and is_pinned(one, choice)]
    since = min(pinned, key=lambda one: one.time, default=None)
    return Baseline(
        "history",
        source,
        result=Result({}, {}, {}, 0, dict(first.audits.get(None, {})), inputs=rows),
        recorded={metric: one for metric, one in measured.items() if one is not None},
        notes=notes,
        slices=slices,
        # The chosen run has all of its slices.
        night_before=lambda one: folder.slices_with(found[one].before or chosen[one], one),
        its_slices=lambda one: folder.slices_with(chosen[one], one),
        since=since,
    )


def _called(run: Run, now: datetime) -> str:
    """Return a run with its age and its tags, as two systems may be in one history."""
    days = (now.date() - run.time.date()).days
    age = f"{days:,} day{'s' if days > 1 else ''} old"
    if days < 1:
        age = "of the same day" if days == 0 else "of a later day"
    return ", ".join([run.id, age, *(f"{key}={value}" for key, value in run.tags.items())])


# ------------------------------------------------------------------ the confidence of each rule


def levelled(rules: Sequence[Rule], family: float | None) -> list[Rule]:
    """Return rules with the confidence that each has.

    Rules with a confidence hold together with that of the `family`, if there is one (Bonferroni);
    guardrails, all of which have to hold, each with its own.

    Examples
    --------
    >>> from rankmill.nightly.rules.rules import parse_rule
    >>> one = parse_rule("map drop <= 1% confidence 0.95")
    >>> [round(rule.confidence, 4) for rule in levelled([one, one], 0.99)]
    [0.995, 0.995]
    """
    if family is None:
        return list(rules)
    known = [one for one in rules if one.least_confidence is not None and not one.guardrail]
    if not 0.5 <= family < 1:
        raise UsageError(
            f"family_confidence is {family}; expected a number from 0.5 to below 1, such as 0.95"
        )
    if not known:
        raise UsageError(
            "family_confidence is for rules with a confidence, and there is none: write one, such "
            "as map@12 drop <= 1% confidence 0.95"
        )
    least = 1 - (1 - family) / len(known)
    return [
        one
        if one.least_confidence is None or one.guardrail
        else replace(one, confidence=max(one.least_confidence, least))
        for one in rules
    ]
