"""What is shown of anything: tables of exact cells, facts and lines; and the view that holds them.

A new output is one function that builds a `View`; `rankmill.show.writers` and the terminal do
the rest.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self, TypeAlias

Kind: TypeAlias = Literal[
    "text",  # as it is; True and False are yes and no
    "count",
    "size",  # a number of bytes
    "value",  # all of these, and the ranges, of a table have the same number of decimals
    "range",  # two values
    "difference",  # a signed difference of two values
    "number",  # with a number of decimals of its column
    "error",  # a standard error: 3 digits say enough
    "short",  # a value in a paper: 4 digits of the largest say enough
    "lettered",  # the same, with raised letters behind it, its mark
    "score",  # of any size, perhaps infinite
    "interval",  # two signed differences, with the decimals that its width is worth
    "p",  # a probability; a very small one is only said to be small
    "share",  # of 1, in percent
    "change",  # a signed relative difference, in percent
    "changes",  # two of them, which may be infinite
]
"""How the cells of a column are shown."""
Cell: TypeAlias = str | float | tuple[float, float] | None
"""An exact value; None is an empty cell. Integers and booleans are kinds of float for Python."""
_DIGITS = {"error": 3, "short": 4, "lettered": 4}
_SMALLEST_READABLE = 1e-5
_SMALLEST_P = 0.0001

# Patterns of heads -> what they mean. A legend leaves out those that need none.
_PLAIN = {
    r"value": "the metric over all queries that count",
    r"queries": "the number of queries that count",
    r"audit": "what was counted of the inputs; the last column says what each count is",
    r"result": "the conclusion of the first test",
    r"verdict": "whether the rule or the run passed",
    r"won": "the share of queries that are better than in the baseline",
    r"tied": "the share of queries that are the same as in the baseline",
    r"lost": "the share of queries that are worse than in the baseline",
    r"against": "the other system of the pair",
    r"difference": "the value of the system minus that of the other one",
}
HEADS = {
    **_PLAIN,
    r"standard error": "how much the value varies by the choice of queries",
    r"error": "the standard error of the value before it",
    r"worst\.\.best": "the values if ties were in the worst and in the best order",
    r"effective": "how many queries of equal weight would be as precise",
    r"± .+%": "half the width of the confidence interval of the value",
    r"from confidence": "the lowest confidence of these predictions",
    r"from .+": "the difference from this system or preset",
    r".+% interval": "the confidence interval of the value or difference before it",
    r"p( .+)?": "how likely a difference at least this large is between equal systems; the "
    "correction for multiple comparisons is in parentheses",
    r"relative": "the difference divided by the value of the baseline",
    r"change": "the difference from the baseline, or from the last run of an earlier day",
    r"shrunk": "the difference without the part that is likely due to chance in small slices",
    r"trend": "the last 30 values",
    r"drift": "t of the last value, if it is far from those before it",
    r"counted as": "a preset, followed by the choices in which it differs",
    r"term": "what this rank adds to the sum",
    r"smallest drop": "the smallest drop that the rule fails in 80% of nights",
    r"false alarms per year": "nights per year that fail the rule without any change",
    r"holds": "nights without any change in which the rule holds",
    r"detects": "the smallest drop that the rule fails in 80% of nights",
}


class Marked(float):
    """A value with a mark behind it, such as ↑, that a note explains.

    LaTeX shows the mark, and in a column of kind "lettered" all formats do.
    """

    mark: str

    def __new__(cls, value: float, mark: str = "") -> Self:
        """Return the value, which a float takes here and not in ``__init__``."""
        one = super().__new__(cls, value)
        one.mark = mark
        return one


class Best(Marked):
    """The best value of a metric, which is shown with a star, in LaTeX in bold."""


class Bad(str):
    """A text that says that something is wrong, which a terminal shows in red."""

    __slots__ = ()


class Column(NamedTuple):
    """The title of a column, and the kind of its cells."""

    title: str
    kind: Kind = "text"

    @property
    def left(self) -> bool:
        """Whether its cells are left-aligned."""
        return self.kind in ("text", "range", "interval", "changes", "lettered")


class Table(NamedTuple):
    """Columns, and rows of exact cells.

    Examples
    --------
    >>> columns = [Column("metric"), Column("value", "value"), Column("queries", "count")]
    >>> Table(columns, [["map", Best(0.25), 1200], ["gap", 0.0625, None]]).texts()
    [['metric', 'value ', 'queries'], ['map', '0.2500000*', '1,200'], ['gap', '0.0625000 ', '']]
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]

    @property
    def marked(self) -> bool:
        """Whether a cell is marked as the best of its row."""
        return any(isinstance(cell, Best) for row in self.rows for cell in row)

    def texts(self, *, stars: bool = True) -> list[list[str]]:
        """Return the header and the rows as text, the numbers of a column with aligned points."""
        cells = list(zip(*self.rows, strict=True)) if self.rows else [()] * len(self.columns)
        pairs = list(zip(self.columns, cells, strict=True))
        values = [cell for column, some in pairs if column.kind == "value" for cell in some]
        ranges = [cell for column, some in pairs if column.kind == "range" for cell in some]
        shared = decimals_of([*values, *(end for cell in ranges for end in cell or ())])
        marked, shown = stars and self.marked, []
        for (title, kind), of_column in pairs:
            decimals = shared
            if kind in ("number", "error"):
                decimals = decimals_of(of_column, _DIGITS.get(kind, 6))
            if kind in ("short", "lettered"):
                known = [cell for cell in of_column if cell is not None]
                decimals = decimals_of([max(known, key=abs)] if known else [], _DIGITS[kind])
                decimals = _telling(kind, of_column, decimals)
            if kind == "interval":
                widths = (cell[1] - cell[0] for cell in of_column if cell is not None)
                decimals = decimals_of(widths, _DIGITS["error"])
            texts = [_text(kind, cell, decimals) for cell in of_column]
            if kind == "lettered":
                starred = marked and any(isinstance(cell, Best) for cell in of_column)
                texts = [
                    _lettered(text, cell, starred)
                    for text, cell in zip(texts, of_column, strict=True)
                ]
            if marked and kind == "value":
                marks = ["*" if isinstance(cell, Best) else " " for cell in of_column]
                texts = [text + mark for text, mark in zip(texts, marks, strict=True)]
                title += " "
            shown.append([title, *texts])
        return [list(row) for row in zip(*shown, strict=True)]


class Facts(NamedTuple):
    """Rows of text, each of a title, perhaps numbers, and a text that may be long.

    Plain text puts them below each other if they are `aligned`: not where titles may be long.
    """

    rows: Collection[Sequence[str]]
    aligned: bool = True


Part: TypeAlias = Table | Facts | str
"""A table, facts, or a line of text."""


class View(NamedTuple):
    """What is shown of something. Each field is a function, as a format asks for one of them."""

    # What people read as plain text or on a terminal; an empty line is a part too.
    screen: Callable[[], Sequence[Part]]
    # What Markdown and HTML show, in a document of others; Markdown leaves out facts.
    page: Callable[[], Sequence[Part]]
    exact: Callable[[], Table]  # for CSV: names as programs write them, and every digit
    content: Callable[[], object]  # for JSON
    # What LaTeX shows, which leaves out facts too; by default the page.
    paper: Callable[[], Sequence[Part]] | None = None
    notes: Sequence[str] = ()  # of those on the screen, the ones to read beside a CSV


def listing(table: Table, content: object) -> View:
    """Return the view of a table that is the same in all formats, but for JSON, which has more."""
    return View(lambda: [table], lambda: [table], lambda: table, lambda: content)


def view_of_blocks(
    blocks: Callable[[], list[list[Part]]],
    facts: Callable[[], Facts],
    exact: Callable[[], Table],
    content: Callable[[], object],
    paper: Callable[[], Sequence[Part]] | None = None,
    notes: Sequence[str] = (),
) -> View:
    """Return the view of blocks of parts: a screen shows them apart, and above the facts."""

    def screen() -> list[Part]:
        return [part for block in blocks() if block for part in (*block, "")] + [facts()]

    def page() -> list[Part]:
        return [part for block in blocks() for part in block]

    return View(screen, page, exact, content, paper, notes)


def decimals_of(values: Iterable[Any], digits: int = 6) -> int:
    """Return how many decimals show `digits` significant digits of the smallest number.

    Those too small for a readable column do not count, as they are in scientific notation; nor do
    infinite ones and NaN.
    """
    sizes = [abs(number) for number in values if number is not None]
    sizes = [size for size in sizes if _SMALLEST_READABLE <= size < math.inf]
    return max(digits - 1 - math.floor(math.log10(min(sizes))), 0) if sizes else digits


def size_text(size: int) -> str:
    """Return a number of bytes as text, as 1.5GB."""
    for unit, one in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= one:
            return f"{size / one:.{1 if size < 10 * one else 0}f}{unit}"
    return f"{size}B"


# Letters in the order of the alphabet; Unicode has no raised q that fonts have.
LETTERS = "abcdefghijklmnoprstuvwxyz"


_RAISED = str.maketrans(LETTERS, "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ")


def raised(letters: str) -> str:
    """Return letters as superscripts of Unicode.

    Examples
    --------
    >>> raised("abz")
    'ᵃᵇᶻ'
    """
    return letters.translate(_RAISED)


def _telling(kind: Kind, cells: Sequence[Cell], decimals: int) -> int:
    """Return as many decimals, or up to 6 more that tell the best of a column from the others."""
    for more in range(decimals, decimals + 7):
        best = {_text(kind, cell, more) for cell in cells if isinstance(cell, Best)}
        if not any(_text(kind, cell, more) in best for cell in cells if not isinstance(cell, Best)):
            return more
    return decimals


def _lettered(text: str, cell: Any, starred: bool) -> str:
    star = ("*" if isinstance(cell, Best) else " ") if starred else ""
    return f"{text}{star}{raised(getattr(cell, 'mark', ''))}".rstrip()


def _text(kind: Kind, cell: Any, decimals: int) -> str:
    if cell is None:
        return ""
    if kind == "text":
        return ("yes" if cell else "no") if isinstance(cell, bool) else str(cell)
    if kind == "count":
        return f"{cell:,}"
    if kind == "size":
        return size_text(cell)
    if kind == "score":
        return f"{cell:.7g}"
    if kind == "range":
        return "..".join(_number_text(end, decimals, 6) for end in cell)
    if kind == "interval":
        return "..".join(_text("difference", end, decimals) for end in cell)
    if kind == "changes":
        return "..".join(f"{end:+.1%}" if math.isfinite(end) else "unbounded" for end in cell)
    if kind == "p":
        return f"{cell:.4f}" if cell >= _SMALLEST_P else f"<{_SMALLEST_P}"
    if kind in ("share", "change"):
        return f"{cell:.1%}" if kind == "share" else f"{cell:+.2%}"
    if kind == "difference":
        shown = f"{cell:+.{decimals}f}"
        return f"{cell:+.1e}" if cell and float(shown) == 0 else shown
    return _number_text(cell, decimals, _DIGITS.get(kind, 6))


def _number_text(number: float, decimals: int, digits: int) -> str:
    if 0 < abs(number) < _SMALLEST_READABLE:
        return f"{number:.{digits - 1}e}"
    return f"{number:.{decimals}f}"


def meaning(head: str) -> str:
    """Return what a head means, "" if it is not in the table.

    Examples
    --------
    >>> meaning("± 95%"), meaning("country")
    ('half the width of the confidence interval of the value', '')
    """
    found = (text for one, text in HEADS.items() if re.fullmatch(one, head.strip()))
    return next(found, "")


def legend(heads: Iterable[str]) -> list[tuple[str, str]]:
    """Return the heads that need an explanation, each with its own.

    Examples
    --------
    >>> legend(["metric", "value", "relative", "relative"])
    [('relative', 'the difference divided by the value of the baseline')]
    """
    needed = {head.strip(): meaning(head) for head in heads}
    plain = {*_PLAIN.values(), ""}
    return [(head, text) for head, text in needed.items() if text not in plain]


# ------------------------------------------------------------------ a table of all systems

Values = Mapping[str, Mapping[str, float | None]]
"""Metric -> system -> value."""
Beaten = Mapping[str, Mapping[str, Collection[str]]]
"""Metric -> system -> the systems that differ from it and have the value that is worse."""


_BEST: dict[str, Callable[[Sequence[float]], float]] = {"higher": max, "lower": min}
STAR = "best value for this metric"
"""What the star of a `Best` cell means, in every table; in papers it is bold."""


def best_value(values: Iterable[float | None], side: str) -> float | None:
    """Return the best of some values; None if all are equal, or no side is better.

    Examples
    --------
    >>> best_value([0.25, None, 0.5], "higher"), best_value([0.5, 0.5], "higher")
    (0.5, None)
    """
    known = [one for one in values if one is not None]
    return _BEST[side](known) if side in _BEST and len({*known}) > 1 else None


def leaderboard(values: Values, sides: Mapping[str, str], beaten: Beaten | None = None) -> Table:
    """Return the systems, the best one of the first metric first, and the best values marked.

    `sides` says which side of a metric is better: "higher", "lower" or "neither". `beaten` has the
    systems whose letters stand behind a value.

    Examples
    --------
    >>> values = {"map": {"old": 0.25, "new": 0.5}}
    >>> table = leaderboard(values, {"map": "higher"}, {"map": {"new": ["old"], "old": []}})
    >>> table.texts()
    [['#', 'system', 'map'], ['a', 'new', '0.5000*ᵇ'], ['b', 'old', '0.2500']]
    """
    first = next(iter(values))
    systems = list(values[first])
    if sides[first] in _BEST:
        sign = 1 if sides[first] == "lower" else -1
        keys = {name: (one is None, sign * (one or 0.0)) for name, one in values[first].items()}
        systems.sort(key=keys.__getitem__)
    letters = dict(zip(systems, _letters(len(systems)), strict=True))
    between = "," if len(systems) > len(LETTERS) else ""

    bests = {metric: best_value(of.values(), sides[metric]) for metric, of in values.items()}

    def cell(metric: str, name: str) -> Cell:
        value = values[metric][name]
        if value is None:
            return None
        told = () if beaten is None else beaten[metric][name]
        mark = between.join(letters[one] for one in systems if one in told)
        return (Best if value == bests[metric] else Marked)(value, mark)

    columns = [
        Column("system"),
        *(Column(m, "short" if beaten is None else "lettered") for m in values),
    ]
    rows = [[name, *(cell(metric, name) for metric in values)] for name in systems]
    if beaten is None:
        return Table(columns, rows)
    named = zip(systems, rows, strict=True)
    return Table([Column("#"), *columns], [[letters[name], *row] for name, row in named])


def _letters(count: int) -> list[str]:
    """Return so many labels: a to z without q, and then two letters each."""
    if count <= len(LETTERS):
        return list(LETTERS[:count])
    size = len(LETTERS)
    return [(LETTERS[i // size - 1] if i >= size else "") + LETTERS[i % size] for i in range(count)]
