"""The metrics of labels with subtopics in plain Python, for tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

# Item -> the subtopics that it is relevant to, one or more.
Topics = Mapping[Any, Set[Any]]


def gains(topics: Topics, listed: Sequence[Any], alpha: float) -> list[float]:
    """What each item of a list adds: less for each earlier item of the same subtopic."""
    seen: list[Any] = []
    found = []
    for item in listed:
        own = topics.get(item, set())
        found.append(sum((1 - alpha) ** seen.count(one) for one in own))
        seen += own
    return found


def first_only(topics: Topics, listed: Sequence[Any]) -> list[Any]:
    """The list, with an item that no label is in the place of each repeat."""
    return [item if item not in listed[:place] else object() for place, item in enumerate(listed)]


def alpha_dcg(topics: Topics, listed: Sequence[Any], k: int, alpha: float) -> float:
    each = enumerate(gains(topics, listed[:k], alpha), start=2)
    return math.fsum(gain / math.log2(rank) for rank, gain in each)


def alpha_ndcg(
    topics: Topics, listed: Sequence[Any], k: int | None = None, alpha: float = 0.5
) -> float:
    left = sorted(topics, reverse=True)
    ideal: list[Any] = []
    while left:
        ideal.append(max(left, key=lambda item: gains(topics, [*ideal, item], alpha)[-1]))
        left.remove(ideal[-1])
    depth = k or len(listed) + len(ideal)
    best = alpha_dcg(topics, ideal, depth, alpha)
    return alpha_dcg(topics, first_only(topics, listed), depth, alpha) / best


def err_ia(topics: Topics, listed: Sequence[Any], k: int, alpha: float = 0.5) -> float:
    found = gains(topics, first_only(topics, listed)[:k], alpha)
    total = math.fsum(gain / rank for rank, gain in enumerate(found, start=1))
    most = math.fsum((1 - alpha) ** (rank - 1) / rank for rank in range(1, k + 1))
    return total / most / len(set().union(*topics.values()))


def subtopic_recall(topics: Topics, listed: Sequence[Any], k: int | None = None) -> float:
    found = set().union(*(topics.get(item, set()) for item in listed[:k]))
    return len(found) / len(set().union(*topics.values()))


VALUES: dict[str, Callable[..., float]] = {
    one.__name__: one for one in (alpha_ndcg, err_ia, subtopic_recall)
}
