"""What a page is made of: sections with a title, drawings, tables and texts.

Ids and names in texts are inert, isolated from the direction of others, and short.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from rankmill.io.inert_text import LONGEST, brief, visible
from rankmill.show.marks import Drawing
from rankmill.show.tables import meaning
from rankmill.show.writers import bold_texts

# The most characters of a name in the title that a pointer shows.
IN_TITLE = 200


class Html(str):
    """A text that is HTML already, and the same without tags as `plain`."""

    plain: str

    def __new__(cls, markup: str, plain: str = "") -> Html:
        """Return the text."""
        made = super().__new__(cls, markup)
        made.plain = plain
        return made

    def begun(self) -> Html:
        """Return this as the beginning of a sentence; a name, which is in a tag, stays as it is."""
        return Html(self[:1].upper() + self[1:], self.plain if self[:1] == "<" else
                    self.plain[:1].upper() + self.plain[1:])  # fmt: skip

    def __html__(self) -> str:
        """Return the text as templates take it: not to be escaped again."""
        return str(self)


def name(text: object, most: int = LONGEST) -> Html:
    """Return an id or a name as HTML; if it is shortened, its title has more of it."""
    whole = str(text)
    short = brief(whole, most)
    more = escape(brief(whole, IN_TITLE)) if short != visible(whole[: 4 * most]) else ""
    title = f' title="{more}"' if more else ""
    return Html(f"<bdi{title}>{escape(short)}</bdi>", short)


def say(template: str, *parts: object) -> Html:
    """Return a sentence with parts in its braces: names that are HTML, and plain texts.

    Examples
    --------
    >>> told = say("{} lost {}", name("<b>"), "4%")
    >>> told, told.plain
    ('<bdi>&lt;b&gt;</bdi> lost 4%', '<b> lost 4%')
    """
    marked = (one if isinstance(one, Html) else escape(visible(str(one))) for one in parts)
    plain = (one.plain if isinstance(one, Html) else visible(str(one)) for one in parts)
    return Html(escape(template, quote=False).format(*marked), template.format(*plain))


def listed(parts: list[Html]) -> Html:
    """Return parts as a list in words: a, b and c."""
    if len(parts) < 2:
        return parts[0] if parts else Html("")
    return say(", ".join(["{}"] * (len(parts) - 1)) + " and {}", *parts)


class Grid(NamedTuple):
    """A table; cells are texts, or drawings that are HTML."""

    header: Sequence[Any]
    rows: Sequence[Sequence[Any]]
    left: frozenset[int] = frozenset({0})  # columns of left-aligned cells; others are numbers
    drawn: int | None = None  # the column of drawings, which takes the room that is left
    wide: frozenset[int] = frozenset()  # the columns that a phone leaves out

    @property
    def hovers(self) -> list[str]:
        """What the heads mean; names, which are HTML, mean themselves."""
        return ["" if isinstance(one, Html) else meaning(str(one)) for one in self.header]


def grid_of(table: Any) -> Grid:
    """Return a table as a page has it; a head with a meaning is text, which shows it on hover."""
    header, *rows = bold_texts(table, lambda text: escape(visible(text)), "<b>{}</b>")
    heads = [
        visible(one.title) if meaning(one.title) else Html(cell)
        for one, cell in zip(table.columns, header, strict=True)
    ]
    left = frozenset(place for place, column in enumerate(table.columns) if column.left)
    return Grid(heads, [[*map(Html, row)] for row in rows], left)


class Figure(NamedTuple):
    """A chart of its own with a title, the systems in it, and its numbers as a table."""

    title: Html | str
    drawing: Drawing
    numbers: Grid
    legend: Sequence[tuple[Drawing, Html]] = ()
    note: Html | str = ""


class Section(NamedTuple):
    """A part of a page."""

    kicker: str  # what it is about, in a word or two
    title: Html | str  # what one sees
    lead: Html | str = ""  # how to read it
    parts: Sequence[Any] = ()  # grids, figures, lists of queries, facts
    kind: str = ""  # "figures" stand beside each other if there is room


class Folded(NamedTuple):
    """Parts that are shown when asked for."""

    title: Html | str
    parts: Sequence[Any]


class Query(NamedTuple):
    """A query that moved: its title, its labels, and a list of each system.

    Each list is a name, a value, and items as (text, whether it is right).
    """

    title: Html | str
    labels: Html | str
    lists: Sequence[tuple[Html, str, Sequence[tuple[Html, bool]]]]
    note: str = ""


class FactList(NamedTuple):
    """Titles and texts; `code` texts are commands."""

    rows: Sequence[tuple[Any, Any]]
    code: bool = False


class Finding(NamedTuple):
    """Something that was found: a word with its tone, a title, more of it, and what it means."""

    word: str
    tone: str
    title: Html | str
    more: Html | str = ""
    meaning: Html | str = ""


class Finds(NamedTuple):
    """What was found, as a list."""

    rows: Sequence[Finding]


def kind_of(part: Any) -> str:
    """Return what a part is, for templates."""
    return type(part).__name__.lower()
