"""`rankmill explain-evaluators`: why evaluators come to different values for the same dump."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from rankmill.cli.draw import csv_text, draw_rows, emit, format_for, markdown
from rankmill.cli.inputs import check_outputs, source_of
from rankmill.cli.options import column_options, output_options, resource_options
from rankmill.cli.process import EXIT_CODES, is_terminal
from rankmill.cli.progress import Progress
from rankmill.metrics.registry import parse
from rankmill.results import files as writing

if TYPE_CHECKING:
    from rankmill.explain.evaluators_view import Change, Differences

__all__ = ["command"]

_HELP = """Score PREDICTIONS as several evaluators do, and tell where the difference is from.

LABELS and PREDICTIONS are as for 'rankmill evaluate'. The first preset that has a value is the
base. Below each other one stand the fields in which it counts differently, each changed alone: the
value, the difference from the base, how many queries are touched, and the one that changes most.
See 'rankmill presets' for what they are and where they are from.

A preset with a * has no value on this data, as where it takes repeats for an error; it is shown
with that field as in the base.

\b
Examples:
  rankmill explain-evaluators labels.parquet run.parquet -m map@12
  rankmill explain-evaluators labels run -m map@12 --presets default,trec_eval,spark
  rankmill explain-evaluators labels run -m gap --format json
"""

_CSV_HEADER = ["preset", "field", "choice", "value", "difference", "queries"]
_CSV_HEADER += ["query", "before", "after", "kept", "reason"]


@click.command("explain-evaluators", help=_HELP + EXIT_CODES)
@click.argument("labels")
@click.argument("predictions")
@click.option("-m", "--metric", metavar="METRIC", required=True, help="What to compare, as map@12.")
@click.option(
    "--presets",
    metavar="NAMES",
    help="Presets between commas; if not given, default and all that have the metric.",
)
@column_options
@output_options
@resource_options
def command(
    labels: str,
    predictions: str,
    metric: str,
    presets: str | None,
    format: str | None,
    output: str | None,
    **options: Any,
) -> None:
    """Compare, and write the result whole or not at all."""
    output = None if output == "-" else output
    parse(metric)
    sources = [source_of(labels, "LABELS"), source_of(predictions, "PREDICTIONS")]
    check_outputs(output, None, sources)
    chosen = format_for(format, output)
    named = None if presets is None else [name.strip() for name in presets.split(",")]

    from rankmill.explain.evaluators import explain_evaluators
    from rankmill.explain.evaluators_view import LEGEND, TEXTS, difference_cells, notes

    with Progress() as progress:
        found = explain_evaluators(
            sources[0], sources[1], metric, named, progress=progress, **options
        )
    if output is not None:
        writing.write_text(output, _render(found, chosen))
    elif chosen == "table" and is_terminal(sys.stdout):
        header, rows = difference_cells(found)
        draw_rows(header[:-1], [row[:-1] for row in rows], TEXTS, [*notes(rows), ("", LEGEND)])
    else:
        emit(_render(found, chosen))


def _render(found: Differences, format: str) -> str:
    from rankmill.explain.evaluators_view import difference_cells

    if format == "json":
        return json.dumps(found.to_dict(), indent=2, allow_nan=False) + "\n"
    if format == "csv":
        base = [found.base, "", "", found.value, *[None] * 7]
        rows = [_exact(name, "", whole) for name, whole in found.wholes.items()]
        rows += [
            _exact(name, field, one)
            for name, fields in found.fields.items()
            for field, one in fields.items()
        ]
        return csv_text(_CSV_HEADER, [base, *rows])
    if format == "markdown":
        return markdown(*difference_cells(found), right=(1, 2, 3))
    return f"{found!r}\n"


def _exact(name: str, field: str, change: Change) -> list[str | float | None]:
    return [
        name,
        field,
        change.choices.get(field, ""),
        change.value,
        change.difference,
        change.queries,
        *(change.example or [None] * 3),
        " ".join(change.kept),
        change.reason,
    ]
