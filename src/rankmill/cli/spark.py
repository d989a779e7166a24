"""`rankmill spark`, also `python -m rankmill.spark`: evaluate on a session of Spark."""

from __future__ import annotations

from typing import Any

import click

from rankmill.cli.draw import deliver, format_for
from rankmill.cli.inputs import parse_size, system_names
from rankmill.cli.options import (
    column_options,
    metric_option,
    output_options,
    scope_options,
    semantics_options,
)
from rankmill.cli.process import EXIT_CODES
from rankmill.errors import UsageError
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.results.cluster_plan import cluster_plan_view
from rankmill.results.result import check_values, view_of
from rankmill.results.systems import systems_view

__all__ = ["command"]

_HELP = """Score ranked PREDICTIONS against LABELS on Spark.

Each of the two is a path or URL that Spark reads, or several separated by commas; with --labels-as
table, the name of a table. The suffix tells the format: .csv with a header, .json, .orc; all else
is Parquet. The session is the one of spark-submit, or that of the variables and files of Spark, or
one on this machine. What is counted, and every bit of it, is as by 'rankmill evaluate'. Long rows
need a rank or a confidence, because rows of Spark have no order. See 'rankmill docs spark'.

\b
Examples:
  rankmill spark labels.parquet predictions.parquet -m map@12
  rankmill spark db.labels s3a://bucket/run --labels-as table -m gap
  spark-submit run.py labels.parquet old new -m map -o result.json
"""


@click.command("spark", help=_HELP + EXIT_CODES)
@click.argument("labels")
@click.argument("predictions", nargs=-1, required=True)
@metric_option(
    "What to compute, as map@12; repeat for more. See 'rankmill metrics'.",
    DEFAULT_METRICS,
)
@column_options
@semantics_options
@scope_options
@output_options
@click.option(
    "--per-query",
    metavar="PATH",
    help="Also write each query's values to the new folder PATH, as Parquet; with several "
    "PREDICTIONS, to a folder in it for each.",
)
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    metavar="N",
    help="Into how many partitions rows are shuffled; by default one for 32 MB of input, and only "
    "if they must be.",
)
@click.option(
    "--memory",
    callback=parse_size,
    metavar="SIZE",
    default="1GiB",
    show_default=True,
    help="The memory limit of a task, as in 'rankmill evaluate'.",
)
@click.option(
    "--plan",
    "only_plan",
    is_flag=True,
    help="Only tell what would be shuffled, by how many tasks, and the memory it would take.",
)
def command(
    labels: str,
    predictions: tuple[str, ...],
    metrics: tuple[str, ...],
    format: str | None,
    output: str | None,
    per_query: str | None,
    only_plan: bool,
    labels_as: str | None,
    predictions_as: str | None,
    columns: str | None,
    label_columns: str | None,
    **options: Any,
) -> None:
    """Check what can be checked, evaluate, and write the result whole or not at all."""
    from rankmill.metrics.registry import parse_all

    if columns is not None or label_columns is not None:
        raise UsageError("files of Spark have headers: leave out --columns and --label-columns")
    output = None if output == "-" else output
    parse_all(metrics)
    chosen = format_for(format, output)
    names = system_names(predictions)

    from rankmill.spark.run import evaluate_runs
    from rankmill.spark.session import read, session, write

    spark = session()
    frame = read(spark, labels, labels_as)
    runs = {
        name: read(spark, text, predictions_as)
        for name, text in zip(names, predictions, strict=True)
    }
    if only_plan:
        from rankmill.spark.planning import plan_runs

        deliver(cluster_plan_view(plan_runs(frame, runs, metrics, **options)), chosen, output)
        return
    results = evaluate_runs(frame, runs, metrics, per_query=per_query is not None, **options)
    for name, one in results.items() if per_query is not None else ():
        place = str(per_query) if len(results) == 1 else f"{per_query}/{name}"
        write(one.per_query, place)
    first = next(iter(results.values()))
    # If predictions decide which queries count, only their values tell whether these are the same.
    same = None if first.semantics.counts_by_predictions else True
    view = view_of(first) if len(results) == 1 else systems_view(results, same)
    deliver(view, chosen, output)
    check_values(results)
