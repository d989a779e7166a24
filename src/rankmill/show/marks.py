"""Drawings: four kinds of marks, which are written as SVG here and put on any other canvas.

Across, places are in percent of the width, so that a page may stretch a drawing and texts stay;
down, and in a picture of its own, they are in pixels. A mark has no colour of its own: its role
says what it shows, and colours of roles are for light, dark and paper.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple, TypeAlias

COLOURS = {
    "card": ("#ffffff", "#191f26"),
    "ink": ("#18222d", "#e6ebf0"),
    "soft": ("#55616e", "#a3afbb"),
    "grid": ("#e6eaee", "#29313a"),
    "s0": ("#1d5fae", "#7fb6f2"),
    "s1": ("#77818c", "#8b96a1"),
    "s2": ("#7a4fa3", "#c3a1e6"),
    "s3": ("#8a5a00", "#e2b45c"),
    "s4": ("#007a7a", "#5cc8c8"),
    "s5": ("#b83280", "#f28cc0"),
    "good": ("#18703f", "#70cf98"),
    "bad": ("#b3261e", "#ff9c92"),
    "warn": ("#865600", "#e8b75a"),
    "even": ("#55616e", "#a3afbb"),
}
"""The colours of roles, for light and for dark; of several roles of a mark the last one here."""

LOOKS = {
    "s0": ("circle", ""),
    "s1": ("square", "6 3"),
    "s2": ("up", "2 2"),
    "s3": ("diamond", "8 2 2 2"),
    "s4": ("down", "1 3"),
    "s5": ("plus", "12 3"),
}
"""The shape of the marker and the dashes of each system, so that no reader depends on colours."""

SHAPES: Mapping[str, Sequence[tuple[float, float]]] = {
    "square": ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),
    "up": ((0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
    "down": ((0, 1.15), (1.1, -0.85), (-1.1, -0.85)),
    "diamond": ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    "plus": ((-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4),
             (0.4, 1.2), (-0.4, 1.2), (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4)),
}  # fmt: skip
"""The corners of markers, in units of their size; a circle has none."""

SIZES = {"title": 14, "head": 12}
"""The size of texts in pixels, by role, which are bold; others have `SIZE`."""
SIZE = 11
OPAQUE = {"bar": 0.85, "shade": 0.15}
"""How opaque areas are, by role."""
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif'


class Stroke(NamedTuple):
    """A line through points, each as (across, down); the role "shade" fills what it encloses."""

    points: Sequence[tuple[float, float]]
    role: str
    width: float = 2
    dash: str = ""


class AreaMark(NamedTuple):
    """A rectangle."""

    left: float
    top: float
    wide: float
    high: float
    role: str


class Marker(NamedTuple):
    """A small shape at a place; the role "hollow" leaves its inside empty."""

    x: float
    y: float
    role: str
    shape: str = "circle"
    size: float = 4


class Text(NamedTuple):
    """A text that stands on `y`; of ids and names, what `brief` returns."""

    x: float
    y: float
    text: str
    role: str = ""
    anchor: str = "start"


Mark: TypeAlias = Stroke | AreaMark | Marker | Text


def moved(mark: Mark, x: float, y: float, width: float) -> Mark:
    """Return a mark of a drawing that stands at a place of a picture, all in pixels."""
    part = width / 100
    if isinstance(mark, Stroke):
        return mark._replace(points=[(x + part * left, y + top) for left, top in mark.points])
    if isinstance(mark, AreaMark):
        return mark._replace(left=x + part * mark.left, top=y + mark.top, wide=part * mark.wide)
    return mark._replace(x=x + part * mark.x, y=y + mark.y)


class Drawing(NamedTuple):
    """Marks over the whole width of a cell or a figure of a page."""

    height: float
    marks: Sequence[Mark]
    # What it shows, for those who do not see it; without a title the text around it says so.
    title: str = ""
    told: str = ""
    unseen: str = ""  # what is read aloud in its place

    def __html__(self) -> str:
        """Return the drawing as a part of a page, whose sheet has `rules`."""
        inner = "".join(element(mark, "%", self.height) for mark in self.marks)
        alike: dict[str, object] = {"width": "100%", "height": self.height}
        if self.title:
            alt = tag("title", escape(self.title)) + tag("desc", escape(self.told))
            return tag("svg", alt + inner, **alike, cls="chart", role="img")
        unseen = tag("span", escape(self.unseen), cls="unseen") if self.unseen else ""
        return unseen + tag("svg", inner, **alike, cls="track", aria_hidden="true")


def tag(name: str, inner: str = "", /, **attributes: object) -> str:
    """Return an element; an attribute that is "" is left out, `x_y` is x-y, and `cls` is class."""
    parts = [name]
    for key, value in attributes.items():
        if value != "":
            key = "class" if key == "cls" else key.replace("_", "-")
            parts.append(f'{key}="{escape(str(value))}"')
    return f"<{' '.join(parts)}>{inner}</{name}>"


def rules(scope: str, colours: Mapping[str, str]) -> str:
    """Return the style of marks below a selector, with the colour of each role."""
    rows = {
        "": f"color: {colours['s0']}; stroke-width: 2; font-variant-numeric: tabular-nums",
        " text": f"fill: {colours['soft']}; font: {SIZE}px {FONT}",
        **{f" .{role}": f"color: {colours[role]}" for role in COLOURS},
        " line": "stroke: currentColor",
        " polyline": "stroke: currentColor; fill: none; vector-effect: non-scaling-stroke",
        " polyline.shade": "fill: currentColor; stroke: none",
        " rect": "fill: currentColor",
        **{
            f" {one}": f"fill: currentColor; stroke: {colours['card']}; stroke-width: 1.5"
            for one in ("circle", "polygon")
        },
        " .hollow": f"fill: {colours['card']}; stroke: currentColor",
        " text.beyond": "fill: currentColor; font-size: 12px",
        **{f" .{role}": f"opacity: {one}" for role, one in OPAQUE.items()},
        **{
            f" text.{role}": f"fill: {colours['ink']}; font-size: {one}px; font-weight: 600"
            for role, one in SIZES.items()
        },
        " svg": "overflow: visible",
    }
    return "\n".join(f"{scope}{key} {{ {row} }}" for key, row in rows.items())


# ------------------------------------------------------------------ SVG


def element(mark: Mark, unit: str = "", height: float = 0) -> str:
    """Return a mark as SVG; `unit` is that of places across, "%" in drawings of a height."""

    def across(value: float) -> str:
        return f"{_short(value, 2)}{unit}"

    if isinstance(mark, Text):
        place = {"x": across(mark.x), "y": _short(mark.y)}
        anchor = "" if mark.anchor == "start" else mark.anchor
        return tag("text", escape(mark.text), **place, text_anchor=anchor, cls=mark.role)
    if isinstance(mark, AreaMark):
        place = {"x": across(mark.left), "y": _short(mark.top), "width": across(mark.wide)}
        return tag("rect", **place, height=_short(mark.high), cls=mark.role)
    if isinstance(mark, Marker):
        place = {"x": across(mark.x), "y": _short(mark.y)}
        if mark.shape == "circle":
            place = {f"c{key}": one for key, one in place.items()}
            return tag("circle", **place, r=_short(mark.size), cls=mark.role)
        # A shape has no place in percent; what stands in an inner picture has.
        shape = tag("polygon", points=_points(corners(mark)), cls=mark.role)
        return tag("svg", shape, **place, aria_hidden="true")
    width = "" if mark.width == 2 else _short(mark.width)
    look = {"stroke_width": width, "stroke_dasharray": mark.dash, "cls": mark.role}
    if len(mark.points) == 2:
        (x1, y1), (x2, y2) = mark.points
        ends = {"x1": across(x1), "y1": _short(y1), "x2": across(x2), "y2": _short(y2)}
        return tag("line", **ends, **look)
    line = tag("polyline", points=_points(mark.points), **look)
    if not unit:
        return line
    box = f"0 0 100 {_short(height)}"
    return tag("svg", line, viewBox=box, preserveAspectRatio="none", aria_hidden="true")


def corners(mark: Marker) -> list[tuple[float, float]]:
    """Return the corners of a marker around its place, in pixels."""
    return [(mark.size * x, mark.size * y) for x, y in SHAPES[mark.shape]]


def _points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{_short(x)},{_short(y)}" for x, y in points)


def _short(value: float, digits: int = 1) -> str:
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
