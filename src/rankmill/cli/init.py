"""`rankmill init`: write a first rankmill.toml for the files that it is shown."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from rankmill.cli.command import table_command
from rankmill.cli.draw import emit
from rankmill.cli.progress_bar import run
from rankmill.config.document import dates_in, is_filled, with_holes
from rankmill.config.face import face_of, options_taken
from rankmill.config.given_inputs import source_of, system_names
from rankmill.errors import InputError, UsageError, plural
from rankmill.io import whole_files as writing
from rankmill.io.stores.urls import is_url, shown

if TYPE_CHECKING:
    from rankmill.config.first_file import FoundInput

_EXAMPLES = """
rankmill init labels.parquet predictions.parquet
rankmill init labels.parquet new.parquet old.parquet -o nightly.toml
rankmill init labels.parquet new.parquet --by users.csv
rankmill init qrels.txt bm25.run -o -
"""
# The longest lists for which the cutoff of the metrics is their length.
_LONGEST = 20
_HOLE = re.compile(r"\{date[^}]*\}")


@table_command(
    "init",
    [
        click.Argument(["labels"]),
        click.Argument(["predictions"]),
        click.Argument(["baseline"], required=False),
    ],
    examples=_EXAMPLES,
)
def command(
    labels: str,
    predictions: str,
    baseline: str | None,
    output: str,
    force: bool,
    no_evaluate: bool,
    by: tuple[str, ...],
    **options: Any,
) -> None:
    """Write a first rankmill.toml for LABELS, PREDICTIONS and an optional BASELINE.

    Use the file with evaluate, compare, gate and report: 'rankmill evaluate rankmill.toml'. Its
    comments show how the inputs were read. It has two rules for 'rankmill gate' with today's
    values, and more in comments. A date in a name, such as 2024-05-01 or 20240501, becomes {date}.
    An existing file is not replaced. See 'rankmill docs config' for all keys.
    """
    _check_output(output, force)
    texts = [predictions] if baseline is None else [predictions, baseline]
    sources = {"LABELS": source_of(labels, "LABELS")}
    names = system_names(texts)
    for name, text in zip(names, texts, strict=True):
        sources[name] = source_of(text, "PREDICTIONS")
    given = {name: value for name, value in options.items() if value not in (None, False)}
    if given.get("gain_function") == "linear":  # the default
        del given["gain_function"]

    from rankmill.config.first_file import FoundInput, written

    folder = "" if output == "-" else os.path.dirname(output)
    paths = {name: _paths(source, folder) for name, source in sources.items()}
    date = _date_of([paths[names[0]], paths["LABELS"]])
    found = {
        name: FoundInput(_dated(paths[name], date), _told(source, name == "LABELS", given))
        for name, source in sources.items()
    }
    first = found.pop("LABELS")
    found = dict(zip(_undated(names, date), found.values(), strict=True))
    metrics = _metrics([one.told for one in found.values()])
    today: list[dict[str, Any]] = []
    if not no_evaluate:
        from rankmill.engine.evaluate import evaluate

        asked = given | {"metrics": metrics, "by": by, "per_query": False}
        today = [vars(run(evaluate, sources["LABELS"], sources[name], asked)) for name in names]
    hint = _hint([*found], [paths[name] for name in names], today)
    slices = _slices(by, folder, date, first)
    text = written(first, found, metrics, given, today[0] if today else {}, *slices, hint)
    if output == "-":
        emit(text)
    else:
        writing.write_files([(output, text)])
        day = "" if date is None else f" --date {date}"
        note = f"note: {hint}\n" if hint else ""
        emit(f"{note}wrote {output}; now: rankmill gate {shlex.quote(output)}{day}\n")


def _check_output(output: str, force: bool) -> None:
    if output == "-":
        return
    if is_url(output) or not output.lower().endswith(".toml"):
        raise UsageError(
            f"cannot write {shown(output)}: expected the name of a local file in .toml"
        )
    writing.check_target(output)
    if os.path.lexists(output) and not force:
        raise UsageError(f"{output} exists; choose another name with -o, or replace it by --force")


def _paths(source: str | list[str], folder: str) -> str | list[str]:
    """Return the path or paths of an input as a file in a folder names them."""
    if isinstance(source, list):
        return [str(_paths(one, folder)) for one in source]
    if source == "-":
        raise UsageError("standard input cannot be read again by a FILE.toml; expected a file")
    if shown(source) != source:
        raise UsageError(
            f"{shown(source)} is given with credentials, which do not belong into a file; set "
            "them in the environment ('rankmill docs stores')"
        )
    if is_filled(source):
        raise UsageError(f"{source} holds {{date}} or ${{, which a FILE.toml fills in; rename it")
    try:
        source.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{source} is a name without UTF-8, which TOML needs; rename it") from None
    if not folder or os.path.isabs(source) or is_url(source) or source.startswith("file://"):
        return source
    return os.path.relpath(source, folder)


def _told(source: Any, is_labels: bool, given: dict[str, Any]) -> dict[str, Any]:
    """Return how an input is understood under the options."""
    from rankmill.engine.head import head
    from rankmill.engine.plan import plan
    from rankmill.sources.nouns import Labels, Predictions

    known = {name: one for name, one in given.items() if name in options_taken(plan)}
    both = face_of(plan, source, source, known)
    one = Labels.of(both["labels"]) if is_labels else Predictions.of(both["predictions"])
    told = head(one)
    if told["problem"] is not None:
        raise InputError(told["problem"])
    return told


def _metrics(told: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return metrics for systems: at the length of short lists, and gap if all have confidences."""
    longest = max((query["count"] for one in told for query in one["queries"]), default=0)
    k = longest if 2 < longest <= _LONGEST else 10
    roles = [", ".join(column["role"] or "" for column in one["columns"]) for one in told]
    names = [f"{name}@{k}" for name in ("map", "first_hit", "recall", "ndcg")]
    return [*names, "gap"] if all("score" in its.split(", ") for its in roles) else names


def _date_of(paths: Sequence[str | list[str]]) -> date | None:
    """Return the last date in the names of the predictions, else of the labels."""
    for path in paths:
        dates = [
            one for text in ([path] if isinstance(path, str) else path) for one in dates_in(text)
        ]
        if dates:
            return dates[-1]
    return None


def _dated(path: str | list[str], date: date | None) -> str | list[str]:
    """Return paths with {date} in the place of a date; other dates stay."""
    if date is None:
        return path
    return with_holes(path, date) if isinstance(path, str) else [with_holes(p, date) for p in path]


def _undated(names: Sequence[str], date: date | None) -> list[str]:
    """Return names of systems without the date, which is another one tomorrow."""
    if date is None:
        return [*names]
    shorter = [_HOLE.sub("", with_holes(name, date)).strip("-_. /") for name in names]
    return shorter if all(shorter) and len({*shorter}) == len(shorter) else [*names]


def _slices(
    by: Sequence[str], folder: str, date: date | None, labels: FoundInput
) -> tuple[list[str], list[str]]:
    """Return what slices the queries as the file has it, and the columns that this names."""
    from rankmill.engine.cuts import column_names
    from rankmill.sources.files.formats import is_path

    read = {one["name"] for one in labels.read()}
    columns = [name for one in by for name in (column_names(one) if is_path(one) else [one])]
    texts = [str(_dated(_paths(one, folder), date)) if is_path(one) else one for one in by]
    return texts, [name for name in columns if name not in read]


def _hint(
    names: Sequence[str], paths: Sequence[str | list[str]], today: Sequence[Mapping[str, Any]]
) -> str:
    """Return what to know of a baseline that is the same system on another night, or may be."""
    if len(names) < 2:
        return ""
    instead = (
        'use baseline = "last" with history = "history", and predictions = ... instead of [systems]'
    )
    dates = [_date_of([one]) for one in paths]
    files = [
        str(_dated(one, day)).rpartition("/")[2] for one, day in zip(paths, dates, strict=True)
    ]
    if files[0] == files[1] and None not in dates and dates[0] != dates[1]:
        return (
            f"{names[1]} is {names[0]} of {dates[1]}; to compare each night with the last one that "
            f"held, {instead}"
        )
    from rankmill.nightly.rules.sides import MIN_OVERLAP

    mine, theirs = (one["audit"]["queries_in_both"] for one in today) if today else (0, 0)
    if theirs >= MIN_OVERLAP * mine:
        return ""
    return (
        f"{names[1]} has predictions for {plural(theirs, 'query')} with labels, and {names[0]} for "
        f"{mine:,}; if it is from another night, {instead}"
    )
