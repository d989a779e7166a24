"""The metrics of all predictions by confidence in plain Python, for tests."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction

# (confidence, right?) of all predictions.
Listed = Sequence[tuple[float, bool]]


def points(listed: Listed) -> list[tuple[float, int, int]]:
    """Each distinct confidence, the highest first: how many are right, and how many there are."""
    ordered = sorted(listed, key=lambda one: -one[0])
    found, right, count = [], 0, 0
    for threshold, group in itertools.groupby(ordered, key=lambda one: one[0]):
        chosen = [is_right for _, is_right in group]
        right, count = right + sum(chosen), count + len(chosen)
        found.append((threshold, right, count))
    return found


def auprc(listed: Listed, total: int) -> float:
    area, recall, precision = 0.0, 0.0, 1.0
    for _, right, count in points(listed):
        area += (right / total - recall) * (right / count + precision) / 2
        recall, precision = right / total, right / count
    return area


def auprc_step(listed: Listed, total: int) -> float:
    area, recall = 0.0, 0.0
    for _, right, count in points(listed):
        area += (right / total - recall) * right / count
        recall = right / total
    return area


def recall_at_precision(listed: Listed, total: int, precision: float) -> float:
    return max((r / total for _, r, n in points(listed) if r / n >= precision and r), default=0.0)


def precision_at_recall(listed: Listed, total: int, recall: float) -> float:
    return max((r / n for _, r, n in points(listed) if r / total >= recall), default=0.0)


def best_f1(listed: Listed, total: int) -> float:
    return max((2 * right / (count + total) for _, right, count in points(listed)), default=0.0)


def best_f1_threshold(listed: Listed, total: int) -> float | None:
    best = best_f1(listed, total)
    for threshold, right, count in points(listed):
        if right and 2 * right / (count + total) == best:
            return threshold if math.isfinite(threshold) else None
    return None


def ece(listed: Listed, total: int, bins: float = 15) -> float | None:
    off = Fraction(0)
    for number in range(int(bins)):
        low, high = (step / bins for step in (number, number + 1))
        chosen = [
            (Fraction(confidence), right)
            for confidence, right in listed
            if low < confidence <= high or (confidence == 0 and number == 0)
        ]
        off += abs(sum(right for _, right in chosen) - sum(one for one, _ in chosen))
    return float(off / len(listed)) if listed else None


def brier(listed: Listed, total: int) -> float | None:
    squares = [(Fraction(confidence) - right) ** 2 for confidence, right in listed]
    return float(sum(squares) / len(squares)) if squares else None


def log_loss(listed: Listed, total: int) -> float | None:
    near = [(min(max(c, 2.0**-52), 1 - 2.0**-52), right) for c, right in listed]
    return -math.fsum(math.log(c if r else 1 - c) for c, r in near) / len(near) if near else None


def roc_auc(listed: Listed, total: int) -> float | None:
    kinds = [[confidence for confidence, right in listed if right == kind] for kind in (1, 0)]
    wrong = sorted(kinds[1])
    halves = sum(bisect_left(wrong, one) + bisect_right(wrong, one) for one in kinds[0])
    pairs = len(kinds[0]) * len(kinds[1])
    return float(Fraction(halves, 2 * pairs)) if pairs else None


def dprime(listed: Listed, total: int) -> float | None:
    kinds = [[Fraction(c) for c, right in listed if right == kind] for kind in (True, False)]
    if not all(kinds):
        return None
    means = [sum(kind) / len(kind) for kind in kinds]
    spreads = [
        sum((one - mean) ** 2 for one in kind) / len(kind)
        for kind, mean in zip(kinds, means, strict=True)
    ]
    if not sum(spreads):
        return None
    apart = means[0] - means[1]
    # One root of exact numbers, as the squares of small confidences are below all floats.
    try:
        return math.sqrt(apart**2 * 2 / sum(spreads)) * (1 if apart > 0 else -1)
    except OverflowError:
        return None


VALUES: dict[str, Callable[..., float | None]] = {
    one.__name__: one
    for one in (
        *(auprc, auprc_step, recall_at_precision, precision_at_recall, best_f1, best_f1_threshold),
        *(ece, brier, log_loss, dprime, roc_auc),
    )
}
# They refuse confidences that are not finite, or not from 0 to 1.
BOUNDED = {"ece", "brier", "log_loss", "dprime"}
