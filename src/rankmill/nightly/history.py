"""The history of runs: trends, baselines, drift. Only runs that count the same are compared."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rankmill.config.document import parse_date
from rankmill.config.face import read_choice
from rankmill.errors import InputError, UsageError, plural
from rankmill.io.whole_files import write_files
from rankmill.metrics.texts import split_names
from rankmill.nightly.runs.folder import (
    HELD,
    NO_VERDICT,
    UNDECIDED,
    ChosenRun,
    Folder,
    MissingHistoryError,
    NoRunError,
    choose,
    one_a_night,
    open_folder,
)
from rankmill.nightly.runs.history_view import (
    Drift,
    Trend,
    TrendPoint,
    drift,
    otherwise,
    plot_trends,
    these,
    view_of,
)
from rankmill.nightly.runs.runs import (
    RecordedMetric,
    Run,
    definition_of,
    heeded,
    run_of,
    time_of_name,
    told_of,
)
from rankmill.package import stamp
from rankmill.results.answer import Answer
from rankmill.semantics.metric_names import canonical
from rankmill.show.tables import View

if TYPE_CHECKING:
    from rankmill.nightly.record import Found
    from rankmill.show.pictures import Picture

_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


class History(Answer):
    """The runs of a history, in order of time. They are read on first use.

    Parameters
    ----------
    folder : str or Path
        A folder, or the URL of one in a store. The first run that is recorded makes it.
    since : str or datetime, optional
        Only runs of this time or later: a date or time in UTC such as "2026-01-01", "today" or
        "yesterday", or as long ago as "30d" (or h, w).
    now : datetime, optional
        For times ago.

    Raises
    ------
    UsageError
        If `since` is not a time.
    """

    def __init__(
        self,
        folder: str | Path,
        since: str | datetime | None = None,
        *,
        now: datetime | None = None,
    ) -> None:
        self._start = moment(since, now) if isinstance(since, str) else since
        self._place = folder
        self._folder: Folder | None = open_folder(folder)
        self.name = self._folder.name

    @cached_property
    def runs(self) -> list[Run]:
        """All runs.

        Raises
        ------
        InputError
            If there is no such folder, or it holds a Parquet file that is not a run.
        """
        start, folder = self._start, self._folder
        assert folder is not None  # or the runs are held
        # One run in two files: they are being joined, or were.
        runs = {run.id: run for run in folder.read(folder.files(start))}
        kept = (run for run in runs.values() if start is None or run.time >= start)
        return sorted(kept, key=lambda run: (run.time, run.id))

    def record(
        self,
        found: Found,
        *,
        tags: Mapping[str, str] | None = None,
        labels: str | Sequence[str] | None = None,
        predictions: str | Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
        time: datetime | None = None,
    ) -> str:
        """Write a run to the history as a small Parquet file, completely or not at all.

        Any number of processes may record at the same time, without a lock.

        Parameters
        ----------
        found : Result, Verdict, Comparison, or mapping of str to Result
            What to record.
        tags : mapping of str to str, optional
            Tags of the run, such as ``{"model": "a7"}``.
        labels, predictions : str or sequence of str, optional
            The paths that were read, for their sizes, times and checksums; predictions by system if
            there are several. By default they are what `found` names as its inputs.
        time : datetime, optional
            The time of the run, with its zone; by default now.

        Returns
        -------
        str
            The path of the file, or its URL.

        Raises
        ------
        UsageError
            If the file cannot be written, or a tag is not text.

        Examples
        --------
        >>> import rankmill
        >>> import tempfile
        >>> from rankmill import evaluate
        >>> result = evaluate([[1], [2]], [[1], [3]], ["map"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = rankmill.History(folder).record(result, tags={"model": "a7"})
        ...     (run,) = rankmill.History(folder).runs
        >>> run.get("map").value, run.tags
        (0.5, {'model': 'a7'})
        """
        from rankmill.nightly.record import check_history, contents_of, run_table

        self.__dict__.pop("runs", None)
        check_history(self._place)
        table = run_table(found, tags=tags, labels=labels, predictions=predictions, time=time)
        contents = contents_of(table, self._place)
        write_files(contents)
        return contents[-1][0]

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        if not self.runs:
            return f"History({self.name!r}, no runs)"
        first, last = self.runs[0].time, self.runs[-1].time
        return f"History({self.name!r}, {plural(len(self.runs), 'run')}, {first:%F} to {last:%F})"

    def to_dict(self) -> dict[str, Any]:
        """Return all runs as dicts, lists, strings and numbers; not what is in slices."""
        return {**stamp(), "history": self.name, "runs": [told_of(run) for run in self.runs]}

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Self:
        """Return the object from what `to_dict` returned."""
        return cls.held(told["history"], [run_of(one) for one in told["runs"]])

    @classmethod
    def held(cls, name: str, runs: list[Run]) -> Self:
        """Return a history of these runs, without reading a folder."""
        found = cls.__new__(cls)
        found.name = name
        found._place = name
        found._folder = None
        found.runs = runs
        return found

    def _picture(self) -> Picture:
        return plot_trends(self._trends())

    def _trends(self) -> list[Trend]:
        return [self.trend(metric, system) for metric, system in self.metrics]

    def _view(self) -> View:
        return view_of(self, self._trends(), runs=False)

    @property
    def metrics(self) -> list[tuple[str, str | None]]:
        """Each metric with its system, those of the newest run first."""
        found: dict[tuple[str, str | None], None] = {}
        for run in reversed(self.runs):
            found |= dict.fromkeys((metric, system) for system, metric in run.metrics)
        return list(found)

    def named(self, metrics: Iterable[str]) -> list[tuple[str, str | None]]:
        """Return the metrics of these texts, in any spelling, with each of their systems."""
        found: list[tuple[str, str | None]] = []
        for metric in split_names(metrics):
            if "[" in metric:
                found += [(one, None) for one in self._each_slice(metric)]
                continue
            same = [one for one in self.metrics if canonical(one[0]) == canonical(metric)]
            found += same or [(metric, None)]
        return found

    def _each_slice(self, metric: str) -> list[str]:
        """Return a metric of a slice as it is, with a star for each slice of the newest run."""
        from rankmill.engine.segments import natural
        from rankmill.nightly.rules.rules import EVERY

        name, wanted = _parts(metric)
        if EVERY not in wanted.values():
            return [metric]
        for run in reversed(self.runs):
            keys = [(by.split(", "), one) for by, one in self._slices(run, name)]
            cuts = (dict(zip(by, one.split(", ", len(by) - 1), strict=True)) for by, one in keys)
            fits = [
                ", ".join(f"{by}={one}" for by, one in cut.items())
                for cut in cuts
                if cut.keys() == wanted.keys()
                and all(wanted[by] in (EVERY, one) for by, one in cut.items())
            ]
            if fits:
                return [f"{name}[{one}]" for one in sorted(fits, key=natural)]
        return [metric]

    def _slices(self, run: Run, metric: str) -> dict[tuple[str, str], RecordedMetric]:
        return {} if self._folder is None else self._folder.slices_with(run, metric)

    def _recorded(
        self, run: Run, metric: str, wanted: Mapping[str, str], system: str | None
    ) -> RecordedMetric | None:
        """Return a metric of a run, or of the slice of it that is wanted."""
        if not wanted:
            return run.get(metric, system)
        found = self._slices(run, metric)
        names, values = [*wanted], [*wanted.values()]
        keys = [(", ".join(names[::step]), ", ".join(values[::step])) for step in (1, -1)]
        return next((found[key] for key in keys if key in found), None)

    @property
    def unjudged(self) -> list[Run]:
        """The runs without a verdict, which have no metrics."""
        return [run for run in self.runs if run.verdict == NO_VERDICT]

    def trend(self, metric: str, system: str | None = None, *, rules: str | None = None) -> Trend:
        """Return a metric over the runs that count as the newest one that has it.

        Parameters
        ----------
        metric : str
            Such as "map@12"; of runs of a gate also in a slice, as in "map@12[country=it]".
        system : str, optional
            Of runs of several systems: which.
        rules : str, optional
            How to count, as `rules_text` writes it; by default as the newest run.

        Raises
        ------
        InputError
            If no run has the metric, or all count otherwise; the message names them.
        """
        same, note = self.comparable(metric, system, rules)
        points: list[TrendPoint] = []
        before: float | None = None  # the last value of an earlier night
        last, night = before, None
        shown: list[tuple[Run, RecordedMetric]] = list(same)
        if system is None:
            shown += [(run, RecordedMetric(None, None, None, None)) for run in self.unjudged]
        for run, one in sorted(shown, key=lambda each: (each[0].time, each[0].id)):
            if run.time.date() != night:
                before, night = last, run.time.date()
            base = last if before is None else before
            change = None if one.value is None or base is None else one.value - base
            points.append(TrendPoint(run, one.value, one.standard_error, one.queries, change))
            last = last if one.value is None else one.value
        return Trend(metric, system, points, _drift(same), note)

    def baseline(
        self,
        how: str,
        metric: str,
        system: str | None = None,
        *,
        rules: str | None = None,
        now: datetime | None = None,
        fits: Callable[[Run], bool] | None = None,
    ) -> ChosenRun:
        """Return a run to compare with: one that held, or that was recorded before any gate.

        Parameters
        ----------
        how : str
            "last", or "median:7" for the median of the last 7; of an even number the lower of the
            two in the middle, so that it is a run. "ago:28d" is the last run of 28 days ago or
            earlier. "tag:release=v7", the newest run with this tag, and the id of a run serve
            whatever their verdict.
        metric, system, rules
            As for `trend`. A job gives its own rules.
        now : datetime, optional
            The time of the run that is compared, by default now. Later runs do not serve, nor do
            earlier tries of the same date and tags, unless there is no other night.
        fits : callable, optional
            Whether a run has what is needed; others do not serve, unless the user named one.

        Raises
        ------
        UsageError
            If `how` is none of these.
        InputError
            If no run serves; the message says why.
        """
        read_choice(how)
        same, note = self.comparable(metric, system, rules)
        found = choose(how, metric, same, now or datetime.now(UTC), self.name, fits)
        return found._replace(note="; ".join(one for one in (found.note, note) if one))

    def comparable(
        self, metric: str, system: str | None, rules: str | None
    ) -> tuple[list[tuple[Run, RecordedMetric]], str]:
        """Return the runs that have a metric and count it the same, and a note on the others."""
        whole, wanted = _parts(metric)
        each = ((run, self._recorded(run, whole, wanted, system)) for run in self.runs)
        having = [(run, one) for run, one in each if one is not None]
        if not having:
            there = ", ".join(dict.fromkeys(metric for metric, _ in self.metrics)) or "no runs"
            if wanted:
                cut = filter(None, (self._slices(run, whole) for run in reversed(self.runs)))
                slices = [f"{by} = {one}" for by, one in next(cut, ())]
                there += f", lately in {'; '.join(slices)}" if slices else ", and of no slices"
            of = "" if system is None else f" of {system}"
            raise NoRunError(f"the history {self.name} has no {metric}{of}; it has {there}")
        asked = heeded(having[-1][0].rules if rules is None else rules, whole)
        definition = definition_of(whole, own=True) or having[-1][1].definition
        same, others = [], []
        for run, one in having:
            if heeded(run.rules, whole) == asked and one.definition == definition:
                same.append((run, one))
            else:
                others.append(run)
        if not others:
            return same, ""
        why = (
            otherwise(heeded(others[-1].rules, whole), asked) or f"{metric} had another definition"
        )
        if not same:
            raise InputError(
                f"the history {self.name} has no run to compare {metric} with: "
                + these(others, why)
            )
        return same, f"left out: {these(others, why)}"


def _parts(metric: str) -> tuple[str, dict[str, str]]:
    """Return the name of a metric, and what cuts the slice that it is of, with the value of it."""
    name, bracket, rest = metric.strip().partition("[")
    if not bracket:
        return metric, {}
    from rankmill.nightly.rules.rules import read_slices

    return name, dict(read_slices(rest.removesuffix("]"), metric))


def _drift(runs: Sequence[tuple[Run, RecordedMetric]]) -> Drift | None:
    """Return how far the newest run is from those that held before it."""
    if not runs or runs[-1][1].value is None:
        return None
    tries = one_a_night(runs)
    serving = [one for one in tries[:-1] if one[0].verdict in (HELD, UNDECIDED, None)]
    known = [(run, one) for run, one in [*serving, tries[-1]] if one.value is not None]
    numbers = [(one.value or 0.0, one.standard_error) for _, one in known]
    return drift(numbers, [run.time.toordinal() for run, _ in known])


def history_of(place: str | os.PathLike[str]) -> History:
    """Return a history, which has no runs if this is the first night."""
    found = History(os.fspath(place))
    try:
        _ = found.runs
    except MissingHistoryError:
        return History.held(os.fspath(place), [])
    return found


# ------------------------------------------------------------------ pruning


def prune(
    folder: str | Path,
    *,
    keep: str | None = None,
    keep_last: int | None = None,
    dry_run: bool = False,
    now: datetime | None = None,
) -> tuple[list[str], int]:
    """Remove old runs of a history by the times in the names of their files.

    Runs of the time `keep` or later stay, as `since` of `History` takes it, or so many of the
    newest as `keep_last` says; and files that other programs wrote. With `dry_run` all stay.

    Returns
    -------
    list of str, int
        The names of the files that were removed, or would be, and how many are left.
    """
    if (keep is None) == (keep_last is None):
        raise UsageError("prune keeps runs by time or by number: give one of --keep, --keep-last")
    opened = open_folder(folder)
    names = opened.files()
    timed = [(name, time) for name in names if (time := time_of_name(name)) is not None]
    if keep is not None:
        start = moment(keep, now)
        old = [name for name, time in timed if time < start]
    else:
        old = [name for name, _ in timed[: max(0, len(timed) - (keep_last or 0))]]
    if not dry_run:
        opened.remove(old)
    return old, len(names) - len(old)


def moment(text: str, now: datetime | None = None) -> datetime:
    """Return the time that a text names, in UTC unless it tells its zone.

    Examples
    --------
    >>> moment("yesterday", datetime(2026, 1, 3, 12, tzinfo=UTC)).isoformat()
    '2026-01-02T00:00:00+00:00'
    >>> moment("2026-01-01")
    datetime.datetime(2026, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)
    >>> moment("36h", datetime(2026, 1, 3, tzinfo=UTC)).isoformat()
    '2026-01-01T12:00:00+00:00'
    """
    ago = re.fullmatch(r"(\d{1,6})([hdw])", text)
    try:
        if ago:
            return (now or datetime.now(UTC)) - int(ago[1]) * _UNITS[ago[2]]
        if text in ("today", "yesterday"):
            text = parse_date(text, now and now.astimezone(UTC).date()).isoformat()
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text!r} is not a time; expected a date such as 2026-01-01, a number of hours, "
            "days or weeks, such as 12h, 30d or 8w, or today or yesterday"
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
