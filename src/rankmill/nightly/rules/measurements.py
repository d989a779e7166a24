"""What a rule about a metric measures: a value, or the drop from a baseline, with its interval."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from rankmill.analysis.compare.differences.gap_differences import few_hits, spread_of
from rankmill.analysis.compare.differences.intervals import (
    beyond_alike,
    open_interval,
    relative_ends,
)
from rankmill.analysis.compare.differences.sums import SystemColumn
from rankmill.analysis.statistics.bounds import MeanSpread, least_mean
from rankmill.analysis.statistics.clusters import ClusteredMean
from rankmill.analysis.statistics.covariate import AdjustedPaired
from rankmill.analysis.statistics.distributions import t_quantile
from rankmill.analysis.statistics.jackknife import interval_within
from rankmill.analysis.statistics.significance import LEAST_EFFECTIVE
from rankmill.errors import plural
from rankmill.metrics.aggregates.mean import Mean, WeightedMean, freedom_of
from rankmill.metrics.base import Better
from rankmill.metrics.gap.gap_groups import LeftOut
from rankmill.nightly.rules.baseline import BASELINE, CANDIDATE
from rankmill.nightly.rules.rules import HELD, UNDECIDED, Rule

NO_BOUNDS = -math.inf, math.inf


class MeasuredSide(NamedTuple):
    """A metric of one of two systems."""

    value: float | None = None
    error: float | None = None  # the standard error
    # What the value is a mean over: queries, clusters of them, or groups of the jackknife.
    queries: int = 0
    effective: float | None = None  # the effective number of queries of weights, or of clusters
    # The degrees of freedom of values that a covariate adjusts; None for those that weights, or
    # clusters of unequal size, leave.
    known_freedom: float | None = None

    @classmethod
    def of(cls, mean: Mean | WeightedMean) -> "MeasuredSide":
        """Return the mean of a metric over queries, or over clusters of them."""
        if isinstance(mean, WeightedMean):
            return cls(mean.mean, mean.standard_error, mean.positive, mean.effective)
        return cls(mean.mean, mean.standard_error, mean.count)

    @property
    def size(self) -> float:
        """How many queries of equal weight the value is a mean over."""
        return float(self.queries if self.effective is None else self.effective)

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the error."""
        if self.known_freedom is not None:
            return self.known_freedom
        return freedom_of(self.queries, self.size) if self.queries else -1.0

    def spread(self, sign: int) -> MeanSpread | None:
        """Return the mean with its error, or that of the values with the other sign."""
        if self.value is None or self.error is None:
            return None
        return MeanSpread(sign * self.value, self.error, self.size)


class Measurement(NamedTuple):
    """A metric of the system, and of the baseline, which has no value if there is none."""

    mine: MeasuredSide
    theirs: MeasuredSide = MeasuredSide()
    difference_error: float | None = None  # of the mean of the paired differences, if it is known
    bounds: tuple[float, float] = NO_BOUNDS  # the range of the metric, if it is a mean over queries
    groups: LeftOut | None = None  # what the jackknife left out for the system
    clusters: bool = False  # whether queries come in clusters

    @classmethod
    def of(
        cls, column: SystemColumn, base: SystemColumn | None, bounds: tuple[float, float]
    ) -> "Measurement":
        """Return what is measured of one slice; `base` is the column of the baseline.

        Where a covariate is known, the values of pairs are adjusted by it.
        """
        paired, mean = None if base is None else column.paired, column.mean
        if isinstance(paired, AdjustedPaired):
            freedom = paired.mine.freedom
            mine, theirs = (
                MeasuredSide(value, error, paired.n, None, freedom)
                for value, error, _ in (paired.mine, paired.theirs)
            )
            return cls(mine, theirs, paired.standard_error, bounds)
        mine, clusters = MeasuredSide.of(mean), isinstance(mean, ClusteredMean)
        if base is None or paired is None:
            return cls(mine, bounds=bounds, clusters=clusters)
        theirs = mine._replace(value=base.mean.mean, error=base.mean.standard_error)
        return cls(mine, theirs, paired.standard_error, bounds, clusters=clusters)

    @classmethod
    def of_groups(
        cls, value: float | None, base: float | None, without: Mapping[str, LeftOut | str]
    ) -> "Measurement":
        """Return what is measured of a metric over all predictions, by the jackknife.

        `without` has the values of the system and perhaps the baseline without each group.
        """
        mine, theirs = without[CANDIDATE], without.get(BASELINE, "")
        if isinstance(mine, str):
            return cls(MeasuredSide(value), MeasuredSide(base))
        groups = len(mine.sizes)
        found = cls(MeasuredSide(value, _error(mine), groups), MeasuredSide(base), groups=mine)
        if isinstance(theirs, str):
            return found
        if few_hits([mine, theirs]):
            return found._replace(mine=MeasuredSide(value, None, groups))
        less = mine._replace(whole=mine.whole - theirs.whole, values=mine.values - theirs.values)
        return found._replace(
            theirs=MeasuredSide(base, _error(theirs), groups), difference_error=_error(less)
        )

    @property
    def value(self) -> float | None:
        """That of the system."""
        return self.mine.value

    @property
    def base(self) -> float | None:
        """That of the baseline."""
        return self.theirs.value

    @property
    def adjusted(self) -> bool:
        """Whether a covariate adjusts the values of pairs."""
        return self.mine.known_freedom is not None

    @property
    def too_few(self) -> bool:
        """Whether weights or clusters leave too few effective ones for an interval."""
        sizes = self.mine.effective, self.theirs.effective
        return any(one is not None and one < LEAST_EFFECTIVE for one in sizes)

    @property
    def why(self) -> str:
        """Why there may be no interval, or ""."""
        if self.too_few:
            least = min(self.mine.size, self.theirs.effective or math.inf)
            if self.clusters:
                count = plural(self.mine.queries, "cluster", "counts", "count")
                return f"{count} as {least:.3g} of equal size"
            return f"the weights leave {least:.3g} effective queries"
        if self.groups is not None and (few := few_hits([self.groups])):
            return few
        alike = self.mine.error == 0 or self.difference_error == 0
        return "all queries are alike" if alike else ""


def _error(one: LeftOut) -> float | None:
    spread = spread_of(one)
    return None if spread is None else spread.standard_error


class Interval(NamedTuple):
    """A number and the ends of its interval.

    An end is None where it is not known, and infinite where the interval goes on for ever.
    """

    number: float
    low: float | None = None
    high: float | None = None


class _Ends(NamedTuple):
    """The interval of a mean of which less is worse, and by how much t alone is shorter."""

    low: float
    high: float
    less: float = 0.0
    more: float = 0.0


def interval_of(rule: Rule, one: Measurement, confidence: float | None) -> Interval | None:
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


def value_of(one: Measurement, confidence: float | None, *, up: bool = True) -> Interval | None:
    """Return the value with its interval; None without a value.

    `up` is whether a rule is kept by larger values. What was not seen moves the other end.
    """
    if one.value is None:
        return None
    ends, sign = None, 1 if up else -1
    spread, freedom = one.mine.spread(sign), one.mine.freedom
    if confidence is not None and one.groups is not None:
        few, jackknife = few_hits([one.groups]), spread_of(one.groups)
        if not few and jackknife is not None:
            ends = interval_within(one.value, jackknife, one.groups.most, confidence)
    elif confidence is not None and spread is not None and not one.too_few and freedom >= 1:
        found = _ends(spread, freedom, _turned(one.bounds, sign), confidence)
        ends = None if found is None else _turned((found.low, found.high), sign)
    return Interval(one.value, *(ends or (None, None)))


def drop_of(
    one: Measurement, confidence: float | None, *, relative: bool, better: Better = "higher"
) -> Interval | None:
    """Return the baseline less the value, or that over the baseline, with its interval.

    Where lower is better, it is the value less the baseline: a drop is a change for the worse.
    None without a value, or if a drop from below 0 is to be relative; from 0 there is no drop. A
    relative rise from 0 is infinite.

    The end for the worse is that of Student's t, or what the range of the metric leaves to queries
    that were not seen where that is farther: few queries without a loss do not say that there is
    none. The other end is that of t, unless all queries differ by the same. A relative drop is that
    of Fieller's theorem, which tests v - (1 - drop) b.
    """
    v, b = one.value, one.base
    if v is None or b is None:
        return None
    sign = -1 if better == "lower" else 1
    gain = sign * (v - b)
    ends = None if confidence is None or one.too_few else _gain(one, confidence, sign)
    if not relative:
        return Interval(0.0 - gain, *((-ends.high, -ends.low) if ends else (None, None)))
    if b <= 0:
        return _from_nothing(gain, ends if b == 0 else None, down=sign < 0)
    if confidence is None or ends is None:
        return Interval(0.0 - gain / b)
    t, both = _of_t(one, confidence)
    own = beyond_alike(MeanSpread(v, one.mine.error or 0.0, one.mine.size), one.bounds, confidence)
    other = (ends.less, ends.more) if sign > 0 else (ends.more, ends.less)
    beyond = max(own[0], other[0]), max(own[1], other[1])
    errors = one.mine.error, one.theirs.error, both
    low, high = relative_ends(v, b, errors, t, one.bounds[0] >= 0, beyond)
    change = -math.inf if low is None else low, math.inf if high is None else high
    return Interval(0.0 - gain / b, *_turned(change, -sign))


def _gain(one: Measurement, confidence: float, sign: int) -> _Ends | None:
    """Return the ends of how much better the system is, which is `sign` times the difference."""
    mine, theirs = one.mine.spread(sign), one.theirs.spread(-sign)
    if mine is None or theirs is None:
        return None
    t, both = _of_t(one, confidence)
    width = one.bounds[1] - one.bounds[0]
    gain = MeanSpread(mine.mean + theirs.mean, both, min(mine.n, theirs.n))
    if one.difference_error is not None or not both:
        freedom = one.mine.freedom if one.mine.queries else one.theirs.freedom
        return None if freedom < 1 else _ends(gain, freedom, (-width, width), confidence)
    # Not paired: what was not seen of the one and of the other add up.
    bounds, tail = _turned(one.bounds, sign), (1 - confidence) / 2
    less = 0.0
    for side, worst in ((mine, bounds[0]), (theirs, -bounds[1])):
        if math.isfinite(worst):
            less += max(0.0, side.mean - t * side.error - least_mean(side, worst, tail))
    return _Ends(gain.mean - t * both - less, gain.mean + t * both, less)


def _of_t(one: Measurement, confidence: float) -> tuple[float, float]:
    """Return the quantile of t for a difference, and its standard error."""
    freedom, error = freedom_and_error(one)
    return quantile(confidence, freedom), error


def freedom_and_error(one: Measurement) -> tuple[float, float]:
    """Return the standard error of the difference from the baseline, and its freedom first."""
    if one.difference_error is not None:
        return max(1.0, one.mine.freedom), one.difference_error
    of_v, of_b = (one.mine.error or 0.0) ** 2, (one.theirs.error or 0.0) ** 2
    freedom = _welch(of_v, one.mine.freedom, of_b, one.theirs.freedom)
    return freedom, math.sqrt(of_v + of_b)


def _ends(
    one: MeanSpread, freedom: float, bounds: tuple[float, float], confidence: float
) -> _Ends | None:
    """Return the ends of a mean of which less is worse; None without a spread and a range."""
    if one.alike:
        low, high = open_interval(one, bounds, confidence)
        if low is None or high is None:
            return None
        return _Ends(low, high, one.mean - low, high - one.mean)
    half = quantile(confidence, freedom) * one.error
    low = one.mean - half
    least = low if math.isinf(bounds[0]) else least_mean(one, bounds[0], (1 - confidence) / 2)
    return _Ends(min(low, least), one.mean + half, max(0.0, low - least))


def _from_nothing(gain: float, ends: _Ends | None, *, down: bool) -> Interval | None:
    """Return a change for the worse as a share of a baseline of 0, or of less.

    From 0 nothing is lost, and a rise is infinite; `down` is whether a rise is for the worse. That
    other queries lose nothing has to be shown as of any drop.
    """
    if gain < 0 and not down:
        return None
    number = math.inf if gain < 0 else 0.0
    if ends is None:
        return Interval(number)
    kept, lost = ends.low >= 0, ends.high < 0
    worst = math.inf if down else 1.0
    return Interval(number, worst if lost else -math.inf, 0.0 if kept else worst)


def _turned(ends: tuple[float, float], sign: int) -> tuple[float, float]:
    """Return the ends, or those of the numbers with the other sign."""
    return ends if sign > 0 else (-ends[1], -ends[0])


def quantile(confidence: float, freedom: float) -> float:
    """Return how many errors the half of an interval is wide."""
    # Of very many slices, the confidence of each one is 1 as a double.
    return t_quantile(min((1 + confidence) / 2, math.nextafter(1, 0)), freedom)


def _welch(one: float, freedom: float, other: float, others: float) -> float:
    """Return the degrees of freedom of Welch and Satterthwaite for two squared errors."""
    both = one + other
    sides = ((one, freedom), (other, others))
    total = sum((each / both) ** 2 / least for each, least in sides if least > 0 and both)
    return 1 / total if total else 1e9
