"""Aggregates of how far confidences tell what is correct: exact sums over all predictions."""

import math
import operator
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, ClassVar, Self

import numpy as np

from rankmill.columns.elementary import log2
from rankmill.columns.ids import id_text
from rankmill.errors import InputError
from rankmill.matching.order import ranks_of
from rankmill.metrics.aggregate import (
    Aggregate,
    AggregateSettings,
    Needs,
    ScoredBlock,
    Totals,
    Value,
)
from rankmill.metrics.aggregates.mean import UNIT, Mean
from rankmill.metrics.gap.gap import correct_of_hits, first_confidences
from rankmill.metrics.needs import Confidences
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.record import MOST_DIGITS, Counts, kind, nested
from rankmill.records import record

# Log loss takes 0 and 1 for so far from them, as scikit-learn does.
EPSILON = 2.0**-52


@record(frozen=True)
class Moments(Aggregate):
    """The exact sums of the confidences of all predictions and of the correct ones."""

    needs: ClassVar[Needs] = (Confidences,)
    # Whether confidences have to be probabilities, or just finite.
    probabilities: ClassVar[bool] = False

    every: Annotated[Mean, nested(Mean)] = Mean()
    correct: Annotated[Mean, nested(Mean)] = Mean()

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        """Return the aggregate with the predictions of a block."""
        every, correct = confidences_of(scored, asked, self.probabilities)
        return self.merge(replace(self, every=Mean.of(every), correct=Mean.of(correct)))

    def finish(self, totals: Totals) -> Value:
        """Return the value; there is none without predictions."""
        return Value(self.number() if self.every.count else None)

    def table(self, totals: Totals) -> dict[str, np.ndarray]:
        """Return what correct and wrong predictions add up to, by column."""
        right, every = self.correct, self.every
        less = every.total - right.total, every.squares - right.squares
        kinds = [right, Mean(every.count - right.count, *less)]
        each = [(one.count * one.squares - one.total**2, max(1, one.count)) for one in kinds]
        deviations = [math.sqrt(found / (count**2 << (2 * UNIT))) for found, count in each]
        return {
            "correct": np.array([right.count, 0]),
            "predictions": np.array([one.count for one in kinds]),
            "mean": np.array([one.mean or 0.0 for one in kinds]),
            "deviation": np.array(deviations),
        }

    def number(self) -> float | None:
        """Return the value over one or more predictions."""
        raise NotImplementedError

    def check(self, row: state_rows.Row, prefix: str) -> None:
        """Raise UsageError if more predictions are correct than there are."""
        if self.correct.count > self.every.count or self.correct.squares > self.every.squares:
            raise state_rows.damaged(f"{prefix}correct is more than {prefix}every")


class Brier(Moments):
    """The mean of (confidence - 1)² over correct predictions, and of confidence² over others."""

    probabilities = True

    def number(self) -> float:
        """Return the exact mean, rounded once."""
        crossed = 2 * (self.correct.total << UNIT) - (self.correct.count << (2 * UNIT))
        return (self.every.squares - crossed) / (self.every.count << (2 * UNIT))


class LogLoss(Moments):
    """The mean of -log(confidence) of correct predictions, and of -log(1 - confidence) of others.

    What is added up are losses, in bits.
    """

    probabilities = True

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        """Return the aggregate with the predictions of a block."""
        every, right = (
            np.clip(one.astype(np.float64), EPSILON, 1 - EPSILON)
            for one in confidences_of(scored, asked, probabilities=True)
        )
        whole, less, correct = (Mean.of(_bits(one)) for one in (1 - every, 1 - right, right))
        total = whole.total - less.total + correct.total
        squares = whole.squares - less.squares + correct.squares
        return self.merge(replace(self, every=Mean(whole.count, total, squares), correct=correct))

    def number(self) -> float:
        """Return the mean in nats."""
        return (self.every.mean or 0.0) * math.log(2)


def _bits(chances: np.ndarray) -> np.ndarray:
    """Return -log2 of chances from 2**-52 to 1, for which `log2` takes numbers up to 2**45."""
    small = chances < 2.0**-26
    return np.asarray(log2(1 / np.where(small, chances * 2.0**26, chances)) + 26.0 * small)


class Separation(Moments):
    """How far the confidences of correct and of wrong predictions lie apart: d′."""

    def number(self) -> float | None:
        """Return d′; None without both kinds, or where neither kind varies.

        Means and variances are exact; their quotient and its root are rounded.
        """
        right, n = self.correct, self.correct.count
        m = self.every.count - n
        if not n or not m:
            return None
        total, squares = self.every.total - right.total, self.every.squares - right.squares
        apart = right.total * m - total * n
        variances = (n * right.squares - right.total**2) * m**2 + (m * squares - total**2) * n**2
        square = 2 * apart * apart
        if not variances or square.bit_length() - variances.bit_length() > 1000:  # no float64
            return None
        return math.sqrt(square / variances) * (1 if apart > 0 else -1)


def _objects(numbers: Iterable[int]) -> np.ndarray:
    return np.array(list(numbers), object)


def _sums(row: state_rows.Row, name: str) -> np.ndarray:
    texts = state_rows.texts(row, name)
    if not all(text.isdecimal() and len(text) <= MOST_DIGITS for text in texts):
        raise state_rows.damaged(f"{name} holds something that is not a sum")
    return _objects(map(int, texts))


@record(frozen=True, eq=False)
class Reliability(Aggregate):
    """How many predictions of each bin of confidence there are and are correct, and the exact sums.

    Bin b, from 0, holds the confidences above b / bins and up to (b + 1) / bins; the first holds 0,
    too.
    """

    needs: ClassVar[Needs] = (Confidences,)
    axes: ClassVar[tuple[str, str]] = ("mean", "accuracy")

    predictions: Counts
    correct: Counts
    # The sum of the confidences of each bin, in units of 2**-1074.
    totals: Annotated[np.ndarray, kind(operator.add, _sums, lambda sums: [str(n) for n in sums])]

    @classmethod
    def init(cls, asked: AggregateSettings) -> Self:
        """Return the aggregate of no prediction."""
        (bins,) = map(int, asked.metric.arguments)
        return cls(np.zeros(bins, np.int64), np.zeros(bins, np.int64), _objects([0] * bins))

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        """Return the aggregate with the predictions of a block."""
        every, correct = confidences_of(scored, asked, probabilities=True)
        bins = len(self.totals)
        in_bins = bin_of(every, bins)
        counts = np.bincount(in_bins, minlength=bins)
        parts = np.split(every[np.argsort(in_bins, kind="stable")], np.cumsum(counts)[:-1])
        totals = _objects(Mean.of(part).total if len(part) else 0 for part in parts)
        right = np.bincount(bin_of(correct, bins), minlength=bins)
        return self.merge(type(self)(counts, right, totals))

    def table(self, totals: Totals) -> dict[str, np.ndarray]:
        """Return the bins with predictions, by column: a reliability diagram."""
        bins = len(self.totals)
        filled = np.flatnonzero(self.predictions)
        counts = self.predictions[filled]
        sums = [self.totals[one] for one in filled.tolist()]
        each = zip(sums, counts.tolist(), strict=True)
        return {
            "above": filled / bins,
            "up to": (filled + 1) / bins,
            "predictions": counts,
            "correct": self.correct[filled],
            "mean": np.array([total / (count << UNIT) for total, count in each]),
            "accuracy": self.correct[filled] / counts,
        }

    def finish(self, totals: Totals) -> Value:
        """Return the expected calibration error; there is none without predictions.

        The share of a bin times the distance of its accuracy and its mean confidence is
        abs(correct - total) / n; these are added exactly.
        """
        count = int(self.predictions.sum())
        each = zip(self.correct.tolist(), self.totals, strict=True)
        off = sum(abs((correct << UNIT) - total) for correct, total in each)
        return Value(off / (count << UNIT) if count else None)

    def check(self, row: state_rows.Row, prefix: str) -> None:
        """Raise UsageError if the bins are not the same, or have more correct than all."""
        names = f"{prefix}predictions", f"{prefix}correct", f"{prefix}totals"
        for name in names[1:]:
            state_rows.same_length(row, names[0], name)
        if (self.correct > self.predictions).any():
            raise state_rows.damaged(f"{names[1]} is more than {names[0]}")


def bin_of(confidences: np.ndarray, bins: int) -> np.ndarray:
    """Return the bin of each confidence from 0 to 1."""
    inner = np.arange(1, bins) / bins
    return np.searchsorted(inner, confidences.astype(np.float64, copy=False))


def confidences_of(
    scored: ScoredBlock, asked: AggregateSettings, probabilities: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the confidences of the predictions that count, and of the correct ones among them.

    InputError if one is not finite, or no probability where it has to be one.
    """
    lists, limit = scored.lists, asked.metric.limit
    every = first_confidences(lists.offsets, lists.confidences, limit)
    low, high = (0, 1) if probabilities else (-np.finfo(np.float64).max, np.finfo(np.float64).max)
    if len(every) and not (low <= every.min() and every.max() <= high):
        bad = (lists.confidences < low) | (lists.confidences > high)
        place = int((bad & (ranks_of(lists.offsets) <= limit)).argmax())
        row = int(np.searchsorted(lists.offsets, place, side="right")) - 1
        wanted = "one from 0 to 1, a probability" if probabilities else "a finite one"
        raise InputError(
            f"{lists.place.at(row).source}: query {id_text(lists.queries, row)} has the "
            f"confidence {lists.confidences[place]}, and {asked.metric.text} needs {wanted}: "
            "rescale the confidences, or leave this metric out"
        )
    return every, correct_of_hits(lists.offsets, scored.hits, lists.confidences, limit)
