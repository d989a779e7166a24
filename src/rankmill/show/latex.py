"""Tables as LaTeX with the rules of booktabs, in a file that a paper takes in where it wants it."""

import re
from collections.abc import Sequence

from rankmill.io.inert_text import latex_text
from rankmill.show.tables import Best, Cell, Column, Marked, Part, Table, raised

_NEEDED = "% This needs \\usepackage{booktabs} in the preamble.\n"
_LETTERS = "% It needs \\usepackage[T1]{fontenc} too.\n"
_FONTS = "% pdflatex lacks {}: take lualatex or xelatex, and by fontspec a font that has them.\n"
_UNKNOWN = re.compile("[^\0-\u017e–—‘’“”„†‡•€]|[ĦħĸĿŀŉŦŧ]")
_SCIENTIFIC = re.compile(r"e([+-])0*(\d+)")


def written(parts: Sequence[Part]) -> str:
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
