"""The folder of a history, on the disk or in a store, and which run in it is a baseline."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from rankmill.config.face import Choice, read_choice
from rankmill.errors import InputError, is_shortage, outside
from rankmill.io.stores.filesystems import stored
from rankmill.io.stores.store_objects import open_ranges, reading
from rankmill.io.stores.urls import is_url, local_path, opened, shown
from rankmill.nightly.runs.runs import (
    RecordedMetric,
    Run,
    SliceKey,
    read_summary,
    runs_of_rows,
    time_of_name,
)
from rankmill.semantics.metric_names import canonical
from rankmill.threads import Workers

# ------------------------------------------------------------------ chosen runs

HELD, UNDECIDED = "held", "not enough data"
NON_INFERIOR = "non-inferior"
# So many runs are passed over at most for one that has the slices that a rule needs.
MOST_UNFIT = 30
# Of a run that ended before its rules were judged; it has no values.
NO_VERDICT = "no verdict"


class NoRunError(InputError):
    """No run of a history serves, as none has the metric or none held."""


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
    how: str,
    metric: str,
    candidates: Sequence[Candidate],
    now: datetime,
    history: str,
    fits: Callable[[Run], bool] | None = None,
) -> ChosenRun:
    """Return the run to compare a metric with, as `read_choice` takes `how`.

    `candidates` are the runs that have the metric and count it the same, in the order of time.
    Those later than `now`, the time of the run that is compared, do not serve. `history` is the
    name of the history, for messages. Runs that do not fit do not serve, unless none does.
    """
    choice = read_choice(how)
    having = [one for one in candidates if one[1].value is not None]
    future = [run for run, _ in having if run.time > now]
    past = [one for one in having if one[0].time <= now]
    unruled: list[Run] = []
    if choice.pinned:
        counting = tries_of_a_night([one for one in having if is_pinned(one[0], choice)])
        # All nights may have the tag, as this one's earlier try then does.
        serving = [one for one in counting if one[0].time.date() != now.date()] or counting
    else:
        counting = tries_of_a_night(past)
        if choice.kind == "ago":
            until = now - timedelta(days=int(choice.value[:-1]))
            counting = [one for one in counting if one[0].time.date() <= until.date()]
        # From the first gate on, a run without rules may be of a night that these would stop.
        judged = (run.time.date() for run, _ in past if run.verdict is not None)
        first = min(judged, default=now.date())
        serving = [one for one in counting if _serves(one[0], first, now)]
        unruled = [
            one for one, _ in counting if one.verdict is None and not _serves(one, first, now)
        ]
        # Tonight's earlier tries are not what tonight is compared with, if there is another night.
        before = [one for one in serving if one[0].time.date() < now.date()]
        serving = before or ([] if choice.optional else serving)
    if not serving:
        raise NoRunError(_none(how, choice, metric, history, counting, future))
    # Every other choice is the last run, which is the median of the last one.
    number = int(choice.value) if choice.kind == "median" else 1
    run, one = _middle(serving[-number:])
    unfit: list[Run] = []
    if fits is not None and not choice.pinned and not fits(run):
        found, unfit = _sorted_out(serving, fits, number)
        run, one = _middle(found) if found else (run, one)
    assert one.value is not None
    notes = [_note(future, now)]
    if unfit:
        notes.append(f"left out: {_named(unfit)}, which lacks slices that a rule needs")
    later = [one for one in unruled if one.time.date() > run.time.date()]
    if later:
        notes.append(f"left out: {_named(later)}, recorded without rules since gates judge nights")
    if choice.kind in ("last", "median"):
        notes.append(_stuck(tries_of_a_night(past), serving[-1][0], now))
    note = "; ".join(filter(None, notes))
    nights = [night for night, _ in past if night.time.date() < now.date()]
    newest = nights[-1] if nights else None
    return ChosenRun(one.value, one.standard_error, one.queries, run, how, note, newest)


def tries_of_a_night(runs: Sequence[Candidate]) -> list[Candidate]:
    """Return the try of each night that counts: of one date and the same tags, the last one.

    A try without enough data decides nothing, so it counts only if no other try decided. The last
    try was recorded last: one after midnight, for the date before, has an earlier time. Runs of a
    gate and runs without rules do not replace each other. Tries are in the order of `runs`.
    """
    last: dict[Any, Candidate] = {}
    for run, one in runs:
        night = run.time.date(), tuple(sorted(run.tags.items())), run.verdict is None
        if night in last:
            if _order(run) < _order(last[night][0]):
                continue
            del last[night]  # it had an earlier place
        last[night] = run, one
    return list(last.values())


def _order(run: Run) -> tuple[bool, int]:
    """Return by what a try replaces another one of its night."""
    return run.verdict != UNDECIDED, run.recorded


def _middle(runs: Sequence[Candidate]) -> Candidate:
    ordered = sorted(runs, key=lambda each: each[1].value or 0.0)
    return ordered[(len(ordered) - 1) // 2]


def _sorted_out(
    serving: Sequence[Candidate], fits: Callable[[Run], bool], number: int
) -> tuple[list[Candidate], list[Run]]:
    """Return the last runs that fit, so many as `number`, and those after them that do not.

    The slices of so many runs more are read at most.
    """
    found: list[Candidate] = []
    unfit: list[Run] = []
    for run, one in serving[: -number - MOST_UNFIT : -1]:
        if fits(run):
            found.append((run, one))
        else:
            unfit.append(run)
        if len(found) == number:
            break
    return found[::-1], unfit[::-1] if found else []


def _serves(run: Run, first: date, now: datetime) -> bool:
    """Return whether a run held, or had no rules, before a gate judged the first night."""
    if run.verdict is not None:
        return run.verdict == HELD
    night = run.time.date()
    return night < first or night == first == now.date()


def one_a_night(runs: Sequence[Candidate]) -> list[Candidate]:
    """Return the tries that count, without runs without rules on dates that a gate judged."""
    judged = {run.time.date() for run, _ in runs if run.verdict is not None}
    tries = tries_of_a_night(runs)
    return [one for one in tries if one[0].verdict is not None or one[0].time.date() not in judged]


def is_pinned(run: Run, choice: Choice) -> bool:
    """Return whether a run is one that the user named."""
    if choice.kind == "run":
        return run.id == choice.value
    key, _, value = choice.value.partition("=")
    return run.tags.get(key) == value


def _stuck(nights: Sequence[Candidate], newest: Run, now: datetime) -> str:
    """Return a note where no night after the newest that serves had enough data."""
    last = newest.time.date()
    later = [run for run, _ in nights if last < run.time.date() < now.date()]
    count = sum(run.verdict == UNDECIDED for run in later)
    if count < 3:
        return ""
    return (
        f"left out: the {count:,} nights since {last} without enough data: "
        "allow a larger drop, or pin a baseline"
    )


def _named(runs: Sequence[Run]) -> str:
    which = "the run" if len(runs) == 1 else f"{len(runs):,} runs, the newest"
    return f"{which} {runs[-1].id}"


def _note(future: Sequence[Run], now: datetime) -> str:
    if not future:
        return ""
    why = "after the time of this run: check the clock that recorded it"
    if now.date() != datetime.now(UTC).date():  # this run is of another day, as was asked for
        why = f"later than the date of this run, {now:%F} (--date)"
    return f"left out: {_named(future)}, dated {future[-1].time:%F %H:%M} UTC, {why}"


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


# ------------------------------------------------------------------ the folder

# The summary of a run is in the last bytes of its file.
END = 1 << 15
_MOVE = "it is not a run of a history, or is broken: move it elsewhere"
# How many requests a store answers at a time.
REQUESTS = 32
# Columns that no trend needs: what was read, and what came of each rule.
_LEFT = "labels_", "predictions_", "outcomes"


class MissingHistoryError(InputError):
    """There is no such folder."""


class Folder(NamedTuple):
    """The folder of a history."""

    name: str  # in messages
    path: str
    read_slices: dict[str, Mapping[SliceKey, RecordedMetric]]  # of the runs that were read, by id
    filesystem: Any = None  # of a store; None for the disk

    def files(self, since: datetime | None = None) -> list[str]:
        """Return the names of the Parquet files in it, sorted: those of runs sort by time.

        With `since`, those are left out whose name tells that they are older.
        """
        found = sorted(
            name for name in self._names() if name.endswith(".parquet") and name[0] not in "._"
        )
        if since is None:
            return found
        times = ((name, time_of_name(name)) for name in found)
        return [name for name, time in times if time is None or time >= since]

    def _names(self) -> list[str]:
        if self.filesystem is None:
            try:
                return os.listdir(self.path)
            except NotADirectoryError:
                raise InputError(
                    f"the history {self.name} is a file; expected a folder of runs"
                ) from None
            except FileNotFoundError:
                raise self._missing() from None
            except OSError as error:
                if is_shortage(error, f"reading {self.name}"):
                    raise
                raise InputError(f"{self.name} cannot be read: {error.strerror}") from None
        from pyarrow.fs import FileSelector

        with reading(self.name):
            selector = FileSelector(self.path, allow_not_found=True)
            infos = self.filesystem.get_file_info(selector)
        if not infos:
            raise self._missing()
        return [info.base_name for info in infos if info.is_file]

    def _missing(self) -> InputError:
        return MissingHistoryError(
            f"there is no history {self.name}; expected a folder of recorded runs: write one with "
            f"--history on the command line, History({self.name!r}).record(result) in Python"
        )

    def read(self, names: Sequence[str]) -> Iterator[Run]:
        """Yield the runs of files; those that are removed meanwhile are passed over."""
        if self.filesystem is None:
            for name in names:
                yield from self._read(name)
            return
        with Workers(REQUESTS) as workers:
            for runs in workers.map(self._read, names):
                yield from runs

    def _shown(self, name: str) -> str:
        """What messages call a file."""
        return f"{self.name.rstrip('/')}/{name}"

    def _read(self, name: str) -> list[Run]:
        opened(self._shown(name))
        with outside(self._shown(name), _MOVE):
            try:
                run = read_summary(self._end(name), self._shown(name))
                return self._rows(name) if run is None else [run]
            except FileNotFoundError:
                return []

    def slices_of(self, run: Run) -> Mapping[SliceKey, RecordedMetric]:
        """Return the slices of a run, whose rows are read unless they were."""
        if run.slices is not None:
            return run.slices
        if run.id not in self.read_slices:
            self.read_slices[run.id] = self._slices_in_file(run)
        return self.read_slices[run.id]

    def _slices_in_file(self, run: Run) -> Mapping[SliceKey, RecordedMetric]:
        name = f"{run.id}.parquet"
        with outside(self._shown(name), _MOVE):
            try:
                found = [one.slices for one in self._rows(name) if one.id == run.id]
            except FileNotFoundError:
                raise InputError(
                    f"{self._shown(name)} no longer exists; expected the slices of this run"
                ) from None
        return found[0] or {} if found else {}

    def outcomes_of(self, run: Run) -> str | None:
        """Return what came of the rules of a run, as JSON; None if there were none."""
        told: str | None = self._first_row(run, ["outcomes"]).get("outcomes")
        return told

    def rows_of(self, run: Run) -> dict[str, dict[str, Any]]:
        """Return how many rows a run read of both sides, as the inputs of a result have it."""
        names = {side: f"{side}_rows" for side in ("labels", "predictions")}
        found = self._first_row(run, [*names.values()])
        return {side: {"rows": found.get(name)} for side, name in names.items()}

    def _first_row(self, run: Run, columns: list[str]) -> dict[str, Any]:
        """Return columns of the first row of a run; nothing of one that has no file of its own."""
        import pyarrow.parquet as pq

        name = f"{run.id}.parquet"
        place = self._place(name)
        with outside(self._shown(name), _MOVE):
            try:
                found = pq.read_table(place, columns=columns, filesystem=self.filesystem)
            except FileNotFoundError:
                return {}
        return {one: found[one][0].as_py() for one in found.column_names}

    def slices_with(self, run: Run, metric: str) -> dict[tuple[str, str], RecordedMetric]:
        """Return a metric, in any spelling, in the slices of a run: by what cuts and the slice."""
        slices, asked = self.slices_of(run), canonical(metric)
        return {key[:2]: one for key, one in slices.items() if canonical(key[2]) == asked}

    def _place(self, name: str) -> str:
        """Return where a file is, on the disk or in the store."""
        return os.path.join(self.path, name) if self.filesystem is None else f"{self.path}/{name}"

    def _end(self, name: str) -> bytes:
        """The last bytes of a file."""
        if self.filesystem is None:
            with open(os.path.join(self.path, name), "rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(0, size - END))
                return file.read(END)
        with open_ranges(self.filesystem, f"{self.path}/{name}", self._shown(name)) as file:
            with reading(self._shown(name)):
                end: bytes = file.read_at(min(END, file.size()), max(0, file.size() - END))
            return end

    def _rows(self, name: str) -> list[Run]:
        """The runs of a file by its rows; columns that are not known are not read."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(self._place(name), filesystem=self.filesystem) as file:
            there = [one for one in file.schema_arrow.names if not one.startswith(_LEFT)]
            rows = file.read(there, use_threads=False).to_pylist()
        return runs_of_rows(rows)

    def remove(self, names: Sequence[str]) -> None:
        """Remove files; one that is gone already is no error."""
        for name in names:
            with suppress(FileNotFoundError):
                if self.filesystem is None:
                    os.unlink(os.path.join(self.path, name))
                    continue
                with reading(self._shown(name)):
                    self.filesystem.delete_file(f"{self.path}/{name}")


def open_folder(history: str | Path) -> Folder:
    """Return the folder that a path or a URL names; nothing is looked at yet."""
    path = local_path(str(history))
    if not is_url(path):
        return Folder(path, path, {})
    place = stored(path)
    return Folder(shown(path).rstrip("/"), place.path.rstrip("/"), {}, place.filesystem)
