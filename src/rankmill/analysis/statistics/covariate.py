"""Differences that are adjusted by what was known of each query before: a covariate.

The adjusted difference is the constant of the least-squares regression of the differences on the
covariate less its mean over all queries that it is known of. What the covariate explains is no
noise, so that the interval is narrower: Deng et al., Improving the sensitivity of online controlled
experiments by utilizing pre-experiment data, WSDM 2013 (CUPED).
"""

import math
from typing import NamedTuple

import numpy as np

from rankmill.analysis.statistics.clusters import ClusteredPaired, of_clusters
from rankmill.analysis.statistics.paired_differences import LARGEST, Fit, Paired, paired_of
from rankmill.errors import InputError
from rankmill.metrics.aggregates.mean import Mean, WeightedMean
from rankmill.records import record


class Covariate(NamedTuple):
    """A number of each query, less its mean."""

    name: str
    values: np.ndarray  # NaN where the number is not known
    population: int  # how many queries its mean is over

    @classmethod
    def of(cls, name: str, every: np.ndarray, values: np.ndarray) -> "Covariate":
        """Return the covariate of queries, given that of every query it is known of."""
        known = every[~np.isnan(every)]
        if not np.isfinite(known).all() or (np.abs(known) > LARGEST).any():
            raise InputError(
                f"adjust: {name} holds a number that is infinite or beyond {LARGEST:g}: fix it, or "
                "leave it empty"
            )
        return cls(name, values - (math.fsum(known.tolist()) / max(len(known), 1)), len(known))

    def at(self, rows: np.ndarray) -> "Covariate":
        """Return that of queries at some rows; nothing is known of those at row -1."""
        return self._replace(values=np.append(self.values, math.nan)[rows])

    @property
    def filled(self) -> np.ndarray:
        """The numbers, which are 0 where they are not known: these queries count as they are."""
        found: np.ndarray = np.nan_to_num(self.values)
        return found

    def told(self, weighted: bool) -> str:
        """Return what a reader has to know of the adjustment."""
        missing = int(np.isnan(self.values).sum())
        of = f"mean of {self.name} over {self.population:,} queries"
        if weighted:
            of = f"weighted mean of {self.name} over these queries"
        note = f"differences are adjusted to the {of}; those of slices are not"
        if weighted or self.population <= len(self.values):
            note += "; their interval says nothing of queries with another mean"
        if missing:
            note += f"; {missing:,} queries without one count as if they had the mean"
        return note


@record(frozen=True, eq=False)
class AdjustedPaired(Paired):
    """The differences of queries, the mean of which is adjusted."""

    fit: Fit
    mine: Fit  # of the values of the system
    theirs: Fit  # of those of the baseline

    @classmethod
    def of(cls, values: np.ndarray, base: np.ndarray, covariate: np.ndarray) -> "AdjustedPaired":
        """Return the differences of values from those of the baseline."""
        plain = paired_of(values - base)
        fits = (fit_of(one, covariate) for one in (values - base, values, base))
        return cls(plain.values, plain.counts, *fits)

    @property
    def centre(self) -> Fit:
        """The adjusted mean."""
        return self.fit

    @property
    def reduction(self) -> float | None:
        """By which share the variance of the mean is smaller; None without a variance."""
        plain, mine = self._sums.standard_error, self.standard_error
        return None if not plain or mine is None else 1 - (mine / plain) ** 2


@record(frozen=True, eq=False)
class AdjustedWeighted(ClusteredPaired):
    """The adjusted differences of queries with weights, or in clusters."""

    mine: Fit
    theirs: Fit
    plain: Fit  # the mean of the differences that are not adjusted

    @classmethod
    def over(
        cls,
        values: np.ndarray,
        base: np.ndarray,
        covariate: np.ndarray,
        weights: np.ndarray | None,
        clusters: np.ndarray | None,
    ) -> "AdjustedWeighted":
        """Return the differences of values from those of the baseline."""
        if clusters is None:
            assert weights is not None
            kept = weights > 0
            values, base, covariate, weights = (
                one[kept] for one in (values, base, covariate, weights)
            )

        def mean_of(some: np.ndarray) -> tuple[WeightedMean, np.ndarray]:
            if clusters is not None:
                return of_clusters(some, clusters)
            assert weights is not None
            return WeightedMean.of(some, weights), some * weights

        raw = values - base
        mean, sums = mean_of(adjusted_values(raw, covariate, weights))
        means = [mean_of(adjusted_values(one, covariate, weights))[0] for one in (values, base)]
        means.append(mean_of(raw)[0])
        fits = (Fit(one.mean, one.standard_error, one.freedom) for one in means)
        return cls(mean, paired_of(sums), paired_of(raw), *fits)

    @property
    def reduction(self) -> float | None:
        """By which share the variance of the mean is smaller; None without a variance."""
        plain, mine = self.plain.standard_error, self.standard_error
        return None if not plain or mine is None else 1 - (mine / plain) ** 2


Adjusted = AdjustedPaired | AdjustedWeighted


def adjusted_values(
    values: np.ndarray, covariate: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """Return values whose mean, with its usual error, is the adjusted mean with its error.

    They are that mean, and what each query adds to the error of the constant of the regression. The
    weights of queries that do not count are not known: with weights, the constant is taken at the
    weighted mean of the covariate.

    Examples
    --------
    >>> values, covariate = np.array([1.0, 2.0, 3.0, 5.0]), np.array([-1.0, 0.0, 1.0, 2.0])
    >>> found = adjusted_values(values, covariate, None)
    >>> round(float(found.mean()), 12) == round(fit_of(values, covariate).mean, 12)
    True
    """
    of = np.ones(len(values)) if weights is None else weights
    total = math.fsum(of.tolist())

    def mean(some: np.ndarray) -> float:
        return math.fsum((of * some).tolist()) / total

    if len(values) < 3 or covariate.min() == covariate.max():
        return values
    middle, centre = mean(covariate), mean(values)
    apart = covariate - middle
    square = mean(apart**2)
    slope = mean(apart * (values - centre)) / square
    residuals = values - centre - slope * apart
    away = middle if weights is None else 0.0
    found: np.ndarray = centre - slope * away + residuals * (1 - away * apart / square)
    return found


def fit_of(values: np.ndarray, covariate: np.ndarray) -> Fit:
    """Return the constant of the least-squares regression of values on a covariate.

    No number depends on the order of queries.

    Examples
    --------
    >>> found = fit_of(np.array([1.0, 2.0, 3.0, 5.0]), np.array([-1.0, 0.0, 1.0, 2.0]))
    >>> round(found.mean, 12), round(found.standard_error, 6), found.freedom
    (2.1, 0.212132, 2.0)
    """
    plain, n = Mean.of(values), len(values)
    if n < 3 or covariate.min() == covariate.max() or not plain.standard_error:
        return Fit(plain.mean, plain.standard_error, plain.freedom)
    mean = plain.mean or 0.0
    middle = math.fsum(covariate.tolist()) / n
    apart = covariate - middle
    squares = math.fsum((apart**2).tolist())
    slope = math.fsum((apart * (values - mean)).tolist()) / squares
    residuals = values - mean - slope * apart
    variance = math.fsum((residuals**2).tolist()) / (n - 2)
    error = math.sqrt(variance * (1 / n + middle**2 / squares))
    return Fit(mean - slope * middle, error, n - 2.0)
