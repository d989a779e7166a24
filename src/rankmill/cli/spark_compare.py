"""`rankmill spark compare`: which system is better, where rows are on Spark."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from rankmill.cli.command import table_command
from rankmill.cli.compare import check_queries, check_several
from rankmill.cli.draw import deliver, format_for
from rankmill.cli.output_checks import check_outputs
from rankmill.cli.run_record import Recording
from rankmill.cli.spark_inputs import SparkCommand, SparkInputs
from rankmill.config.face import face_of

_HELP = """Compare the PREDICTIONS of systems with a baseline on Spark.

This is 'rankmill compare' for inputs that Spark reads, named as for 'rankmill spark evaluate': the
table is the same to the last bit, and so are FILE.toml and the exit codes.
"""
_EXAMPLES = """
rankmill spark compare labels.parquet old new -m map@12
rankmill spark compare rankmill.toml --baseline old
spark-submit run.py compare rankmill.toml -o found.json
"""


@table_command("spark compare", cls=SparkCommand, help=_HELP, examples=_EXAMPLES)
def command(
    labels: str,
    systems: dict[str, str],
    metrics: tuple[str, ...],
    baseline: str | None,
    format: str | None,
    output: str | None,
    per_query: str | None,
    recording: Recording,
    **options: Any,
) -> None:
    """Check what can be checked, compare, and write the outcome whole or not at all."""
    from rankmill.metrics.registry import parse_under

    parse_under(metrics, options["semantics"])
    check_several(systems)
    given = SparkInputs(labels, systems, options)
    given.check(per_query, [], partial(check_outputs, output, history=recording.place))
    chosen = format_for(format, output)

    from rankmill.analysis.compare.view.comparison import view_of
    from rankmill.spark.session import write
    from rankmill.spark.systems import compare

    frame, runs = given.frames()
    names = {text: name for name, text in systems.items()}
    options |= {"metrics": metrics, "per_query": per_query is not None}
    options["baseline"] = names.get(baseline or "", baseline)
    found = compare(**face_of(compare, frame, runs, options))
    found = replace(found, inputs=given.named(found.inputs))
    if per_query is not None:
        write(found.per_query, per_query)
    recorded = recording.record_run(found, *given.files) if found.queries else []
    deliver(view_of(found), chosen, output, recorded)
    check_queries(found, systems)
    recording.log_run([output])
