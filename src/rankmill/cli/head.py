"""`rankmill head` shows how an input is understood; `rankmill convert` writes it as Parquet."""

from typing import Any

import click

from rankmill.cli.command import table_command
from rankmill.cli.draw import deliver, emit
from rankmill.cli.output_checks import check_outputs
from rankmill.cli.progress_bar import run
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


_CONVERT_EXAMPLES = """
rankmill convert run.trec run.parquet
rankmill convert qrels.txt labels.parquet --labels
rankmill convert 'scores/*.csv' scores.parquet --query user --score sim
"""


@table_command(
    "convert",
    [click.Argument(["source"], metavar="INPUT"), click.Argument(["output"])],
    examples=_CONVERT_EXAMPLES,
)
def convert(source: str, output: str, **options: Any) -> None:
    """Write INPUT, which can be labels or predictions, to OUTPUT as wide Parquet.

    The file has one row per query, sorted by query id: query_id, items in rank order, and scores or
    gains if there are any. It evaluates to the same values, and is the fastest input to read. Null
    items are dropped; gains of 0 or less, repeats and empty lists are kept. OUTPUT must end in
    .parquet. It is written completely or not at all. The rows are sorted in memory: --memory limits
    what they take there.
    """
    paths = source_of(source, "INPUT")
    from rankmill.engine.convert import check_path, convert, converted_lines
    from rankmill.show.writers import plain_text

    check_path(output)
    check_outputs(output, [paths])
    told = run(convert, paths, None, options | {"path": output})
    emit(plain_text(converted_lines(told)) + "\n")
