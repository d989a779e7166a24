"""`rankmill evaluate`: score predictions against labels, print or write the result."""

from __future__ import annotations

from typing import Any

import click

from rankmill.cli.draw import deliver, format_for
from rankmill.cli.face import face_of
from rankmill.cli.file_command import FileCommand
from rankmill.cli.inputs import check_outputs, source_of
from rankmill.cli.options import (
    catalogue_options,
    catalogue_sources,
    column_options,
    history_options,
    metric_option,
    output_options,
    resource_options,
    scope_options,
    semantics_options,
)
from rankmill.cli.paging import check_page, page_of, report_option, trends_of
from rankmill.cli.process import EXIT_CODES
from rankmill.cli.progress import Progress
from rankmill.cli.recording import Recording, by_system
from rankmill.errors import UsageError
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.results.plan import plan_view
from rankmill.results.result import Result, check_values, view_of
from rankmill.results.systems import same_queries, systems_view
from rankmill.results.table_files import NAMED, suffix_of
from rankmill.results.writers import write

__all__ = ["command"]

_HELP = """Score ranked PREDICTIONS against LABELS.

Each of the two is a file, a quoted glob ('run/*.parquet'), a folder (also Hive-partitioned),
several files separated by commas, or - for standard input; URLs of object stores too (see
'rankmill docs stores'). Suffix and content tell the format (see 'rankmill docs formats'):

\b
  columns  Parquet, Arrow IPC and Feather, ORC
  text     CSV, TSV, qrels and runs of TREC, JSON Lines, JSON by query;
           also compressed, as .csv.gz

Several PREDICTIONS are several systems, scored side by side; the labels are read once. A single
FILE.toml in the place of both names them and the options ('rankmill docs config'). Rows have
one of two shapes, told apart by the columns:

\b
  wide   a row a query: its id, a list of items in rank order
         and, if you like, a list of their confidences
  long   a row an item: query id, item, and a rank or confidence;
         without either, items rank in the order of the file, if no
         column of numbers is left over; --in-order says so

Columns are found by common names, in any case, with or without underscores; the options below
say which to take where yours are called something else:

\b
  query ids    query_id, qid, user_id, customer_id, image_id, topic, ...
  items        item_id, items, doc_id, article_id, product_id, ...
               or labels and predictions
  confidences  score, confidence, conf, probability, similarity, ...
  ranks        rank, position
  gains        gain, relevance, rel, grade, judgment, ...

\b
Examples:
  rankmill evaluate labels.parquet predictions.parquet -m map@12
  rankmill evaluate labels.parquet 'p/*.parquet' -m mrr@5 -m gap --format csv
  rankmill evaluate labels run -m ndcg@10 --gain stars --gain-function exp
  rankmill evaluate labels run -m map --binary --in-order
  rankmill evaluate l.parquet p.parquet -m map -o a.md --per-query q.parquet
  rankmill evaluate labels.parquet old.parquet new.parquet -m map@12
  rankmill evaluate rankmill.toml
  rankmill evaluate qrels.txt bm25.run -m map --preset trec_eval
  rankmill evaluate solution.csv submission.csv -m map@5
  zcat p.jsonl.gz | rankmill evaluate labels.jsonl -
"""


@click.command("evaluate", cls=FileCommand, help=_HELP + EXIT_CODES)
@metric_option(
    "What to compute, as map@12; repeat for more. See 'rankmill metrics'.",
    DEFAULT_METRICS,
)
@column_options
@semantics_options
@scope_options
@catalogue_options
@output_options
@click.option(
    "--per-query",
    metavar="FILE",
    help=f"Also write each query's values to FILE, in the format of its suffix: {NAMED}.",
)
@click.option(
    "--curve",
    metavar="FILE",
    help="Also write the curves and bins of auprc, best_f1, ece and their like to FILE, in the "
    f"format of its suffix: .json, {NAMED}.",
)
@report_option
@history_options
@resource_options
@click.option(
    "--plan",
    "only_plan",
    is_flag=True,
    help="Only tell what would be read and the memory it would take.",
)
def command(
    labels: str,
    systems: dict[str, str],
    metrics: tuple[str, ...],
    format: str | None,
    output: str | None,
    per_query: str | None,
    curve: str | None,
    report: str | None,
    only_plan: bool,
    recording: Recording,
    **options: Any,
) -> None:
    """Check what can be checked, evaluate, and write the result whole or not at all."""
    from rankmill.metrics.aggregate import has_curve
    from rankmill.metrics.registry import parse_all

    output = None if output == "-" else output
    parsed = parse_all(metrics, semantics=options["semantics"])
    label_source = source_of(labels, "LABELS")
    runs = {name: source_of(text, "PREDICTIONS") for name, text in systems.items()}
    files = {"per_query": per_query, "curve": curve, "report": report}
    files["history"] = recording.place
    check_outputs(output, [label_source, *runs.values(), *catalogue_sources(options)], **files)
    check_page(report)
    if curve is not None and not any(map(has_curve, parsed)):
        raise UsageError("--curve is for metrics such as auprc, best_f1 and ece: ask for one (-m)")
    if report is not None and len(runs) > 1:
        raise UsageError("--report shows one system: 'rankmill report' compares several")
    chosen = format_for(format, output)
    options |= {"metrics": metrics, "per_query": per_query is not None}

    if only_plan:
        from rankmill.engine.plan import plan_runs

        asked = face_of(plan_runs, label_source, runs, options)
        deliver(plan_view(plan_runs(**asked)), chosen, output)
        return
    recorded: list[tuple[str, Any]] = []
    results: dict[str, Result]
    if report is None:
        from rankmill.engine.evaluate import evaluate_runs

        with Progress() as progress:
            given = face_of(evaluate_runs, label_source, runs, options | {"progress": progress})
            results = evaluate_runs(**given)
    else:
        from rankmill.compare.details import evaluate_in_detail

        del options["per_query"]
        with Progress() as progress:
            options["progress"] = progress
            given = face_of(evaluate_in_detail, label_source, runs, options)
            results, details = evaluate_in_detail(**given)
        (only,) = results.values()
        trends = trends_of(only, recording.history, recording.time)
        page = page_of(only, given, trends, details)
        recorded.append((report, page))
    if curve is not None:
        recorded.append((curve, _curves(results, curve)))
    if all(None not in one.metrics.values() for one in results.values()):
        recorded += recording.record_run(results, label_source, by_system(runs))
    _deliver(results, chosen, output, per_query, recorded)
    check_values(results)
    recording.log_run([output, per_query, curve, report])


def _curves(results: dict[str, Result], path: str) -> Any:
    """Return the curves as a table, or as JSON."""
    from rankmill.results.curves import curves_of, view_of_curves

    table = curves_of({name: one.curves for name, one in results.items()})
    return write(view_of_curves(table), "json") if suffix_of(path) == ".json" else table


def _deliver(
    results: dict[str, Result],
    format: str,
    output: str | None,
    per_query: str | None,
    tables: list[tuple[str, Any]],
) -> None:
    """Show one result, or several side by side, with the values of each query in a file."""
    if len(results) == 1:
        ((_, only),) = results.items()
        more = [(per_query, only.per_query)] if per_query is not None else []
        deliver(view_of(only), format, output, [*more, *tables])
        return
    from rankmill.compare.aligned import join_per_query
    from rankmill.metrics.registry import sides_of

    more = [(per_query, join_per_query(results))] if per_query is not None else []
    view = systems_view(
        results, same_queries(results), sides_of(next(iter(results.values())).metrics)
    )
    deliver(view, format, output, [*more, *tables])
