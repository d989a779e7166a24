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


def best_list(topics: Topics, alpha: float) -> list[Any]:
    left = sorted(topics, reverse=True)
    ideal: list[Any] = []
    while left:
        ideal.append(max(left, key=lambda item: gains(topics, [*ideal, item], alpha)[-1]))
        left.remove(ideal[-1])
    return ideal


def alpha_ndcg(
    topics: Topics, listed: Sequence[Any], k: int | None = None, alpha: float = 0.5
) -> float:
    ideal = best_list(topics, alpha)
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


def alpha_dcg_of_all(topics: Topics, listed: Sequence[Any], k: int, alpha: float = 0.5) -> float:
    most = math.fsum((1 - alpha) ** (rank - 1) / math.log2(rank + 1) for rank in range(1, k + 1))
    found = alpha_dcg(topics, first_only(topics, listed), k, alpha)
    return found / most / len(set().union(*topics.values()))


def cascade(topics: Topics, listed: Sequence[Any], k: int | None, alpha: float) -> float:
    return math.fsum(
        gain / rank for rank, gain in enumerate(gains(topics, listed[:k], alpha), start=1)
    )


def nerr_ia(
    topics: Topics, listed: Sequence[Any], k: int | None = None, alpha: float = 0.5
) -> float:
    best = cascade(topics, best_list(topics, alpha), k, alpha)
    return cascade(topics, first_only(topics, listed), k, alpha) / best


def biased(topics: Topics, listed: Sequence[Any], alpha: float, beta: float) -> float:
    found = gains(topics, first_only(topics, listed), alpha)
    return math.fsum(gain * beta**before for before, gain in enumerate(found))


def nrbp(topics: Topics, listed: Sequence[Any], alpha: float = 0.5, beta: float = 0.5) -> float:
    scale = (1 - (1 - alpha) * beta) / len(set().union(*topics.values()))
    return biased(topics, listed, alpha, beta) * scale


def nnrbp(topics: Topics, listed: Sequence[Any], alpha: float = 0.5, beta: float = 0.5) -> float:
    best = biased(topics, best_list(topics, alpha), alpha, beta)
    return biased(topics, listed, alpha, beta) / best


def of_subtopics(topics: Topics, listed: Sequence[Any]) -> list[tuple[int, list[int]]]:
    """Of each subtopic: how many labels it has, and the ranks of its hits."""
    listed = first_only(topics, listed)
    return [
        (
            sum(subtopic in own for own in topics.values()),
            [rank for rank, item in enumerate(listed, 1) if subtopic in topics.get(item, ())],
        )
        for subtopic in set().union(*topics.values())
    ]


def p_ia(topics: Topics, listed: Sequence[Any], k: int) -> float:
    each = [sum(rank <= k for rank in ranks) / k for _, ranks in of_subtopics(topics, listed)]
    return math.fsum(each) / len(each)


def map_ia(topics: Topics, listed: Sequence[Any]) -> float:
    each = [
        math.fsum(found / rank for found, rank in enumerate(ranks, 1)) / labels
        for labels, ranks in of_subtopics(topics, listed)
    ]
    return math.fsum(each) / len(each)


VALUES: dict[str, Callable[..., float]] = {
    one.__name__: one
    for one in (alpha_ndcg, err_ia, subtopic_recall, nerr_ia, nrbp, nnrbp, p_ia, map_ia)
} | {"alpha_dcg": alpha_dcg_of_all}
