"""Texts of a page: ids and names are inert, isolated from the direction of others, and short."""

from __future__ import annotations

from html import escape

from rankmill.io.inert_text import LONGEST, brief, visible

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
