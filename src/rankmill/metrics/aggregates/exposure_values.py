"""What an exposure comes to: coverage, inequality and concentration, personalization."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from rankmill.columns.elementary import log2
from rankmill.metrics.aggregate import Aggregate, AggregateSettings, Totals, Value
from rankmill.metrics.exposure import Exposure
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.record import Fixed


@dataclass(frozen=True)
class OfExposure(Aggregate):
    """A metric over the exposure that all such metrics share, so that it adds nothing up itself."""

    needs = (Exposure,)
    # Whether it needs the items of the catalogue, those that were hit, and those that are labels.
    whole: ClassVar[bool] = False
    hits: ClassVar[bool] = False
    labels: ClassVar[bool] = False

    limit: Fixed  # the cutoff, or a rank beyond every list

    @classmethod
    def init(cls, asked: AggregateSettings) -> Self:
        """Return the aggregate of a metric."""
        return cls(asked.metric.limit)

    def finish(self, totals: Totals) -> Value:
        """Return the value of the exposure; it has no standard error."""
        return Value(self.value(totals.needs[Exposure]))

    def check_whole(self, totals: Totals) -> None:
        """Raise UsageError if the exposure was not counted within the cutoff."""
        if self.limit not in totals.needs[Exposure].cutoffs:
            raise state_rows.damaged("exposure.cutoffs are not those of its metrics")

    def value(self, exposure: Exposure) -> float | None:
        """Return what the metric is of an exposure; None without one list."""
        raise NotImplementedError


class Coverage(OfExposure):
    """The share of the catalogue that any list shows."""

    whole = True

    def value(self, exposure: Exposure) -> float | None:
        """Return the number of distinct items over that of the catalogue."""
        items = exposure.items
        return sum(exposure.spread(self.limit, inside=True)[1]) / items if items else None


class LabelCoverage(OfExposure):
    """The share of the distinct labels that any list hits."""

    hits = labels = True

    def value(self, exposure: Exposure) -> float | None:
        """Return the number of distinct hits over that of distinct labels."""
        items = exposure.label_items
        return exposure.hits[self.limit] / items if items else None


@dataclass(frozen=True)
class Gini(OfExposure):
    """How unequal the exposure of the items of the catalogue is."""

    whole = True

    less: Fixed = 1  # how many items fewer than all the sum is divided by, 1 or 0

    @classmethod
    def init(cls, asked: AggregateSettings) -> Self:
        """Return the aggregate of a metric."""
        return cls(asked.metric.limit, int(asked.metric.values["of"]))

    def value(self, exposure: Exposure) -> float | None:
        """Return the sum of (2 j - n - 1) c_j by rising count, / (n - less) / all."""
        values, times, total = exposure.spread(self.limit, inside=True)
        items = exposure.items
        if not total or items < 2:
            return 0.0 if total else None
        found, before = 0, items - sum(times)
        for count, many in zip(values, times, strict=True):
            found += count * many * (2 * before + many - items)
            before += many
        return found / ((items - self.less) * total)


class Entropy(OfExposure):
    """The entropy of the exposure, in bits."""

    def value(self, exposure: Exposure) -> float | None:
        """Return the sum of -p log2(p) over the items, of the share p of each."""
        values, times, total = exposure.spread(self.limit)
        if not total:
            return None
        logs = log2(np.array([total / c for c in values])).tolist()
        terms = [m * c / total * log for c, m, log in zip(values, times, logs, strict=True)]
        return math.fsum(terms)


class Concentration(OfExposure):
    """The Herfindahl-Hirschman index of the exposure."""

    def value(self, exposure: Exposure) -> float | None:
        """Return the sum of p**2 over the items, of the share p of each."""
        values, times, total = exposure.spread(self.limit)
        squares = sum(c * c * m for c, m in zip(values, times, strict=True))
        return squares / total**2 if total else None


class Personalization(OfExposure):
    """How little two lists have in common."""

    def value(self, exposure: Exposure) -> float | None:
        """Return 1 - the mean over all pairs of lists of the items that both show, / k."""
        values, times, _ = exposure.spread(self.limit)
        pairs = exposure.lists * (exposure.lists - 1)
        if not pairs:
            return None
        common = sum(c * (c - 1) * m for c, m in zip(values, times, strict=True))
        return (self.limit * pairs - common) / (self.limit * pairs)
