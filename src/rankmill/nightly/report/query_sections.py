"""Sections that tell where to look: cutoffs, distributions, ranks, confidences and queries."""

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from rankmill.analysis.compare.differences.differences import Moved
from rankmill.analysis.compare.differences.intervals import interval_of
from rankmill.analysis.compare.view.details import Details, Histogram
from rankmill.analysis.explain.side_by_side import Listed, side_by_side
from rankmill.errors import InputError, UsageError
from rankmill.io.inert_text import brief
from rankmill.nightly.report import words
from rankmill.nightly.report.metric_sections import class_of, legend
from rankmill.nightly.report.section import Figure, Grid, Html, Query, Section, listed, name, say
from rankmill.nightly.report.subject import Subject
from rankmill.show import charts
from rankmill.show.charts import Series, around
from rankmill.show.marks import count, distinct_texts, half_width, number, percent, signed
from rankmill.sources.files.files import is_pipe
from rankmill.sources.nouns import Given

# So many metrics get a line over cutoffs and a histogram.
MOST_FIGURES = 4
# The most systems in a chart.
MOST_SYSTEMS = 4
# Ends of bars: so many labels below a histogram.
LABELS = 5
# The most labels and ranks of a query that are shown, and characters of an item.
MOST_LABELS = 12
RANKS = 12
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


def lists_of(details: Details | None, given: Mapping[str, Any]) -> list[Listed]:
    """Return the lists of the queries that moved most, for `page`; all inputs are read once more.

    `details` are those of a comparison or a verdict, and `given` the arguments of `evaluate_runs`,
    perhaps among others. There are no lists if an input can be read only once.
    """
    moved = {} if details is None else details.moved
    first = next((of for of in moved.values() if any(of.values())), {})
    queries = list(dict.fromkeys(one.query for rows in first.values() for one in rows))
    if not queries or any(map(_read_once, (given["labels"], *given["runs"].values()))):
        return []
    taken = inspect.signature(side_by_side).parameters
    left = {name: value for name, value in given.items() if name in taken}
    try:
        return side_by_side(queries=queries, ranks=RANKS, **left)
    except (InputError, UsageError):  # a stream from Python that is used up
        return []


def _read_once(one: Any) -> bool:
    data = one.data if isinstance(one, Given) else one
    paths: Sequence[Any] = data if isinstance(data, list) else [data]
    return any(isinstance(path, str) and is_pipe(path) for path in paths)
