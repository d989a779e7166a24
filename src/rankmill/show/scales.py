"""Numbers on a page: how they read, and where they stand on an axis."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Scale(NamedTuple):
    """The ends of an axis, the numbers that are marked on it, and whether it is logarithmic."""

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def share(self, value: float) -> float:
        """Return where a value stands: 0 at the low end, 1 at the high one, and not beyond."""
        low, high = self.low, self.high
        if self.log:
            low, value, high = (math.log10(max(one, self.low)) for one in (low, value, high))
        return min(max((value - low) / (high - low), 0.0), 1.0)

    def holds(self, value: float) -> bool:
        """Return whether a value is within the axis."""
        return self.low <= value <= self.high


def scale_of(
    values: Iterable[float | None], *, most: int = 5, include: Sequence[float] = ()
) -> Scale:
    """Return an axis with round ends for values, with `most` ticks at most but one.

    Examples
    --------
    >>> scale_of([0.21, 0.387])
    Scale(low=0.2, high=0.4, ticks=(0.2, 0.25, 0.3, 0.35, 0.4), log=False)
    """
    known = [one for one in (*values, *include) if one is not None and math.isfinite(one)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        room = abs(low) / 10 or 1.0
        low, high = low - room, high + room
    step = _round_step((high - low) / most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = 3 - math.floor(math.log10(step))
    ticks = tuple(round(i * step, digits) for i in range(first, last + 1))
    return Scale(ticks[0], ticks[-1], ticks)


def scale_of_counts(most: float) -> Scale:
    """Return a logarithmic axis for counts of 1 to `most`, with powers of ten.

    Examples
    --------
    >>> scale_of_counts(120)
    Scale(low=0.6, high=204.0, ticks=(1, 10, 100), log=True)
    """
    ticks = tuple(10**power for power in range(math.floor(math.log10(max(most, 10))) + 1))
    return Scale(0.6, 1.7 * max(most, 10), ticks, log=True)


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 2.5 and 5 times a power of ten that is at least `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(one * power for one in (1, 2, 2.5, 5, 10) if one * power >= least * (1 - 1e-9))


def tick_texts(scale: Scale, *, percent: bool = False, signed: bool = False) -> list[str]:
    """Return the ticks of an axis as texts, with the decimals that tell them apart."""
    factor = 100 if percent else 1
    step = (scale.ticks[1] - scale.ticks[0]) * factor
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if decimals <= 5 and round(step * 10**decimals, 6) != round(step * 10**decimals):
        decimals += 1
    if decimals > 5:
        shown = distinct_texts([one * factor for one in scale.ticks])
    else:
        shown = [_minus(f"{one * factor:,.{decimals}f}") for one in scale.ticks]
    plus = ["+" if signed and one > 0 else "" for one in scale.ticks]
    end = "%" if percent else ""
    return [f"{before}{text}{end}" for before, text in zip(plus, shown, strict=True)]


def distinct_texts(values: Sequence[float]) -> list[str]:
    """Return values along an axis as texts, with at least two digits and as many as differ.

    Examples
    --------
    >>> distinct_texts([0.051, 12.3, 157.3]), distinct_texts([100.1, 100.4])
    (['0.051', '12', '157'], ['100.1', '100.4'])
    """
    texts: list[str] = []
    for digits in range(2, 19):
        texts = [_significant(one, digits) for one in values]
        if len(set(texts)) == len(set(values)):
            break
    return texts


def _significant(value: float, digits: int) -> str:
    """Return a number as text, with an exponent only where its zeros would be many."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}".replace("-0", "0")
    exponent = math.floor(math.log10(abs(value)))
    if -5 <= exponent < max(6, digits):
        return _minus(f"{value:,.{max(0, digits - 1 - exponent)}f}")
    mantissa, power = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(power)}".replace("-", "−")


def number(value: float | None, digits: int = 4) -> str:
    """Return a value of a metric as text."""
    if value is None:
        return "none"
    return _minus(f"{value:.{digits}g}" if abs(value) < 1e-4 else f"{value:.{digits}f}")


def half_width(half: float | None) -> str:
    """Return half the width of an interval as text: two digits say enough."""
    if half is None:
        return ""
    return f"±{_significant(half, 2)}"


def signed(value: float | None) -> str:
    """Return a signed difference as text: three digits say enough."""
    if value is None:
        return ""
    if value == 0:
        return "0"
    return _minus(f"{value:+.{min(12, max(0, 2 - math.floor(math.log10(abs(value)))))}f}")


def percent(share: float, *, sign: bool = False) -> str:
    """Return a share in percent, with about two digits.

    Examples
    --------
    >>> percent(0.0417), percent(0.5), percent(0.00042), percent(0), percent(-0.2, sign=True)
    ('4.2%', '50%', '0.042%', '0%', '−20%')
    """
    size = abs(100 * share)
    decimals = 0 if size == 0 or size >= 10 else 1 - math.floor(math.log10(size))
    plus = "+" if sign and share else ""
    return _minus(f"{100 * share:{plus}.{min(decimals, 6)}f}%")


def count(value: float) -> str:
    """Return a whole number as text."""
    return f"{value:,.0f}"


def _minus(text: str) -> str:
    return text.replace("-", "−", 1) if text.startswith("-") else text
