"""Tails and quantiles of the normal, Student's t and gamma distribution, by SciPy.

SciPy takes a third of a second to import, so only what needs a tail imports it.
"""

import math
from functools import lru_cache


def normal_tail(z: float) -> float:
    """Return P(Z > z) for a standard normal Z.

    Examples
    --------
    >>> round(normal_tail(1.96), 6)
    0.024998
    """
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def t_tail(t: float, freedom: float) -> float:
    """Return P(T > t) for Student's t.

    Examples
    --------
    >>> round(t_tail(2.0, 10), 6)
    0.036694
    """
    from scipy.special import stdtr

    return float(stdtr(freedom, -t))


@lru_cache(1024)  # slices of one size, and several numbers of each of them
def t_quantile(p: float, freedom: float) -> float:
    """Return the t with P(T < t) = p, for p between 0 and 1.

    Examples
    --------
    >>> round(t_quantile(0.975, 10), 6)
    2.228139
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, p))


def gamma_tail(x: float, shape: float, skewness: float) -> float:
    """Return P(X > x) of a gamma distribution turned and shifted to mean 0 and variance 1.

    Its skewness is 2 / sqrt(shape), with the sign of `skewness` (Pearson's type III).

    Examples
    --------
    >>> round(gamma_tail(1.0, 1.0, 2.0), 6) == round(math.exp(-2), 6)
    True
    """
    from scipy.special import gammainc, gammaincc

    place = max(shape + x * math.copysign(math.sqrt(shape), skewness), 0.0)
    return float(gammaincc(shape, place) if skewness > 0 else gammainc(shape, place))


def gamma_quantile(tail: float, shape: float, skewness: float) -> float:
    """Return the x of which `gamma_tail` is `tail`.

    Examples
    --------
    >>> round(gamma_tail(gamma_quantile(0.025, 9.0, -1.0), 9.0, -1.0), 6)
    0.025
    """
    from scipy.special import gammainccinv, gammaincinv

    place = (gammainccinv if skewness > 0 else gammaincinv)(shape, tail)
    return float(math.copysign((place - shape) / math.sqrt(shape), skewness * (place - shape)))
