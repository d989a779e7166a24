"""GatePower: what the rules of a gate see, and how it reads."""

from dataclasses import dataclass
from typing import NamedTuple

from rankmill.results.answer import Answer
from rankmill.show.tables import Cell, Column, Part, Table, View

POWER = 0.8
"""How often a drop is to be seen."""
_NOTES = (
    "smallest drop: one that the rule fails in 80% of nights; of slices, from the easiest to the "
    "hardest. For a limit of the value it is counted from tonight's value.",
    "false alarms: nights of a year that a rule fails though nothing changed, each night with "
    "other queries of the same kind. The same queries and the same system give none.",
)
_NONE = "none: these data are too few for the rule to fail in 80% of nights, whatever is lost."


class RulePower(NamedTuple):
    """What a rule sees, and how often it errs.

    Attributes
    ----------
    rule : str
    smallest, largest : float or None
        The smallest drop that it fails in 80% of nights: in its slices the smallest and the
        largest of these; None where no drop is seen, or the data do not tell.
    relative : bool
        Whether these are shares of the baseline.
    alarms : float or None
        Expected nights with a false alarm in a year; None if the data do not tell.
    failed, nights : int
        Of so many nights of the history, that many would have failed.
    """

    rule: str
    smallest: float | None
    largest: float | None
    relative: bool
    alarms: float | None
    failed: int
    nights: int


@dataclass(frozen=True, repr=False, eq=False)
class GatePower(Answer):
    """What the rules of a gate see on some data, and how often they err.

    Attributes
    ----------
    rules : list of RulePower
    alarms : float or None
        Expected nights of a year in which any rule fails though nothing changed.
    failed, nights : int
        Of so many nights of the history, that many would have failed by any rule.
    """

    rules: list[RulePower]
    alarms: float | None
    failed: int
    nights: int

    def _view(self) -> View:
        def table() -> Table:
            rows = [
                [one.rule, _drop(one), _alarms(one.alarms), _nights(one.failed, one.nights)]
                for one in self.rules
            ]
            if len(rows) > 1:
                of_all = _alarms(self.alarms), _nights(self.failed, self.nights)
                rows.append(["any of these", "", *of_all])
            titles = ["rule", "smallest drop", "false alarms per year", "would have failed"]
            shown = len(titles) if self.nights else len(titles) - 1
            return Table([Column(one) for one in titles[:shown]], [row[:shown] for row in rows])

        def parts() -> list[Part]:
            blind = any(one.alarms is not None and one.largest is None for one in self.rules)
            return [table(), *_NOTES, *([_NONE] if blind else [])]

        def exact() -> Table:
            rows: list[list[Cell]] = [list(one) for one in self.rules]
            return Table([Column(name) for name in RulePower._fields], rows)

        return View(parts, parts, exact, self.to_dict)


def _drop(one: RulePower) -> str:
    if one.alarms is None:
        return ""
    least, most = (
        "none" if end is None else f"{100 * end:.3g}%" if one.relative else f"{end:.3g}"
        for end in (one.smallest, one.largest)
    )
    return least if least == most else f"{least} to {most}"


def _alarms(alarms: float | None) -> str:
    return "" if alarms is None else f"{alarms:.2g}" if alarms < 10 else f"{alarms:.0f}"


def _nights(failed: int, nights: int) -> str:
    return f"{failed} of the last {nights} nights" if nights else ""
