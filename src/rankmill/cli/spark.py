"""`rankmill spark`, also `python -m rankmill.spark`: evaluate on a session of Spark."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from rankmill.cli.command import table_command
from rankmill.cli.draw import deliver, format_for
from rankmill.cli.file_command import FileCommand
from rankmill.cli.output_checks import check_outputs
from rankmill.cli.run_record import Recording, by_system
from rankmill.cli.suffixes import check_suffix
from rankmill.config.face import face_of
from rankmill.config.given_inputs import source_of
from rankmill.engine.results_view import systems_view
from rankmill.errors import UsageError
from rankmill.io.stores.urls import is_url, redacted
from rankmill.results.result import Result, check_values, view_of
from rankmill.spark.cluster_plan import cluster_plan_view

_HELP = """Score ranked PREDICTIONS against LABELS on Spark. Each is a path or URL that Spark reads,
several between commas, or with --labels-as table the name of a table.

The suffix tells the format: .csv and .tsv, which have a header or --columns, .json and .jsonl,
.orc; all else is Parquet. --labels-as and --predictions-as may also name another format of Spark,
such as delta. A single FILE.toml in the place of both names them and the options, as for 'rankmill
evaluate'.

The session is the one of spark-submit, or that of the variables and files of Spark, or one on this
machine. What is counted, and every bit of it, is as by 'rankmill evaluate'. Long rows need a rank
or a confidence, because rows of Spark have no order. See 'rankmill docs spark'.
"""
_EXAMPLES = """
rankmill spark labels.parquet predictions.parquet -m map@12
rankmill spark db.labels s3a://bucket/run --labels-as table -m gap
spark-submit run.py labels.parquet old new -m map -o result.json
"""


@table_command("spark", cls=FileCommand, help=_HELP, examples=_EXAMPLES)
def command(
    labels: str,
    systems: dict[str, str],
    metrics: tuple[str, ...],
    format: str | None,
    output: str | None,
    per_query: str | None,
    only_plan: bool,
    by: tuple[str, ...],
    sums: tuple[str, ...],
    labels_as: str | None,
    predictions_as: str | None,
    columns: str | None,
    label_columns: str | None,
    encoding: str | None,
    label_encoding: str | None,
    subtopic: str | None,
    padding: str | None,
    recording: Recording,
    **options: Any,
) -> None:
    """Check what can be checked, evaluate, and write the result whole or not at all."""
    from rankmill.metrics.registry import parse_under, sides_of

    if subtopic is not None:
        raise UsageError(
            "labels with subtopics are evaluated on one machine: use rankmill evaluate"
        )
    if padding is not None:
        raise UsageError(
            "Spark does not drop padding: replace it by null in the files, or use rankmill evaluate"
        )
    options["metrics"] = metrics
    parse_under(metrics, options["semantics"])
    # Those that are files of this machine, and not in the file system of Spark.
    inputs = [one for text in (labels, *systems.values()) for one in text.split(",")]
    if per_query == "-":
        raise UsageError(
            "--per-query takes the name of a new folder, and not - for standard output"
        )
    check_suffix(per_query or "", "a folder of Parquet", (".parquet",))
    check_outputs(output, [p for p in inputs if os.path.isfile(p)], history=recording.place)
    chosen = format_for(format, output)

    from rankmill.spark.evaluation import evaluate_runs
    from rankmill.spark.session import read, session, write
    from rankmill.spark.systems import values_of_runs

    spark = session()
    frame = read(spark, labels, labels_as, label_columns or columns, label_encoding or encoding)
    runs = {
        name: read(spark, text, predictions_as, columns, encoding) for name, text in systems.items()
    }
    if only_plan:
        from rankmill.spark.estimate import plan_runs

        planned = plan_runs(**face_of(plan_runs, frame, runs, options))
        deliver(cluster_plan_view(planned), chosen, output)
        return
    results = {
        name: _named(one, labels, systems[name])
        for name, one in evaluate_runs(
            **face_of(evaluate_runs, frame, runs, options | {"by": by, "sums": sums})
        ).items()
    }
    if per_query is not None:
        write(values_of_runs(**face_of(values_of_runs, frame, runs, options)), per_query)
    recorded: list[tuple[str, Any]] = []
    if all(None not in one.metrics.values() for one in results.values()):
        sources = {name: _files(text, predictions_as) for name, text in systems.items()}
        found = results if len(results) > 1 else next(iter(results.values()))
        recorded = recording.record_run(found, _files(labels, labels_as), by_system(sources))
    first = next(iter(results.values()))
    # If predictions decide which queries count, only their values tell whether these are the same.
    same = None if first.semantics.counts_by_predictions else True
    view = view_of(first)
    if len(results) > 1:
        view = systems_view(results, same, sides_of(first.metrics))
    deliver(view, chosen, output, recorded)
    check_values(results)
    recording.log_run([output])


def _named(result: Result, labels: str, predictions: str) -> Result:
    """Return a result whose inputs are called as they were given."""
    names = {"labels": redacted(labels), "predictions": redacted(predictions)}
    inputs = {side: one | {"source": names[side]} for side, one in result.inputs.items()}
    return replace(result, inputs=inputs)


def _files(text: str, told: str | None) -> Any:
    """Return the files that a history may look at: those of this machine alone."""
    return () if told == "table" or is_url(text) else source_of(text, "an input")
