"""`rankmill report`: a page about a system; `rankmill history`: the trend of recorded runs."""

import os
import sys
from typing import Any

import click

from rankmill.cli.command import Command, FileCommand, table_command
from rankmill.cli.draw import call, emit
from rankmill.cli.process import is_terminal
from rankmill.cli.run_outputs import RunOutputs, check_outputs, inputs_of, page_of, trends_of
from rankmill.config.face import face_of
from rankmill.errors import UsageError, plural
from rankmill.io import whole_files as writing

_EXAMPLES = """
rankmill report labels.parquet new.parquet -m map@12 -o page.html
rankmill report labels.parquet new.parquet old.parquet -m map@12 --by country -o page.html
rankmill report rankmill.toml
"""


@table_command("report", cls=FileCommand, examples=_EXAMPLES)
def command(
    labels: str,
    systems: dict[str, str],
    baseline: str | None,
    report: str | None,
    history: str | None,
    **options: Any,
) -> None:
    """Write an HTML report on PREDICTIONS: their metrics, slices and queries to look at.

    LABELS and PREDICTIONS are the same as for 'rankmill evaluate'. The report is about the first
    PREDICTIONS. If there are more, the second are the baseline, and all others are compared with
    it. The report is one self-contained HTML file without scripts. See 'rankmill docs report'.
    """
    if report is None and is_terminal(sys.stdout):
        raise UsageError(
            "the page is HTML for a browser, not for a terminal: name a file, such as -o "
            "page.html, or use -o - to print it anyway"
        )
    report = None if report == "-" else report
    source, runs, inputs = inputs_of(labels, systems, options)
    check_outputs(report and os.devnull, inputs, report=report)
    if len(runs) == 1 and baseline is not None:
        raise UsageError("--baseline names one of several systems: give its PREDICTIONS too")

    from rankmill.analysis.compare.compare import compare
    from rankmill.analysis.compare.view.details import evaluate_in_detail
    from rankmill.results.result import check_values

    found: Any
    details = None
    if len(runs) == 1:
        given = face_of(evaluate_in_detail, source, runs, options)
        results, details = call(evaluate_in_detail, given)
        check_values(results)
        (found,) = results.values()
    else:
        given = face_of(compare, source, runs, options | {"baseline": baseline or [*runs][1]})
        found = call(compare, given, details=True)
    page = page_of(found, given, trends_of(found, history), details)
    writing.write_files([] if report is None else [(report, page)])
    if report is None:
        emit(page)


_TRENDS = """Show how metrics moved over the runs in HISTORY, the folder or URL given as --history
to other commands.

There is one row per metric, with a line chart of its last 30 values; with -m, there is one row per
run. A trend has only runs that count in the same way as the newest one: with the same semantics,
scope, gain function and definition of the metric. A note names the others. If the last value is
far from those before it, it is marked as drift. See 'rankmill docs nightly'.
"""
_HISTORY_EXAMPLES = """
rankmill history runs
rankmill history runs -m map@12 --since 30d
rankmill history runs -m 'map@12[country=*]'
rankmill history prune runs --keep 365d --dry-run
rankmill history runs --plot trend.svg
rankmill history s3://bucket/runs --since 2026-01-01 --format csv
rankmill history prune runs --keep-last 100
"""


@table_command(
    "prune",
    [click.Argument(["history"])],
    examples="rankmill history prune runs --keep 365d --dry-run",
)
def prune(history: str, keep: str | None, keep_last: int | None, dry_run: bool) -> None:
    """Remove old runs from HISTORY.

    The age of a run is the time in its file name. Files of other programs are kept. Give either
    --keep or --keep-last.
    """
    from rankmill.nightly import history as histories

    old, left = histories.prune(history, keep=keep, keep_last=keep_last, dry_run=dry_run)
    listed = "".join(f"{name}\n" for name in old) if dry_run else ""
    done = "would remove" if dry_run else "removed"
    emit(f"{listed}{done} {len(old):,} of {plural(len(old) + left, 'run')}\n")


class _WithPrune(Command):
    """A command that is another one if its first argument is "prune"."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        if args[:1] == ["prune"]:
            return prune.make_context(f"{info_name} prune", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@table_command(
    "history",
    [click.Argument(["history"])],
    _WithPrune,
    RunOutputs,
    help=_TRENDS,
    examples=_HISTORY_EXAMPLES,
)
def history(history: str, metrics: tuple[str, ...], since: str | None, outputs: RunOutputs) -> None:
    """Read the history, and write its trends whole or not at all."""
    from rankmill.nightly import history as histories
    from rankmill.nightly.runs.history_view import plot_trends, view_of

    outputs.check([])
    found = histories.History(history, since)
    trends = [
        found.trend(metric, system)
        for metric, system in (found.named(metrics) if metrics else found.metrics)
    ]
    picture = {"plot": lambda: plot_trends(trends)}
    outputs.write(view_of(found, trends, runs=bool(metrics)), picture)
