"""Micro-averages, slices and weighted sums in plain Python, with errors by the definition."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

# Of a query: what it counts, and what that is divided by; and its weight.
Counted = tuple[float, float]


def hits_of(labels: Sequence[Any], predictions: Sequence[Any], k: int) -> Counted:
    return float(len({*predictions[:k]} & {*labels})), float(min(k, len({*labels})))


def micro(counted: Sequence[Counted]) -> float:
    return math.fsum(a for a, _ in counted) / math.fsum(b for _, b in counted)


def micro_error(counted: Sequence[Counted]) -> float:
    """Cochran's linearised error of a ratio of two sums."""
    n, ratio = len(counted), micro(counted)
    squares = math.fsum((a - ratio * b) ** 2 for a, b in counted)
    return math.sqrt(n / (n - 1) * squares) / math.fsum(b for _, b in counted)


def jackknife(counted: Sequence[Counted], value: Callable[[Sequence[Counted]], float]) -> float:
    """The error by leaving each query out once."""
    left = [value([*counted[:i], *counted[i + 1 :]]) for i in range(len(counted))]
    middle, n = math.fsum(left) / len(left), len(left)
    return math.sqrt((n - 1) / n * math.fsum((one - middle) ** 2 for one in left))


TYPES = ("clicks", "carts", "orders")
OTTO = dict(zip(TYPES, (0.1, 0.3, 0.6), strict=True))


def otto_dump(seed: int, sessions: int) -> tuple[pa.Table, pa.Table]:
    """Labels and a submission in OTTO's shape: session_type, and up to 25 items of each list."""
    draw = random.Random(seed)
    labels, submission = [], []
    for session in range(sessions):
        for kind in TYPES:
            if draw.random() < {"clicks": 0.95, "carts": 0.4, "orders": 0.2}[kind]:
                most = 1 if kind == "clicks" else 30
                items = draw.sample(range(60), draw.randint(1, most))
                labels.append((f"{session}_{kind}", kind, items))
            if draw.random() < 0.9:
                items = draw.sample(range(60), draw.randint(1, 25))
                submission.append((f"{session}_{kind}", items))
    held, given = (zip(*rows, strict=True) for rows in (labels, submission))
    return (
        pa.table(dict(zip(["session_type", "type", "labels"], held, strict=True))),
        pa.table(dict(zip(["session_type", "predictions"], given, strict=True))),
    )


def counted_by_type(labels: pa.Table, submission: pa.Table) -> Mapping[str, list[Counted]]:
    """What each query with labels counts within 20, by type; nothing without predictions."""
    lists = dict(zip(*submission.to_pydict().values(), strict=True))
    found: dict[str, list[Counted]] = {kind: [] for kind in TYPES}
    for query, kind, items in zip(*labels.to_pydict().values(), strict=True):
        found[kind].append(hits_of(items, lists.get(query, []), 20))
    return found
