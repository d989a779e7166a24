"""A picture of values over cutoffs, or over recall: a panel for each metric, a line a system."""

from __future__ import annotations

from collections.abc import Mapping

from rankmill.io.inert_text import brief
from rankmill.show import charts
from rankmill.show.charts import CLASSES, Ends, Series
from rankmill.show.pictures import Panel, Picture, compose
from rankmill.show.scales import distinct_texts

_LONGEST = 36
# Below a drawing stand the last label, and one of so many, so that there are 10 at most.
_STEPS = tuple(one * 10**power for power in range(6) for one in (1, 2, 5))

Points = Mapping[float, tuple[float | None, Ends]]
"""Place -> value with its interval, if there is one."""
Lines = Mapping[str, Mapping[str, Points]]
"""Title of a panel -> system -> its points."""


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
