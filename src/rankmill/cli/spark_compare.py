"""`rankmill spark compare`: which system is better, where rows are on Spark."""

from dataclasses import replace
from typing import Any

from rankmill.cli.command import table_command
from rankmill.cli.compare import check_queries, check_several
from rankmill.cli.run_outputs import RunOutputs
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


@table_command(
    "spark compare", cls=SparkCommand, outputs=RunOutputs, help=_HELP, examples=_EXAMPLES
)
def command(
    labels: str,
    systems: dict[str, str],
    metrics: tuple[str, ...],
    outputs: RunOutputs,
    **options: Any,
) -> None:
    """Check what can be checked, compare, and write the outcome whole or not at all."""
    from rankmill.metrics.registry import parse_under

    parse_under(metrics, options["semantics"])
    check_several(systems)
    given = SparkInputs(labels, systems, options, outputs)
    given.check()

    from rankmill.spark.exchange.session import write
    from rankmill.spark.systems import compare

    frame, runs = given.frames()
    options |= {"metrics": metrics, "per_query": given.per_query is not None}
    found = compare(**face_of(compare, frame, runs, options))
    found = replace(found, inputs=given.named(found.inputs))
    if given.per_query is not None:
        write(found.per_query, given.per_query)
    more = outputs.picture(found.plot) + outputs.page(found, {})
    more += outputs.record_run(found, *given.files) if found.queries else []
    outputs.deliver(found, more)
    check_queries(found, systems.values())
    outputs.log()
