"""How one result looks: text for files and pipes, a drawn table on a terminal."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from rankmill import signals
from rankmill.cli.inputs import PARQUET_SUFFIXES
from rankmill.errors import UsageError
from rankmill.results import audit
from rankmill.results.escaping import csv_cell, markdown_text, visible
from rankmill.results.result import Result, table_cells
from rankmill.results.tables import plain_lines, plain_table
from rankmill.semantics.choices import DEFAULT, Semantics
from rankmill.semantics.presets import PRESETS

if TYPE_CHECKING:
    from rich.text import Text

__all__ = [
    "CSV_HEADER",
    "FORMATS",
    "csv_text",
    "described",
    "draw",
    "draw_rows",
    "drawn",
    "emit",
    "exact_rows",
    "format_for",
    "markdown",
    "render",
    "semantics_text",
]

FORMATS = ("table", "json", "csv", "markdown")
_FORMAT_OF_SUFFIX = {".json": "json", ".csv": "csv", ".md": "markdown", ".markdown": "markdown"}
CSV_HEADER = ["metric", "value", "standard_error", "queries", "worst", "best"]


def format_for(chosen: str | None, output: str | None) -> str:
    """Return the format asked for, else the one that the output file's suffix tells, else table.

    Raises
    ------
    UsageError
        If the suffix is that of Parquet, which no format is.
    """
    if chosen is not None:
        return chosen
    suffix = Path(output or "").suffix.lower()
    if suffix in PARQUET_SUFFIXES:
        raise UsageError(
            f"cannot write {output} as Parquet: choose a name in .json, .csv or .md, or --format"
        )
    return _FORMAT_OF_SUFFIX.get(suffix, "table")


def render(result: Result, format: str) -> str:
    """Return a result as text in one of `FORMATS`, with a line break at the end."""
    if format == "json":
        return result.to_json(indent=2) + "\n"
    if format == "csv":
        return csv_text(CSV_HEADER, exact_rows(result))
    header, rows = table_cells(result)
    if format == "markdown":
        return markdown(header, rows, right=(1, 2, 3))
    counts = [[name, count, meaning] for name, count, meaning in _audit_rows(result)]
    width = max((len(name) for name, _, _ in counts), default=0)
    digits = max((len(count) for _, count, _ in counts), default=0)
    lines = [plain_table(header, rows), ""]
    lines += [f"{name:<{width}}  {count:>{digits}}  {meaning}" for name, count, meaning in counts]
    lines += ["", *plain_lines(_facts(result))]
    return "\n".join(lines) + "\n"


def draw(result: Result) -> None:
    """Draw a result on the terminal that is standard output."""
    signals.printing()
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    header, rows = table_cells(result)
    metrics = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for position, title in enumerate(header):
        metrics.add_column(
            drawn(title),
            style="bold" if position < 2 else "",
            justify="left" if position in (0, 4) else "right",
            no_wrap=position != 4,
        )
    for row in rows:
        metrics.add_row(*map(drawn, row))

    counts = Table.grid(padding=(0, 2), pad_edge=False)
    counts.add_column(no_wrap=True)
    counts.add_column(justify="right", no_wrap=True)
    counts.add_column(style="dim")
    for cells in _audit_rows(result):
        counts.add_row(*map(drawn, cells))

    facts = Table.grid(padding=(0, 2), pad_edge=False)
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for fact in _facts(result):
        facts.add_row(*map(drawn, fact))

    console = Console(highlight=False)
    for part in (metrics, Text(), counts, Text(), facts):
        console.print(part)


def draw_rows(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Sequence[int],
    facts: Sequence[Sequence[str]] = (),
) -> None:
    """Draw a table, and below it titles with a text each, on the terminal that is standard output.

    The last column is folded where the terminal is too narrow.
    """
    signals.printing()
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for position, title in enumerate(header):
        last = position == len(header) - 1
        justify: Literal["left", "right"] = "left" if position in left else "right"
        table.add_column(drawn(title), justify=justify, no_wrap=not last, overflow="fold")
    for row in rows:
        table.add_row(*map(drawn, row))
    below = Table.grid(padding=(0, 2), pad_edge=False)
    below.add_column(style="dim", overflow="fold")
    below.add_column(overflow="fold")
    for fact in facts:
        below.add_row(*map(drawn, fact))
    console = Console(highlight=False)
    for part in (table, Text(), below):
        console.print(part)


def drawn(text: str, style: str = "") -> Text:
    """Return a text as rich draws it: made visible, and no markup."""
    from rich.text import Text

    return Text(visible(text), style)


def emit(text: str) -> None:
    """Print a text that ends in a line break; characters that the encoding lacks are escaped."""
    signals.printing()
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False)


def csv_text(header: Sequence[str], rows: Sequence[Sequence[str | float | None]]) -> str:
    """Return rows as comma-separated values; texts are data and never a formula."""
    text = io.StringIO()
    lines = ([csv_cell(cell) for cell in row] for row in (header, *rows))
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def markdown(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()
) -> str:
    """Return rows as a Markdown pipe table; columns at the positions `right` are right-aligned."""
    rules = ["---:" if position in right else "---" for position in range(len(header))]
    escaped = [[markdown_text(cell) for cell in row] for row in (header, *rows)]
    return "".join(f"| {' | '.join(row)} |\n" for row in [escaped[0], rules, *escaped[1:]])


def exact_rows(result: Result) -> list[list[str | float | None]]:
    """Return the rows under `CSV_HEADER`: a metric each, its numbers as they are."""
    return [
        [
            name,
            value,
            result.standard_errors.get(name),
            result.queries,
            *result.bounds.get(name, (None, None)),
        ]
        for name, value in result.metrics.items()
    ]


def _audit_rows(result: Result) -> list[tuple[str, str, str]]:
    shown = {name for name in audit.HEADLINE if name in result.audit}
    shown |= audit.notable(result.audit).keys()
    return [
        (name, f"{result.audit[name]:,}", meaning)
        for name, meaning in audit.meanings(result.semantics).items()
        if name in shown
    ]


def _facts(result: Result) -> list[tuple[str, str]]:
    """Return what was read, how it was counted and how long it took: titles and texts."""
    facts = [(side, described(details)) for side, details in result.inputs.items()]
    if result.semantics != DEFAULT:
        facts.append(("semantics", semantics_text(result.semantics)))
    return [*facts, ("seconds", f"{result.seconds:.2f}")]


def semantics_text(semantics: Semantics) -> str:
    """Return the names that semantics have, and how they differ from the default, as a line."""
    names = [name for name, one in PRESETS.items() if one.semantics == semantics]
    choices = ", ".join(f"{field} {choice}" for field, choice in semantics.differences().items())
    return ": ".join(filter(None, [", ".join(names), choices]))


def described(details: Mapping[str, object]) -> str:
    """Return what is known of an input, its source first, as a line of text."""
    rows, columns = details.get("rows"), details.get("columns")
    notes = [str(details["shape"])] if "shape" in details else []
    if isinstance(rows, int):
        notes.append(f"{rows:,} rows")
    if isinstance(columns, dict) and columns:
        notes.append(", ".join(f"{role} = {name}" for role, name in columns.items() if name))
    return f"{details.get('source', '')} ({'; '.join(notes)})"
