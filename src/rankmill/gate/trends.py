"""A trend: a metric over the runs of a history that count the same."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from rankmill.gate.drift import Drift
from rankmill.gate.runs import Run

# So many runs are named where they are left out.
NAMED = 3


class Point(NamedTuple):
    """A run of a trend: what the metric was, and how far it moved from the run before."""

    run: Run
    value: float | None
    standard_error: float | None
    queries: int | None
    change: float | None


class Trend(NamedTuple):
    """A metric over the runs that count the same.

    Attributes
    ----------
    metric : str
    system : str or None
    points : list of Point
        In the order of time; never empty. Runs without a verdict are among them, without a value.
    drift : Drift or None
        How far the last value is from those before it; None if there are too few.
    note : str
        Which runs were left out as they count otherwise; "" if none was.
    """

    metric: str
    system: str | None
    points: list[Point]
    drift: Drift | None
    note: str = ""

    @property
    def last(self) -> Point:
        """The newest run."""
        return self.points[-1]


class Recorded(Protocol):
    """What is shown of a history beside its trends."""

    @property
    def name(self) -> str:
        """Its folder."""

    @property
    def unjudged(self) -> list[Run]:
        """The runs without a verdict."""

    def __len__(self) -> int:
        """How many runs there are."""
