"""`rankmill head`: show how an input is understood."""

from __future__ import annotations

from typing import Any

import click

from rankmill.cli.draw import deliver
from rankmill.cli.face import face_of
from rankmill.cli.inputs import source_of
from rankmill.cli.one_input import input_options
from rankmill.cli.process import EXIT_CODES
from rankmill.errors import InputError
from rankmill.results.understood import head_view
from rankmill.results.writers import FORMATS

__all__ = ["command"]

_HELP = """Show how INPUT, labels or predictions of any kind, would be understood.

That is its format, its shape, the role of each column, and the first three queries with their first
items. Only the first rows are read, so it is quick for files of any size.

\b
Examples:
  rankmill head run.trec
  rankmill head qrels.txt --labels
  rankmill head scores.csv --score sim --format json
"""


@click.command("head", help=_HELP + EXIT_CODES)
@click.argument("source", metavar="INPUT")
@input_options
@click.option("--format", "format", type=click.Choice(FORMATS), default="table", show_default=True)
def command(
    source: str,
    format: str,
    **options: Any,
) -> None:
    """Look at the first rows, show them, and fail if something is wrong with them."""
    paths = source_of(source, "INPUT")
    from rankmill.engine.head import head

    told = head(**face_of(head, paths, None, options))
    deliver(head_view(told, options["role"] is not None), format, None)
    if told["problem"] is not None:
        raise InputError(told["problem"])
