"""A trend: a metric over the runs of a history that count the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from rankmill.nightly.runs.drift import Drift
from rankmill.nightly.runs.runs import Run

# So many runs are named where they are left out.
NAMED = 3


class TrendPoint(NamedTuple):
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
    points : list of TrendPoint
        In the order of time; never empty. Runs without a verdict are among them, without a value.
    drift : Drift or None
        How far the last value is from those before it; None if there are too few.
    note : str
        Which runs were left out as they count otherwise; "" if none was.
    """

    metric: str
    system: str | None
    points: list[TrendPoint]
    drift: Drift | None
    note: str = ""

    @property
    def last(self) -> TrendPoint:
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


def these(runs: Sequence[Run], why: str) -> str:
    """Return which runs are left out, and why."""
    names = ", ".join(run.id for run in runs[-NAMED:])
    more = f" and {len(runs) - NAMED:,} more" if len(runs) > NAMED else ""
    one = "this run counts" if len(runs) == 1 else f"these {len(runs):,} runs count"
    return f"{one} otherwise ({why}): {names}{more}"


def otherwise(rules: str, asked: str) -> str:
    """Return what differs between two ways to count."""
    one, other = json.loads(rules), json.loads(asked)
    names = [name for name in {**other, **one} if one.get(name) != other.get(name)]
    return ", ".join(f"{name} is {_said(one, name)}, not {_said(other, name)}" for name in names)


def _said(rules: dict[str, Any], name: str) -> str:
    value = rules.get(name)
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)
