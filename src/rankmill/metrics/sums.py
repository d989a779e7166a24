"""Weighted sums of metrics and slices: "otto = 0.1*recall@20:micro[type=clicks] + ...".

And what their terms add up to together, which gives a sum its standard error.
"""

import math
import operator
import re
from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement, product
from typing import Annotated, NamedTuple, Self

import numpy as np

from rankmill.errors import UsageError
from rankmill.metrics.aggregate import Ratio
from rankmill.metrics.aggregates.mean import UNIT, SignedMean
from rankmill.metrics.base import MICRO, Metric
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.record import Record, kind
from rankmill.metrics.registry import NAMES, parse
from rankmill.records import record

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
            raise UsageError(
                f"the sum {name!r} cannot be read from {text[at:]!r}; expected {GRAMMAR}"
            )
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


Columns = Sequence[tuple[np.ndarray, np.ndarray]]
"""For each term what each query counts in it, and what that is divided by; 0 for other queries."""


def _read(row: state_rows.Row, name: str) -> tuple[int, ...]:
    text = state_rows.text(row, name)
    if not re.fullmatch("(-?[0-9]{1,3000}(,|$))*", text):
        raise state_rows.damaged(f"{name} are not sums")
    return tuple(map(int, filter(None, text.split(","))))


def _write(some: tuple[int, ...]) -> str:
    return ",".join(map(str, some))


def _sum(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(operator.add, one, other)) if one and other else one or other


@record(frozen=True)
class TermProducts(Record):
    """The exact sums, over queries, of the products of what each two terms count.

    They are four for each two terms, of which one may be the other: of what both count, of what
    one counts and the other is divided by, the other way round, and of both divisors. No products
    are those of no query.

    Examples
    --------
    >>> from fractions import Fraction
    >>> one = np.array([1.0, 0.0, 1.0]), np.ones(3)
    >>> moments = TermProducts.of([one])
    >>> round(moments.standard_error([1.0], [Ratio(Fraction(2, 3), Fraction(3), 3)]), 6)
    0.333333
    """

    products: Annotated[tuple[int, ...], kind(_sum, _read, _write)] = ()

    @classmethod
    def of(cls, columns: Columns, means: Sequence[bool] = ()) -> Self:
        """Return the moments of some queries.

        Of two `means`, whose divisors are those of queries that count, the last one is left out.
        """
        found = []
        pairs = combinations_with_replacement(range(len(columns)), 2)
        for (i, j), (a, b) in product(pairs, product((0, 1), repeat=2)):
            both = columns[i][a] * columns[j][b]
            left_out = a and b and means and means[i] and means[j]
            # Rounded before they are added, the same for the same query.
            found.append(0 if left_out or not both.any() else SignedMean.of(both).total)
        return cls(tuple(found))

    def standard_error(
        self, weights: Sequence[float], ratios: Sequence[Ratio | None]
    ) -> float | None:
        """Return the linearised error of a weighted sum of ratios; None if one has no error.

        What a query adds to the sum is added up over all terms before it is squared, so that terms
        of the same queries vary together, and those of other queries do not.
        """
        parts = []
        pairs = combinations_with_replacement(range(len(ratios)), 2)
        fours = zip(*[iter(self.products)] * 4, strict=True)
        for (i, j), (xx, xd, dx, dd) in zip(pairs, fours, strict=True):
            if not weights[i] * weights[j]:
                continue
            one, other = ratios[i], ratios[j]
            if one is None or other is None or min(one.queries, other.queries) < 2:
                return None
            apart = xx - other.value * xd - one.value * dx + one.value * other.value * dd
            share = float(apart / (one.divisor * other.divisor * (1 << UNIT)))
            times = weights[i] * weights[j] * (1 if i == j else 2)
            parts.append(times * share * math.sqrt(one.spread * other.spread))
        return math.sqrt(max(0.0, math.fsum(parts)))
