"""Pictures as SVG: panels below and beside each other, shown in notebooks and written to files."""

import unicodedata
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple, TypeAlias

from rankmill.errors import UsageError
from rankmill.io.inert_text import brief
from rankmill.io.stores.urls import shown
from rankmill.io.whole_files import write_files
from rankmill.show import charts
from rankmill.show.charts import CLASSES, Ends, Series
from rankmill.show.marks import (
    COLOURS,
    SIZE,
    SIZES,
    Drawing,
    Mark,
    Text,
    distinct_texts,
    element,
    moved,
    rules,
    tag,
)

_ABREAST = 3  # panels beside each other
_MARGIN, _GAP = 14, 28  # pixels: around a picture, between panels
_TITLE, _HEAD, _KEY = 30, 20, 16  # of the title, of the title of a panel, of a line of a legend
_SAMPLE = 18  # of a marker in a legend
Key: TypeAlias = tuple[Sequence[Mark], str]
"""A line of a legend: a drawing as wide as a word, and what it stands for."""

_LONGEST = 36
# Below a drawing stand the last label, and one of so many, so that there are 10 at most.
_STEPS = tuple(one * 10**power for power in range(6) for one in (1, 2, 5))
Points = Mapping[float, tuple[float | None, Ends]]
"""Place -> value with its interval, if there is one."""
Lines = Mapping[str, Mapping[str, Points]]
"""Title of a panel -> system -> its points."""


class Panel(NamedTuple):
    """A drawing with its title, names to the left of it as (pixels down, name), and a legend."""

    title: str
    drawing: Drawing
    names: Sequence[tuple[float, str]] = ()
    keys: Sequence[Key] = ()


class Picture(NamedTuple):
    """A picture, which a notebook shows.

    Attributes
    ----------
    title : str
    width, height : float
        In pixels, of which an inch has 96.
    marks : list
        What is drawn, in pixels.
    """

    title: str
    width: float
    height: float
    marks: list[Mark]

    def save(self, path: str | Path) -> None:
        """Write the picture to a file or URL in .svg, whole or not at all.

        Raises
        ------
        UsageError
            If the name has another ending, or the file cannot be written.
        """
        check_picture(path)
        write_files([(path, f"{self.svg()}\n".encode())])

    def svg(self) -> str:
        """Return the picture as SVG, with colours for light and for dark."""
        light, dark = ({role: both[i] for role, both in COLOURS.items()} for i in (0, 1))
        # Rules are for this picture alone, as a notebook puts many into one page.
        # No height: auto, of which CairoSVG makes an empty picture.
        style = ".rankmill { max-width: 100% }\n"
        style += rules(".rankmill", light)
        style += f"\n@media (prefers-color-scheme: dark) {{\n{rules('.rankmill', dark)}\n}}"
        ground = tag("rect", width="100%", height="100%", cls="card")
        inner = "".join(map(element, self.marks))
        head = tag("title", escape(self.title)) + f"<style>\n{style}\n</style>"
        size = f"{self.width:.0f}", f"{self.height:.0f}"
        return tag(
            "svg",
            f"\n{head}\n{ground}{inner}\n",
            xmlns="http://www.w3.org/2000/svg",
            **{"width": size[0], "height": size[1], "viewBox": f"0 0 {size[0]} {size[1]}"},
            role="img",
            cls="rankmill",
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"<Picture: {self.title}>"


def check_picture(path: str | Path) -> None:
    """Raise UsageError if no picture can be drawn for a file of this name."""
    name = shown(str(path))
    suffix = Path(name).suffix.lower()
    if suffix in (".png", ".pdf"):
        raise UsageError(
            f"cannot draw {name!r}: pictures are .svg; convert one to {suffix} with Inkscape, "
            "rsvg-convert or CairoSVG"
        )
    if suffix != ".svg":
        raise UsageError(f"cannot draw {name!r}: expected a name in .svg")


# ------------------------------------------------------------------ layout


def compose(
    columns: Sequence[Sequence[Panel]], title: str, keys: Sequence[Key] = (), width: float = 300
) -> Picture:
    """Put columns of panels beside each other, the next below, with a legend at the bottom.

    All columns have the same length; `width` is that of the drawings, in pixels.
    """
    marks: list[Mark] = [Text(_MARGIN, _MARGIN + 14, title, "title")]
    widest = _MARGIN + text_width(title, SIZES["title"])
    y: float = _MARGIN + _TITLE
    for start in range(0, len(columns), _ABREAST):
        abreast = columns[start : start + _ABREAST]
        heights = [max(map(_height, panels)) for panels in zip(*abreast, strict=True)]
        x: float = _MARGIN
        for place, column in enumerate(abreast):
            if place:  # names of the first panel serve those beside it, too
                pairs = zip(column, abreast[0], strict=True)
                column = [a._replace(names=()) if a.names == b.names else a for a, b in pairs]
            drawn, right = _column(column, heights, x, y, width)
            marks += drawn
            widest, x = max(widest, right), right + _GAP
        y += sum(heights)
    x = _MARGIN
    for key in keys:
        wide = _SAMPLE + text_width(key[1]) + 20
        if x > _MARGIN and x + wide > widest:
            x, y = _MARGIN, y + _KEY
        marks += _key(key, x, y)
        x += wide
        widest = max(widest, x)
    return Picture(title, widest + _MARGIN, y + _MARGIN + (_KEY if keys else 0), marks)


def _height(panel: Panel) -> float:
    return _HEAD + _KEY * len(panel.keys) + panel.drawing.height + _GAP


def _column(
    panels: Sequence[Panel], heights: Sequence[float], x: float, y: float, width: float
) -> tuple[list[Mark], float]:
    """Return panels below each other, and where they end on the right."""
    names = [name for panel in panels for _, name in panel.names]
    left = x + max(map(text_width, names), default=-8) + 8
    right = left + width
    marks: list[Mark] = []
    for place, (panel, height) in enumerate(zip(panels, heights, strict=True)):
        marks.append(Text(x, y + 10, panel.title, "" if place else "head"))
        right = max(right, x + text_width(panel.title, SIZE if place else SIZES["head"]))
        top = y + _HEAD
        for key in panel.keys:
            marks += _key(key, left, top - 2)
            top += _KEY
        marks += [moved(mark, left, top, width) for mark in panel.drawing.marks]
        marks += [Text(left - 8, top + down + 4, name, "", "end") for down, name in panel.names]
        y += height
    return marks, right


def _key(key: Key, x: float, y: float) -> list[Mark]:
    sample, text = key
    return [*(moved(one, x, y, _SAMPLE) for one in sample), Text(x + _SAMPLE + 4, y + 11, text)]


def text_width(text: str, size: float = SIZE) -> float:
    """Return about how many pixels a text takes, rather too many than too few."""
    return size * sum(
        1.0 if one in "mwMW@%+<>=…" or unicodedata.east_asian_width(one) in "WF"
        else 0.4 if one in "ijlI.,:;|'! ()[]·f-t" else 0.74 if one.isupper() else 0.63
        for one in text
    )  # fmt: skip


def picture_of_lines(values: Lines, title: str, shares: Lines | None = None) -> Picture:
    """Return a picture in which there is a gap in a line where a value is None.

    `shares` are panels of their own for each system, from 0 to 1 on both axes: on the diagonal a
    value is its place.
    """
    shares = shares or {}
    panels = [*values.values(), *shares.values()]
    systems = list(dict.fromkeys(name for of in panels for name in of))
    looks = dict(zip(systems, CLASSES, strict=False))
    title += "" if len(looks) == len(systems) else f"; first {len(looks)} of {len(systems)} systems"
    columns = []
    for metric, of in values.items():
        places = sorted({place for name in looks for place in of.get(name, ())})
        series = []
        for name, look in looks.items():
            points = [of.get(name, {}).get(place, (None, None)) for place in places]
            series.append(Series(look, [v for v, _ in points], [ends for _, ends in points]))
        labels = [f"{place:,.6g}" for place in places]
        every = next(step for step in _STEPS if 9 * step >= len(labels) - 1)
        drawing = charts.lines(series, labels, "", "", every=every, bands=True)
        columns.append([Panel(brief(metric, _LONGEST), drawing)])
    for metric, of in shares.items():
        for name, look in looks.items():
            at = of.get(name, {})
            one = Series(look, [value for value, _ in at.values()])
            drawing = charts.lines(
                [one], distinct_texts([*at]), "", "", places=[*at], include=(0.0, 1.0),
                diagonal=True, every=max(1, len(at) // 4),
            )  # fmt: skip
            columns.append([Panel(brief(metric, _LONGEST), drawing)])
    keys = [(charts.sample(look), brief(name, _LONGEST)) for name, look in looks.items()]
    return compose(columns, title, keys)
