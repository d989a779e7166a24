"""gate_power() says what the rules of a gate would see on these data, and how often they err."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from rankmill.analysis.compare.comparison_request import settings_of
from rankmill.analysis.compare.queries.join import Reading
from rankmill.analysis.statistics.distributions import t_tail
from rankmill.engine.first_pass import Progress
from rankmill.engine.job import parse_job
from rankmill.nightly.gate.gate import measured
from rankmill.nightly.gate.gate_request import Rules, asked_of, metrics_asked
from rankmill.nightly.gate.judge import cases_of, confidence_of_each, finite
from rankmill.nightly.rules.detection import RuleTest, detected, test_of
from rankmill.nightly.rules.rules import Rule, percent
from rankmill.records import record
from rankmill.results.answer import Answer
from rankmill.semantics.semantics import Counting
from rankmill.show.tables import Cell, Column, Part, Table, View
from rankmill.sources.nouns import Catalogue, Labels, Predictions
from rankmill.sources.roles.source import MEMORY

YEAR = 365
_NOTES = (
    "smallest drop: one that the rule fails in 80% of nights; of slices, from the easiest to the "
    "hardest. For a limit of the value it is counted from tonight's value, and for a series it is "
    "one that is found by its tenth night.",
    "false alarms: nights of a year that a rule fails though nothing changed, each night with "
    "other queries of the same kind. The same queries and the same system give none.",
    "price: of n queries, a verdict needs a mean beyond the limit by 3.7/n of the range of the "
    "metric at least, and by 6.7/n in one of 20 slices, as queries that were not seen may differ.",
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
    """

    rule: str
    smallest: float | None
    largest: float | None
    relative: bool
    alarms: float | None


@record(frozen=True, repr=False, eq=False)
class GatePower(Answer):
    """What the rules of a gate see on some data, and how often they err.

    Attributes
    ----------
    rules : list of RulePower
    alarms : float or None
        Expected nights of a year in which any rule fails though nothing changed.
    """

    rules: list[RulePower]
    alarms: float | None

    def _view(self) -> View:
        def table() -> Table:
            rows: list[list[Cell]] = [
                [one.rule, _drop(one), _alarms(one.alarms)] for one in self.rules
            ]
            rows += [["any of these", "", _alarms(self.alarms)]] if rows[1:] else []
            titles = "rule", "smallest drop", "false alarms per year"
            return Table([Column(one) for one in titles], rows)

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
        "none" if end is None else percent(end) if one.relative else f"{end:.3g}"
        for end in (one.smallest, one.largest)
    )
    return least if least == most else f"{least} to {most}"


def _alarms(alarms: float | None) -> str:
    return "" if alarms is None else f"{alarms:.2g}" if alarms < 10 else f"{alarms:.0f}"


def gate_power(
    labels: Any,
    predictions: Any,
    rules: str | Iterable[str] | Rules,
    *,
    baseline: Any = None,
    history: str | Path | None = None,
    metrics: str | Sequence[str] = (),
    by: Any = (),
    cluster: str | None = None,
    adjust: Any = None,
    time: datetime | None = None,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
) -> GatePower:
    """Show what the rules of a gate can detect, and how often they would fail by chance.

    Parameters
    ----------
    labels, predictions, rules, baseline, history, metrics, by, cluster, adjust, time
        As for `gate`.
    semantics, catalogue, threads, memory, progress
        As for `evaluate`.

    Returns
    -------
    GatePower
        For each rule, the smallest drop that it fails in 80% of nights, and its false alarms per
        year of nights.

    Examples
    --------
    >>> import pyarrow as pa
    >>> labels = pa.table({"user_id": range(400), "items": [[1]] * 400})
    >>> old, new = ([[1] if q % n else [2, 1] for q in range(400)] for n in (2, 3))
    >>> old, new = (pa.table({"user_id": range(400), "items": one}) for one in (old, new))
    >>> rule = "map drop <= 1% confidence 0.95"
    >>> (found,) = gate_power(labels, new, rule, baseline=old).rules
    >>> round(found.smallest, 3), round(found.alarms, 1)
    (0.092, 2.1)
    """
    given, of_labels = Rules.of(rules), Labels.of(labels)
    settings = settings_of("t", given.confidence, None, 0, cluster, adjust)
    names = metrics_asked(given, metrics)
    job = parse_job(names, of_labels, semantics, catalogue, memory=memory)
    asked = asked_of(given, job, settings, baseline, history, time, by, adjust)
    reading, candidate = Reading(threads, progress), Predictions.of(predictions)
    _, evidence = measured(asked, of_labels, candidate, catalogue, reading, {})
    found, chances = list[RulePower](), list[float]()
    for rule in asked.rules:
        known = rule.kind == "metric" and (asked.earlier is not None or not rule.needs_baseline)
        cases = cases_of(rule, evidence) if known else []
        every = [test_of(rule, one.sides.measured) for one in cases]
        tests = [one for one in every if one is not None]
        each = confidence_of_each(rule, len(cases))
        told = (detected(rule, one.sides.measured, each) for one in cases)
        seen = [one for one in told if one is not None]
        if rule.since is None and tests:
            chances.append(_chance(rule, tests, len(cases)))
        found.append(
            RulePower(
                rule.text,
                finite(min(seen, default=None)),
                finite(max(seen, default=None)),
                rule.relative,
                YEAR * chances[-1] if tests and rule.since is None else None,
            )
        )
    # As if rules did not depend on each other.
    together = YEAR * (1 - math.prod(1 - one for one in chances)) if chances else None
    return GatePower(found, together)


def _chance(rule: Rule, tests: Sequence[RuleTest], slices: int) -> float:
    """Return the chance of a false alarm of a rule in a night."""
    confidence = confidence_of_each(rule, slices)
    far = [(test.far(confidence) + test.margin) / test.error for test in tests]
    return 1 - math.prod(1 - t_tail(t, test.freedom) for t, test in zip(far, tests, strict=True))
