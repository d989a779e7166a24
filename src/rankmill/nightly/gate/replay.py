"""What the rules of a gate would have said of the nights of a history."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any, NamedTuple

from rankmill.errors import InputError, UsageError
from rankmill.nightly.gate.judge import Case, confidence_of_each, interval_of, word_of
from rankmill.nightly.gate.levels import is_look, levelled
from rankmill.nightly.history.history import History
from rankmill.nightly.rules.counts import of_count
from rankmill.nightly.rules.measurements import MeasuredSide, Measurement
from rankmill.nightly.rules.rules import BAD_VOLUME, EVERY, HELD, UNDECIDED, Rule
from rankmill.nightly.rules.sides import LEAST_IN_COMMON, bounds_of, side_of
from rankmill.nightly.runs.earlier_runs import Candidate, choose, tries_of_a_night
from rankmill.nightly.runs.folder import Folder
from rankmill.nightly.runs.runs import RecordedMetric as Recorded
from rankmill.nightly.runs.runs import Run, SliceKey
from rankmill.semantics.metric_names import canonical

NIGHTS = 90
"""So many of the newest nights are looked at."""


class Replay(NamedTuple):
    """What nights are held against.

    Attributes
    ----------
    history, folder
    counted : str
        How to count, as `rules_text` writes it.
    rules : sequence of Rule
        With the confidences that they were written with.
    family : float or None
        As for `gate`.
    how : str or None
        How the baseline is chosen for each night; None if it is the same for all.
    told : mapping or None
        The result of a baseline that is the same for all.
    since : Run or None
        The pinned baseline.
    """

    history: History
    folder: Folder
    counted: str
    rules: Sequence[Rule]
    family: float | None
    how: str | None
    told: Mapping[str, Any] | None
    since: Run | None

    @property
    def weighted(self) -> bool:
        """Whether queries have weights."""
        return json.loads(self.counted)["weight"] is not None

    def failed(self, place: int, metric: str, cases: Sequence[Case]) -> dict[date, bool]:
        """Return of each night that could be held against a rule whether it would have failed.

        Parameters
        ----------
        place
            Which rule.
        metric
            The one that the rule is for, or any of the job for a rule about a count.
        cases
            What the rule measures tonight, which has the numbers of a baseline that is the same.
        """
        try:
            trend = self.history.trend(metric, rules=self.counted)
        except InputError:  # no run has it, or all count otherwise
            return {}
        runs = [
            (point.run, one)
            for point in trend.points
            if (one := point.run.get(metric)) is not None and one.value is not None
        ]
        nights = {run.time.date(): (run, one) for run, one in tries_of_a_night(runs)}
        found: dict[date, bool] = {}
        for day in sorted(nights)[-NIGHTS:]:
            words = self._words(place, metric, cases, runs, nights[day])
            if words:
                found[day] = not {*words} <= {HELD, UNDECIDED}
        return found

    def _words(
        self,
        place: int,
        metric: str,
        cases: Sequence[Case],
        runs: Sequence[Candidate],
        night: Candidate,
    ) -> list[str]:
        """Return the word of a rule in a night, or of each slice of it; none if not known."""
        run, value = night
        base: Candidate | None = None
        if self.rules[place].paired and self.how is not None:
            with suppress(InputError):
                one = choose(self.how, metric, runs, run.time, self.folder.name)
                of_base = one.run.get(metric)
                base = (one.run, of_base) if of_base and one.run.time < run.time else None
            if base is None:
                return []
        past = [one for one in self.history.runs if one.time < run.time]
        look = 1 + sum(is_look(one, self.since) for one in past)
        chosen = self.how is not None and self.since is None
        rule = levelled(self.rules, self.family, look, max(1, len(past)) if chosen else 1)[place]
        if rule.kind == "count":
            told = self.told if base is None else base[0].told()
            with suppress(UsageError):  # a run does not tell its rows
                return [of_count(rule, run.told(), told).word]
            return []
        if not rule.slices:
            same = cases[0].measured if cases else None
            pairs = [
                _measured(
                    metric, value, None if base is None else base[1], same, weighted=self.weighted
                )
            ]
        else:
            pairs = [*self._slices(rule, metric, cases, run, None if base is None else base[0])]
        confidence = confidence_of_each(rule, len(pairs)) if pairs else None
        lost = [BAD_VOLUME for one in pairs if one.value is None]
        known = (interval_of(rule, one, confidence) for one in pairs)
        return lost + [word_of(rule, one, confidence) for one in known if one is not None]

    def _slices(
        self, rule: Rule, metric: str, cases: Sequence[Case], run: Run, base: Run | None
    ) -> Iterator[Measurement]:
        """Yield what a rule measures in the slices of a night that its baseline has.

        A slice that the night has lost has no value.
        """
        tonight = {(one.by, one.slice): one.measured for one in cases}
        before = {} if base is None else self._rows(base, metric)
        rows = self._rows(run, metric)
        cuts = {by for by, _, _ in rows}
        for key in before.keys() - rows.keys() if rule.paired else ():
            is_lost = key[0] in cuts and (before[key].queries or 0) >= LEAST_IN_COMMON
            if is_lost and _is_asked(rule, *key[:2]):
                yield Measurement(MeasuredSide(), MeasuredSide(before[key].value))
        for (by, value, _), one in rows.items():
            if not _is_asked(rule, by, value):
                continue
            earlier, same = before.get((by, value, metric)), tonight.get((by, value))
            if not rule.paired or earlier is not None or (base is None and same is not None):
                yield _measured(metric, one, earlier, same, weighted=self.weighted)

    def _rows(self, run: Run, metric: str) -> dict[SliceKey, Recorded]:
        return {
            (by, value, metric): one
            for (by, value, name), one in self.folder.slices_of(run).items()
            if canonical(name) == canonical(metric)
        }


def _is_asked(rule: Rule, by: str, value: str) -> bool:
    """Return whether a slice of a run is one of a rule; texts with commas in them are not told."""
    wanted = dict(rule.slices)
    names, values = by.split(", "), value.split(", ")
    if set(names) != set(wanted) or len(values) != len(names):
        return False
    return all(wanted[name] in (EVERY, one) for name, one in zip(names, values, strict=True))


def _measured(
    metric: str, value: Recorded, base: Recorded | None, same: Measurement | None, *, weighted: bool
) -> Measurement:
    """Return a night and its baseline, which are not paired."""
    mine = Measurement(side_of(value, weighted=weighted), bounds=bounds_of(metric))
    if base is not None:
        return mine._replace(theirs=side_of(base, weighted=weighted))
    return mine if same is None else mine._replace(theirs=same.theirs._replace(known_freedom=None))
