"""Sections about metrics, their changes, slices and history, and about queries to look at."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

from rankmill.analysis.compare.differences.differences import (
    BETTER,
    EQUAL,
    NOT_SHOWN,
    WORSE,
    Difference,
    Estimate,
    Moved,
    Slice,
)
from rankmill.analysis.compare.differences.judgement import interval_of
from rankmill.analysis.compare.view.details import Histogram
from rankmill.analysis.compare.view.plots import dot_of, reach_of
from rankmill.analysis.explain.trace import Listed
from rankmill.io.inert_text import brief
from rankmill.nightly.report import words
from rankmill.nightly.report.subject import Subject
from rankmill.nightly.report.words import (
    Figure,
    Folded,
    Grid,
    Html,
    Query,
    Section,
    listed,
    name,
    say,
)
from rankmill.show import charts
from rankmill.show.charts import BASE, CLASSES, SUBJECT, Dot, Series, around
from rankmill.show.marks import (
    Drawing,
    Scale,
    count,
    distinct_texts,
    half_width,
    number,
    percent,
    scale_of,
    signed,
)

# So many slices of one way are drawn: those that lost most, and those that gained most.
MOST_SLICES = 24
# Slices with a smaller share of the queries do not widen the axis: their intervals are very wide.
SMALL = 0.01
# So many runs of a history are drawn.
MOST_RUNS = 100
# Shorter words for a phone.
_WORDS = {NOT_SHOWN: "not shown", EQUAL: "equal"}


def class_of(subject: Subject, system: str) -> str:
    """Return the class that a system has in all drawings."""
    if system == subject.baseline:
        return BASE
    others = [SUBJECT, *CLASSES[2:]]
    return others[subject.systems.index(system) % len(others)]


def legend(subject: Subject, systems: Sequence[str]) -> list[tuple[Drawing, Html]]:
    """Return the marker and the name of each system; none for one."""
    if len(systems) < 2:
        return []
    return [(Drawing(12, charts.sample(class_of(subject, one))), name(one)) for one in systems]


def tone_of(one: Difference | None) -> str:
    """Return the class of what a difference means."""
    verdict = None if one is None else one.verdict
    return {BETTER: "good", WORSE: "bad"}.get(verdict or "", "even")


# ------------------------------------------------------------------ metrics


def metrics(subject: Subject) -> Section:
    """Return the metrics of all systems, as dots with intervals."""
    level = f"{100 * subject.settings.confidence:g}%"
    rows = []
    together = scale_of([end for of in subject.values.values() for one in of.values() for end in
                         (one.value, one.low, one.high)])  # fmt: skip
    single = len(subject.shown) == 1
    for metric, of in subject.values.items():
        scale = together if single else _scale(of.values())
        for i, system in enumerate(subject.shown):
            one = of[system]
            dot = Dot(one.value, one.low, one.high, class_of(subject, system))
            named = [name(metric) if i == 0 else ""] + ([] if single else [name(system)])
            told = number(one.value), half_width(one.half)
            rows.append([*named, *told, charts.track([dot], scale)])
    start = 0 if single else 1
    header: list[object] = ["metric", *([] if single else ["system"]), "value", f"± {level}"]
    header.append(charts.axis(together) if single else "one axis per metric")
    last = len(header) - 1
    grid = Grid(header, rows, frozenset({0, start}), last, frozenset({last - 1}))
    title = words.value_words(subject.metrics[0], subject.values[subject.metrics[0]][subject.main])
    if not single:
        title = say("{} for {}", title, name(subject.main))
    lead = say("Means over {}, with their {} intervals.", subject.counted, level)
    lead = say("{} {}", lead, _bounds(subject)) if _bounds(subject) else lead
    return Section("Metrics", title, lead, [grid])


def _bounds(subject: Subject) -> str:
    result = subject.result
    if result is None:
        return ""
    return " ".join(
        f"Over all orders of ties {metric} is between {number(low)} and {number(high)}."
        for metric, (low, high) in result.bounds.items()
        if metric in subject.values and number(low) != number(high)
    )


def _scale(estimates: Iterable[Estimate]) -> Scale:
    ends = [end for one in estimates for end in (one.value, one.low, one.high)]
    return scale_of(ends, most=4)


# ------------------------------------------------------------------ changes


def changes(subject: Subject) -> Section | None:
    """Return how each metric changed against the baseline; None without one."""
    if subject.comparison is None or subject.baseline is None:
        return None
    found, several = subject.changes, len(subject.systems) > 1
    rows = [
        ([name(metric), *([name(system)] if several else [])], one)
        for metric, system, one in found
        if one is not None
    ]
    header = ["metric", *(["system"] if several else [])]
    level = f"{100 * subject.settings.confidence:g}%"
    lead = say(
        "Differences from {} in percent of its value, paired by query, with {} intervals. {}",
        name(subject.baseline),
        level,
        words.side_words({metric: one.better for metric, _, one in found if one is not None}),
    )
    title = words.change_words(*found[0])
    return Section("Against the baseline", title, lead, [_forest(header, rows)])


def _forest(
    header: Sequence[object],
    rows: Sequence[tuple[Sequence[object], Difference]],
    small: int = 0,
    whole: Sequence[Difference] = (),
) -> Grid:
    """Return a table of rows with a drawing of the difference of each.

    With `small`, the second cell is a number of queries, and rows of fewer do not widen the axis;
    others do up to the `REACH` of the `whole`.
    """
    relative = all(one.relative is not None for _, one in rows)
    dots = [(_dot(one, relative=relative), row) for row, one in rows]
    large = [dot for dot, row in dots if not small or int(str(row[1]).replace(",", "")) >= small]
    drawn, reach = large or [dot for dot, _ in dots], reach_of(whole, relative=relative)
    scale = charts.scale_within(drawn, reach, most=4)
    shown = []
    for (dot, row), (_, one) in zip(dots, rows, strict=True):
        change = "" if one.value is None else (
            percent(one.relative, sign=True) if relative and one.relative is not None
            else signed(one.value)
        )  # fmt: skip
        result = _WORDS.get(one.verdict or "", one.verdict or "not tested")
        drawing = charts.track([dot], scale, zero=True)
        tone = dot.tone.split()[0]
        shown.append([*row, drawing, change, Html(f'<span class="{tone}">{result}</span>')])
    axis = charts.axis(scale, percent=relative, signed=True)
    place = len(header)
    left = frozenset({0, place, place + 2}) | ({1} if not small and place > 1 else set())
    wide = frozenset({1}) if small else frozenset()
    return Grid([*header, axis, "change", "result"], shown, left, place, wide)


def _dot(one: Difference, *, relative: bool) -> Dot:
    dot = dot_of(one)
    if relative:
        low, high = one.relative_interval or (None, None)
        dot = dot._replace(value=one.relative, low=low, high=high)
    return dot


def slices(subject: Subject) -> Iterator[Section]:
    """Yield for whom the first metric changed, for each system; other metrics are folded."""
    for system in subject.systems if subject.comparison is not None else ():
        cut = [one for one in subject.slices if one.differences]
        tested = [metric for metric in subject.metrics if cut and metric in cut[0].differences]
        if not tested:
            continue
        first, *others = tested
        parts: list[object] = list(_by_way(subject, cut, first, system))
        parts += [
            Folded(
                say("{}: {}", name(metric), words.slices_words(cut, metric, system)),
                list(_by_way(subject, cut, metric, system)),
            )
            for metric in others
        ]
        title = words.slices_words(cut, first, system)
        title = say("{}: {}", name(first), title) if others else title
        lead = say(
            "{} of {} against {} in slices of the queries; p and intervals are corrected over all. "
            "Axes leave out the ends of intervals of slices with few queries.",
            *(name(first), name(system), name(subject.baseline)),
        )
        one_sided = cut[0].differences[first][system].better != "neither"
        about = "Who gained and who lost" if one_sided else "Where it rose and where it fell"
        yield Section(about, title, lead, parts)


def _by_way(subject: Subject, cut: Sequence[Slice], metric: str, system: str) -> Iterator[Grid]:
    for by in dict.fromkeys(one.by for one in cut):
        of_way = [one for one in cut if one.by == by]
        kept = _most_moved(of_way, metric, system)
        rows = [
            ([words.slice_value(one), count(one.queries)], one.differences[metric][system])
            for one in kept
        ]
        title = say("by {}", words.way_words(by))
        if len(kept) < len(of_way):
            title = say("{}, {} of {} slices", title, len(kept), count(len(of_way)))
        small, whole = max(1, int(SMALL * subject.queries)), subject.difference(metric, system)
        yield _forest([title, "queries"], rows, small, [whole] if whole else [])


def _most_moved(of_way: Sequence[Slice], metric: str, system: str) -> list[Slice]:
    """Return the slices of a way; of very many, those that lost and gained most."""
    if len(of_way) <= MOST_SLICES:
        return list(of_way)
    order = sorted(of_way, key=lambda one: one.differences[metric][system].order)
    half = MOST_SLICES // 2
    chosen = {id(one) for one in (*order[:half], *order[-half:])}
    return [one for one in order if id(one) in chosen]


# ------------------------------------------------------------------ levels


def levels(subject: Subject) -> Iterator[Section]:
    """Yield the first metric by number of labels and by popularity, for all systems."""
    found = subject.details.slices
    metric = next((one for one in subject.metrics if found and one in found[0].values), None)
    if metric is None:
        return
    for by in dict.fromkeys(one.by for one in found):
        of_way = [one for one in found if one.by == by]
        if len(of_way) > MOST_SLICES:
            least = sorted(one.queries for one in of_way)[-MOST_SLICES]
            of_way = [one for one in of_way if one.queries >= least][:MOST_SLICES]
        systems = [one for one in subject.shown if one in of_way[0].values[metric]]
        if subject.main not in systems or len(of_way) < 2:
            continue
        every = [(one.queries, one.values[metric][system]) for one in of_way for system in systems]
        large = [e for queries, one in every if queries >= SMALL * subject.queries for e in one[2:]]
        scale = scale_of([*(one.value for _, one in every), *large])
        rows = []
        for one in of_way:
            of = one.values[metric]
            dots = [
                Dot(of[n].value, of[n].low, of[n].high, class_of(subject, n))
                for n in reversed(systems)
            ]
            value = number(of[subject.main].value)
            rows.append(
                [words.slice_value(one), count(one.queries), charts.track(dots, scale), value]
            )
        header = [words.way_words(by), "queries", charts.axis(scale), name(metric)]
        title = words.level_words(of_way, metric, subject.main)
        grid = Grid(header, rows, frozenset({0}), 2, frozenset({1}))
        yield Section(
            say("By {}", words.way_words(by)).plain,
            title,
            _LEADS.get(by[0], ""),
            [*([legend(subject, systems)] if len(systems) > 1 else []), grid],
            "half",
        )


_LEADS = {
    "label_count": "How many labels a query has.",
    "label_popularity": (
        "Labels of the head, the middle and the tail hold a third of all labels each; a query is "
        "in the class of its median label."
    ),
}


# ------------------------------------------------------------------ history


def trend(subject: Subject) -> Section | None:
    """Return the trend of each metric over the runs of the history; None without any."""
    known = {
        metric: list(runs)[-MOST_RUNS:]
        for metric, runs in subject.history.items()
        if runs and isinstance(metric, str)
    }
    if not known:
        return None
    first = next((metric for metric in subject.metrics if metric in known), next(iter(known)))
    runs = known[first]
    titles = [charts.time_text(run[0]) for run in runs]
    halves = [None if run[2] is None else 1.96 * run[2] for run in runs]
    values = [run[1] for run in runs]
    tones = [_tone_of_word(run[3]).replace("even", "") for run in runs]
    series = charts.Series(SUBJECT, values, charts.around(values, halves), tones)
    shown = [text[:10] for text in titles]
    # Earlier tries of this night are not what it is compared with, if there is another night.
    others = [run for run, day in zip(runs, shown, strict=True) if day != shown[-1]]
    title = words.trend_words(first, [*others, runs[-1]] if others else runs)
    times = [run[0] for run in runs]
    drawing = charts.over_time(times, series, title.plain, f"{len(runs)} runs")
    rows = [
        [text, number(value), half_width(half), word or "none"]
        for text, (_, value, _, word), half in zip(titles, runs, halves, strict=True)
    ]
    numbers = Grid(["time", first, "95%", "verdict"], rows[::-1], frozenset({0, 3}))
    parts: list[object] = [Figure("", drawing, numbers)]
    more = [
        [name(metric), charts.sparkline([run[1] for run in of], [_tone_of_word(of[-1][3])]),
         number(of[0][1]), number(of[-1][1])]
        for metric, of in known.items()
        if metric != first
    ]  # fmt: skip
    if more:
        parts.append(Grid(["metric", "all runs", "first", "last"], more, frozenset({0}), 1))
    return Section("History", title, f"The last {len(runs)} runs that count the same.", parts)


def _tone_of_word(word: str) -> str:
    if word in ("", "held"):
        return "even"
    return "warn" if word == "not enough data" else "bad"


# ------------------------------------------------------------------ where to look

# So many metrics get a line over cutoffs and a histogram.
MOST_FIGURES = 4
# The most systems in a chart.
MOST_SYSTEMS = 4
# Ends of bars: so many labels below a histogram.
LABELS = 5
# The most labels and ranks of a query that are shown, and characters of an item.
MOST_LABELS = 12
ITEM = 24


def figures(subject: Subject) -> Iterator[Section]:
    """Yield the charts, a few of which stand side by side."""
    shown = [*_cutoffs(subject), *_distributions(subject), *_hits(subject)]
    shown += [*_bins(subject), *_thresholds(subject)]
    lead = ""
    if subject.details.bins.get(subject.main) == []:
        lead = "Charts by confidence are left out: the predictions need more than --memory allows."
    if shown:
        yield Section("Where it comes from", "", lead, shown, "figures")


def _systems(subject: Subject, known: Collection[str]) -> list[str]:
    return [one for one in subject.shown if one in known][:MOST_SYSTEMS]


def _cutoffs(subject: Subject) -> Iterator[Figure]:
    for metric, of in list(subject.details.cutoffs.items())[:MOST_FIGURES]:
        systems = _systems(subject, of)
        if subject.main not in systems or len(of[subject.main]) < 2:
            continue
        labels = [str(one.cutoff) for one in of[subject.main]]
        halves = [
            [interval_of(metric, *point[1:], subject.queries).half for point in of[one]]
            for one in systems
        ]
        values = [[point.value for point in of[one]] for one in systems]
        series = [
            Series(class_of(subject, one), values[i], around(values[i], halves[i]))
            for i, one in enumerate(systems)
        ]
        title = words.cutoffs_words(metric, of, systems)
        told = f"{brief(metric)} at the cutoffs {', '.join(labels)}"
        rows = [
            [label, *(text for of_values, of_halves in zip(values, halves, strict=True)
                      for text in (number(of_values[i]), half_width(of_halves[i])))]
            for i, label in enumerate(labels)
        ]  # fmt: skip
        header = ["cutoff", *(text for one in systems for text in (name(one), "± 95%"))]
        yield Figure(
            title,
            charts.lines(series, labels, title.plain, told),
            Grid(header, rows),
            legend(subject, systems),
            "by cutoff, with 95% intervals",
        )


def _distributions(subject: Subject) -> Iterator[Figure]:
    for metric, of in list(subject.details.histograms.items())[:MOST_FIGURES]:
        systems = _systems(subject, of)
        if subject.main not in systems:
            continue
        one = of[subject.main]
        ends, every = _ends(one), max(1, len(one.counts) // LABELS)
        labels = ["= 0", *(f"{a} to {b}" for a, b in pairwise(ends))]
        below = [(0.5, "= 0"), *((i + 2, ends[i]) for i in range(0, len(one.counts), every))]
        told = f"The share of queries with each value of {brief(metric)}, and with 0"
        note = "share of the queries by value; exactly 0 is shown separately"
        shares, title = {n: _shares(of[n]) for n in systems}, words.histogram_words(metric, one)
        yield _bars(subject, shares, (name(metric), labels), below, title, told, note, apart=True)


def _bars(
    subject: Subject,
    shares: Mapping[str, Sequence[float]],
    labels: tuple[object, Sequence[str]],
    below: Sequence[tuple[float, str]],
    title: Html,
    told: str,
    note: str,
    *,
    apart: bool = False,
) -> Figure:
    """Return bars for the first system, with the shares of all; `labels` are a column of texts."""
    series = [Series(class_of(subject, one), of) for one, of in shares.items()]
    head, texts = labels
    rows = [[text, *(percent(of[i]) for of in shares.values())] for i, text in enumerate(texts)]
    drawing = charts.bars(series, below, title.plain, told, apart=apart)
    numbers = Grid([head, *map(name, shares)], rows)
    return Figure(title, drawing, numbers, legend(subject, list(shares)), note)


def _ends(one: Histogram) -> list[str]:
    width = (one.high - one.low) / len(one.counts)
    return [f"{one.low + i * width:.3g}" for i in range(len(one.counts) + 1)]


def _shares(one: Histogram) -> list[float]:
    total = max(1, one.zeros + sum(one.counts))
    return [number / total for number in (one.zeros, *one.counts)]


def _hits(subject: Subject) -> Iterator[Figure]:
    of = subject.details.hits
    systems = _systems(subject, [one for one in of if of[one]])
    last = max((i for one in systems for i, hits in enumerate(of[one], 1) if hits), default=0)
    if subject.main not in systems or not last:
        return
    labels = [str(rank) for rank in range(1, last + 1)]
    below = [(i + 0.5, labels[i]) for i in range(0, last, 1 + last // 13)]
    told, note = f"Hits at ranks 1 to {last}", "share of the queries with a hit at each rank"
    shares, title = {n: of[n][:last] for n in systems}, words.hits_words(of[subject.main])
    yield _bars(subject, shares, ("rank", labels), below, title, told, note)


def _bins(subject: Subject) -> Iterator[Figure]:
    of = subject.details.bins
    systems = [one for one in _systems(subject, of) if of[one]]
    bins = of.get(subject.main)
    if not bins:
        return
    low = min(one.low for n in systems for one in of[n])
    high = max(one.high for n in systems for one in of[n])
    probable = low >= 0 and high <= 1
    if probable:
        low, high = 0.0, 1.0
    wide = (high - low) or 1.0
    places = [(one.confidence - low) / wide for one in bins]
    series = [
        Series(class_of(subject, subject.main), [one.correct / one.predictions for one in bins])
    ]
    title = words.bins_words(bins)
    labels = distinct_texts([one.confidence for one in bins])
    # Long ones stand at both ends only: others would touch on a phone.
    every = len(bins) - 1 if max(map(len, labels)) > charts.LONG else len(bins) // 4
    told = "The share of predictions that are right, by confidence"
    note = "share of predictions that are right, by confidence"
    if probable:
        note += "; on the diagonal a confidence is a probability"
    rows = [
        [f"{one.low:.4g} to {one.high:.4g}", count(one.predictions), f"{one.confidence:.4g}",
         percent(one.correct / one.predictions)]
        for one in bins
    ]  # fmt: skip
    drawing = charts.lines(
        series, labels, title.plain, told, places=places, percent=True,
        include=(0.0, 1.0) if probable else (0.0,), diagonal=probable, every=max(1, every),
    )  # fmt: skip
    yield Figure(
        title, drawing, Grid(["confidence", "predictions", "mean", "right"], rows), (), note
    )


def _thresholds(subject: Subject) -> Iterator[Figure]:
    """Yield how precise the most confident predictions are: all of those from each bin on."""
    bins = subject.details.bins.get(subject.main, [])[::-1]
    if not bins:
        return
    predictions = list(accumulate(one.predictions for one in bins))
    correct = list(accumulate(one.correct for one in bins))
    precisions = [a / b for a, b in zip(correct, predictions, strict=True)]
    shares = [one / predictions[-1] for one in predictions]
    title = words.thresholds_words(shares, precisions)
    labels = [percent(one) for one in shares]
    drawing = charts.lines(
        [Series(class_of(subject, subject.main), precisions)], labels, title.plain,
        "Precision among the most confident predictions, by their share", places=shares,
        percent=True, include=(0.0,), every=max(1, len(bins) // 4),
    )  # fmt: skip
    rows = [
        [label, f"{one.low:.4g}", count(seen), percent(precision)]
        for label, one, seen, precision in zip(labels, bins, predictions, precisions, strict=True)
    ]
    header = ["most confident", "from confidence", "predictions", "right"]
    note = "precision of the most confident predictions, by the share of them that is kept"
    yield Figure(title, drawing, Grid(header, rows), (), note)


# ------------------------------------------------------------------ queries


def queries(subject: Subject) -> Iterator[Section]:
    """Yield the queries that moved most in the first metric that has any."""
    comparison = subject.comparison
    if comparison is None or subject.baseline is None:
        return
    moved = comparison.moved or subject.details.moved
    lists = {one.query: one for one in subject.lists}
    metric = next((one for one in subject.metrics if any(moved.get(one, {}).values())), None)
    if metric is None:
        return
    for system in subject.systems:
        rows = moved[metric].get(system, [])
        if not rows:
            continue
        better = comparison.differences[metric][system].better
        sign = -1 if better == "lower" else 1
        up = [one for one in rows if sign * one.difference > 0]
        down = [one for one in rows if sign * one.difference < 0][::-1]
        verbs = ("fell", "rose") if better == "neither" else ("lost", "gained")
        title = _moved_words(metric, up, down, verbs)
        shown = [_query(subject, one, system, lists.get(one.query)) for one in (*down, *up)]
        lead = say(
            "The queries whose {} differs most between {} and {}: those that {} come first. ✓ "
            "marks a label.",
            *(name(metric), name(subject.baseline), name(system), verbs[0]),
        )
        if not lists:
            lead = say("{} The lists could not be read again, or were not asked for.", lead)
        yield Section("Queries that moved most", title, lead, shown, "queries")


def _moved_words(metric: str, up: list[Moved], down: list[Moved], verbs: tuple[str, str]) -> Html:
    told = []
    for rows, verb in zip((down, up), verbs, strict=True):
        if rows:
            size = signed(abs(rows[0].difference)).lstrip("+")
            told.append(say("query {} {} {}", name(rows[0].query, ITEM), verb, size))
    return say("In {}, {}", name(metric), listed(told))


def _query(subject: Subject, one: Moved, system: str, found: Listed | None) -> Query:
    title = say(
        "Query {}: {} → {} ({})",
        *(name(one.query, ITEM), number(one.baseline), number(one.value), signed(one.difference)),
    )
    if found is None:
        return Query(title, "", [])
    more = len(found.labels) - MOST_LABELS
    labels = listed([name(each, ITEM) for each in found.labels[:MOST_LABELS]])
    told = say("Labels ({}): {}", len(found.labels), labels)
    if more > 0:
        told = say("{} and {} more", told, more)
    lists = [
        (name(each), number(value),
         [(name(item, ITEM), right) for item, right in found.lists.get(each, [])])
        for each, value in ((subject.baseline or "", one.baseline), (system, one.value))
    ]  # fmt: skip
    return Query(title, told, lists)
