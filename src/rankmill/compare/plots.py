"""Pictures of a comparison: intervals of differences, how those of queries spread, and slices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from rankmill.compare.differences import (
    BETTER,
    EQUAL,
    HIGHER,
    LOWER,
    NOT_SHOWN,
    WORSE,
    Difference,
    Settings,
    Slice,
)
from rankmill.compare.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LINES,
    VERMILION,
    check_matplotlib,
    name_text,
    settle,
    signed,
    style,
)
from rankmill.compare.paired import Paired
from rankmill.compare.slice_tables import slice_text
from rankmill.compare.sums import Column, Sums
from rankmill.results.spelling import side_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 40
"""The most intervals in a panel."""

_ABREAST = 3  # panels beside each other
_BINS = 40
_STEPS = (1, 2, 2.5, 5, 10)  # of labelled ticks
_WIDTH, _ROW, _AROUND = 3.2, 0.21, 0.62  # inches: of a panel, of an interval, of titles and axes
_LINE = 0.15  # of a legend within a panel
_TITLE = 5.5  # the longest title over all panels
# Shape and filling tell the verdicts apart, colour only helps.
_MARKERS = {
    BETTER: ("^", BLUE),
    WORSE: ("v", VERMILION),
    EQUAL: ("s", GREEN),
    HIGHER: ("^", "white"),
    LOWER: ("v", "white"),
    NOT_SHOWN: ("o", "white"),
    "not tested": ("D", "white"),
}
_Rows: TypeAlias = Sequence[tuple[str, Difference]]
_Point: TypeAlias = tuple[int, float | None, float | None, float | None]


class _Panel(NamedTuple):
    """A panel of a metric: its title, height in inches, how it is drawn, the names of its rows."""

    title: str
    height: float
    draw: Callable[[Axes], None]
    labels: Sequence[str] | None = None


def plot_comparison(
    baseline: str,
    whole: Slice,
    slices: Sequence[Slice],
    settings: Settings,
    sums: Sums | None,
) -> Figure:
    """Return a figure with a column of panels for each metric.

    Parameters
    ----------
    baseline : str
    whole : Slice
        All queries.
    slices : sequence of Slice
    settings : Settings
    sums : Sums, optional
        Of all queries. With weights they have no differences of queries, so that none are drawn.

    Raises
    ------
    UsageError
        If matplotlib is not installed.
    """
    check_matplotlib()
    ways = list(dict.fromkeys(one.by for one in slices))
    columns_of = {} if sums is None else sums.columns
    spreads = {metric: _differences_of(of) for metric, of in columns_of.items()}
    columns = []
    for metric, of in whole.differences.items():
        left_out, rows = _system_rows(of)
        side = side_text(next(iter(of.values())).better) if of else ""
        panels = [_forest(f"{name_text(metric)}{side}{left_out}", rows, settings.margin)]
        if any(spreads.values()):
            panels.append(_spread_panel(spreads.get(metric, {})))
        for by in ways:
            of_way = [one for one in slices if one.by == by and metric in one.differences]
            left_out, rows = _slice_rows(metric, of_way)
            title = f"by {name_text(', '.join(by))} (queries){left_out}"
            panels.append(_forest(title, rows, settings.margin))
        columns.append(panels)
    every = [whole, *slices]
    differences = [one for each in every for of in each.differences.values() for one in of.values()]
    level = f"{100 * settings.confidence:.6g}%"
    title = f"Difference from {name_text(baseline, 28)}, with {level} intervals"
    title += " (of slices for all together)" if slices and settings.correction != "none" else ""
    return _figure(columns, title, _verdicts(differences))


def plot_cutoffs(
    curves: Mapping[str, Mapping[str, Sequence[_Point]]], confidence: float | None = None
) -> Figure:
    """Return a figure of metrics over cutoffs: a panel for each metric, a line for each system.

    Parameters
    ----------
    curves : dict of str to dict of str to list of tuples
        Metric -> system -> (cutoff, value, low, high), ascending. Where an end is None there is no
        interval; where the value is None there is a gap in the line.
    confidence : float, optional
        That of the intervals, for the title.

    Raises
    ------
    UsageError
        If matplotlib is not installed.
    """
    check_matplotlib()
    systems = list(dict.fromkeys(name for of in curves.values() for name in of))
    looks = dict(zip(systems, LINES, strict=False))
    columns = [
        [_Panel(name_text(metric), 2.6, partial(_curves, of, looks))]
        for metric, of in curves.items()
    ]
    title = "Value over cutoffs"
    title += "" if confidence is None else f", with {100 * confidence:.6g}% intervals"
    title += "" if len(looks) == len(systems) else f"; first {len(looks)} of {len(systems)} systems"
    legend = [_line(look) | {"label": name_text(name)} for name, look in looks.items()]
    return _figure(columns, title, legend)


def _figure(
    columns: Sequence[Sequence[_Panel]], title: str, legend: Iterable[dict[str, Any]]
) -> Figure:
    """Draw columns of panels, some abreast and the others below, and a legend at the bottom."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    bands = [columns[start : start + _ABREAST] for start in range(0, len(columns), _ABREAST)]
    heights = [
        max(each.height for each in row) for band in bands for row in zip(*band, strict=True)
    ]
    abreast = min(len(columns), _ABREAST) or 1
    size = (max(1.7 + _WIDTH * abreast, _TITLE), 0.7 + sum(heights))
    with style():
        figure = Figure(figsize=size, layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
        if heights:
            grid = figure.add_gridspec(len(heights), abreast, height_ratios=heights)
            top = 0
            for band in bands:
                for row, panels in enumerate(zip(*band, strict=True)):
                    for place, panel in enumerate(panels):
                        axes = figure.add_subplot(grid[top + row, place])
                        panel.draw(axes)
                        if place and panel.labels and panel.labels == panels[0].labels:
                            axes.set_yticklabels([])  # those of the first panel serve
                        axes.set_title(panel.title, fontweight="normal" if row else "bold")
                top += len(band[0])
        handles = [Line2D([], [], **one) for one in legend]
        if handles:
            figure.legend(handles=handles, loc="outside lower left", ncols=min(len(handles), 4))
        settle(figure)
    return figure


# ------------------------------------------------------------------ intervals


def _forest(title: str, rows: _Rows, margin: float | None) -> _Panel:
    draw = partial(_intervals, rows, margin)
    return _Panel(title, _AROUND + _ROW * len(rows), draw, [label for label, _ in rows])


def _system_rows(of: Mapping[str, Difference]) -> tuple[str, _Rows]:
    """The differences of all queries, and what is not drawn of them."""
    rows = [(name_text(name), one) for name, one in of.items()][:MOST_ROWS]
    more = len(of) - len(rows)
    return (f"; {more:,} more systems not drawn" if more else ""), rows


def _slice_rows(metric: str, of_way: Sequence[Slice]) -> tuple[str, _Rows]:
    """The differences in slices, and what is not drawn of them: slices of the fewest queries."""
    systems = max((len(one.differences[metric]) for one in of_way), default=1)
    most = max(MOST_ROWS // systems, 1)
    largest = sorted(range(len(of_way)), key=lambda i: -of_way[i].queries)[:most]
    kept = [of_way[i] for i in sorted(largest)]
    rows = []
    for one in kept:
        value = slice_text(one).partition(" = ")[2]
        for name, difference in one.differences[metric].items():
            label = name_text(value, 24)
            label += "" if systems == 1 else f" · {name_text(name, 18)}"
            rows.append((f"{label} ({one.queries:,})", difference))
    more = len(of_way) - len(kept)
    return (f"; {more:,} smaller not drawn" if more else ""), rows[:MOST_ROWS]


def _intervals(rows: _Rows, margin: float | None, axes: Axes) -> None:
    """Draw differences below each other: a marker for the verdict, a line for the interval."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    if margin is not None:
        axes.axvspan(-margin, margin, color=GREY, alpha=0.15, linewidth=0)
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=1)
    for place, (_, one) in enumerate(rows):
        if one.value is None:
            axes.text(0.02, place, "no value", transform=axes.get_yaxis_transform(), va="center")
            continue
        if one.low is not None and one.high is not None:
            axes.plot([one.low, one.high], [place, place], color=BLACK, linewidth=1.1, zorder=2)
        axes.plot([one.value], [place], **_marker(one), zorder=3)
    axes.set_yticks(range(len(rows)), [label for label, _ in rows])
    axes.set_ylim(max(len(rows), 1) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=_STEPS))
    axes.xaxis.set_major_formatter(FuncFormatter(signed))


def _word(one: Difference) -> str:
    return one.verdict or "not tested"


def _marker(one: Difference) -> dict[str, Any]:
    shape, filling = _MARKERS[_word(one)]
    edge = BLACK if filling == "white" else filling
    return {
        **{"marker": shape, "markersize": 6, "linestyle": "none"},
        **{"markerfacecolor": filling, "markeredgecolor": edge},
    }


def _verdicts(differences: Sequence[Difference]) -> list[dict[str, Any]]:
    """The legend of the markers that are drawn."""
    first = {_word(one): _marker(one) for one in differences if one.value is not None}
    return [first[word] | {"label": word} for word in _MARKERS if word in first]


# ------------------------------------------------------------------ distributions


def _differences_of(columns: Mapping[str, Column]) -> dict[str, Paired]:
    return {name: one.paired for name, one in columns.items() if isinstance(one.paired, Paired)}


def _spread_panel(of: Mapping[str, Paired]) -> _Panel:
    drawn = dict(list(of.items())[: len(LINES)])
    legend = _LINE * len(drawn) if len(drawn) > 1 else 0.0
    return _Panel(_spread_title(of), 1.7 + legend, partial(_spread, drawn, legend / (1.1 + legend)))


def _spread(drawn: Mapping[str, Paired], headroom: float, axes: Axes) -> None:
    """Draw how many queries differ by how much; those that tie are told, as most often do."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    apart = {name: paired.values != 0 for name, paired in drawn.items()}
    sizes = [abs(paired.values[apart[name]]) for name, paired in drawn.items()]
    largest = max((float(one.max()) for one in sizes if len(one)), default=0.0)
    if not largest:
        axes.set_axis_off()
        return
    edges = np.linspace(-largest, largest, _BINS + 1)
    edges[_BINS // 2] = 0.0  # a bin holds queries above the baseline or queries below it
    most = 1.0
    for (name, paired), (colour, dashes, _) in zip(drawn.items(), LINES, strict=False):
        kept = apart[name]
        counts, _ = np.histogram(paired.values[kept], edges, weights=paired.counts[kept])
        most = max(most, float(counts.max()))
        look: dict[str, Any] = {"color": colour, "linestyle": dashes, "linewidth": 1.1}
        if len(drawn) == 1:
            look = {"facecolor": GREY, "edgecolor": "white", "linewidth": 0.4, "fill": True}
        # A logarithmic axis has no 0: what is below half a query is below the panel.
        axes.stairs(np.maximum(counts, 0.1), edges, baseline=0.1, **look)
        ties = f"{name_text(name, 20)}: {paired.tied:,} tie"
        if len(drawn) > 1:
            axes.plot([], [], color=colour, linestyle=dashes, label=ties)
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=1)
    axes.set_yscale("log")
    axes.set_ylim(0.6, most * 1.7 * (most / 0.6) ** (headroom / (1 - headroom)))
    axes.yaxis.set_major_locator(LogLocator(numticks=4))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=_STEPS))
    axes.xaxis.set_major_formatter(FuncFormatter(signed))
    axes.set_ylabel("queries")
    if len(drawn) > 1:
        axes.legend(fontsize=7, loc="upper left")


def _spread_title(of: Mapping[str, Paired]) -> str:
    if not of:
        return "no mean over queries"
    if len(of) > len(LINES):
        return f"queries; first {len(LINES)} of {len(of)} systems"
    if len(of) > 1:
        return "queries, without those that tie"
    ((_, paired),) = of.items()
    share = f" ({paired.tied / paired.n:.1%})" if paired.n else ""
    return f"queries; {paired.tied:,}{share} tie, not drawn"


# ------------------------------------------------------------------ cutoffs


def _curves(
    of: Mapping[str, Sequence[_Point]], looks: Mapping[str, tuple[Any, ...]], axes: Axes
) -> None:
    """Draw the value of each system over cutoffs, with a band for its intervals."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    nan = float("nan")
    drawn = {name: of[name] for name in looks if of.get(name)}
    for name, points in drawn.items():
        cells = [[nan if cell is None else cell for cell in point] for point in points]
        cutoffs, values, lows, highs = zip(*cells, strict=True)
        axes.fill_between(cutoffs, lows, highs, color=looks[name][0], alpha=0.15, linewidth=0)
        axes.plot(cutoffs, values, **_line(looks[name]))
    axes.set_xscale("log")
    every = sorted({point[0] for points in drawn.values() for point in points})
    axes.xaxis.set_major_locator(FixedLocator(every))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda cutoff, _: f"{cutoff:,.0f}"))
    axes.set_xlabel("cutoff")


def _line(look: tuple[Any, ...]) -> dict[str, Any]:
    colour, dashes, marker = look
    return {"color": colour, "linestyle": dashes, "marker": marker, "markersize": 4}
