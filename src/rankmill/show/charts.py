"""Charts, drawn once for pages and for pictures: intervals, lines, bars and sparklines."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

from rankmill.show.marks import (
    LOOKS,
    AreaMark,
    Drawing,
    Mark,
    Marker,
    Scale,
    Stroke,
    Text,
    scale_of,
    tick_texts,
)

# The system that the page is about, and the one that it is compared with.
SUBJECT, BASE = "s0", "s1"
CLASSES = tuple(LOOKS)

DATES = 5
"""So many dates stand below a line over time."""

ROW = 20
"""The height of a row of intervals that stand below each other."""

_CELL = 26  # of a row of a table
_HEIGHT = 190
_TOP, _BOTTOM = 16, 24  # room for the upper label, and for those below the axis
_LEFT, _RIGHT = 11.0, 98.0  # percent of the width; labels of the other axis stand on the left
Ends: TypeAlias = tuple[float, float] | None


class Dot(NamedTuple):
    """A value with its interval; `name` is the class of the system, and `tone` of what it means.

    The shape is that of the system if none is given.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    name: str = SUBJECT
    tone: str = ""
    shape: str = ""


class Series(NamedTuple):
    """A value for each place of the other axis, and its interval; None where there is none."""

    name: str
    values: Sequence[float | None]
    ends: Sequence[Ends] = ()
    tones: Sequence[str] = ()


MARKED = 24
"""So many points of a line have a marker, unless each has a meaning of its own."""

LONG = 12
"""The most characters of a label that fits in the middle below its place, on a phone too."""


def around(values: Sequence[float | None], halves: Sequence[float | None]) -> list[Ends]:
    """Return the intervals of values that reach as far to both sides."""
    pairs = zip(values, halves, strict=True)
    return [None if v is None or not half else (v - half, v + half) for v, half in pairs]


# ------------------------------------------------------------------ intervals


def track(dots: Iterable[Dot], scale: Scale, *, zero: bool = False) -> Drawing:
    """Draw dots with their intervals in a row of a table, whose other cells say the same."""
    marks = _uprights(scale, _CELL, zero=zero)
    for one in dots:
        marks += _interval(one, scale, _CELL / 2)
    return Drawing(_CELL, marks)


def axis(scale: Scale, *, percent: bool = False, signed: bool = False) -> Drawing:
    """Draw the numbers of the axis of tracks."""
    texts = tick_texts(scale, percent=percent, signed=signed)
    told = f"drawn from {texts[0]} to {texts[-1]}"
    return Drawing(16, _tick_labels(scale, texts, 12), unseen=told)


def forest(
    dots: Sequence[Dot], margin: float | None, reach: float = math.inf, *, signed: bool = True
) -> Drawing:
    """Draw differences below each other, above their axis; `margin` is a band around 0.

    Those that are not `signed` are values. The axis does not go beyond `reach`, unless values do:
    arrows tell of intervals that do.
    """
    scale = scale_within(dots, reach, () if margin is None else (-margin, margin))
    high = ROW * max(len(dots), 1)
    marks: list[Mark] = []
    if margin is not None:
        left, right = _across(scale, -margin), _across(scale, margin)
        marks.append(AreaMark(left, 0, right - left, high, "shade even"))
    marks += _uprights(scale, high, zero=True)
    for place, one in enumerate(dots):
        y = ROW * (place + 0.5)
        marks += _interval(one, scale, y)
        if one.value is None:
            marks.append(Text(3, y + 4, "no value"))
    marks += _tick_labels(scale, tick_texts(scale, signed=signed), high + 14)
    return Drawing(high + 18, marks)


def scale_within(
    dots: Sequence[Dot], reach: float, include: Sequence[float] = (), *, most: int = 5
) -> Scale:
    """Return the axis of differences, in which intervals end at `reach` or at the last value."""
    reach = max([reach, *(abs(one.value) for one in dots if one.value is not None)])
    ends = [end and min(max(end, -reach), reach) for one in dots for end in one[:3]]
    return scale_of(ends, most=most, include=(0.0, *include))


def sample(name: str, tone: str = "", shape: str = "") -> list[Mark]:
    """Return the mark of a system or of a meaning, for a legend."""
    return [Marker(50, 7, f"{name} {tone}".strip(), shape or LOOKS[name][0])]


def _interval(one: Dot, scale: Scale, y: float) -> list[Mark]:
    if one.value is None:
        return []
    role = f"{one.name} {one.tone}".strip()
    tone = one.tone.removesuffix(" hollow")
    marks: list[Mark] = []
    if one.low is not None and one.high is not None:
        ends = [(_across(scale, end), y) for end in (one.low, one.high)]
        marks.append(Stroke(ends, f"{one.name} {tone}".strip()))
        for end, arrow, anchor in ((one.low, "◂", "start"), (one.high, "▸", "end")):
            if not scale.holds(end):
                beyond = f"beyond {tone or 'even'}"
                marks.append(Text(_across(scale, end), y + 4, arrow, beyond, anchor))
    if scale.holds(one.value):
        shape = one.shape or LOOKS[one.name][0]
        marks.append(Marker(_across(scale, one.value), y, role, shape, 5))
    return marks


def _uprights(scale: Scale, high: float, *, zero: bool) -> list[Mark]:
    """Draw the grid of an axis that goes across."""
    return [
        Stroke([(_across(scale, tick), 0), (_across(scale, tick), high)], role, 1)
        for role, ticks in (("grid", scale.ticks), ("s1", (0,) if zero and scale.holds(0) else ()))
        for tick in ticks
    ]


def _tick_labels(scale: Scale, texts: Sequence[str], y: float) -> list[Mark]:
    # Every other label where there are many: they would touch on a phone.
    every = 2 if len(texts) > 4 or max(map(len, texts)) > 5 else 1
    last = len(texts) - 1
    return [
        Text(_across(scale, tick), y, text, "" if i in (0, last) else "between",
             "start" if i == 0 else "end" if i == last else "middle")
        for i, (tick, text) in enumerate(zip(scale.ticks, texts, strict=True))
        if i == last or (i % every == 0 and last - i >= every)
    ]  # fmt: skip


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
    gaps: Sequence[float] = (),
    bands: bool = False,
) -> Drawing:
    """Draw a line for each series over `labels`, with the intervals of its points.

    `places` are where the labels stand, rising from 0 to 1; else they are even. `left` is the room
    for the other axis in percent, less for a drawing across the whole page. At the places of `gaps`
    there is an upright line that says that something is missing. With `bands`, intervals are areas
    around the lines.
    """
    known = [value for one in series for value in one.values]
    known += [end for one in series for ends in one.ends if ends is not None for end in ends]
    scale = scale_of(known, most=4, include=include)
    left = _behind(scale, left, percent=percent)
    wide = max(1, len(labels) - 1)
    where = [0.04 + 0.92 * (i / wide) for i in range(len(labels))] if places is None else places

    def across(place: float) -> float:
        return left + (_RIGHT - left) * place

    at = [across(one) for one in where]
    marks = _frame(scale, left, percent=percent)
    ground = _HEIGHT - _BOTTOM
    marks += [Stroke([(across(x), _TOP), (across(x), ground)], "bad", 1, "1 3") for x in gaps]
    if diagonal:
        ends = (left, _down(scale, 0)), (_RIGHT, _down(scale, 1))
        marks.append(Stroke(ends, "s1", 1, "4 4"))
    for one in reversed(series) if bands else ():
        marks += _bands(one, at, scale)
    for one in reversed(series):  # the first one lies on top
        marks += _line(one._replace(ends=()) if bands else one, at, scale)
    # From the last one on, labels are as far apart as even ones would be: others would touch.
    apart, shown = 0.92 * (_RIGHT - left) * every / wide - 1e-6, 200.0
    for text, x in zip(reversed(labels), reversed(at), strict=True):
        if shown - x >= apart:
            marks.append(_below(text, x))
            shown = x
    return Drawing(_HEIGHT, marks, title, told)


def over_time(
    times: Sequence[object],
    series: Series,
    title: str = "",
    told: str = "",
    *,
    gaps: Sequence[object] = (),
) -> Drawing:
    """Draw a series over times, some of whose dates stand below; `gaps` are times without one."""
    texts = [time_text(one) for one in times]
    one_day = len({text[:10] for text in texts}) == 1 and len(set(texts)) > 1
    labels = [text[11:] if one_day else text[:10] for text in texts]
    places = spaced([_moment(one) for one in (*times, *gaps)])
    at, missing = places[: len(labels)], places[len(labels) :]
    every = max(1, -(-len(labels) // DATES))
    return lines([series], labels, title, told, places=at, every=every, left=7, gaps=missing)


def spaced(values: Sequence[float]) -> list[float]:
    """Return the places of values between the ends of an axis, which are 0 and 1."""
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    return [0.04 + 0.92 * ((one - low) / (high - low) if high > low else 0.5) for one in values]


def time_text(time: object) -> str:
    """Return the minute of a time as text."""
    return f"{time:%Y-%m-%d %H:%M}" if hasattr(time, "timestamp") else str(time)


def _moment(time: object) -> float:
    return float(time.timestamp()) if hasattr(time, "timestamp") else float(str(time))


def _bands(one: Series, across: Sequence[float], scale: Scale) -> Iterator[Mark]:
    points = [*zip(across, one.ends, strict=True)]
    for _, run in groupby(points, lambda point: point[1] is None):
        ends = [(x, *(_down(scale, end) for end in pair)) for x, pair in run if pair is not None]
        if len(ends) == 1:
            yield Stroke([(ends[0][0], y) for y in ends[0][1:]], one.name)
        elif ends:
            there, back = [(x, a) for x, a, _ in ends], [(x, b) for x, _, b in reversed(ends)]
            yield Stroke([*there, *back], f"shade {one.name}")


def _line(one: Series, across: Sequence[float], scale: Scale) -> list[Mark]:
    shape, dash = LOOKS[one.name]
    paths: list[list[tuple[float, float]]] = [[]]
    marks: list[Mark] = []
    for i, (x, value) in enumerate(zip(across, one.values, strict=True)):
        if value is None:
            paths.append([])
            continue
        paths[-1].append((x, _down(scale, value)))
        ends = one.ends[i] if i < len(one.ends) else None
        if ends is not None:
            marks.append(Stroke([(x, _down(scale, end)) for end in ends], one.name))
        tone = one.tones[i] if i < len(one.tones) else ""
        own = "down" if tone in ("bad", "warn") else shape
        if one.tones or len(paths[-1]) == 1 or i % (1 + len(across) // MARKED) == 0:
            marks.append(Marker(*paths[-1][-1], f"{one.name} {tone}".strip(), own))
    return [*(Stroke(path, one.name, dash=dash) for path in paths if len(path) > 1), *marks]


def bars(
    series: Sequence[Series],
    below: Iterable[tuple[float, str]],
    title: str,
    told: str,
    *,
    scale: Scale | None = None,
    apart: bool = False,
) -> Drawing:
    """Draw bars for the first series, and a mark at the height of each other one.

    `below` are labels, each with its place in bars from the left. Values are shares, unless there
    is a `scale`. With `apart` the first bar stands off from the others.
    """
    known = [value for one in series for value in one.values]
    percent = scale is None
    scale = scale or scale_of(known, most=4, include=(0.0,))
    count = len(series[0].values) + (1 if apart else 0)
    start = _behind(scale, _LEFT, percent=percent)
    width = (_RIGHT - start) / max(count, 4)
    marks = _frame(scale, start, percent=percent)
    ground = _down(scale, 0)
    for number, one in enumerate(series):
        for i, value in enumerate(one.values):
            if value is None:
                continue
            left, top = start + width * (i + (1 if apart and i else 0)), _down(scale, value)
            if number == 0:
                box = left + width * 0.12, top, width * 0.76, ground - top
                marks.append(AreaMark(*box, f"bar {one.name}"))
            else:
                marks.append(
                    Stroke([(left + width * 0.04, top), (left + width * 0.96, top)], one.name)
                )
    marks += [_below(text, start + width * place) for place, text in below]
    return Drawing(_HEIGHT, marks, title, told)


def sparkline(values: Sequence[float | None], tones: Sequence[str] = ()) -> Drawing:
    """Draw a line without an axis in a row of a table, whose other cells have its ends."""
    scale = scale_of(values)
    wide = max(1, len(values) - 1)
    points = [
        (3 + 94 * i / wide, 22 - 18 * scale.share(one))
        for i, one in enumerate(values)
        if one is not None
    ]
    marks: list[Mark] = [Stroke(points, SUBJECT, 1.5)] if len(points) > 1 else []
    if points:
        role = f"{SUBJECT} {tones[-1] if tones else ''}".strip()
        marks.append(Marker(*points[-1], role))
    return Drawing(_CELL, marks)


# ------------------------------------------------------------------ pieces


def _behind(scale: Scale, left: float, *, percent: bool) -> float:
    """Return where a drawing begins whose numbers may need more room than usual."""
    return left * max(1, max(map(len, tick_texts(scale, percent=percent))) / 4.6)


def _frame(scale: Scale, left: float, *, percent: bool) -> list[Mark]:
    """Draw the grid, and the numbers of the axis that goes up."""
    marks: list[Mark] = []
    for tick, text in zip(scale.ticks, tick_texts(scale, percent=percent), strict=True):
        y = _down(scale, tick)
        marks.append(Stroke([(left, y), (_RIGHT, y)], "grid" if tick else "s1", 1))
        marks.append(Text(0, y + 4, text))
    return marks


def _below(text: str, across: float) -> Text:
    if len(text) > LONG:
        return Text(across, _HEIGHT - 6, text, "", "start" if across < 50 else "end")
    anchor = "start" if across < _LEFT + 1 else "end" if across > _RIGHT - 1 else "middle"
    return Text(across, _HEIGHT - 6, text, "", anchor)


def _across(scale: Scale, value: float) -> float:
    return 3 + 94 * scale.share(value)


def _down(scale: Scale, value: float) -> float:
    room = _HEIGHT - _TOP - _BOTTOM
    return _TOP + room * (1 - scale.share(value))
