"""How a command shows a view: drawn on a terminal, as text in a pipe, or written to a file."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from rankmill.cli.process import is_terminal
from rankmill.io import signals
from rankmill.io import whole_files as writing
from rankmill.io.inert_text import visible
from rankmill.show.tables import Bad, Best, Facts, Part, Table, View, legend
from rankmill.show.writers import write

if TYPE_CHECKING:
    import pyarrow as pa
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

    All files are written, or none. What is printed is printed once they are.
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
