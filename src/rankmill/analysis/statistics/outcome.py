"""What a test says, and how several p are corrected for having been looked at together."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

Ordered = list[float]


class Tested(NamedTuple):
    """What one test says of a difference; None where it says nothing.

    Attributes
    ----------
    p, corrected_p : float or None
        The p-value, and the one that is corrected over all metrics and systems. Of a margin, what
        is corrected is the larger one of p and of the chance that the range of the metric leaves to
        queries that were not seen.
    low, high : float or None
        The ends of the interval of the difference, which is not corrected.
    direction : int
        1, 0 or -1: the sign of what the test looks at, which is the mean, or for "wilcoxon" the
        sum of ranks. 0 for tests of a margin.
    """

    p: float | None
    corrected_p: float | None = None
    low: float | None = None
    high: float | None = None
    direction: int = 0


def _holm(ps: Ordered) -> Ordered:
    """Holm (1979): the i-th smallest p times m - i + 1, and never below an earlier one."""
    corrected, largest = [], 0.0
    for i, p in enumerate(ps):
        largest = max(largest, min(1.0, p * (len(ps) - i)))
        corrected.append(largest)
    return corrected


def _bh(ps: Ordered) -> Ordered:
    """Benjamini and Hochberg (1995): the i-th smallest p times m / i, at most any later one."""
    corrected, smallest = [], 1.0
    for i in range(len(ps), 0, -1):
        smallest = min(smallest, ps[i - 1] * len(ps) / i)
        corrected.append(smallest)
    return corrected[::-1]


def _none(ps: Ordered) -> Ordered:
    """No correction."""
    return ps


CORRECTIONS: dict[str, Callable[[Ordered], Ordered]] = {
    "holm": _holm,
    "bh": _bh,
    "none": _none,
}


def correct(ps: Sequence[float | None], method: str = "holm") -> list[float | None]:
    """Return the p corrected for their number; a None stays None and is not counted.

    "holm" bounds the chance of any false finding (Holm, A simple sequentially rejective multiple
    test procedure, Scand. J. Statist. 1979); "bh" bounds the expected share of false ones among the
    findings (Benjamini & Hochberg, J. R. Statist. Soc. B 1995).

    Examples
    --------
    >>> correct([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    order = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    corrected: list[float | None] = [None] * len(ps)
    values = CORRECTIONS[method]([p for p, _ in order])
    for (_, place), value in zip(order, values, strict=True):
        corrected[place] = value
    return corrected
