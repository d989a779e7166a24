"""What the rules of a gate would have said of the nights of a history."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date
from typing import NamedTuple

from rankmill.errors import InputError, UsageError
from rankmill.nightly.gate.judge import Case, Evidence, confidence_of_each
from rankmill.nightly.gate.levels import levelled, look_after
from rankmill.nightly.history.history import History
from rankmill.nightly.rules.counts import of_count
from rankmill.nightly.rules.earlier_values import is_gone
from rankmill.nightly.rules.measurements import MeasuredSide, Measurement, interval_of, word_of
from rankmill.nightly.rules.rules import BAD_VOLUME, EVERY, HELD, UNDECIDED, Rule
from rankmill.nightly.rules.sides import LEAST_IN_COMMON, bounds_of
from rankmill.nightly.runs.earlier_runs import Candidate, choose, tries_of_a_night
from rankmill.nightly.runs.folder import Folder
from rankmill.nightly.runs.runs import RecordedMetric as Recorded
from rankmill.nightly.runs.runs import Run, beside_of, rules_text

NIGHTS = 90
"""So many of the newest nights are looked at."""


class Replay(NamedTuple):
    """A rule, held against the nights of a history."""

    evidence: Evidence  # of tonight
    history: History
    folder: Folder
    how: str | None  # how the baseline is chosen for each night; None if it is the same for all
    place: int  # of the rule
    cases: Sequence[Case]  # what the rule measures tonight, with a baseline that is the same

    @property
    def rule(self) -> Rule:
        """The rule as it was written."""
        return self.evidence.asked.given.parsed[self.place]

    @property
    def metric(self) -> str:
        """The metric of the rule; of one about a count, any metric of the job tells the nights."""
        result, rule = self.evidence.result, self.rule
        return rule.name(result.scope.rel) if rule.kind == "metric" else next(iter(result.metrics))

    def failed(self) -> dict[date, bool]:
        """Return of each night that could be held against the rule whether it would have failed."""
        result, metric = self.evidence.result, self.metric
        scope = result.scope.to_dict() | beside_of(result.inputs)
        counted = rules_text(result.semantics, scope, result.gain_function)
        try:
            trend = self.history.trend(metric, rules=counted)
        except InputError:  # no run has it, or all count otherwise
            return {}
        runs = [
            (point.run, one)
            for point in trend.points
            if (one := point.run.get(metric)) is not None and one.value is not None
        ]
        nights = {run.time.date(): (run, one) for run, one in tries_of_a_night(runs)}
        words = {day: self._words(runs, *nights[day]) for day in sorted(nights)[-NIGHTS:]}
        return {day: not {*of} <= {HELD, UNDECIDED} for day, of in words.items() if of}

    def _words(self, runs: Sequence[Candidate], run: Run, value: Recorded) -> list[str]:
        """Return the word of the rule in a night, or of each slice of it; none if not known."""
        before: Run | None = None
        night: Run | None = None
        base: Recorded | None = None
        if self.rule.paired and self.how is not None:
            with suppress(InputError):
                chosen = choose(self.how, self.metric, runs, run.time, self.folder.name)
                before, night = chosen.run, chosen.before
                base = before.get(self.metric)
            if before is None or base is None or before.time >= run.time:
                return []
        asked = self.evidence.asked
        past = [one for one in self.history.runs if one.time < run.time]
        look = look_after(past, asked.earlier)
        rule = levelled(asked.given.parsed, asked.given.family_confidence, *look)[self.place]
        if rule.kind == "count":
            same = self.evidence.told if self.how is None else None
            told = same if before is None else before.told()
            with suppress(UsageError):  # a run does not tell its rows
                return [of_count(rule, run.told(), told).word]
            return []
        if rule.slices:
            pairs = [*self._slices(run, before, night or before)]
        else:
            pairs = [
                self._measured(value, base, self.cases[0].sides.measured if self.cases else None)
            ]
        confidence = confidence_of_each(rule, len(pairs)) if pairs else None
        lost = [BAD_VOLUME for one in pairs if one.value is None]
        known = (interval_of(rule, one, confidence) for one in pairs)
        return lost + [word_of(rule, one, confidence) for one in known if one is not None]

    def _slices(self, run: Run, base: Run | None, night: Run | None) -> Iterator[Measurement]:
        """Yield what the rule measures in the slices of a night that its baseline has.

        A slice that the night has lost, and not the one before, has no value.
        """
        paired = self.rule.paired
        tonight = {(one.by, one.slice): one.sides.measured for one in self.cases}
        before, last, rows = (
            {} if one is None else self.folder.slices_with(one, self.metric)
            for one in (base, night, run)
        )
        before = {key: one for key, one in before.items() if (one.queries or 0) >= LEAST_IN_COMMON}
        cuts = {by for by, _ in rows}
        for key in before.keys() - rows.keys() if paired else ():
            is_lost = key[0] in cuts and not is_gone(key, last)
            if is_lost and _is_asked(self.rule, *key):
                yield Measurement(MeasuredSide(), MeasuredSide(before[key].value))
        for key, one in rows.items():
            if not _is_asked(self.rule, *key):
                continue
            earlier, same = before.get(key), tonight.get(key)
            if not paired or earlier is not None or (base is None and same is not None):
                yield self._measured(one, earlier, same)

    def _measured(
        self, value: Recorded, base: Recorded | None, same: Measurement | None
    ) -> Measurement:
        """Return a night and its baseline, which are not paired."""
        mine = Measurement(self.evidence.side_of(value), bounds=bounds_of(self.metric))
        if base is not None:
            return mine._replace(theirs=self.evidence.side_of(base))
        if same is None:
            return mine
        return mine._replace(theirs=same.theirs._replace(known_freedom=None))


def _is_asked(rule: Rule, by: str, value: str) -> bool:
    """Return whether a slice of a run is one of a rule; texts with commas in them are not told."""
    wanted = dict(rule.slices)
    names, values = by.split(", "), value.split(", ")
    if set(names) != set(wanted) or len(values) != len(names):
        return False
    return all(wanted[name] in (EVERY, one) for name, one in zip(names, values, strict=True))
