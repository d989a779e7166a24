"""`rankmill stability`: does a ranking of systems depend on the cutoff, the metric, the queries."""

from typing import Any

import click

from rankmill.cli.command import table_command
from rankmill.cli.compare import check_queries
from rankmill.cli.progress_bar import run
from rankmill.cli.run_outputs import RunOutputs
from rankmill.config.given_inputs import source_of, system_names

_EXAMPLES = """
rankmill stability labels.parquet a.parquet b.parquet c.parquet -m map
rankmill stability labels a b -m map -m ndcg --cutoffs 1,5,10 --format json
rankmill stability labels.parquet a.parquet -m map -o map.md
"""


@table_command(
    "stability",
    [click.Argument(["labels"]), click.Argument(["predictions"], nargs=-1, required=True)],
    outputs=RunOutputs,
    examples=_EXAMPLES,
)
def command(
    labels: str,
    predictions: tuple[str, ...],
    outputs: RunOutputs,
    **options: Any,
) -> None:
    """Show how far the ranking of systems depends on the cutoff, the metric and the queries.

    LABELS and PREDICTIONS are the same as for 'rankmill evaluate'; give several PREDICTIONS for
    several systems. For each metric, a table over the cutoffs shows the value and the rank of each
    system. More tables show how well rankings at two cutoffs and by two metrics agree, how well
    random halves of the queries agree, and how many queries are needed to distinguish a system from
    the next one. For one system, there is only a table of values with intervals. See 'rankmill docs
    stability' for what each number means.
    """
    label_source = source_of(labels, "LABELS")
    sources = [source_of(text, "PREDICTIONS") for text in predictions]
    outputs.check([label_source, *sources])

    from rankmill.analysis.stability.stability import stability

    runs = dict(zip(system_names(predictions), sources, strict=True))
    found = run(stability, label_source, runs, options)
    outputs.deliver(found, outputs.picture(found.plot))
    check_queries(found, predictions)
