"""`rankmill convert`: write any input as wide Parquet, sorted by query id."""

from typing import Any

import click

from rankmill.cli.command import table_command
from rankmill.cli.draw import emit
from rankmill.cli.output_checks import check_outputs
from rankmill.cli.progress_bar import run
from rankmill.config.given_inputs import source_of

_EXAMPLES = """
rankmill convert run.trec run.parquet
rankmill convert qrels.txt labels.parquet --labels
rankmill convert 'scores/*.csv' scores.parquet --query user --score sim
"""


@table_command(
    "convert",
    [click.Argument(["source"], metavar="INPUT"), click.Argument(["output"])],
    examples=_EXAMPLES,
)
def command(source: str, output: str, **options: Any) -> None:
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
