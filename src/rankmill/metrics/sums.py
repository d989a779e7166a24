"""Weighted sums of metrics and slices: "otto = 0.1*recall@20:micro[type=clicks] + ..."."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from rankmill.errors import UsageError
from rankmill.metrics.base import MICRO, Metric
from rankmill.metrics.registry import NAMES, parse

GRAMMAR = "'NAME = 0.3*METRIC[COLUMN=VALUE] + 0.7*METRIC', where a part in [] is one slice of --by"
LARGEST = 1e50  # of a weight: squares of weighted values are float64
_TERM = re.compile(
    r"\s*(?P<sign>[+-]?)\s*(?:(?P<weight>[0-9.]+(?:[eE][+-]?[0-9]+)?)\s*\*\s*)?"
    r"(?P<metric>[A-Za-z_][^][()+*\s-]*(?:\([^()]*\)[^][()+*\s-]*)?)\s*"
    r"(?:\[(?P<by>[^]=]+)=(?P<value>[^]]*)\]\s*)?"
)


class Term(NamedTuple):
    """A weight and a metric, in the slice `value` of `by`, or in all queries if `by` is empty."""

    weight: float
    metric: Metric
    by: str
    value: str

    @property
    def place(self) -> tuple[str, str, str]:
        """Which values it is of, whatever its weight."""
        return self.metric.text, self.by, self.value

    @property
    def linear(self) -> bool:
        """Whether each query adds to it by itself: to a mean, or to a micro-average."""
        return bool(self.metric.spec.kernel) and self.metric.summary in ("", MICRO)

    def __str__(self) -> str:
        return f"{self.metric.text}[{self.by}={self.value}]" if self.by else self.metric.text


def read_sums(texts: str | Iterable[str], rel: float | None = None) -> dict[str, list[Term]]:
    """Return the terms of each sum by its name; `rel` is as in `parse`.

    UsageError if a text is no sum, or two sums have the same name.

    Examples
    --------
    >>> found = read_sums("both = 0.25*recall@20:micro[type=add to cart] - map")
    >>> [(one.weight, str(one)) for one in found["both"]]
    [(0.25, 'recall@20:micro[type=add to cart]'), (-1.0, 'map')]
    """
    found: dict[str, list[Term]] = {}
    for text in [texts] if isinstance(texts, str) else texts:
        name, equals, terms = (part.strip() for part in str(text).partition("="))
        if not equals or not re.fullmatch(r"[A-Za-z_][\w.-]*", name):
            raise UsageError(f"{text!r} is not a weighted sum; expected {GRAMMAR}")
        if name in found or name.lower() in map(str.lower, NAMES):
            taken = "another sum" if name in found else "a metric"
            raise UsageError(f"the sum {name!r} has the name of {taken}: choose another name")
        found[name] = _terms(name, terms, rel)
    return found


def _terms(name: str, text: str, rel: float | None) -> list[Term]:
    terms: list[Term] = []
    at = 0
    while at < len(text) or not terms:
        one = _TERM.match(text, at)
        if one is None or not (one["sign"] or not terms):
            raise UsageError(f"the sum {name!r} breaks off at {text[at:]!r}; expected {GRAMMAR}")
        try:
            weight = float(f"{one['sign']}{one['weight'] or 1}")
        except ValueError:
            raise UsageError(
                f"{one['weight']!r} in the sum {name!r} is not a number; expected one such as 0.3"
            ) from None
        if abs(weight) > LARGEST:
            raise UsageError(
                f"the weight {one['weight']} in the sum {name!r} is too large; expected one up to "
                f"{LARGEST:g}, such as 0.3"
            )
        by, value = (one["by"] or "").strip(), (one["value"] or "").strip()
        terms.append(Term(weight, parse(one["metric"], rel), by, value))
        at = one.end()
    return terms
