"""The smallest drop that a rule detects on these data: one that it fails in 80% of nights."""

import math
from typing import NamedTuple

from rankmill.analysis.statistics.distributions import t_quantile
from rankmill.nightly.rules.measurements import (
    Measurement,
    ends_of,
    error_of,
    freedom_of_ratio,
)
from rankmill.nightly.rules.rules import Rule

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
        square = (half / self.error + z) ** 2
        linear = square * self.more
        constant = square * (self.error**2 + self.more * max(0.0, self.margin))
        drop = self.margin + (linear + math.sqrt(linear**2 + 4 * constant)) / 2
        return drop if drop <= self.room else math.inf


def detected(rule: Rule, one: Measurement, confidence: float | None) -> float | None:
    """Return the drop that a rule fails in 80% of nights.

    It is relative if the limit is, infinite if no drop is large enough, and None if the data do not
    tell. For a limit of the value it is counted from this value.
    """
    test = test_of(rule, one)
    if test is not None and rule.since is not None:
        return test.margin + BY_THE_TENTH * test.error
    return None if test is None else test.smallest(confidence)


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
