"""How a result looks: text for files and pipes, a drawn table and a progress bar on a terminal."""

from __future__ import annotations

import csv
import io
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import click

from rankmill import audit
from rankmill.errors import UsageError
from rankmill.result import Result, plain_table, table_cells

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

__all__ = ["FORMATS", "Progress", "csv_text", "draw", "emit", "format_for", "markdown", "render"]

FORMATS = ("table", "json", "csv", "markdown")
_FORMAT_OF_SUFFIX = {".json": "json", ".csv": "csv", ".md": "markdown", ".markdown": "markdown"}


def format_for(chosen: str | None, output: str | None) -> str:
    """Return the format asked for, else the one that the output file's suffix tells, else table."""
    if chosen is not None:
        return chosen
    return _FORMAT_OF_SUFFIX.get(Path(output or "").suffix.lower(), "table")


def render(result: Result, format: str) -> str:
    """Return a result as text in one of `FORMATS`, with a line break at the end."""
    if format == "json":
        return result.to_json(indent=2) + "\n"
    if format == "csv":
        header = ["metric", "value", "standard_error", "queries", "worst", "best"]
        return csv_text(header, _exact_rows(result))
    header, rows = table_cells(result)
    if format == "markdown":
        return markdown(header, rows, right=(1, 2, 3))
    counts = [[name, count, meaning] for name, count, meaning in _audit_rows(result)]
    width = max((len(name) for name, _, _ in counts), default=0)
    digits = max((len(count) for _, count, _ in counts), default=0)
    lines = [plain_table(header, rows), ""]
    lines += [f"{name:<{width}}  {count:>{digits}}  {meaning}" for name, count, meaning in counts]
    lines += [""] + [f"{name:<11}  {text}" for name, text in _facts(result)]
    return "\n".join(lines) + "\n"


def draw(result: Result) -> None:
    """Draw a result on the terminal that is standard output."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    header, rows = table_cells(result)
    metrics = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for position, title in enumerate(header):
        metrics.add_column(
            title,
            style="bold" if position < 2 else "",
            justify="left" if position in (0, 4) else "right",
            no_wrap=position != 4,
        )
    for row in rows:
        metrics.add_row(*map(Text, row))

    counts = Table.grid(padding=(0, 2), pad_edge=False)
    counts.add_column(no_wrap=True)
    counts.add_column(justify="right", no_wrap=True)
    counts.add_column(style="dim")
    for cells in _audit_rows(result):
        counts.add_row(*map(Text, cells))

    facts = Table.grid(padding=(0, 2), pad_edge=False)
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for fact in _facts(result):
        facts.add_row(*map(Text, fact))

    console = Console(highlight=False)
    for part in (metrics, Text(), counts, Text(), facts):
        console.print(part)


def emit(text: str) -> None:
    """Print a text that ends in a line break; characters that the encoding lacks are escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        click.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"cannot write to standard output: {error.strerror}") from error


def csv_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows as comma-separated values."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def markdown(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()
) -> str:
    """Return rows as a Markdown pipe table; columns at the positions `right` are right-aligned."""
    rules = ["---:" if position in right else "---" for position in range(len(header))]
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in [header, rules, *escaped])


def _exact_rows(result: Result) -> list[list[str]]:
    rows = []
    for name, value in result.metrics.items():
        numbers = [value, result.standard_errors.get(name), result.queries]
        numbers += result.bounds.get(name, (None, None))
        rows.append([name, *("" if number is None else _exact(number) for number in numbers)])
    return rows


def _exact(number: float) -> str:
    return str(number) if isinstance(number, int) else repr(float(number))


def _audit_rows(result: Result) -> list[tuple[str, str, str]]:
    shown = {name for name in audit.HEADLINE if name in result.audit}
    shown |= audit.notable(result.audit).keys()
    return [
        (name, f"{result.audit[name]:,}", meaning)
        for name, meaning in audit.FIELDS.items()
        if name in shown
    ]


def _facts(result: Result) -> list[tuple[str, str]]:
    """Return what was read and how long it took, as pairs of a title and a text."""
    facts = []
    for side, details in result.inputs.items():
        rows, columns = details.get("rows"), details.get("columns")
        notes = [str(details["shape"])] if "shape" in details else []
        if isinstance(rows, int):
            notes.append(f"{rows:,} rows")
        if isinstance(columns, dict) and columns:
            notes.append(", ".join(f"{role} = {name}" for role, name in columns.items() if name))
        facts.append((side, f"{details.get('source', '')} ({'; '.join(notes)})"))
    return [*facts, ("seconds", f"{result.seconds:.2f}")]


class Progress:
    """A progress bar on standard error that appears once a run has taken a second.

    Use it as a context manager and call it with the rows done and, if known, the rows in all. It
    stays silent where standard error is no terminal.
    """

    def __init__(self, delay: float = 1.0) -> None:
        self._wait = threading.Timer(delay, self._appear)
        self._wait.daemon = True
        self._lock = threading.Lock()
        self._counts: tuple[int, int | None] = (0, None)
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._over = False

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            self._wait.start()
        return self

    def __call__(self, done_rows: int, total_rows: int | None) -> None:
        """Move the bar, or note where it will start."""
        self._counts = (done_rows, total_rows)
        with self._lock:
            if self._bar is not None and self._task is not None:
                self._bar.update(self._task, completed=done_rows, total=total_rows)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._wait.cancel()
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar.stop()

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("evaluating"),
            BarColumn(),
            TextColumn("{task.completed:,.0f} rows"),
            TimeElapsedColumn(),
        )
        with self._lock:
            if self._over:
                return
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            done, total = self._counts
            self._task = self._bar.add_task("", completed=done, total=total)
            self._bar.start()
