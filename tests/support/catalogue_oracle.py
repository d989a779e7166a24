"""Metrics over a catalogue in plain Python: all lists, labels and the catalogue -> a number."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Any

Distance = Callable[["Shown", Any, Any], float | None]


@dataclass
class Shown:
    """What is shown within k, as sets, and all else a metric over a catalogue may need."""

    lists: list[list[Any]]
    labels: list[set[Any]]
    every: set[Any]
    k: int | None
    train: list[set[Any]] = field(default_factory=list)
    had: list[set[Any]] = field(default_factory=list)
    groups: Mapping[Any, set[str]] = field(default_factory=dict)
    vectors: Mapping[Any, Sequence[float]] = field(default_factory=dict)

    @property
    def popularity(self) -> Counter[Any]:
        return Counter(item for had in self.train for item in had)

    def mean(self, worth: Callable[[Any], float]) -> float | None:
        """Of the items of each list, then of all lists."""
        means = [math.fsum(map(worth, listed)) / len(listed) for listed in self.lists]
        return math.fsum(means) / len(means) if means else None

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


def gini(one: Shown, less: int = 1) -> float | None:
    total, items = sum(one.within.values()), len(one.every)
    if not total:
        return None
    if items == 1:
        return 0.0
    counts = sorted(one.within.get(item, 0) for item in one.every)
    terms = (Fraction((2 * j - items - 1) * c, total) for j, c in enumerate(counts, 1))
    return float(sum(terms) / (items - less))


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


# ------------------------------------------------------------------ with what was seen in training


def popularity(one: Shown) -> float | None:
    return one.mean(lambda item: float(one.popularity[item]))


def popularity_lift(one: Shown) -> float | None:
    usual = [math.fsum(one.popularity[item] for item in had) / len(had) for had in one.train]
    found = popularity(one)
    return None if found is None else found / (math.fsum(usual) / len(usual)) - 1


def novelty(one: Shown) -> float | None:
    users = len(one.train)
    return one.mean(lambda item: -math.log2(max(1, one.popularity[item]) / users))


def serendipity(one: Shown) -> float | None:
    items, ranks = len(one.every), sorted(set(one.popularity.values()), reverse=True)

    def worth(rank: int, item: Any, right: set[Any]) -> float:
        usual = 0.0
        if item in one.popularity:
            usual = (items + 1 - ranks.index(one.popularity[item]) - 1) / items
        return max((items + 1 - rank) / items - usual, 0.0) if item in right else 0.0

    means = [
        math.fsum(worth(rank, item, right) for rank, item in enumerate(listed, 1)) / len(listed)
        for listed, right in zip(one.lists, one.labels, strict=False)
    ]
    return math.fsum(means) / len(means) if means else None


def group_of(one: Shown, item: Any) -> str:
    """An item is in the head if those more popular have less than 20 % of all interactions."""
    counts, total = one.popularity, sum(one.popularity.values())
    if 5 * sum(n for n in counts.values() if n > counts[item]) < total and counts[item]:
        return "head"
    less = sum(n for n in counts.values() if n < counts[item])
    return "tail" if 5 * less < total else "middle"


def share(group: str, one: Shown) -> float | None:
    places = [group_of(one, item) for listed in one.lists for item in listed]
    return places.count(group) / len(places) if places else None


def long_tail(one: Shown, count: bool, head: float = 0.8) -> float | None:
    counts, every = one.popularity, sum(one.popularity.values())

    def is_rare(item: Any) -> bool:
        above = sum(n for n in counts.values() if n > counts[item])
        return item not in counts or above >= head * every

    each = [sum(map(is_rare, listed)) / (1 if count else len(listed)) for listed in one.lists]
    return math.fsum(each) / len(each) if each else None


def expected(one: Shown, worth: Callable[[Shown, Any], float]) -> float | None:
    values = []
    for listed, right in zip(one.lists, one.labels, strict=False):
        each = [1 / math.log2(rank + 1) for rank in range(1, len(listed) + 1)]
        terms = [d * worth(one, i) for d, i in zip(each, listed, strict=True) if i in right]
        values += [math.fsum(terms) / math.fsum(each)] if right else []
    return math.fsum(values) / len(values) if values else None


def discovery(one: Shown, item: Any) -> float:
    counts = one.popularity
    return -math.log2(counts.get(item, min(counts.values())) / sum(counts.values()))


def scored(one: Shown, gain: bool, a: float = 0.55, b: float = 1.5) -> float | None:
    users = len(one.train)

    def worth(item: Any) -> float:
        return 1 + max(0.0, math.log(users) - 1) * ((b + 1) / (one.popularity[item] + b)) ** a

    def add(items: Sequence[Any], right: Collection[Any]) -> float:
        discounts = [math.log2(rank + 1) if gain else 1 for rank in range(1, (one.k or 0) + 1)]
        most = math.fsum(1 / d for d in discounts[: len(right)]) if gain else 1
        pairs = zip(discounts, items, strict=False)
        return math.fsum(worth(item) / d / most for d, item in pairs if item in right)

    pairs = zip(one.lists, one.labels, strict=False)
    found = math.fsum(add(listed, right) for listed, right in pairs if right)
    best = [add(sorted(right, key=worth, reverse=True), right) for right in one.labels if right]
    return found / math.fsum(best) if best else None


SCORED: dict[str, Callable[[Shown], float | None]] = {
    "psp": partial(scored, gain=False),
    "psndcg": partial(scored, gain=True),
}
TRAINED: dict[str, Callable[[Shown], float | None]] = {
    "popularity": popularity,
    "popularity_lift": popularity_lift,
    "novelty": novelty,
    "serendipity": serendipity,
    "aplt": partial(long_tail, count=False),
    "aclt": partial(long_tail, count=True),
    "epc": partial(expected, worth=lambda one, i: 1 - one.popularity[i] / len(one.train)),
    "efd": partial(expected, worth=discovery),
    **{f"{group}_share": partial(share, group) for group in ("head", "middle", "tail")},
}
VALUES |= TRAINED | SCORED


# ------------------------------------------------------------------ with groups of items


def shares(items: Collection[Any], groups: Mapping[Any, set[str]]) -> dict[str, Fraction]:
    """Of each group; an item counts as a part in each of its groups."""
    found: dict[str, Fraction] = {}
    for item in items:
        for group in groups.get(item, ()):
            found[group] = found.get(group, Fraction(0)) + Fraction(1, len(groups[item]))
    total = sum(found.values())
    return {group: part / total for group, part in found.items()}


def miscalibration(one: Shown) -> float | None:
    values = []
    for listed, had in zip(one.lists, one.had, strict=True):
        p, q = shares(had, one.groups), shares(listed, one.groups)
        if p and q:
            mixed = {group: 0.99 * float(q.get(group, 0)) + 0.01 * float(p[group]) for group in p}
            values.append(
                math.fsum(float(p[group]) * math.log(float(p[group]) / mixed[group]) for group in p)
            )
    return math.fsum(values) / len(values) if values else None


def diversity(one: Shown) -> float | None:
    values = []
    for listed in one.lists:
        known = [one.groups[item] for item in listed if one.groups.get(item)]
        pairs = [1 - len(a & b) / len(a | b) for a, b in combinations(known, 2)]
        values += [math.fsum(pairs) / len(pairs)] if pairs else []
    return math.fsum(values) / len(values) if values else None


def jaccard(one: Shown, a: Any, b: Any) -> float | None:
    groups = one.groups.get(a, set()), one.groups.get(b, set())
    return 1 - len(groups[0] & groups[1]) / len(groups[0] | groups[1]) if all(groups) else None


def cosine(one: Shown, a: Any, b: Any) -> float | None:
    sizes = [math.hypot(*one.vectors.get(item, ())) for item in (a, b)]
    if not all(sizes):
        return None
    pairs = zip(one.vectors[a], one.vectors[b], strict=True)
    return 1 - math.fsum(x / sizes[0] * (y / sizes[1]) for x, y in pairs)


Distance = Callable[[Shown, Any, Any], float | None]


def of_pairs(one: Shown, distance: Distance, history: bool) -> float | None:
    """Of lists the mean over those pairs that have a distance, then of all lists that have some."""
    values = []
    for listed, had in zip(one.lists, one.had, strict=True):
        pairs = itertools.product(listed, had) if history else combinations(listed, 2)
        found = [far for a, b in pairs if (far := distance(one, a, b)) is not None]
        values += [math.fsum(found) / len(found)] if found else []
    return math.fsum(values) / len(values) if values else None


def by_group(one: Shown, *, hits: bool, labels: bool, ranked: bool) -> dict[str, float]:
    """What each group gets for an item, or for a label, without groups that have none."""

    def add(found: dict[str, float], item: Any, worth: float) -> None:
        for group in one.groups.get(item, ()):
            found[group] = found.get(group, 0.0) + worth / len(one.groups[item])

    base: dict[str, float] = {}
    for item in (item for right in one.labels for item in right) if labels else one.groups:
        add(base, item, 1.0)
    gets = dict.fromkeys(base, 0.0)
    for listed, right in zip(one.lists, one.labels, strict=False):
        for rank, item in enumerate(listed, 1):
            if item in right or not hits:
                add(gets, item, 1 / math.log2(rank + 1) if ranked else 1.0)
    return {group: gets[group] / base[group] for group in base}


def parity(one: Shown, **how: bool) -> float | None:
    each = by_group(one, **how).values()
    return min(each) / max(each) if any(each) else None


GROUPED: dict[str, Callable[[Shown], float | None]] = {
    "exposure_parity": partial(parity, hits=False, labels=False, ranked=True),
    "treatment_parity": partial(parity, hits=False, labels=True, ranked=True),
    "impact_parity": partial(parity, hits=True, labels=True, ranked=True),
    "recall_parity": partial(parity, hits=True, labels=True, ranked=False),
    "miscalibration": miscalibration,
    "ild": diversity,
    "epd": partial(of_pairs, distance=jaccard, history=True),
}
FEATURED: dict[str, Callable[[Shown], float | None]] = {
    "ild_cosine": partial(of_pairs, distance=cosine, history=False),
    "epd_cosine": partial(of_pairs, distance=cosine, history=True),
}
VALUES |= GROUPED | FEATURED


GIVEN: dict[str, Callable[[Shown], float | None]] = {
    "gini(of=N)": partial(gini, less=0),
    "aplt(head=0.3)": partial(long_tail, count=False, head=0.3),
    "psp(a=0.5,b=0.4)": partial(scored, gain=False, a=0.5, b=0.4),
}


def value(
    text: str,
    labels: Mapping[Any, Collection[Any]],
    predictions: Mapping[Any, Sequence[Any]],
    catalogue: Collection[Any] | None = None,
    train: Mapping[Any, Collection[Any]] | None = None,
    groups: Mapping[Any, set[str]] | None = None,
    vectors: Mapping[Any, Sequence[float]] | None = None,
) -> float | None:
    """Lists of None and repeated items are not looked at here; an empty list is no list."""
    name, _, cutoff = text.partition("@")
    k = int(cutoff) if cutoff else None
    lists = {query: list(listed) for query, listed in predictions.items() if listed}
    had = [set(items) for items in (train or {}).values() if items]
    every = {item for listed in (*labels.values(), *lists.values()) for item in listed}
    every = set().union(*had) if had else every
    # A list of labels beside each list; then those of queries without one.
    right = [set(labels.get(query, ())) for query in lists]
    right += [set(one) for query, one in labels.items() if query not in lists]
    cut = [listed[:k] for listed in lists.values()]
    every = every if catalogue is None else {*catalogue}
    beside = [set((train or {}).get(query, ())) for query in lists]
    function = GIVEN[name] if name in GIVEN else VALUES[name]
    return function(Shown(cut, right, every, k, had, beside, groups or {}, vectors or {}))
