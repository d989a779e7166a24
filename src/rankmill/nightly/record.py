"""Recording a run: what it found becomes a small Parquet file in the folder of the history."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from rankmill.analysis.compare.differences.differences import Estimate, named
from rankmill.analysis.compare.view.comparison import Comparison
from rankmill.columns.buffers import table_of
from rankmill.errors import InputError, UsageError
from rankmill.io.stores.urls import is_url, join, local_path, shown
from rankmill.io.whole_files import check_target
from rankmill.nightly.rules.baseline import SliceValue
from rankmill.nightly.rules.reports import NoVerdict
from rankmill.nightly.rules.verdict import Verdict
from rankmill.nightly.runs.folder import NO_VERDICT
from rankmill.nightly.runs.runs import (
    SUMMARY,
    CountingRules,
    beside_of,
    definition_of,
    new_name,
    rules_of_row,
    runs_of_rows,
    seal_of_row,
    summary_text,
    time_of_run,
)
from rankmill.package import __version__
from rankmill.results.result import Result
from rankmill.sources.files.files import File, find_files, is_pipe
from rankmill.sources.files.footers import read_footer
from rankmill.threads import Workers

Found: TypeAlias = Result | Verdict | NoVerdict | Comparison | Mapping[str, Result]
"""What can be recorded; a mapping is that of `evaluate_runs`."""
_Row: TypeAlias = tuple[str | None, SliceValue]
REQUESTS = 16
"""So many objects of a store are read at a time."""

_TEXT, _COUNT, _TIME = pa.string(), pa.int64(), pa.timestamp("us", "UTC")
_INPUT = {"source": _TEXT, "paths": pa.list_(_TEXT), "bytes": _COUNT, "rows": _COUNT}
_INPUT |= {"modified": _TIME, "checksum": _TEXT}
SCHEMA = pa.schema(
    {
        "run": _TEXT,
        "time": _TIME,
        "system": _TEXT,  # null if the run had one only
        "by": _TEXT,  # null: the metric over all queries
        "slice": _TEXT,
        "metric": _TEXT,
        "value": pa.float64(),
        "standard_error": pa.float64(),
        "queries": _COUNT,
        "effective_queries": pa.float64(),  # of weights, or of clusters in slices; else null
        "third_moment": pa.float64(),  # of the values of a gate; else null
        "verdict": _TEXT,
        "reason": _TEXT,  # why there is no verdict; else null
        "tags": pa.map_(_TEXT, _TEXT),
        "version": _TEXT,
        "definition": _TEXT,
        "semantics": _TEXT,
        "scope": _TEXT,
        "gain_function": _TEXT,
        **{f"labels_{name}": kind for name, kind in _INPUT.items()},
        **{f"predictions_{name}": kind for name, kind in _INPUT.items()},
        "audit": pa.map_(_TEXT, _COUNT),
        "outcomes": _TEXT,
        "checksum": _TEXT,  # of what trends are read from
    }
)
"""The columns of a run's file: a row for each metric and system, then those of slices."""


class _Facts(NamedTuple):
    """What is recorded of a run."""

    of: Result | Comparison  # how it was counted, and its labels
    gain_function: str
    predictions: Mapping[str | None, Mapping[str, Any]]  # what is known of the input of each system
    audits: Mapping[str | None, Mapping[str, int]]
    rows: list[_Row]


def check_history(history: str | Path) -> None:
    """Raise UsageError if no run could be written to a history; nothing is changed."""
    folder = _folder(history)
    if not is_url(folder) and os.path.exists(folder) and not os.path.isdir(folder):
        raise UsageError(f"the history {folder} is a file; expected a folder, or a name for one")
    inside = join(folder, new_name(datetime.now(UTC)) + ".parquet")
    if is_url(folder) or os.path.isdir(folder):
        check_target(inside)
        return
    # The folder is made for the first run, but those above it are not: they may be mistyped.
    try:
        check_target(folder)
    except UsageError:
        if not os.path.isdir(folder):  # else another writer has made it by now
            raise
        check_target(inside)


def contents_of(table: pa.Table, history: str | Path) -> list[tuple[str, pa.Table | None]]:
    """Return what `write_files` writes for a run: the folder of a history, and the file in it."""
    folder = _folder(history)
    made = [] if is_url(folder) else [(folder, None)]
    return [*made, (join(folder, f"{table['run'][0]}.parquet"), table)]


def _folder(history: str | Path) -> str:
    if not str(history):
        raise UsageError("the name of the history is empty; expected a folder or a URL")
    if str(history) == "-":
        raise UsageError("a history is a folder or a URL, and not - for standard output")
    return local_path(str(history))


def _checked(tags: Mapping[str, str]) -> dict[str, str]:
    for key, value in tags.items():
        if not (isinstance(key, str) and key and isinstance(value, str)):
            raise UsageError(f"a tag is {key!r}: {value!r}; expected two strings, such as model=a7")
    return {utf8(key): utf8(value) for key, value in tags.items()}


# ------------------------------------------------------------------ what is in a run


def run_table(
    found: Found,
    *,
    tags: Mapping[str, str] | None = None,
    labels: Any = None,
    predictions: Any = None,
    time: datetime | None = None,
) -> pa.Table:
    """Return the rows of a run; the parameters are those of `History.record`."""
    time, tags = time_of_run(time), _checked(tags or {})
    shared: dict[str, Any] = {"run": new_name(time), "time": time, "version": __version__}
    shared["tags"] = [*tags.items()]
    if isinstance(found, NoVerdict):  # one row, without a metric
        shared |= {"verdict": NO_VERDICT, "reason": utf8(found.reason), "metric": None}
        shared |= {f"{side}_source": one for side, one in found.inputs.items()}
        return sealed_table([shared | CountingRules()._asdict()])
    facts = _facts(found)
    shared["gain_function"] = facts.gain_function
    shared["semantics"] = json.dumps(facts.of.semantics.to_dict())
    shared["scope"] = json.dumps(facts.of.scope.to_dict() | beside_of(facts.of.inputs))
    if isinstance(found, Verdict):
        shared["verdict"] = found.word
        shared["outcomes"] = json.dumps([one.to_dict() for one in found.outcomes])
    shared |= _columns("labels", facts.of.inputs.get("labels", {}), labels)
    if not isinstance(predictions, Mapping):
        predictions = dict.fromkeys(facts.predictions, predictions)
    of_system = {
        system: _columns("predictions", details, predictions.get(system))
        | {"system": system, "audit": [*facts.audits.get(system, {}).items()]}
        for system, details in facts.predictions.items()
    }
    definitions = {row.metric: definition_of(row.metric) for _, row in facts.rows}
    return sealed_table(
        [
            shared | of_system[system] | row._asdict() | {"definition": definitions[row.metric]}
            for system, row in facts.rows
        ]
    )


def sealed_table(rows: list[dict[str, Any]]) -> pa.Table:
    """Return the file of a run of these rows, with their checksums and a summary."""
    (run,) = runs_of_rows(rows)
    for row in rows:
        row["checksum"] = seal_of_row(row)
    return table_of(rows, SCHEMA.with_metadata({SUMMARY: summary_text(run, rules_of_row(rows[0]))}))


def utf8(text: str) -> str:
    """A text that Parquet can hold: names of files need not be valid UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def _facts(found: Result | Verdict | Comparison | Mapping[str, Result]) -> _Facts:
    slices: list[_Row] = []
    whole: dict[str, SliceValue] = {}
    if isinstance(found, Verdict):
        slices = [(None, one) for one in found.slices if one.by is not None]
        whole = {one.metric: one for one in found.slices if one.by is None}
        found = found.result
    if isinstance(found, Comparison):
        if found.state is None:
            raise UsageError(
                "a Comparison that was read from JSON cannot be recorded: compare again"
            )
        inputs = found.inputs.get("systems", {})
        systems: dict[str | None, Any] = {name: inputs.get(name, {}) for name in found.systems}
        return _Facts(found, found.state.gain_function, systems, {}, [*_of_comparison(found)])
    results = _by_system(found)
    one = next(iter(results.values()))
    return _Facts(
        one,
        one.gain_function,
        {name: each.inputs.get("predictions", {}) for name, each in results.items()},
        {name: each.audit for name, each in results.items()},
        [
            *(row for name, each in results.items() for row in _of_result(name, each, whole)),
            *slices,
        ],
    )


def _by_system(found: Result | Mapping[str, Result]) -> Mapping[str | None, Result]:
    if isinstance(found, Result):
        return {None: found}
    if not isinstance(found, Mapping) or not all(isinstance(one, Result) for one in found.values()):
        raise UsageError(
            f"a {type(found).__name__} cannot be recorded; expected a Result, a Verdict, a "
            "Comparison, or what evaluate_runs returns"
        )
    if len(found) == 1:
        return {None: next(iter(found.values()))}
    by_name: dict[str | None, Result] = {}
    by_name.update(found.items())
    return by_name


def _of_result(system: str | None, one: Result, whole: Mapping[str, SliceValue]) -> Iterator[_Row]:
    """Yield the metrics of a result; `whole` has their third moments, where these are known."""
    for metric, value in one.metrics.items():
        third = whole[metric].third_moment if metric in whole else None
        of = one.standard_errors.get(metric), one.averaged(metric), one.effective_queries, third
        yield system, SliceValue(None, None, metric, value, *of)


def _of_comparison(found: Comparison) -> Iterator[_Row]:
    for metric, values in found.values.items():
        yield from _estimates(None, None, metric, values, found.queries)
    for each in found.slices:
        for metric, values in each.values.items():
            yield from _estimates(*named(each.by, each.value), metric, values, each.queries)


def _estimates(
    by: str | None, value: str | None, metric: str, values: Mapping[Any, Estimate], queries: int
) -> Iterator[_Row]:
    for name, one in values.items():
        yield name, SliceValue(by, value, metric, one.value, one.standard_error, queries)


# ------------------------------------------------------------------ what was read


def _columns(
    side: str, details: Mapping[str, object], source: str | Sequence[str] | None
) -> dict[str, Any]:
    """Return the columns of an input, of which a result says `details`.

    `source` are the paths that it was opened by; without them, its name if that is a path. What was
    no file has a name and perhaps rows.
    """
    name, rows = str(details.get("source", "")), details.get("rows")
    found: dict[str, Any] = {"source": utf8(name), "rows": rows if isinstance(rows, int) else None}
    try:
        files = _files(name if source is None else source)
        sizes = [(file.listed or file.identity())[2:] for file in files]
    except (InputError, OSError):  # gone by now, or never a file
        files = []
    if files:
        written = max(written for _, written in sizes) // 1000 / 1e6
        found |= {
            "paths": [utf8(shown(file.name)) for file in files],  # without credentials
            "bytes": sum(size for size, _ in sizes),
            "modified": datetime.fromtimestamp(written, UTC),
            "checksum": _checksum(files),
        }
    return {f"{side}_{key}": value for key, value in found.items()}


def _files(source: object) -> list[File]:
    """The files that a source stands for; none for what is no path."""
    paths = [source] if isinstance(source, str) else source
    if not isinstance(paths, Sequence) or not all(isinstance(path, str) for path in paths):
        return []
    if not paths or not all(path and not is_pipe(path) for path in paths):
        return []
    return [file for file in find_files(paths) if is_url(file.name) or os.path.isfile(file.path)]


def _checksum(files: Sequence[File]) -> str | None:
    """Hash the footers of all files, if all are Parquet: other rows give other footers."""
    hashed = blake2b(digest_size=16)
    try:
        with Workers(REQUESTS) as workers:  # of stores, several objects at a time
            for footer in workers.map(read_footer, files):
                hashed.update(footer.raw.tobytes())
    except InputError:  # no Parquet
        return None
    return hashed.hexdigest()
