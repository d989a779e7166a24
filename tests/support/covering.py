"""Rows of a sweep: few that have every pair of levels, or all that there are."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

Row = dict[str, str]


def product(factors: Mapping[str, Sequence[str]], legal: Callable[[Row], bool]) -> list[Row]:
    """Return each legal row of one level of each factor."""
    rows = (
        dict(zip(factors, levels, strict=True)) for levels in itertools.product(*factors.values())
    )
    return [row for row in rows if legal(row)]


def pairs_of(row: Row) -> set[tuple[tuple[str, str], ...]]:
    """Return what a row covers: each two of its factors, with their levels."""
    return set(itertools.combinations(row.items(), 2))


def covering(rows: Sequence[Row]) -> list[Row]:
    """Return few of the rows, with every pair of levels that is in any of them.

    Greedily: next is the first of those that add most pairs.
    """
    left = [(row, pairs_of(row)) for row in rows]
    missing = set().union(*(pairs for _, pairs in left))
    taken: list[Row] = []
    while missing:
        left = [(row, pairs & missing) for row, pairs in left if pairs & missing]
        row, pairs = max(left, key=lambda one: len(one[1]))
        taken.append(row)
        missing -= pairs
    return taken
