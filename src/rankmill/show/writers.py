"""A view as text in one of six formats; the seventh, drawn on a terminal, is that of `cli`.

Ids and names are data: each writer makes them visible, and none lets them act. LaTeX has the rules
of booktabs, in a file that a paper takes in where it wants it.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence

from rankmill.io.inert_text import csv_cell, latex_text, markdown_text, visible
from rankmill.show.tables import (
    Best,
    Cell,
    Column,
    Facts,
    Marked,
    Part,
    Table,
    View,
    meaning,
    raised,
)

FORMATS = ("table", "json", "csv", "markdown", "latex")
"""What commands offer; "html" is for notebooks."""

_NEEDED = "% This needs \\usepackage{booktabs} in the preamble.\n"
_LETTERS = "% It needs \\usepackage[T1]{fontenc} too.\n"
_FONTS = "% pdflatex lacks {}: take lualatex or xelatex, and by fontspec a font that has them.\n"
_UNKNOWN = re.compile("[^\0-\u017e–—‘’“”„†‡•€]|[ĦħĸĿŀŉŦŧ]")
_SCIENTIFIC = re.compile(r"e([+-])0*(\d+)")


def write(view: View, format: str) -> str:
    """Return a view as text in one of `FORMATS` or "html", with a line break at the end."""
    return _WRITERS[format](view)


def plain_text(parts: Sequence[Part]) -> str:
    """Return parts as text for a fixed-width font, without a line break at the end."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, str):
            lines.append(visible(part))
        else:
            lines += plain_table(part) if isinstance(part, Table) else plain_lines(part)
    return "\n".join(lines)


def plain_table(table: Table) -> list[str]:
    """Return a table as lines for a fixed-width font."""
    shown = [[visible(cell) for cell in row] for row in table.texts()]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    shown.insert(1, ["-" * width for width in widths])
    return [
        "  ".join(
            cell.ljust(width) if column.left else cell.rjust(width)
            for cell, width, column in zip(row, widths, table.columns, strict=True)
        ).rstrip()
        for row in shown
    ]


def plain_lines(facts: Facts) -> list[str]:
    """Return facts as lines for a fixed-width font."""
    shown = [[visible(text) for text in row] for row in facts.rows]
    if not facts.aligned:
        return [": ".join(row) for row in shown]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = []
    for title, *numbers, text in shown:
        aligned = [one.rjust(width) for one, width in zip(numbers, widths[1:-1], strict=True)]
        lines.append("  ".join([title.ljust(widths[0]), *aligned, text]))
    return lines


def html_text(parts: Sequence[Part]) -> str:
    """Return parts as HTML without colours, as a notebook has its own."""
    return "\n".join(line for part in parts for line in _html_lines(part))


def _html_lines(part: Part) -> list[str]:
    from html import escape

    def shown(text: str) -> str:
        return escape(visible(text))

    if isinstance(part, str):
        return [f"<div><small>{shown(part)}</small></div>"]
    if isinstance(part, Facts):
        lines = []
        for title, *numbers, text in ([shown(text) for text in row] for row in part.rows):
            titles = " ".join([title, *(f"<b>{number}</b>" for number in numbers)])
            lines.append(f"<div><small>{titles}: {text}</small></div>")
        return lines
    header, *rows = bold_texts(part, shown, "<b>{}</b>")
    sides = ["left" if column.left else "right" for column in part.columns]
    lines = ["<table>", "<thead><tr>"]
    for title, column in zip(header, part.columns, strict=True):
        hover = f' title="{escape(meaning(column.title))}"' if meaning(column.title) else ""
        lines.append(f'<th style="text-align: left"{hover}>{title}</th>')
    lines += ["</tr></thead>", "<tbody>"]
    for row in rows:
        cells = zip(sides, row, strict=True)
        inner = "".join(f'<td style="text-align: {side}">{cell}</td>' for side, cell in cells)
        lines.append(f"<tr>{inner}</tr>")
    return [*lines, "</tbody>", "</table>"]


def bold_texts(table: Table, escaped: Callable[[str], str], bold: str) -> Iterator[list[str]]:
    """Yield the header and the rows; in a table for papers the best is bold, and has no star."""
    papers = [column.kind in ("short", "lettered") for column in table.columns]
    header, *texts = table.texts(stars=not any(papers))
    yield [escaped(title) for title in header]
    for row, cells in zip(texts, table.rows, strict=True):
        yield [
            bold.format(escaped(text)) if has and isinstance(cell, Best) else escaped(text)
            for has, text, cell in zip(papers, row, cells, strict=True)
        ]


def markdown(parts: Sequence[Part]) -> str:
    """Return tables as Markdown pipe tables, and lines as paragraphs; no facts."""
    blocks = []
    for part in parts:
        if isinstance(part, str):
            blocks.append(markdown_text(part) + "\n")
        elif isinstance(part, Table):
            header, *rows = bold_texts(part, markdown_text, "**{}**")
            rules = ["---" if column.left else "---:" for column in part.columns]
            blocks.append("".join(f"| {' | '.join(row)} |\n" for row in [header, rules, *rows]))
    return "\n".join(blocks)


def csv_text(table: Table) -> str:
    """Return an exact table as comma-separated values; texts are data and never a formula."""
    text = io.StringIO()
    titles = [column.title for column in table.columns]
    lines = ([csv_cell(cell) for cell in row] for row in (titles, *table.rows))
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def _json_text(view: View) -> str:
    return json.dumps(view.content(), indent=2, allow_nan=False) + "\n"


def latex(parts: Sequence[Part]) -> str:
    """Return tables as tabulars, and lines as small paragraphs; no facts."""
    blocks = []
    for part in parts:
        if isinstance(part, str):
            blocks.append(f"{{\\footnotesize {latex_text(part)}\\par}}\n")
        elif isinstance(part, Table):
            blocks.append(_tabular(part))
    text = "\n\\medskip\\noindent\n".join(blocks)
    lacking = sorted({*_UNKNOWN.findall(text)})[:20]
    told = _FONTS.format(" ".join(lacking)) if lacking else "" if text.isascii() else _LETTERS
    return _NEEDED + told + text


def _tabular(table: Table) -> str:
    header, *texts = table.texts(stars=False)
    sides = "".join("l" if column.left else "r" for column in table.columns)
    rows = [
        [_cell(*one) for one in zip(cells, row, table.columns, strict=True)]
        for cells, row in zip(table.rows, texts, strict=True)
    ]
    lines = [f"{' & '.join(row)} \\\\\n" for row in ([latex_text(one) for one in header], *rows)]
    lines.insert(1, "\\midrule\n")
    inner = "".join(["\\toprule\n", *lines, "\\bottomrule\n"])
    return f"\\begin{{tabular}}{{{sides}}}\n{inner}\\end{{tabular}}\n"


def _cell(cell: Cell, text: str, column: Column) -> str:
    if column.kind == "text":
        return latex_text(text)
    if isinstance(cell, tuple):
        low, high = text.split("..")
        return f"{{[}}{_number(low)}, {_number(high)}]"
    mark = cell.mark if isinstance(cell, Marked) else ""
    shown = _number(text.removesuffix(raised(mark)))
    if isinstance(cell, Best):
        bold = "\\boldmath" if shown.startswith("$") else ""
        shown = f"\\textbf{{{bold}{shown}}}"
    if mark:
        superscript = f"\\textsuperscript{{{latex_text(mark)}}}"
        # A mark takes no room, so that numbers with and without one stand below each other. Letters
        # may be many: their column is left-aligned.
        shown += superscript if column.kind == "lettered" else f"\\rlap{{{superscript}}}"
    return shown


def _number(text: str) -> str:
    """Return a number as LaTeX, in mathematics if it has a sign, which is no hyphen there."""
    if not re.search(r"[-+<]|inf", text):
        return latex_text(text)
    shown = _SCIENTIFIC.sub(lambda found: rf" \times 10^{{{found[1].strip('+')}{found[2]}}}", text)
    shown = shown.replace("%", r"\%").replace(",", "{,}").replace("inf", r"\infty")
    return f"${shown}$"


_WRITERS: dict[str, Callable[[View], str]] = {
    "table": lambda view: plain_text(view.screen()) + "\n",
    "json": _json_text,
    "csv": lambda view: csv_text(view.exact()),
    "markdown": lambda view: markdown(view.page()),
    "latex": lambda view: latex((view.paper or view.page)()),
    "html": lambda view: html_text(view.page()) + "\n",
}
