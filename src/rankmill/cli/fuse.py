"""`rankmill fuse`: fuse the lists of several runs into one list for each query."""

from __future__ import annotations

from typing import Any

import click

from rankmill.cli.draw import emit
from rankmill.cli.face import face_of
from rankmill.cli.inputs import check_outputs, parse_size, source_of, system_names
from rankmill.cli.one_input import prediction_options
from rankmill.cli.process import EXIT_CODES
from rankmill.cli.progress import Progress
from rankmill.errors import UsageError

__all__ = ["command"]

# As in fuse/methods.py, which loads NumPy. A test holds them equal.
METHODS = ("rrf", "combsum", "combmnz", "combanz", "combmin", "combmax", "combmed")
NORMS = ("min-max", "z-score", "rank", "none")

_HELP = """Fuse the lists of two or more RUNS into one list for each query.

An item gets a number from each list that it is in: 1 / (k + rank), or its normalised confidence;
the weight of the run multiplies it. The method makes one score of them. A list without the item
adds nothing, and so does a run without the query. Items of equal scores stand by ascending id.

FUSED ends in .parquet (a row a query: query_id, items, scores), or in .run or .trec (a run of
TREC), and is written whole or not at all. See 'rankmill docs fusing'.

\b
Examples:
  rankmill fuse bm25.run dense.run -o fused.run
  rankmill fuse a.parquet b.parquet -o fused.parquet --method combsum --weights 2,1
"""


@click.command("fuse", help=_HELP + EXIT_CODES)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("-o", "output", metavar="FUSED", required=True, help="The file to write.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="rrf",
    show_default=True,
    help="rrf: the sum of 1 / (k + rank). combsum, combmin, combmax, combmed: the sum, least, "
    "largest and median of the normalised confidences; combmnz: the sum times the number of lists "
    "that have the item; combanz: divided by it.",
)
@click.option(
    "--norm",
    type=click.Choice(NORMS),
    help="How confidences are normalised; by default min-max. rank: 1 - (rank - 1) / n. rrf has "
    "none.",
)
@click.option(
    "--weights", metavar="NUMBERS", help="A weight for each run, as 2,1; by default all are 1."
)
@click.option("--k", type=click.IntRange(min=1), metavar="K", help="The k of rrf; by default 60.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep the first N items of each fused list; by default all.",
)
@prediction_options
@click.option(
    "--memory",
    callback=parse_size,
    metavar="SIZE",
    default="1GiB",
    show_default=True,
    help="The memory limit for rows, such as 500MB or 2GB. More of them are grouped and sorted on "
    "disk; runs that are sorted by query id are streamed.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="The number of threads; by default all available CPUs.",
)
def command(
    runs: tuple[str, ...],
    output: str,
    weights: str | None,
    **options: Any,
) -> None:
    """Check the names, fuse, and tell what was written."""
    inputs = dict(zip(system_names(runs), (source_of(one, "RUN") for one in runs), strict=True))
    options["weights"] = None if weights is None else _weights(weights)
    from rankmill.fuse.fuse import check_path, fuse
    from rankmill.results.fused import fused_lines
    from rankmill.results.writers import plain_text

    check_path(output)
    check_outputs(output, list(inputs.values()))
    with Progress() as progress:
        options |= {"path": output, "progress": progress}
        told = fuse(**face_of(fuse, None, inputs, options))
    emit(plain_text(fused_lines(told)) + "\n")


def _weights(text: str) -> list[float]:
    try:
        return [float(one) for one in text.split(",")]
    except ValueError:
        raise UsageError(
            f"--weights is {text!r}; expected a number for each run, such as 2,1"
        ) from None
