"""What metrics that see columns come to, from rows of plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

NOTHING = math.nan


class SeenList(NamedTuple):
    """What a function of one query may see."""

    ranks: list[int]
    gains: list[float]
    at_hits: list[float]  # a column of the labels
    of_items: list[float]  # a column of the items within the cutoff
    labels: int


def number(value: Any) -> float:
    """A cell as a metric sees it."""
    return NOTHING if value is None else float(value)


def labels_of(rows: Iterable[tuple[Any, Any, float, Any]]) -> dict[Any, dict[Any, tuple[Any, Any]]]:
    """The gain and the value of each label, from rows of a query, an item, a gain and a value.

    Of a repeated label the largest gain counts, and of the rows with that gain the smallest value
    that is there.
    """
    found: dict[Any, dict[Any, tuple[Any, Any]]] = {}
    for query, item, gain, value in rows:
        of_query = found.setdefault(query, {})
        if item is None or gain <= 0:
            continue
        before, seen = of_query.get(item, (-1.0, NOTHING))
        if gain > before:
            of_query[item] = gain, number(value)
        elif gain == before:
            there = [one for one in (seen, number(value)) if not math.isnan(one)]
            of_query[item] = gain, min(there, default=NOTHING)
    return found


def seen_list(
    labels: Mapping[Any, tuple[Any, Any]],
    predicted: Sequence[Any],
    items: Mapping[Any, Any],
    k: int,
    rel: float = 5e-324,
) -> SeenList:
    """What is seen of a list; of a repeated prediction the first place counts."""
    shown = [item for item in predicted if item is not None]
    kept = {item: of for item, of in labels.items() if of[0] >= rel}
    ranks = [
        rank
        for rank, item in enumerate(shown[:k], 1)
        if item in kept and item not in shown[: rank - 1]
    ]
    hits = [kept[shown[rank - 1]] for rank in ranks]
    of_items = [number(items.get(item)) for item in shown[:k]]
    return SeenList(ranks, [g for g, _ in hits], [v for _, v in hits], of_items, len(kept))


def values_of(
    labels: Mapping[Any, Mapping[Any, tuple[Any, Any]]],
    lists: Mapping[Any, Sequence[Any]],
    items: Mapping[Any, Any],
    k: int,
    formula: Callable[[SeenList], float],
    rel: float = 5e-324,
) -> dict[Any, float]:
    """The value of each query with a label; 0 without predictions."""
    found = {}
    for query, of_query in labels.items():
        one = seen_list(of_query, lists.get(query, ()), items, k, rel)
        if any(gain > 0 for gain, _ in of_query.values()):
            there = any(item is not None for item in lists.get(query, ()))
            found[query] = formula(one) if there and one.labels else 0.0
    return found
