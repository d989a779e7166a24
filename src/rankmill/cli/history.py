"""`rankmill history`: the trend of recorded runs; `rankmill history prune` removes old ones."""

from typing import Any

import click

from rankmill.cli.command import Command, table_command
from rankmill.cli.draw import emit
from rankmill.cli.run_outputs import RunOutputs
from rankmill.errors import plural

_HELP = """Show how metrics moved over the runs in HISTORY, the folder or URL given as --history
to other commands.

There is one row per metric, with a line chart of its last 30 values; with -m, there is one row per
run. A trend has only runs that count in the same way as the newest one: with the same semantics,
scope, gain function and definition of the metric. A note names the others. If the last value is
far from those before it, it is marked as drift. See 'rankmill docs nightly'.
"""
_EXAMPLES = """
rankmill history runs
rankmill history runs -m map@12 --since 30d
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
    from rankmill.nightly.history import history as histories

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
    help=_HELP,
    examples=_EXAMPLES,
)
def command(history: str, metrics: tuple[str, ...], since: str | None, outputs: RunOutputs) -> None:
    """Read the history, and write its trends whole or not at all."""
    from rankmill.nightly.history import history as histories
    from rankmill.nightly.runs.history_view import plot_trends, view_of

    outputs.check([])
    found = histories.History(history, since)
    trends = [
        found.trend(metric, system)
        for metric, system in (found.named(metrics) if metrics else found.metrics)
    ]
    picture = {"plot": lambda: plot_trends(trends)}
    outputs.write(view_of(found, trends, runs=bool(metrics)), picture)
