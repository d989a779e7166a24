"""What a test says."""

from typing import NamedTuple


class Outcome(NamedTuple):
    """The p of a test and the interval that goes with it.

    Attributes
    ----------
    test : str
        The name of the test.
    p : float or None
        The chance of a difference at least as large if there were none; None where the test is not
        defined.
    low, high : float or None
        The ends of the interval of the mean difference; None where the test gives none.
    """

    test: str
    p: float | None
    low: float | None
    high: float | None
