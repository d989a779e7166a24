"""Commands that look into inputs and values: `head`, `convert`, `check` and the `explain`s."""

from typing import Any

import click

import rankmill
from rankmill.cli.command import FileCommand, table_command
from rankmill.cli.draw import deliver, emit, run
from rankmill.cli.run_outputs import RunOutputs, check_outputs, format_for, inputs_of
from rankmill.config.config import Config
from rankmill.config.face import face_of, source_of
from rankmill.errors import InputError
from rankmill.io import whole_files as writing
from rankmill.io.whole_files import SUFFIXES, suffix_of

_EXAMPLES_OF_HEAD = """
rankmill head run.trec
rankmill head qrels.txt --labels
rankmill head scores.csv --score sim --format json
"""


@table_command("head", [click.Argument(["source"], metavar="INPUT")], examples=_EXAMPLES_OF_HEAD)
def head(
    source: str,
    format: str,
    **options: Any,
) -> None:
    """Show how rankmill reads INPUT, which can be labels or predictions.

    The output has its format, its shape, the role of each column, and the first three queries with
    their first items. Only the first rows are read, so it is quick for files of any size.
    """
    paths = source_of(source, "INPUT")
    from rankmill.engine.head import head_view

    told = rankmill.head(**face_of(rankmill.head, paths, None, options))
    deliver(head_view(told, options["role"] is not None), format, None)
    if told["problem"] is not None:
        raise InputError(told["problem"])


_EXAMPLES_OF_CONVERT = """
rankmill convert run.trec run.parquet
rankmill convert qrels.txt labels.parquet --labels
rankmill convert 'scores/*.csv' scores.parquet --query user --score sim
"""


@table_command(
    "convert",
    [click.Argument(["source"], metavar="INPUT"), click.Argument(["output"])],
    examples=_EXAMPLES_OF_CONVERT,
)
def convert(source: str, output: str, **options: Any) -> None:
    """Write INPUT, which can be labels or predictions, to OUTPUT as wide Parquet.

    The file has one row per query, sorted by query id: query_id, items in rank order, and scores or
    gains if there are any. It evaluates to the same values, and is the fastest input to read. Null
    items are dropped; gains of 0 or less, repeats and empty lists are kept. OUTPUT must end in
    .parquet. It is written completely or not at all. The rows are sorted in memory: --memory limits
    what they take there.
    """
    paths = source_of(source, "INPUT")
    from rankmill.engine.convert import check_path, converted_lines
    from rankmill.show.writers import plain_text

    check_path(output)
    check_outputs(output, [paths])
    told = run(rankmill.convert, paths, None, options | {"path": output})
    emit(plain_text(converted_lines(told)) + "\n")


_EXAMPLES_OF_CHECK = """
rankmill check sample_submission.csv submission.csv -m map@12
rankmill check solution.csv submission.csv -m gap -o problems.json
rankmill check solution.csv submission.csv --preset kaggle_hm
"""
_EXITS_OF_CHECK = {0: "no problem", 1: "a problem was found, even one that is not rejected"}


@table_command(
    "check",
    [click.Argument(["solution"]), click.Argument(["submission"])],
    outputs=RunOutputs,
    examples=_EXAMPLES_OF_CHECK,
    exits=_EXITS_OF_CHECK,
)
@click.pass_context
def check(
    context: click.Context,
    solution: str,
    submission: str,
    metric: str | None,
    preset: str | None,
    query: str | None,
    item: str | None,
    score: str | None,
    outputs: RunOutputs,
) -> None:
    """Check SUBMISSION strictly against SOLUTION, and exit with 1 if it has any problem at all.

    Both have the same columns: ids, and items separated by spaces, each followed by its confidence
    for gap. SOLUTION can also be the sample submission, which gives no score, or transactions. The
    first table counts each kind of problem: those for which a competition rejects the file, then
    those that only lower the score. The second table shows the first 5 of each kind with their
    rows; -o FILE.csv has all. See 'rankmill docs kaggle'.
    """
    from rankmill.semantics.presets import preset as preset_of

    if metric is None and not (preset and preset_of(preset).own_metric):
        (asked,) = (one for one in context.command.params if one.name == "metric")
        raise click.MissingParameter(ctx=context, param=asked)
    outputs.check([solution, submission])
    columns = {"item": item, "confidence": score}
    found = rankmill.kaggle.check(solution, submission, query, metric, semantics=preset, **columns)
    outputs.write(found)
    context.exit(int(bool(found.problems)))


_EXAMPLES_OF_EXPLAIN = """
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


@table_command("explain", cls=_ExplainCommand, examples=_EXAMPLES_OF_EXPLAIN)
def explain(
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
