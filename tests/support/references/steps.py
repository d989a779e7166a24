"""The few steps that several references share: plain lists in, plain numbers out."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

Labels = dict[str, list[tuple[str, float]]]
Predictions = dict[str, list[tuple[str, float]]]
Values = dict[str, float]


class RefusedError(Exception):
    """The library refuses this input, stops on it, or its input type cannot hold it."""


class UndefinedError(Exception):
    """The library has no such measure: no cutoff where one was asked for, or the other way."""


# ------------------------------------------------------------------ rows and lists


def relevant_rows(rows: Iterable[tuple[str, float]]) -> list[str]:
    """The relevant items, repeats kept: what one hands to a library that knows no gains."""
    return [item for item, gain in rows if gain > 0]


def items_of(listed: Iterable[tuple[str, float]]) -> list[str]:
    return [item for item, _ in listed]


def by_confidence(listed: Iterable[tuple[str, float]]) -> list[str]:
    """Descending; equal ones as they came."""
    return items_of(sorted(listed, key=lambda row: -row[1]))


def by_confidence_then_item(listed: Iterable[tuple[str, float]]) -> list[str]:
    """Descending; of equal ones the item that is last in the order of bytes goes first."""
    return items_of(sorted(listed, key=lambda row: (row[1], row[0].encode()), reverse=True))


def visible(predictions: Predictions) -> list[tuple[str, list[tuple[str, float]]]]:
    """The queries that input by rows can hold: an empty list is no row."""
    return [(query, listed) for query, listed in predictions.items() if listed]


def refuse_repeats(items: Sequence[str], what: str) -> None:
    if len(set(items)) < len(items):
        raise RefusedError(f"{what} repeats an item")


def required(k: int | None) -> int:
    if k is None:
        raise UndefinedError("the library takes no list without a cutoff")
    return k


# ------------------------------------------------------------------ ranks


def hit_ranks(items: Sequence[str], relevant: Collection[str], k: int | None = None) -> list[int]:
    """Ranks, from 1, of relevant items; a repeated item is right each time."""
    return [rank for rank, item in enumerate(items[:k], start=1) if item in relevant]


def first_hit_ranks(
    items: Sequence[str], relevant: Collection[str], k: int | None = None
) -> list[int]:
    """As ``hit_ranks``; a repeated item takes its rank but is right the first time only."""
    return [
        rank for rank in hit_ranks(items, relevant, k) if items.index(items[rank - 1]) + 1 == rank
    ]


def precision_sum(ranks: Iterable[int]) -> float:
    """Sum of the precision at each hit."""
    return math.fsum(hits / rank for hits, rank in enumerate(ranks, start=1))


def reciprocal(ranks: Sequence[int]) -> float:
    return 1 / ranks[0] if ranks else 0.0


def discounted(gains: Iterable[tuple[int, float]]) -> float:
    """Sum of gain / log2(rank + 1) over (rank, gain)."""
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in gains)


def ideal_of(gains: Iterable[float], k: int | None = None) -> float:
    """The largest discounted sum that k places can hold."""
    return discounted(enumerate(sorted(gains, reverse=True)[:k], start=1))


def ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else 0.0


def harmonic(one: float, other: float) -> float:
    return 2 * one * other / (one + other) if one and other else 0.0
