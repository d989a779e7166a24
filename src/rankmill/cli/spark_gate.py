"""`rankmill spark gate`: stop a system that does not keep its rules, where rows are on Spark."""

import os
from dataclasses import replace
from typing import Any

from rankmill.cli.command import table_command
from rankmill.cli.gate import EXITS
from rankmill.cli.run_outputs import page_of
from rankmill.cli.spark_inputs import SparkCommand, SparkInputs
from rankmill.cli.verdict_outputs import VerdictOutputs, start
from rankmill.config.baseline_choice import is_choice
from rankmill.config.face import face_of

_HELP = """Check PREDICTIONS on Spark against rules, and exit with 1 if they break one.

This is 'rankmill gate' for inputs that Spark reads, named as for 'rankmill spark evaluate': the
verdict, FILE.toml and exit codes are the same. The driver writes all outputs, including the
history. A baseline can be predictions, the folder of an earlier --per-query, or a baseline of
'rankmill gate' on this machine.
"""
_EXAMPLES = """
rankmill spark gate labels.parquet new --rule 'map@12 >= 0.08'
rankmill spark gate labels new --baseline old --rule 'map@12 drop <= 1% confidence 0.95'
spark-submit run.py gate rankmill.toml
"""


@table_command(
    "spark gate",
    cls=SparkCommand,
    outputs=VerdictOutputs,
    start=start,
    apart=True,
    help=_HELP,
    examples=_EXAMPLES,
    exits=EXITS,
)
def command(
    labels: str,
    predictions: str,
    rules: tuple[str, ...],
    baseline: str | None,
    outputs: VerdictOutputs,
    **options: Any,
) -> None:
    """Check what can be checked, judge, write all outputs or none, and exit with the verdict."""
    from rankmill.nightly.rules.rules import parse_rules

    parse_rules(rules)
    given = SparkInputs(labels, {"": predictions}, options, outputs)
    given.check(*([] if baseline is None else [baseline]))
    outputs.begin(rules, labels, predictions)
    from rankmill.spark.exchange.session import write
    from rankmill.spark.verdicts import gate

    frame, runs = given.frames()
    base = baseline if baseline is None or _is_run(baseline) else given.predictions(baseline)
    asked = outputs.asked(rules, base, options) | {"per_query": given.per_query is not None}
    found = gate(**face_of(gate, frame, runs[""], asked))
    result = replace(found.result, inputs=given.named(found.result.inputs, predictions))
    found = replace(found, result=result, run=outputs.name)
    if given.per_query is not None:
        write(result.per_query, given.per_query)
    of_labels, of_runs = given.files
    trends, report = outputs.trends(found), outputs.files["report"]
    more = [] if report is None else [(report, page_of(found, {}, trends))]
    outputs.write(found, trends, [of_labels, of_runs[""]], more)


def _is_run(baseline: str) -> bool:
    """Return whether a baseline is a run of a history, or a file of this machine that holds one."""
    from rankmill.nightly.rules.baseline import open_baseline

    if is_choice(baseline):
        return True
    return os.path.isfile(baseline) and open_baseline(baseline, ()).kind != "predictions"
