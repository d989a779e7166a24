"""`rankmill spark`, also `python -m rankmill.spark`: evaluate on a session of Spark."""

from dataclasses import replace
from importlib import import_module
from typing import Any

import click

from rankmill.cli.command import Command, table_command
from rankmill.cli.evaluate import check_files, files_of
from rankmill.cli.run_outputs import RunOutputs
from rankmill.cli.spark_inputs import SparkCommand, SparkInputs
from rankmill.config.face import face_of
from rankmill.engine.results_view import systems_view
from rankmill.errors import UsageError
from rankmill.results.result import check_values

_HELP = """Score ranked PREDICTIONS against LABELS on Spark with 'rankmill spark evaluate'.

Use 'rankmill spark compare' and 'rankmill spark gate' to compare and gate systems on Spark.

An input is a path or URL that Spark can read, several of them separated by commas, or, with
--labels-as table, the name of a table. --train is read in the same way. The driver reads --items,
--features and the files of --by, which must fit into its memory.

The suffix sets the format: .csv and .tsv, with a header or --columns; .json and .jsonl; .orc;
anything else is Parquet. --labels-as and --predictions-as can also name another format of Spark,
such as delta. Instead of both inputs, a single FILE.toml can name them and the options, as for
'rankmill evaluate'.

The session is that of spark-submit, the one that Spark's variables and files define, or one on this
machine. The result is the same as that of 'rankmill evaluate', to the last bit. Long rows need a
rank or a confidence, because rows have no order in Spark. See 'rankmill docs spark'.
"""
_EXAMPLES = """
rankmill spark evaluate labels.parquet predictions.parquet -m map@12
rankmill spark evaluate db.labels s3a://bucket/run --labels-as table -m gap
rankmill spark compare labels.parquet old new -m map@12 --by country
rankmill spark gate rankmill.toml
spark-submit run.py evaluate labels.parquet old new -m map -o result.json
"""


class _Named(SparkCommand):
    """The command that its first argument names."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        if args[:1] == ["evaluate"]:
            return super().make_context(f"{info_name} evaluate", args[1:], parent, **extra)
        if args and args[0].startswith("--help"):
            return super().make_context(f"{info_name} evaluate", args, parent, **extra)
        if args[:1] not in (["compare"], ["gate"]):
            found = f"found {args[0]!r}" if args else "found nothing"
            raise UsageError(
                f"rankmill spark takes evaluate, compare or gate first, and {found}: type "
                f"rankmill spark evaluate {' '.join(args) or 'LABELS PREDICTIONS'}"
            )
        named: Command = import_module(f"rankmill.cli.spark_{args[0]}").command
        return named.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)


@table_command("spark", cls=_Named, outputs=RunOutputs, help=_HELP, examples=_EXAMPLES)
def command(
    labels: str,
    systems: dict[str, str],
    metrics: tuple[str, ...],
    outputs: RunOutputs,
    **options: Any,
) -> None:
    """Check what can be checked, evaluate, and write the result whole or not at all."""
    from rankmill.metrics.registry import parse_under, sides_of

    parsed, _ = parse_under(metrics, options["semantics"])
    given = SparkInputs(labels, systems, options, outputs)
    check_files(outputs, parsed, len(systems), given.check)
    options["metrics"] = metrics

    from rankmill.spark.evaluation import evaluate_runs
    from rankmill.spark.exchange.session import write
    from rankmill.spark.systems import values_of_runs

    frame, runs = given.frames()
    found = evaluate_runs(**face_of(evaluate_runs, frame, runs, options))
    results = {
        name: replace(one, inputs=given.named(one.inputs, systems[name]))
        for name, one in found.items()
    }
    if given.per_query is not None:
        whole = {name: one for name, one in options.items() if name not in ("by", "sums")}
        write(values_of_runs(**face_of(values_of_runs, frame, runs, whole)), given.per_query)
    first = next(iter(results.values()))
    recorded = files_of(results, outputs) + outputs.page(first, {})
    if all(None not in one.metrics.values() for one in results.values()):
        kept = results if len(results) > 1 else first
        recorded += outputs.record_run(kept, *given.files)
    # If predictions decide which queries count, only their values tell whether these are the same.
    same = None if first.semantics.counts_by_predictions else True
    several = len(results) > 1
    shown = systems_view(results, same, sides_of(first.metrics)) if several else first
    outputs.deliver(shown, recorded)
    check_values(results)
    outputs.log()
