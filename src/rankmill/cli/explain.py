"""`rankmill explain`: the walk down one query's list, or that of gap, to the value of a metric."""

from typing import Any

import click

from rankmill.cli.command import table_command
from rankmill.cli.draw import deliver
from rankmill.cli.output_checks import catalogue_sources, check_outputs, format_for
from rankmill.cli.progress_bar import run
from rankmill.config.given_inputs import source_of
from rankmill.errors import InputError
from rankmill.io import whole_files as writing
from rankmill.io.table_files import SUFFIXES, suffix_of

_HELP = """Show how a metric is computed for one query's list of PREDICTIONS, rank by rank.

LABELS and PREDICTIONS are the same as for 'rankmill evaluate'. Each row is a rank: the item,
whether it is a hit, and the term that it adds to the sum. The last lines show what the sum is
divided by, and the value, which is the one of 'rankmill evaluate' for this query. gap ranks all
predictions in one list: leave out --query-id. The predictions must then fit in memory, at about 200
bytes each. For auprc, best_f1, ece and related metrics, the rows are the precision-recall curve or
the bins. novelty, ild and other means over lists need the same options as in 'rankmill evaluate',
such as --train.
"""
_EXAMPLES = """
rankmill explain labels.parquet run.parquet --query-id 17 -m map@12
rankmill explain labels run --query-id 17 -m ndcg@10 --preset trec_eval
rankmill explain labels run -m gap --rows 20
rankmill explain labels run --query-id 17 -m novelty@12 --train history.parquet
rankmill explain labels run -m auprc -o curve.parquet
"""

_ROWS = 50


@table_command(
    "explain",
    [click.Argument(["labels"]), click.Argument(["predictions"])],
    help=_HELP,
    examples=_EXAMPLES,
)
def command(
    labels: str,
    predictions: str,
    metric: str,
    query_id: str | None,
    rows: int | None,
    format: str | None,
    output: str | None,
    **options: Any,
) -> None:
    """Trace, and write the rows whole or not at all; as a table if the file is called so."""
    from rankmill.metrics.registry import parse

    parse(metric)
    sources = [source_of(labels, "LABELS"), source_of(predictions, "PREDICTIONS")]
    check_outputs(output, [*sources, *catalogue_sources(options)])
    # CSV is what --format csv writes.
    as_table = format is None and suffix_of(output or "") in {*SUFFIXES} - {".csv"}
    chosen = "" if as_table else format_for(format, output, SUFFIXES)
    if rows is None and chosen in ("table", "markdown", "latex"):
        rows = _ROWS

    from rankmill.analysis.explain.trace import explain

    options |= {"metric": metric, "query_id": query_id, "rows": rows}
    found = run(explain, sources[0], sources[1], options)
    if as_table and output is not None:
        writing.write_table(output, found.table)
    else:
        deliver(found, chosen, output)
    if found.value is None and found.query is None:
        raise InputError(f"{predictions}: {found.headline}")
