"""The values of metrics: what their kernels count, over their divisors."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankmill.errors import UsageError
from rankmill.matching.hits import (
    Hits,
    among_judged,
    as_levels,
    as_powers,
    as_relevant,
    in_units,
    of_least_gain,
    of_relevant,
)
from rankmill.matching.label_lists import gain_map, least_gain, worth
from rankmill.matching.order import Runs, runs_of
from rankmill.metrics.base import GAIN, REL, Metric
from rankmill.metrics.needs import side_of
from rankmill.metrics.quantities import counted, divided_by
from rankmill.semantics.choices import DEFAULT, Choices

# What several metrics may ask for: by rel, gains, and whether unjudged items are dropped.
Asked = tuple[float | None, str, bool]

# The offsets of lists, and columns with a value for each of their predictions.
Beside = tuple[np.ndarray, Mapping[str, np.ndarray]]


class Matched:
    """Lists that were matched with labels, or with all judged items, and what metrics make of them.

    `rel` of a metric is in units of the gains before the gain function. With `ties`, the offsets
    and confidences of the lists, values are expected ones over all orders of equal confidences;
    `hits` must hold those of all ranks then. `beside` is what users' metrics see of columns.
    """

    def __init__(
        self,
        hits: Hits,
        semantics: Choices = DEFAULT,
        gain_function: str = "linear",
        ties: tuple[np.ndarray, np.ndarray] | None = None,
        beside: Beside | None = None,
    ) -> None:
        self._hits, self._semantics, self._beside = hits, semantics, beside
        self._gain_function, self._ties = gain_function, ties
        self._derived: dict[Asked, Hits] = {}
        self._runs: dict[Asked, Runs] = {}

    def hits(self, metric: Metric) -> Hits:
        """The hits that a metric counts: see ``rel`` and ``needs_judged`` of `MetricSpec`."""
        asked = self._asked(metric)
        if asked not in self._derived:
            self._derived[asked] = self._derive(*asked)
        return self._derived[asked]

    def values(self, metric: Metric) -> np.ndarray:
        """The value of a metric per query, float64[n]: what its kernel counts, over its divisor.

        It is NaN where the metric has none, as it may have without predictions or labels.
        """
        spec, counts = metric.spec, self.counts(metric)
        if spec.divisor is not None:
            divisor = self.divisors(metric)
            counts = np.asarray(counts / np.where(divisor > 0, divisor, 1))
        hits = self.hits(metric)
        if spec.counts_empty and spec.better != "neither":
            counts[hits.prediction_counts == 0] = spec.worst
        if spec.counts_empty and spec.without_labels == "refused":
            counts[hits.label_counts == 0] = np.nan
        return counts

    def divisors(self, metric: Metric) -> np.ndarray:
        """What the metric divides by per query, which is 0 where there is nothing to divide by."""
        return divided_by(self.hits(metric), metric, self._semantics)

    def counts(self, metric: Metric) -> np.ndarray:
        """What the kernel of a metric counts per query, float64[n]."""
        spec, hits = metric.spec, self.hits(metric)
        chosen = spec.chosen(self._semantics) if spec.chosen else ()
        how: Any = *metric.arguments, *chosen, *self._columns(metric, hits)
        if self._ties is None or spec.expected is None:
            return counted(spec.kernel or "", hits, metric.limit, *how)
        asked = self._asked(metric)
        if asked not in self._runs:
            self._runs[asked] = runs_of(hits, *self._ties)
        return counted(spec.expected, hits, metric.limit, *how, runs=self._runs[asked])

    def _columns(self, metric: Metric, hits: Hits) -> list[np.ndarray]:
        """The offsets of the lists and the columns that a user's metric sees, if it sees any."""
        if not metric.spec.columns:
            return []
        if self._beside is None:
            raise UsageError(f"{metric.text} sees columns, which are not read here: use evaluate")
        offsets, columns = self._beside
        at_hits = hits.places(offsets)
        found = ((one, columns[one]) for one in metric.spec.columns)
        return [offsets, *(v[at_hits] if side_of(n) == "hit" else v for n, v in found)]

    def _asked(self, metric: Metric) -> Asked:
        spec = metric.spec
        if GAIN.name in dict(metric.given):
            return metric.rel, "powers", metric.judged_only
        if (
            "ideal_dcg" in spec.fields
            and self._semantics.ideal_dcg == "k"
            and metric.k is not None
            and gain_map(self._gain_function)
        ):
            return metric.rel, "units", metric.judged_only
        relevant = spec.gains == "given" and spec.needs_judged and REL in spec.parameters
        return metric.rel, "relevant" if relevant else spec.gains, metric.judged_only

    def _derive(self, rel: float | None, gains: str, judged_only: bool) -> Hits:
        every = among_judged(self._hits) if judged_only else self._hits
        # Any gain above 0 will do if there is no rel.
        least = 5e-324 if rel is None else least_gain(rel, self._gain_function)
        if gains == "relevant":
            return as_relevant(every, least)
        if gains == "levels":
            return as_levels(every, least)
        if gains == "whole":
            return of_relevant(every, least)
        if gains == "powers":
            # A map says what stands in for 2**g - 1.
            return as_powers(every) if self._gain_function == "linear" else every
        found = every if rel is None else of_least_gain(every, least)
        if gains == "units":  # the labels of the ideal list are of gain 1
            return in_units(found, float(worth(np.ones(1), self._gain_function)[0]))
        return found
