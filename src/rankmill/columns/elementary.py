"""Correctly rounded logarithms and powers of 2, which have the same bits on every machine.

The functions of NumPy and of C libraries sometimes miss the nearest float64, and they differ from
each other. Here a value is the sum of a pair of float64. The pair has about 30 digits and is
rounded once at the end. Only + − × / are used, because IEEE 754 defines their results exactly.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

Pair = tuple[np.ndarray, np.ndarray]

_STEPS = 64  # number of entries in a table; a short series gives the values between two entries
_BITS = 128  # number of fraction bits in the integers from which the constants are computed
_FIRST = 1024  # number of ranks in the first table
_BLOCK = 1 << 13  # numbers computed at a time; their intermediate results fit in the CPU cache

_discounts = np.zeros(0)


def discounts(longest: int) -> np.ndarray:
    """log2(rank + 1) for ranks 0 to `longest`, as a read-only view of a shared table.

    Examples
    --------
    >>> discounts(3)
    array([0.       , 1.       , 1.5849625, 2.       ])
    """
    global _discounts
    table = _discounts
    if longest >= len(table):
        # Later blocks may hold longer lists. The table grows by at least a quarter, which keeps the
        # total work linear.
        size = max(longest + 1, len(table) + len(table) // 4, _FIRST)
        more = log2(np.arange(len(table) + 1, size + 1, dtype=np.float64))
        table = np.concatenate([table, more])
        table.flags.writeable = False
        _discounts = table  # no lock is needed: two threads at once would compute the same values
    return table[: longest + 1]


def log2(numbers: np.ndarray) -> np.ndarray:
    """log2 of float64 numbers from 1 to 2**45.

    Examples
    --------
    >>> log2(np.array([1.0, 10.0, 1024.0]))
    array([ 0.        ,  3.32192809, 10.        ])
    """
    return _blockwise(_log2, numbers)


def exp2(numbers: np.ndarray) -> np.ndarray:
    """2**x of float64 numbers from −1,000 to 1,000; exact for whole numbers.

    Examples
    --------
    >>> exp2(np.array([-1.0, 0.0, 0.5, 10.0]))
    array([5.00000000e-01, 1.00000000e+00, 1.41421356e+00, 1.02400000e+03])
    """
    floors = np.floor(numbers)
    powers = np.ldexp(1.0, floors.astype(np.int32))
    between = floors != numbers
    if between.any():
        powers[between] = _blockwise(_exp2, numbers[between])
    return np.asarray(powers)


def expm1(numbers: np.ndarray) -> np.ndarray:
    """e**x − 1 of float64 numbers from −0.005 to 0.005.

    Examples
    --------
    >>> expm1(np.array([0.0, 0.001, 1e-20]))
    array([0.00000000e+00, 1.00050017e-03, 1.00000000e-20])
    """
    return _blockwise(lambda block: _series((block, np.zeros(1)))[0], numbers)


def _blockwise(function: Callable[[np.ndarray], np.ndarray], numbers: np.ndarray) -> np.ndarray:
    out = np.empty(len(numbers))
    for start in range(0, len(numbers), _BLOCK):
        out[start : start + _BLOCK] = function(numbers[start : start + _BLOCK])
    return out


def _log2(numbers: np.ndarray) -> np.ndarray:
    """log2 as the exponent + log2 of the step below + 2 / ln(2) · atanh(s) for the remainder."""
    (logarithms, rests), factor, _ = _logarithms()
    mantissa, exponent = np.frexp(numbers)
    scaled = mantissa * (2 * _STEPS)
    step = np.floor(scaled)
    s = _divide((scaled - step, np.zeros(1)), scaled + step)
    square = _multiply(s, s)
    cube = _multiply(s, square)
    head = square[0]
    tail = cube[0] * head * (1 / 5 + head * (1 / 7 + head * (1 / 9 + head / 11)))
    cube = _divide(cube, 3.0)
    series = _add(s, (cube[0], cube[1] + tail))
    at = step.astype(np.int64) - _STEPS
    total = _add((logarithms[at], rests[at]), _multiply(series, factor))
    return _add((exponent - 1.0, np.zeros(1)), total)[0]


def _exp2(numbers: np.ndarray) -> np.ndarray:
    """2**number as T · exp(x), with T = 2**(the nearest step) and x = the remainder · ln(2)."""
    steps = np.rint(numbers * _STEPS)
    x = _multiply((numbers - steps / _STEPS, np.zeros(1)), _logarithms()[2])
    whole, at = np.divmod(steps.astype(np.int32), _STEPS)
    powers, rests = _roots()
    power = powers[at], rests[at]
    return np.asarray(np.ldexp(_add(power, _multiply(power, _series(x)))[0], whole))


def _series(x: Pair) -> Pair:
    """exp(x) − 1 for x near 0."""
    square = _multiply(x, x)
    cube = _divide(_multiply(x, square), 6.0)
    head = x[0]
    tail = 1 / 24 + head * (1 / 120 + head * (1 / 720 + head * (1 / 5040 + head / 40320)))
    tail = tail * square[0] * square[0]
    return _add(_add(x, (square[0] / 2, square[1] / 2)), (cube[0], cube[1] + tail))


def _add(a: Pair, b: Pair) -> Pair:
    total = a[0] + b[0]
    part = total - a[0]
    return _normal(total, (a[0] - (total - part)) + (b[0] - part) + (a[1] + b[1]))


def _multiply(a: Pair, b: Pair) -> Pair:
    product, error = _product(a[0], b[0])
    return _normal(product, error + (a[0] * b[1] + a[1] * b[0]))


def _divide(a: Pair, b: np.ndarray | float) -> Pair:
    quotient = a[0] / b
    product, error = _product(quotient, b)
    return _normal(quotient, ((a[0] - product) - error + a[1]) / b)


def _product(a: np.ndarray, b: np.ndarray | float) -> Pair:
    """The rounded product and its rounding error (Dekker); exact, because halves have 26 bits."""
    product = a * b
    (high, low), (top, rest) = _halves(a), _halves(b)
    return product, ((high * top - product) + high * rest + low * top) + low * rest


def _halves(a: np.ndarray | float) -> tuple[Any, Any]:
    scaled = a * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def _normal(high: np.ndarray, low: np.ndarray) -> Pair:
    total = high + low
    return total, low - (total - high)


@cache
def _logarithms() -> tuple[Pair, Pair, Pair]:
    """log2(1 + i / 64) for each step, 2 / ln(2), and ln(2)."""
    natural = [0]
    for step in range(_STEPS, 2 * _STEPS):  # ln(1 + 1/t) = 2 atanh(1 / (2t + 1))
        odd = 2 * step + 1
        power, terms, count = (2 << _BITS) // odd, 0, 1
        while power:
            terms += power // count
            power //= odd * odd
            count += 2
        natural.append(natural[-1] + terms)
    ln2 = natural.pop()
    logarithms = _pairs([(one << _BITS) // ln2 for one in natural])
    return logarithms, _pairs([(2 << 2 * _BITS) // ln2]), _pairs([ln2])


@cache
def _roots() -> Pair:
    """2**(i / 64) for each step."""
    root = 2 << _BITS
    for _ in range(_STEPS.bit_length() - 1):
        root = math.isqrt(root << _BITS)
    powers = [1 << _BITS]
    for _ in range(_STEPS - 1):
        powers.append(powers[-1] * root >> _BITS)
    return _pairs(powers)


def _pairs(fixed: list[int]) -> Pair:
    """The numbers fixed / 2**128 as pairs of float64."""
    one = 1 << _BITS
    high = [value / one for value in fixed]
    low = [(value - int(h * one)) / one for value, h in zip(fixed, high, strict=True)]
    return np.array(high), np.array(low)
