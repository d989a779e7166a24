"""How a command shows a view: drawn on a terminal, as text or in a file; and the progress bar."""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rankmill.cli import process
from rankmill.cli.process import is_terminal
from rankmill.config.face import face_of
from rankmill.errors import plural
from rankmill.io import signals
from rankmill.io import whole_files as writing
from rankmill.io.inert_text import visible
from rankmill.show.tables import Bad, Best, Facts, Part, Table, View, legend
from rankmill.show.writers import write

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID
    from rich.table import Table as Drawing
    from rich.text import Text

    from rankmill.results.answer import Answer

# A column is not made narrower than this for others to stand beside it.
_NARROW = 24
RED = "bold red"
# What rich puts between two columns.
_BETWEEN = 3

# The commands of GitHub Actions at the start of a line, and of Azure Pipelines anywhere.
_COMMANDS = re.compile(r"^[ \t]*(?=::)|##(?=vso\[|\[)", re.M)


def deliver(
    found: Answer | View,
    format: str,
    output: str | None,
    more: Sequence[tuple[str, str | bytes | pa.Table | None]] = (),
) -> None:
    """Write what was found to the file `output`, else print it; with it texts, pictures and tables.

    All files are written, or none. What is printed is printed once they are; the notes of a CSV are
    on standard error.
    """
    view = found if isinstance(found, View) else found._view()
    drawn = output is None and format == "table" and is_terminal(sys.stdout)
    text = "" if drawn else write(view, format)
    writing.write_files([*([] if output is None else [(output, text)]), *more])
    if drawn:
        parts = view.screen()
        draw([*parts, *_legend(parts)])
    elif output is None:
        emit(text)
    for note in view.notes if format == "csv" else ():
        click.echo(f"note: {visible(note)}", err=True)


def emit(text: str) -> None:
    """Print a text that ends in a line break; characters that the encoding lacks are escaped.

    With RANKMILL_CI in the environment, so are lines that a CI system would take for its commands.
    """
    signals.printing()
    text = re.sub(_COMMANDS, r"\g<0>\\", text) if os.environ.get("RANKMILL_CI") else text
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False)


def draw(parts: Sequence[Part]) -> None:
    """Draw parts on the terminal that is standard output."""
    signals.printing()
    from rich.console import Console

    console = Console(highlight=False)
    for part in parts:
        if isinstance(part, str):
            console.print(_drawn(part))
        elif isinstance(part, Facts):
            console.print(_drawn_facts(part))
        else:
            for drawing in _drawn_table(part, console.width):
                console.print(drawing)


def _legend(parts: Sequence[Part]) -> list[Part]:
    """Return what explains the heads of columns, below all parts."""
    tables = [part for part in parts if isinstance(part, Table)]
    rows = legend(column.title for table in tables for column in table.columns)
    return ["", Facts(rows)] if rows else []


def _drawn(text: str) -> Text:
    """Return a text as rich draws it: made visible, and no markup."""
    from rich.text import Text

    return Text(visible(text), RED if isinstance(text, Bad) else "")


def _drawn_facts(facts: Facts) -> Drawing:
    from rich.table import Table as Drawing

    grid = Drawing.grid(padding=(0, 2), pad_edge=False)
    grid.add_column(style="dim", overflow="fold")
    for _ in range(max(map(len, facts.rows), default=2) - 2):
        grid.add_column(justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    for row in facts.rows:
        grid.add_row(*map(_drawn, row))
    return grid


def _drawn_table(table: Table, room: int) -> Iterator[Drawing | str]:
    """Draw as many columns beside the first as there is room for; the others follow below."""
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table as Drawing

    shown = [[visible(text) for text in row] for row in table.texts()]
    whole, least = [], []
    for column, (title, *texts) in zip(table.columns, zip(*shown, strict=True), strict=True):
        numbers = 0 if column.left else max(map(cell_len, texts), default=0)
        whole.append(max(map(cell_len, (title, *texts))))
        least.append(max(numbers, min(whole[-1], _NARROW)))
    for number, places in enumerate(_groups(least, room)):
        if number:
            yield ""
        spare = room - sum(least[place] + _BETWEEN for place in places) + _BETWEEN
        drawing = Drawing(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        columns = []
        for place in places:
            more = max(0, min(whole[place] - least[place], spare))
            width, left, spare = least[place] + more, table.columns[place].left, spare - more
            title, *cells = (_cell(row[place], width, left) for row in shown)
            for cell, row in zip(cells, table.rows, strict=True):
                cell.stylize("bold" if isinstance(row[place], Best) else "")
                cell.stylize(RED if isinstance(row[place], Bad) else "")
            drawing.add_column(title, width=width, overflow="fold")
            columns.append(cells)
        for row_of_cells in zip(*columns, strict=True):
            drawing.add_row(*row_of_cells)
        yield drawing


def _cell(text: str, width: int, left: bool) -> Text:
    """Return a visible text as a cell; rich would drop the space where other cells have a star."""
    from rich.text import Text

    cell = Text(text, justify="left" if left else "right")
    if not left and cell.cell_len <= width:
        cell = Text(text.rjust(width - cell.cell_len + len(text)))
    return cell


def _groups(least: Sequence[int], room: int) -> Iterator[list[int]]:
    """Yield the columns that fit beside each other: the first, and one other at least."""
    places, used = [0], least[0]
    for place, width in enumerate(least[1:], 1):
        if len(places) > 1 and used + _BETWEEN + width > room:
            yield places
            places, used = [0], least[0]
        places.append(place)
        used += _BETWEEN + width
    yield places


# ------------------------------------------------------------------ the progress bar

Value = TypeVar("Value")


def run(
    function: Callable[..., Value], labels: Any, runs: Any, options: Mapping[str, Any]
) -> Value:
    """Call a function of rankmill, given inputs and flat options as `face_of`, under a bar."""
    return call(function, face_of(function, labels, runs, options))


def call(function: Callable[..., Value], given: Mapping[str, Any], **more: Any) -> Value:
    """Call a function with these arguments under a bar."""
    with Progress() as progress:
        return function(**given, **more, progress=progress)


class Progress:
    """A progress bar on standard error that appears after a run has taken a second.

    Use it as a context manager, and call it with the number of rows done and, if known, the total
    number of rows. It prints nothing if standard error is not a terminal.
    """

    def __init__(self, delay: float = 1.0) -> None:
        self._wait = threading.Timer(delay, self._appear)
        self._wait.daemon = True
        self._lock = threading.Lock()
        self._first: tuple[float, int] | None = None
        self._counts: tuple[int, int | None] = (0, None)
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._over = False

    def __enter__(self) -> Progress:
        if is_terminal(sys.stderr) and not process.quiet:
            self._wait.start()
        return self

    def __call__(self, done_rows: int, total_rows: int | None) -> None:
        """Record the progress, and move the bar if it is visible."""
        if not gc.isenabled():
            # All modules and kernels are loaded now; freeze excludes them from garbage collection.
            gc.freeze()
            gc.enable()
        with self._lock:
            # The rate starts at the first rows, because the time before was spent on the labels.
            if self._first is None or done_rows < self._first[1]:
                self._first = (time.perf_counter(), done_rows)
            self._counts = (done_rows, total_rows)
            if self._bar is not None and self._task is not None:
                self._bar.update(
                    self._task, completed=done_rows, total=total_rows, state=self._state()
                )

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

    def _state(self) -> str:
        """Return a text with the rows done and, if known, the rows a second and the time left."""
        if self._first is None:
            return "reading labels"
        began, first = self._first
        done, total = self._counts
        seconds = time.perf_counter() - began
        if done <= first or seconds <= 0:
            return plural(done, "row")
        rate = (done - first) / seconds
        if not total or done >= total:
            return f"{plural(done, 'row')}, {rate:,.0f} rows/s"
        minutes, rest = divmod(round((total - done) / rate), 60)
        return f"{plural(done, 'row')}, {rate:,.0f} rows/s, {minutes}:{rest:02} left"

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (
            TextColumn("evaluating"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[state]}"),
        )
        with self._lock:
            if self._over:
                return
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            done, total = self._counts
            self._task = self._bar.add_task("", completed=done, total=total, state=self._state())
            self._bar.start()
