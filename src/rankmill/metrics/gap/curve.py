"""Aggregates of the curve of precision and recall over all predictions by confidence.

Their states and their second pass are those of gap. Between two confidences of correct predictions,
a lower threshold lets in wrong predictions only: precision falls and recall stays. The thresholds
at the confidences of correct predictions therefore have all the best points of the curve.
"""

import math
from dataclasses import replace
from operator import mul
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np

from rankmill.metrics.aggregate import AggregateSettings, Totals, Value
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.gap.gap_counts import Among
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.record import same
from rankmill.records import record


class Points(NamedTuple):
    """What a threshold at each confidence of correct predictions lets in, the highest first."""

    threshold: np.ndarray
    # int64: how many correct predictions, and how many in all, have at least this confidence.
    correct: np.ndarray
    predictions: np.ndarray
    above: np.ndarray  # int64: how many predictions have more than this confidence


@record(frozen=True, eq=False)
class Curve(Gap):
    """The state of gap, of which a number of the curve is made."""

    axes: ClassVar[tuple[str, str]] = ("recall", "precision")
    streamed = False

    def points(self, among: Among) -> Points:
        """Return the points of the curve at the confidences of correct predictions."""
        values, counts = self.correct
        correct = np.cumsum(counts[::-1])
        predictions = np.cumsum((among.at + among.above)[::-1])
        above = predictions - among.at[::-1]
        return Points(values[::-1], correct, predictions, above)

    def table(self, totals: Totals) -> dict[str, np.ndarray]:
        """Return the points of the curve by column, a threshold a row, the highest first."""
        points, total = self.points(totals.among), max(1, self.total(totals))
        return {
            "confidence": points.threshold,
            "predictions": points.predictions,
            "correct": points.correct,
            "precision": points.correct / points.predictions,
            "recall": points.correct / total,
            "f1": _f1(points, total),
        }

    def finish(self, totals: Totals) -> Value:
        """Return the number of the curve; there is none if the divisor of recall is 0."""
        total = self.total(totals)
        return Value(self.number(self.points(totals.among), total) if total else None)

    def number(self, points: Points, total: int) -> float | None:
        """Return the number of the curve, whose recall is divided by `total`."""
        raise NotImplementedError


class Area(Curve):
    """The area below the curve, its points joined by straight lines."""

    def number(self, points: Points, total: int) -> float:
        """Return the sum of the trapezoids between correct confidences.

        Each begins at the last point before its threshold, where recall is still that of the
        threshold before. The first begins at precision 1, or at 0 if wrong predictions stand above.
        """
        before = np.concatenate([[0], points.correct[:-1]])
        start = np.where(points.above > 0, before / np.maximum(points.above, 1), 1.0)
        heights = (start + points.correct / points.predictions) / 2
        return _sum((points.correct - before) * heights) / total


class AreaByStep(Curve):
    """The area below the curve as a step function, of which each step has its lower precision."""

    def number(self, points: Points, total: int) -> float:
        """Return the sum of the precisions at correct confidences, by the recall that each adds."""
        gained = np.diff(points.correct, prepend=0)
        return _sum(gained * (points.correct / points.predictions)) / total


class BestF1(Curve):
    """The largest F1 of a threshold."""

    def number(self, points: Points, total: int) -> float:
        """Return the largest F1; 0 without a correct prediction."""
        return float(_f1(points, total).max(initial=0.0))


class BestThreshold(Curve):
    """The threshold of the largest F1."""

    of_total = False

    def number(self, points: Points, total: int) -> float | None:
        """Return the highest threshold with the largest F1; None if there is no finite one."""
        f1 = _f1(points, total)
        # Zeros of both signs are one threshold: + 0.0 makes it 0.0, whichever was read first.
        best = float(points.threshold[f1.argmax()]) + 0.0 if len(f1) else math.inf
        return best if math.isfinite(best) else None


class RocArea(Curve):
    """The area below the ROC curve: the share of pairs of a right and a wrong prediction in order.

    A pair of equal confidence counts as half.
    """

    of_total = False

    def finish(self, totals: Totals) -> Value:
        """Return the area, exact and rounded once; None without both kinds."""
        points, right = self.points(totals.among), int(self.correct.counts.sum())
        wrong = self.seen.predictions - right
        if not right or not wrong:
            return Value(None)
        gained = np.diff(points.correct, prepend=0)
        above = points.above - (points.correct - gained)
        tied = points.predictions - points.above - gained
        twice = 2 * (wrong - above) - tied
        return Value(sum(map(mul, gained.tolist(), twice.tolist())) / (2 * right * wrong))


def _share(row: state_rows.Row, name: str) -> float:
    at = state_rows.field(row, name)
    if not isinstance(at, float) or not 0 <= at <= 1:
        raise state_rows.damaged(f"{name} is {at!r}, not a number from 0 to 1")
    return at


@record(frozen=True, eq=False)
class _AtLeast(Curve):
    """The largest of one of precision and recall where the other is at least `at`."""

    at: Annotated[float, same(_share)] = 0.0

    @classmethod
    def init(cls, asked: AggregateSettings) -> Self:
        """Return the aggregate of no prediction."""
        (at,) = asked.metric.arguments
        return replace(super().init(asked), at=at)

    def to_row(self) -> dict[str, Any]:
        """Return the bound, and the row of gap."""
        return {"at": self.at, **super().to_row()}


class RecallAtPrecision(_AtLeast):
    """The largest recall of a threshold of at least some precision."""

    def number(self, points: Points, total: int) -> float:
        """Return that recall; 0 where no threshold is so precise."""
        enough = points.correct / points.predictions >= self.at
        return float((points.correct[enough] / total).max(initial=0.0))


class PrecisionAtRecall(_AtLeast):
    """The largest precision of a threshold of at least some recall."""

    of_total = False

    def number(self, points: Points, total: int) -> float:
        """Return that precision; 0 where no threshold reaches the recall."""
        enough = points.correct / total >= self.at
        return float((points.correct / points.predictions)[enough].max(initial=0.0))


def _f1(points: Points, total: int) -> np.ndarray:
    f1: np.ndarray = 2 * points.correct / (points.predictions + total)
    return f1


def _sum(terms: np.ndarray) -> float:
    """Return the correctly rounded sum."""
    return math.fsum(terms)
