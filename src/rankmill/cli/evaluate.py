"""`rankmill evaluate`: score predictions against labels, print or write the result."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from rankmill import writing
from rankmill.cli.render import FORMATS, Progress, draw, emit, format_for, render
from rankmill.errors import UsageError
from rankmill.metrics import DEFAULT_METRICS, parse

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["command"]

_HELP = """Score ranked PREDICTIONS against LABELS.

Each of the two is a Parquet file, a quoted glob ('run/*.parquet'), a folder (also
Hive-partitioned), or several files separated by commas. Their rows have one of two shapes, told
apart by the schema:

\b
  wide   a row a query: its id, a list of items in rank order
         and, if you like, a list of their confidences
  long   a row an item: query id, item, and a rank or confidence;
         without either, items rank in the order of the file

Columns are found by common names, in any case, with or without underscores; the options below
say which to take where yours are called something else:

\b
  query ids    query_id, qid, user_id, customer_id, image_id, topic, ...
  items        item_id, items, doc_id, article_id, product_id, ...
               or labels and predictions
  confidences  score, confidence, conf, probability, ...
  ranks        rank, position
  gains        gain, relevance, rel, grade

\b
Examples:
  rankmill evaluate labels.parquet predictions.parquet -m map@12
  rankmill evaluate labels.parquet 'p/*.parquet' -m mrr@5 -m gap --format csv
  rankmill evaluate labels predictions -m ndcg@10 --gain rating --gains exp
  rankmill evaluate l.parquet p.parquet -m map -o a.md --per-query q.parquet

\b
Exit codes:
  0  done                        2  wrong usage, as an unknown metric
  3  wrong input data            130  interrupted by Ctrl-C
"""


@click.command("evaluate", help=_HELP)
@click.argument("labels")
@click.argument("predictions")
@click.option(
    "-m",
    "--metric",
    "metrics",
    metavar="METRIC",
    multiple=True,
    default=DEFAULT_METRICS,
    show_default=True,
    help="What to compute, as map@12; repeat for more. See 'rankmill metrics'.",
)
@click.option("--query", metavar="COLUMN", help="Column of query ids, in both inputs.")
@click.option("--item", metavar="COLUMN", help="Column of items, in both inputs.")
@click.option("--score", metavar="COLUMN", help="Column of confidences of the predictions.")
@click.option("--rank", metavar="COLUMN", help="Column of ranks of the predictions.")
@click.option("--gain", metavar="COLUMN", help="Column of gains (graded relevance) of the labels.")
@click.option("--label-query", metavar="COLUMN", help="As --query, where the labels differ.")
@click.option("--label-item", metavar="COLUMN", help="As --item, where the labels differ.")
@click.option(
    "--gains",
    type=click.Choice(("linear", "exp")),
    default="linear",
    show_default=True,
    help="Gain of a label g in ndcg and dcg: g, or 2^g - 1.",
)
@click.option(
    "--format",
    "format",
    type=click.Choice(FORMATS),
    metavar="FORMAT",
    help="table, json, csv or markdown; if not given, as the suffix of -o says, else table.",
)
@click.option("-o", "--output", metavar="FILE", help="Write the result to FILE instead.")
@click.option(
    "--per-query", metavar="FILE", help="Also write each query's values to FILE, as Parquet."
)
@click.option(
    "--threads", type=click.IntRange(min=1), metavar="N", help="Threads to use; default: all cores."
)
def command(
    labels: str,
    predictions: str,
    metrics: tuple[str, ...],
    query: str | None,
    item: str | None,
    score: str | None,
    rank: str | None,
    gain: str | None,
    label_query: str | None,
    label_item: str | None,
    gains: str,
    format: str | None,
    output: str | None,
    per_query: str | None,
    threads: int | None,
) -> None:
    """Check what can be checked, evaluate, and write the result whole or not at all."""
    output = None if output == "-" else output
    for text in metrics:
        parse(text)
    label_source, prediction_source = _source(labels, "LABELS"), _source(predictions, "PREDICTIONS")
    _check_outputs(output, per_query, [*_as_list(label_source), *_as_list(prediction_source)])
    chosen = format_for(format, output)

    import rankmill

    with Progress() as progress:
        result = rankmill.evaluate(
            label_source,
            prediction_source,
            metrics,
            query=query,
            item=item,
            score=score,
            rank=rank,
            gain=gain,
            label_query=label_query,
            label_item=label_item,
            gains=gains,
            threads=threads,
            per_query=per_query is not None,
            progress=progress,
        )

    files: list[tuple[str, str | pa.Table]] = []
    if output is not None:
        files.append((output, render(result, chosen)))
    if per_query is not None:
        files.append((per_query, result.per_query))
    writing.write_files(files)
    if output is not None:
        return
    if chosen == "table" and sys.stdout.isatty():
        draw(result)
    else:
        emit(render(result, chosen))


def _check_outputs(output: str | None, per_query: str | None, inputs: list[str]) -> None:
    """Find out before a long run what would make its result impossible to write."""
    for path in (output, per_query):
        if path is None:
            continue
        writing.check_target(path)
        for source in inputs:
            if os.path.isfile(path) and os.path.isfile(source) and os.path.samefile(path, source):
                raise UsageError(f"cannot write to {path}: it is one of the inputs")
    if None in (output, per_query) or os.devnull in (output, per_query):
        return
    if os.path.realpath(str(output)) == os.path.realpath(str(per_query)):
        raise UsageError(f"-o and --per-query are the same file, {output}: give two names")


def _source(text: str, name: str) -> str | list[str]:
    """Return the input that an argument names: one path or glob, or a list of them."""
    if "," not in text or os.path.exists(text):
        return text
    paths = text.split(",")
    if not all(paths):
        raise UsageError(f"{name} {text!r} has an empty name between its commas: remove a comma")
    return paths


def _as_list(source: str | list[str]) -> list[str]:
    return [source] if isinstance(source, str) else source
