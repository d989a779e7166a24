"""`rankmill init`: write a first rankmill.toml for the files that it is shown."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import click

from rankmill.cli.config import keys
from rankmill.cli.draw import emit
from rankmill.cli.inputs import source_of, system_names
from rankmill.cli.options import column_options
from rankmill.cli.process import EXIT_CODES
from rankmill.cli.progress import Progress
from rankmill.config.filling import is_filled
from rankmill.errors import InputError, UsageError
from rankmill.results import files as writing
from rankmill.stores.urls import is_url, shown

__all__ = ["command"]

_HELP = """Write a first rankmill.toml for LABELS, PREDICTIONS and, if you like, a BASELINE.

The file drives evaluate, compare, gate and report: 'rankmill evaluate rankmill.toml'. It tells in
comments how the inputs were understood, and has rules with the values of today. An existing file is
kept. 'rankmill docs config' tells of all keys.

\b
Examples:
  rankmill init labels.parquet predictions.parquet
  rankmill init labels.parquet new.parquet old.parquet -o nightly.toml
  rankmill init qrels.txt bm25.run -o -
"""
# The longest lists for which the cutoff of the metrics is their length.
_LONGEST = 20


@click.command("init", help=_HELP + EXIT_CODES)
@click.argument("labels")
@click.argument("predictions")
@click.argument("baseline", required=False)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default="rankmill.toml",
    show_default=True,
    help="The file to write; - for standard output.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--no-evaluate", is_flag=True, help="Leave out the values of today.")
@column_options
def command(
    labels: str,
    predictions: str,
    baseline: str | None,
    output: str,
    force: bool,
    no_evaluate: bool,
    **options: Any,
) -> None:
    """Look at the inputs, evaluate the candidate, and write the file."""
    _check_output(output, force)
    texts = [predictions] if baseline is None else [predictions, baseline]
    sources = {"LABELS": source_of(labels, "LABELS")}
    names = system_names(texts)
    for name, text in zip(names, texts, strict=True):
        sources[name] = source_of(text, "PREDICTIONS")
    given = {name: value for name, value in options.items() if value not in (None, False)}
    if given.get("gain_function") == "linear":  # the default
        del given["gain_function"]

    from rankmill.config.written import Found, written

    folder = "" if output == "-" else os.path.dirname(output)
    paths = {name: _paths(source, folder) for name, source in sources.items()}
    found = {
        name: Found(paths[name], _told(source, name == "LABELS", given))
        for name, source in sources.items()
    }
    first = found.pop("LABELS")
    metrics = _metrics([one.told for one in found.values()])
    values = None if no_evaluate else _values(sources["LABELS"], sources[names[0]], metrics, given)
    text = written(first, found, metrics, given, values, keys())
    if output == "-":
        emit(text)
    else:
        writing.write_text(output, text)
        emit(f"wrote {output}; now: rankmill evaluate {output}\n")


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
    from rankmill.engine.role import Named

    prefix = "label_" if is_labels else ""
    own = {"gain", "binary"} if is_labels else {"score", "rank", "in_order"}
    named = {name: given[name] for name in own if name in given}
    for name in ("query", "item"):
        named[name] = given.get(prefix + name, given.get(name))
    told = head(
        source,
        "labels" if is_labels else "predictions",
        Named(**named),
        given.get("labels_as" if is_labels else "predictions_as"),
        given.get(f"{prefix}columns", given.get("columns")),
        given.get(f"{prefix}encoding", given.get("encoding")),
    )
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


def _values(
    labels: Any, predictions: Any, metrics: list[str], given: dict[str, Any]
) -> dict[str, float | None]:
    from rankmill.engine.evaluate import evaluate

    with Progress() as progress:
        options = given | {"per_query": False, "progress": progress}
        return dict(evaluate(labels, predictions, metrics, **options).metrics)
