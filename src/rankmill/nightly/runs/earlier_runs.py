"""Which run of a history a system is compared with."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from rankmill.config.baseline_choice import Choice, read_choice
from rankmill.errors import InputError
from rankmill.nightly.runs.runs import RecordedMetric, Run

HELD, UNDECIDED = "held", "not enough data"
NON_INFERIOR = "non-inferior"
# Of a run that ended before its rules were judged; it has no values.
NO_VERDICT = "no verdict"


class ChosenRun(NamedTuple):
    """A run that others are measured by.

    Attributes
    ----------
    value, standard_error, queries
        Those of the metric in this run.
    run : Run
    how : str
        As asked for, such as "median:7".
    note : str
        Which runs were left out, and why; "" if none was.
    before : Run or None
        The newest run of an earlier date than tonight's that has the metric, whatever its verdict.
    """

    value: float
    standard_error: float | None
    queries: int | None
    run: Run
    how: str
    note: str = ""
    before: Run | None = None


Candidate = tuple[Run, RecordedMetric]


def choose(
    how: str, metric: str, candidates: Sequence[Candidate], now: datetime, history: str
) -> ChosenRun:
    """Return the run to compare a metric with, as `read_choice` takes `how`.

    `candidates` are the runs that have the metric and count it the same, in the order of time.
    Those later than `now`, the time of the run that is compared, do not serve. `history` is the
    name of the history, for messages.
    """
    choice = read_choice(how)
    having = [one for one in candidates if one[1].value is not None]
    future = [run for run, _ in having if run.time > now]
    past = [one for one in having if one[0].time <= now]
    if choice.pinned:
        counting = tries_of_a_night([one for one in having if is_pinned(one[0], choice)])
        serving = counting
    else:
        counting = tries_of_a_night(past)
        if choice.kind == "ago":
            until = now - timedelta(days=int(choice.value[:-1]))
            counting = [one for one in counting if one[0].time.date() <= until.date()]
        serving = [one for one in counting if one[0].verdict in (HELD, None)]
        # Tonight's earlier tries are not what tonight is compared with, if there is another night.
        before = [one for one in serving if one[0].time.date() < now.date()]
        serving = before or serving
    if not serving:
        raise InputError(_none(how, choice, metric, history, counting, future))
    # Every other choice is the last run, which is the median of the last one.
    number = int(choice.value) if choice.kind == "median" else 1
    ordered = sorted(serving[-number:], key=lambda each: each[1].value or 0.0)
    run, one = ordered[(len(ordered) - 1) // 2]
    assert one.value is not None
    notes = [_note(future, now), _stuck(tries_of_a_night(past), run, now) if how == "last" else ""]
    note = "; ".join(filter(None, notes))
    nights = [night for night, _ in past if night.time.date() < now.date()]
    newest = nights[-1] if nights else None
    return ChosenRun(one.value, one.standard_error, one.queries, run, how, note, newest)


def tries_of_a_night(runs: Sequence[Candidate]) -> list[Candidate]:
    """Return the try of each night that counts: of one date and the same tags, the last one.

    A try without enough data decides nothing, so it counts only if no other try decided. The last
    try was recorded last: one after midnight, for the date before, has an earlier time. Runs of a
    gate and runs without rules do not replace each other.
    """
    last: dict[Any, Candidate] = {}
    for run, one in runs:
        night = run.time.date(), tuple(sorted(run.tags.items())), run.verdict is None
        if night not in last or _order(run) >= _order(last[night][0]):
            last[night] = run, one
    return list(last.values())


def _order(run: Run) -> tuple[bool, int]:
    """Return by what a try replaces another one of its night."""
    return run.verdict != UNDECIDED, run.recorded


def is_pinned(run: Run, choice: Choice) -> bool:
    """Return whether a run is one that the user named."""
    if choice.kind == "run":
        return run.id == choice.value
    key, _, value = choice.value.partition("=")
    return run.tags.get(key) == value


def _stuck(nights: Sequence[Candidate], chosen: Run, now: datetime) -> str:
    """Return a note where the baseline does not move, as no later night had enough data."""
    last = chosen.time.date()
    later = [run for run, _ in nights if last < run.time.date() < now.date()]
    count = sum(run.verdict == UNDECIDED for run in later)
    if count < 3:
        return ""
    return (
        f"left out: the {count:,} nights since {last} without enough data: "
        "allow a larger drop, or pin a baseline"
    )


def _note(future: Sequence[Run], now: datetime) -> str:
    if not future:
        return ""
    why = "after the time of this run: check the clock that recorded it"
    if now.date() != datetime.now(UTC).date():  # this run is of another day, as was asked for
        why = f"later than the date of this run, {now:%F} (--date)"
    which = "the run" if len(future) == 1 else f"{len(future):,} runs, the newest"
    return f"left out: {which} {future[-1].id}, dated {future[-1].time:%F %H:%M} UTC, {why}"


def _none(
    how: str,
    choice: Choice,
    metric: str,
    history: str,
    counting: Sequence[Candidate],
    future: Sequence[Run],
) -> str:
    """Return the message if none of the runs that count for their nights serves."""
    start = f"the history {history} has no run to compare {metric} with"
    if choice.pinned:
        return f"{start}: no run is {how}, or it has no value"
    back = f" {choice.value[:-1]} or more days back" if choice.kind == "ago" else ""
    words = ", ".join(dict.fromkeys(str(run.verdict) for run, _ in counting))
    why = f"no night{back} has the verdict {HELD!r} ({words})"
    if not counting:
        why = f"no run is{back}" if back else "no run before this one has a value"
    if future:
        why += f" ({len(future):,} dated later than this run)"
    return f"{start}: {why}; name one by tag:KEY=VALUE or its id"
