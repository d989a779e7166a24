"""Tails and quantiles of the normal, Student's t and beta distribution, without SciPy.

The relative error is below 1e-12, in the far tails too, as long as these are above 1e-300; that of
the beta distribution, which bounds shares, is below 1e-7.
"""

import math
from functools import lru_cache
from statistics import NormalDist

_STANDARD = NormalDist()
# Stirling's series for log(gamma(a)): sum of c[j] / a**(2 j + 1).
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_SERIES_FROM = 16
_TINY = 1e-300
# Degrees of freedom from which the continued fraction is the less exact of two ways.
_MANY = 300


def normal_tail(z: float) -> float:
    """Return P(Z > z) for a standard normal Z.

    Examples
    --------
    >>> round(normal_tail(1.96), 6)
    0.024998
    """
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def normal_quantile(p: float) -> float:
    """Return the z with P(Z < z) = p, for p between 0 and 1 (Wichura, Applied Statistics 1988)."""
    return _STANDARD.inv_cdf(p)


def t_tail(t: float, freedom: float) -> float:
    """Return P(T > t) for Student's t.

    It is half the incomplete beta function I(x; freedom / 2, 1 / 2) at x = freedom / (freedom +
    t**2), by Lentz's continued fraction (DLMF 8.17.22). With many degrees of freedom this loses
    digits, and an integral of the density replaces it.

    Examples
    --------
    >>> round(t_tail(2.0, 10), 6)
    0.036694
    """
    if t <= 0:
        return 1.0 - t_tail(-t, freedom) if t else 0.5
    if math.isinf(t):
        return 0.0
    if freedom > _MANY:
        return _density(t, freedom) * _integral_beyond(t, freedom)
    a = freedom / 2
    ratio = t / math.sqrt(freedom)
    below = 1.0 / (1.0 + ratio * ratio)  # x
    above = ratio / math.hypot(1.0, ratio)  # the square root of 1 - x
    # x**a (1 - x)**(1/2) / Beta(a, 1/2), where log1p keeps the digits of an x near 1.
    front = math.exp(_log_gamma_step(a) - a * _log_of_one_and_square(ratio)) * above
    front /= math.sqrt(math.pi)
    if below * (a + 2.5) < a + 1.0:
        return 0.5 * front * _beta_fraction(a, 0.5, below) / a
    return 0.5 - front * _beta_fraction(0.5, a, above * above)


def t_quantile(p: float, freedom: float) -> float:
    """Return the t with P(T < t) = p, for p between 0 and 1: Newton's method in log(t).

    Examples
    --------
    >>> round(t_quantile(0.975, 10), 6)
    2.228139
    """
    if p == 0.5:
        return 0.0
    if p < 0.5:
        return -_t_above(p, freedom)
    return _t_above(1.0 - p, freedom)


@lru_cache(1024)  # slices of one size, and several numbers of each of them
def _t_above(tail: float, freedom: float) -> float:
    """Return the positive t with P(T > t) = tail."""
    t = abs(normal_quantile(tail))
    for _ in range(200):
        found = t_tail(t, freedom)
        step = math.log(found / tail) * found / (_density(t, freedom) * t)
        t *= math.exp(max(-2.0, min(2.0, step)))
        if abs(step) < 1e-14:
            break
    return t


def _density(t: float, freedom: float) -> float:
    constant = math.exp(_log_gamma_step(freedom / 2)) / math.sqrt(freedom * math.pi)
    spread = _log_of_one_and_square(t / math.sqrt(freedom))
    return constant * math.exp(-(freedom + 1) / 2 * spread)


def _integral_beyond(t: float, freedom: float) -> float:
    """Return the integral of the density from t on, over the density at t.

    It is the trapezoidal rule after the double exponential substitution t + u with u = exp(s -
    exp(-s)), which converges exponentially (Takahasi & Mori, Publ. RIMS 1974).
    """
    terms = []
    for i in range(-64, 65):
        s = i / 16
        u = math.exp(s - math.exp(-s))
        fall = math.log1p(u * (u + 2 * t) / (freedom + t * t))
        terms.append(math.exp(-(freedom + 1) / 2 * fall) * u * (1 + math.exp(-s)))
    return math.fsum(terms) / 16


def beta_tail(x: float, a: float, b: float) -> float:
    """Return P(X > x) for a beta distributed X, by the fraction that `t_tail` has too.

    Examples
    --------
    >>> round(beta_tail(0.5, 2, 3), 6)
    0.3125
    """
    if x <= 0 or x >= 1:
        return float(x <= 0)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(scale + a * math.log(x) + b * math.log1p(-x))
    if x * (a + b + 2.0) < a + 1.0:
        return 1.0 - front * _beta_fraction(a, b, x) / a
    return front * _beta_fraction(b, a, 1.0 - x) / b


def largest_share(k: float, n: float, tail: float) -> float:
    """Return the share of which k or fewer in n are seen with the probability `tail`.

    It is the upper bound of Clopper & Pearson, Biometrika 1934: the x with P(X > x) = tail of a
    beta distribution of k + 1 and n - k. Neither number need be whole.

    Examples
    --------
    >>> round(largest_share(0, 100, 0.025), 6), round(largest_share(3, 100, 0.025), 6)
    (0.036217, 0.085176)
    """
    a, b = k + 1.0, n - k
    if b < 1 or tail <= 0:
        return 1.0
    if not k:
        return -math.expm1(math.log(tail) / n)
    # The logarithm of the tail is concave, so that Newton's method never steps below the root.
    # Wilson's bound is near it.
    square, share = normal_quantile(tail) ** 2 / n, k / n
    x = share + square / 2 + math.sqrt(square * (share * (1 - share) + square / 4))
    x /= 1 + square
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    for _ in range(200):
        found = max(beta_tail(x, a, b), _TINY)
        density = math.exp(scale + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x))
        step = math.log(found / tail) * found / max(density, _TINY)
        x, last = min(x + step, (1.0 + x) / 2), x
        if abs(x - last) <= 1e-12 * x:
            break
    return x


def _log_gamma_step(a: float) -> float:
    """Return log(gamma(a + 1/2) / gamma(a)) without the loss of digits of a difference."""
    if a < _SERIES_FROM:
        return math.lgamma(a + 0.5) - math.lgamma(a)
    step = a * math.log1p(0.5 / a) - 0.5 + 0.5 * math.log(a)
    return step + _stirling(a + 0.5) - _stirling(a)


def _log_of_one_and_square(ratio: float) -> float:
    return math.log1p(ratio * ratio) if ratio < 1e9 else 2 * math.log(ratio)


def _stirling(a: float) -> float:
    """Return log(gamma(a)) minus (a - 1/2) log(a) - a + log(2 pi) / 2, for a from 16."""
    square = 1.0 / (a * a)
    total = 0.0
    for one in reversed(_STIRLING):
        total = total * square + one
    return total / a


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function by Lentz's method."""
    c = 1.0
    d = 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    fraction = d
    for m in range(1, 1_000_000):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 + term * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + term / c
            c = c if abs(c) > _TINY else _TINY
            fraction *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return fraction
