"""Rules about a series of nights: those before tonight, and what all of them come to."""

import json
import math
import os
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from rankmill.analysis.statistics.series import (
    FEWEST,
    LOOKS,
    PINNED,
    Night,
    PairedNight,
    SeriesMean,
    against_pin,
    running_mean,
)
from rankmill.engine.job import Job
from rankmill.errors import InputError, UsageError
from rankmill.nightly.history import History, history_of
from rankmill.nightly.rules.measurements import Interval, Measurement, error_of, parts_of
from rankmill.nightly.rules.reports import slice_keys
from rankmill.nightly.rules.rules import BAD_AUDIT, BAD_VOLUME, STALE, Rule
from rankmill.nightly.runs.folder import NO_VERDICT, Folder, open_folder, tries_of_a_night
from rankmill.nightly.runs.runs import RecordedMetric, Run, rules_of_job, time_of_run

# What was read on such a night was wrong, so that its values say nothing.
WRONG_INPUTS = (NO_VERDICT, BAD_VOLUME, BAD_AUDIT, STALE)


class EarlierNights(NamedTuple):
    """The nights of a history before tonight."""

    history: History
    folder: Folder
    counted: str  # how tonight is counted, as `rules_text` writes it
    now: datetime

    def runs(self, rule: Rule, metric: str) -> list[tuple[Run, RecordedMetric]]:
        """Return the run of each night of a rule that counts the same, in the order of time."""
        try:
            same, _ = self.history.comparable(metric, None, self.counted)
        except InputError:  # none has the metric: tonight is the first night
            return []
        return [
            (run, one)
            for run, one in tries_of_a_night(same)
            if rule.since is not None
            and rule.since <= run.time.date() < self.now.date()
            and run.verdict not in WRONG_INPUTS
        ]

    def paired(self, rule: Rule, metric: str) -> dict[str, list[PairedNight]]:
        """Return what the nights told of the pairs of a rule, by slice; "" is all queries."""
        found: dict[str, list[PairedNight]] = {}
        for run, _ in self.runs(rule, metric):
            for one in json.loads(self.folder.outcomes_of(run) or "[]"):
                if one["rule"] == rule.text and one.get("night"):
                    found.setdefault(one["slice"], []).append(PairedNight(*one["night"]))
        return found

    def alone(self, rule: Rule, metric: str, shown: Sequence[str]) -> dict[str, list[Night]]:
        """Return the values of the nights in each of some slices; "" is all queries."""
        found: dict[str, list[Night]] = {one: [] for one in shown}
        for run, whole in self.runs(rule, metric):
            slices = self.folder.slices_with(run, metric) if any(shown) else {}
            for place, nights in found.items():
                keys = slice_keys(rule, place) if place else ()
                one = next((slices[key] for key in keys if key in slices), None)
                one = one if place else whole
                if one is not None and one.value is not None and one.standard_error is not None:
                    nights.append(Night(run.time.toordinal(), one.value, one.standard_error**2))
        return found


def nights_before(
    rules: Sequence[Rule], history: str | os.PathLike[str] | None, job: Job, time: datetime | None
) -> EarlierNights:
    """Return the nights before tonight; UsageError without a history."""
    if history is None:
        one = next(one for one in rules if one.since is not None)
        raise UsageError(f"rule {one.text!r} is about the nights of a history: give --history")
    folder = open_folder(os.fspath(history))
    return EarlierNights(history_of(history), folder, rules_of_job(job), time_of_run(time))


def night_of(rule: Rule, one: Measurement) -> PairedNight:
    """Return what the pairs of tonight say of the limit of a rule: above 0 is within it."""
    sign, ratio = _terms(rule)
    parts = parts_of(one, ratio)
    base = one.base or 0.0
    within = 0.0 if rule.relative else rule.limit
    if parts is None:
        mean = sign * ((one.value or 0.0) - ratio * base)
        return PairedNight(mean + within, error_of(one, ratio) ** 2, 0.0, 0.0, base)
    _, spread, low, high = parts[0]
    ends = sorted((sign * low + within, sign * high + within))
    unit = spread.unit
    mean = sign * spread.mean + within
    return PairedNight(mean, spread.square, unit * ends[1], -unit * ends[0], base)


def of_pairs(nights: Sequence[PairedNight], rule: Rule, confidence: float) -> Interval:
    """Return the mean drop over nights with pairs."""
    return _drop(running_mean(nights, confidence), rule)


def of_pin(nights: Sequence[Night], rule: Rule, confidence: float) -> Interval | None:
    """Return the drop of the last nights from the pinned ones; None of too few, or too many."""
    if len(nights) > PINNED + LOOKS:
        return None
    sign, ratio = _terms(rule)
    turned = [one._replace(value=sign * one.value) for one in nights]
    within = 0.0 if rule.relative else rule.limit
    found = against_pin(turned, ratio, within, confidence)
    return None if found is None else _drop(found._replace(base=sign * found.base), rule)


def why_undecided(nights: int, rule: Rule) -> str:
    """Return why a series without pairs decides nothing."""
    if nights > PINNED + LOOKS:
        return f"{LOOKS} nights were judged since the pin: begin anew, with a later date"
    return (
        f"{nights} of {FEWEST + 1} nights since {rule.since}: fewer do not tell by how much nights "
        "differ"
    )


def _terms(rule: Rule) -> tuple[int, float]:
    """Return the sign that makes more better, and how many times the baseline the limit allows."""
    sign = -1 if rule.better == "lower" else 1
    return sign, 1 - sign * rule.limit if rule.relative else 1.0


def _drop(found: SeriesMean, rule: Rule) -> Interval:
    """Return the drop of a series of which the mean is by how much it is within the limit."""
    scale = found.base if rule.relative else 1.0
    if scale <= 0:
        return Interval(math.inf if found.mean < 0 else 0.0)
    number, low, high = (rule.limit - one / scale for one in (found.mean, found.high, found.low))
    return Interval(number, low, high)
