"""Tables of text."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from rankmill.results.escaping import visible

if TYPE_CHECKING:
    pass


def aligned_numbers(values: Iterable[float | None], digits: int) -> list[str]:
    """Return numbers as text with one number of decimals, so that a column of them lines up.

    The smallest of them still shows `digits` significant digits; those too small for a readable
    column are in scientific notation. None becomes an empty text.
    """
    numbers = list(values)
    smallest_readable = 1e-5
    sizes = [abs(number) for number in numbers if number is not None]
    sizes = [size for size in sizes if size >= smallest_readable]
    decimals = digits
    if sizes:
        decimals = max(digits - 1 - math.floor(math.log10(min(sizes))), 0)

    def text(number: float | None) -> str:
        if number is None:
            return ""
        if 0 < abs(number) < smallest_readable:
            return f"{number:.{digits - 1}e}"
        return f"{number:.{decimals}f}"

    return [text(number) for number in numbers]


def html_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int] = (0,)
) -> str:
    """Return rows of text as an HTML table; cells of columns at `left` are left-aligned."""
    from html import escape

    def text(cell: str) -> str:
        return escape(visible(cell))

    lines = ["<table>", "<thead><tr>"]
    lines += [f'<th style="text-align: left">{text(title)}</th>' for title in header]
    lines += ["</tr></thead>", "<tbody>"]
    for row in rows:
        cells = [
            f'<td style="text-align: {"left" if position in left else "right"}">{text(cell)}</td>'
            for position, cell in enumerate(row)
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join([*lines, "</tbody>", "</table>"])


def plain_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int] = (0, 4)
) -> str:
    """Return rows of text as a table for a fixed-width font; columns at `left` are left-aligned."""
    shown = [[visible(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]

    def line(cells: Sequence[str]) -> str:
        parts = [
            cell.ljust(width) if position in left else cell.rjust(width)
            for position, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(parts).rstrip()

    rule = line(["-" * width for width in widths])
    return "\n".join([line(shown[0]), rule, *map(line, shown[1:])])


def plain_lines(texts: Iterable[tuple[str, str]]) -> list[str]:
    """Return titles and texts as lines for a fixed-width font, the texts below each other."""
    shown = [(visible(title), visible(text)) for title, text in texts]
    width = max((len(title) for title, _ in shown), default=0)
    return [f"{title:<{width}}  {text}" for title, text in shown]
