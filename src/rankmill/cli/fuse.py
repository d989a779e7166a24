"""`rankmill fuse`: fuse the lists of several runs into one list for each query."""

from typing import Any

import click

from rankmill.cli.command import table_command
from rankmill.cli.draw import emit
from rankmill.cli.output_checks import check_outputs
from rankmill.cli.progress_bar import run
from rankmill.config.given_inputs import source_of, system_names
from rankmill.errors import UsageError

_EXAMPLES = """
rankmill fuse bm25.run dense.run -o fused.run
rankmill fuse a.parquet b.parquet -o fused.parquet --method combsum --weights 2,1
"""


@table_command(
    "fuse",
    [click.Argument(["runs"], metavar="RUN...", nargs=-1, required=True)],
    examples=_EXAMPLES,
)
def command(
    runs: tuple[str, ...],
    output: str,
    weights: str | None,
    **options: Any,
) -> None:
    """Fuse the lists of two or more RUNS into one list per query.

    Each list gives its items a number: 1 / (k + rank), or the normalized confidence, times the
    weight of the run. The method combines these numbers into one score per item. A list without the
    item adds nothing, and neither does a run without the query. Items with equal scores are sorted
    by id.

    FUSED ends in .parquet (one row per query: query_id, items, scores), or in .run or .trec (a TREC
    run). It is written completely or not at all. See 'rankmill docs fusing'.
    """
    inputs = dict(zip(system_names(runs), (source_of(one, "RUN") for one in runs), strict=True))
    options["weights"] = None if weights is None else _weights(weights)
    from rankmill.analysis.fuse.fuse import check_path, fuse

    check_path(output)
    learned = options["train_labels"]
    check_outputs(output, [*inputs.values(), *([] if learned is None else [learned])])
    fused = run(fuse, None, inputs, options | {"path": output})
    emit(f"{fused!r}\n")


def _weights(text: str) -> list[float]:
    try:
        return [float(one) for one in text.split(",")]
    except ValueError:
        raise UsageError(
            f"--weights is {text!r}; expected a number for each run, such as 2,1"
        ) from None
