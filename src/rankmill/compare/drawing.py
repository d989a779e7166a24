"""How pictures are drawn and written: one style, names that cannot act, the same bytes each time.

matplotlib is imported inside functions, as it is an extra. pyplot is not used, so that no state of
the caller changes: neither current figures nor parameters.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rankmill.errors import UsageError
from rankmill.results.escaping import visible
from rankmill.results.files import write_files
from rankmill.stores.urls import shown
from rankmill.version import install

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colours of Okabe and Ito, which colour-blind readers can tell apart.
BLACK, BLUE, VERMILION, GREEN = "#000000", "#0072B2", "#D55E00", "#009E73"
LINES = [
    (BLUE, "-", "o"),
    (VERMILION, "--", "s"),
    (GREEN, "-.", "^"),
    ("#CC79A7", ":", "D"),
    ("#E69F00", (0, (5, 1)), "v"),
    ("#56B4E9", (0, (1, 1)), "P"),
]
"""The colour, the dashes and the marker of each system, where several share a panel."""

GREY = "#767676"
SUFFIXES = (".svg", ".png", ".pdf")
_LONGEST_NAME = 36
_MOST_DOTS = 20_000  # in the height of a PNG
_NOTEBOOK_DOTS = 100  # an inch
_STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    # Text stays text, which screen readers and searches find, in a third of the bytes of outlines.
    "svg.fonttype": "none",
    "svg.hashsalt": "rankmill",  # ids of parts would be random
}
# What would name the moment or the version. Each format knows some of these.
_UNNAMED = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def check_picture(path: str | Path) -> None:
    """Raise UsageError if no picture can be drawn for a file of this name."""
    name = shown(str(path))
    if Path(name).suffix.lower() not in SUFFIXES:
        raise UsageError(
            f"cannot draw {name!r}: expected a name in .svg, .png or .pdf, which chooses the format"
        )
    check_matplotlib()


def check_matplotlib() -> None:
    """Raise UsageError if matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"pictures need matplotlib ({error}): {install('plot')}, or leave out the picture"
        ) from None


@contextmanager
def style() -> Iterator[None]:
    """Draw in one style, whatever parameters the caller has set."""
    import matplotlib.style

    with warnings.catch_warnings(), matplotlib.style.context(["default", _STYLE]):
        # A viewer of SVG has the characters that a font here lacks; elsewhere a box stands for one.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        yield


def settle(figure: Figure) -> None:
    """Lay out a figure for good, as the last bits of a layout differ from one call to the next."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position([round(one, 5) for one in axes.get_position().bounds])


def drawn(draw: Callable[[], Figure], path: str | Path | None) -> Figure:
    """Return the figure that `draw` makes; with a path it is also written, whole or not at all.

    Raises
    ------
    UsageError
        If matplotlib is not installed, or the file cannot be written; the path is checked first.
    """
    if path is not None:
        check_picture(path)
    figure = draw()
    # A notebook shows a figure that pyplot does not know as a text only.
    figure._repr_png_ = partial(_in_notebook, figure)
    if path is not None:
        write_files([(path, rendered(figure, path))])
    return figure


def _in_notebook(figure: Figure) -> tuple[bytes, dict[str, int]]:
    """Return a figure as a notebook shows it, and the size that its sharp dots are drawn at."""
    width, height = (round(_NOTEBOOK_DOTS * inches) for inches in figure.get_size_inches())
    return rendered(figure, "figure.png"), {"width": width, "height": height}


def rendered(figure: Figure, path: str | Path) -> bytes:
    """Return a figure in the format that a name asks for; equal figures give the same bytes."""
    format = Path(shown(str(path))).suffix.lower().removeprefix(".")
    dots = min(200.0, _MOST_DOTS / figure.get_figheight())
    file = io.BytesIO()
    with style():
        figure.savefig(file, format=format, dpi=dots, metadata=_UNNAMED[format])
    return file.getvalue()


def name_text(text: str, longest: int = _LONGEST_NAME) -> str:
    r"""Return a name as matplotlib shows it as it is; the middle of a long one is left out.

    Examples
    --------
    >>> print(name_text("a$b$"), name_text("run/of/yesterday", 9))
    a\$b\$ run/…rday
    """
    seen = visible(text)
    if len(seen) > longest:
        kept = longest - 1
        seen = f"{seen[: kept // 2]}…{seen[len(seen) - (kept - kept // 2) :]}"
    return seen.replace("$", r"\$")  # else two of them would enclose mathematics


def signed(value: float, _: object = None) -> str:
    """Return a difference as the label of a tick, with the sign that is no hyphen."""
    return f"{value:+.4g}".replace("-", "−") if value else "0"
