"""gate_power() says what the rules of a gate would see on these data, and how often they err."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from rankmill.analysis.compare.comparison_request import settings_of
from rankmill.analysis.compare.queries.join import Reading
from rankmill.analysis.statistics.distributions import t_quantile, t_tail
from rankmill.analysis.statistics.ratios import Pair
from rankmill.engine.job import parse_job
from rankmill.engine.progress import Progress
from rankmill.nightly.gate.gate import measured
from rankmill.nightly.gate.gate_request import CheckedGate, Rules, asked_of, metrics_asked
from rankmill.nightly.gate.judge import Case, cases_of, confidence_of_each, finite
from rankmill.nightly.gate.levels import levelled
from rankmill.nightly.gate.replay import Replay
from rankmill.nightly.history.history import History
from rankmill.nightly.rules.measurements import Measurement, freedom_and_error
from rankmill.nightly.rules.rules import Rule
from rankmill.nightly.runs.folder import open_folder
from rankmill.results.answer import Answer
from rankmill.semantics.semantics import Counting
from rankmill.show.tables import Cell, Column, Part, Table, View
from rankmill.sources.input_options import MEMORY
from rankmill.sources.nouns import Catalogue, Labels, Predictions

YEAR = 365
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
    labels, predictions, rules, baseline, metrics, by, cluster, adjust, time
        As for `gate`.
    history : str or path, optional
        The nights that the rules are held against, too. A fixed baseline is not paired with them.
    semantics, catalogue, threads, memory, progress
        As for `evaluate`.

    Returns
    -------
    GatePower
        For each rule, the smallest drop that it fails in 80% of nights, its false alarms per year
        of nights, and how many of the last 90 nights of the history would have failed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> labels = pa.table({"user_id": range(400), "items": [[1]] * 400})
    >>> old, new = ([[1] if q % n else [2, 1] for q in range(400)] for n in (2, 3))
    >>> old, new = (pa.table({"user_id": range(400), "items": one}) for one in (old, new))
    >>> rule = "map drop <= 1% confidence 0.95"
    >>> (found,) = gate_power(labels, new, rule, baseline=old).rules
    >>> round(found.smallest, 3), round(found.alarms, 1)
    (0.088, 3.0)
    """
    given, of_labels = Rules.of(rules), Labels.of(labels)
    settings = settings_of("t", given.confidence, None, 0, 0, cluster, adjust)
    names = metrics_asked(given, metrics)
    job = parse_job(names, of_labels, semantics, catalogue, memory=memory)
    asked = asked_of(given, job, settings, baseline, history, time, by, adjust)
    reading, candidate = Reading(threads, progress), Predictions.of(predictions)
    _, evidence = measured(asked, of_labels, candidate, catalogue, reading, {})
    cases = [cases_of(one, evidence) if one.kind == "metric" else [] for one in given.parsed]
    chances = _chances(asked, cases)
    past: list[dict[Any, bool]] = [{} for _ in cases]
    if history is not None:
        place, how = os.fspath(history), None
        if asked.earlier is not None and asked.earlier.kind == "history":
            how = baseline
        of_all = evidence, History(place), open_folder(place), how
        past = [
            Replay(*of_all, number, cases[number]).failed()
            if one.kind != "age" and (cluster is None or one.least_confidence is None)
            else {}  # nights have no ages, and no errors of clusters
            for number, one in enumerate(given.parsed)
        ]
    found = []
    for tonight, of_rule, chance, nights in zip(asked.rules, cases, chances, past, strict=True):
        seen = [one for one in _seen(tonight, of_rule) if one is not None]
        found.append(
            RulePower(
                tonight.text,
                finite(min(seen, default=None)),
                finite(max(seen, default=None)),
                tonight.relative,
                None if chance is None else math.fsum(chance),
                sum(nights.values()),
                len(nights),
            )
        )
    return GatePower(found, _together(chances), *_any(past))


def _any(past: Sequence[Mapping[Any, bool]]) -> tuple[int, int]:
    """Return in how many nights a rule would have failed, and of how many."""
    days = {day for one in past for day in one}
    return sum(any(one.get(day, False) for one in past) for day in days), len(days)


def _together(chances: Sequence[list[float] | None]) -> float | None:
    """Return the nights of a year with a false alarm, as if rules did not depend on each other."""
    known = [one for one in chances if one is not None]
    nights = zip(*known, strict=True)
    return math.fsum(1 - math.prod(1 - p for p in night) for night in nights) if known else None


# ------------------------------------------------------------------ one rule


class _Test(NamedTuple):
    """The t test of a rule."""

    margin: float  # how far the limit is from no change
    error: float  # the standard error of what is tested
    freedom: float
    room: float  # the largest drop that there can be
    # By how much the square of the error grows with a drop of paired values: as if some queries
    # lost all that they had.
    more: float = 0.0

    def critical(self, confidence: float | None) -> float:
        """Return by how many errors a number has to be beyond the limit."""
        return 0.0 if confidence is None else t_quantile((1 + confidence) / 2, self.freedom)

    def smallest(self, confidence: float | None) -> float:
        """Return the drop that is beyond the limit by enough errors, those at this drop."""
        square = (self.critical(confidence) + t_quantile(POWER, self.freedom)) ** 2
        linear = square * self.more
        constant = square * (self.error**2 + self.more * max(0.0, self.margin))
        return self.margin + (linear + math.sqrt(linear**2 + 4 * constant)) / 2


def _test_of(rule: Rule, one: Measurement) -> _Test | None:
    """Return the test of a rule in a slice, None if the data tell no error."""
    v, b, lowest, highest = one.value, one.base, *one.bounds
    if v is None or one.too_few:
        return None
    if rule.measure == "value":
        if rule.operator == "==" or not one.mine.error or one.mine.freedom < 1:
            return None
        up = rule.operator in (">=", ">")
        margin = v - rule.limit if up else rule.limit - v
        return _Test(margin, one.mine.error, one.mine.freedom, v - lowest if up else highest - v)
    error_of_v, error_of_b = one.mine.error, one.theirs.error
    if b is None or error_of_v is None or error_of_b is None or one.difference_error == 0:
        return None  # of a system and itself nobody knows how a worse one would differ
    freedom, error = freedom_and_error(one)
    down = rule.better == "lower"
    room = highest - b if down else b - lowest
    more = 0.0
    if one.difference_error is not None and one.groups is None and not down and b > 0:
        more = error_of_b**2 / b + b / one.theirs.size
    if rule.relative:
        if b <= 0:
            return None
        # The test is that of v - r b, where r is the ratio at the limit.
        pair = Pair.of_errors(v, b, error_of_v, error_of_b, error)
        r = 1 + rule.limit if down else 1 - rule.limit
        square = pair.of_value + r * r * pair.of_base - 2 * r * pair.covariance
        error, room, more = math.sqrt(max(0.0, square)) / b, room / b, more / b
    return _Test(rule.limit, error, freedom, room, more) if error and freedom >= 1 else None


def _seen(rule: Rule, cases: Sequence[Case]) -> list[float | None]:
    """Return the drop that a rule fails in 80% of nights, by slice; infinite if none is."""
    found: list[float | None] = []
    for one in cases:
        test = _test_of(rule, one.sides.measured)
        if test is None:
            found.append(None)
            continue
        drop = test.smallest(confidence_of_each(rule, len(cases)))
        found.append(drop if drop <= test.room else math.inf)
    return found


def _chances(asked: CheckedGate, cases: Sequence[Sequence[Case]]) -> list[list[float] | None]:
    """Return the chance of a false alarm of each rule, in each night of a year from tonight on."""
    found: list[list[float] | None] = []
    rules, (look, choices) = asked.given.parsed, asked.look
    for place, one in enumerate(rules):
        tests = [_test_of(one, case.sides.measured) for case in cases[place]]
        known = [test for test in tests if test is not None]
        if not known:
            found.append(None)
            continue
        nights = YEAR if one.sequential else 1
        chances = []
        for night in range(nights):
            chosen = choices + night if choices > 1 else 1
            tonight = levelled(rules, asked.given.family_confidence, look + night, chosen)[place]
            confidence = confidence_of_each(tonight, len(tests))
            held = 1.0
            for test in known:
                far = test.critical(confidence) + test.margin / test.error
                held *= 1 - t_tail(far, test.freedom)
            chances.append(1 - held)
        found.append(chances * (YEAR // nights))
    return found
