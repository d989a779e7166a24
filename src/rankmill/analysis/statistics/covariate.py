"""Differences that are adjusted by what was known of each query before: a covariate.

The adjusted difference is the constant of the least-squares regression of the differences on the
covariate less its mean over all queries that it is known of. What the covariate explains is no
noise, so that the interval is narrower: Deng et al., Improving the sensitivity of online controlled
experiments by utilizing pre-experiment data, WSDM 2013 (CUPED).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankmill.analysis.statistics.paired_differences import LARGEST, Fit, Paired, paired_of
from rankmill.errors import InputError
from rankmill.metrics.aggregates.mean import Mean


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

    @property
    def told(self) -> str:
        """What a reader has to know of the adjustment."""
        missing = int(np.isnan(self.values).sum())
        of = f"{self.name} over {self.population:,} queries"
        note = f"differences are adjusted to the mean of {of}; those of slices are not"
        if self.population <= len(self.values):
            note += "; their interval says nothing of queries with another mean"
        if missing:
            note += f"; {missing:,} queries without one count as if they had the mean"
        return note


@dataclass(frozen=True, eq=False)
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
