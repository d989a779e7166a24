"""`rankmill head`: show how an input is understood."""

from __future__ import annotations

from typing import Any

import click

from rankmill.cli.command import table_command
from rankmill.cli.draw import deliver
from rankmill.cli.inputs import source_of
from rankmill.errors import InputError
from rankmill.results.understood import head_view

__all__ = ["command"]

_HELP = """Show how INPUT, labels or predictions of any kind, would be understood.

That is its format, its shape, the role of each column, and the first three queries with their first
items. Only the first rows are read, so it is quick for files of any size.
"""
_EXAMPLES = """
rankmill head run.trec
rankmill head qrels.txt --labels
rankmill head scores.csv --score sim --format json
"""


@table_command(
    "head", [click.Argument(["source"], metavar="INPUT")], help=_HELP, examples=_EXAMPLES
)
def command(
    source: str,
    role: Any,
    told_format: str | None,
    columns: str | None,
    encoding: str | None,
    format: str,
    **named: Any,
) -> None:
    """Look at the first rows, show them, and fail if something is wrong with them."""
    paths = source_of(source, "INPUT")
    from rankmill.engine.head import head
    from rankmill.engine.role import Named

    told = head(paths, role, Named(**named), told_format, columns, encoding)
    deliver(head_view(told, role is not None), format, None)
    if told["problem"] is not None:
        raise InputError(told["problem"])
