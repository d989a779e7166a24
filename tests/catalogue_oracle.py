"""Metrics over a catalogue in plain Python: all lists, labels and the catalogue -> a number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any


@dataclass
class Shown:
    """What is shown within k, as sets, and all else a metric over a catalogue may need."""

    lists: list[list[Any]]
    labels: list[set[Any]]
    every: set[Any]
    k: int | None

    @property
    def counts(self) -> Counter[Any]:
        return Counter(item for listed in self.lists for item in set(listed))

    @property
    def shares(self) -> list[Fraction]:
        """Of the items that are shown."""
        total = sum(self.counts.values())
        return [Fraction(count, total) for count in self.counts.values()]

    @property
    def within(self) -> Counter[Any]:
        return Counter({item: n for item, n in self.counts.items() if item in self.every})


def gini(one: Shown) -> float | None:
    total, items = sum(one.within.values()), len(one.every)
    if not total:
        return None
    if items == 1:
        return 0.0
    counts = sorted(one.within.get(item, 0) for item in one.every)
    terms = (Fraction((2 * j - items - 1) * c, total) for j, c in enumerate(counts, 1))
    return float(sum(terms) / (items - 1))


def personalization(one: Shown) -> float | None:
    pairs = list(combinations([set(listed) for listed in one.lists], 2))
    common = [Fraction(len(a & b), one.k or 0) for a, b in pairs]
    return float(1 - sum(common) / len(pairs)) if pairs else None


def coverage_of_labels(one: Shown) -> float | None:
    known = set().union(*one.labels)
    hit = {
        i for listed, right in zip(one.lists, one.labels, strict=False) for i in {*listed} & right
    }
    return len(hit) / len(known) if known else None


VALUES: dict[str, Callable[[Shown], float | None]] = {
    "coverage": lambda one: len(one.within) / len(one.every) if one.every else None,
    "coverage_of_labels": coverage_of_labels,
    "gini": gini,
    "entropy": lambda one: (
        math.fsum(-float(p) * math.log2(p) for p in one.shares) if one.lists else None
    ),
    "hhi": lambda one: float(sum(p * p for p in one.shares)) if one.lists else None,
    "personalization": personalization,
}


def value(
    text: str,
    labels: Mapping[Any, Collection[Any]],
    predictions: Mapping[Any, Sequence[Any]],
    catalogue: Collection[Any] | None = None,
) -> float | None:
    """Lists of None and repeated items are not looked at here; an empty list is no list."""
    name, _, cutoff = text.partition("@")
    k = int(cutoff) if cutoff else None
    lists = {query: list(listed) for query, listed in predictions.items() if listed}
    every = {item for listed in (*labels.values(), *lists.values()) for item in listed}
    # A list of labels beside each list; then those of queries without one.
    right = [set(labels.get(query, ())) for query in lists]
    right += [set(one) for query, one in labels.items() if query not in lists]
    cut = [listed[:k] for listed in lists.values()]
    return VALUES[name](Shown(cut, right, every if catalogue is None else {*catalogue}, k))
