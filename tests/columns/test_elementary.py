"""Logarithms and powers of 2: correctly rounded, hence the same bits on every machine."""

from __future__ import annotations

import hashlib
import math
import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from rankmill.columns import elementary
from rankmill.columns.elementary import discounts, exp2, expm1, log2
from rankmill.matching.label_lists import powers

pytestmark = pytest.mark.small

RANKS = 1 << 18
BITS = 200  # of the integers that references are computed with


def exponential(x: Fraction) -> Fraction:
    """e**x for -1 < x < 1, to some 200 bits, from its series."""
    term, total, count = 1 << BITS, 0, 0
    while term:
        total += term
        count += 1
        term = term * x.numerator // (x.denominator * count)
        if term == -1:
            break
    return Fraction(total, 1 << BITS)


def natural_logarithm(x: Fraction) -> Fraction:
    """ln(x) for 1 <= x <= 2, to some 200 bits, by Newton's steps from a float64."""
    y = Fraction(math.log(x))
    for _ in range(3):
        y += x / exponential(y) - 1
        y = Fraction(round(y * (1 << BITS)), 1 << BITS)
    return y


LN2 = natural_logarithm(Fraction(2))


def true_log2(number: int) -> float:
    whole = number.bit_length() - 1
    return float(whole + natural_logarithm(Fraction(number, 1 << whole)) / LN2)


def true_exp2(x: float) -> float:
    whole = math.floor(x)
    return float(Fraction(2) ** whole * exponential((Fraction(x) - whole) * LN2))


def wrong(function: Callable[..., np.ndarray], truth: Callable[..., float], xs: list) -> list:
    """Return the numbers for which a function does not return the nearest float64."""
    found = function(np.array(xs, np.float64)).tolist()
    return [(x, y) for x, y in zip(xs, found, strict=True) if y != truth(x)]


def test_the_bits_of_discounts_are_these() -> None:
    digest = hashlib.sha256(discounts(RANKS).astype("<f8").tobytes()).hexdigest()
    assert digest == "d52a37a8e72c6b203efc77e05ec88e050cd0cc9ce8603f1097c8286e60956a5c"


def test_logarithms_are_rounded_correctly() -> None:
    draw = random.Random(1)
    # Where the C library or NumPy's vector code is wrong; all sizes; the ends of each interval.
    xs = [1621, 7957, 15914, 28599, *range(1, 300), *(2**i for i in range(46))]
    xs += [int(2 ** draw.uniform(0, 45)) for _ in range(700)]
    xs += [(step << 20) + more for step in range(64, 128) for more in (-1, 1)]
    assert wrong(log2, true_log2, xs) == []


def test_powers_are_rounded_correctly() -> None:
    draw = random.Random(2)
    xs = [draw.uniform(0, 8) for _ in range(400)] + [draw.uniform(-300, 300) for _ in range(200)]
    xs += [i / 128 + draw.choice([-1, 0, 1]) * 2.0**-40 for i in range(-200, 200)]
    assert wrong(exp2, true_exp2, xs) == []
    tiny = [draw.choice([-1, 1]) * 10 ** draw.uniform(-30, -2.4) for _ in range(400)]
    assert wrong(expm1, lambda x: float(exponential(Fraction(x)) - 1), tiny) == []


def test_powers_of_whole_numbers_are_exact() -> None:
    whole = np.arange(-1000, 1000)
    assert exp2(whole.astype(np.float64)).tolist() == [math.ldexp(1, int(i)) for i in whole]


@pytest.mark.parametrize("gain", [1e-20, 1e-9, 0.000999, 0.001, 0.5, 1.0, 3.0, 3.5, 4.25, 60.0])
def test_exponential_gains(gain: float) -> None:
    expected = 2**gain - 1 if gain >= 1e-3 else math.expm1(gain * math.log(2))
    (found,) = powers(np.array([gain]))
    assert found == pytest.approx(expected, rel=2 * sys.float_info.epsilon)
    if gain == int(gain):
        assert found == expected


def test_discounts_grow_as_asked_for_from_any_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = log2(np.arange(1.0, 40_002))
    for order in ([40_000, 3, 1024, 1023, 0], [0, 1500, 1700, 40_000]):
        monkeypatch.setattr(elementary, "_discounts", np.zeros(0))
        for longest in order:
            assert np.array_equal(discounts(longest), whole[: longest + 1])
    monkeypatch.setattr(elementary, "_discounts", np.zeros(0))
    lengths = [17 * i for i in range(2000)]
    with ThreadPoolExecutor(8) as pool:
        for length, found in zip(lengths, pool.map(discounts, lengths), strict=True):
            assert len(found) == length + 1
            assert found[-1] == whole[length]


def test_discounts_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(elementary, "_discounts", np.zeros(0))
    monkeypatch.setattr(elementary, "log2", lambda xs: (asked.append(len(xs)), log2(xs))[1])
    for longest in range(0, 20_000, 10):
        discounts(longest)
    assert len(asked) < 20
    assert sum(asked) < 30_000
    assert not discounts(5).flags.writeable
