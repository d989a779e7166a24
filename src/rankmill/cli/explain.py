"""`rankmill explain`: the walk down one query's list, or that of gap, to the value of a metric."""

from typing import Any

from rankmill.cli.command import table_command
from rankmill.cli.draw import deliver
from rankmill.cli.file_command import FileCommand
from rankmill.cli.output_checks import catalogue_sources, check_outputs, format_for
from rankmill.cli.progress_bar import run
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
    from rankmill.metrics.registry import parse

    parse(metric)
    label_source = source_of(labels, "LABELS")
    runs = {name: source_of(text, "PREDICTIONS") for name, text in systems.items()}
    check_outputs(output, [label_source, *runs.values(), *catalogue_sources(options)])
    # CSV is what --format csv writes.
    as_table = format is None and suffix_of(output or "") in {*SUFFIXES} - {".csv"}
    chosen = "" if as_table else format_for(format, output, SUFFIXES)
    if rows is None and chosen in ("table", "markdown", "latex"):
        rows = _ROWS

    from rankmill.analysis.explain.trace import explain
    from rankmill.analysis.explain.trace_view import joint_table, traces_view

    options |= {"metric": metric, "query_id": query_id, "rows": rows}
    found = {name: run(explain, label_source, one, options) for name, one in runs.items()}
    one = next(iter(found.values()))
    several = len(found) > 1
    if as_table and output is not None:
        writing.write_files([(output, joint_table(found) if several else one.table)])
    else:
        deliver(traces_view(found) if several else one, chosen, output)
    for name, one in found.items():
        if one.value is None and one.query is None:
            raise InputError(f"{systems[name]}: {one.headline}")
