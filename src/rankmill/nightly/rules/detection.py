"""The smallest drop that a rule detects on these data: one that it fails in 80% of nights."""

import math
from typing import NamedTuple

from rankmill.analysis.statistics.distributions import t_quantile
from rankmill.analysis.statistics.ratios import Pair
from rankmill.nightly.rules.measurements import Measurement, freedom_and_error, quantile
from rankmill.nightly.rules.rules import Rule

POWER = 0.8
"""How often a drop is to be seen."""


class RuleTest(NamedTuple):
    """The t test of a rule."""

    margin: float  # how far the limit is from no change
    error: float  # the standard error of what is tested
    freedom: float
    room: float  # the largest drop that there can be
    # By how much the square of the error grows with a drop of paired values: as if some queries
    # lost all that they had.
    more: float = 0.0

    def critical(self, confidence: float | None) -> float:
        """Return by how many errors a number has to be beyond the limit."""
        return 0.0 if confidence is None else quantile(confidence, self.freedom)

    def smallest(self, confidence: float | None) -> float:
        """Return the drop that is beyond the limit by enough errors, those at this drop.

        It is infinite if there can be none.
        """
        square = (self.critical(confidence) + t_quantile(POWER, self.freedom)) ** 2
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
    return None if test is None else test.smallest(confidence)


def test_of(rule: Rule, one: Measurement) -> RuleTest | None:
    """Return the test of a rule in a slice, None if the data tell no error."""
    v, b, lowest, highest = one.value, one.base, *one.bounds
    if v is None or one.too_few:
        return None
    if rule.measure == "value":
        if rule.operator == "==" or not one.mine.error or one.mine.freedom < 1:
            return None
        up = rule.operator in (">=", ">")
        margin = v - rule.limit if up else rule.limit - v
        room = v - lowest if up else highest - v
        return RuleTest(margin, one.mine.error, one.mine.freedom, room)
    error_of_v, error_of_b = one.mine.error, one.theirs.error
    if b is None or error_of_v is None or error_of_b is None or one.difference_error == 0:
        return None  # of a system and itself nobody knows how a worse one would differ
    freedom, error = freedom_and_error(one)
    down = rule.better == "lower"
    room = highest - b if down else b - lowest
    more = 0.0
    if one.difference_error is not None and one.groups is None and not down and b > 0:
        more = error_of_b**2 / b + b / one.theirs.size
    if rule.relative:
        if b <= 0:
            return None
        # The test is that of v - r b, where r is the ratio at the limit.
        pair = Pair.of_errors(v, b, error_of_v, error_of_b, error)
        r = 1 + rule.limit if down else 1 - rule.limit
        square = pair.of_value + r * r * pair.of_base - 2 * r * pair.covariance
        error, room, more = math.sqrt(max(0.0, square)) / b, room / b, more / b
    return RuleTest(rule.limit, error, freedom, room, more) if error and freedom >= 1 else None
