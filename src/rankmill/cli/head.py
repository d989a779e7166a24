"""`rankmill head`: show how an input is understood."""

from typing import Any

import click

from rankmill.cli.command import table_command
from rankmill.cli.draw import deliver
from rankmill.config.face import face_of
from rankmill.config.given_inputs import source_of
from rankmill.errors import InputError

_EXAMPLES = """
rankmill head run.trec
rankmill head qrels.txt --labels
rankmill head scores.csv --score sim --format json
"""


@table_command("head", [click.Argument(["source"], metavar="INPUT")], examples=_EXAMPLES)
def command(
    source: str,
    format: str,
    **options: Any,
) -> None:
    """Show how rankmill reads INPUT, which can be labels or predictions.

    The output has its format, its shape, the role of each column, and the first three queries with
    their first items. Only the first rows are read, so it is quick for files of any size.
    """
    paths = source_of(source, "INPUT")
    from rankmill.engine.head import head, head_view

    told = head(**face_of(head, paths, None, options))
    deliver(head_view(told, options["role"] is not None), format, None)
    if told["problem"] is not None:
        raise InputError(told["problem"])
