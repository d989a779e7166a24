"""What the heads of columns mean: the same words on pages, in notebooks and on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Patterns of heads -> what they mean. A legend leaves out those that need none.
_PLAIN = {
    r"value": "the metric over all queries that count",
    r"queries": "the number of queries that count",
    r"result": "the conclusion of the first test",
    r"verdict": "whether the rule or the run passed",
    r"won": "the share of queries that are better than in the baseline",
    r"tied": "the share of queries that are the same as in the baseline",
    r"lost": "the share of queries that are worse than in the baseline",
    r"against": "the other system of the pair",
    r"difference": "the value of the system minus that of the other one",
}
HEADS = {
    **_PLAIN,
    r"standard error": "how much the value varies by the choice of queries",
    r"worst\.\.best": "the values if ties were in the worst and in the best order",
    r"effective": "how many queries of equal weight would be as precise",
    r"± .+%": "half the width of the confidence interval of the value",
    r"from confidence": "the lowest confidence of these predictions",
    r"from .+": "the difference from this system or preset",
    r".+% interval": "the confidence interval of the value or difference before it",
    r"p( .+)?": "how likely a difference at least this large is between equal systems; the "
    "correction for multiple comparisons is in parentheses",
    r"relative": "the difference divided by the value of the baseline",
    r"change": "the difference from the baseline, or from the run before",
    r"d": "Cohen's d: the mean difference divided by its standard deviation over queries",
    r"shrunk": "the difference without the part that is likely due to chance in small slices",
    r"trend": "the last 30 values",
    r"drift": "t of the last value, if it is far from those before it",
    r"counted as": "a preset, followed by the choices in which it differs",
    r"term": "what this rank adds to the sum",
    r"smallest drop": "the smallest drop that the rule fails in 80% of nights",
    r"false alarms per year": "nights per year that fail the rule without any change",
    r"would have failed": "nights in the history that fail the rule",
}


def meaning(head: str) -> str:
    """Return what a head means, "" if it is not in the table.

    Examples
    --------
    >>> meaning("± 95%"), meaning("country")
    ('half the width of the confidence interval of the value', '')
    """
    found = (text for one, text in HEADS.items() if re.fullmatch(one, head.strip()))
    return next(found, "")


def legend(heads: Iterable[str]) -> list[tuple[str, str]]:
    """Return the heads that need an explanation, each with its own.

    Examples
    --------
    >>> legend(["metric", "value", "relative", "relative"])
    [('relative', 'the difference divided by the value of the baseline')]
    """
    needed = {head.strip(): meaning(head) for head in heads}
    plain = {*_PLAIN.values(), ""}
    return [(head, text) for head, text in needed.items() if text not in plain]
