"""A run of the history: its file, and the summary at the end of it that a trend is read from.

Opening 10,000 small files with Parquet's own reader takes seconds. So each file also holds, as a
key and a value of its footer, what a trend needs as JSON: its bytes are found from the end of the
file, and 10,000 files are read in a fraction of a second. The rows of the table are what counts: a
file without a summary, as other programs write when they join files, is read by its rows.
"""

import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from functools import cache
from time import time as seconds_now
from typing import Any, NamedTuple

from rankmill.columns.seal import DIGITS, seal_of
from rankmill.engine.job import BESIDE, Job
from rankmill.errors import InputError, UsageError
from rankmill.metrics.aggregate import aggregate_of, needs_of
from rankmill.metrics.registry import parse
from rankmill.package import FORMAT, check_stamp
from rankmill.records import record
from rankmill.semantics.choices import DEFAULT, WHOLE, Choices, Scope
from rankmill.semantics.metric_names import canonical

SUMMARY = b"rankmill run"
"""The key of the summary in a footer."""
CLOCK = 256
"""How many parts of a second the clock in the name of a run counts."""
_NAME = re.compile(r"(\d{8}T\d{12})Z-([0-9a-f]{10})[0-9a-f]{6}")
_SEALED = (
    *("run", "time", "system", "by", "slice", "metric", "value", "standard_error"),
    *("effective_queries", "verdict", "version", "definition", "semantics", "scope"),
    "gain_function",
)
# Which inputs there were, and the column of the groups of items.
KEYS = "beside", "item_group"
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
# In a footer, this byte and a length stand between a key and its text.
_TEXT = b"\x18"


class RecordedMetric(NamedTuple):
    """A metric of a run: its value, how it was defined then, and what weights leave of queries."""

    value: float | None
    standard_error: float | None
    queries: int | None
    definition: str | None
    effective_queries: float | None = None
    third_moment: float | None = None  # of values about their mean, as the bound of a mean needs


SliceKey = tuple[str, str, str]
"""What cuts, the slice, and the metric, as the columns of a row have them."""


@record(frozen=True)
class Run:
    """A run of the history.

    Attributes
    ----------
    id : str
        Its time and a random part: the name of its file.
    time : datetime
        In UTC.
    version : str
        That of rankmill.
    rules : str
        How it was counted, as `rules_text` writes it.
    metrics : dict of (str or None, str) to RecordedMetric
        By system, which is None if the run had one only, and by metric.
    verdict : str or None
        "held", "regressed" and so on; None if there were no rules. A run of "no verdict" has no
        metrics.
    tags : dict of str to str
        What the user called it.
    audits : dict of (str or None) to dict of str to int
        By system what was counted; empty for a comparison.
    reason : str
        Why there is no verdict; "" if there is one.
    slices : dict or None
        What cuts, the slice and the metric -> the value in a slice, of a run of one system; None if
        the rows were not read, as `Folder.slices_of` does.
    """

    id: str
    time: datetime
    version: str
    rules: str
    metrics: dict[tuple[str | None, str], RecordedMetric]
    verdict: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    audits: dict[str | None, dict[str, int]] = field(default_factory=dict)
    reason: str = ""
    slices: dict[SliceKey, RecordedMetric] | None = field(default=None, compare=False)

    @property
    def recorded(self) -> int:
        """When it was recorded, as `new_name` tells: two tries of a night may have one time."""
        found = _NAME.match(self.id)
        return int(found[2], 16) if found else 0

    def get(self, metric: str, system: str | None = None) -> RecordedMetric | None:
        """Return a metric of a system, in any spelling; None if the run does not have it."""
        found = self.metrics.get((system, metric))
        if found is not None:
            return found
        asked = canonical(metric)
        of_system = ((name, one) for (of, name), one in self.metrics.items() if of == system)
        return next((one for name, one in of_system if canonical(name) == asked), None)


def new_name(time: datetime) -> str:
    """Return a name for a run that no other run has; names sort by time, then by the clock."""
    clock = int(seconds_now() * CLOCK) % 16**10
    return f"{time.astimezone(UTC):%Y%m%dT%H%M%S%f}Z-{clock:010x}{secrets.token_hex(3)}"


def time_of_run(time: datetime | None) -> datetime:
    """Return the time of a run in UTC, in which nights are dates; by default now."""
    if time is not None and time.tzinfo is None:
        raise UsageError(f"the time of a run is {time}; expected one with its zone, such as UTC")
    return (time or datetime.now(UTC)).astimezone(UTC)


def run_text(time: datetime) -> str:
    """Return what all outputs of a command call its run.

    Examples
    --------
    >>> run_text(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02 03:04:05 UTC'
    """
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def time_of_name(name: str) -> datetime | None:
    """Return the time in the name of a run's file, None if another program named it.

    Examples
    --------
    >>> time_of_name("20260102T030405000006Z-0123456789abcdef.parquet")
    datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.timezone.utc)
    >>> time_of_name("part-0.parquet")
    """
    found = _NAME.match(name)
    try:
        return found and datetime.strptime(f"{found[1]}+0000", "%Y%m%dT%H%M%S%f%z")
    except ValueError:  # digits that are no time
        return None


# ------------------------------------------------------------------ how a run was counted


def rules_text(
    semantics: Choices | Mapping[str, Any],
    scope: Scope | Mapping[str, Any] = WHOLE,
    gain_function: str = "linear",
) -> str:
    """Return how a run was counted as a text; runs of one text count the same.

    What an older version did not know of is as by default. `Choices` and `Scope` may be
    given as the dicts that they were written as.
    """
    chosen = semantics.to_dict() if isinstance(semantics, Choices) else semantics
    scoped = vars(scope) if isinstance(scope, Scope) else scope
    rules: dict[str, Any] = {**DEFAULT.to_dict(), **chosen, **vars(WHOLE), **scoped}
    return json.dumps(rules | {"gain_function": gain_function}, sort_keys=True)


def rules_of_job(job: Job) -> str:
    """Return how a job counts, as `rules_text` writes it."""
    scope = vars(job.scope) | beside_text(job.beside, job.group)
    return rules_text(job.semantics, scope, job.gain_function)


class CountingRules(NamedTuple):
    """How a run was counted, as three columns of its rows."""

    semantics: str = "{}"
    scope: str = "{}"
    gain_function: str = "linear"

    @property
    def text(self) -> str:
        """These as `rules_text` writes them."""
        return _text_of(self)


@cache  # of thousands of runs, nearly all count the same
def _text_of(rules: CountingRules) -> str:
    return rules_text(json.loads(rules.semantics), json.loads(rules.scope), rules.gain_function)


# ------------------------------------------------------------------ summaries


def summary_text(run: Run, rules: CountingRules) -> str:
    """Return the summary of a run, which is plain ASCII; its checksum comes first."""
    told = told_of(run) | {"rules": rules, "format": FORMAT}
    text = json.dumps(told, separators=(",", ":"), allow_nan=False)
    return seal_of(text) + text


def told_of(run: Run) -> dict[str, Any]:
    """Return what `run_of` makes a run of."""
    return {
        "run": run.id,
        "time": (run.time - _EPOCH) // _MICROSECOND,
        "version": run.version,
        "rules": run.rules,
        "verdict": run.verdict,
        "tags": run.tags,
        "metrics": [[*key, *one] for key, one in run.metrics.items()],
        "audits": list(run.audits.items()),
        **({"reason": run.reason} if run.reason else {}),
    }


def read_summary(end: bytes, file: str = "this run") -> Run | None:
    """Return the run of the summary in the last bytes of a file; None if there is none whole."""
    start = end.rfind(SUMMARY + _TEXT)  # JSON in ASCII has no such byte: it is the key
    if start < 0:
        return None
    start += len(SUMMARY + _TEXT)
    size = shift = 0
    for place in range(start, min(start + 5, len(end))):  # a number of 7 bits a byte
        size |= (end[place] & 0x7F) << shift
        shift += 7
        if end[place] < 0x80:
            break
    text = end[place + 1 : place + 1 + size] if shift else b""
    try:
        if seal_of(text[DIGITS:].decode("ascii")) != text[:DIGITS].decode("ascii"):
            return None
        told = json.loads(text[DIGITS:])
        check_stamp(told | {"rankmill": told["version"]}, file)
        return run_of(told)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError):
        return None


def run_of(told: dict[str, Any]) -> Run:
    """Return the run that `told_of` or a summary tells of."""
    rules = told["rules"]
    return Run(
        told["run"],
        _EPOCH + told["time"] * _MICROSECOND,
        told["version"],
        rules if isinstance(rules, str) else CountingRules(*rules).text,
        {(row[0], row[1]): RecordedMetric(*row[2:8]) for row in told["metrics"]},
        told["verdict"],
        told["tags"],
        dict(told["audits"]),
        told.get("reason", ""),
    )


def seal_of_row(row: Mapping[str, Any]) -> str:
    """Return the checksum of what a trend needs of a row, in whatever types it has come back."""
    values = {name: row.get(name) for name in _SEALED}
    queries = row.get("queries")
    for name in ("reason", "third_moment"):  # other rows had none when they were sealed
        if row.get(name) not in (None, ""):
            values[name] = row[name]
    values |= {name: dict(row.get(name) or ()) for name in ("tags", "audit")}
    return seal_of(values | {"queries": None if queries is None else int(queries)})


def rules_of_row(row: Mapping[str, Any]) -> CountingRules:
    """Return how the run of a row was counted; what is not told is as by default."""
    return CountingRules(**{name: row[name] for name in CountingRules._fields if row.get(name)})


def runs_of_rows(rows: Iterable[Mapping[str, Any]]) -> list[Run]:
    """Return the runs of rows, which may be of several and lack what is not needed."""
    found: dict[str, Run] = {}
    for row in rows:
        if row.get("checksum") not in (None, seal_of_row(row)):
            raise ValueError("its checksum is not that of its values")
        run = found.get(row["run"])
        if run is None:
            run = Run(
                row["run"],
                row["time"].astimezone(UTC),
                row.get("version") or "",
                rules_of_row(row).text,
                {},
                row.get("verdict"),
                dict(row.get("tags") or ()),
                slices={},
                reason=row.get("reason") or "",
            )
            found[run.id] = run
        run.audits[row.get("system")] = dict(row.get("audit") or ())
        if row["metric"] is None:  # of a run without a verdict
            continue
        one = RecordedMetric(row["value"], *(row.get(name) for name in RecordedMetric._fields[1:]))
        if row.get("by") is None:
            run.metrics[row.get("system"), row["metric"]] = one
        elif row.get("system") is None and run.slices is not None:
            run.slices[row["by"], row["slice"], row["metric"]] = one
    return list(found.values())


def beside_of(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return what the inputs of a result, or a run, say of it, for its rules; {} without any."""
    group = inputs.get("items", {}).get("columns", {}).get("group")
    return beside_text([name for name in BESIDE if name in inputs], group)


def beside_text(names: Sequence[str], group: str | None) -> dict[str, str]:
    """Return the same of the names of inputs, and the column of the groups of items."""
    found = {"beside": ", ".join(names)} if names else {}
    return found | ({} if group is None else {"item_group": group})


@cache
def looks_at(metric: str) -> bool:
    """Return whether what is beside labels and predictions changes what a metric is."""
    try:
        asked = parse(metric)
        whole = getattr(aggregate_of(asked), "whole", False)
    except UsageError:  # of a version that has other metrics
        return True
    return whole or any(need.given for need in needs_of(asked))


def heeded(rules: str, metric: str) -> str:
    """Return the rules of a run, as `rules_text` writes them, that a metric heeds."""
    return rules if looks_at(metric) else _without(rules)


@cache  # of thousands of runs, nearly all count the same
def _without(rules: str) -> str:
    told = json.loads(rules)
    return json.dumps({name: one for name, one in told.items() if name not in KEYS}, sort_keys=True)


def definition_of(metric: str, *, own: bool = False) -> str:
    """The definition of a metric; "" of one that is not known, or not somebody's if `own`."""
    try:
        spec = parse(metric).spec
    except UsageError:  # of a result that was not made by this version
        return ""
    return (
        "" if own and not spec.home else " ".join(f"{spec.definition} {spec.fingerprint}".split())
    )
