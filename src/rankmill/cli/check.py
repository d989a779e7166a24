"""`rankmill check`: list what is wrong with a submission of a competition."""

import click

from rankmill.cli.command import table_command
from rankmill.cli.run_outputs import RunOutputs

_EXAMPLES = """
rankmill check sample_submission.csv submission.csv -m map@12
rankmill check solution.csv submission.csv -m gap -o problems.json
rankmill check solution.csv submission.csv --preset kaggle_hm
"""
_EXITS = {0: "no problem", 1: "a problem was found, even one that is not rejected"}


@table_command(
    "check",
    [click.Argument(["solution"]), click.Argument(["submission"])],
    outputs=RunOutputs,
    examples=_EXAMPLES,
    exits=_EXITS,
)
@click.pass_context
def command(
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
    for gap. SOLUTION can also be the sample submission. The first table counts each kind of
    problem: those for which a competition rejects the file, then those that only lower the score.
    The second table shows the first 5 of each kind with their rows; -o FILE.csv has all. See
    'rankmill docs kaggle'.
    """
    from rankmill.semantics.presets import preset as preset_of

    if metric is None and not (preset and preset_of(preset).own_metric):
        (asked,) = (one for one in context.command.params if one.name == "metric")
        raise click.MissingParameter(ctx=context, param=asked)
    outputs.check([solution, submission])
    from rankmill.adapters.kaggle.submission import check

    columns = {"item": item, "confidence": score}
    found = check(solution, submission, query, metric, semantics=preset, **columns)
    outputs.write(found)
    context.exit(int(bool(found.problems)))
