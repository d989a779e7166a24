"""What a rule about a metric measures, with its interval, and the smallest drop that it sees."""

import math
from collections.abc import Mapping
from typing import NamedTuple, Self

from rankmill.analysis.compare.differences.comparison_state import SystemColumn
from rankmill.analysis.compare.differences.pooled_differences import few_hits, spread_of
from rankmill.analysis.statistics.distributions import t_quantile, t_tail
from rankmill.analysis.statistics.moments import MINE, PairMoments
from rankmill.analysis.statistics.paired_differences import AdjustedPaired, ClusteredMean
from rankmill.analysis.statistics.significance import LEAST_EFFECTIVE, interval_within
from rankmill.analysis.statistics.unseen import ROUNDING, Part, Spread, mean_ends, ratio_ends
from rankmill.analysis.statistics.unseen import spread_of as spread_of_mean
from rankmill.engine.left_out import LeftOut
from rankmill.errors import plural
from rankmill.metrics.aggregates.mean import freedom_of
from rankmill.metrics.base import Better
from rankmill.nightly.rules.baseline import BASELINE, CANDIDATE
from rankmill.nightly.rules.rules import UNDECIDED, Rule

NO_BOUNDS = -math.inf, math.inf
# Of very many slices, the confidence of each one is 1 as a double.
LEAST_TAIL = 2.0**-54


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
    moments: PairMoments | None = None  # of this system alone
    third: float | None = None  # the third moment of values, of a run of a history
    known: Spread | None = None  # how the values spread, of a mean over slices

    @classmethod
    def of(cls, column: SystemColumn) -> Self:
        """Return the mean of a metric over queries, or over clusters of them."""
        mean, moments = column.mean, column.moments
        if moments is not None:
            moments = moments.of_side(MINE)
        return cls(mean.mean, mean.standard_error, *column.counted, moments=moments)

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

    def spread(self, bounds: tuple[float, float]) -> Spread | None:
        """Return how the values spread; None where it is not known."""
        if self.known is not None:
            return self.known
        if self.moments is not None:
            return self.moments.spread(0.0)
        if self.value is None or self.error is None or self.queries < 2:
            return None
        return spread_of_mean(self.value, self.error, self.size, bounds, self.third)


class Measurement(NamedTuple):
    """A metric of the system, and of the baseline, which has no value if there is none."""

    mine: MeasuredSide
    theirs: MeasuredSide = MeasuredSide()
    difference_error: float | None = None  # of the mean of the paired differences, if it is known
    bounds: tuple[float, float] = NO_BOUNDS  # the range of the metric, if it is a mean over queries
    groups: LeftOut | None = None  # what the jackknife left out for the system
    clusters: bool = False  # whether queries come in clusters
    pairs: PairMoments | None = None  # of the values of both, for queries of both
    # Of the queries that only the system has, and of those that only the baseline has.
    alone: tuple[PairMoments | None, ...] = (None, None)

    @classmethod
    def of(
        cls, column: SystemColumn, base: SystemColumn | None, bounds: tuple[float, float]
    ) -> Self:
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
            return cls(mine, theirs, paired.standard_error, bounds, pairs=column.moments)
        mine, clusters = MeasuredSide.of(column), isinstance(mean, ClusteredMean)
        if base is None or paired is None:
            return cls(mine, bounds=bounds, clusters=clusters)
        theirs = mine._replace(value=base.mean.mean, error=base.mean.standard_error, moments=None)
        error = paired.standard_error
        return cls(mine, theirs, error, bounds, clusters=clusters, pairs=column.moments)

    @classmethod
    def of_groups(
        cls, value: float | None, base: float | None, without: Mapping[str, LeftOut | str]
    ) -> Self:
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
    def covariance(self) -> float:
        """That of the two values; 0 where nothing is paired."""
        if self.difference_error is None:
            return 0.0
        of_v, of_b = self.mine.error or 0.0, self.theirs.error or 0.0
        return (of_v**2 + of_b**2 - self.difference_error**2) / 2

    @property
    def adjusted(self) -> bool:
        """Whether a covariate adjusts the values of pairs."""
        return self.mine.known_freedom is not None

    @property
    def too_few(self) -> bool:
        """Whether weights or clusters leave too few effective ones for an interval of t."""
        if not self.clusters and not any(map(math.isinf, self.bounds)):
            return False
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


Ends = tuple[float, float]


def interval_of(rule: Rule, one: Measurement, confidence: float | None) -> Interval | None:
    """Return what the limit of a rule is for, with its interval."""
    if rule.measure == "value":
        return value_of(one, confidence)
    negative = rule.metric.bounds[0] < 0
    return drop_of(one, confidence, relative=rule.relative, better=rule.better, negative=negative)


def word_of(rule: Rule, found: Interval, confidence: float | None) -> str:
    """Return the word: with a confidence, all of the interval is on one side of the limit."""
    if confidence is None:
        return rule.kept if rule.keeps(found.number) else rule.word
    if found.low is None or found.high is None:
        return UNDECIDED
    kept = [rule.keeps(end) for end in (found.low, found.high)]
    return rule.kept if all(kept) else UNDECIDED if any(kept) else rule.word


def value_of(one: Measurement, confidence: float | None) -> Interval | None:
    """Return the value with its interval; None without a value."""
    if one.value is None:
        return None
    ends: tuple[float | None, float | None] | None = None
    if confidence is not None and one.groups is not None:
        few, jackknife = few_hits([one.groups]), spread_of(one.groups)
        if not few and jackknife is not None:
            ends = interval_within(one.value, jackknife, one.groups.bounds, confidence)
    elif confidence is not None:
        alone = one._replace(theirs=MeasuredSide(), difference_error=None, pairs=None)
        ends = ends_of(alone, 0.0, confidence)
    return Interval(one.value, *(ends or (None, None)))


def drop_of(
    one: Measurement,
    confidence: float | None,
    *,
    relative: bool,
    better: Better = "higher",
    negative: bool = False,
) -> Interval | None:
    """Return the baseline less the value, or that over the baseline, with its interval.

    Where lower is better, it is the value less the baseline: a drop is a change for the worse. More
    than all of the baseline may be lost by a metric that is `negative` at times.
    None without a value, or if a drop from below 0 is to be relative; from 0 there is no drop. A
    relative rise from 0 is infinite.

    A relative drop asks for the mean of v - (1 - drop) b, so that nothing is divided by a mean.
    """
    v, b = one.value, one.base
    if v is None or b is None:
        return None
    sign = -1 if better == "lower" else 1
    ends = None if confidence is None else ends_of(one, 1.0, confidence)
    number = sign * (b - v) + 0.0
    if not relative:
        return Interval(number, *(_turned(ends, -sign) if ends else (None, None)))
    if b <= 0:
        ends = ends if b == 0 else None
        return _from_nothing(-number, ends, down=sign < 0, negative=negative)
    if confidence is None or ends is None:
        return Interval(number / b)

    def of_ratio(ratio: float) -> Ends:
        return ends_of(one, ratio, confidence or 0.0) or NO_BOUNDS

    low, high = ratio_ends(of_ratio, v / b, negative=negative)
    return Interval(number / b, *_turned((low - 1, high - 1), -sign))


def parts_of(one: Measurement, ratio: float) -> list[Part] | None:
    """Return the independent means that the value less `ratio` times the baseline consists of.

    None where the range of the metric has no end, or what is needed is not known.
    """
    low, high = one.bounds
    if math.isinf(low) or math.isinf(high):
        return None
    if one.pairs is not None and one.adjusted:
        return [Part(1.0, _adjusted(one, ratio), *_ends_less(one.bounds, ratio))]
    if one.pairs is not None:
        return _of_pairs(one.pairs, one.alone, one.bounds, ratio)
    if one.difference_error is not None:
        return None
    sides = [(1.0, one.mine), (-ratio, one.theirs)] if ratio else [(1.0, one.mine)]
    found = []
    for factor, side in sides:
        spread = side.spread(one.bounds)
        if spread is None:
            return None
        found.append(Part(factor, spread, low, high))
    return found


def _of_pairs(
    pairs: PairMoments, alone: tuple[PairMoments | None, ...], bounds: Ends, ratio: float
) -> list[Part]:
    """Return the mean of pairs, and those of queries that one side alone has."""
    mine, theirs = (pairs.weight / (pairs.weight + (one.weight if one else 0.0)) for one in alone)
    within = ratio * theirs / mine
    found = [Part(mine, pairs.spread(within), *_ends_less(bounds, within))]
    for factor, one in zip((1 - mine, ratio * (theirs - 1)), alone, strict=True):
        if one is not None:
            found.append(Part(factor, one.spread(0.0), *bounds))
    return found


def _ends_less(bounds: Ends, ratio: float) -> Ends:
    """Return the range of a value less `ratio` times another one, both from a range."""
    near, far = sorted(ratio * end for end in bounds)
    return bounds[0] - far, bounds[1] - near


def _adjusted(one: Measurement, ratio: float) -> Spread:
    """Return the spread of values that a covariate adjusts: with the skewness that they had."""
    assert one.pairs is not None
    plain = one.pairs.spread(ratio)
    error = error_of(one, ratio)
    cube = plain.cube * (error**2 / plain.square) ** 1.5 if plain.square else 0.0
    mean = (one.value or 0.0) - ratio * (one.base or 0.0)
    return Spread(mean, error**2, cube, plain.unit)


def ends_of(one: Measurement, ratio: float, confidence: float) -> Ends | None:
    """Return the interval of the value less `ratio` times the baseline; None where it has none.

    Of a metric with a range, it is the bound of a mean with one unseen query. Of clusters and of
    weights, no end is nearer than that of Student's t; of other metrics it is that of t, which
    knows nothing of a few large values that were not seen.
    """
    if one.too_few:
        return None
    tail = max((1 - confidence) / 2, LEAST_TAIL)
    parts = parts_of(one, ratio)
    found = None if parts is None else mean_ends(parts, tail)
    weighted = one.mine.known is None and one.mine.size < (1 - ROUNDING) * one.mine.queries
    if found is not None and not (one.clusters or weighted):
        return found
    of_t = _ends_of_t(one, ratio, confidence)
    if found is None or of_t is None:
        return found or of_t
    return min(found[0], of_t[0]), max(found[1], of_t[1])


def _ends_of_t(one: Measurement, ratio: float, confidence: float) -> Ends | None:
    """Return the interval of Student's t; None without an error."""
    sides = [one.mine, one.theirs] if ratio else [one.mine]
    if one.value is None or any(side.error is None for side in sides):
        return None
    freedom, error = freedom_of_ratio(one, ratio), error_of(one, ratio)
    if freedom < 1 or not error:
        return None
    mean = one.value - ratio * (one.base or 0.0)
    half = quantile(confidence, freedom) * error
    return mean - half, mean + half


def error_of(one: Measurement, ratio: float) -> float:
    """Return the standard error of the value less `ratio` times the baseline."""
    of_v, of_b = one.mine.error or 0.0, one.theirs.error or 0.0
    return math.sqrt(max(0.0, of_v**2 + (ratio * of_b) ** 2 - 2 * ratio * one.covariance))


def freedom_of_ratio(one: Measurement, ratio: float) -> float:
    """Return the degrees of freedom of `error_of`: those of Welch where nothing is paired."""
    if one.difference_error is not None or not ratio:
        return one.mine.freedom if one.mine.queries else one.theirs.freedom
    of_v, of_b = (one.mine.error or 0.0) ** 2, (ratio * (one.theirs.error or 0.0)) ** 2
    both = of_v + of_b
    sides = ((of_v, one.mine.freedom), (of_b, one.theirs.freedom))
    total = sum((each / both) ** 2 / least for each, least in sides if least > 0 and both)
    return 1 / total if total else 1e9


def _from_nothing(gain: float, ends: Ends | None, *, down: bool, negative: bool) -> Interval | None:
    """Return a change for the worse as a share of a baseline of 0, or of less.

    From 0 nothing is lost, and a rise is infinite; `down` is whether a rise is for the worse. That
    other queries lose nothing has to be shown as of any drop.
    """
    if gain < 0 and not down:
        return None
    number = math.inf if gain < 0 else 0.0
    if ends is None:
        return Interval(number)
    low, high = _turned(ends, -1 if down else 1)
    worst = math.inf if down or negative else 1.0
    return Interval(number, worst if high < 0 else -math.inf, 0.0 if low >= 0 else worst)


def _turned(ends: Ends, sign: int) -> Ends:
    """Return the ends, or those of the numbers with the other sign."""
    return ends if sign > 0 else (0.0 - ends[1], 0.0 - ends[0])


def quantile(confidence: float, freedom: float) -> float:
    """Return how many errors the half of an interval is wide."""
    return t_quantile(1 - max((1 - confidence) / 2, 2 * LEAST_TAIL), freedom)


# ------------------------------------------------------------------ detection

POWER = 0.8
"""How often a drop is to be seen."""
# So many standard errors of a night beyond the limit are found by the tenth night of a series, with
# this power. Measured.
BY_THE_TENTH = 1.2


class RuleTest(NamedTuple):
    """What a rule asks of a mean: that it is within the limit."""

    one: Measurement
    ratio: float  # how many times the baseline is taken from the value; 0 for a limit of the value
    sign: int  # 1 if less is worse
    scale: float  # what a drop is a share of; 1 if it is no share
    margin: float  # how far the limit is from no change
    error: float  # the standard error of what is tested, in the unit of the margin
    freedom: float
    room: float  # the largest drop that there can be
    # By how much the square of the error grows with a drop of paired values: as if some queries
    # lost all that they had.
    more: float = 0.0

    def far(self, confidence: float | None) -> float:
        """Return by how much a number has to be beyond the limit, in the unit of the margin."""
        if confidence is None:
            return 0.0
        ends = ends_of(self.one, self.ratio, confidence)
        if ends is None:
            return math.inf
        mean = (self.one.value or 0.0) - self.ratio * (self.one.base or 0.0)
        return (ends[1] - mean if self.sign > 0 else mean - ends[0]) / self.scale

    def chance_below(self, drop: float) -> float:
        """Return the chance of no larger drop in a night without a change."""
        return t_tail(-drop / self.error, self.freedom)

    def smallest(self, confidence: float | None) -> float:
        """Return the drop that is beyond the limit by enough for 80% of nights.

        It is infinite if there can be none.
        """
        half, z = self.far(confidence), t_quantile(POWER, self.freedom)
        if math.isinf(half):
            return math.inf
        if not self.error:
            drop = self.margin + half
            return drop if drop <= self.room else math.inf
        # The part of the bound beyond that of t is of what was not seen: it grows with no drop.
        level = half / self.error
        if confidence is not None:
            level = min(level, quantile(confidence, self.freedom))
        least = self.margin + half - level * self.error
        square = (level + z) ** 2
        linear = square * self.more
        constant = square * (self.error**2 + self.more * max(0.0, least))
        drop = least + (linear + math.sqrt(linear**2 + 4 * constant)) / 2
        return drop if drop <= self.room else math.inf


def detected(rule: Rule, one: Measurement, confidence: float | None) -> float | None:
    """Return the drop that a rule fails in 80% of nights.

    It is relative if the limit is, infinite if no drop is large enough, and None if the data do not
    tell. For a limit of the value it is counted from this value.
    """
    test = test_of(rule, one)
    if test is not None and rule.since is not None:
        return test.margin + BY_THE_TENTH * test.error
    # A limit of the value that is broken already needs no drop.
    return None if test is None else max(0.0, test.smallest(confidence))


def test_of(rule: Rule, one: Measurement) -> RuleTest | None:
    """Return the test of a rule in a slice, None if the data tell no error."""
    v, b, lowest, highest = one.value, one.base, *one.bounds
    if v is None or one.too_few:
        return None
    if rule.measure == "value":
        if rule.operator == "==" or not one.mine.error or one.mine.freedom < 1:
            return None
        sign = 1 if rule.operator in (">=", ">") else -1
        room = v - lowest if sign > 0 else highest - v
        side = one.mine.error, one.mine.freedom, room
        return RuleTest(one, 0.0, sign, 1.0, sign * (v - rule.limit), *side)
    if b is None or one.mine.error is None or one.theirs.error is None:
        return None
    if one.difference_error == 0:
        return None  # of a system and itself nobody knows how a worse one would differ
    down = rule.better == "lower"
    ratio, scale = 1.0, 1.0
    room, more = highest - b if down else b - lowest, 0.0
    if one.difference_error is not None and one.groups is None and not down and b > 0:
        more = one.theirs.error**2 / b + b / one.theirs.size
    if rule.relative:
        if b <= 0:
            return None
        ratio, scale = (1 + rule.limit if down else 1 - rule.limit), b
    error, freedom = error_of(one, ratio) / scale, freedom_of_ratio(one, ratio)
    if not error or freedom < 1:
        return None
    known = rule.limit, error, freedom, room / scale, more / scale
    return RuleTest(one, ratio, -1 if down else 1, scale, *known)
