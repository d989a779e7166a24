"""Series of nights: what they show of a change, and what rules about them come to.

Paired differences of a night share what the night does to both systems, so that it cancels, and
each night adds to what is known. Without pairs, nights differ by more than the queries that were
drawn: a series is then held to nights that stand still, by how much nights differ from each other.
"""

import json
import math
import os
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np

from rankmill.analysis.statistics.distributions import t_quantile
from rankmill.engine.job import Job
from rankmill.errors import InputError, UsageError
from rankmill.nightly.history import History, history_of
from rankmill.nightly.rules.measurements import Interval, Measurement, error_of, parts_of
from rankmill.nightly.rules.reports import slice_keys
from rankmill.nightly.rules.rules import BAD_AUDIT, BAD_VOLUME, STALE, Rule
from rankmill.nightly.runs.folder import NO_VERDICT, Folder, one_a_night, open_folder
from rankmill.nightly.runs.runs import RecordedMetric, Run, rules_of_job, time_of_run

# ------------------------------------------------------------------ what a series shows

# The running mean is narrowest where the variance is so many times that of the first night.
NARROW_AT = 5
# So many queries that were not seen are supposed in all of the nights. One is too few: measured
# with gains that are so rare that a night has three, it is wrong in 3 % of series and not in 2.5.
UNSEEN = 2
# Nights that are pinned, and the fewest of them; those that are judged together, and how many are.
PINNED, FEWEST, WINDOW, LOOKS = 28, 14, 7, 60
# How much a night is like the one before, as is supposed.
ALIKE = 0.7


class PairedNight(NamedTuple):
    """The mean of the differences of a night from what the limit allows, and how sure it is.

    `up` and `down` are by how much one query that was not seen could move it.
    """

    mean: float
    square: float
    up: float
    down: float
    base: float = 1.0  # the value of the baseline


class Night(NamedTuple):
    """A night that is not paired: its day, value, the square of its standard error, and size."""

    day: int
    value: float
    square: float
    queries: float = 1.0


class SeriesMean(NamedTuple):
    """What a series comes to: a mean beyond what the limit allows, with the ends of its interval.

    `nights` is how many it is over, and `base` the value that a share is a share of.
    """

    mean: float
    low: float
    high: float
    nights: int
    base: float


def running_mean(nights: Sequence[PairedNight], confidence: float) -> SeriesMean:
    """Return the mean over paired nights, with an interval that holds on all nights together.

    It is the boundary of a normal mixture (Robbins, Annals of Mathematical Statistics 1970; Howard
    et al., Annals of Statistics 2021), with two unseen queries in all of the nights. However many
    nights are looked at, each end is wrong in (1 - confidence) / 2 of series.

    Examples
    --------
    >>> night = PairedNight(-0.02, 0.005**2, 0.001, 0.001)
    >>> [round(running_mean([night] * n, 0.95).high, 4) for n in (1, 4, 16)]
    [-0.0005, -0.0118, -0.016]
    """
    count, error = len(nights), (1 - confidence) / 2
    total = math.fsum(one.mean for one in nights)
    base = math.fsum(one.base for one in nights) / count
    squares = math.fsum(one.square for one in nights)
    if not any((squares, *(one.up + one.down for one in nights))):
        return SeriesMean(total / count, -math.inf, math.inf, count, base)
    far = -2 * math.log(2 * error)
    ends = []
    for sign, one in ((-1, max(one.down for one in nights)), (1, max(one.up for one in nights))):
        unseen = UNSEEN * one
        variance = squares + unseen**2
        mixed = NARROW_AT * max(nights[0].square, unseen**2) / (far + math.log(far) + 1)
        reach = (variance + mixed) * math.log((variance + mixed) / (mixed * 4 * error**2))
        ends.append((total + sign * (unseen + math.sqrt(max(reach, 0.0)))) / count)
    return SeriesMean(total / count, ends[0], ends[1], count, base)


def against_pin(
    nights: Sequence[Night], ratio: float, limit: float, confidence: float
) -> SeriesMean | None:
    """Return the last nights less `ratio` times the pinned ones, plus `limit`; None of too few.

    The first nights are pinned, and the mean of the last seven is held to theirs. How much nights
    differ comes from nights a week apart, which share their weekday, and is one sampling error at
    least. A few queries without a hit show no spread of their own: they have that of the nights
    that show more. The error rate is shared by 60 nights.
    """
    pinned = PINNED if len(nights) > PINNED else FEWEST
    if len(nights) <= pinned:
        return None
    before, last = nights[:pinned], nights[pinned:][-WINDOW:]
    far = 7 if pinned == PINNED else 1
    base = math.fsum(one.value for one in before) / pinned
    value = math.fsum(one.value for one in last) / len(last)
    of_query = max(
        math.fsum(one.square * one.queries for one in some) / len(some) for some in (before, last)
    )
    square = of_query * math.fsum(1 / one.queries for one in last) / len(last)
    between, pairs = _between(nights[:-WINDOW] if far == 7 else before, far)
    between = max(square, between)
    weights = np.array([-1 / pinned] * pinned + [1 / len(last)] * len(last))
    days = np.array([one.day for one in (*before, *last)], float)
    alike = ALIKE ** np.abs(days[:, None] - days)
    variance = square / len(last) + between * float(weights @ alike @ weights)
    variance += ratio**2 * of_query * math.fsum(1 / one.queries for one in before) / pinned**2
    freedom = max(2.0, pairs / 2 if far == 7 else pairs)
    half = t_quantile(1 - (1 - confidence) / 2 / LOOKS, freedom) * math.sqrt(variance)
    mean = value - ratio * base + limit
    return SeriesMean(mean, mean - half, mean + half, len(last), base)


def _between(nights: Sequence[Night], far: int) -> tuple[float, int]:
    """Return how much nights vary beyond their sampling, from those so many days apart."""
    of_day = {one.day: one for one in nights}
    pairs = [(one, of_day[one.day - far]) for one in nights if one.day - far in of_day]
    if len(pairs) < 2:
        return 0.0, len(pairs)
    apart = np.array([one.value - other.value for one, other in pairs])
    sampled = math.fsum(one.square + other.square for one, other in pairs) / len(pairs)
    return (float(apart.var(ddof=1)) - sampled) / (2 * (1 - ALIKE**far)), len(pairs)


# ------------------------------------------------------------------ the nights before tonight

# What was read on such a night was wrong, so that its values say nothing.
WRONG_INPUTS = (NO_VERDICT, BAD_VOLUME, BAD_AUDIT, STALE)


class EarlierNights(NamedTuple):
    """The nights of a history before tonight."""

    history: History
    folder: Folder
    counted: str  # how tonight is counted, as `rules_text` writes it
    now: datetime

    def runs(self, rule: Rule, metric: str) -> list[tuple[Run, RecordedMetric]]:
        """Return the run of each date of a rule that counts the same, in the order of time."""
        try:
            same, _ = self.history.comparable(metric, None, self.counted)
        except InputError:  # none has the metric: tonight is the first night
            return []
        # Of runs with other tags on one date, too, the last counts: they share what that date does.
        by_date = {
            run.time.date(): (run, one)
            for run, one in one_a_night(same)
            if rule.since is not None
            and rule.since <= run.time.date() < self.now.date()
            and run.verdict not in WRONG_INPUTS
        }
        return list(by_date.values())

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
                    square, size = one.standard_error**2, one.effective_queries or one.queries or 1
                    nights.append(Night(run.time.toordinal(), one.value, square, size))
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
    # The spread about a mean of few is too small, and many nights would add that up.
    square = spread.square / (1 - unit) if unit < 1 else (unit * (ends[1] - ends[0]) / 2) ** 2
    return PairedNight(mean, square, unit * ends[1], -unit * ends[0], base)


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
