"""A picture of values over cutoffs, or over recall: a panel for each metric, a line a system."""

from __future__ import annotations

from collections.abc import Mapping

from rankmill.io.inert_text import brief
from rankmill.show import charts
from rankmill.show.charts import CLASSES, Ends, Series
from rankmill.show.pictures import Panel, Picture, compose

_LONGEST = 36

Lines = Mapping[str, Mapping[str, Mapping[float, tuple[float | None, Ends]]]]
"""Title of a panel -> system -> place -> value with its interval, if there is one."""


def picture_of_lines(values: Lines, title: str) -> Picture:
    """Return a picture in which there is a gap in a line where a value is None."""
    systems = list(dict.fromkeys(name for of in values.values() for name in of))
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
        drawing = charts.lines(series, labels, "", "", every=1 + len(labels) // 9)
        columns.append([Panel(brief(metric, _LONGEST), drawing)])
    keys = [(charts.sample(look), brief(name, _LONGEST)) for name, look in looks.items()]
    return compose(columns, title, keys)
