"""`rankmill convert`: write any input as wide Parquet, sorted by query id."""

from __future__ import annotations

from typing import Any

import click

from rankmill.cli.draw import emit
from rankmill.cli.face import face_of
from rankmill.cli.inputs import check_outputs, parse_size, source_of
from rankmill.cli.one_input import input_options
from rankmill.cli.process import EXIT_CODES
from rankmill.cli.progress import Progress

__all__ = ["command"]

_HELP = """Write INPUT, labels or predictions of any kind, to OUTPUT as wide Parquet.

The file has a row for each query, sorted by query id: query_id, items in rank order, and scores or
gains if there are any. Evaluating it gives the same values, and reads least. Null items are left
out; gains of 0 or less, repeats and empty lists are kept. OUTPUT ends in .parquet, and is written
whole or not at all.

\b
Examples:
  rankmill convert run.trec run.parquet
  rankmill convert qrels.txt labels.parquet --labels
  rankmill convert 'scores/*.csv' scores.parquet --query user --score sim
"""


@click.command("convert", help=_HELP + EXIT_CODES)
@click.argument("source", metavar="INPUT")
@click.argument("output")
@input_options
@click.option(
    "--integers",
    type=click.Choice(("query", "item")),
    multiple=True,
    help="Write these ids of text as integers, to be compared with integers; repeat for both. By "
    "default they are strings.",
)
@click.option(
    "--memory",
    callback=parse_size,
    metavar="SIZE",
    default="1GiB",
    show_default=True,
    help="The memory limit for rows, such as 500MB or 2GB. More of them are grouped and sorted on "
    "disk.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="The number of threads; by default all available CPUs.",
)
def command(source: str, output: str, **options: Any) -> None:
    """Check the names, convert, and tell what was written."""
    paths = source_of(source, "INPUT")
    from rankmill.engine.convert import check_path, convert
    from rankmill.results.converted import converted_lines
    from rankmill.results.writers import plain_text

    check_path(output)
    check_outputs(output, [paths])
    with Progress() as progress:
        options |= {"path": output, "progress": progress}
        told = convert(**face_of(convert, paths, None, options))
    emit(plain_text(converted_lines(told)) + "\n")
