"""What a section is made of, and what charts say in their titles: sentences of what was found.

Ids and names in texts are inert, isolated from the direction of others, and short.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from rankmill.analysis.compare.differences.differences import (
    BETTER,
    EQUAL,
    HIGHER,
    LOWER,
    NON_INFERIOR,
    WORSE,
    Difference,
    Estimate,
    Slice,
)
from rankmill.analysis.compare.queries.label_facts import Bin
from rankmill.analysis.compare.view.details import CutoffPoint, Histogram
from rankmill.io.inert_text import LONGEST, brief, visible
from rankmill.nightly.rules.reports import Night
from rankmill.results.slices import UNKNOWN
from rankmill.show.marks import Drawing, half_width, number, percent, signed
from rankmill.show.tables import meaning
from rankmill.show.writers import bold_texts

# ------------------------------------------------------------------ a section

# The most characters of a name in the title that a pointer shows.
IN_TITLE = 200


class Html(str):
    """A text that is HTML already, and the same without tags as `plain`."""

    plain: str

    def __new__(cls, markup: str, plain: str = "") -> Html:
        """Return the text."""
        made = super().__new__(cls, markup)
        made.plain = plain
        return made

    def begun(self) -> Html:
        """Return this as the beginning of a sentence; a name, which is in a tag, stays as it is."""
        return Html(self[:1].upper() + self[1:], self.plain if self[:1] == "<" else
                    self.plain[:1].upper() + self.plain[1:])  # fmt: skip

    def __html__(self) -> str:
        """Return the text as templates take it: not to be escaped again."""
        return str(self)


def name(text: object, most: int = LONGEST) -> Html:
    """Return an id or a name as HTML; if it is shortened, its title has more of it."""
    whole = str(text)
    short = brief(whole, most)
    more = escape(brief(whole, IN_TITLE)) if short != visible(whole[: 4 * most]) else ""
    title = f' title="{more}"' if more else ""
    return Html(f"<bdi{title}>{escape(short)}</bdi>", short)


def say(template: str, *parts: object) -> Html:
    """Return a sentence with parts in its braces: names that are HTML, and plain texts.

    Examples
    --------
    >>> told = say("{} lost {}", name("<b>"), "4%")
    >>> told, told.plain
    ('<bdi>&lt;b&gt;</bdi> lost 4%', '<b> lost 4%')
    """
    marked = (one if isinstance(one, Html) else escape(visible(str(one))) for one in parts)
    plain = (one.plain if isinstance(one, Html) else visible(str(one)) for one in parts)
    return Html(escape(template, quote=False).format(*marked), template.format(*plain))


def listed(parts: list[Html]) -> Html:
    """Return parts as a list in words: a, b and c."""
    if len(parts) < 2:
        return parts[0] if parts else Html("")
    return say(", ".join(["{}"] * (len(parts) - 1)) + " and {}", *parts)


class Grid(NamedTuple):
    """A table; cells are texts, or drawings that are HTML."""

    header: Sequence[Any]
    rows: Sequence[Sequence[Any]]
    left: frozenset[int] = frozenset({0})  # columns of left-aligned cells; others are numbers
    drawn: int | None = None  # the column of drawings, which takes the room that is left
    wide: frozenset[int] = frozenset()  # the columns that a phone leaves out

    @property
    def hovers(self) -> list[str]:
        """What the heads mean; names, which are HTML, mean themselves."""
        return ["" if isinstance(one, Html) else meaning(str(one)) for one in self.header]


def grid_of(table: Any) -> Grid:
    """Return a table as a page has it; a head with a meaning is text, which shows it on hover."""
    header, *rows = bold_texts(table, lambda text: escape(visible(text)), "<b>{}</b>")
    heads = [
        visible(one.title) if meaning(one.title) else Html(cell)
        for one, cell in zip(table.columns, header, strict=True)
    ]
    left = frozenset(place for place, column in enumerate(table.columns) if column.left)
    return Grid(heads, [[*map(Html, row)] for row in rows], left)


class Figure(NamedTuple):
    """A chart of its own with a title, the systems in it, and its numbers as a table."""

    title: Html | str
    drawing: Drawing
    numbers: Grid
    legend: Sequence[tuple[Drawing, Html]] = ()
    note: Html | str = ""


class Section(NamedTuple):
    """A part of a page."""

    kicker: str  # what it is about, in a word or two
    title: Html | str  # what one sees
    lead: Html | str = ""  # how to read it
    parts: Sequence[Any] = ()  # grids, figures, lists of queries, facts
    kind: str = ""  # "figures" stand beside each other if there is room


class Folded(NamedTuple):
    """Parts that are shown when asked for."""

    title: Html | str
    parts: Sequence[Any]


class Query(NamedTuple):
    """A query that moved: its title, its labels, and a list of each system.

    Each list is a name, a value, and items as (text, whether it is right).
    """

    title: Html | str
    labels: Html | str
    lists: Sequence[tuple[Html, str, Sequence[tuple[Html, bool]]]]
    note: str = ""


class FactList(NamedTuple):
    """Titles and texts; `code` texts are commands."""

    rows: Sequence[tuple[Any, Any]]
    code: bool = False


class Finding(NamedTuple):
    """Something that was found: a word with its tone, a title, more of it, and what it means."""

    word: str
    tone: str
    title: Html | str
    more: Html | str = ""
    meaning: Html | str = ""


class Finds(NamedTuple):
    """What was found, as a list."""

    rows: Sequence[Finding]


def kind_of(part: Any) -> str:
    """Return what a part is, for templates."""
    return type(part).__name__.lower()


# ------------------------------------------------------------------ sentences

# The most slices that a title names.
NAMED = 2
# Verdict -> what is said of a system, a metric and the size of their difference.
_CHANGES = {
    BETTER: "{0} is {2} better in {1}",
    WORSE: "{0} is {2} worse in {1}",
    HIGHER: "{1} is {2} higher for {0}",
    LOWER: "{1} is {2} lower for {0}",
    EQUAL: "{0} is equal in {1} within the margin",
    NON_INFERIOR: "{0} is non-inferior in {1} within the margin",
}


def value_words(metric: str, one: Estimate) -> Html:
    """Say what a metric is."""
    if one.value is None:
        return say("{} has no value", name(metric))
    return say("{} is {} {}", name(metric), number(one.value), half_width(one.half))


def size(one: Difference) -> str:
    """Return how large a difference is, without its sign: relative if the baseline is not 0."""
    if one.relative is not None:
        return percent(abs(one.relative))
    return signed(abs(one.value or 0.0)).lstrip("+")


def change_words(metric: str, system: str, one: Difference | None) -> Html:
    """Say how a system differs from the baseline in a metric."""
    if one is None or one.value is None:
        return say("{} cannot be compared", name(metric))
    told = _CHANGES.get(one.verdict or "", "No difference is shown for {1}")
    if one.verdict is None:
        way = "higher" if one.value > 0 else "lower"
        told = f"{{1}} is {{2}} {way} for {{0}}, which is not tested"
        told = told if one.value else "{1} is the same for {0}"
    return say(told, name(system), name(metric), size(one))


def changes_words(changes: Sequence[tuple[str, str, Difference | None]]) -> Html:
    """Say in one sentence how systems differ in all metrics."""
    verdicts = [None if one is None else one.verdict for _, _, one in changes]
    if len(changes) == 1:
        return change_words(*changes[0])
    systems = {system for _, system, _ in changes}
    what = "metrics" if len(systems) == 1 else "comparisons"
    told = (("better", (BETTER,)), ("worse", (WORSE,)), ("different", (HIGHER, LOWER)))
    counts = {word: sum(map(verdicts.count, of)) for word, of in told}
    counted = [f"{word} in {number}" for word, number in counts.items() if number]
    if not counted:
        return say("No difference is shown in {} {}", len(changes), what)
    who = name(next(iter(systems))) if len(systems) == 1 else say("The systems")
    verb = "is" if len(systems) == 1 else "are"
    return say("{} {} {} of {} {}", who, verb, " and ".join(counted), len(changes), what)


def side_words(sides: Mapping[str, str]) -> Html:
    """Say which side of the line of no difference is better."""
    of: dict[str, list[Html]] = {"higher": [], "lower": [], "neither": []}
    for metric, side in sides.items():
        of[side].append(name(metric))
    told = [say("A dot right of the line is better.")] if of["higher"] else []
    if of["lower"]:
        told.append(say("A dot left of the line is better in {}.", listed(of["lower"])))
    if of["neither"]:
        told.append(say("Neither side is better in {}.", listed(of["neither"])))
    return say(" ".join(["{}"] * len(told)), *told)


def slice_name(one: Slice) -> Html:
    """Return what the queries of a slice have in common."""
    if one.by in (("label_count",), ("label_popularity",)) and one.value[0] is not None:
        return say("queries with {}", _class_text(one))
    pairs = zip(one.by, one.value, strict=True)
    texts = [
        say("{} = {}", name(by), UNKNOWN if value is None else name(value)) for by, value in pairs
    ]
    return say(", ".join("{}" for _ in texts), *texts)


def slices_words(slices: Sequence[Slice], metric: str, system: str) -> Html:
    """Say which slices lost, else which gained; where neither side is better, how many moved."""
    found = [(one, one.differences[metric][system]) for one in slices]
    if any(of.better == "neither" for _, of in found):
        rose, fell = (sum(of.verdict == word for _, of in found) for word in (HIGHER, LOWER))
        if not rose and not fell:
            return say("No slice is shown to differ in {}", name(metric))
        return say(
            "{} rose in {} and fell in {} of {} slices", name(metric), rose, fell, len(found)
        )
    for word, verb in ((WORSE, "lost"), (BETTER, "gained")):
        shown = [pair for pair in found if pair[1].verdict == word]
        shown.sort(key=lambda pair: -abs(pair[1].relative or pair[1].value or 0.0))
        if not shown:
            continue
        if word == BETTER and len(shown) > NAMED:
            return say(
                "{} of {} slices gained, and none is shown to have lost", len(shown), len(found)
            )
        told = [say("{} {} {}", slice_name(one), verb, size(of)) for one, of in shown[:NAMED]]
        more = len(shown) - NAMED
        if more > 0:
            others = "one more slice" if more == 1 else f"{more} more slices"
            told.append(say("{} {}", others, verb))
        return listed(told).begun()
    return say("No slice is shown to have gained or lost in {}", name(metric))


def cutoffs_words(
    metric: str, lines: Mapping[str, Sequence[CutoffPoint]], shown: Sequence[str]
) -> Html:
    """Say how a metric goes over cutoffs, and which of two systems is above."""
    points = [one for one in lines[shown[0]] if one.value is not None]
    family = name(metric.partition("@")[0])
    if len(points) < 2:
        return say("{} by cutoff", family)
    first, last = points[0], points[-1]
    assert first.value is not None
    assert last.value is not None
    ends = number(first.value, 3), first.cutoff, number(last.value, 3), last.cutoff
    pairs = list(pairwise(one.value or 0.0 for one in points))
    if abs(last.value - first.value) < 0.02 * max(abs(last.value), abs(first.value)):
        told = say("{} is {} at {} and {} at {}", family, *ends)
    elif all(b >= a for a, b in pairs) or all(b <= a for a, b in pairs):
        way = "rises" if last.value > first.value else "falls"
        told = say("{} {} from {} at {} to {} at {}", family, way, *ends)
    else:
        low = min(points, key=lambda one: one.value or 0.0)
        high = max(points, key=lambda one: one.value or 0.0)
        told = say(
            "of these cutoffs, {} is lowest at {} ({}) and highest at {} ({})",
            *(family, low.cutoff, number(low.value, 3), high.cutoff, number(high.value, 3)),
        )
    if len(shown) == 2:
        other = {one.cutoff: one.value for one in lines[shown[1]]}
        above = [(one.value or 0.0) > (other.get(one.cutoff) or 0.0) for one in points]
        if all(above) or not any(above):
            upper, lower = shown if all(above) else shown[::-1]
            same = all(one.value == other.get(one.cutoff) for one in points)
            if not same:
                return say("{}; {} is above {} throughout", told, name(upper), name(lower))
    return told


def histogram_words(metric: str, one: Histogram) -> Html:
    """Say how many queries score nothing, and where half of them are."""
    total = one.zeros + sum(one.counts)
    if not total:
        return say("No query has a value of {}", name(metric))
    zeros = one.zeros / total
    if 2 * one.zeros >= total:
        return say("{} of the queries score 0 in {}", percent(zeros), name(metric))
    width = (one.high - one.low) / len(one.counts)
    half = _half([one.zeros if one.low >= 0 else 0, *one.counts], total)
    end = one.high if half > len(one.counts) else one.low + width * half
    return say(
        "Half of the queries score {} or less in {}, and {} score 0",
        *(number(end, 2), name(metric), percent(zeros)),
    )


def hits_words(hits: Sequence[float]) -> Html:
    """Say how often the first rank is right, and where half of the hits are."""
    total = sum(hits)
    if not total:
        return say("No prediction is right at the first {} ranks", len(hits))
    rank = min(len(hits), 1 + _half(hits, total))
    ranks = "rank 1" if rank == 1 else f"the first {rank} ranks"
    return say(
        "Rank 1 is right for {} of the queries; half of the hits are at {}", percent(hits[0]), ranks
    )


def _half(counts: Sequence[float], total: float) -> int:
    """Return the place of the first count with which half of a total is reached."""
    reached = (2 * seen >= total for seen in accumulate(counts))
    return next((i for i, one in enumerate(reached) if one), len(counts))


def level_words(slices: Sequence[Slice], metric: str, system: str) -> Html:
    """Say in which class of queries a system is lowest and highest."""
    known = [
        (value, one) for one in slices if (value := one.values[metric][system].value) is not None
    ]
    if len(known) < 2:
        return say("{} by class", name(metric))
    (low, lowest), (high, highest) = (pick(known, key=lambda pair: pair[0]) for pick in (min, max))
    texts = [_class_text(one) for one in (lowest, highest)]
    shape = "Queries with {} score lowest ({}), those with {} highest ({})"
    if lowest.by not in (("label_count",), ("label_popularity",)):
        shape = "{} scores lowest ({}), {} highest ({})"
    return say(shape, texts[0], number(low, 3), texts[1], number(high, 3))


def _class_text(one: Slice) -> Html:
    """Return which labels the queries of a class of `details.WAYS` have."""
    value = UNKNOWN if one.value[0] is None else one.value[0]
    if one.by == ("label_count",):
        return say("{} {}", value, "label" if value == "1" else "labels")
    if one.by != ("label_popularity",):
        return slice_name(one)
    return say("{} labels", {"head": "popular", "tail": "rare"}.get(value, value))


def way_words(by: Sequence[str]) -> Html:
    """Return what cuts, in words where it is no column."""
    known = {
        "label_count": "number of labels",
        "label_popularity": "popularity",
        "list_length": "length of the list",
        "unpredicted": "systems with predictions",
    }
    return say(", ".join("{}" for _ in by), *(known.get(one) or name(one) for one in by))


def bins_words(bins: Sequence[Bin]) -> Html:
    """Say whether confidence tells how likely a prediction is to be right."""
    total = sum(one.predictions for one in bins)
    gap = math.fsum(abs(one.correct - one.confidence * one.predictions) for one in bins) / total
    if all(one.low >= 0 and one.high <= 1 for one in bins):
        over = math.fsum(one.confidence * one.predictions - one.correct for one in bins) / total
        if gap < 0.02:
            return say(
                "Confidence matches how often predictions are right, within {}", percent(gap)
            )
        way = "too high" if over > 0 else "too low"
        if abs(over) > gap / 2:
            return say("Confidence is {} by {} on average", way, percent(abs(over)))
        return say("Confidence is off by {} on average, both ways", percent(gap))
    first, last = (bins[i].correct / bins[i].predictions for i in (0, -1))
    return say(
        "{} of the least confident predictions are right, and {} of the most confident",
        *(percent(first), percent(last)),
    )


def thresholds_words(shares: Sequence[float], precisions: Sequence[float]) -> Html:
    """Say how precise the most confident predictions are, and all of them."""
    return say(
        "{} of the most confident {} of predictions are right, and {} of all",
        *(percent(precisions[0]), percent(shares[0]), percent(precisions[-1])),
    )


def trend_words(metric: str, runs: Sequence[Night]) -> Html:
    """Say where the last run stands among those before it."""
    values = [value for _, value, _, _ in runs if value is not None]
    if len(values) < 2 or runs[-1][1] is None:
        return say("{} has no trend yet: there is one run", name(metric))
    *before, last = values
    runs_before = "the run before" if len(before) == 1 else f"all {len(before)} runs before"
    if last > max(before):
        return say("{} is higher than in {}", name(metric), runs_before)
    if last < min(before):
        return say("{} is lower than in {}", name(metric), runs_before)
    if last == before[-1]:
        return say("{} is as in the run before", name(metric))
    way = "above" if last > before[-1] else "below"
    change = abs(last - before[-1])
    how = percent(change / abs(before[-1])) if before[-1] else signed(change).lstrip("+")
    return say("{} is {} {} the run before, and within the range of all", name(metric), how, way)


def slice_value(one: Slice) -> Html:
    """Return the value of a slice without what cuts."""
    return say(
        ", ".join("{}" for _ in one.value), *(UNKNOWN if v is None else name(v) for v in one.value)
    )
