"""The baseline that is a run of a history."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime

from rankmill.config.baseline_choice import read_choice
from rankmill.engine.job import Job
from rankmill.errors import InputError, UsageError
from rankmill.nightly.history.history import History
from rankmill.nightly.rules.baseline import Baseline
from rankmill.nightly.rules.rules import Rule
from rankmill.nightly.rules.slice_values import slices_before
from rankmill.nightly.runs.earlier_runs import is_pinned
from rankmill.nightly.runs.folder import MissingHistoryError, open_folder
from rankmill.nightly.runs.other_inputs import beside_of_job
from rankmill.nightly.runs.runs import rules_text


def from_history(
    how: str,
    history: str | os.PathLike[str] | None,
    drops: Sequence[Rule],
    job: Job,
    time: datetime | None,
) -> Baseline:
    """Return the run of a history that is the baseline; for each metric it may be another one.

    `drops` are the rules for a drop of a metric. `time` is that of the run that is
    compared, None for now.

    Raises
    ------
    UsageError
        If there is no history.
    InputError
        If no run of it serves.
    """
    if history is None:
        raise UsageError(
            f"the baseline {how!r} is a run of a history: give --history, or ./{how} for "
            "a file of this name"
        )
    name = os.fspath(history)
    try:
        runs = History(name)
        _ = runs.runs
    except MissingHistoryError:
        runs = History.held(name, [])
    scope = vars(job.scope) | beside_of_job(job)
    rules = rules_text(job.semantics, scope, job.gain_function)
    named = [(one, one.name(job.scope.rel)) for one in drops]
    names = [*dict.fromkeys(name for _, name in named)]
    if not runs.metrics:
        cuts = [*dict.fromkeys(name for one in drops for name, _ in one.slices)]
        options = [f" --metric {one!r}" for one in names] + [f" --by {one!r}" for one in cuts]
        given = [f"{key}={one!r}" for key, one in (("metrics", names), ("by", cuts)) if one]
        call = ", ".join(["gate(labels, predictions, 'queries > 0'", *given])
        raise InputError(
            f"the history {name} has no run to compare with: begin it with a gate whose rules need "
            f"no baseline: --rule 'queries > 0'{''.join(options)} on the command line, "
            f"History({name!r}).record({call})) in Python"
        )
    if not names:  # the rules are about counts alone: a run with a metric of the job, or any, tells
        known = [metric for metric, system in runs.metrics if system is None]
        mine = [metric.text for metric in job.metrics]
        names = [*(one for one in mine if one in known), *known, *mine][:1]
    if time is not None and time.tzinfo is None:
        raise UsageError(f"the time of a run is {time}; expected one with its zone, such as UTC")
    now = (time or datetime.now(UTC)).astimezone(UTC)  # nights are dates in UTC
    found = {metric: runs.baseline(how, metric, rules=rules, now=now) for metric in names}
    told = next(iter(found.values())).run.told()
    told["metrics"] = {metric: one.value for metric, one in found.items()}
    told["standard_errors"] = {metric: one.standard_error for metric, one in found.items()}
    told["lists"] = {metric: one.queries for metric, one in found.items()}
    measured = {metric: one.run.get(metric) for metric, one in found.items()}
    told["effective"] = {name: one.effective_queries for name, one in measured.items() if one}
    ids = dict.fromkeys(f"{one.run.id}, {_age(one.run.time, now)}" for one in found.values())
    notes = tuple(dict.fromkeys(one.note for one in found.values() if one.note))
    chosen = {metric: one.run for metric, one in found.items()}
    cut = [one for one in named if one[0].slices]
    slices = slices_before(open_folder(name), chosen, cut) if cut else {}
    source = f"{how} of {history}: {'; '.join(ids)}"
    choice = read_choice(how)
    # Where every night has the tag, it pins none of them: all count since the first one.
    pinned = [one for one in runs.runs if choice.pinned and is_pinned(one, choice)]
    since = min(pinned, key=lambda one: one.time, default=None)
    return Baseline("history", source, told=told, notes=notes, slices=slices, since=since)


def _age(time: datetime, now: datetime) -> str:
    """Return how old a run is, as "3 days old"."""
    days = (now.date() - time.date()).days
    if days < 1:
        return "of the same day" if days == 0 else "of a later day"
    return f"{days:,} day{'s' if days > 1 else ''} old"
