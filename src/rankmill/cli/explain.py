"""`rankmill explain` and `explain-evaluators`: how a value comes about, and why others differ."""

from typing import Any

import click

import rankmill
from rankmill.cli.command import FileCommand, table_command
from rankmill.cli.draw import deliver
from rankmill.cli.output_checks import check_outputs, format_for, inputs_of
from rankmill.cli.progress_bar import run
from rankmill.cli.run_outputs import RunOutputs
from rankmill.config.config import Config
from rankmill.config.given_inputs import source_of
from rankmill.errors import InputError
from rankmill.io import whole_files as writing
from rankmill.io.table_files import SUFFIXES, suffix_of

_EXAMPLES = """
rankmill explain labels.parquet run.parquet --query-id 17 -m map@12
rankmill explain labels old.run new.run --query-id 17 -m ndcg@10 --preset trec_eval
rankmill explain rankmill.toml --query-id 17 -m map@12
rankmill explain labels run -m gap --rows 20
rankmill explain labels run --query-id 17 -m novelty@12 --train history.parquet
rankmill explain labels run -m auprc -o curve.parquet
"""

_ROWS = 50


class _ExplainCommand(FileCommand):
    """A FILE.toml with one metric names the one to explain."""

    def defaults_of(self, config: Config) -> dict[str, Any]:
        """Return the options of the file; of several metrics, one has to be chosen by -m."""
        metrics = config.defaults.get("metrics", ())
        return config.defaults | ({"metric": metrics[0]} if len(metrics) == 1 else {})


@table_command("explain", cls=_ExplainCommand, examples=_EXAMPLES)
def command(
    labels: str,
    systems: dict[str, str],
    metric: str,
    query_id: str | None,
    rows: int | None,
    format: str | None,
    output: str | None,
    **options: Any,
) -> None:
    """Show how a metric is computed for one query's list of PREDICTIONS, rank by rank.

    LABELS, PREDICTIONS and FILE.toml are the same as for 'rankmill evaluate'. Each row is a rank:
    the item, whether it is a hit, and the term that it adds to the sum. The last lines show what
    the sum is divided by, and the value, which is the one of 'rankmill evaluate' for this query.
    With several PREDICTIONS, the lists of all systems are shown side by side. gap ranks all
    predictions in one list: leave out --query-id. The predictions must then fit in memory, at about
    200 bytes each. For auprc, best_f1, ece and related metrics, the rows are the precision-recall
    curve or the bins. novelty, ild and other means over lists need the same options as in 'rankmill
    evaluate', such as --train.
    """
    label_source, runs, inputs = inputs_of(labels, systems, options)
    check_outputs(output, inputs)
    # CSV is what --format csv writes.
    as_table = format is None and suffix_of(output or "") in {*SUFFIXES} - {".csv"}
    chosen = "" if as_table else format_for(format, output, SUFFIXES)
    if rows is None and chosen in ("table", "markdown", "latex"):
        rows = _ROWS

    from rankmill.analysis.explain.trace_view import joint_table, traces_view

    options |= {"metric": metric, "query_id": query_id, "rows": rows}
    found = {name: run(rankmill.explain, label_source, one, options) for name, one in runs.items()}
    one = next(iter(found.values()))
    several = len(found) > 1
    if as_table and output is not None:
        writing.write_files([(output, joint_table(found) if several else one.table)])
    else:
        deliver(traces_view(found) if several else one, chosen, output)
    for name, one in found.items():
        if one.value is None and one.query is None:
            raise InputError(f"{systems[name]}: {one.headline}")


_EXAMPLES_OF_EVALUATORS = """
rankmill explain-evaluators labels.parquet run.parquet -m map@12
rankmill explain-evaluators labels run -m map@12 --presets default,trec_eval,spark
rankmill explain-evaluators labels run -m gap --format json
"""


@table_command(
    "explain-evaluators",
    [click.Argument(["labels"]), click.Argument(["predictions"])],
    outputs=RunOutputs,
    examples=_EXAMPLES_OF_EVALUATORS,
)
def explain_evaluators(
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
    sources = [source_of(labels, "LABELS"), source_of(predictions, "PREDICTIONS")]
    outputs.check(sources)
    named = None if presets is None else [name.strip() for name in presets.split(",")]

    options |= {"metric": metric, "presets": named}
    outputs.write(run(rankmill.explain_evaluators, sources[0], sources[1], options))
