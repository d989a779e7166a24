"""Charts as inline SVG: places across are in percent and heights in pixels, so that text stays.

A drawing has no style of its own: classes say what it shows, and the sheet of the page has colours
for light, dark and paper.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from rankmill.report.scales import Scale, scale_of, tick_texts
from rankmill.report.text import Html
from rankmill.results.escaping import visible

# The system that the page is about, and the one that it is compared with.
SUBJECT, BASE = "s0", "s1"
CLASSES = (SUBJECT, BASE, "s2", "s3")

_HEIGHT = 190
_TOP, _BOTTOM = 16, 24  # room for the upper label, and for those below the axis
_LEFT, _RIGHT = 11.0, 98.0  # percent of the width; labels of the other axis stand on the left


class Dot(NamedTuple):
    """A value with its interval; `name` is the class of the system, and `tone` of what it means."""

    value: float | None
    low: float | None = None
    high: float | None = None
    name: str = SUBJECT
    tone: str = ""


class Series(NamedTuple):
    """A value for each place of the other axis; None where there is none."""

    name: str
    values: Sequence[float | None]
    halves: Sequence[float | None] = ()
    tones: Sequence[str] = ()


def tag(name: str, inner: str = "", **attributes: object) -> str:
    """Return an element; an attribute of None is left out, `x_y` is x-y, and `cls` is class."""
    parts = [name]
    for key, value in attributes.items():
        if value is not None and value != "":
            key = "class" if key == "cls" else key.rstrip("_").replace("_", "-")
            parts.append(f'{key}="{escape(str(value))}"')
    return f"<{' '.join(parts)}>{inner}</{name}>"


def words(text: str) -> str:
    """Return a text that may hold ids and names, inert."""
    return escape(visible(text))


# ------------------------------------------------------------------ rows of a table


def track(dots: Iterable[Dot], scale: Scale, *, zero: bool = False) -> Html:
    """Draw dots with their intervals in a row of a table, whose other cells say the same."""
    parts = [
        _line(_across(scale, tick), 0, _across(scale, tick), 26, "grid") for tick in scale.ticks
    ]
    if zero and scale.holds(0):
        parts.append(_line(_across(scale, 0), 0, _across(scale, 0), 26, "zero"))
    for one in dots:
        if one.value is None:
            continue
        cls = f"{one.name} {one.tone}".strip()
        if one.low is not None and one.high is not None:
            parts.append(_line(_across(scale, one.low), 13, _across(scale, one.high), 13, cls))
            parts += [
                tag("text", "◂" if end == one.low else "▸", x=_percent(_across(scale, end)), y=17,
                    text_anchor="start" if end == one.low else "end", cls=f"beyond {cls}")
                for end in (one.low, one.high)
                if not scale.holds(end)
            ]  # fmt: skip
        if scale.holds(one.value):
            parts.append(tag("circle", cx=_percent(_across(scale, one.value)), cy=13, r=5, cls=cls))
    return _svg("".join(parts), 26, cls="track", aria_hidden="true")


def axis(scale: Scale, *, percent: bool = False, signed: bool = False) -> Html:
    """Draw the numbers of the axis of tracks."""
    texts = tick_texts(scale, percent=percent, signed=signed)
    told = tag("span", f"drawn from {texts[0]} to {texts[-1]}", cls="unseen")
    drawing = _svg(_tick_labels(scale, texts, 12), 16, cls="track", aria_hidden="true")
    return Html(told + drawing)


def _tick_labels(scale: Scale, texts: Sequence[str], y: float) -> str:
    # Every other label where there are many: they would touch on a phone.
    every = 2 if len(texts) > 4 or max(map(len, texts)) > 5 else 1
    last = len(texts) - 1
    return "".join(
        tag("text", text, x=_percent(_across(scale, tick)), y=y,
            text_anchor="start" if i == 0 else "end" if i == last else "middle",
            cls="" if i in (0, last) else "between")
        for i, (tick, text) in enumerate(zip(scale.ticks, texts, strict=True))
        if i == last or (i % every == 0 and last - i >= every)
    )  # fmt: skip


# ------------------------------------------------------------------ charts of their own


def lines(
    series: Sequence[Series],
    labels: Sequence[str],
    title: str,
    told: str,
    *,
    places: Sequence[float] | None = None,
    include: Sequence[float] = (),
    percent: bool = False,
    diagonal: bool = False,
    every: int = 1,
    left: float = _LEFT,
) -> Html:
    """Draw a line for each series over `labels`, with the intervals of its points.

    `places` are where the labels stand, rising from 0 to 1; else they are even. `left` is the room
    for the other axis in percent, less for a drawing across the whole page.
    """
    known = [value for one in series for value in one.values]
    for one in series:
        pairs = zip(one.values, one.halves, strict=False)
        known += [v + sign * h for v, h in pairs if v is not None and h for sign in (-1, 1)]
    scale = scale_of(known, most=4, include=include)
    wide = max(1, len(labels) - 1)
    where = [0.04 + 0.92 * (i / wide) for i in range(len(labels))] if places is None else places
    across = [left + (_RIGHT - left) * one for one in where]
    parts = [_frame(scale, left, percent=percent)]
    if diagonal:
        parts.append(_line(left, _down(scale, 0), _RIGHT, _down(scale, 1), "ideal"))
    for one in reversed(series):  # the first one lies on top
        parts.append(_path(one, across, scale))
    # From the last one on, labels are as far apart as even ones would be: others would touch.
    apart, shown = 0.92 * (_RIGHT - left) * every / wide - 1e-6, 200.0
    for text, x in zip(reversed(labels), reversed(across), strict=True):
        if shown - x >= apart:
            parts.append(_below(text, x))
            shown = x
    return _figure("".join(parts), title, told)


def _path(one: Series, across: Sequence[float], scale: Scale) -> str:
    parts, before = [], None
    for i, (x, value) in enumerate(zip(across, one.values, strict=True)):
        if value is None:
            before = None
            continue
        y = _down(scale, value)
        half = one.halves[i] if i < len(one.halves) else None
        if before is not None:
            parts.append(_line(*before, x, y, f"path {one.name}"))
        if half:
            ends = _down(scale, value + half), _down(scale, value - half)
            parts.append(_line(x, ends[0], x, ends[1], one.name))
        tone = one.tones[i] if i < len(one.tones) else ""
        parts.append(
            tag("circle", cx=_percent(x), cy=_pixels(y), r=4, cls=f"{one.name} {tone}".strip())
        )
        before = x, y
    return "".join(parts)


def bars(
    series: Sequence[Series],
    labels: Sequence[str],
    title: str,
    told: str,
    *,
    every: int = 1,
    apart: bool = False,
) -> Html:
    """Draw bars of shares for the first series, and a mark at the height of each other one.

    With `apart` the first bar stands off from the others, whose labels are where they start; every
    so many of these are shown.
    """
    known = [value for one in series for value in one.values]
    scale = scale_of(known, most=4, include=(0.0,))
    count = len(labels) + (1 if apart else 0)
    width = (_RIGHT - _LEFT) / max(count, 4)
    parts = [_frame(scale, _LEFT, percent=True)]
    for i, text in enumerate(labels):
        left = _LEFT + width * (i + (1 if apart and i else 0))
        for number, one in enumerate(series):
            value = one.values[i]
            if value is None:
                continue
            top, ground = _down(scale, value), _down(scale, 0)
            if number == 0:
                parts.append(
                    tag("rect", x=_percent(left + width * 0.12), y=_pixels(top),
                        width=_percent(width * 0.76), height=_pixels(ground - top),
                        cls=f"bar {one.name}")
                )  # fmt: skip
            else:
                ends = left + width * 0.04, left + width * 0.96
                parts.append(_line(ends[0], top, ends[1], top, f"mark {one.name}"))
        if apart and i and (i - 1) % every == 0:
            parts.append(_below(text, left))
        elif not i or not (apart or i % every):
            parts.append(_below(text, left + width / 2))
    return _figure("".join(parts), title, told)


def sparkline(values: Sequence[float | None], tones: Sequence[str] = ()) -> Html:
    """Draw a line without an axis in a row of a table, whose other cells have its ends."""
    scale = scale_of(values)
    wide = max(1, len(values) - 1)
    known = [
        (100 * i / wide, 22 - 18 * scale.share(one))
        for i, one in enumerate(values)
        if one is not None
    ]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in known)
    line = tag("polyline", points=points, vector_effect="non-scaling-stroke", cls="spark")
    # One line that is stretched; its end is not, so that it stays round.
    inner = tag(
        "svg",
        line,
        viewBox="0 0 100 26",
        preserveAspectRatio="none",
        aria_hidden="true",
        x="3%",
        width="94%",
    )
    if known:
        across, down = _percent(3 + 0.94 * known[-1][0]), _pixels(known[-1][1])
        cls = f"s0 {tones[-1] if tones else ''}".strip()
        inner += tag("circle", cx=across, cy=down, r=4, cls=cls)
    return _svg(inner, 26, cls="track", aria_hidden="true")


# ------------------------------------------------------------------ pieces


def _frame(scale: Scale, left: float, *, percent: bool) -> str:
    """Draw the grid, and the numbers of the axis that goes up."""
    parts = []
    for tick, text in zip(scale.ticks, tick_texts(scale, percent=percent), strict=True):
        y = _down(scale, tick)
        parts.append(_line(left, y, _RIGHT, y, "zero" if tick == 0 else "grid"))
        parts.append(tag("text", text, x="0", y=_pixels(y + 4)))
    return "".join(parts)


def _below(text: str, across: float) -> str:
    anchor = "start" if across < _LEFT + 1 else "end" if across > _RIGHT - 1 else "middle"
    return tag("text", words(text), x=_percent(across), y=_HEIGHT - 6, text_anchor=anchor)


def _line(x1: float, y1: float, x2: float, y2: float, cls: str) -> str:
    return tag("line", x1=_percent(x1), y1=_pixels(y1), x2=_percent(x2), y2=_pixels(y2), cls=cls)


def _figure(inner: str, title: str, told: str) -> Html:
    alt = tag("title", words(title)) + tag("desc", words(told))
    return _svg(alt + inner, _HEIGHT, cls="chart", role="img")


def _svg(inner: str, height: int, **attributes: object) -> Html:
    return Html(tag("svg", inner, width="100%", height=height, **attributes))


def _across(scale: Scale, value: float) -> float:
    return 3 + 94 * scale.share(value)


def _down(scale: Scale, value: float) -> float:
    room = _HEIGHT - _TOP - _BOTTOM
    return _TOP + room * (1 - scale.share(value))


def _percent(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") + "%"


def _pixels(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
