"""Which limits a rule may have: one that no value breaks, or none keeps, decides nothing."""

import math
from typing import Any

from rankmill.metrics.aggregate import aggregate_of
from rankmill.metrics.aggregates.list_means import ListMean
from rankmill.metrics.base import Metric
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.needs import ORDERED_TIES
from rankmill.results.audit import COUNTS
from rankmill.semantics.choices import Choices

Range = tuple[float, float]


def whole_of(subject: str) -> str:
    """Return the count of the audit that a count is a share of."""
    one = COUNTS.get("queries_in_both" if subject == "queries" else subject)
    return "predictions" if one is None else one.of


def never_decided(metric: Metric) -> str:
    """Return why a rule with a confidence about a metric is never decided, or "".

    A mean has an interval, and so has gap.

    Examples
    --------
    >>> from rankmill.metrics.registry import parse
    >>> never_decided(parse("map@12:median"))
    'map@12:median has no interval: write confidence none, or a rule for its mean, map@12'
    """
    found = aggregate_of(metric)
    if metric.summary:
        mean = metric.text.removesuffix(f":{metric.summary}")
        return (
            f"{metric.text} has no interval: write confidence none, or a rule for its mean, {mean}"
        )
    if metric.spec.kernel or found is Gap or issubclass(found, ListMean):
        return ""
    return f"{metric.text} has no interval: write confidence none"


def why_no_interval(metric: Metric, semantics: Choices, *, alone: bool) -> str:
    """Return why gap has no interval: where the jackknife has nothing to leave out; or "".

    `alone` is whether there is a result, and no predictions.
    """
    if aggregate_of(metric) is not Gap:
        return ""
    if semantics.gap_ties in ORDERED_TIES:
        return f"the jackknife does not know the order of gap_ties {semantics.gap_ties!r}"
    return "predictions are needed for it, and not a Result" if alone else ""


def reach_of(rule: Any) -> Range:
    """Return the ends of what the limit of a rule is held against.

    Examples
    --------
    >>> from rankmill.nightly.rules.rules import parse_rule
    >>> reach_of(parse_rule("map@12 drop <= 0.1")), reach_of(parse_rule("map@12 drop <= 1%"))
    ((-1.0, 1.0), (-inf, 1.0))
    """
    if rule.kind != "metric":
        # Other counts are of repeats, which may be more than what they are a share of.
        of_queries = whole_of(rule.subject).startswith("queries_")
        return 0.0, 1.0 if rule.measure == "value" and rule.relative and of_queries else math.inf
    low, high = rule.metric.bounds
    if rule.measure == "value":
        return low, high
    return _drops(low, high, lower=rule.better == "lower", relative=rule.relative)


def _drops(low: float, high: float, *, lower: bool, relative: bool) -> Range:
    """Return the ends of a drop of a metric with this range; `lower` is whether less is better."""
    if not relative:
        return low - high, high - low
    if low < 0:
        return -math.inf, math.inf
    # The least and the most that a value is of the baseline, which is above 0.
    least = 0.0 if low == 0 or math.isinf(high) else low / high
    most = math.inf if low == 0 or math.isinf(high) else high / low
    return (least - 1, most - 1) if lower else (1 - most, 1 - least)


def range_text(low: float, high: float, *, percent: bool = False) -> str:
    """Return a range as a message shows it.

    Examples
    --------
    >>> range_text(0, 1), range_text(1, math.inf)
    ('from 0 to 1', '1 at least')
    """
    shown = [f"{100 * one:g}%" if percent else f"{one:g}" for one in (low, high)]
    if math.isinf(low) or math.isinf(high):
        ends = ["" if math.isinf(low) else f"{shown[0]} at least"]
        ends += ["" if math.isinf(high) else f"{shown[1]} at most"]
        return " and ".join(filter(None, ends)) or "any number"
    return f"from {shown[0]} to {shown[1]}"
