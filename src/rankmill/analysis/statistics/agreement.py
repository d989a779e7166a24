"""How well rankings of the same systems agree: Kendall's tau-b and AP correlation."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Means that differ by no more than this share of the largest one are equal: that much is rounding.
ROUNDING = 2.0**-40


class Correlation(NamedTuple):
    """How well two rankings agree, from -1 to 1; None where either ranks all systems the same."""

    tau_b: float | None
    tau_ap: float | None


def signs_of(values: Sequence[float] | np.ndarray, equal: float | np.ndarray = 0.0) -> np.ndarray:
    """Return the sign of value i minus value j at [..., i, j]; 0 if they differ by up to `equal`.

    The last axis of `values` is the systems; `equal` has an axis of length 1 for each of the two.
    """
    values = np.asarray(values)
    differences = values[..., :, None] - values[..., None, :]
    return np.where(np.abs(differences) <= equal, 0, np.sign(differences)).astype(np.int8)


def order_of(values: Sequence[float]) -> np.ndarray:
    """Return `signs_of` means, where a difference that is only rounding is a tie."""
    return signs_of(values, ROUNDING * max(map(abs, values), default=0.0))


def ranks_of(signs: np.ndarray) -> list[int]:
    """Return the rank of each system: 1 plus the number of systems that are better.

    Examples
    --------
    >>> ranks_of(signs_of([0.2, 0.5, 0.5, 0.1]))
    [3, 1, 1, 4]
    """
    return [1 + int(better) for better in (signs < 0).sum(axis=-1)]


def tau_b(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return Kendall's tau-b of the `signs_of` rankings; NaN where either ranks all the same.

    It is the concordant less the discordant pairs, over the geometric mean of the numbers of pairs
    that are not tied in either ranking. Kendall, The treatment of ties in ranking problems,
    Biometrika 1945.

    Examples
    --------
    >>> float(tau_b(signs_of([3, 2, 1]), signs_of([3, 1, 2])))
    0.3333333333333333
    """
    axes = (-2, -1)
    agreeing = (first * second).sum(axis=axes, dtype=np.int64)
    untied = [np.abs(one).sum(axis=axes, dtype=np.int64) for one in (first, second)]
    known = (untied[0] > 0) & (untied[1] > 0)
    both = np.sqrt(untied[0] * untied[1], where=known, out=np.ones(np.shape(known)))
    return np.where(known, agreeing / both, np.nan)


def tau_ap(first: np.ndarray, second: np.ndarray) -> float | None:
    """Return the AP correlation of two `signs_of` rankings; None if either ranks all the same.

    The AP correlation of a ranking with another is 2 m - 1, where m is a mean over its systems: the
    share of the systems above one that are above it in the other ranking too. So errors at the top
    weigh most (Yilmaz, Aslam & Robertson, A new rank correlation coefficient for information
    retrieval, SIGIR 2008). Neither ranking is the reference here: the result is the mean over both
    directions. With ties it is tau_AP,b of Urbano & Marrero, The treatment of ties in AP
    correlation, ICTIR 2017: systems that share a rank are not above each other, and those that
    share the first one have no term.

    Examples
    --------
    >>> tau_ap(signs_of([3, 2, 1]), signs_of([3, 1, 2]))
    0.5
    >>> tau_ap(signs_of([3, 2, 1]), signs_of([2, 3, 1]))
    0.0
    """
    ways = [_one_way(first, second), _one_way(second, first)]
    known = [way for way in ways if way is not None]
    return sum(known) / 2 if len(known) == 2 else None


def _one_way(listed: np.ndarray, other: np.ndarray) -> float | None:
    above = listed < 0
    counts = above.sum(axis=1)
    right = (above & (other < 0)).sum(axis=1)
    ranked = counts > 0
    shares = (right[ranked] / counts[ranked]).tolist()
    return 2 * math.fsum(shares) / len(shares) - 1 if shares else None


def correlation(first: np.ndarray, second: np.ndarray) -> Correlation:
    """Return both correlations of two `signs_of` rankings."""
    tau = float(tau_b(first, second))
    return Correlation(None if np.isnan(tau) else tau, tau_ap(first, second))
