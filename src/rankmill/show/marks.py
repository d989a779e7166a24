"""Drawings: four kinds of marks, which are written as SVG here and put on any other canvas.

Across, places are in percent of the width, so that a page may stretch a drawing and texts stay;
down, and in a picture of its own, they are in pixels. A mark has no colour of its own: its role
says what it shows, and colours of roles are for light, dark and paper.
"""

import math
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


# ------------------------------------------------------------------ scales


class Scale(NamedTuple):
    """The ends of an axis, the numbers that are marked on it, and whether it is logarithmic."""

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def share(self, value: float) -> float:
        """Return where a value stands: 0 at the low end, 1 at the high one, and not beyond."""
        low, high = self.low, self.high
        if self.log:
            low, value, high = (math.log10(max(one, self.low)) for one in (low, value, high))
        return min(max((value - low) / (high - low), 0.0), 1.0)

    def holds(self, value: float) -> bool:
        """Return whether a value is within the axis."""
        return self.low <= value <= self.high


def scale_of(
    values: Iterable[float | None], *, most: int = 5, include: Sequence[float] = ()
) -> Scale:
    """Return an axis with round ends for values, with `most` ticks at most but one.

    Examples
    --------
    >>> scale_of([0.21, 0.387])
    Scale(low=0.2, high=0.4, ticks=(0.2, 0.25, 0.3, 0.35, 0.4), log=False)
    """
    known = [one for one in (*values, *include) if one is not None and math.isfinite(one)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        room = abs(low) / 10 or 1.0
        low, high = low - room, high + room
    step = _round_step((high - low) / most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = 3 - math.floor(math.log10(step))
    ticks = tuple(round(i * step, digits) for i in range(first, last + 1))
    return Scale(ticks[0], ticks[-1], ticks)


def scale_of_counts(most: float) -> Scale:
    """Return a logarithmic axis for counts of 1 to `most`, with powers of ten.

    Examples
    --------
    >>> scale_of_counts(120)
    Scale(low=0.6, high=204.0, ticks=(1, 10, 100), log=True)
    """
    ticks = tuple(10**power for power in range(math.floor(math.log10(max(most, 10))) + 1))
    return Scale(0.6, 1.7 * max(most, 10), ticks, log=True)


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 2.5 and 5 times a power of ten that is at least `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(one * power for one in (1, 2, 2.5, 5, 10) if one * power >= least * (1 - 1e-9))


def tick_texts(scale: Scale, *, percent: bool = False, signed: bool = False) -> list[str]:
    """Return the ticks of an axis as texts, with the decimals that tell them apart."""
    factor = 100 if percent else 1
    step = (scale.ticks[1] - scale.ticks[0]) * factor
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if decimals <= 5 and round(step * 10**decimals, 6) != round(step * 10**decimals):
        decimals += 1
    if decimals > 5:
        shown = distinct_texts([one * factor for one in scale.ticks])
    else:
        shown = [_minus(f"{one * factor:,.{decimals}f}") for one in scale.ticks]
    plus = ["+" if signed and one > 0 else "" for one in scale.ticks]
    end = "%" if percent else ""
    return [f"{before}{text}{end}" for before, text in zip(plus, shown, strict=True)]


def distinct_texts(values: Sequence[float]) -> list[str]:
    """Return values along an axis as texts, with at least two digits and as many as differ.

    Examples
    --------
    >>> distinct_texts([0.051, 12.3, 157.3]), distinct_texts([100.1, 100.4])
    (['0.051', '12', '157'], ['100.1', '100.4'])
    """
    texts: list[str] = []
    for digits in range(2, 19):
        texts = [_significant(one, digits) for one in values]
        if len(set(texts)) == len(set(values)):
            break
    return texts


def _significant(value: float, digits: int) -> str:
    """Return a number as text, with an exponent only where its zeros would be many."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}".replace("-0", "0")
    exponent = math.floor(math.log10(abs(value)))
    if -5 <= exponent < max(6, digits):
        return _minus(f"{value:,.{max(0, digits - 1 - exponent)}f}")
    mantissa, power = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(power)}".replace("-", "−")


def number(value: float | None, digits: int = 4) -> str:
    """Return a value of a metric as text."""
    if value is None:
        return "none"
    return _minus(f"{value:.{digits}g}" if abs(value) < 1e-4 else f"{value:.{digits}f}")


def half_width(half: float | None) -> str:
    """Return half the width of an interval as text: two digits say enough."""
    if half is None:
        return ""
    return f"±{_significant(half, 2)}"


def signed(value: float | None) -> str:
    """Return a signed difference as text: three digits say enough."""
    if value is None:
        return ""
    if value == 0:
        return "0"
    return _minus(f"{value:+.{min(12, max(0, 2 - math.floor(math.log10(abs(value)))))}f}")


def percent(share: float, *, sign: bool = False) -> str:
    """Return a share in percent, with about two digits.

    Examples
    --------
    >>> percent(0.0417), percent(0.5), percent(0.00042), percent(0), percent(-0.2, sign=True)
    ('4.2%', '50%', '0.042%', '0%', '−20%')
    """
    size = abs(100 * share)
    decimals = 0 if size == 0 or size >= 10 else 1 - math.floor(math.log10(size))
    plus = "+" if sign and share else ""
    return _minus(f"{100 * share:{plus}.{min(decimals, 6)}f}%")


def count(value: float) -> str:
    """Return a whole number as text."""
    return f"{value:,.0f}"


def _minus(text: str) -> str:
    return text.replace("-", "−", 1) if text.startswith("-") else text
