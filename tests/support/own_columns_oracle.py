"""What metrics that see columns come to, from rows of plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

ANY = 5e-324


class SeenList(NamedTuple):
    """What a function of one query may see."""

    ranks: list[int]
    gains: list[float]
    at_hits: list[float]  # a column of the labels
    of_items: list[float]  # a column of the items within the cutoff
    labels: int


class Label(NamedTuple):
    gain: float
    value: float
    rows: list[float]  # the gain of each of its rows


def number(value: Any) -> float:
    """A cell as a metric sees it."""
    return math.nan if value is None else float(value)


def labels_of(rows: Iterable[tuple[Any, Any, float, Any]]) -> dict[Any, dict[Any, Label]]:
    """Each judged item of each query, from rows of a query, an item, a gain and a value.

    Of a repeated label the largest gain counts, and of the rows with that gain the smallest value
    that is there.
    """
    groups: dict[Any, dict[Any, list[tuple[float, Any]]]] = {}
    for query, item, gain, value in rows:
        of_query = groups.setdefault(query, {})
        if item is not None:
            of_query.setdefault(item, []).append((gain, value))
    found: dict[Any, dict[Any, Label]] = {}
    for query, items in groups.items():
        found[query] = {}
        for item, pairs in items.items():
            most = max(gain for gain, _ in pairs)
            values = [value for gain, value in pairs if gain == most and value is not None]
            value = number(min(values, default=None))
            found[query][item] = Label(most, value, [gain for gain, _ in pairs])
    return found


def seen_list(
    labels: Mapping[Any, Label],
    predicted: Sequence[Any],
    items: Mapping[Any, Any],
    k: int,
    *,
    rel: float = ANY,
    repeated_predictions: str = "once",
    repeated_labels: str = "set",
    depth: int | None = None,
    judged_only: bool = False,
) -> SeenList:
    """What is seen of a list of items, under some semantics."""
    shown = [item for item in predicted if item is not None]
    if repeated_predictions == "drop":
        shown = list(dict.fromkeys(shown))
    shown = shown[:depth]
    if judged_only:
        shown = [item for item in shown if item in labels]
    kept = {item: one for item, one in labels.items() if one.gain >= rel}
    ranks = [
        rank
        for rank, item in enumerate(shown[:k], 1)
        if item in kept and (repeated_predictions == "each" or item not in shown[: rank - 1])
    ]
    hits = [kept[shown[rank - 1]] for rank in ranks]
    of_items = [number(items.get(item)) for item in shown[:k]]
    count = len(kept)
    if repeated_labels == "count":
        count = sum(gain >= rel for one in labels.values() for gain in one.rows)
    return SeenList(ranks, [h.gain for h in hits], [h.value for h in hits], of_items, count)


def values_of(
    labels: Mapping[Any, Mapping[Any, Label]],
    lists: Mapping[Any, Sequence[Any]],
    items: Mapping[Any, Any],
    k: int,
    formula: Callable[[SeenList], float],
    **how: Any,
) -> dict[Any, float]:
    """The value of each query with a label; 0 without predictions."""
    found = {}
    for query, of_query in labels.items():
        if any(one.gain > 0 for one in of_query.values()):
            one = seen_list(of_query, lists.get(query, ()), items, k, **how)
            found[query] = formula(one) if one.of_items and one.labels else 0.0
    return found
