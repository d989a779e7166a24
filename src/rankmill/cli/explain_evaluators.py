"""`rankmill explain-evaluators`: why evaluators come to different values for the same dump."""

from typing import Any

import click

from rankmill.cli.command import table_command
from rankmill.cli.progress_bar import run
from rankmill.cli.run_outputs import RunOutputs
from rankmill.config.given_inputs import source_of

_EXAMPLES = """
rankmill explain-evaluators labels.parquet run.parquet -m map@12
rankmill explain-evaluators labels run -m map@12 --presets default,trec_eval,spark
rankmill explain-evaluators labels run -m gap --format json
"""


@table_command(
    "explain-evaluators",
    [click.Argument(["labels"]), click.Argument(["predictions"])],
    outputs=RunOutputs,
    examples=_EXAMPLES,
)
def command(
    labels: str,
    predictions: str,
    metric: str,
    presets: str | None,
    outputs: RunOutputs,
    **options: Any,
) -> None:
    """Score PREDICTIONS as several evaluators do, and show which choices make the difference.

    LABELS and PREDICTIONS are the same as for 'rankmill evaluate'. The first preset that has a
    value is the base. Each other preset is followed by the choices in which it differs from the
    base, each changed alone: the value, the difference from the base, how many queries change, and
    the one that changes most. See 'rankmill presets' for what each preset does, and its source.

    A preset marked * has no value on this data, for example because it rejects repeated
    predictions. It is shown with that choice as in the base.
    """
    from rankmill.metrics.registry import parse

    parse(metric)
    sources = [source_of(labels, "LABELS"), source_of(predictions, "PREDICTIONS")]
    outputs.check(sources)
    named = None if presets is None else [name.strip() for name in presets.split(",")]

    from rankmill.analysis.explain.evaluators import explain_evaluators

    options |= {"metric": metric, "presets": named}
    outputs.write(run(explain_evaluators, sources[0], sources[1], options))
