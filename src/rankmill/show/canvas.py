"""Pictures on a canvas of matplotlib, for the formats that are no text: PNG and PDF.

pyplot is not used, so that no state of the caller changes: neither current figures nor parameters.
"""

import io
import warnings
from collections.abc import Sequence
from typing import Any

from rankmill.show.marks import (
    COLOURS,
    OPAQUE,
    SIZE,
    SIZES,
    AreaMark,
    Mark,
    Marker,
    Stroke,
    colour_of,
    corners,
)

_INCH = 96  # pixels, which are 3/4 of a point
_DOTS, _MOST_DOTS = 200.0, 20_000  # an inch; in the height of a PNG
# What would name the moment or the version. Each format knows some of these.
_UNNAMED = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_ENDS = {"start": "left", "middle": "center", "end": "right"}


def on_canvas(marks: Sequence[Mark], width: float, height: float, format: str) -> bytes:
    """Return marks of a picture as PNG or PDF; equal ones give the same bytes."""
    import matplotlib.style
    from matplotlib.figure import Figure

    file = io.BytesIO()
    size = width / _INCH, height / _INCH
    with warnings.catch_warnings(), matplotlib.style.context("default"):
        # A viewer of SVG has the characters that a font here lacks; here a box stands for one.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        figure = Figure(figsize=size)
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        axes.set_axis_off()
        for order, mark in enumerate(marks):
            axes.add_artist(_artist(mark)).set_zorder(order)
        dots = min(_DOTS, _MOST_DOTS / size[1])
        figure.savefig(file, format=format, dpi=dots, metadata=_UNNAMED[format])
    return file.getvalue()


def _artist(mark: Mark) -> Any:
    """Return a mark as matplotlib draws it."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Ellipse, Polygon, Rectangle
    from matplotlib.text import Text as Words

    roles = mark.role.split()
    colour, card = colour_of(mark.role), COLOURS["card"][0]
    opaque = next((OPAQUE[one] for one in roles if one in OPAQUE), 1.0)
    if isinstance(mark, Stroke) and "shade" in roles:
        return Polygon(mark.points, color=colour, alpha=opaque, linewidth=0)
    if isinstance(mark, Stroke):
        dashes = (0, [float(one) / mark.width for one in mark.dash.split()]) if mark.dash else "-"
        line = Line2D(*zip(*mark.points, strict=True), color=colour, linestyle=dashes)
        line.set_linewidth(0.75 * mark.width)
        return line
    if isinstance(mark, AreaMark):
        corner = mark.left, mark.top
        return Rectangle(corner, mark.wide, mark.high, color=colour, alpha=opaque, linewidth=0)
    if isinstance(mark, Marker):
        inside, edge = (card, colour) if "hollow" in roles else (colour, card)
        look = {"facecolor": inside, "edgecolor": edge, "linewidth": 1.1}
        if mark.shape == "circle":
            return Ellipse((mark.x, mark.y), 2 * mark.size, 2 * mark.size, **look)
        return Polygon([(mark.x + x, mark.y + y) for x, y in corners(mark)], **look)
    bold = next((SIZES[one] for one in roles if one in SIZES), None)
    colour = COLOURS["ink"][0] if bold else colour_of(mark.role, "soft")
    # Else two dollars would enclose mathematics.
    text = Words(mark.x, mark.y, mark.text, color=colour, parse_math=False)
    text.set(ha=_ENDS[mark.anchor], fontsize=0.75 * (bold or SIZE), clip_on=False)
    text.set_fontweight("bold" if bold else "normal")
    return text
